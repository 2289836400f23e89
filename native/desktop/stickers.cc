#include "stickers.h"

#include <cmath>

#include "canvas.h"

namespace sprites::desktop {

namespace {

constexpr uint32_t kInk = 0x2A2342;
constexpr uint32_t kWhite = 0xFFFFFF;
constexpr uint32_t kSun = 0xFFC53D;
constexpr uint32_t kCoral = 0xFF6B4A;
constexpr uint32_t kTeal = 0x16A79E;

Path circle(double x, double y, double radius) { return Path().circle({x, y}, radius); }

Path starPath(double x, double y, double outer, double inner) {
  Path path;
  for (int i = 0; i < 10; i++) {
    const double radius = i % 2 == 1 ? inner : outer;
    const double turn = kTurn * i / 10 - kTurn / 4;
    path.line({x + std::cos(turn) * radius, y + std::sin(turn) * radius});
  }
  return path.close();
}

Path petals(double x, double y, double out, double radius, int count) {
  Path path;
  for (int i = 0; i < count; i++) {
    const double turn = kTurn * i / count - kTurn / 4;
    path.circle({x + std::cos(turn) * out, y + std::sin(turn) * out}, radius);
  }
  return path.circle({x, y}, out);
}

void rim(Canvas* canvas, const Path& outline) {
  canvas->stroke(outline, rgb(kWhite), 13);
  canvas->fill(outline, rgb(kWhite));
}

/** Everything outside a circle, a little darker: call it clipped. */
void shade(Canvas* canvas, double x, double y, double radius) {
  canvas->fill(Path("M-20 -20 H120 V120 H-20Z").circle({x, y}, radius), rgb(kInk, 0.13),
               Rule::kEvenOdd);
}

void glint(Canvas* canvas, double x, double y, double size) {
  canvas->fill(Path().ellipse({x, y}, size, size * 0.55, -0.6), rgb(kWhite, 0.75));
}

void eyes(Canvas* canvas, double left, double right, double y, double size) {
  for (const double x : {left, right}) {
    canvas->fill(Path().ellipse({x, y}, size, size * 1.25), rgb(kInk));
    canvas->fill(circle(x - size * 0.3, y - size * 0.45, size * 0.36), rgb(kWhite));
  }
}

void smile(Canvas* canvas, double x, double y, double size) {
  canvas->stroke(Path().move({x - size, y}).quad({x, y + size * 1.3}, {x + size, y}), rgb(kInk), 3);
}

void cheeks(Canvas* canvas, double left, double right, double y) {
  for (const double x : {left, right}) canvas->fill(circle(x, y, 4), rgb(kCoral, 0.45));
}

void ball(Canvas* canvas) {
  const Path outline = circle(50, 50, 38);
  rim(canvas, outline);
  canvas->fill(outline, rgb(kCoral));
  canvas->clip(outline);
  canvas->fill(Path("M8 50 Q50 28 92 50 L92 64 Q50 42 8 64Z"), rgb(0xFFF3DC));
  canvas->fill(Path("M8 64 Q50 42 92 64 L92 78 Q50 56 8 78Z"), rgb(kTeal));
  canvas->fill(circle(50, 12, 13), rgb(kSun));
  shade(canvas, 62, 62, 46);
  canvas->unclip();
  glint(canvas, 35, 34, 8);
}

void star(Canvas* canvas) {
  const Path outline = starPath(50, 52, 42, 20);
  rim(canvas, outline);
  canvas->fill(outline, rgb(kSun));
  canvas->clip(outline);
  canvas->fill(Path("M50 52 L50 5 L95 40 L80 100 L50 80Z"), rgb(0xFFB01F));
  canvas->unclip();
  eyes(canvas, 42, 58, 50, 3.6);
  smile(canvas, 50, 57, 6);
  cheeks(canvas, 35, 65, 57);
}

void ghost(Canvas* canvas) {
  const Path outline(
      "M18 86 V46 C18 10 82 10 82 46 V86 Q75 76 68 84 Q61 92 54 82 Q50 77 46 82 Q39 92 32 84 "
      "Q25 76 18 86Z");
  rim(canvas, outline);
  canvas->fill(outline, rgb(0xCFC4FF));
  canvas->clip(outline);
  canvas->fill(Path("M60 10 C82 14 82 40 82 46 V90 H66 C72 60 72 34 60 10Z"), rgb(0xB3A3FB));
  canvas->unclip();
  eyes(canvas, 40, 60, 46, 5.4);
  canvas->fill(Path("M44 60 Q50 56 56 60 Q57 70 50 70 Q43 70 44 60Z"), rgb(kInk));
  cheeks(canvas, 30, 70, 57);
}

void rocket(Canvas* canvas) {
  rim(canvas, Path("M50 6 C66 18 70 38 68 58 L82 72 L80 84 L64 78 L60 82 L58 90 L50 97 L42 90 "
                   "L40 82 L36 78 L20 84 L18 72 L32 58 C30 38 34 18 50 6Z"));
  canvas->fill(Path("M40 80 H60 L58 90 L50 97 L42 90Z"), rgb(kSun));
  canvas->fill(Path("M32 56 L18 72 L20 84 L38 77Z M68 56 L82 72 L80 84 L62 77Z"), rgb(kCoral));
  canvas->fill(Path("M50 6 C66 18 70 38 68 58 L62 80 H38 L32 58 C30 38 34 18 50 6Z"),
               rgb(0xF4F0FF));
  canvas->fill(Path("M50 6 C66 18 70 38 68 58 L62 80 H52 C58 52 58 26 50 6Z"), rgb(0xD9D0F5));
  canvas->fill(Path("M50 6 C57 11 62 18 65 27 H35 C38 18 43 11 50 6Z"), rgb(kCoral));
  canvas->fill(circle(50, 44, 11), rgb(kInk));
  canvas->fill(circle(50, 44, 8), rgb(0x45C8F1));
  glint(canvas, 47, 41, 3);
}

void fish(Canvas* canvas) {
  const Path outline("M6 50 C18 20 56 18 70 42 L92 26 Q86 50 92 76 L70 58 C56 84 18 82 6 50Z");
  rim(canvas, outline);
  canvas->fill(outline, rgb(kTeal));
  canvas->clip(outline);
  canvas->fill(Path("M36 18 Q46 50 36 84 L50 84 Q60 50 50 18Z"), rgb(0x7FE3D2));
  canvas->fill(Path("M66 20 L96 20 L96 82 L66 82 Q76 50 66 20Z"), rgb(0x0B7F80));
  shade(canvas, 46, 80, 40);
  canvas->unclip();
  canvas->fill(circle(24, 44, 7), rgb(kWhite));
  canvas->fill(circle(22.5, 44, 3.8), rgb(kInk));
  canvas->stroke(Path("M12 58 Q18 62 23 58"), rgb(kInk), 3);
}

void flower(Canvas* canvas) {
  const Path outline = petals(50, 50, 24, 17, 6);
  rim(canvas, outline);
  canvas->fill(outline, rgb(0xF779B5));
  canvas->clip(outline);
  canvas->fill(petals(50, 50, 15, 9, 6), rgb(0xFBA8D0));
  canvas->unclip();
  canvas->fill(circle(50, 50, 17), rgb(kSun));
  eyes(canvas, 44, 56, 48, 2.8);
  smile(canvas, 50, 53, 5);
}

void torn(Canvas* canvas) {
  const Path outline("M14 14 H86 V60 L74 54 L64 66 L52 56 L40 70 L28 60 L14 72Z");
  rim(canvas, outline);
  canvas->fill(outline, rgb(0xD8D2C4));
  canvas->fill(circle(34, 32, 7), rgb(0xB5AD9C));
  canvas->stroke(Path("M14 62 L40 40 L56 54 L68 44 L86 58"), rgb(0xB5AD9C), 4);
}

struct Sticker {
  std::string_view name;
  void (*draw)(Canvas*);
};

constexpr Sticker kDrawings[] = {{"ball", ball},     {"star", star}, {"ghost", ghost},
                                 {"rocket", rocket}, {"fish", fish}, {"flower", flower}};

}  // namespace

Image drawSticker(std::string_view name, int side) {
  Canvas canvas(side);
  canvas.shrink(0.86);  // the rim needs room
  void (*draw)(Canvas*) = torn;
  for (const Sticker& drawing : kDrawings) {
    if (drawing.name == name) draw = drawing.draw;
  }
  draw(&canvas);
  return canvas.image();
}

}  // namespace sprites::desktop
