// A simulated disk: one folder of files, the possible results of a power cut, and faults.
//
//   file    content   what the kernel has: a killed process leaves this
//           synced    the content at the last sync
//           unsynced  the writes since then: a power cut leaves any of them, the last one torn
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
  uint64_t maxSyncTime = 2000;  // most microseconds of a sync
  uint64_t slowSyncs = 0;       // syncs of up to ten seconds, of a million
  uint64_t failures = 0;        // writes and syncs that fail (EIO), of a million
  uint64_t shortWrites = 0;     // short writes, of a million
};

/** How a server crashes: only the process, or the machine. */
enum class Crash : uint8_t { kKill, kPower };

class Disk {
 public:
  static constexpr int kFirstDescriptor = 1 << 22;  // descriptor
  static constexpr char kFolder[] = "/simulated/";

  DiskOdds odds;
  bool isFull = false;
  uint64_t callsUntilEnd = kNever;  // number of calls until the process ends

  static bool owns(int fd) { return fd >= kFirstDescriptor; }

  /** Begins a call; false: the process is dead. A write that kills it may have written a part. */
  bool beginCall() {
    if (machine->isDead) return false;
    if (callsUntilEnd == kNever || callsUntilEnd-- != 0) return true;
    machine->trace("the process ends at this call of the disk");
    machine->isDead = true;
    callsUntilEnd = kNever;
    return false;
  }

  int open(const char* path, int flags) {
    if (!beginCall()) return errno = EIO, -1;
    auto opened = std::make_unique<OpenFile>();
    const std::string name = nameOf(path);
    if (strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
      opened->file = std::make_shared<File>();
      opened->file->content = "boot " + std::to_string(boot_) + "\n";
    } else if (strcmp(path, "/dev/null") == 0) {
      opened->file = std::make_shared<File>();
    } else if (name.empty()) {
      opened->isFolder = true;
    } else {
      const auto found = names_.find(name);
      if (found != names_.end() && (flags & O_EXCL) != 0) return errno = EEXIST, -1;
      if (found == names_.end()) {
        if ((flags & O_CREAT) == 0) return errno = ENOENT, -1;
        if (isFull) return errno = ENOSPC, -1;
        const auto file = std::make_shared<File>();
        file->number = ++lastFileNumber_;
        names_[name] = file;
        saveNameChange();
      }
      opened->file = names_[name];
    }
    return addDescriptor(std::move(opened));
  }

  int duplicate(int fd) {
    auto opened = std::make_unique<OpenFile>();
    opened->file = at(fd).file;
    return addDescriptor(std::move(opened));
  }

  int close(int fd) {
    openFiles_[static_cast<size_t>(fd - kFirstDescriptor)].reset();
    return 0;
  }

  ssize_t read(int fd, char* to, size_t room) {
    OpenFile& one = at(fd);
    const size_t length = std::min(room, one.file->content.size() - one.offset);
    memcpy(to, one.file->content.data() + one.offset, length);
    one.offset += length;
    return static_cast<ssize_t>(length);
  }

  ssize_t write(int fd, const char* bytes, size_t length) {
    OpenFile& one = at(fd);
    const ssize_t wrote = write(fd, bytes, length, one.offset);
    if (wrote > 0) one.offset += static_cast<size_t>(wrote);
    return wrote;
  }

  ssize_t write(int fd, const char* bytes, size_t length, size_t place) {
    const bool wasDead = machine->isDead;
    File& file = *at(fd).file;
    if (!beginCall()) {
      // The dead process has written a part.
      if (!wasDead) applyWrite(&file, bytes, machine->below(length + 1), place);
      return errno = EIO, -1;
    }
    if (isFull) return errno = ENOSPC, -1;
    if (machine->happens(odds.failures)) {
      machine->trace("a write of %" PRIu64 " bytes fails", length);
      return errno = EIO, -1;
    }
    if (length > 1 && machine->happens(odds.shortWrites)) length = 1 + machine->below(length - 1);
    applyWrite(&file, bytes, length, place);
    return static_cast<ssize_t>(length);
  }

  int truncate(const char* path, size_t length) {
    if (!beginCall()) return errno = EIO, -1;
    const auto found = names_.find(nameOf(path));
    if (found == names_.end()) return errno = ENOENT, -1;
    found->second->unsynced.push_back({length, {}, true});
    found->second->content.resize(length);
    return 0;
  }

  int allocate() {
    if (!beginCall()) return errno = EIO, -1;
    return isFull ? (errno = ENOSPC, -1) : 0;
  }

  int sync(int fd) {
    if (machine->isDead) return errno = EIO, -1;
    const uint64_t takes = machine->happens(odds.slowSyncs) ? machine->below(10 * kSecond)
                                                            : machine->below(odds.maxSyncTime);
    const std::shared_ptr<File> file = at(fd).file;
    // A sync need not bring writes to the disk that come while it runs.
    const size_t upTo = file ? file->unsynced.size() : 0;
    if (machine->running != nullptr) {
      machine->running->wait(machine->now() + takes);
    } else {
      machine->advance(takes);
    }
    if (!beginCall()) return errno = EIO, -1;
    if (!file) return syncNames();
    if (machine->happens(odds.failures)) {
      machine->trace("a sync of %" PRIu64 " writes fails", file->unsynced.size());
      file->unsynced.clear();
      return errno = EIO, -1;
    }
    if (!file->isNameSynced) syncNames();
    const size_t count = std::min(upTo, file->unsynced.size());
    for (size_t i = 0; i < count; ++i) apply(&file->synced, file->unsynced[i]);
    file->unsynced.erase(file->unsynced.begin(), file->unsynced.begin() + static_cast<long>(count));
    return 0;
  }

