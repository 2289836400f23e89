// The check every sprite passes before a client gets it: one JSON object (RFC 8259) in UTF-8
// (RFC 3629), nested no deeper than a bound. It validates and stores nothing.
#ifndef SPRITES_BASE_JSON_READER_H_
#define SPRITES_BASE_JSON_READER_H_

#include <cstddef>
#include <cstdint>

namespace base {

/** How deep a sprite may nest: the object itself is depth 1. */
constexpr unsigned kSpriteDepth = 32;

/**
 * Tells whether `length` bytes at `text` are exactly one JSON object, white space around it
 * allowed. Accepts what `JSON.parse` accepts and nothing else, with the depth bound on top; a byte
 * order mark, overlong or surrogate UTF-8 and trailing bytes are refused. O(length), no allocation.
 * `depth` counts objects and arrays alike; above 64 it counts as 64.
 */
bool isJsonObject(const char* text, size_t length, unsigned depth = kSpriteDepth);

}  // namespace base

#endif  // SPRITES_BASE_JSON_READER_H_
