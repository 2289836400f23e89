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

/** Deepest nesting: a feed's 64 and the envelope. A deeper value counts as malformed. */
constexpr unsigned kMaxDepth = 72;

/** Returns whether the text is UTF-8 (RFC 3629: no overlong forms, no surrogates). O(length). */
bool isUtf8(std::string_view text);

/**
 * Returns the one value in `text`, without the white space around it; std::nullopt if `text` is not
 * exactly one JSON value (RFC 8259) or nests deeper than `depth`, at most kMaxDepth. Does not check
 * UTF-8.
 */
std::optional<std::string_view> value(std::string_view text, unsigned depth = kMaxDepth);

/** Common base of the walks over the items of an object or an array. */
class Items {
 public:
  /** Returns whether the text was well-formed so far. */
  bool ok() const { return ok_; }

  /** Returns the number of bytes that were read so far. */
  size_t offset() const { return offset_; }

 protected:
  Items(std::string_view text, char open, char close);

  /** Moves to the start of the next item. False at the end, or if the text is malformed. */
  bool step();

  /** Reads the value that begins here. False if the text is malformed. */
  bool readValue(std::string_view* value);

  /** Ends the walk; returns false. */
  bool stop(bool ok);

  std::string_view text_;
  size_t offset_ = 0;

 private:
  char close_;
  bool first_ = true;
  bool hasEnded_ = false;
  bool ok_ = true;
};

/** Walks the members of one object, in their order, without copying. */
class Members : public Items {
 public:
  /** @param object a text that begins with an object, after optional white space */
  explicit Members(std::string_view object);

  /**
   * @param name   the next member's name without its quotes, still escaped
   * @param value  the slice of its value
   * @return false at the end, or if the text is malformed: then ok() is false
   */
  bool next(std::string_view* name, std::string_view* value);
};

/** Walks the elements of one array, in their order, without copying. */
class Elements : public Items {
 public:
  explicit Elements(std::string_view array);
  bool next(std::string_view* value);
};

/** Returns a string's text without its quotes, still escaped; empty if `slice` is no string. */
std::string_view raw(std::string_view slice);

/** Receives one member: its name, unescaped, and the slice of its value. False ends the visit. */
using MemberVisitor = std::function<bool(const std::string& name, std::string_view value)>;

/** Receives one element's slice. False ends the visit. */
using ElementVisitor = std::function<bool(std::string_view value)>;

/**
 * Visits the members of `object`, a slice of a valid value, in their order.
 * @return false if `object` is no object, or the visitor returned false
 */
bool members(std::string_view object, const MemberVisitor& visit);

/** Visits the elements of `array`, as members() does with an object. */
bool elements(std::string_view array, const ElementVisitor& visit);

/** Returns a string's text, unescaped (a lone surrogate as U+FFFD); std::nullopt for no string. */
std::optional<std::string> string(std::string_view slice);

/** Returns a number; std::nullopt also for a number that is too large for a double. */
std::optional<double> number(std::string_view slice);

/** Returns a whole number of 0 up to 2^53-1 that is written as digits alone. */
std::optional<uint64_t> count(std::string_view slice);

/** Returns `text`, UTF-8, as a JSON string with its quotes. */
std::string quote(std::string_view text);

}  // namespace sprites::json

#endif  // SPRITES_CLIENT_JSON_H_
