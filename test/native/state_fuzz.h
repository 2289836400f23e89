// What the fuzzers of snapshots and of journals share: their command line, and their report.
#ifndef SPRITES_TEST_NATIVE_STATE_FUZZ_H_
#define SPRITES_TEST_NATIVE_STATE_FUZZ_H_

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

namespace server::test {

/** Counts what a reader said of damaged files. */
class Verdicts {
 public:
  /** @param problem what was wrong; empty when the file was taken. Numbers in it do not count. */
  void add(std::string problem) {
    std::erase_if(problem, [](char c) { return c >= '0' && c <= '9'; });
    ++seen_[std::move(problem)];
  }

  /** Whether this was said of a file; empty: it was taken. */
  bool saw(const std::string& problem) const { return seen_.contains(problem); }

  /** Prints each one with how often it was said. */
  void print() const {
    for (const auto& [problem, times] : seen_) {
      printf("%8" PRIu64 "  %s\n", times, problem.empty() ? "taken" : problem.c_str());
    }
  }

 private:
  std::map<std::string, uint64_t> seen_;
};

/**
 * Runs a fuzzer as its command line says: `NAME [COUNT [SEED]]`, 3,000 files and a fresh seed
 * without them.
 *
 * @tparam Run constructed with the seed; prepare() makes a good file, step() damages and reads it,
 *     report() prints what came of it
 * @param files what is damaged, as the first line prints it
 * @return the exit code
 */
template <class Run>
int fuzzStates(int argc, char** argv, const char* files) {
  const uint64_t count = argc > 1 ? strtoull(argv[1], nullptr, 10) : 3000;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : std::random_device{}();
  printf("%s: %" PRIu64 " %s, seed %" PRIu64 "\n", argv[0], count, files, seed);
  fflush(stdout);
  Run run(seed);
  for (uint64_t i = 0; i < count; ++i) {
    if (i % 100 == 0) run.prepare();
    run.step();
  }
  run.report();
  return 0;
}

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_STATE_FUZZ_H_
