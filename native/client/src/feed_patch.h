// Applies patches to feeds as text: no value is ever taken apart.
#ifndef SPRITES_CLIENT_FEED_PATCH_H_
#define SPRITES_CLIENT_FEED_PATCH_H_

#include <optional>
#include <string>
#include <string_view>

namespace sprites {

/** How deep a feed's value may nest: an object or array in nothing is depth 1. */
constexpr unsigned kFeedDepth = 64;

/**
 * Applies a JSON Patch (RFC 6902) of add, remove and replace, as servers send it.
 *
 * @param value  canonical JSON (RFC 8785)
 * @param patch  likewise: names and pointers are compared as they are written
 * @return the value after it, canonical again, byte for byte as the server has it. Nothing when the
 *         patch is none, does not fit, or would take too long (see kWorkMost): then the whole value
 *         is to be asked for. O(operations * length).
 */
std::optional<std::string> applyPatch(std::string_view value, std::string_view patch);

}  // namespace sprites

#endif  // SPRITES_CLIENT_FEED_PATCH_H_
