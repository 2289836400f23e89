// JSON text in UTF-8 → the same value as canonical text (RFC 8785): what lib/feeds/canonical.js
// writes of it, byte for byte, without a value in between.
#ifndef SPRITES_BASE_CANONICAL_H_
#define SPRITES_BASE_CANONICAL_H_

#include <cstddef>

namespace base {

/**
 * Writes a text of `length` bytes canonically to `out`, which has room for as many: no canonical
 * text is longer. Returns the bytes written, or 0 where JavaScript is to be asked: for a text that
 * is not JSON, that is nested deeper than `depth`, which is at most 64, and for what is rare
 * (canonical.cc). O(length) memory, at most 4 GiB of text.
 */
size_t canonical(const char* text, size_t length, unsigned depth, char* out);

}  // namespace base

#endif  // SPRITES_BASE_CANONICAL_H_
