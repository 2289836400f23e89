// The window, over SDL, and the painting of the desktop.
//
// The CPU paints everything into one image with opacity, which is copied into the window. The
// ground under the sprites is drawn once, and copied into each frame. A transparent window takes
// its shape from the same image: its unpainted parts are neither seen nor hit by the pointer.
// Rejected: a renderer on the graphics card for the plain window, a second way of painting for a
// few dozen stickers of 72 pixels; and 32-bit visuals for the transparent one, which need a
// compositor and catch the pointer in empty parts.
#ifndef SPRITES_DESKTOP_WINDOW_H_
#define SPRITES_DESKTOP_WINDOW_H_

#include <SDL.h>
#include <sprites/client.h>

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
constexpr int kHalfSide = 36;
constexpr int kImageHalfSide = 58;

/** Returns half the side of a sprite with that picture, in pixels. */
int halfSideOf(const std::string& picture);

class Window {
 public:
  /** Opens the window. Throws std::runtime_error if that fails. */
  explicit Window(const Settings& settings);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /** The desktop's size: the window without the footer. */
  int width() const { return width_; }
  int height() const;

  /** Returns whether a point is on the footer, where a released sprite is put away. */
  bool isFooter(double x, double y) const;

  /** Returns whether the window has no frame and no ground; false if the system has no such. */
  bool isTransparent() const { return transparent_; }

  /** Adopts the window's current size. */
  void updateSize();

  /** Makes a transparent window fill the screen, whose size may have changed. */
  void fillScreen();

  void setTitle(const std::string& title);

  /** Takes the keyboard, which no window manager gives to a window without a frame. */
  void takeFocus();

  /** Sets what the ground shows from the next paint() on. */
  void setView(const View& view);

  /** Shows a message over everything else; empty: removes it. */
  void setToast(const std::string& message);

  /** Shows a sprite large, over everything else; std::nullopt: removes it. */
  void setOpened(std::optional<OpenedSprite> opened);

  /** Returns the action of a click while a sprite is shown large. */
  Action actionAt(int x, int y) const;

  /** Paints everything and shows it. The bodies in `showingSender` show their senders. */
  void paint(const Desktop& desktop, const std::vector<BodyId>& showingSender);

 private:
  using Surface = std::unique_ptr<SDL_Surface, Deleter<SDL_FreeSurface>>;

  /** A painted sticker or label, and whether the last frame used it. */
  struct CachedSurface {
    Surface surface;
    bool isUsed = false;
  };

  void open(const Settings& settings);
  bool openTransparent(const Settings& settings);
  void paintGround();
  SDL_Rect paintBody(const Body& body, bool selected);
  void paintLabels(const Body& body, const SDL_Rect& place, bool showsSender);
  void paintViewer();
  void paintToast();

  /** Returns the surface with that key; made if the last frame had none. */
  template <typename Make>
  SDL_Surface* cachedSurface(const std::string& key, Make make);
  SDL_Surface* stickerSurface(const std::string& picture);
  Surface surfaceOf(Image image) const;
  void show();

  std::unique_ptr<SDL_Window, Deleter<SDL_DestroyWindow>> window_;
  bool transparent_ = false;
  std::optional<SDL_Rect> screen_;  // the screen that the window fills; none: its own size
  int width_ = 0;
  int height_ = 0;
  Surface frame_;
  Surface ground_;  // everything under the sprites; none: to be drawn
  Surface badge_;   // shows the state without a ground
  Surface toast_;
  Surface card_;  // of the sprite that is shown large
  std::optional<OpenedSprite> opened_;
  std::optional<Viewer> viewer_;
  View view_;
  std::string toastText_;  // of the toast
  // By picture or label; unused ones are dropped.
  std::map<std::string, CachedSurface> cachedSurfaces_;
  std::string title_;
};

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_WINDOW_H_
