#include "disk_sync.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

namespace server {

uint64_t syncClock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * uint64_t{1000} + now.tv_nsec / 1000000;
}

int DiskSync::start() {
  stopping_ = false;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

void DiskSync::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void DiskSync::request(uint64_t file, int fd, Done done) {
  // Behind the end: no thread would close the copy.
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  if (jobs_.empty() || jobs_.back().file != file) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
      // Out of files: the next request has another chance, this one is answered.
      const int error = errno;
      if (done) done(error);
      return;
    }
    jobs_.push_back({file, copy, {}});
  }
  if (done) jobs_.back().done.push_back(std::move(done));
  wake_.notify_one();
}

void DiskSync::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    busySince_.store(syncClock(), std::memory_order_release);
    const int error = fdatasync(job.fd) == 0 ? 0 : errno;
    busySince_.store(0, std::memory_order_release);
    ::close(job.fd);
    for (const Done& done : job.done) done(error);
    lock.lock();
  }
}

}  // namespace server
