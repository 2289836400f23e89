// The sprites this swarm throws. One function builds them and one reads them back.
//
//   {"id":"k3x9-0-41-1207","picture":"ball","at":0.5,"speed":[1,0.2],"name":"swarm",
//    "to":"left","t":81672348129,"pad":"xxxx…"}
//
// id: swarm, engine, client, number (counted over all throwers of the engine). `t` is the moment
// the throw was meant for, in nanoseconds of CLOCK_MONOTONIC, which all processes of a host share.
// `to` lets the receiver check the side it comes in by, and the length that nothing was cut or
// added.
#ifndef SPRITES_SWARM_SPRITE_H_
#define SPRITES_SWARM_SPRITE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace swarm {

enum class Edge : uint8_t { kLeft, kRight, kUp, kDown };

/** @return left, right, up or down */
std::string_view edgeName(Edge edge);

/** @return the name of the side by which a sprite thrown over `edge` comes in */
std::string_view oppositeName(std::string_view edge);

struct Sprite {
  uint32_t process = 0;
  uint32_t client = 0;
  uint64_t number = 0;
  uint64_t thrownAt = 0;  ///< nanoseconds of CLOCK_MONOTONIC
  Edge edge = Edge::kLeft;
};

/** The smallest size a sprite can be padded to; a smaller --size is not padded. */
constexpr size_t kSpriteRoom = 224;

/**
 * Writes a sprite of exactly `size` bytes, or as many as it needs without padding.
 *
 * @param to room for max(size, kSpriteRoom) bytes
 * @return the bytes written
 */
size_t writeSprite(const Sprite& sprite, std::string_view swarm, size_t size, char* to);

struct ReadSprite {
  bool ours = false;    ///< thrown by this swarm: the rest is filled
  std::string_view to;  ///< the edge it was thrown over
  Sprite sprite;
};

/** @param text the object as it arrived */
ReadSprite readSprite(std::string_view text, std::string_view swarm);

}  // namespace swarm

#endif  // SPRITES_SWARM_SPRITE_H_
