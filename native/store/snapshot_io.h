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
  explicit SnapshotReader(std::string_view bytes) : unread_(bytes) {}

  template <typename T>
  bool read(T* value) {
    if (unread_.size() < sizeof *value) return false;
    memcpy(value, unread_.data(), sizeof *value);
    unread_.remove_prefix(sizeof *value);
    return true;
  }

  bool read(size_t length, std::string_view* bytes) {
    if (unread_.size() < length) return false;
    *bytes = unread_.substr(0, length);
    unread_.remove_prefix(length);
    return true;
  }

  bool atEnd() const { return unread_.empty(); }

 private:
  std::string_view unread_;
};

/**
 * Writes a file in large pieces, which go to the disk as they come. After the first failure it only
 * remembers that failure.
 */
class SnapshotWriter {
 public:
  /** In place of a descriptor: the bytes are only counted. */
  static constexpr int kCountOnly = -1;

  explicit SnapshotWriter(int fd)
      : fd_(fd), buffer_(fd == kCountOnly ? nullptr : new char[kPiece]) {}

  template <typename T>
  void append(const T& value) {
    append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void append(const char* bytes, size_t length) {
    bytes_ += length;
    if (fd_ == kCountOnly) return;
    checksum_.add(bytes, length);
    while (length > 0) {
      const size_t piece = std::min(length, kPiece - buffered_);
      memcpy(buffer_.get() + buffered_, bytes, piece);
      buffered_ += piece;
      bytes += piece;
      length -= piece;
      if (buffered_ == kPiece) flush();
    }
  }

  /** Ends the file with its checksum. Returns errno of the first failure, or 0. */
  int finish() {
    const uint32_t sum = checksum_.value();
    append(sum);
    flush();
    if (error_ == 0 && fsync(fd_) != 0) error_ = errno;
    return error_;
  }

  uint64_t bytes() const { return bytes_; }

 private:
  /** Bytes of a piece. */
  static constexpr size_t kPiece = 1 << 20;

  /** Most bytes in flight to the disk. */
  static constexpr uint64_t kMaxInFlight = 8 << 20;

  void flush() {
    for (size_t written = 0; written < buffered_ && error_ == 0;) {
      const ssize_t wrote = write(fd_, buffer_.get() + written, buffered_ - written);
      if (wrote >= 0) {
        written += wrote;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    startWriteback();
    buffered_ = 0;
  }

  /**
   * Starts the writeback of the last piece, and waits for the earlier ones. A program that writes a
   * minute's worth at once fills the memory that the system allows for unwritten pages. Then all
   * writers wait, and with them the turn that writes the journal.
   */
  void startWriteback() {
    if (error_ == 0) error_ = sync(writebackBytes_, buffered_, SYNC_FILE_RANGE_WRITE);
    writebackBytes_ += buffered_;
    if (error_ == 0 && writebackBytes_ > kMaxInFlight) {
      error_ =
          sync(0, writebackBytes_ - kMaxInFlight,
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
  size_t buffered_ = 0;
  uint64_t writebackBytes_ = 0;  // bytes that are written and in flight to the disk
  uint64_t bytes_ = 0;
  int error_ = 0;
};

}  // namespace server

#endif  // SPRITES_SNAPSHOT_IO_H_
