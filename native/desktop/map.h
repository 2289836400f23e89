// The torus as a small drawn map: a ring seen from a little above, turned so that this desktop is
// in front. Columns run around the ring, rows around its tube. The same as on the web page.
#ifndef SPRITES_DESKTOP_MAP_H_
#define SPRITES_DESKTOP_MAP_H_

#include <sprites/client.h>

#include <optional>

#include "drawing.h"

namespace sprites::desktop {

/** Draws the map into a box of the drawing; gray, without a desktop, where the place is not known.
 */
void drawMap(Drawing* drawing, const std::optional<Place>& place, double x, double y, double width,
             double height);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_MAP_H_
