// The reader of a player's input: one flat JSON object of numbers, with the names and ranges of the
// game. It stores only the values.
#ifndef SPRITES_INPUT_READER_H_
#define SPRITES_INPUT_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace server {

/** Most fields of a game. */
constexpr size_t kInputFields = 16;

/** Largest input, in bytes. */
constexpr uint32_t kInputBytes = 512;

/** One number that a game gets from each player. */
struct InputField {
  std::string name;  // letters, digits and _
  double min;
  double max;
  double start;  // value before the first input
  bool isInteger;
};

/** The values of an input. */
struct InputValues {
  uint32_t namedFields = 0;  // bit i: field i was named
  double values[kInputFields];
};

/**
 * Reads an input. Returns false where it is anything but one JSON object (RFC 8259) whose members
 * are numbers, each named once, of `fields` and in their ranges; names are written without escapes.
 * One pass, no allocation.
 */
bool readInput(std::string_view text, const std::vector<InputField>& fields, InputValues* out);

}  // namespace server

#endif  // SPRITES_INPUT_READER_H_
