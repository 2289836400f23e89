#include "ground.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "drawing.h"

namespace sprites::desktop {

namespace {

constexpr int kRingPatches = 44;  // patches around the ring
constexpr int kTubePatches = 20;  // patches around the tube
constexpr double kTubeRadius = 0.46;
constexpr double kTilt = 0.92;      // radians: how far above the equator the eye is
constexpr uint64_t kMaxDots = 900;  // with more nodes none has a dot

/** A projected point of the ring's surface: y down. */
struct ProjectedPoint {
  double x;
  double y;
  double depth;   // towards the eye
  double facing;  // 1: the surface faces the eye, below 0: it faces away
  bool isHidden;  // behind the near side of the tube
};

ProjectedPoint project(double u, double v) {
  const double ringDistance = 1 + kTubeRadius * std::cos(v);
  const double px = ringDistance * std::cos(u);
  const double py = ringDistance * std::sin(u);
  const double pz = kTubeRadius * std::sin(v);
  const double facing = std::cos(v) * std::sin(u) * std::cos(kTilt) + std::sin(v) * std::sin(kTilt);
  return {px, py * std::sin(kTilt) - pz * std::cos(kTilt),
          py * std::cos(kTilt) + pz * std::sin(kTilt), facing,
          std::cos(v) < -0.2 && std::sin(u) > 0.2 && facing < 0.35};
}

uint32_t mix(uint32_t from, uint32_t to, double share) {
  uint32_t color = 0;
  for (const int shift : {16, 8, 0}) {
    const double a = from >> shift & 255;
    const double b = to >> shift & 255;
    color |= static_cast<uint32_t>(std::lround(a + (b - a) * share)) << shift;
  }
  return color;
}

void fillDisc(cairo_t* cairo, double x, double y, double radius) {
  cairo_new_path(cairo);
  cairo_arc(cairo, x, y, radius, 0, kTurn);
  cairo_fill(cairo);
}

/** Adds the visible parts of a curve to the path; `pointAt` returns its point at 0 to 1. */
template <typename PointAt>
void addCurve(cairo_t* cairo, int steps, PointAt pointAt) {
  bool drawing = false;
  for (int i = 0; i <= steps; i++) {
    const ProjectedPoint point = pointAt(static_cast<double>(i) / steps);
    const bool visible = point.facing > 0.03 && !point.isHidden;
    if (visible && drawing) cairo_line_to(cairo, point.x, point.y);
    if (visible && !drawing) cairo_move_to(cairo, point.x, point.y);
    drawing = visible;
  }
}

/** Draws the ring's body, patch by patch from the back to the front. */
void drawBody(Drawing* drawing, bool known) {
  struct Patch {
    int i;
    int j;
    ProjectedPoint middle;
  };
  const auto point = [](double i, double j) {
    return project(i / kRingPatches * kTurn, j / kTubePatches * kTurn);
  };
  std::vector<Patch> patches;
  for (int i = 0; i < kRingPatches; i++) {
    for (int j = 0; j < kTubePatches; j++) patches.push_back({i, j, point(i + 0.5, j + 0.5)});
  }
  std::sort(patches.begin(), patches.end(),
            [](const Patch& a, const Patch& b) { return a.middle.depth < b.middle.depth; });
  const uint32_t light = known ? 0xFFE3A3 : 0xEADFCA;
  const uint32_t dark = known ? 0xE0A84C : 0xCFC2A8;
  cairo_t* cairo = drawing->cairo();
  cairo_set_line_width(cairo, 0.012);
  for (const auto& [i, j, middle] : patches) {
    if (middle.facing < -0.15) continue;
    cairo_new_path(cairo);
    for (const auto& [di, dj] : {std::pair{0, 0}, {1, 0}, {1, 1}, {0, 1}}) {
      const ProjectedPoint corner = point(i + di, j + dj);
      cairo_line_to(cairo, corner.x, corner.y);
    }
    cairo_close_path(cairo);
    drawing->setColor(mix(dark, light, std::clamp(middle.facing, 0.0, 1.0)));
    cairo_fill_preserve(cairo);
    cairo_stroke(cairo);
  }
}

constexpr int kMapWidth = 150;
constexpr int kMapHeight = 130;

/** Draws the map into a box; gray and without a desktop if the place is not known. */
void drawMap(Drawing* drawing, const std::optional<Place>& place, double x, double y) {
  const Place torus = place.value_or(Place{0, 0, 6, 12});
  cairo_t* cairo = drawing->cairo();
  cairo_save(cairo);
  const double scale = std::min(kMapWidth / 3.05, kMapHeight / 2.55);
  cairo_translate(cairo, x + kMapWidth / 2.0, y + kMapHeight / 2.0);
  cairo_scale(cairo, scale, scale);
  drawBody(drawing, place.has_value());

  // This desktop's column in front, its row on the part of the tube that is seen best.
  const auto pointAt = [&torus](double column, double row) {
    const double u = (column - torus.column - 0.5) / torus.columns * kTurn + kTurn / 4;
    return project(u, (row - torus.row - 0.5) / torus.rows * kTurn + kTilt);
  };
  // The columns and rows, at most as many as can be told apart.
  drawing->setColor(0xB3742A, 0.4);
  cairo_set_line_width(cairo, 0.009);
  cairo_new_path(cairo);
  for (uint64_t i = 0; i < torus.columns; i += std::max(1U, torus.columns / 40)) {
    addCurve(cairo, 28, [&](double t) { return pointAt(static_cast<double>(i), t * torus.rows); });
  }
  for (uint64_t j = 0; j < torus.rows; j += std::max(1U, torus.rows / 20)) {
    addCurve(cairo, 64,
             [&](double t) { return pointAt(t * torus.columns, static_cast<double>(j)); });
  }
  cairo_stroke(cairo);

  if (place) {
    const uint64_t nodes = uint64_t{torus.rows} * torus.columns;
    drawing->setColor(0x7D4C12);
    for (uint64_t node = 0; nodes <= kMaxDots && node < nodes; node++) {
      const uint64_t row = node / torus.columns;
      const uint64_t column = node % torus.columns;
      const ProjectedPoint point =
          pointAt(static_cast<double>(column) + 0.5, static_cast<double>(row) + 0.5);
      const double size = std::clamp(0.7 / std::sqrt(nodes), 0.016, 0.05);
      if (point.facing > 0.05 && !point.isHidden) {
        fillDisc(cairo, point.x, point.y, size * (0.45 + 0.55 * point.facing));
      }
    }
    // The four neighbors, in the colors of the edges; in a large torus farther off than they are.
    const double column = torus.column + 0.5;
    const double row = torus.row + 0.5;
    const double reachColumn = std::max(1.0, torus.columns / 16.0);
    const double reachRow = std::max(1.0, torus.rows / 9.0);
    cairo_set_line_width(cairo, 0.035);
    cairo_set_line_cap(cairo, CAIRO_LINE_CAP_ROUND);
    for (const auto& [di, dj] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}}) {
      if ((di != 0 ? torus.columns : torus.rows) < 2) continue;
      drawing->setColor(di != 0 ? colors::kAcross : colors::kAlong);
      const auto neighborPath = [&, di = di, dj = dj](double t) {
        return pointAt(column + di * t * reachColumn, row + dj * t * reachRow);
      };
      cairo_new_path(cairo);
      addCurve(cairo, 12, neighborPath);
      cairo_stroke(cairo);
      const ProjectedPoint end = neighborPath(1);
      if (end.facing > 0 && !end.isHidden) fillDisc(cairo, end.x, end.y, 0.055);
    }
    const ProjectedPoint self = pointAt(column, row);
    drawing->setColor(0xFFFFFF);
    fillDisc(cairo, self.x, self.y, 0.115);
    drawing->setColor(colors::kSelf);
    fillDisc(cairo, self.x, self.y, 0.082);
  }
  cairo_restore(cairo);
}

