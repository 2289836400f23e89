// JSON text in UTF-8 → the same value as canonical text (RFC 8785): the bytes that
// lib/feeds/canonical.js would write, without building a value.
#ifndef SPRITES_BASE_CANONICAL_H_
#define SPRITES_BASE_CANONICAL_H_

#include <cstddef>

namespace base {

/**
 * Writes a text of `length` bytes canonically to `out`, which has room for `length` bytes: no
 * canonical text is longer. Returns the bytes written; 0: JavaScript must be asked, for a text that
 * is not JSON or nests deeper than `depth`, which is at most 64, and for rare cases (canonical.cc).
 * O(length) memory, at most 4 GiB of text.
 */
size_t canonical(const char* text, size_t length, unsigned depth, char* out);

}  // namespace base

#endif  // SPRITES_BASE_CANONICAL_H_
