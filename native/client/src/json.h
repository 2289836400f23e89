// A reader of JSON text for the two things this library reads: the server's answers and sprites.
//
// Structure: none. A value is a slice of the text it was read from; members and elements are
// visited in place, and only strings that are wanted are copied out. Reading an answer scans its
// bytes once for each level it descends (three), which for the few kilobytes of an answer is
// cheaper than a tree, and leaves the sprite's own bytes as they came: they are handed on verbatim.
//
// Rejected: a JSON library. It would be this library's second dependency for some 200 lines.
#ifndef SPRITES_CLIENT_JSON_H_
#define SPRITES_CLIENT_JSON_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sprites::json {

/** How deep a value may nest before it counts as malformed: a sprite's 32 and the envelope. */
constexpr unsigned kMaxDepth = 40;

/** Whether the text is UTF-8 (RFC 3629: no overlong forms, no surrogates). O(length). */
bool isUtf8(std::string_view text);

/**
 * The one value that `text` holds, without the white space around it; nothing when it is not
 * exactly one JSON value (RFC 8259) or nests deeper than kMaxDepth. Does not look at UTF-8.
 */
std::optional<std::string_view> value(std::string_view text);

/** Gets one member: its name, unescaped, and the slice of its value. False ends the visit. */
using MemberVisitor = std::function<bool(const std::string& name, std::string_view value)>;

/** Gets one element's slice. False ends the visit. */
using ElementVisitor = std::function<bool(std::string_view value)>;

/**
 * Visits the members of `object`, a slice of a valid value, in their order.
 * @return false when it is no object, or the visitor said false
 */
bool members(std::string_view object, const MemberVisitor& visit);

/** Visits the elements of `array`, likewise. */
bool elements(std::string_view array, const ElementVisitor& visit);

/** A string's text, escapes resolved; a lone surrogate becomes U+FFFD. Nothing for no string. */
std::optional<std::string> string(std::string_view slice);

/** A number; nothing for no number, and for one too large for a double. */
std::optional<double> number(std::string_view slice);

/** A whole number of 0 up to 2^53-1 written as digits alone. */
std::optional<uint64_t> count(std::string_view slice);

/** `text` as a JSON string, quotes included. Expects UTF-8. */
std::string quote(std::string_view text);

}  // namespace sprites::json

#endif  // SPRITES_CLIENT_JSON_H_
