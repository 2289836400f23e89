// Counts the checks of the test programs of the client and of the desktop.
#ifndef SPRITES_CLIENT_TESTS_CHECKS_H_
#define SPRITES_CLIENT_TESTS_CHECKS_H_

#include <algorithm>
#include <iostream>
#include <string>

namespace sprites {

/** Counts checks, and prints one line for each that fails. */
class Checks {
 public:
  void operator()(bool good, const std::string& what) {
    made_++;
    if (good) return;
    failed_++;
    std::cerr << "failed: " << what << std::endl;
  }

  /** Prints the counts; returns the program's exit code. */
  int end() const {
    std::cout << made_ << " checks, " << failed_ << " failed" << std::endl;
    return std::min(failed_, 100);
  }

 private:
  int made_ = 0;
  int failed_ = 0;
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_TESTS_CHECKS_H_
