# From a checkout:  conan create native/client --build=missing
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import copy, load


class Sprites(ConanFile):
    name = "sprites"
    description = "Client of a Sprites server"
    license = "MIT"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True}
    implements = ["auto_shared_fpic"]
    generators = "CMakeDeps", "CMakeToolchain"
    exports = "include/sprites/version.h"
    exports_sources = "CMakeLists.txt", "cmake/*", "include/*", "src/*"

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include/sprites/version.h"))
        self.version = re.search(r'SPRITES_VERSION "(.+)"', header)[1]

    def export_sources(self):
        copy(self, "LICENSE", os.path.join(self.recipe_folder, "../.."), self.export_sources_folder)

    def requirements(self):
        self.requires("libcurl/[>=7.68 <9]")

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure({"SPRITES_INSTALL": True})
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["sprites"]
        self.cpp_info.set_property("pkg_config_name", "sprites")
        if self.settings.os == "Linux":
            self.cpp_info.system_libs = ["pthread"]
