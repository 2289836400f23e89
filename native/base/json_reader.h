// The check of every sprite: it must be one JSON object (RFC 8259) in UTF-8 (RFC 3629), nested at
// most to a bound. It validates and stores nothing.
#ifndef SPRITES_BASE_JSON_READER_H_
#define SPRITES_BASE_JSON_READER_H_

#include <cstddef>

namespace base {

/** Deepest nesting of a sprite: the object itself has depth 1. */
constexpr unsigned kSpriteDepth = 32;

/**
 * Returns whether the `length` bytes at `text` are exactly one JSON object, with or without white
 * space around it. Accepts only what `JSON.parse` accepts, up to `depth`. Refuses a byte order
 * mark, overlong or surrogate UTF-8, and trailing bytes. O(length), no allocation. `depth` counts
 * objects and arrays; above 64 it counts as 64.
 */
bool isJsonObject(const char* text, size_t length, unsigned depth = kSpriteDepth);

}  // namespace base

#endif  // SPRITES_BASE_JSON_READER_H_
