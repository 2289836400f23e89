// sprites-desktop: see --help, and app.h for how it works.
#include <SDL.h>
#include <sprites/client.h>

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "app.h"
#include "options.h"

int main(int argc, char** argv) {
  using namespace sprites::desktop;
  try {
    const Settings settings = readSettings(std::vector<std::string>(argv + 1, argv + argc));
    if (settings.help) {
      std::cout << helpText();
    } else if (settings.version) {
      std::cout << sprites::version() << std::endl;
    } else {
      App(settings).run();
    }
    return 0;
  } catch (const std::invalid_argument& error) {
    std::cerr << "sprites-desktop: " << error.what() << std::endl;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "sprites-desktop: " << error.what() << std::endl;
    return 1;
  }
}
