// Draws the six drawn sprites as stickers with a white rim, as on the web page.
#include <cmath>

#include "drawing.h"

namespace sprites::desktop {

namespace {

using colors::kInk;

constexpr uint32_t kWhite = 0xFFFFFF;
constexpr uint32_t kSun = 0xFFC53D;
constexpr uint32_t kCoral = 0xFF6B4A;
constexpr uint32_t kTeal = 0x16A79E;

Path starPath(double x, double y, double outer, double inner) {
  return [=](cairo_t* cairo) {
    for (int i = 0; i < 10; i++) {
      const double radius = i % 2 == 1 ? inner : outer;
      const double turn = kTurn * i / 10 - kTurn / 4;
      cairo_line_to(cairo, x + std::cos(turn) * radius, y + std::sin(turn) * radius);
    }
    cairo_close_path(cairo);
  };
}

Path petals(double x, double y, double out, double radius, int count) {
  return [=](cairo_t* cairo) {
    for (int i = 0; i < count; i++) {
      const double turn = kTurn * i / count - kTurn / 4;
      circle(x + std::cos(turn) * out, y + std::sin(turn) * out, radius)(cairo);
    }
    circle(x, y, out)(cairo);
  };
}

void rim(Drawing* drawing, const Path& outline) {
  drawing->stroke(outline, kWhite, 13);
  drawing->fill(outline, kWhite);
}

/** Darkens everything outside a circle a little: call it clipped. */
void shade(Drawing* drawing, double x, double y, double radius) {
  const auto around = [=](cairo_t* cairo) {
    svgPath("M-20 -20 V120 H120 V-20Z")(cairo);  // the opposite way, so that the circle is a hole
    circle(x, y, radius)(cairo);
  };
  drawing->fill(around, kInk, 0.13);
}

void glint(Drawing* drawing, double x, double y, double size) {
  drawing->fill(ellipse(x, y, size, size * 0.55, -0.6), kWhite, 0.75);
}

void eyes(Drawing* drawing, double left, double right, double y, double size) {
  for (const double x : {left, right}) {
    drawing->fill(ellipse(x, y, size, size * 1.25), kInk);
    drawing->fill(circle(x - size * 0.3, y - size * 0.45, size * 0.36), kWhite);
  }
}

void smile(Drawing* drawing, double x, double y, double size) {
  const auto mouth = [=](cairo_t* cairo) {
    cairo_move_to(cairo, x - size, y);
    cairo_curve_to(cairo, x - size / 3, y + size * 2.6 / 3, x + size / 3, y + size * 2.6 / 3,
                   x + size, y);
  };
  drawing->stroke(mouth, kInk, 3);
}

void cheeks(Drawing* drawing, double left, double right, double y) {
  for (const double x : {left, right}) drawing->fill(circle(x, y, 4), kCoral, 0.45);
}

void ball(Drawing* drawing) {
  const Path outline = circle(50, 50, 38);
  rim(drawing, outline);
  drawing->fill(outline, kCoral);
  drawing->clip(outline);
  drawing->fill(svgPath("M8 50 Q50 28 92 50 L92 64 Q50 42 8 64Z"), 0xFFF3DC);
  drawing->fill(svgPath("M8 64 Q50 42 92 64 L92 78 Q50 56 8 78Z"), kTeal);
  drawing->fill(circle(50, 12, 13), kSun);
  shade(drawing, 62, 62, 46);
  drawing->unclip();
  glint(drawing, 35, 34, 8);
}

void star(Drawing* drawing) {
  const Path outline = starPath(50, 52, 42, 20);
  rim(drawing, outline);
  drawing->fill(outline, kSun);
  drawing->clip(outline);
  drawing->fill(svgPath("M50 52 L50 5 L95 40 L80 100 L50 80Z"), 0xFFB01F);
  drawing->unclip();
  eyes(drawing, 42, 58, 50, 3.6);
  smile(drawing, 50, 57, 6);
  cheeks(drawing, 35, 65, 57);
}

void ghost(Drawing* drawing) {
  const Path outline = svgPath(
      "M18 86 V46 C18 10 82 10 82 46 V86 Q75 76 68 84 Q61 92 54 82 Q50 77 46 82 Q39 92 32 84 "
      "Q25 76 18 86Z");
  rim(drawing, outline);
  drawing->fill(outline, 0xCFC4FF);
  drawing->clip(outline);
  drawing->fill(svgPath("M60 10 C82 14 82 40 82 46 V90 H66 C72 60 72 34 60 10Z"), 0xB3A3FB);
  drawing->unclip();
  eyes(drawing, 40, 60, 46, 5.4);
  drawing->fill(svgPath("M44 60 Q50 56 56 60 Q57 70 50 70 Q43 70 44 60Z"), kInk);
  cheeks(drawing, 30, 70, 57);
}

void rocket(Drawing* drawing) {
  rim(drawing, svgPath("M50 6 C66 18 70 38 68 58 L82 72 L80 84 L64 78 L60 82 L58 90 L50 97 L42 90 "
                       "L40 82 L36 78 L20 84 L18 72 L32 58 C30 38 34 18 50 6Z"));
  drawing->fill(svgPath("M40 80 H60 L58 90 L50 97 L42 90Z"), kSun);
  drawing->fill(svgPath("M32 56 L18 72 L20 84 L38 77Z M68 56 L82 72 L80 84 L62 77Z"), kCoral);
  drawing->fill(svgPath("M50 6 C66 18 70 38 68 58 L62 80 H38 L32 58 C30 38 34 18 50 6Z"), 0xF4F0FF);
  drawing->fill(svgPath("M50 6 C66 18 70 38 68 58 L62 80 H52 C58 52 58 26 50 6Z"), 0xD9D0F5);
  drawing->fill(svgPath("M50 6 C57 11 62 18 65 27 H35 C38 18 43 11 50 6Z"), kCoral);
  drawing->fill(circle(50, 44, 11), kInk);
  drawing->fill(circle(50, 44, 8), 0x45C8F1);
  glint(drawing, 47, 41, 3);
}

void fish(Drawing* drawing) {
  const Path outline =
      svgPath("M6 50 C18 20 56 18 70 42 L92 26 Q86 50 92 76 L70 58 C56 84 18 82 6 50Z");
  rim(drawing, outline);
  drawing->fill(outline, kTeal);
  drawing->clip(outline);
  drawing->fill(svgPath("M36 18 Q46 50 36 84 L50 84 Q60 50 50 18Z"), 0x7FE3D2);
  drawing->fill(svgPath("M66 20 L96 20 L96 82 L66 82 Q76 50 66 20Z"), 0x0B7F80);
  shade(drawing, 46, 80, 40);
  drawing->unclip();
  drawing->fill(circle(24, 44, 7), kWhite);
  drawing->fill(circle(22.5, 44, 3.8), kInk);
  drawing->stroke(svgPath("M12 58 Q18 62 23 58"), kInk, 3);
}

void flower(Drawing* drawing) {
  const Path outline = petals(50, 50, 24, 17, 6);
  rim(drawing, outline);
  drawing->fill(outline, 0xF779B5);
  drawing->clip(outline);
  drawing->fill(petals(50, 50, 15, 9, 6), 0xFBA8D0);
  drawing->unclip();
  drawing->fill(circle(50, 50, 17), kSun);
  eyes(drawing, 44, 56, 48, 2.8);
  smile(drawing, 50, 53, 5);
}

void torn(Drawing* drawing) {
  const Path outline = svgPath("M14 14 H86 V60 L74 54 L64 66 L52 56 L40 70 L28 60 L14 72Z");
  rim(drawing, outline);
  drawing->fill(outline, 0xD8D2C4);
  drawing->fill(circle(34, 32, 7), 0xB5AD9C);
  drawing->stroke(svgPath("M14 62 L40 40 L56 54 L68 44 L86 58"), 0xB5AD9C, 4);
}

struct Sticker {
  std::string_view name;
  void (*draw)(Drawing*);
};

constexpr Sticker kDrawings[] = {{"ball", ball},     {"star", star}, {"ghost", ghost},
                                 {"rocket", rocket}, {"fish", fish}, {"flower", flower}};

}  // namespace

Image drawSticker(std::string_view name, int side) {
  Drawing drawing(side);
  cairo_translate(drawing.cairo(), 7, 7);
  cairo_scale(drawing.cairo(), 0.86, 0.86);  // the rim needs room
  void (*draw)(Drawing*) = torn;
  for (const Sticker& sticker : kDrawings) {
    if (sticker.name == name) draw = sticker.draw;
  }
  draw(&drawing);
  return drawing.image();
}

}  // namespace sprites::desktop
