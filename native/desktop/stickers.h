// Draws the six drawn sprites as stickers with a white rim, as on the web page.
#ifndef SPRITES_DESKTOP_STICKERS_H_
#define SPRITES_DESKTOP_STICKERS_H_

#include <string_view>

#include "image.h"

namespace sprites::desktop {

/** Draws one of kDrawnPictures; a torn photograph for any other name. */
Image drawSticker(std::string_view name, int side);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_STICKERS_H_
