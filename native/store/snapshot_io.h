// Reads and writes the file of a snapshot.
#ifndef SPRITES_SNAPSHOT_IO_H_
#define SPRITES_SNAPSHOT_IO_H_

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/checksum.h"

namespace server {

/** The problem of a file whose end is missing. */
constexpr char kTooEarly[] = "it ends too early";

/** The problem of a file of a server with room for more clients. */
constexpr char kTooManyClients[] = "it needs a larger --capacity: give as large a one as before";

/** Reads a snapshot, never past the end of the file. */
class SnapshotReader {
 public:
  explicit SnapshotReader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  bool get(T* value) {
    if (left_.size() < sizeof *value) return false;
    memcpy(value, left_.data(), sizeof *value);
    left_.remove_prefix(sizeof *value);
    return true;
  }

  bool get(size_t length, std::string_view* bytes) {
    if (left_.size() < length) return false;
    *bytes = left_.substr(0, length);
    left_.remove_prefix(length);
    return true;
  }

  bool atEnd() const { return left_.empty(); }

 private:
  std::string_view left_;
};

/**
 * Writes a file in large pieces, which go to the disk as they come. After the first failure it only
 * remembers that failure.
 */
class SnapshotWriter {
 public:
  /** In place of a descriptor: the bytes are only counted. */
  static constexpr int kNowhere = -1;

  explicit SnapshotWriter(int fd) : fd_(fd), buffer_(fd == kNowhere ? nullptr : new char[kPiece]) {}

  template <typename T>
  void put(const T& value) {
    put(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void put(const char* bytes, size_t length) {
    bytes_ += length;
    if (fd_ == kNowhere) return;
    checksum_.add(bytes, length);
    while (length > 0) {
      const size_t piece = std::min(length, kPiece - used_);
      memcpy(buffer_.get() + used_, bytes, piece);
      used_ += piece;
      bytes += piece;
      length -= piece;
      if (used_ == kPiece) flush();
    }
  }

  /** Ends the file with its checksum. Returns errno of the first failure, or 0. */
  int finish() {
    const uint32_t sum = checksum_.value();
    put(sum);
    flush();
    if (error_ == 0 && fsync(fd_) != 0) error_ = errno;
    return error_;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  /** Bytes of a piece. */
  static constexpr size_t kPiece = 1 << 20;

  /** Most bytes in flight to the disk. */
  static constexpr uint64_t kUnderWay = 8 << 20;

  void flush() {
    for (size_t done = 0; done < used_ && error_ == 0;) {
      const ssize_t wrote = write(fd_, buffer_.get() + done, used_ - done);
      if (wrote >= 0) {
        done += wrote;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    sendOn();
    used_ = 0;
  }

  /**
   * Starts the writeback of the last piece, and waits for the earlier ones. A program that writes a
   * minute's worth at once fills the memory that the system allows for unwritten pages. Then all
   * writers wait, and with them the turn that writes the journal.
   */
  void sendOn() {
    if (error_ == 0) error_ = sync(sent_, used_, SYNC_FILE_RANGE_WRITE);
    sent_ += used_;
    if (error_ == 0 && sent_ > kUnderWay) {
      error_ =
          sync(0, sent_ - kUnderWay,
               SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    }
  }

  /** Returns 0 or errno: the fsync at the end would not report this failure again. */
  int sync(uint64_t from, uint64_t length, unsigned how) const {
    if (sync_file_range(fd_, static_cast<off_t>(from), static_cast<off_t>(length), how) == 0) {
      return 0;
    }
    return errno == ENOSYS || errno == EINVAL || errno == ESPIPE || errno == EOPNOTSUPP ? 0 : errno;
  }

  const int fd_;
  const std::unique_ptr<char[]> buffer_;
  Checksum checksum_;
  size_t used_ = 0;
  uint64_t sent_ = 0;  // bytes that are written and in flight to the disk
  uint64_t bytes_ = 0;
  int error_ = 0;
};

}  // namespace server

#endif  // SPRITES_SNAPSHOT_IO_H_
