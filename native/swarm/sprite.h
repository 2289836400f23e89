// The sprites that this swarm throws: one function writes them and one reads them.
//
//   {"id":"k3x9-0-41-1207","picture":"ball","at":0.5,"speed":[1,0.2],"name":"swarm",
//    "to":"left","t":81672348129,"pad":"xxxx…"}
//
// id: swarm, engine, client, number (counted over all throwers of the engine). `t` is the due time
// of the throw, in nanoseconds of CLOCK_MONOTONIC, which all processes of a host share. By `to` the
// receiver checks the side of the arrival, and by the length that nothing was cut or added.
#ifndef SPRITES_SWARM_SPRITE_H_
#define SPRITES_SWARM_SPRITE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace swarm {

enum class Edge : uint8_t { kLeft, kRight, kUp, kDown };

/** @return left, right, up or down */
std::string_view edgeName(Edge edge);

/** @return the side at which a sprite thrown over `edge` arrives */
std::string_view oppositeName(std::string_view edge);

struct Sprite {
  uint32_t process = 0;
  uint32_t client = 0;
  uint64_t number = 0;
  uint64_t thrownAt = 0;  ///< nanoseconds of CLOCK_MONOTONIC
  Edge edge = Edge::kLeft;
};

/** Upper bound of an unpadded sprite's length, in bytes: from this size on all are padded. */
constexpr size_t kSpriteRoom = 224;

/**
 * Writes a sprite, padded to `size` bytes if it is shorter.
 *
 * @param to buffer of max(size, kSpriteRoom) bytes
 * @return the number of bytes written
 */
size_t writeSprite(const Sprite& sprite, std::string_view swarm, size_t size, char* to);

struct ParsedSprite {
  bool isOurs = false;  ///< whether this swarm threw the sprite: the rest is valid
  std::string_view to;  ///< the edge of the throw
  Sprite sprite;
};

/** Reads a sprite. @param text the JSON object of the sprite */
ParsedSprite readSprite(std::string_view text, std::string_view swarm);

}  // namespace swarm

#endif  // SPRITES_SWARM_SPRITE_H_
