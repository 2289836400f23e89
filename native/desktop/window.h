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
#include <string>
#include <vector>

#include "desktop.h"
#include "ground.h"
#include "image.h"
#include "options.h"

namespace sprites::desktop {

/** Half the side of a sprite, in pixels; as on the web page. */
constexpr int kHalf = 36;

class Window {
 public:
  /** Throws std::runtime_error when there is no window to be had. */
  explicit Window(const Settings& settings);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  int width() const { return width_; }
  int height() const { return height_; }

  /** Whether it has no frame and no ground; false where the system could not do that. */
  bool isTransparent() const { return transparent_; }

  /** Takes the size the window has now. */
  void takeSize();

  void setTitle(const std::string& title);

  /** Takes the keyboard: a window without a frame gets it from no window manager. */
  void takeFocus();

  /** What the ground says from the next paint() on. */
  void setView(const View& view);

  /** Shows words over everything else; none: what was shown goes. */
  void setToast(const std::string& words);

  /** Paints everything anew and shows it. */
  void paint(const Desktop& desktop);

 private:
  struct SurfaceEnd {
    void operator()(SDL_Surface* surface) const { SDL_FreeSurface(surface); }
  };
  struct WindowEnd {
    void operator()(SDL_Window* window) const { SDL_DestroyWindow(window); }
  };
  using Surface = std::unique_ptr<SDL_Surface, SurfaceEnd>;

  /** A sticker or label as it is painted, and whether the last frame used it. */
  struct Look {
    Surface surface;
    bool used = false;
  };

  void open(const Settings& settings);
  bool openTransparent(const Settings& settings);
  void paintGround();
  void paintBody(const Body& body, bool selected);
  void paintToast();
  Look* look(const std::string& key);
  SDL_Surface* sticker(const std::string& picture);
  SDL_Surface* label(const std::string& name);
  Surface surfaceOf(const Image& image) const;
  void show();

  std::unique_ptr<SDL_Window, WindowEnd> window_;
  bool transparent_ = false;
  int width_ = 0;
  int height_ = 0;
  Surface frame_;
  Surface ground_;                // all that lies under the sprites; none: to be drawn anew
  Surface badge_;                 // the state, where there is no ground to say it
  Surface ring_;                  // around the selected one
  std::vector<Surface> shadows_;  // under a sprite, the higher it hops the smaller
  Surface toast_;
  View view_;
  std::string words_;                  // of the toast
  std::map<std::string, Look> looks_;  // by picture or label; those no longer seen are dropped
  std::string title_;
};

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_WINDOW_H_