constexpr int kDotDistance = 32;  // pixels between the dots
constexpr double kSeamWidth = 4;
constexpr double kWallWidth = 5;
constexpr int kMapWindowLeast = 360;  // pixels: a window with less is too small for a map
constexpr int kFooter = 70;           // pixels: the height of the footer
constexpr int kSmallFooter = 28;
constexpr double kStateShare = 0.46;  // share of the footer's width; the rest is for the keys
constexpr char kKeys[] =
    "Drag over an edge to throw. Arrows walk, space hops, Shift with an arrow throws, n next one, "
    "1 to 6 take one, Enter or a double click opens one, Delete or a drag to here puts it away.";

bool isSamePlace(const std::optional<Place>& a, const std::optional<Place>& b) {
  if (!a || !b) return !a && !b;
  return a->row == b->row && a->column == b->column && a->rows == b->rows &&
         a->columns == b->columns;
}

/** Draws the seams. Left and right have one color, up and down another: each pair is one seam. */
void drawSeams(Drawing* drawing, double height, bool open) {
  cairo_t* cairo = drawing->cairo();
  const double width = drawing->width();
  const double inset = (open ? kSeamWidth : kWallWidth) / 2;
  const double dash[] = {14, 10};
  cairo_set_dash(cairo, dash, open ? 2 : 0, 0);  // stitches; a wall if sprites can't leave
  cairo_set_line_width(cairo, 2 * inset);
  cairo_set_line_cap(cairo, CAIRO_LINE_CAP_BUTT);
  cairo_new_path(cairo);
  for (const double x : {inset, width - inset}) {
    cairo_move_to(cairo, x, 0);
    cairo_line_to(cairo, x, height);
  }
  drawing->setColor(open ? colors::kAcross : colors::kSoft);
  cairo_stroke(cairo);
  for (const double y : {inset, height - inset}) {
    cairo_move_to(cairo, 0, y);
    cairo_line_to(cairo, width, y);
  }
  drawing->setColor(open ? colors::kAlong : colors::kSoft);
  cairo_stroke(cairo);
  cairo_set_dash(cairo, nullptr, 0, 0);
}

