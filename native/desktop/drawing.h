// Drawing by cairo and pango: the stickers, the ground with its words and its map, and the names of
// sprites.
//
// Names and words come in every script there is, so pango lays them out; with it cairo is there.
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

constexpr double kTurn = 6.283185307179586;  // a whole one

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

/** How a text is set. */
struct TextStyle {
  double size = 16;  // pixels
  bool bold = false;
  uint32_t color = colors::kInk;
  int most = 0;       // pixels across at most; 0: as many as it needs
  bool wrap = false;  // at `most` it goes on in the next line, else it is cut with an ellipsis
  int lines = 0;      // so many at most, the last one cut; 0: as many as it needs
  bool left = false;  // its lines begin at x; else x is their middle
};

/** Adds lines to what a cairo has as its path. */
using Path = std::function<void(cairo_t*)>;

/** From the notation of SVG: M L H V Q C Z in capitals, numbers between them. */
Path svg(const char* notation);

/** A whole ellipse, turned by `turn` radians. */
Path ellipse(double x, double y, double radiusX, double radiusY, double turn = 0);
Path circle(double x, double y, double radius);

/** An image that is drawn on. */
class Drawing {
 public:
  /** Transparent. Throws std::runtime_error when there is no memory for it. */
  Drawing(int width, int height);

  /** A square of so many pixels a side, in which lengths are hundredths of it. */
  explicit Drawing(int side);

  cairo_t* cairo() const { return cairo_.get(); }
  int width() const { return cairo_image_surface_get_width(surface_.get()); }
  int height() const { return cairo_image_surface_get_height(surface_.get()); }

  /** The color for what is drawn next, from 0xRRGGBB. */
  void color(uint32_t hex, double alpha = 1);

  void fill(const Path& path, uint32_t hex, double alpha = 1);

  /** A line of that width along the path, its ends and corners round. */
  void stroke(const Path& path, uint32_t hex, double width, double alpha = 1);

  /** Whatever is drawn until unclip() only shows within the path. */
  void clip(const Path& path);
  void unclip() { cairo_reset_clip(cairo()); }

  /** A rectangle with half round ends, and one with round corners. */
  void pill(double x, double y, double width, double height);
  void card(double x, double y, double width, double height, double radius);

  /** An image, `scale` times as large as it is. */
  void picture(const Image& image, double x, double y, double scale);

  /** How large a text would be, in pixels. */
  struct Extent {
    int width = 0;
    int height = 0;
  };
  Extent measure(const std::string& text, const TextStyle& style) const;

  /** A text in UTF-8 as printable() has it, its upper side at x, y. */
  void text(const std::string& text, const TextStyle& style, double x, double y);

  /** What was drawn, opacity not multiplied in. */
  Image image() const;

 private:
  using Layout = std::unique_ptr<PangoLayout, Ended<g_object_unref>>;

  Layout layout(const std::string& text, const TextStyle& style) const;
  void trace(const Path& path);

  std::unique_ptr<cairo_surface_t, Ended<cairo_surface_destroy>> surface_;
  std::unique_ptr<cairo_t, Ended<cairo_destroy>> cairo_;
};

/** A name as a label: one line, at most 160 pixels across, whatever it says. */
Image drawLabel(const std::string& name, uint32_t paper = 0xFFFFFF, uint32_t ink = colors::kInk);

/** Words for a while: light on dark, at most `most` pixels across. */
Image drawToast(const std::string& words, int most);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_DRAWING_H_
