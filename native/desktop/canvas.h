// A small painter of filled shapes into a square of pixels: enough to draw the stickers by code.
//
// Shapes are paths of straight pieces; curves are cut into pieces when they are made. A path is
// turned into a mask of how much of each pixel it covers (four lines a pixel down, exactly across),
// a mask is painted with a color over what is there. Coordinates are those of a drawing of 100 by
// 100 units, whatever the number of pixels.
//
// Rejected: SDL_gfx and cairo, which the program has for its words: so the stickers are drawn, and
// tested, without a library; and images in files (a folder to install and to find again).
#ifndef SPRITES_DESKTOP_CANVAS_H_
#define SPRITES_DESKTOP_CANVAS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "image.h"

namespace sprites::desktop {

constexpr double kTurn = 6.283185307179586;  // a whole one

struct Point {
  double x = 0;
  double y = 0;
};

/** Closed or open lines; a fill closes them all. */
class Path {
 public:
  Path() = default;

  /** From the notation of SVG: M L H V Q C Z in capitals, numbers between them. */
  explicit Path(std::string_view notation);

  Path& move(Point to);
  Path& line(Point to);
  Path& quad(Point control, Point to);
  Path& cubic(Point first, Point second, Point to);

  /** A whole ellipse, turned by `turn` radians. */
  Path& ellipse(Point middle, double radiusX, double radiusY, double turn = 0);
  Path& circle(Point middle, double radius) { return ellipse(middle, radius, radius); }
  Path& close();

  const std::vector<std::vector<Point>>& lines() const { return lines_; }

 private:
  std::vector<std::vector<Point>> lines_;
};

/** Straight color and opacity, each 0 to 1. */
struct Color {
  double red = 0;
  double green = 0;
  double blue = 0;
  double alpha = 1;
};

/** From 0xRRGGBB. */
Color rgb(uint32_t hex, double alpha = 1);

/** How a path that crosses itself is filled. */
enum class Rule : uint8_t { kNonZero, kEvenOdd };

/** A square image that is painted on. */
class Canvas {
 public:
  /** Transparent, `side` pixels each way. */
  explicit Canvas(int side);

  /** Draws smaller from now on: by `scale`, around the middle. */
  void shrink(double scale) { scale_ = scale; }

  void fill(const Path& path, Color color, Rule rule = Rule::kNonZero);

  /** A line of that width along the path, its ends and corners round. */
  void stroke(const Path& path, Color color, double width);

  /** Whatever is painted until unclip() only shows within the path. */
  void clip(const Path& path);
  void unclip() { clip_.clear(); }

  Image image() const;

 private:
  using Mask = std::vector<double>;

  Point place(Point point) const;
  /** Where pixel `column` of `row` is in a mask and in the image. */
  size_t at(int column, int row) const {
    return static_cast<size_t>(row) * static_cast<size_t>(side_) + static_cast<size_t>(column);
  }

  Mask fillMask(const Path& path, Rule rule) const;
  void paint(const Mask& mask, Color color);

  int side_;
  double scale_ = 1;
  std::vector<Color> image_;  // opacity multiplied in
  Mask clip_;                 // empty: none
};

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_CANVAS_H_
