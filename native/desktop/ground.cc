#include "ground.h"

#include <algorithm>

#include "canvas.h"
#include "drawing.h"
#include "map.h"

namespace sprites::desktop {

namespace {

constexpr int kDots = 32;  // pixels between the dots
constexpr double kSeam = 4;
constexpr double kWall = 5;
constexpr int kMapWidth = 150;
constexpr int kMapHeight = 130;
constexpr int kSmall = 360;  // pixels: a window with less is too small for a map
constexpr int kFooter = 70;  // pixels down, for the words
constexpr int kSmallFooter = 28;
constexpr double kWordsShare = 0.46;  // of its width; the rest is for the keys
constexpr char kKeys[] =
    "Drag over an edge to throw. Arrows walk, space hops, Shift with an arrow throws, n next one, "
    "1 to 6 take one, Enter or a double click opens one, Delete or a drag to here puts it away.";

bool samePlace(const std::optional<Place>& a, const std::optional<Place>& b) {
  if (!a || !b) return !a && !b;
  return a->row == b->row && a->column == b->column && a->rows == b->rows &&
         a->columns == b->columns;
}

/** Left and right are one color, up and down the other: on a torus they are the same seam. */
void drawSeams(Drawing* drawing, double height, bool open) {
  cairo_t* cairo = drawing->cairo();
  const double width = drawing->width();
  const double off = (open ? kSeam : kWall) / 2;
  const double dash[] = {14, 10};
  cairo_set_dash(cairo, dash, open ? 2 : 0, 0);  // stitches; where there is no way out, a wall
  cairo_set_line_width(cairo, 2 * off);
  cairo_set_line_cap(cairo, CAIRO_LINE_CAP_BUTT);
  cairo_new_path(cairo);
  for (const double x : {off, width - off}) {
    cairo_move_to(cairo, x, 0);
    cairo_line_to(cairo, x, height);
  }
  drawing->color(open ? colors::kAcross : colors::kSoft);
  cairo_stroke(cairo);
  for (const double y : {off, height - off}) {
    cairo_move_to(cairo, 0, y);
    cairo_line_to(cairo, width, y);
  }
  drawing->color(open ? colors::kAlong : colors::kSoft);
  cairo_stroke(cairo);
  cairo_set_dash(cairo, nullptr, 0, 0);
}

/** How many people there are, large. */
void drawPeople(Drawing* drawing, const View& view, double height) {
  const double width = drawing->width();
  const double middle = width / 2;
  double y = height * 0.03;
  if (view.people) {
    TextStyle large;
    large.size = std::min(height * 0.18, width * 0.2);
    large.bold = true;
    const std::string number = written(*view.people);
    const Drawing::Extent extent = drawing->measure(number, large);
    if (extent.width > width * 0.8) large.size *= width * 0.8 / extent.width;
    drawing->text(number, large, middle, y);
    y += large.size * 1.25;
    TextStyle soft;
    soft.size = 16;
    soft.color = colors::kSoft;
    const bool now = view.state == State::kOnline;
    drawing->text(std::string(*view.people == 1 ? "person" : "people") + " connected " +
                      (now ? "right now" : "when last seen"),
                  soft, middle, y);
  }
}

/** Below the desktop: how it stands, and what the keys do. */
void drawFooter(Drawing* drawing, const View& view, double top) {
  const double width = drawing->width();
  const double height = drawing->height() - top;
  drawing->color(colors::kCard);
  cairo_rectangle(drawing->cairo(), 0, top, width, height);
  cairo_fill(drawing->cairo());
  const bool keys = height >= kFooter && width >= kSmall;
  TextStyle words;
  words.size = height >= kFooter ? 13 : 12;
  words.bold = true;
  words.left = true;
  words.wrap = true;
  words.lines = height >= kFooter ? 4 : 1;
  words.most = std::max(40, static_cast<int>(width * (keys ? kWordsShare : 1)) - 50);
  const double middle = top + height / 2;
  drawing->color(colorOf(view.state));
  cairo_arc(drawing->cairo(), 22, middle, 5, 0, kTurn);
  cairo_fill(drawing->cairo());
  drawing->text(view.words, words, 36, middle - drawing->measure(view.words, words).height / 2.0);
  if (!keys) return;
  TextStyle note;
  note.size = 12;
  note.color = colors::kSoft;
  note.left = true;
  note.wrap = true;
  note.lines = 4;
  note.most = static_cast<int>(width * (1 - kWordsShare)) - 16;
  drawing->text(kKeys, note, width * kWordsShare,
                middle - drawing->measure(kKeys, note).height / 2.0);
}

}  // namespace

bool View::operator==(const View& other) const {
  return state == other.state && words == other.words && people == other.people &&
         samePlace(place, other.place);
}

std::string written(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

uint32_t colorOf(State state) {
  switch (state) {
    case State::kOnline:
      return 0x16A79E;
    case State::kJoining:
    case State::kSuperseded:
      return 0xFFC53D;
    case State::kOffline:
    case State::kLeft:
      break;
  }
  return 0x9A93A8;
}

int footerOf(int height) { return height >= kSmall ? kFooter : std::min(kSmallFooter, height / 4); }

Image drawGround(const View& view, int width, int whole) {
  Drawing drawing(width, whole);
  const int height = whole - footerOf(whole);
  cairo_t* cairo = drawing.cairo();
  drawing.color(colors::kPaper);
  cairo_paint(cairo);
  drawing.color(colors::kGrid);
  for (int y = kDots / 2; y < height; y += kDots) {
    for (int x = kDots / 2; x < width; x += kDots) cairo_rectangle(cairo, x, y, 2, 2);
  }
  cairo_fill(cairo);
  drawPeople(&drawing, view, height);

  if (width >= kSmall && whole >= kSmall) {
    TextStyle note;
    note.size = 12;
    note.color = colors::kSoft;
    const double left = width - kMapWidth - 14;
    const double top = height - kMapHeight - 32;
    drawMap(&drawing, view.place, left, top, kMapWidth, kMapHeight);
    const std::string where = view.place ? "row " + written(view.place->row + uint64_t{1}) +
                                               " of " + written(view.place->rows) + ", column " +
                                               written(view.place->column + uint64_t{1}) + " of " +
                                               written(view.place->columns)
                                         : "somewhere on the torus";
    const double half = drawing.measure(where, note).width / 2.0;
    drawing.text(where, note, std::min(left + kMapWidth / 2.0, width - half - 14), height - 30);
  }
  drawSeams(&drawing, height, view.state == State::kOnline);
  drawFooter(&drawing, view, height);
  return drawing.image();
}

}  // namespace sprites::desktop
