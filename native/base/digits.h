// Numbers in the texts that are sent.
#ifndef BASE_DIGITS_H_
#define BASE_DIGITS_H_

#include <charconv>
#include <cstdint>
#include <string>

namespace base {

/** Appends `number` in `radix`, from 8 to 36: the buffer has room for that. */
inline void appendDigits(std::string* to, uint64_t number, int radix = 10) {
  char digits[22];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, radix).ptr;
  to->append(digits, end - digits);
}

}  // namespace base

#endif  // BASE_DIGITS_H_
