// Pictures in data URLs: taking them apart, and the size an image file says it has.
#ifndef SPRITES_CLIENT_PICTURE_H_
#define SPRITES_CLIENT_PICTURE_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sprites/sprite.h"

namespace sprites {

/** What base64 (RFC 4648) says, with padding or without; nothing where it is none. */
std::optional<std::string> decodeBase64(std::string_view text);

/** Pixels across and down, as the first bytes of a file of that type say; nothing if they don't. */
std::optional<std::pair<unsigned, unsigned>> pictureSize(PictureType type, std::string_view bytes);

}  // namespace sprites

#endif  // SPRITES_CLIENT_PICTURE_H_
