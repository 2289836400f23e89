// Images in memory, making them smaller, and stickers.
#ifndef SPRITES_DESKTOP_IMAGE_H_
#define SPRITES_DESKTOP_IMAGE_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace sprites::desktop {

/** Deleter for a pointer to a library's object: calls `destroy`. */
template <auto destroy>
struct Deleter {
  template <typename Thing>
  void operator()(Thing* thing) const {
    destroy(thing);
  }
};

/** RGBA, 8 bits each, opacity not multiplied in, row by row without gaps. */
struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;
};

/**
 * Returns the image in another size: each new pixel is the mean of the old pixels that it covers,
 * weighted by their opacity. Exact for a smaller size; a larger image has blocks. Both sizes are at
 * least 1.
 */
Image resized(const Image& image, int width, int height);

/** Returns the image at most `side` pixels each way, in its proportions; never enlarged. */
Image fitted(const Image& image, int side);

/** Returns whether every pixel is fully opaque. */
bool isOpaque(const Image& image);

/** Returns a picture as a sticker: fitted into a square, with a white rim and round corners. */
Image imageSticker(const Image& image, int side);

/** Draws one of kDrawnPictures as a sticker; a torn photograph for any other name. */
Image drawSticker(std::string_view name, int side);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_IMAGE_H_
