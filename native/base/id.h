// Ids: capabilities that contain the number of their record.
//
//   byte  0 ──────────── 11   12 ── 15
//         90 random bits      the record's number, big-endian
//         (and version 8, variant 2: RFC 9562, section 5.8)
//
// In a world of several servers the first three bytes are the tag of the server that made the id;
// 66 random bits are left. So any other server, and a proxy in front, finds the server of an id by
// its first six characters. Tags are made from names: lib/base/tag.js.
//
// The number makes the lookup one load and one comparison of 16 bytes; the random bits can't be
// guessed. Rejected: a hash table over random ids (8 bytes for each client, a second cache miss,
// and a touched page for each client while the table is still nearly empty).
#ifndef SPRITES_ID_H_
#define SPRITES_ID_H_

#include <sys/random.h>

#include <cstdint>
#include <cstring>
#include <system_error>

namespace server {

/** The tag of the server that has made an id: 24 bits. */
using ServerTag = uint32_t;

/** The tag of a server without a world: its ids begin with random bits. */
constexpr ServerTag kNoServerTag = UINT32_MAX;

struct Id {
  uint8_t bytes[16];

  bool operator==(const Id& other) const { return memcmp(bytes, other.bytes, sizeof bytes) == 0; }

  /** The number of the record, if the id is genuine. */
  uint32_t record() const {
    return uint32_t{bytes[12]} << 24 | uint32_t{bytes[13]} << 16 | uint32_t{bytes[14]} << 8 |
           bytes[15];
  }

  /** The tag of the server that has made the id, if it has one. */
  ServerTag tag() const { return ServerTag{bytes[0]} << 16 | ServerTag{bytes[1]} << 8 | bytes[2]; }

  /** Whether the id has the form of this server's ids: version and variant of RFC 9562. */
  bool isWellFormed() const { return (bytes[6] & 0xf0) == 0x80 && (bytes[8] & 0xc0) == 0x80; }

  /** Writes the 36 characters of the text form (RFC 9562, section 4), without a NUL. */
  void format(char* text) const {
    static constexpr char kHex[] = "0123456789abcdef";
    for (int i = 0; i < 16; ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) *text++ = '-';
      *text++ = kHex[bytes[i] >> 4];
      *text++ = kHex[bytes[i] & 15];
    }
  }
};

/** Makes ids from the kernel's random bytes, fetched for 170 ids at a time. */
class IdMaker {
 public:
  explicit IdMaker(ServerTag tag) : tag_(tag) {}

  /**
   * Returns an id for the record `record`. Throws std::system_error when the kernel has no random
   * bytes.
   */
  Id make(uint32_t record) {
    if (bytesLeft_ < kRandomBytes) refill();
    bytesLeft_ -= kRandomBytes;
    Id id;
    memcpy(id.bytes, randomBytes_ + bytesLeft_, kRandomBytes);
    memset(randomBytes_ + bytesLeft_, 0, kRandomBytes);
    if (tag_ != kNoServerTag) {
      id.bytes[0] = tag_ >> 16;
      id.bytes[1] = tag_ >> 8;
      id.bytes[2] = tag_;
    }
    id.bytes[6] = 0x80 | (id.bytes[6] & 0x0f);
    id.bytes[8] = 0x80 | (id.bytes[8] & 0x3f);
    id.bytes[12] = record >> 24;
    id.bytes[13] = record >> 16;
    id.bytes[14] = record >> 8;
    id.bytes[15] = record;
    return id;
  }

 private:
  static constexpr size_t kRandomBytes = 12;

  void refill() {
    size_t have = 0;
    while (have < sizeof randomBytes_) {
      const ssize_t got = getrandom(randomBytes_ + have, sizeof randomBytes_ - have, 0);
      if (got < 0 && errno != EINTR) throw std::system_error(errno, std::generic_category());
      if (got > 0) have += got;
    }
    bytesLeft_ = sizeof randomBytes_;
  }

  const ServerTag tag_;
  uint8_t randomBytes_[kRandomBytes * 170];
  size_t bytesLeft_ = 0;
};

}  // namespace server

#endif  // SPRITES_ID_H_
