// A reader of JSON text, for this library (the server's answers, sprites) and for the load
// generator in native/swarm.
//
// Structure: none. A value is a slice of the text it was read from; members and elements are
// visited in place, and only strings that are wanted are copied out. Reading an answer scans its
// bytes once for each level it descends (three), which for the few kilobytes of an answer is
// cheaper than a tree, and leaves the sprite's own bytes as they came: they are handed on verbatim.
//
// Rejected: a JSON library. It would be this library's second dependency for some 200 lines.
#ifndef SPRITES_CLIENT_JSON_H_
#define SPRITES_CLIENT_JSON_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sprites::json {

/** How deep a value may nest before it counts as malformed: a feed's 64 and the envelope. */
constexpr unsigned kMaxDepth = 72;

/** Whether the text is UTF-8 (RFC 3629: no overlong forms, no surrogates). O(length). */
bool isUtf8(std::string_view text);

/**
 * The one value that `text` holds, without the white space around it; nothing when it is not
 * exactly one JSON value (RFC 8259) or nests deeper than `depth`, at most kMaxDepth. Does not look
 * at UTF-8.
 */
std::optional<std::string_view> value(std::string_view text, unsigned depth = kMaxDepth);

/** What walks the items of one object or array have in common. */
class Items {
 public:
  /** Whether the text was well-formed as far as it was walked. */
  bool ok() const { return ok_; }

 protected:
  Items(std::string_view text, char open, char close);

  /** Goes to where the next item begins. False at the end, or where the text is broken. */
  bool step();

  /** Takes the value that begins here. False where the text is broken. */
  bool take(std::string_view* value);

  /** Ends the walk; returns false. */
  bool stop(bool ok);

  std::string_view text_;
  size_t at_ = 0;

 private:
  char close_;
  bool first_ = true;
  bool over_ = false;
  bool ok_ = true;
};

/** Walks the members of one object, in their order; nothing is copied. */
class Members : public Items {
 public:
  /** @param object a text that begins with an object, white space before it or not */
  explicit Members(std::string_view object);

  /**
   * @param name   the next member's name as it is written, without its quotes: still escaped
   * @param value  the slice of its value
   * @return false at the end, or where the text is broken: then ok() is false
   */
  bool next(std::string_view* name, std::string_view* value);
};

/** Walks the elements of one array, likewise. */
class Elements : public Items {
 public:
  explicit Elements(std::string_view array);
  bool next(std::string_view* value);
};

/** A string as it is written, without its quotes: still escaped. Empty for no string. */
std::string_view raw(std::string_view slice);

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
