#include "options.h"

#include <sprites/sprite.h>

#include <regex>
#include <stdexcept>

namespace sprites::desktop {

namespace {

Area readArea(const std::string& text) {
  static const std::regex kArea("(\\d{1,5})x(\\d{1,5})(([+-]\\d{1,5})([+-]\\d{1,5}))?");
  Area area;
  std::smatch part;
  if (std::regex_match(text, part, kArea)) {
    area.width = std::stoi(part[1]);
    area.height = std::stoi(part[2]);
    if (part[3].matched) area.x = std::stoi(part[4]);
    if (part[3].matched) area.y = std::stoi(part[5]);
  }
  if (area.width < 100 || area.height < 100) {
    throw std::invalid_argument(
        "--window takes WIDTHxHEIGHT or WIDTHxHEIGHT+X+Y, at least 100x100, not \"" + text + "\"");
  }
  return area;
}

}  // namespace

Settings readSettings(const std::vector<std::string>& arguments) {
  Settings settings;
  bool onlyFiles = false;
  for (size_t i = 0; i < arguments.size(); i++) {
    std::string name = arguments[i];
    if (onlyFiles || name.empty() || name[0] != '-') {
      settings.files.push_back(name);
      continue;
    }
    std::optional<std::string> value;
    const size_t equals = name.find('=');
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto takeValue = [&]() -> std::string {
      if (value) return *value;
      if (i + 1 == arguments.size()) throw std::invalid_argument(name + " needs a value");
      if (arguments[i + 1].rfind("--", 0) == 0) {
        throw std::invalid_argument(name + " needs a value, not the option " + arguments[i + 1]);
      }
      return arguments[++i];
    };
    const auto takeFlag = [&] {
      if (value) throw std::invalid_argument(name + " takes no value, not \"" + *value + "\"");
      return true;
    };
    if (name == "--") {
      onlyFiles = true;
    } else if (name == "--server") {
      settings.server = takeValue();
    } else if (name == "--window") {
      settings.window = readArea(takeValue());
    } else if (name == "--sprite") {
      settings.sprites.push_back(takeValue());
      if (!isDrawnPicture(settings.sprites.back())) {
        throw std::invalid_argument("--sprite takes ball, star, ghost, rocket, fish or flower");
      }
    } else if (name == "--name") {
      settings.name = takeValue();
      if (!isSpriteName(settings.name)) {
        throw std::invalid_argument("--name takes at most 40 characters in UTF-8");
      }
    } else if (name == "--folder") {
      settings.folder = takeValue();
    } else if (name == "--transparent") {
      settings.transparent = takeFlag();
    } else if (name == "--help") {
      settings.help = takeFlag();
    } else if (name == "--version") {
      settings.version = takeFlag();
    } else {
      throw std::invalid_argument("there is no option " + name + "; --help shows them");
    }
  }
  return settings;
}

std::string helpText() {
  return "sprites-desktop [options] [image files...]\n"
         "\n"
         "A window on which sprites live. Drag one and let go: over an edge it flies to the "
         "neighbor.\n"
         "\n"
         "  --server URL          the server (http://127.0.0.1:8080)\n"
         "  --window WxH+X+Y      size and place of the window (800x600)\n"
         "  --transparent         no window to be seen: sprites over everything else, where the\n"
         "                        system can do that; Escape ends it\n"
         "  --name NAME           this desktop's name: neighbors read it with what it throws\n"
         "  --sprite NAME         begin with a ball, star, ghost, rocket, fish or flower\n"
         "  --folder FOLDER       where saved pictures go (the current one)\n"
         "  --help, --version\n"
         "\n"
         "Image files, named here or dropped on the window, become sprites.\n"
         "\n"
         "Keys: 1 to 6 make a drawn one; arrows walk the selected one, with Shift they throw it;\n"
         "space lets it hop; n selects the next one, p the one before; Enter or a double click\n"
         "opens one large, and then s saves it; Delete, or a drag to the words below, puts one "
         "away,\n"
         "and Ctrl+Z has it back for eight seconds.\n";
}

}  // namespace sprites::desktop
