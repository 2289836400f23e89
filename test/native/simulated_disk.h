// A simulated disk: one folder of files, the possible results of a power cut, and faults.
//
//   file    now     the kernel's content: a killed process leaves this
//           safe    the content at the last sync
//           since   the writes since then: a power cut leaves any of them, the last one torn
//   names   changes of the names, in order; a power cut leaves the first of those since the last
//           sync of the folder or of a new file
//
// A failed sync loses the unsynced writes, as on Linux. Reads still return them.
#ifndef TEST_NATIVE_SIMULATED_DISK_H_
#define TEST_NATIVE_SIMULATED_DISK_H_

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simulated_machine.h"

namespace sim {

struct DiskOdds {
  uint64_t syncTakes = 2000;  // most microseconds of a sync
  uint64_t slowSync = 0;      // syncs of up to ten seconds, of a million
  uint64_t fails = 0;         // writes and syncs that fail (EIO), of a million
  uint64_t shortWrites = 0;   // short writes, of a million
};

/** How a server crashes: only the process, or the machine. */
enum class Crash : uint8_t { kKill, kPower };

class Disk {
 public:
  static constexpr int kFirst = 1 << 22;  // descriptor
  static constexpr char kFolder[] = "/simulated/";

  DiskOdds odds;
  bool full = false;
  uint64_t endsAt = kNever;  // number of calls until the process ends

  static bool has(int fd) { return fd >= kFirst; }

  /** Begins a call; false: the process is dead. A write that kills it may have written a part. */
  bool calls() {
    if (machine->dead) return false;
    if (endsAt == kNever || endsAt-- != 0) return true;
    machine->say("the process ends at this call of the disk");
    machine->dead = true;
    endsAt = kNever;
    return false;
  }

  int open(const char* path, int flags) {
    if (!calls()) return errno = EIO, -1;
    auto opened = std::make_unique<Opened>();
    const std::string name = nameOf(path);
    if (strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
      opened->file = std::make_shared<File>();
      opened->file->now = "boot " + std::to_string(boot_) + "\n";
    } else if (strcmp(path, "/dev/null") == 0) {
      opened->file = std::make_shared<File>();
    } else if (name.empty()) {
      opened->folder = true;
    } else {
      const auto found = names_.find(name);
      if (found != names_.end() && (flags & O_EXCL) != 0) return errno = EEXIST, -1;
      if (found == names_.end()) {
        if ((flags & O_CREAT) == 0) return errno = ENOENT, -1;
        if (full) return errno = ENOSPC, -1;
        const auto file = std::make_shared<File>();
        file->number = ++files_;
        names_[name] = file;
        named();
      }
      opened->file = names_[name];
    }
    return give(std::move(opened));
  }

  int copy(int fd) {
    auto opened = std::make_unique<Opened>();
    opened->file = at(fd).file;
    return give(std::move(opened));
  }

  int close(int fd) {
    opened_[static_cast<size_t>(fd - kFirst)].reset();
    return 0;
  }

  ssize_t read(int fd, char* to, size_t room) {
    Opened& one = at(fd);
    const size_t length = std::min(room, one.file->now.size() - one.place);
    memcpy(to, one.file->now.data() + one.place, length);
    one.place += length;
    return static_cast<ssize_t>(length);
  }

  ssize_t write(int fd, const char* bytes, size_t length) {
    Opened& one = at(fd);
    const ssize_t wrote = write(fd, bytes, length, one.place);
    if (wrote > 0) one.place += static_cast<size_t>(wrote);
    return wrote;
  }

  ssize_t write(int fd, const char* bytes, size_t length, size_t place) {
    const bool wasDead = machine->dead;
    File& file = *at(fd).file;
    if (!calls()) {
      // The dead process has written a part.
      if (!wasDead) put(&file, bytes, machine->below(length + 1), place);
      return errno = EIO, -1;
    }
    if (full) return errno = ENOSPC, -1;
    if (machine->chance(odds.fails)) {
      machine->say("a write of %" PRIu64 " bytes fails", length);
      return errno = EIO, -1;
    }
    if (length > 1 && machine->chance(odds.shortWrites)) length = 1 + machine->below(length - 1);
    put(&file, bytes, length, place);
    return static_cast<ssize_t>(length);
  }

  int truncate(const char* path, size_t length) {
    if (!calls()) return errno = EIO, -1;
    const auto found = names_.find(nameOf(path));
    if (found == names_.end()) return errno = ENOENT, -1;
    found->second->since.push_back({length, {}, true});
    found->second->now.resize(length);
    return 0;
  }

  int allocate() {
    if (!calls()) return errno = EIO, -1;
    return full ? (errno = ENOSPC, -1) : 0;
  }

  int sync(int fd) {
    if (machine->dead) return errno = EIO, -1;
    const uint64_t takes = machine->chance(odds.slowSync) ? machine->below(10 * kSecond)
                                                          : machine->below(odds.syncTakes);
    const std::shared_ptr<File> file = at(fd).file;
    // A sync need not bring writes to the disk that come while it runs.
    const size_t upTo = file ? file->since.size() : 0;
    if (machine->running != nullptr) {
      machine->running->wait(machine->now() + takes);
    } else {
      machine->pass(takes);
    }
    if (!calls()) return errno = EIO, -1;
    if (!file) return saveNames();
    if (machine->chance(odds.fails)) {
      machine->say("a sync of %" PRIu64 " writes fails", file->since.size());
      file->since.clear();
      return errno = EIO, -1;
    }
    if (!file->known) saveNames();
    const size_t count = std::min(upTo, file->since.size());
    for (size_t i = 0; i < count; ++i) apply(&file->safe, file->since[i]);
    file->since.erase(file->since.begin(), file->since.begin() + static_cast<long>(count));
    return 0;
  }

