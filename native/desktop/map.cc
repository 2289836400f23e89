#include "map.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "canvas.h"

namespace sprites::desktop {

namespace {

constexpr int kAround = 44;  // patches around the ring
constexpr int kTube = 20;    // and around the tube
constexpr double kThick = 0.46;
constexpr double kTilt = 0.92;       // radians from the equator up: how far from above it is seen
constexpr uint64_t kMostDots = 900;  // more nodes than these are no dots any more

/** A point of the ring's surface as it is seen: y down. */
struct Seen {
  double x;
  double y;
  double depth;   // towards the eye
  double facing;  // 1: the surface faces the eye, below 0: it faces away
  bool hidden;    // behind the near side of the tube
};

Seen project(double u, double v) {
  const double out = 1 + kThick * std::cos(v);
  const double px = out * std::cos(u);
  const double py = out * std::sin(u);
  const double pz = kThick * std::sin(v);
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

void disc(cairo_t* cairo, double x, double y, double radius) {
  cairo_new_path(cairo);
  cairo_arc(cairo, x, y, radius, 0, kTurn);
  cairo_fill(cairo);
}

/** Adds what is to be seen of a curve to the path; `at` gives its point at 0 to 1. */
template <typename At>
void curve(cairo_t* cairo, int steps, At at) {
  bool drawing = false;
  for (int i = 0; i <= steps; i++) {
    const Seen seen = at(static_cast<double>(i) / steps);
    const bool visible = seen.facing > 0.03 && !seen.hidden;
    if (visible && drawing) cairo_line_to(cairo, seen.x, seen.y);
    if (visible && !drawing) cairo_move_to(cairo, seen.x, seen.y);
    drawing = visible;
  }
}

/** The ring's body, patch by patch from the back to the front. */
void drawBody(Drawing* drawing, bool known) {
  struct Patch {
    int i;
    int j;
    Seen middle;
  };
  const auto point = [](double i, double j) {
    return project(i / kAround * kTurn, j / kTube * kTurn);
  };
  std::vector<Patch> patches;
  for (int i = 0; i < kAround; i++) {
    for (int j = 0; j < kTube; j++) patches.push_back({i, j, point(i + 0.5, j + 0.5)});
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
      const Seen corner = point(i + di, j + dj);
      cairo_line_to(cairo, corner.x, corner.y);
    }
    cairo_close_path(cairo);
    drawing->color(mix(dark, light, std::clamp(middle.facing, 0.0, 1.0)));
    cairo_fill_preserve(cairo);
    cairo_stroke(cairo);
  }
}

}  // namespace

void drawMap(Drawing* drawing, const std::optional<Place>& place, double x, double y, double width,
             double height) {
  const Place shown = place.value_or(Place{0, 0, 6, 12});
  cairo_t* cairo = drawing->cairo();
  cairo_save(cairo);
  const double scale = std::min(width / 3.05, height / 2.55);
  cairo_translate(cairo, x + width / 2, y + height / 2);
  cairo_scale(cairo, scale, scale);
  drawBody(drawing, place.has_value());

  // This desktop's column in front, its row on the part of the tube that is seen best.
  const auto at = [&shown](double column, double row) {
    const double u = (column - shown.column - 0.5) / shown.columns * kTurn + kTurn / 4;
    return project(u, (row - shown.row - 0.5) / shown.rows * kTurn + kTilt);
  };
  // Its columns and rows, as many of them as can be told apart.
  drawing->color(0xB3742A, 0.4);
  cairo_set_line_width(cairo, 0.009);
  cairo_new_path(cairo);
  for (uint64_t i = 0; i < shown.columns; i += std::max(1U, shown.columns / 40)) {
    curve(cairo, 28, [&](double t) { return at(static_cast<double>(i), t * shown.rows); });
  }
  for (uint64_t j = 0; j < shown.rows; j += std::max(1U, shown.rows / 20)) {
    curve(cairo, 64, [&](double t) { return at(t * shown.columns, static_cast<double>(j)); });
  }
  cairo_stroke(cairo);

  if (place) {
    const uint64_t nodes = uint64_t{shown.rows} * shown.columns;
    drawing->color(0x7D4C12);
    for (uint64_t node = 0; nodes <= kMostDots && node < nodes; node++) {
      const uint64_t row = node / shown.columns;
      const uint64_t column = node % shown.columns;
      const Seen seen = at(static_cast<double>(column) + 0.5, static_cast<double>(row) + 0.5);
      const double size = std::clamp(0.7 / std::sqrt(nodes), 0.016, 0.05);
      if (seen.facing > 0.05 && !seen.hidden) {
        disc(cairo, seen.x, seen.y, size * (0.45 + 0.55 * seen.facing));
      }
    }
    // The four it throws to, in the colors of its edges; in a large torus drawn a little apart.
    const double column = shown.column + 0.5;
    const double row = shown.row + 0.5;
    const double reachColumn = std::max(1.0, shown.columns / 16.0);
    const double reachRow = std::max(1.0, shown.rows / 9.0);
    cairo_set_line_width(cairo, 0.035);
    cairo_set_line_cap(cairo, CAIRO_LINE_CAP_ROUND);
    for (const auto& [di, dj] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}}) {
      if ((di != 0 ? shown.columns : shown.rows) < 2) continue;
      drawing->color(di != 0 ? colors::kAcross : colors::kAlong);
      const auto way = [&, di = di, dj = dj](double t) {
        return at(column + di * t * reachColumn, row + dj * t * reachRow);
      };
      cairo_new_path(cairo);
      curve(cairo, 12, way);
      cairo_stroke(cairo);
      const Seen end = way(1);
      if (end.facing > 0 && !end.hidden) disc(cairo, end.x, end.y, 0.055);
    }
    const Seen self = at(column, row);
    drawing->color(0xFFFFFF);
    disc(cairo, self.x, self.y, 0.115);
    drawing->color(colors::kSelf);
    disc(cairo, self.x, self.y, 0.082);
  }
  cairo_restore(cairo);
}

}  // namespace sprites::desktop
