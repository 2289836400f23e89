#include "canvas.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <locale>
#include <sstream>
#include <string>

namespace sprites::desktop {

namespace {

constexpr int kPieces = 16;  // of a curve
constexpr int kLines = 4;    // of a pixel, down
constexpr double kUnits = 100;

Point mix(Point from, Point to, double share) {
  return {from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share};
}

double distance(Point point, Point from, Point to) {
  const double dx = to.x - from.x;
  const double dy = to.y - from.y;
  const double length = dx * dx + dy * dy;
  const double share =
      length > 0
          ? std::clamp(((point.x - from.x) * dx + (point.y - from.y) * dy) / length, 0.0, 1.0)
          : 0;
  return std::hypot(point.x - from.x - share * dx, point.y - from.y - share * dy);
}

}  // namespace

Path::Path(std::string_view notation) {
  std::istringstream text{std::string(notation)};
  text.imbue(std::locale::classic());
  const auto number = [&text] {
    double value = 0;
    text >> value;
    return value;
  };
  const auto point = [&number] {
    const double x = number();
    return Point{x, number()};
  };
  Point at;
  for (char command = 0; text >> command;) {
    switch (command) {
      case 'M':
        move(at = point());
        break;
      case 'L':
        line(at = point());
        break;
      case 'H':
        line(at = {number(), at.y});
        break;
      case 'V':
        line(at = {at.x, number()});
        break;
      case 'Q': {
        const Point control = point();
        quad(control, at = point());
        break;
      }
      case 'C': {
        const Point first = point();
        const Point second = point();
        cubic(first, second, at = point());
        break;
      }
      case 'Z':
        close();
        break;
      default:
        std::abort();  // a mistake in this program's own tables
    }
  }
}

Path& Path::move(Point to) {
  lines_.push_back({to});
  return *this;
}

Path& Path::line(Point to) {
  if (lines_.empty()) lines_.emplace_back();
  lines_.back().push_back(to);
  return *this;
}

Path& Path::quad(Point control, Point to) {
  const Point from = lines_.back().back();
  for (int i = 1; i <= kPieces; i++) {
    const double share = static_cast<double>(i) / kPieces;
    line(mix(mix(from, control, share), mix(control, to, share), share));
  }
  return *this;
}

Path& Path::cubic(Point first, Point second, Point to) {
  const Point from = lines_.back().back();
  for (int i = 1; i <= kPieces; i++) {
    const double share = static_cast<double>(i) / kPieces;
    const Point middle = mix(first, second, share);
    line(mix(mix(mix(from, first, share), middle, share),
             mix(middle, mix(second, to, share), share), share));
  }
  return *this;
}

Path& Path::ellipse(Point middle, double radiusX, double radiusY, double turn) {
  lines_.emplace_back();
  for (int i = 0; i <= 4 * kPieces; i++) {
    const double angle = kTurn * i / (4 * kPieces);
    const double x = radiusX * std::cos(angle);
    const double y = radiusY * std::sin(angle);
    line({middle.x + x * std::cos(turn) - y * std::sin(turn),
          middle.y + x * std::sin(turn) + y * std::cos(turn)});
  }
  return *this;
}

Path& Path::close() {
  if (!lines_.empty() && !lines_.back().empty()) line(lines_.back().front());
  return *this;
}

Color rgb(uint32_t hex, double alpha) {
  const auto part = [hex](int shift) { return static_cast<double>(hex >> shift & 255) / 255; };
  return {part(16), part(8), part(0), alpha};
}

Canvas::Canvas(int side)
    : side_(side),
      image_(static_cast<size_t>(side) * static_cast<size_t>(side), Color{0, 0, 0, 0}) {}

Point Canvas::place(Point point) const {
  const double unit = side_ / kUnits;
  return {(kUnits / 2 + (point.x - kUnits / 2) * scale_) * unit,
          (kUnits / 2 + (point.y - kUnits / 2) * scale_) * unit};
}

Canvas::Mask Canvas::fillMask(const Path& path, Rule rule) const {
  struct Crossing {
    double x;
    int way;
  };
  std::vector<std::pair<Point, Point>> sides;
  for (const auto& points : path.lines()) {
    for (size_t i = 0; i < points.size(); i++) {
      sides.emplace_back(place(points[i]), place(points[(i + 1) % points.size()]));
    }
  }
  Mask mask(image_.size(), 0);
  std::vector<Crossing> crossings;
  for (int row = 0; row < side_ * kLines; row++) {
    const double y = (row + 0.5) / kLines;
    crossings.clear();
    for (const auto& [from, to] : sides) {
      if ((from.y <= y) == (to.y <= y)) continue;
      const double x = from.x + (to.x - from.x) * (y - from.y) / (to.y - from.y);
      crossings.push_back({x, from.y <= y ? 1 : -1});
    }
    std::sort(crossings.begin(), crossings.end(),
              [](const Crossing& a, const Crossing& b) { return a.x < b.x; });
    int winding = 0;
    for (size_t i = 0; i + 1 < crossings.size(); i++) {
      winding += crossings[i].way;
      if (rule == Rule::kNonZero ? winding == 0 : i % 2 == 1) continue;
      const double left = std::clamp(crossings[i].x, 0.0, static_cast<double>(side_));
      const double right = std::clamp(crossings[i + 1].x, 0.0, static_cast<double>(side_));
      for (int column = static_cast<int>(left); column < side_ && column < right; column++) {
        const double covered = std::min(right, column + 1.0) - std::max(left, column + 0.0);
        mask[at(column, row / kLines)] += covered / kLines;
      }
    }
  }
  return mask;
}

void Canvas::paint(const Mask& mask, Color color) {
  for (size_t i = 0; i < image_.size(); i++) {
    double alpha = std::min(mask[i], 1.0) * color.alpha;
    if (!clip_.empty()) alpha *= std::min(clip_[i], 1.0);
    if (alpha <= 0) continue;
    Color& pixel = image_[i];
    pixel.red = color.red * alpha + pixel.red * (1 - alpha);
    pixel.green = color.green * alpha + pixel.green * (1 - alpha);
    pixel.blue = color.blue * alpha + pixel.blue * (1 - alpha);
    pixel.alpha = alpha + pixel.alpha * (1 - alpha);
  }
}

void Canvas::fill(const Path& path, Color color, Rule rule) { paint(fillMask(path, rule), color); }

void Canvas::stroke(const Path& path, Color color, double width) {
  const double reach = width / 2 * scale_ * side_ / kUnits;
  Mask mask(image_.size(), 0);
  for (const auto& points : path.lines()) {
    for (size_t i = 0; i + 1 < points.size(); i++) {
      const Point from = place(points[i]);
      const Point to = place(points[i + 1]);
      const auto bound = [this](double value) {
        return std::clamp(static_cast<int>(value), 0, side_);
      };
      const int bottom = bound(std::max(from.y, to.y) + reach + 2);
      const int right = bound(std::max(from.x, to.x) + reach + 2);
      for (int y = bound(std::min(from.y, to.y) - reach - 1); y < bottom; y++) {
        for (int x = bound(std::min(from.x, to.x) - reach - 1); x < right; x++) {
          const double off = distance({x + 0.5, y + 0.5}, from, to);
          double& covered = mask[at(x, y)];
          covered = std::max(covered, std::clamp(reach - off + 0.5, 0.0, 1.0));
        }
      }
    }
  }
  paint(mask, color);
}

void Canvas::clip(const Path& path) { clip_ = fillMask(path, Rule::kNonZero); }

Image Canvas::image() const {
  Image image{side_, side_, {}};
  std::vector<uint8_t>& bytes = image.pixels;
  bytes.reserve(image_.size() * 4);
  const auto byte = [](double value) {
    return static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 1.0) * 255));
  };
  for (const Color& pixel : image_) {
    const double whole = pixel.alpha > 0 ? pixel.alpha : 1;
    bytes.push_back(byte(pixel.red / whole));
    bytes.push_back(byte(pixel.green / whole));
    bytes.push_back(byte(pixel.blue / whole));
    bytes.push_back(byte(pixel.alpha));
  }
  return image;
}

}  // namespace sprites::desktop
