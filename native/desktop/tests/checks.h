// What the test programs count with.
#ifndef SPRITES_DESKTOP_TESTS_CHECKS_H_
#define SPRITES_DESKTOP_TESTS_CHECKS_H_

#include <algorithm>
#include <iostream>
#include <string>

namespace sprites::desktop {

/** Counts checks, and prints one line for each that fails. */
class Checks {
 public:
  void operator()(bool good, const std::string& what) {
    made_++;
    if (good) return;
    failed_++;
    std::cerr << "failed: " << what << std::endl;
  }

  /** Prints the counts; answers what the program is to exit with. */
  int end() const {
    std::cout << made_ << " checks, " << failed_ << " failed" << std::endl;
    return std::min(failed_, 100);
  }

 private:
  int made_ = 0;
  int failed_ = 0;
};

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_TESTS_CHECKS_H_
