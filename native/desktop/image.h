// Images in memory, and making them smaller.
#ifndef SPRITES_DESKTOP_IMAGE_H_
#define SPRITES_DESKTOP_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sprites::desktop {

/** For what a pointer owns that a library has made: gives it to `end`. */
template <auto end>
struct Ended {
  template <typename Thing>
  void operator()(Thing* thing) const {
    end(thing);
  }
};

/** RGBA, 8 bits each, opacity not multiplied in, row by row without gaps. */
struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;
};

/**
 * The image in another size: each new pixel is the mean of what it covers of the old ones, weighed
 * by their opacity. Exact for making smaller; made larger it has blocks. Both sizes are at least 1.
 */
Image resized(const Image& image, int width, int height);

/** The image at most `side` pixels each way, its shape kept; never larger than it is. */
Image fitted(const Image& image, int side);

/** Whether every pixel is fully opaque. */
bool isOpaque(const Image& image);

/** A picture as a sticker: fitted into a square, with a white rim and round corners. */
Image imageSticker(const Image& image, int side);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_IMAGE_H_
