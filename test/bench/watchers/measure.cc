#include "measure.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace watchers {

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

bool readPids(const std::string& text, std::vector<int>* pids) {
  for (const char* at = text.c_str(); *at != 0;) {
    char* behind;
    pids->push_back(static_cast<int>(strtol(at, &behind, 10)));
    if (behind == at) return false;
    at = *behind == ',' ? behind + 1 : behind;
  }
  return true;
}

double cpuSeconds(const std::vector<int>& pids) {
  // The scheduler's own count, in nanoseconds: stat has ticks of 10 ms.
  uint64_t nanoseconds = 0;
  for (const int pid : pids) {
    std::error_code error;
    const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
      const std::string text = contents(task.path().string() + "/schedstat");
      nanoseconds += strtoull(text.c_str(), nullptr, 10);
    }
    if (error) {
      fprintf(stderr, "there is no process %d\n", pid);
      exit(1);
    }
  }
  return static_cast<double>(nanoseconds) / 1e9;
}

double ownCpuSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

uint64_t residentBytes(const std::vector<int>& pids) {
  uint64_t pages = 0;
  for (const int pid : pids) {
    const std::string text = contents("/proc/" + std::to_string(pid) + "/statm");
    const size_t resident = text.find(' ');
    if (resident != text.npos) pages += strtoull(text.c_str() + resident, nullptr, 10);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t socketBytes() {
  const std::string text = contents("/proc/net/sockstat");
  const size_t tcp = text.find("TCP:");
  const size_t memory = text.find(" mem ", tcp);
  if (tcp == text.npos || memory == text.npos) return 0;
  return strtoull(text.c_str() + memory + 5, nullptr, 10) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace watchers
