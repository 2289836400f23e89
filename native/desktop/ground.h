// The ground under the sprites: paper with dots, the seams, the number of people, and the map.
// Below the desktop, never under sprites, is the footer: the state, and the keys. Drawn again only
// when one of them changes.
//
// The map shows the torus: a ring seen from a little above, turned so that this desktop is in
// front. Columns run around the ring, rows around its tube. The same as on the web page.
#ifndef SPRITES_DESKTOP_GROUND_H_
#define SPRITES_DESKTOP_GROUND_H_

#include <sprites/client.h>

#include <cstdint>
#include <optional>
#include <string>

#include "image.h"

namespace sprites::desktop {

/** What the ground shows. */
struct View {
  State state = State::kJoining;
  std::string stateText;           // the state in one sentence
  std::optional<uint64_t> people;  // in the torus; nothing: not known yet
  std::optional<Place> place;

  bool operator==(const View& other) const;
  bool operator!=(const View& other) const { return !(*this == other); }
};

/** Returns the footer's height in a window of that height, in pixels. */
int footerHeight(int height);

/** Draws the whole ground, opaque, with the footer. */
Image drawGround(const View& view, int width, int height);

/** Returns a number with separated thousands: 1,234,567. */
std::string withThousands(uint64_t number);

/** Returns the color of a state: 0xRRGGBB. */
uint32_t colorOf(State state);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_GROUND_H_
