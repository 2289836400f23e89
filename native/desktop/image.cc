#include "image.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "drawing.h"

namespace sprites::desktop {

namespace {

const uint8_t* pixelOf(const Image& image, int x, int y) {
  return &image.pixels[static_cast<size_t>(y * image.width + x) * 4];
}

/** Returns the mean over an area of the image, as straight RGBA. */
std::array<double, 4> meanOf(const Image& image, double left, double top, double right,
                             double bottom) {
  std::array<double, 4> sum{};
  double area = 0;
  for (int y = static_cast<int>(top); y < image.height && y < bottom; y++) {
    const double coveredHeight = std::min(bottom, y + 1.0) - std::max(top, y + 0.0);
    for (int x = static_cast<int>(left); x < image.width && x < right; x++) {
      const double weight = coveredHeight * (std::min(right, x + 1.0) - std::max(left, x + 0.0));
      const uint8_t* pixel = pixelOf(image, x, y);
      for (size_t i = 0; i < 3; i++) sum[i] += weight * pixel[i] * pixel[3];
      sum[3] += weight * pixel[3];
      area += weight;
    }
  }
  if (sum[3] <= 0 || area <= 0) return {};
  for (size_t i = 0; i < 3; i++) sum[i] /= sum[3];
  sum[3] /= area;
  return sum;
}

}  // namespace

Image resized(const Image& image, int width, int height) {
  Image out{width, height, {}};
  out.pixels.reserve(static_cast<size_t>(width) * static_cast<size_t>(height) * 4);
  const double stepX = static_cast<double>(image.width) / width;
  const double stepY = static_cast<double>(image.height) / height;
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      const auto mean = meanOf(image, x * stepX, y * stepY, (x + 1) * stepX, (y + 1) * stepY);
      for (const double value : mean)
        out.pixels.push_back(static_cast<uint8_t>(std::lround(value)));
    }
  }
  return out;
}

Image fitted(const Image& image, int side) {
  const double scale =
      std::min(1.0, static_cast<double>(side) / std::max(image.width, image.height));
  const auto length = [scale](int old) {
    return std::max(1, static_cast<int>(std::lround(old * scale)));
  };
  return resized(image, length(image.width), length(image.height));
}

bool isOpaque(const Image& image) {
  for (size_t i = 3; i < image.pixels.size(); i += 4) {
    if (image.pixels[i] != 255) return false;
  }
  return true;
}

Image imageSticker(const Image& image, int side) {
  const double rim = side * 0.07;
  const double scale = (side - 2 * rim) / std::max(image.width, image.height);
  const int width = std::max(1, static_cast<int>(image.width * scale));
  const int height = std::max(1, static_cast<int>(image.height * scale));
  const int left = (side - width) / 2;
  const int top = (side - height) / 2;

  const double unit = 100.0 / side;
  const double x = left * unit;
  const double y = top * unit;
  const auto frame = [=](cairo_t* cairo) {
    cairo_rectangle(cairo, x, y, width * unit, height * unit);
  };
  Drawing drawing(side);
  drawing.fill(frame, 0xFFFFFF);
  drawing.stroke(frame, 0xFFFFFF, 12);
  drawing.drawImage(resized(image, width, height), x, y, unit);
  return drawing.image();
}

}  // namespace sprites::desktop
