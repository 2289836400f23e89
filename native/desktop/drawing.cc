#include "drawing.h"

#include <algorithm>
#include <locale>
#include <sstream>
#include <stdexcept>

#include "desktop.h"

namespace sprites::desktop {

namespace {

constexpr int kMaxLabel = 160;  // pixels; as on the web page
constexpr int kLabelHeight = 20;
constexpr int kLabelRim = 8;
constexpr int kToastRim = 14;

}  // namespace

Path svgPath(const char* notation) {
  return [notation](cairo_t* cairo) {
    std::istringstream text(notation);
    text.imbue(std::locale::classic());
    double x = 0;
    double y = 0;
    double to[6] = {};
    for (char command = 0; text >> command; cairo_get_current_point(cairo, &x, &y)) {
      const bool one = command == 'H' || command == 'V';
      const int count = command == 'C' ? 6 : command == 'Q' ? 4 : command == 'Z' ? 0 : one ? 1 : 2;
      for (int i = 0; i < count; i++) text >> to[i];
      if (command == 'M') cairo_move_to(cairo, to[0], to[1]);
      if (command == 'L') cairo_line_to(cairo, to[0], to[1]);
      if (command == 'H') cairo_line_to(cairo, to[0], y);
      if (command == 'V') cairo_line_to(cairo, x, to[0]);
      if (command == 'C') cairo_curve_to(cairo, to[0], to[1], to[2], to[3], to[4], to[5]);
      if (command == 'Q') {
        cairo_curve_to(cairo, (x + 2 * to[0]) / 3, (y + 2 * to[1]) / 3, (to[2] + 2 * to[0]) / 3,
                       (to[3] + 2 * to[1]) / 3, to[2], to[3]);
      }
      if (command == 'Z') cairo_close_path(cairo);
    }
  };
}

Path ellipse(double x, double y, double radiusX, double radiusY, double turn) {
  return [=](cairo_t* cairo) {
    cairo_save(cairo);
    cairo_translate(cairo, x, y);
    cairo_rotate(cairo, turn);
    cairo_scale(cairo, radiusX, radiusY);
    cairo_new_sub_path(cairo);
    cairo_arc(cairo, 0, 0, 1, 0, kTurn);
    cairo_close_path(cairo);
    cairo_restore(cairo);
  };
}

Path circle(double x, double y, double radius) { return ellipse(x, y, radius, radius); }

Drawing::Drawing(int width, int height)
    : surface_(cairo_image_surface_create(CAIRO_FORMAT_ARGB32, width, height)),
      cairo_(cairo_create(surface_.get())) {
  if (cairo_status(cairo_.get()) != CAIRO_STATUS_SUCCESS) {
    throw std::runtime_error("no memory for a drawing");
  }
}

Drawing::Drawing(int side) : Drawing(side, side) {
  cairo_scale(cairo(), side / 100.0, side / 100.0);
  cairo_set_line_cap(cairo(), CAIRO_LINE_CAP_ROUND);
  cairo_set_line_join(cairo(), CAIRO_LINE_JOIN_ROUND);
}

void Drawing::setColor(uint32_t hex, double alpha) {
  const auto part = [hex](int shift) { return static_cast<double>(hex >> shift & 255) / 255; };
  cairo_set_source_rgba(cairo(), part(16), part(8), part(0), alpha);
}

void Drawing::setPath(const Path& path) {
  cairo_new_path(cairo());
  path(cairo());
}

void Drawing::fill(const Path& path, uint32_t hex, double alpha) {
  setPath(path);
  setColor(hex, alpha);
  cairo_fill(cairo());
}

void Drawing::stroke(const Path& path, uint32_t hex, double width, double alpha) {
  setPath(path);
  setColor(hex, alpha);
  cairo_set_line_width(cairo(), width);
  cairo_stroke(cairo());
}

void Drawing::clip(const Path& path) {
  setPath(path);
  cairo_clip(cairo());
}

void Drawing::fillPill(double x, double y, double width, double height) {
  fillCard(x, y, width, height, std::min(width, height) / 2);
}

void Drawing::fillCard(double x, double y, double width, double height, double radius) {
  cairo_new_path(cairo());
  cairo_arc(cairo(), x + width - radius, y + radius, radius, -kTurn / 4, 0);
  cairo_arc(cairo(), x + width - radius, y + height - radius, radius, 0, kTurn / 4);
  cairo_arc(cairo(), x + radius, y + height - radius, radius, kTurn / 4, kTurn / 2);
  cairo_arc(cairo(), x + radius, y + radius, radius, kTurn / 2, kTurn * 0.75);
  cairo_close_path(cairo());
  cairo_fill(cairo());
}

void Drawing::drawImage(const Image& image, double x, double y, double scale) {
  Drawing source(image.width, image.height);
  cairo_surface_t* surface = source.surface_.get();
  cairo_surface_flush(surface);
  unsigned char* data = cairo_image_surface_get_data(surface);
  const int stride = cairo_image_surface_get_stride(surface);
  const uint8_t* pixel = image.pixels.data();
  for (int down = 0; down < image.height; down++) {
    auto* row = reinterpret_cast<uint32_t*>(data + static_cast<ptrdiff_t>(down) * stride);
    for (int across = 0; across < image.width; across++, pixel += 4) {
      const uint32_t alpha = pixel[3];
      const auto part = [&](int i) { return (pixel[i] * alpha + 127) / 255; };
      row[across] = alpha << 24 | part(0) << 16 | part(1) << 8 | part(2);
    }
  }
  cairo_surface_mark_dirty(surface);
  cairo_save(cairo());
  cairo_translate(cairo(), x, y);
  cairo_scale(cairo(), scale, scale);
  cairo_set_source_surface(cairo(), surface, 0, 0);
  cairo_pattern_set_filter(cairo_get_source(cairo()), CAIRO_FILTER_BEST);
  cairo_pattern_set_extend(cairo_get_source(cairo()), CAIRO_EXTEND_PAD);
  cairo_rectangle(cairo(), 0, 0, image.width, image.height);
  cairo_fill(cairo());
  cairo_restore(cairo());
}

Drawing::Layout Drawing::layout(const std::string& text, const TextStyle& style) const {
  Layout layout(pango_cairo_create_layout(cairo()));
  PangoFontDescription* font = pango_font_description_from_string("Nunito, Quicksand, Sans");
  pango_font_description_set_absolute_size(font, style.size * PANGO_SCALE);
  pango_font_description_set_weight(font, style.bold ? PANGO_WEIGHT_SEMIBOLD : PANGO_WEIGHT_NORMAL);
  pango_layout_set_font_description(layout.get(), font);
  pango_font_description_free(font);
  const std::string safe = printable(text);
  pango_layout_set_text(layout.get(), safe.data(), static_cast<int>(safe.size()));
  pango_layout_set_alignment(layout.get(),
                             style.isLeftAligned ? PANGO_ALIGN_LEFT : PANGO_ALIGN_CENTER);
  if (style.maxWidth > 0) {
    int width = 0;
    pango_layout_get_pixel_size(layout.get(), &width, nullptr);
    if (width > style.maxWidth) pango_layout_set_width(layout.get(), style.maxWidth * PANGO_SCALE);
    if (style.wraps) {
      pango_layout_set_wrap(layout.get(), PANGO_WRAP_WORD_CHAR);
      if (style.maxLines > 0) {
        pango_layout_set_height(layout.get(), -style.maxLines);
        pango_layout_set_ellipsize(layout.get(), PANGO_ELLIPSIZE_END);
      }
    } else {
      pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
      pango_layout_set_ellipsize(layout.get(), PANGO_ELLIPSIZE_END);
    }
  }
  return layout;
}

Drawing::Extent Drawing::measure(const std::string& text, const TextStyle& style) const {
  Extent extent;
  pango_layout_get_pixel_size(layout(text, style).get(), &extent.width, &extent.height);
  return extent;
}

void Drawing::drawText(const std::string& text, const TextStyle& style, double x, double y) {
  const Layout layout = this->layout(text, style);
  PangoRectangle logical{};
  pango_layout_get_pixel_extents(layout.get(), nullptr, &logical);
  setColor(style.color);
  cairo_move_to(cairo(), x - logical.x - (style.isLeftAligned ? 0 : logical.width / 2.0), y);
  pango_cairo_show_layout(cairo(), layout.get());
}

Image Drawing::image() const {
  cairo_surface_flush(surface_.get());
  Image image{width(), height(), {}};
  image.pixels.reserve(static_cast<size_t>(image.width) * static_cast<size_t>(image.height) * 4);
  const unsigned char* data = cairo_image_surface_get_data(surface_.get());
  const int stride = cairo_image_surface_get_stride(surface_.get());
  for (int y = 0; y < image.height; y++) {
    // Each pixel is a number of 32 bits in the machine's byte order.
    const auto* row = reinterpret_cast<const uint32_t*>(data + static_cast<ptrdiff_t>(y) * stride);
    for (int x = 0; x < image.width; x++) {
      const uint32_t pixel = row[x];
      const uint32_t alpha = pixel >> 24;
      for (const int shift : {16, 8, 0}) {
        const uint32_t part = pixel >> shift & 255;
        image.pixels.push_back(
            static_cast<uint8_t>(alpha == 0 ? 0 : std::min(255U, part * 255 / alpha)));
      }
      image.pixels.push_back(static_cast<uint8_t>(alpha));
    }
  }
  return image;
}

Image drawLabel(const std::string& name, uint32_t paper, uint32_t ink) {
  TextStyle style;
  style.size = 12;
  style.bold = true;
  style.color = ink;
  style.maxWidth = kMaxLabel - 2 * kLabelRim;
  const Drawing::Extent extent = Drawing(1, 1).measure(name, style);
  Drawing drawing(std::clamp(extent.width, 1, style.maxWidth) + 2 * kLabelRim, kLabelHeight);
  drawing.setColor(paper);
  drawing.fillPill(0, 0, drawing.width(), drawing.height());
  drawing.drawText(name, style, drawing.width() / 2.0, (kLabelHeight - extent.height) / 2.0);
  return drawing.image();
}

Image drawToast(const std::string& message, int maxWidth) {
  TextStyle style;
  style.size = 14;
  style.color = colors::kCard;
  style.maxWidth = std::max(40, maxWidth - 2 * kToastRim);
  style.wraps = true;
  const Drawing::Extent extent = Drawing(1, 1).measure(message, style);
  Drawing drawing(std::min(extent.width, style.maxWidth) + 2 * kToastRim, extent.height + 14);
  drawing.setColor(colors::kInk);
  const int round = std::min({drawing.width(), drawing.height(), 32});
  drawing.fillCard(0, 0, drawing.width(), drawing.height(), round / 2.0);
  drawing.drawText(message, style, drawing.width() / 2.0, 7);
  return drawing.image();
}

}  // namespace sprites::desktop
