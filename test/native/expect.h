// The checks of the test programs: the first false condition ends the program. Their arguments.
#ifndef SPRITES_TEST_EXPECT_H_
#define SPRITES_TEST_EXPECT_H_

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

/** Prints what has failed, and where, and ends the program. */
[[noreturn]] inline void fail(const char* what, const char* file, int line) {
  fprintf(stderr, "%s:%d: %s\n", file, line, what);
  abort();
}

/** What a program of random steps is run with: `PROGRAM [count] [seed]`. */
struct Arguments {
  uint64_t count;
  uint64_t seed;
};

/** Reads the arguments and prints them. By default the seed is random. */
inline Arguments readArguments(int argc, char** argv, uint64_t defaultCount) {
  const Arguments given = {argc > 1 ? strtoull(argv[1], nullptr, 10) : defaultCount,
                           argc > 2 ? strtoull(argv[2], nullptr, 10) : std::random_device{}()};
  printf("%s: count %" PRIu64 ", seed %" PRIu64 "\n", argv[0], given.count, given.seed);
  fflush(stdout);
  return given;
}

#define EXPECT(condition) ((condition) ? (void)0 : ::fail(#condition, __FILE__, __LINE__))

#endif  // SPRITES_TEST_EXPECT_H_
