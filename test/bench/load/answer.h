// HTTP/1.1 answers where they lie, as far as the contenders' contracts need it.
#ifndef SPRITES_BENCH_LOAD_ANSWER_H_
#define SPRITES_BENCH_LOAD_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace load {

/** Ends the program with an error line; what the server did is in `message`. */
[[noreturn]] void fail(const std::string& message);

/** One HTTP answer, its spans pointing into the bytes read. */
struct Answer {
  int status;
  std::string_view head;
  std::string_view body;
  size_t length;  // head and body
};

/** Value of the header `name` (lower case, with its colon), empty where there is none. */
std::string_view header(std::string_view head, std::string_view name);

/** The whole number at the start of `text`; 0 where there is none. */
uint64_t numberAt(std::string_view text);

/** Reads an answer at the start of `data`; false while it is not whole. */
bool readAnswer(std::string_view data, Answer* out);

}  // namespace load

#endif  // SPRITES_BENCH_LOAD_ANSWER_H_
