#include "disk_sync.h"

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

void DiskSync::requestSync(uint64_t file, std::shared_ptr<const int> descriptor,
                           SyncedCallback onSynced) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  if (jobs_.empty() || jobs_.back().file != file)
    jobs_.push_back({file, std::move(descriptor), {}});
  if (onSynced) jobs_.back().callbacks.push_back(std::move(onSynced));
  wake_.notify_one();
}

void DiskSync::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    busySince_.store(syncClock(), std::memory_order_release);
    const int error = fdatasync(*job.descriptor) == 0 ? 0 : errno;
    busySince_.store(0, std::memory_order_release);
    job.descriptor.reset();
    for (const SyncedCallback& onSynced : job.callbacks) onSynced(error);
    lock.lock();
  }
}

}  // namespace server
