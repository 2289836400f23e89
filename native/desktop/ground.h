// What lies under the sprites: paper with dots, the seams, how many people there are, and the map;
// and below the desktop, where no sprite lies on them, how it stands with the server, and the keys.
// Drawn anew only when one of them changes.
//
// The map is the torus, small: a ring seen from a little above, turned so that this desktop is in
// front. Columns run around the ring, rows around its tube. The same as on the web page.
#ifndef SPRITES_DESKTOP_GROUND_H_
#define SPRITES_DESKTOP_GROUND_H_

#include <sprites/client.h>

#include <cstdint>
#include <optional>
#include <string>

#include "image.h"

namespace sprites::desktop {

/** What the ground says. */
struct View {
  State state = State::kJoining;
  std::string words;               // how it stands, one sentence
  std::optional<uint64_t> people;  // in the torus; nothing: not known yet
  std::optional<Place> place;

  bool operator==(const View& other) const;
  bool operator!=(const View& other) const { return !(*this == other); }
};

/** How many pixels of a window's height are for the words below the desktop. */
int footerOf(int height);

/** The whole ground, opaque, with the words below it. */
Image drawGround(const View& view, int width, int height);

/** A number with its thousands apart: 1,234,567. */
std::string written(uint64_t number);

/** The color that stands for a state: 0xRRGGBB. */
uint32_t colorOf(State state);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_GROUND_H_
