// The load of npm run bench: its clients and throwers against one server; load.cc says how.
#ifndef SPRITES_BENCH_LOAD_LOAD_H_
#define SPRITES_BENCH_LOAD_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace load {

/** What is measured, and where. */
struct Options {
  uint16_t port = 0;
  std::string contract = "sprites";  // or nchan
  size_t clients = 5000;
  size_t throwers = 64;
  double warmup = 1;      // seconds of throwing before the window opens
  double seconds = 5;     // the window
  bool leave = false;     // every client leaves at the end
  std::vector<int> pids;  // the server's processes
};

/** Runs all of it. @return the exit status: 1 where a sprite is missing, repeated, or unanswered */
int runLoad(const Options& options);

}  // namespace load

#endif  // SPRITES_BENCH_LOAD_LOAD_H_
