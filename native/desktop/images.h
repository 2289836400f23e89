// Image files to sprites' pictures and back, over SDL_image.
#ifndef SPRITES_DESKTOP_IMAGES_H_
#define SPRITES_DESKTOP_IMAGES_H_

#include <optional>
#include <string>

#include "image.h"

namespace sprites::desktop {

/**
 * The image file as a data URL that fits a throw: made smaller until it does, as PNG where it has
 * see-through parts, else as PNG or JPEG, whichever lets it stay larger.
 *
 * @param why one line when the answer is empty: no such file, no image
 */
std::optional<std::string> pictureOfFile(const std::string& path, std::string* why);

/**
 * The picture of a sprite as an image; nothing where its bytes can't be decoded. Only the decoder
 * its type names is asked, and only for sizes that decodePicture() lets pass.
 */
std::optional<Image> imageOfPicture(const std::string& dataUrl);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_IMAGES_H_
