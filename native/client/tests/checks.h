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
  void operator()(bool isOk, const std::string& what) {
    count_++;
    if (isOk) return;
    failureCount_++;
    std::cerr << "failed: " << what << std::endl;
  }

  /** Prints the counts; returns the program's exit code. */
  int printSummary() const {
    std::cout << count_ << " checks, " << failureCount_ << " failed" << std::endl;
    return std::min(failureCount_, 100);
  }

 private:
  int count_ = 0;
  int failureCount_ = 0;
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_TESTS_CHECKS_H_
