// The command line of sprites-desktop.
#ifndef SPRITES_DESKTOP_OPTIONS_H_
#define SPRITES_DESKTOP_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

namespace sprites::desktop {

/** Where a window is to be; without a place the window system chooses one. */
struct Area {
  int width = 0;
  int height = 0;
  std::optional<int> x;
  std::optional<int> y;
};

struct Settings {
  std::string server = "http://127.0.0.1:8080";
  bool transparent = false;
  std::optional<Area> window;
  std::vector<std::string> sprites;  // names of drawn pictures to begin with
  std::vector<std::string> files;    // images to begin with
  std::string name;                  // of this desktop, which goes with what it throws; empty: none
  std::string folder = ".";          // where what is saved goes
  bool help = false;
  bool version = false;
};

/**
 * Reads the command line, without the program's name.
 * Throws std::invalid_argument with one line for a person.
 */
Settings readSettings(const std::vector<std::string>& arguments);

/** What --help prints. */
std::string helpText();

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_OPTIONS_H_
