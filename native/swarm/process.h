// The clock, output, file limit and arguments of a load generator's process.
#ifndef SPRITES_SWARM_PROCESS_H_
#define SPRITES_SWARM_PROCESS_H_

#include <charconv>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace swarm {

/** @return nanoseconds of CLOCK_MONOTONIC, the same clock in every process of a host */
uint64_t clockNow();

/** Units of clockNow(). */
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMs = 1'000'000;

/** Writes all bytes, and waits if needed. @return false when the reader is gone */
bool writeAll(int fd, std::string_view bytes);

/** Raises the soft limit of open files to the hard limit. */
void raiseFileLimit();

/** Sets an option's value. @return false for an invalid value */
using Setter = std::function<bool(std::string_view)>;
/** Setters by the options' names, without dashes. */
using Setters = std::unordered_map<std::string_view, Setter>;

/** Reads a number into `value`. @return false when `text` is anything else */
template <typename Number>
bool readNumber(std::string_view text, Number* value) {
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, *value);
  return code == std::errc() && stop == end;
}

template <typename Number>
Setter number(Number* target) {
  return [target](std::string_view text) { return readNumber(text, target); };
}
Setter text(std::string* target);
Setter flag(bool* target);

/**
 * Reads `--name=value` arguments.
 *
 * @param error filled with one line for an unknown argument or an invalid value
 * @return false with `error` set, or true
 */
bool readArguments(int argc, char** argv, const Setters& setters, std::string* error);

}  // namespace swarm

#endif  // SPRITES_SWARM_PROCESS_H_
