// Image files to sprites' pictures and back, over SDL_image.
#ifndef SPRITES_DESKTOP_IMAGES_H_
#define SPRITES_DESKTOP_IMAGES_H_

#include <sprites/sprite.h>

#include <optional>
#include <string>

#include "image.h"

namespace sprites::desktop {

/**
 * The image file as a data URL that fits a throw: made smaller until it does, as PNG where it has
 * see-through parts, else as PNG or JPEG, whichever lets it stay larger. The data URL was decoded
 * again before it is answered.
 *
 * @param why where the answer is empty: the rest of a sentence that begins with the file's name
 */
std::optional<std::string> pictureOfFile(const std::string& path, std::string* why);

/**
 * The image in a picture that decodePicture() let pass; nothing where its bytes can't be decoded.
 * Only the decoder its type names is asked. An image larger than the picture says is nothing, too:
 * then the decoder has read something else than decodePicture() has.
 */
std::optional<Image> imageOfPicture(const Picture& picture);

/** The image in a data URL; nothing where it is none, or can't be decoded. */
std::optional<Image> imageOfUrl(const std::string& dataUrl);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_IMAGES_H_
