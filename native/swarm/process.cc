#include "process.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

namespace swarm {

uint64_t clockNow() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

bool writeAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(written);
    } else if (errno == EAGAIN) {
      pollfd wait = {fd, POLLOUT, 0};
      poll(&wait, 1, 1000);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void raiseFileLimit() {
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

Setter text(std::string* target) {
  return [target](std::string_view value) {
    *target = value;
    return !value.empty();
  };
}

Setter flag(bool* target) {
  return [target](std::string_view value) {
    *target = value == "1";
    return value == "0" || value == "1";
  };
}

bool readArguments(int argc, char** argv, const Setters& setters, std::string* error) {
  for (int i = 1; i < argc; i++) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    if (!argument.starts_with("--") || equals == std::string_view::npos) {
      *error = "not --name=value: " + std::string(argument);
      return false;
    }
    const auto setter = setters.find(argument.substr(2, equals - 2));
    if (setter == setters.end() || !setter->second(argument.substr(equals + 1))) {
      *error = "cannot use " + std::string(argument);
      return false;
    }
  }
  return true;
}

}  // namespace swarm
