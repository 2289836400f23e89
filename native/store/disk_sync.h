// A thread that syncs files to the disk, so that the loop never waits for the disk.
//
//   loop ──requestSync(file, …)──▶ queue ──▶ thread: fdatasync ──▶ onSynced(error), there
//
// Requests for one file that come while the thread is busy become one: their bytes are on the disk
// after the same fdatasync. Rejected: libuv's thread pool, where a slow disk would hold up name
// lookups and TLS files as well.
#ifndef SPRITES_DISK_SYNC_H_
#define SPRITES_DISK_SYNC_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace server {

class DiskSync {
 public:
  /** Called in the thread, with 0 or errno. */
  using SyncedCallback = std::function<void(int error)>;

  DiskSync() = default;
  /** Ends the thread after all earlier requests are done. */
  ~DiskSync() { stop(); }
  DiskSync(const DiskSync&) = delete;
  DiskSync& operator=(const DiskSync&) = delete;

  /** Starts the thread. Returns 0, or errno when there is none left. */
  int start();
  void stop();

  /**
   * Requests a sync of all bytes written to `descriptor` so far; allowed between `start` and
   * `stop`. `file` names the file. The descriptor is shared, not duplicated: for a duplicate there
   * may be no descriptor left.
   */
  void requestSync(uint64_t file, std::shared_ptr<const int> descriptor, SyncedCallback onSynced);

  /**
   * When the thread's present wait for the disk began, in milliseconds of syncClock; 0: it does not
   * wait.
   */
  uint64_t busySince() const { return busySince_.load(std::memory_order_acquire); }

 private:
  struct Job {
    uint64_t file;
    std::shared_ptr<const int> descriptor;
    std::vector<SyncedCallback> callbacks;
  };

  void run();

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::atomic<uint64_t> busySince_ = 0;
};

/** Milliseconds of the clock of busySince. */
uint64_t syncClock();

}  // namespace server

#endif  // SPRITES_DISK_SYNC_H_
