// The command line of sprites-desktop.
#ifndef SPRITES_DESKTOP_OPTIONS_H_
#define SPRITES_DESKTOP_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

namespace sprites::desktop {

/** Size and place of a window; without a place the window system chooses one. */
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
  std::vector<std::string> sprites;  // names of drawn pictures to start with
  std::vector<std::string> files;    // images to start with
  std::string name;                  // of this desktop, sent with its throws; empty: none
  std::string folder = ".";          // for saved pictures
  bool help = false;
  bool version = false;
};

/**
 * Reads the command line, without the program's name.
 * Throws std::invalid_argument with one line for a person.
 */
Settings readSettings(const std::vector<std::string>& arguments);

/** Returns the text of --help. */
std::string helpText();

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_OPTIONS_H_
