// Drawing with cairo and pango: the stickers, the ground with its words and its map, and the names
// of sprites.
//
// Names and words come in every script, so pango lays them out; pango brings cairo along.
// Rejected: images in files (a folder to install and to find again).
#ifndef SPRITES_DESKTOP_DRAWING_H_
#define SPRITES_DESKTOP_DRAWING_H_

#include <cairo.h>
#include <pango/pangocairo.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "image.h"

namespace sprites::desktop {

constexpr double kTurn = 6.283185307179586;  // radians of a full turn

/** The colors of the web page by day. */
namespace colors {
constexpr uint32_t kPaper = 0xFBF3E4;
constexpr uint32_t kGrid = 0xE6D8BD;
constexpr uint32_t kInk = 0x2A2342;
constexpr uint32_t kSoft = 0x6B6180;
constexpr uint32_t kCard = 0xFFFAF0;
constexpr uint32_t kAcross = 0xD9472A;  // left and right: 3.7 to 1 on paper
constexpr uint32_t kAlong = 0x0F7F79;   // up and down: 4.4 to 1
constexpr uint32_t kSelf = 0x7A5CFF;
}  // namespace colors

/** The style of a text. */
struct TextStyle {
  double size = 16;  // pixels
  bool bold = false;
  uint32_t color = colors::kInk;
  int maxWidth = 0;    // largest width in pixels; 0: unbounded
  bool wraps = false;  // continues in the next line at `maxWidth`; else ends with an ellipsis there
  int maxLines = 0;    // most lines, the last one is cut; 0: unbounded
  bool isLeftAligned = false;  // the lines begin at x; else x is their middle
};

/** Adds lines to the path of a cairo_t. */
using Path = std::function<void(cairo_t*)>;

/** Returns a path from SVG notation: M L H V Q C Z in capitals, with numbers between them. */
Path svgPath(const char* notation);

/** Returns a full ellipse, turned by `turn` radians. */
Path ellipse(double x, double y, double radiusX, double radiusY, double turn = 0);
Path circle(double x, double y, double radius);

/** An image to draw on. */
class Drawing {
 public:
  /** Makes a transparent image. Throws std::runtime_error when there is no memory for it. */
  Drawing(int width, int height);

  /** Makes a square of `side` pixels, in which lengths are hundredths of the side. */
  explicit Drawing(int side);

  cairo_t* cairo() const { return cairo_.get(); }
  int width() const { return cairo_image_surface_get_width(surface_.get()); }
  int height() const { return cairo_image_surface_get_height(surface_.get()); }

  /** Sets the color of what is drawn next, as 0xRRGGBB. */
  void setColor(uint32_t hex, double alpha = 1);

  void fill(const Path& path, uint32_t hex, double alpha = 1);

  /** Draws a line of that width along the path. In a square its ends and corners are round. */
  void stroke(const Path& path, uint32_t hex, double width, double alpha = 1);

  /** Limits all drawing to the path until unclip(). */
  void clip(const Path& path);
  void unclip() { cairo_reset_clip(cairo()); }

  /** Fill a rectangle with half-round ends, and one with round corners. */
  void fillPill(double x, double y, double width, double height);
  void fillCard(double x, double y, double width, double height, double radius);

  /** Draws an image at `scale` times its size. */
  void drawImage(const Image& image, double x, double y, double scale);

  /** The size of a text, in pixels. */
  struct Extent {
    int width = 0;
    int height = 0;
  };
  Extent measure(const std::string& text, const TextStyle& style) const;

  /** Draws a text in UTF-8, cleaned by printable(), its upper side at x, y. */
  void drawText(const std::string& text, const TextStyle& style, double x, double y);

  /** Returns the image, opacity not multiplied in. */
  Image image() const;

 private:
  using Layout = std::unique_ptr<PangoLayout, Deleter<g_object_unref>>;

  Layout layout(const std::string& text, const TextStyle& style) const;
  void setPath(const Path& path);

  std::unique_ptr<cairo_surface_t, Deleter<cairo_surface_destroy>> surface_;
  std::unique_ptr<cairo_t, Deleter<cairo_destroy>> cairo_;
};

/** Draws a name as a label: one line, always at most 160 pixels wide. */
Image drawLabel(const std::string& name, uint32_t paper = 0xFFFFFF, uint32_t ink = colors::kInk);

/** Draws a message: light on dark, at most `maxWidth` pixels wide. */
Image drawToast(const std::string& message, int maxWidth);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_DRAWING_H_