  int rename(const char* from, const char* to, bool replaces) {
    if (!calls()) return errno = EIO, -1;
    const auto found = names_.find(nameOf(from));
    if (found == names_.end()) return errno = ENOENT, -1;
    if (!replaces && names_.contains(nameOf(to))) return errno = EEXIST, -1;
    names_[nameOf(to)] = found->second;
    names_.erase(found);
    named();
    return 0;
  }

  int unlink(const char* path) {
    if (!calls()) return errno = EIO, -1;
    if (names_.erase(nameOf(path)) == 0) return errno = ENOENT, -1;
    named();
    return 0;
  }

  int stat(const char* path, struct stat* info) {
    const auto found = names_.find(nameOf(path));
    if (found == names_.end()) return errno = ENOENT, -1;
    return tell(*found->second, info);
  }

  int stat(int fd, struct stat* info) { return tell(*at(fd).file, info); }

  /** Returns a file's bytes in memory; the caller unmaps it. */
  void* map(int fd, size_t length) {
    void* const memory =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memcpy(memory, at(fd).file->now.data(), length);
    return memory;
  }

  /** Returns the name at a position of the folder; empty: there are no more. */
  std::string nameAt(size_t place) const {
    auto found = names_.begin();
    while (place > 0 && found != names_.end()) ++found, --place;
    return found == names_.end() ? std::string() : found->first;
  }

  /** Whether a journal is shorter than its header: the process was killed before writing it. */
  bool hasBegun(size_t header) const {
    return std::any_of(names_.begin(), names_.end(), [&](const auto& one) {
      return one.first.find(".journal-") != std::string::npos && one.second->now.size() < header;
    });
  }

  /** Ends the process. A power cut also loses data that was not on the disk. */
  void crash(Crash how) {
    for (auto& one : opened_) expect(!one, "a file is left open");
    full = false;
    endsAt = kNever;
    if (how == Crash::kKill) return;
    ++boot_;
    names_ = before_.empty() ? names_ : before_[machine->below(before_.size())];
    before_.clear();
    before_.push_back(names_);
    for (auto& [name, file] : names_) {
      const uint64_t keeps = machine->below(3);  // none, any, all
      for (size_t i = 0; i < file->since.size(); ++i) {
        Write& write = file->since[i];
        if (keeps == 0 || (keeps == 1 && machine->below(2) == 0)) continue;
        if (keeps == 1 && machine->below(4) == 0) {
          write.bytes.resize(machine->below(write.bytes.size() + 1));
        }
        apply(&file->safe, write);
      }
      file->since.clear();
      file->now = file->safe;
      file->known = true;
    }
  }

 private:
  struct Write {
    size_t place;
    std::string bytes;
    bool cuts;  // a truncation: the file ends there
  };

  struct File {
    uint64_t number = 0;
    std::string now, safe;
    std::vector<Write> since;
    bool known = false;  // its name is on the disk
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  struct Opened {
    std::shared_ptr<File> file;
    bool folder = false;
    size_t place = 0;
  };

  static std::string nameOf(const char* path) {
    const std::string text = path;
    return text.starts_with(kFolder) ? text.substr(sizeof kFolder - 1) : text;
  }

  int give(std::unique_ptr<Opened> opened) {
    for (size_t i = 0; i < opened_.size(); ++i) {
      if (opened_[i]) continue;
      opened_[i] = std::move(opened);
      return kFirst + static_cast<int>(i);
    }
    opened_.push_back(std::move(opened));
    return kFirst + static_cast<int>(opened_.size() - 1);
  }

  Opened& at(int fd) { return *opened_[static_cast<size_t>(fd - kFirst)]; }

  static void apply(std::string* to, const Write& write) {
    if (write.cuts) return to->resize(write.place);
    if (to->size() < write.place + write.bytes.size()) {
      to->resize(write.place + write.bytes.size());
    }
    memcpy(to->data() + write.place, write.bytes.data(), write.bytes.size());
  }

  void put(File* file, const char* bytes, size_t length, size_t place) const {
    Write write = {place, std::string(bytes, length), false};
    apply(&file->now, write);
    if (remembers) file->since.push_back(std::move(write));
  }

  void named() { before_.push_back(names_); }

  int saveNames() {
    before_.clear();
    before_.push_back(names_);
    for (auto& [name, file] : names_) file->known = true;
    return 0;
  }

  int tell(const File& file, struct stat* info) const {
    memset(info, 0, sizeof *info);
    info->st_ino = file.number;
    info->st_size = static_cast<off_t>(file.now.size());
    info->st_mode = S_IFREG | S_IRUSR | S_IWUSR;
    return 0;
  }

  Names names_;
  std::vector<Names> before_ = {Names()};  // possible names after a power cut, the oldest first
  std::vector<std::unique_ptr<Opened>> opened_;
  uint64_t files_ = 0;
  uint64_t boot_ = 1;

 public:
  bool remembers = true;  // whether to keep the data that a power cut would lose
};

/** The disk of each server. */
struct Disks {
  Disk* operator->() const { return at[machine->server]; }
  Disk* at[kMostServers] = {};
};
inline Disks disk;

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_DISK_H_
