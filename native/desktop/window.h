// The window: what SDL knows, and how the desktop is painted.
//
// Everything is painted by the CPU into one image with opacity, and that is put into the window;
// what lies under the sprites was drawn before, and is copied.
// A transparent window takes its shape from the same image: where nothing is painted there is no
// window, for the eye and for the pointer. Rejected: a renderer on the graphics card for the plain
// window, a second way of painting for a few dozen stickers of 72 pixels; and 32-bit visuals for
// the transparent one, which need a compositor and catch the pointer where nothing is to be seen.
#ifndef SPRITES_DESKTOP_WINDOW_H_
#define SPRITES_DESKTOP_WINDOW_H_

#include <SDL.h>
#include <sprites/client.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "desktop.h"
#include "ground.h"
#include "image.h"
#include "options.h"
#include "viewer.h"

namespace sprites::desktop {

/** Half the side of a drawn sprite and of an image, in pixels; as on the web page. */
constexpr int kHalf = 36;
constexpr int kImageHalf = 58;

/** Half the side of a sprite with that picture. */
int halfOf(const std::string& picture);

class Window {
 public:
  /** Throws std::runtime_error when there is no window to be had. */
  explicit Window(const Settings& settings);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /** The desktop's size: that of the window without the words below it. */
  int width() const { return width_; }
  int height() const;

  /** Whether a point is on the words below the desktop: what is let go there is put away. */
  bool isFooter(double x, double y) const;

  /** Whether it has no frame and no ground; false where the system could not do that. */
  bool isTransparent() const { return transparent_; }

  /** Takes the size the window has now. */
  void takeSize();

  /** Has a transparent window fill the screen, which may have another size by now. */
  void fillScreen();

  void setTitle(const std::string& title);

  /** Takes the keyboard: a window without a frame gets it from no window manager. */
  void takeFocus();

  /** What the ground says from the next paint() on. */
  void setView(const View& view);

  /** Shows words over everything else; none: what was shown goes. */
  void setToast(const std::string& words);

  /** Shows a sprite large, over everything else; nothing: what was shown goes. */
  void setOpened(std::optional<Opened> opened);

  /** What a click asks of the sprite that is open. */
  Action actionAt(int x, int y) const;

  /** Paints everything anew and shows it. Those in `telling` show their senders. */
  void paint(const Desktop& desktop, const std::vector<BodyId>& telling);

 private:
  using Surface = std::unique_ptr<SDL_Surface, Ended<SDL_FreeSurface>>;

  /** A sticker or label as it is painted, and whether the last frame used it. */
  struct Look {
    Surface surface;
    bool used = false;
  };

  void open(const Settings& settings);
  bool openTransparent(const Settings& settings);
  void paintGround();
  void paintBody(const Body& body, bool selected, bool telling);
  void paintLabels(const Body& body, const SDL_Rect& place, bool telling);
  void paintViewer();
  void paintToast();

  /** What is painted under that key; made where the last frame had none. */
  template <typename Make>
  SDL_Surface* look(const std::string& key, Make make);
  SDL_Surface* sticker(const std::string& picture);
  Surface surfaceOf(Image image) const;
  void show();

  std::unique_ptr<SDL_Window, Ended<SDL_DestroyWindow>> window_;
  bool transparent_ = false;
  std::optional<SDL_Rect> screen_;  // what the window fills; none: it has a size of its own
  int width_ = 0;
  int height_ = 0;
  Surface frame_;
  Surface ground_;  // all that lies under the sprites; none: to be drawn anew
  Surface badge_;   // the state, where there is no ground to say it
  Surface toast_;
  Surface card_;  // of the sprite that is open
  std::optional<Opened> opened_;
  std::optional<Viewer> viewer_;
  View view_;
  std::string words_;                  // of the toast
  std::map<std::string, Look> looks_;  // by picture or label; those no longer seen are dropped
  std::string title_;
};

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_WINDOW_H_
