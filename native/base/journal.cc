#include "journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "checksum.h"

namespace server {

namespace {

/** Most bytes of a batch whose memory is kept. */
constexpr size_t kMaxKeptBatch = 1 << 20;

/** Returns the checksum of the fields of `head` before `end`. */
template <typename Head>
uint32_t checksumBefore(const uint32_t* end, const Head* head) {
  Checksum checksum;
  const auto* const begin = reinterpret_cast<const char*>(head);
  checksum.add(begin, reinterpret_cast<const char*>(end) - begin);
  return checksum.value();
}

/** Removes a new file after a failure; returns errno. */
int abandon(int fd, const std::string& path) {
  const int error = errno == 0 ? ENOSPC : errno;
  ::close(fd);
  unlink(path.c_str());
  return error;
}

}  // namespace

int Journal::open(const std::string& path, uint64_t generation, uint64_t previous,
                  JournalOrigin origin) {
  const int fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) return errno;
  JournalHeader header = {.magic = {},
                          .version = kJournalVersion,
                          .byteOrder = kJournalByteOrder,
                          .generation = generation,
                          .previous = previous,
                          .run = run_,
                          .checksum = 0};
  memcpy(header.magic, kJournalMagic, sizeof kJournalMagic);
  header.checksum = checksumBefore(&header.checksum, &header);
  struct stat info;
  errno = 0;
  if (fstat(fd, &info) != 0) return abandon(fd, path);
  origin.inode = info.st_ino;
  origin.checksum = checksumBefore(&origin.checksum, &origin);
  const JournalBegin begin = {header, origin};
  if (::write(fd, &begin, sizeof begin) != sizeof begin) return abandon(fd, path);
  file_ = {new int(fd), [](const int* file) {
             ::close(*file);
             delete file;
           }};
  fileBytes_ = sizeof begin;
  reservedBytes_ = 0;
  sequence_ = 0;
  // A batch that the old file has only in part is written whole to this one.
  batchBytesWritten_ = 0;
  isSealed_ = false;
  batch_ += nextBatch_;
  nextBatch_.clear();
  blocked_ = reserveSpace(fileBytes_ + kJournalReserve);
  return 0;
}

void Journal::discardPending() {
  batch_.clear();
  nextBatch_.clear();
  isSealed_ = false;
  batchBytesWritten_ = 0;
  blocked_ = 0;
}

void Journal::join(uint32_t record, const Id& id, const Address& address) {
  add({.step = JournalStep::kJoin, .record = record}, bytesOf(JoinText{id, address}));
}

void Journal::throwSprite(uint32_t thrower, uint32_t receiver, uint64_t number, uint8_t from,
                          std::string_view text) {
  add({.step = JournalStep::kThrow,
       .from = from,
       .record = thrower,
       .other = receiver,
       .number = number},
      text);
}

void Journal::publish(std::string_view key, Cursor cursor, std::string_view value,
                      std::string_view patch, bool upstream) {
  const PublishText head = {.epoch = cursor.epoch,
                            .key = static_cast<uint32_t>(key.size()),
                            .value = static_cast<uint32_t>(value.size()),
                            .kind = upstream ? PublicationKind::kFetched : PublicationKind::kValue};
  add({.step = JournalStep::kPublish, .number = cursor.version}, bytesOf(head), key, value, patch);
}

void Journal::append(std::string_view key, Cursor cursor, std::string_view item,
                     uint32_t itemCount) {
  const PublishText head = {.epoch = cursor.epoch,
                            .key = static_cast<uint32_t>(key.size()),
                            .value = static_cast<uint32_t>(item.size()),
                            .kind = PublicationKind::kItem};
  add({.step = JournalStep::kPublish, .other = itemCount, .number = cursor.version}, bytesOf(head),
      key, item);
}

void Journal::add(JournalRecord record, std::string_view first, std::string_view second,
                  std::string_view third, std::string_view fourth) {
  std::string& to = isSealed_ ? nextBatch_ : batch_;
  if (!isSealed_ && batch_.empty()) batch_.resize(sizeof(BatchHead));
  const size_t length = first.size() + second.size() + third.size() + fourth.size();
  record.length = static_cast<uint32_t>(length);
  to.append(reinterpret_cast<const char*>(&record), sizeof record);
  to.append(first);
  to.append(second);
  to.append(third);
  to.append(fourth);
  to.append(paddedLength(length) - length, '\0');
}

/**
 * Reserves disk space up to `upTo` bytes of the file. A file system that can't do that is not asked
 * again.
 */
int Journal::reserveSpace(uint64_t upTo) {
  if (upTo <= reservedBytes_) return 0;
  const uint64_t spaceEnd = upTo + kJournalReserve;
  int result;
  do {
    result = fallocate(*file_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(spaceEnd));
  } while (result != 0 && errno == EINTR);
  if (result == 0) {
    reservedBytes_ = spaceEnd;
    return 0;
  }
  if (errno == EOPNOTSUPP || errno == ENOSYS) {
    reservedBytes_ = UINT64_MAX;
    return 0;
  }
  return errno;
}

int Journal::write(uint64_t synced) {
  if (!isSealed_ && !pending()) {
    // Nothing to write: checks whether the disk has room again.
    if (blocked_ != 0) blocked_ = reserveSpace(fileBytes_ + kJournalReserve);
    return blocked_;
  }
  if (!isSealed_) {
    BatchHead head = {.magic = {},
                      .length = static_cast<uint32_t>(batch_.size() - sizeof(BatchHead)),
                      .sequence = sequence_,
                      .synced = synced,
                      .unused = 0,
                      .checksum = 0};
    memcpy(head.magic, kBatchMagic, sizeof kBatchMagic);
    memcpy(batch_.data(), &head, sizeof head);
    Checksum checksum;
    checksum.add(batch_.data(), batch_.size());
    head.checksum = checksum.value();
    memcpy(batch_.data(), &head, sizeof head);
    isSealed_ = true;
  }
  while (batchBytesWritten_ < batch_.size()) {
    const ssize_t written =
        pwrite(*file_, batch_.data() + batchBytesWritten_, batch_.size() - batchBytesWritten_,
               static_cast<off_t>(fileBytes_ + batchBytesWritten_));
    if (written > 0) {
      batchBytesWritten_ += written;
    } else if (written == 0 || errno != EINTR) {
      return blocked_ = written == 0 ? EIO : errno;
    }
  }
  fileBytes_ += batch_.size();
  ++sequence_;
  isSealed_ = false;
  batchBytesWritten_ = 0;
  if (batch_.capacity() > kMaxKeptBatch) batch_.shrink_to_fit();
  batch_.clear();
  if (!nextBatch_.empty()) {
    batch_.resize(sizeof(BatchHead));
    batch_ += nextBatch_;
    nextBatch_.clear();
    return write(synced);
  }
  blocked_ = reserveSpace(fileBytes_ + kJournalReserve);
  return 0;
}

}  // namespace server
