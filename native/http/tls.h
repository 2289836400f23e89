// TLS 1.2 and 1.3 for the connections of a port, with the OpenSSL of the Node that runs the server.
//
// An idle session of TLS 1.3 costs 272 bytes: OpenSSL's SSL object does the handshake and is freed;
// tls_records.h handles the records after it. A session of TLS 1.2 keeps the object, without
// buffers: 13.3 kB with OpenSSL 3.0, 21.1 kB with 3.5 (make -C test/native tls-in-node). One BIO
// serves all sessions of a context. A session knows nothing of events or HTTP: it reads and writes
// a non-blocking socket as recv(2) and send(2) do, and returns what it waits for.
//
// A context and its sessions belong to one thread. Threads that serve the same port have a context
// each and share the ticket keys. A context outlives its sessions.
#ifndef SPRITES_TLS_H_
#define SPRITES_TLS_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tls_records.h"

struct bio_method_st;
struct bio_st;
struct ssl_ctx_st;
struct ssl_st;

namespace server {

class TlsContext;

/** The server's side of the TLS of a connection. Does not close the socket. */
class TlsSession {
 public:
  enum class Handshake {
    kDone,
    kWantsRead,   // waits for input
    kWantsWrite,  // waits for room in the kernel
    kFailed,      // an alert was sent if possible; the caller closes the connection
  };

  /**
   * Most bytes that a client may send before its handshake is done. A usual client sends less than
   * 4 kB.
   */
  static constexpr uint32_t kHandshakeBytes = 24 * 1024;

  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /**
   * Continues the handshake as far as the socket allows. To be called until it is done. Then
   * `receive` must be called at once, since bytes after the handshake may have been read already.
   */
  Handshake handshake();

  /**
   * Reads as recv(2) does. Returns the bytes read, 0 when the client has ended its half (by
   * close_notify or by FIN), or -1 with errno: EAGAIN when there is nothing for now, ECONNRESET
   * when the connection is lost. After EAGAIN the socket announces the next input. `room` must not
   * be 0.
   */
  ssize_t receive(char* to, size_t room);

  /**
   * Whether `receive` has more to return that no event will announce: it stopped because its room
   * was full, or at the end.
   */
  bool hasPending() const { return hasPending_; }

  /**
   * Whether some 17 kB may be held: a record has come in part, or was too large for the room of
   * `receive`.
   */
  bool isMidRecord() const;

  /**
   * Sends as send(2) does. Returns the bytes accepted, possibly fewer than given; 0 when the kernel
   * has no room; -1 with errno when the connection is lost. After 0, or fewer than given, the next
   * call must begin with the bytes that were not accepted, at least as many, at the same address or
   * another: the kernel may have a part of their record.
   */
  ssize_t send(const char* bytes, size_t length);

  /** Sends close_notify, if the kernel has room for it. */
  void endOurHalf();

  /** Whether the handshake was resumed with a ticket. */
  bool isResumed() const { return isResumed_; }

 private:
  friend class TlsContext;
  friend struct TlsCallbacks;
  class ScopedCall;

  TlsSession(TlsContext* context, ssl_st* ssl, int fd) : context_(context), ssl_(ssl), fd_(fd) {}
  ssize_t fail();
  bool startRecords();

  TlsContext* context_;
  ssl_st* ssl_;         // nullptr after the handshake of TLS 1.3
  TlsRecords records_;  // used from then on
  int fd_;
  uint16_t handshakeBytes_ = 0;
  bool isDone_ : 1 = false;
  bool hasFailed_ : 1 = false;
  bool hasPending_ : 1 = false;
  bool isResumed_ : 1 = false;
};

/** The parts that the sessions of a port share: certificate, key and ticket keys. */
class TlsContext {
 public:
  /**
   * Seconds that a ticket key encrypts, and that it decrypts; a ticket is valid for the difference.
   */
  static constexpr uint64_t kNewTicketKeyAfter = 8 * 3600;
  static constexpr uint64_t kTicketKeyLifetime = 24 * 3600;

  /**
   * @param recordsPerKey records that a session of TLS 1.3 sends before it changes its key
   * @throws std::bad_alloc
   */
  explicit TlsContext(uint64_t recordsPerKey = RecordTools::kRecordsPerKey);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /**
   * Sets the certificate with its chain, and its key, both PEM, for further handshakes; existing
   * sessions keep theirs.
   *
   * @returns the error in words, and then nothing has changed; or an empty text
   */
  std::string setCertificate(std::string_view certificate, std::string_view key);

  /** The end of the certificate, in seconds since 1970; 0 without one. */
  int64_t validUntil() const { return validUntil_; }

  /**
   * Makes a new ticket key when there is none or the newest is too old, and drops those that no
   * ticket needs any more. To be called about once a minute. Until the first call no session gets a
   * ticket.
   *
   * @returns whether `ticketKeys` has changed
   */
  bool rollTicketKeys(uint64_t nowSeconds);

  /** The ticket keys, to be stored in a safe place: they are secret. */
  std::string ticketKeys() const;

  /**
   * Replaces the ticket keys by a result of `ticketKeys`. `rollTicketKeys` drops those that are too
   * old.
   *
   * @returns whether `bytes` was valid; if not, nothing has changed
   */
  bool setTicketKeys(std::string_view bytes);

  /**
   * Begins a session on a non-blocking socket; the caller deletes it before it closes the socket.
   * Returns nullptr without memory or certificate.
   */
  TlsSession* open(int fd);

 private:
  friend class TlsSession;
  friend struct TlsCallbacks;

  /** RFC 5077, section 4: a name, a key for AES-256, a key for HMAC-SHA256. */
  struct TicketKey {
    std::array<unsigned char, 16> name;
    std::array<unsigned char, 32> cipher;
    std::array<unsigned char, 32> mac;
    uint64_t createdAt;  // seconds since 1970
  };
  /** Most keys that are valid at the same time. */
  static constexpr size_t kMaxTicketKeys = kTicketKeyLifetime / kNewTicketKeyAfter + 1;

  std::unique_ptr<RecordTools> tools_;
  bio_method_st* method_ = nullptr;
  bio_st* bio_ = nullptr;
  ssl_ctx_st* sslContext_ = nullptr;
  int64_t validUntil_ = 0;
  std::vector<TicketKey> ticketKeys_;  // the newest first

  // The current session, for the BIO. Empty between two calls.
  TlsSession* currentSession_ = nullptr;
  size_t readBudget_ = 0;   // bytes that the call may still read
  int socketError_ = 0;     // errno of the socket, when the connection was lost
  bool isDrained_ = false;  // the last recv returned less than requested
  bool hasEnded_ = false;   // the last recv returned the end
};

}  // namespace server

#endif  // SPRITES_TLS_H_
