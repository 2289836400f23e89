// Applies patches to the text of feeds: values are never parsed into trees.
#ifndef SPRITES_CLIENT_FEED_PATCH_H_
#define SPRITES_CLIENT_FEED_PATCH_H_

#include <optional>
#include <string>
#include <string_view>

namespace sprites {

/** Deepest nesting of a feed's value: an outermost object or array has depth 1. */
constexpr unsigned kFeedDepth = 64;

/**
 * Applies a JSON Patch (RFC 6902) of add, remove and replace, as servers send it.
 *
 * @param value  canonical JSON (RFC 8785)
 * @param patch  canonical JSON, too: names and pointers are compared in their escaped form
 * @return the patched value, canonical, byte for byte as the server has it. std::nullopt if the
 *         patch is malformed, does not fit, or would take too long (see kMaxScannedBytes): then
 *         ask for the whole value. O(operations * length).
 */
std::optional<std::string> applyPatch(std::string_view value, std::string_view patch);

}  // namespace sprites

#endif  // SPRITES_CLIENT_FEED_PATCH_H_
