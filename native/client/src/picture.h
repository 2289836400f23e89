// Decodes pictures in data URLs, and reads the size of image files.
#ifndef SPRITES_CLIENT_PICTURE_H_
#define SPRITES_CLIENT_PICTURE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sprites/sprite.h"

namespace sprites {

/** Decodes base64 (RFC 4648), with padding or without; std::nullopt for other text. */
std::optional<std::string> decodeBase64(std::string_view text);

/** Returns width and height in pixels, as a file of that type says; std::nullopt if unreadable. */
std::optional<std::pair<unsigned, unsigned>> pictureSize(PictureType type, std::string_view bytes);

}  // namespace sprites

#endif  // SPRITES_CLIENT_PICTURE_H_
