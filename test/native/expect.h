// The checks of the test programs: the first false condition ends the program.
#ifndef SPRITES_TEST_EXPECT_H_
#define SPRITES_TEST_EXPECT_H_

#include <cstdio>
#include <cstdlib>

/** Prints what has failed, and where, and ends the program. */
[[noreturn]] inline void fail(const char* what, const char* file, int line) {
  fprintf(stderr, "%s:%d: %s\n", file, line, what);
  abort();
}

#define EXPECT(condition) ((condition) ? (void)0 : ::fail(#condition, __FILE__, __LINE__))

#endif  // SPRITES_TEST_EXPECT_H_
