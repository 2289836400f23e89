// The records of TLS 1.3 after the handshake (RFC 8446, section 5), without OpenSSL's SSL object.
//
// OpenSSL does the handshake and keeps 13 to 25 kB for each connection. After it a connection needs
// only two keys with their sequence numbers and secrets: 240 bytes. The cryptography is OpenSSL's
// EVP. RecordTools has the ciphers and buffers that all connections of a thread share.
//
// A record that the kernel has accepted in part is not kept: it is sealed again from the same bytes
// when the kernel has room. So a slow reader costs no copy with TLS either. If the bytes differed,
// no byte of the key stream would be on the wire twice: the peer would refuse the record. Of the
// input at most one record is kept, while it is incomplete or larger than the reader's room.
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

/** The keys of one direction of a connection. */
struct RecordKeys {
  uint64_t sequence = 0;  // of the next record
  std::array<unsigned char, 48> secret = {};
  std::array<unsigned char, 32> key = {};
  std::array<unsigned char, 12> iv = {};
  uint8_t secretLength = 0;
  uint8_t suite = 0;  // index of the cipher suite in RecordTools::ciphers_
};

/**
 * The ciphers and buffers that the connections of a thread share. They hold no data of a connection
 * between two calls.
 */
class RecordTools {
 public:
  static constexpr size_t kHeader = 5;
  static constexpr size_t kTag = 16;
  static constexpr size_t kMaxContent = 16384;
  /** Header, content with its type, padding and tag. */
  static constexpr size_t kMaxRecord = kHeader + kMaxContent + 256;
  /** Header, type and tag. */
  static constexpr size_t kMinRecord = kHeader + 1 + kTag;
  /** Records for one key; the limit is 2^24.5 full records (RFC 8446, section 5.5). */
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 24;

  struct Content {
    RecordType type;
    std::span<const unsigned char> bytes;
  };

  /** @throws std::bad_alloc */
  explicit RecordTools(uint64_t recordsPerKey = kRecordsPerKey);
  ~RecordTools();
  RecordTools(const RecordTools&) = delete;
  RecordTools& operator=(const RecordTools&) = delete;

  /**
   * Derives key and IV from the secret (RFC 8446, section 7.3).
   *
   * @param suite as on the wire: 0x1301 to 0x1303
   * @returns false with another suite, a secret of another length, or without memory
   */
  bool derive(uint16_t suite, RecordKeys* keys);

  /** Replaces the secret by the next one (RFC 8446, section 7.2). Returns false without memory. */
  bool advanceKeys(RecordKeys* keys);

  /**
   * Seals a record with the current sequence number, which the caller increments.
   *
   * @param record has room for the content and 22 bytes
   * @returns its length; 0 without memory
   */
  size_t seal(const RecordKeys& keys, RecordType type, std::string_view content,
              unsigned char* record);

  /**
   * Opens a whole record in place, and increments the sequence number.
   *
   * @returns the alert for its error
   */
  TlsAlert open(RecordKeys* keys, std::span<unsigned char> record, Content* content);

  uint64_t recordsPerKey() const { return recordsPerKey_; }

 private:
  friend class TlsRecords;
  /** Two records: a read takes the rest of one and the whole next one. */
  static constexpr size_t kInputBytes = 2 * kMaxRecord;

  evp_cipher_ctx_st* cipherFor(const RecordKeys& keys, int seals);
  bool expandLabel(const RecordKeys& keys, std::string_view label, std::span<unsigned char> to);

  const uint64_t recordsPerKey_;
  std::array<evp_cipher_ctx_st*, 3> ciphers_ = {};  // by suite
  evp_kdf_ctx_st* kdf_ = nullptr;
  std::unique_ptr<unsigned char[]> input_;
  std::unique_ptr<unsigned char[]> output_;
};

/**
 * The server's side of the records of a connection. Its methods work as those of TlsSession
 * (tls.h).
 */
class TlsRecords {
 public:
  /** Most KeyUpdates from a peer: one in 2^24 records is usual. */
  static constexpr uint8_t kMaxKeyUpdates = 32;
  /** Most consecutive records without content from a peer. */
  static constexpr uint8_t kMaxEmptyRecords = 32;

  TlsRecords() = default;
  ~TlsRecords();
  TlsRecords(const TlsRecords&) = delete;
  TlsRecords& operator=(const TlsRecords&) = delete;

  /** Stores the secret in a line of OpenSSL's key log; ignores other lines. */
  void storeSecret(std::string_view line);

  /** Counts a record that the handshake has sealed. Setting the secret resets the count. */
  void countSealed() { ++writeKeys_.sequence; }

  /**
   * Derives the keys after the handshake.
   *
   * @param suite as on the wire
   * @returns false without both secrets, a known suite, or memory
   */
  bool deriveKeys(RecordTools& tools, uint16_t suite);

  ssize_t receive(RecordTools& tools, int fd, char* to, size_t room);
  ssize_t send(RecordTools& tools, int fd, const char* bytes, size_t length);
  void endOurHalf(RecordTools& tools, int fd);
  bool hasPending() const { return hasPending_; }
  bool isMidRecord() const { return held_ != nullptr; }

 private:
  struct Deleter {
    void operator()(unsigned char* bytes) const;
  };

  bool holdBytes(std::span<const unsigned char> bytes);
  void readHeld(std::span<char>* rest);
  void openRecords(RecordTools& tools, std::span<unsigned char> bytes, std::span<char>* rest);
  TlsAlert acceptContent(RecordTools& tools, const RecordTools::Content& content,
                         std::span<char>* rest);
  TlsAlert acceptAlert(std::span<const unsigned char> bytes);
  TlsAlert acceptKeyUpdate(RecordTools& tools, std::span<const unsigned char> bytes);
  bool sendRecord(RecordTools& tools, int fd, RecordType type, std::string_view content);
  void sendAlert(RecordTools& tools, int fd, TlsAlert alert);

  RecordKeys readKeys_;
  RecordKeys writeKeys_;
  std::unique_ptr<unsigned char[], Deleter> held_;
  uint16_t heldFrom_ = 0;
  uint16_t heldTo_ = 0;
  uint16_t partialContent_ = 0;  // content of the record that the kernel has accepted in part
  uint16_t partialSent_ = 0;     // accepted bytes of that record; 0: there is none
  uint8_t keyUpdateBytes_ = 0;   // bytes of a KeyUpdate that comes in several records
  uint8_t keyUpdates_ = 0;
  uint8_t emptyRecords_ = 0;
  TlsAlert alert_ = TlsAlert::kNone;
  bool heldIsOpened_ : 1 = false;  // `held_` is opened content
  bool hasPending_ : 1 = false;
  bool peerHasEnded_ : 1 = false;  // the peer has ended its half
  bool ownHalfEnded_ : 1 = false;  // the server has ended its half
  bool hasFailed_ : 1 = false;
  bool mustUpdateKey_ : 1 = false;  // a KeyUpdate must be sent before the next content
  bool sendsKeyUpdate_ : 1 =
      false;  // the record that the kernel has accepted in part is a KeyUpdate
};

}  // namespace server

#endif  // SPRITES_TLS_RECORDS_H_
