// The torus. (Interface; the drawing and the rules come with the implementation.)
#ifndef SPRITES_TORUS_H_
#define SPRITES_TORUS_H_

#include <cstdint>

namespace sprites {

/** An edge of a desktop, and the neighbor beyond it. `opposite` is the edge a sprite enters by. */
enum class Edge : uint8_t { kLeft = 0, kRight = 1, kUp = 2, kDown = 3 };

constexpr Edge opposite(Edge edge) { return static_cast<Edge>(static_cast<uint8_t>(edge) ^ 1); }

}  // namespace sprites

#endif  // SPRITES_TORUS_H_
