// The records of TLS 1.3 behind the handshake (RFC 8446, section 5), without OpenSSL's SSL object.
//
// OpenSSL does the handshake and keeps 13 to 25 kB a connection for it. What a connection needs
// from then on is two keys with their counts and secrets: 240 bytes. The cryptography is OpenSSL's
// EVP; what all connections of a thread share, ciphers and buffers, is in RecordTools.
//
// A record that the kernel took in part is not kept: it is sealed again from the same bytes when
// the kernel has room. So a reader that stops reading costs no copy, by TLS neither. Were the bytes
// not the same, no byte of the key stream would be on the wire twice: the peer would refuse a
// record. Of what is read, at most one record is kept, while a part of it is missing or does not
// fit the reader's room.
#ifndef SPRITES_TLS_RECORDS_H_
#define SPRITES_TLS_RECORDS_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

struct evp_cipher_ctx_st;
struct evp_kdf_ctx_st;

namespace server {

/** The content of a record (RFC 8446, section 5.1). */
enum class RecordType : uint8_t { kAlert = 21, kHandshake = 22, kApplicationData = 23 };

/** RFC 8446, section 6. */
enum class TlsAlert : uint8_t {
  kCloseNotify = 0,
  kUnexpectedMessage = 10,
  kBadRecordMac = 20,
  kRecordOverflow = 22,
  kIllegalParameter = 47,
  kDecodeError = 50,
  kInternalError = 80,
  kUserCanceled = 90,
  kNone = 255,  // nothing is wrong
};

/** What one direction of a connection is sealed with. */
struct RecordKeys {
  uint64_t sequence = 0;  // of the next record
  std::array<unsigned char, 48> secret = {};
  std::array<unsigned char, 32> key = {};
  std::array<unsigned char, 12> iv = {};
  uint8_t secretLength = 0;
  uint8_t suite = 0;  // index of RecordTools::suites
};

/** What the connections of a thread share. Nothing of a connection is in it between two calls. */
class RecordTools {
 public:
  static constexpr size_t kHeader = 5;
  static constexpr size_t kTag = 16;
  static constexpr size_t kMostContent = 16384;
  /** Header, content with its type, padding and tag. */
  static constexpr size_t kMostRecord = kHeader + kMostContent + 256;
  /** Header, type and tag. */
  static constexpr size_t kLeastRecord = kHeader + 1 + kTag;
  /** A key is good for 2^24.5 full records (RFC 8446, section 5.5). */
  static constexpr uint64_t kRecordsAKey = uint64_t{1} << 24;

  struct Content {
    RecordType type;
    std::span<const unsigned char> bytes;
  };

  /** @throws std::bad_alloc */
  explicit RecordTools(uint64_t recordsAKey = kRecordsAKey);
  ~RecordTools();
  RecordTools(const RecordTools&) = delete;
  RecordTools& operator=(const RecordTools&) = delete;

  /**
   * Makes key and IV of the secret there is (RFC 8446, section 7.3).
   *
   * @param suite as it is on the wire: 0x1301 to 0x1303
   * @returns false when the suite or the secret's length is none of those, or without memory
   */
  bool derive(uint16_t suite, RecordKeys* keys);

  /** Goes on to the next secret (RFC 8446, section 7.2). Returns false without memory. */
  bool next(RecordKeys* keys);

  /**
   * Seals a record with the sequence number there is, and leaves that to the caller.
   *
   * @param record has room for the content and 22 bytes
   * @returns its length, 0 without memory
   */
  size_t seal(const RecordKeys& keys, RecordType type, std::string_view content,
              unsigned char* record);

  /**
   * Opens a whole record in place, and counts it.
   *
   * @returns what is wrong with it
   */
  TlsAlert open(RecordKeys* keys, std::span<unsigned char> record, Content* content);

  uint64_t recordsAKey() const { return recordsAKey_; }

 private:
  friend class TlsRecords;
  /** Two records: a read takes the end of one and the whole next. */
  static constexpr size_t kInput = 2 * kMostRecord;

  evp_cipher_ctx_st* keyed(const RecordKeys& keys, int seals);
  bool expand(const RecordKeys& keys, std::string_view label, std::span<unsigned char> to);

  const uint64_t recordsAKey_;
  std::array<evp_cipher_ctx_st*, 3> ciphers_ = {};  // by suite
  evp_kdf_ctx_st* kdf_ = nullptr;
  std::unique_ptr<unsigned char[]> input_;
  std::unique_ptr<unsigned char[]> output_;
};

/** The server's end of a connection's records. Says of itself what TlsSession says (tls.h). */
class TlsRecords {
 public:
  /** KeyUpdates that a peer may send: one in 2^24 records is usual. */
  static constexpr uint8_t kMostUpdates = 32;
  /** Records without content that a peer may send in a row. */
  static constexpr uint8_t kMostEmpty = 32;

  TlsRecords() = default;
  ~TlsRecords();
  TlsRecords(const TlsRecords&) = delete;
  TlsRecords& operator=(const TlsRecords&) = delete;

  /** Takes a secret from a line of the key log as OpenSSL gives it; those of others are passed
   * over. */
  void takeSecret(std::string_view line);

  /** Counts a record that the handshake has sealed. What was before the secret does not count. */
  void countSealed() { ++out_.sequence; }

  /**
   * Begins, the handshake being over.
   *
   * @param suite as it is on the wire
   * @returns false without both secrets, a known suite, or memory
   */
  bool begin(RecordTools& tools, uint16_t suite);

  ssize_t receive(RecordTools& tools, int fd, char* to, size_t room);
  ssize_t send(RecordTools& tools, int fd, const char* bytes, size_t length);
  void endOurHalf(RecordTools& tools, int fd);
  bool pending() const { return pending_; }
  bool midRecord() const { return held_ != nullptr; }

 private:
  struct Freed {
    void operator()(unsigned char* bytes) const;
  };

  bool hold(std::span<const unsigned char> bytes);
  void takeHeld(std::span<char>* rest);
  void take(RecordTools& tools, std::span<unsigned char> bytes, std::span<char>* rest);
  TlsAlert takeContent(RecordTools& tools, const RecordTools::Content& content,
                       std::span<char>* rest);
  TlsAlert takeAlert(std::span<const unsigned char> bytes);
  TlsAlert takeUpdate(RecordTools& tools, std::span<const unsigned char> bytes);
  bool put(RecordTools& tools, int fd, RecordType type, std::string_view content);
  void tell(RecordTools& tools, int fd, TlsAlert alert);

  RecordKeys in_;
  RecordKeys out_;
  std::unique_ptr<unsigned char[], Freed> held_;
  uint16_t heldFrom_ = 0;
  uint16_t heldTo_ = 0;
  uint16_t outLength_ = 0;   // the content of the record that the kernel took in part
  uint16_t outSent_ = 0;     // how much of that record it took; 0 when there is none
  uint8_t updateBytes_ = 0;  // of a KeyUpdate that comes in several records
  uint8_t updates_ = 0;
  uint8_t empty_ = 0;
  TlsAlert wrong_ = TlsAlert::kNone;
  bool opened_ : 1 = false;  // what is held is content
  bool pending_ : 1 = false;
  bool ended_ : 1 = false;   // the peer's half
  bool closed_ : 1 = false;  // ours
  bool failed_ : 1 = false;
  bool owes_ : 1 = false;      // a KeyUpdate, before the next content
  bool updating_ : 1 = false;  // the record that the kernel took in part is a KeyUpdate
};

}  // namespace server

#endif  // SPRITES_TLS_RECORDS_H_