  int rename(const char* from, const char* to, bool replaces) {
    if (!beginCall()) return errno = EIO, -1;
    const auto found = names_.find(nameOf(from));
    if (found == names_.end()) return errno = ENOENT, -1;
    if (!replaces && names_.contains(nameOf(to))) return errno = EEXIST, -1;
    names_[nameOf(to)] = found->second;
    names_.erase(found);
    saveNameChange();
    return 0;
  }

  int unlink(const char* path) {
    if (!beginCall()) return errno = EIO, -1;
    if (names_.erase(nameOf(path)) == 0) return errno = ENOENT, -1;
    saveNameChange();
    return 0;
  }

  int stat(const char* path, struct stat* info) {
    const auto found = names_.find(nameOf(path));
    if (found == names_.end()) return errno = ENOENT, -1;
    return fillStat(*found->second, info);
  }

  int stat(int fd, struct stat* info) { return fillStat(*at(fd).file, info); }

  /** Returns a file's bytes in memory; the caller unmaps it. */
  void* map(int fd, size_t length) {
    void* const memory =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memcpy(memory, at(fd).file->content.data(), length);
    return memory;
  }

  /** Returns the name at a position of the folder; empty: there are no more. */
  std::string nameAt(size_t place) const {
    auto found = names_.begin();
    while (place > 0 && found != names_.end()) ++found, --place;
    return found == names_.end() ? std::string() : found->first;
  }

  /** Whether a journal is shorter than its header: the process was killed before writing it. */
  bool hasUnfinishedJournal(size_t header) const {
    return std::any_of(names_.begin(), names_.end(), [&](const auto& one) {
      return one.first.find(".journal-") != std::string::npos &&
             one.second->content.size() < header;
    });
  }

  /** Ends the process. A power cut also loses data that was not on the disk. */
  void crash(Crash how) {
    for (auto& one : openFiles_) expect(!one, "a file is left open");
    isFull = false;
    callsUntilEnd = kNever;
    if (how == Crash::kKill) return;
    ++boot_;
    names_ =
        possibleNames_.empty() ? names_ : possibleNames_[machine->below(possibleNames_.size())];
    possibleNames_.clear();
    possibleNames_.push_back(names_);
    for (auto& [name, file] : names_) {
      const uint64_t survival = machine->below(3);  // none, any, all
      for (size_t i = 0; i < file->unsynced.size(); ++i) {
        Write& write = file->unsynced[i];
        if (survival == 0 || (survival == 1 && machine->below(2) == 0)) continue;
        if (survival == 1 && machine->below(4) == 0) {
          write.bytes.resize(machine->below(write.bytes.size() + 1));
        }
        apply(&file->synced, write);
      }
      file->unsynced.clear();
      file->content = file->synced;
      file->isNameSynced = true;
    }
  }

 private:
  struct Write {
    size_t offset;
    std::string bytes;
    bool isTruncation;  // a truncation: the file ends there
  };

  struct File {
    uint64_t number = 0;
    std::string content, synced;
    std::vector<Write> unsynced;
    bool isNameSynced = false;  // its name is on the disk
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  struct OpenFile {
    std::shared_ptr<File> file;
    bool isFolder = false;
    size_t offset = 0;
  };

  static std::string nameOf(const char* path) {
    const std::string text = path;
    return text.starts_with(kFolder) ? text.substr(sizeof kFolder - 1) : text;
  }

  int addDescriptor(std::unique_ptr<OpenFile> opened) {
    for (size_t i = 0; i < openFiles_.size(); ++i) {
      if (openFiles_[i]) continue;
      openFiles_[i] = std::move(opened);
      return kFirstDescriptor + static_cast<int>(i);
    }
    openFiles_.push_back(std::move(opened));
    return kFirstDescriptor + static_cast<int>(openFiles_.size() - 1);
  }

  OpenFile& at(int fd) { return *openFiles_[static_cast<size_t>(fd - kFirstDescriptor)]; }

  static void apply(std::string* to, const Write& write) {
    if (write.isTruncation) return to->resize(write.offset);
    if (to->size() < write.offset + write.bytes.size()) {
      to->resize(write.offset + write.bytes.size());
    }
    memcpy(to->data() + write.offset, write.bytes.data(), write.bytes.size());
  }

  void applyWrite(File* file, const char* bytes, size_t length, size_t place) const {
    Write write = {place, std::string(bytes, length), false};
    apply(&file->content, write);
    if (keepsUnsynced) file->unsynced.push_back(std::move(write));
  }

  void saveNameChange() { possibleNames_.push_back(names_); }

  int syncNames() {
    possibleNames_.clear();
    possibleNames_.push_back(names_);
    for (auto& [name, file] : names_) file->isNameSynced = true;
    return 0;
  }

  int fillStat(const File& file, struct stat* info) const {
    memset(info, 0, sizeof *info);
    info->st_ino = file.number;
    info->st_size = static_cast<off_t>(file.content.size());
    info->st_mode = S_IFREG | S_IRUSR | S_IWUSR;
    return 0;
  }

  Names names_;
  std::vector<Names> possibleNames_ = {
      Names()};  // possible names after a power cut, the oldest first
  std::vector<std::unique_ptr<OpenFile>> openFiles_;
  uint64_t lastFileNumber_ = 0;
  uint64_t boot_ = 1;

 public:
  bool keepsUnsynced = true;  // whether to keep the data that a power cut would lose
};

/** The disk of each server. */
struct Disks {
  Disk* operator->() const { return at[machine->server]; }
  Disk* at[kMaxServers] = {};
};
inline Disks disk;

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_DISK_H_