/** Draws the number of people, large. */
void drawPeople(Drawing* drawing, const View& view, double height) {
  const double width = drawing->width();
  const double middle = width / 2;
  double y = height * 0.03;
  if (view.people) {
    TextStyle large;
    large.size = std::min(height * 0.18, width * 0.2);
    large.bold = true;
    const std::string number = withThousands(*view.people);
    const Drawing::Extent extent = drawing->measure(number, large);
    if (extent.width > width * 0.8) large.size *= width * 0.8 / extent.width;
    drawing->drawText(number, large, middle, y);
    y += large.size * 1.25;
    TextStyle soft;
    soft.size = 16;
    soft.color = colors::kSoft;
    const bool isOnline = view.state == State::kOnline;
    drawing->drawText(std::string(*view.people == 1 ? "person" : "people") + " connected " +
                          (isOnline ? "right now" : "when last seen"),
                      soft, middle, y);
  }
}

/** Draws the footer: the state, and what the keys do. */
void drawFooter(Drawing* drawing, const View& view, double top) {
  const double width = drawing->width();
  const double height = drawing->height() - top;
  drawing->setColor(colors::kCard);
  cairo_rectangle(drawing->cairo(), 0, top, width, height);
  cairo_fill(drawing->cairo());
  const bool showsKeys = height >= kFooter && width >= kMapWindowLeast;
  TextStyle stateStyle;
  stateStyle.size = height >= kFooter ? 13 : 12;
  stateStyle.bold = true;
  stateStyle.isLeftAligned = true;
  stateStyle.wraps = true;
  stateStyle.maxLines = height >= kFooter ? 4 : 1;
  stateStyle.maxWidth = std::max(40, static_cast<int>(width * (showsKeys ? kStateShare : 1)) - 50);
  const double middle = top + height / 2;
  drawing->setColor(colorOf(view.state));
  cairo_arc(drawing->cairo(), 22, middle, 5, 0, kTurn);
  cairo_fill(drawing->cairo());
  drawing->drawText(view.stateText, stateStyle, 36,
                    middle - drawing->measure(view.stateText, stateStyle).height / 2.0);
  if (!showsKeys) return;
  TextStyle keysStyle;
  keysStyle.size = 12;
  keysStyle.color = colors::kSoft;
  keysStyle.isLeftAligned = true;
  keysStyle.wraps = true;
  keysStyle.maxLines = 4;
  keysStyle.maxWidth = static_cast<int>(width * (1 - kStateShare)) - 16;
  drawing->drawText(kKeys, keysStyle, width * kStateShare,
                    middle - drawing->measure(kKeys, keysStyle).height / 2.0);
}

}  // namespace

bool View::operator==(const View& other) const {
  return state == other.state && stateText == other.stateText && people == other.people &&
         isSamePlace(place, other.place);
}

std::string withThousands(uint64_t number) {
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

int footerHeight(int height) {
  return height >= kMapWindowLeast ? kFooter : std::min(kSmallFooter, height / 4);
}

Image drawGround(const View& view, int width, int windowHeight) {
  Drawing drawing(width, windowHeight);
  const int height = windowHeight - footerHeight(windowHeight);
  cairo_t* cairo = drawing.cairo();
  drawing.setColor(colors::kPaper);
  cairo_paint(cairo);
  drawing.setColor(colors::kGrid);
  for (int y = kDotDistance / 2; y < height; y += kDotDistance) {
    for (int x = kDotDistance / 2; x < width; x += kDotDistance) cairo_rectangle(cairo, x, y, 2, 2);
  }
  cairo_fill(cairo);
  drawPeople(&drawing, view, height);

  if (width >= kMapWindowLeast && windowHeight >= kMapWindowLeast) {
    TextStyle note;
    note.size = 12;
    note.color = colors::kSoft;
    const double left = width - kMapWidth - 14;
    const double top = height - kMapHeight - 32;
    drawMap(&drawing, view.place, left, top);
    const std::string where = view.place
                                  ? "row " + withThousands(view.place->row + uint64_t{1}) + " of " +
                                        withThousands(view.place->rows) + ", column " +
                                        withThousands(view.place->column + uint64_t{1}) + " of " +
                                        withThousands(view.place->columns)
                                  : "somewhere on the torus";
    const double half = drawing.measure(where, note).width / 2.0;
    drawing.drawText(where, note, std::min(left + kMapWidth / 2.0, width - half - 14), height - 30);
  }
  drawSeams(&drawing, height, view.state == State::kOnline);
  drawFooter(&drawing, view, height);
  return drawing.image();
}

}  // namespace sprites::desktop
