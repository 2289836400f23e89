// TLS 1.2 and 1.3 for the connections of a port, by the OpenSSL of the Node that runs the server.
//
// An idle session of TLS 1.3 costs 272 bytes: OpenSSL's SSL object does the handshake and goes, the
// records behind are tls_records.h's. One of TLS 1.2 keeps it, without buffers: 13.3 kB by OpenSSL
// 3.0, 21.1 by 3.5 (make -C test/native tls-in-node). One BIO serves all sessions of a context.
// Nothing here knows of events or of HTTP: a session reads and writes a non-blocking socket as
// recv(2) and send(2) do, and says what it waits for.
//
// A context and its sessions belong to one thread; several threads that serve one port have a
// context each and share the ticket keys. A context outlives its sessions.
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

/** The TLS of one connection, the server's side of it. Does not close the socket. */
class TlsSession {
 public:
  enum class Handshake {
    kDone,
    kReads,   // waits for input
    kWrites,  // waits for room in the kernel
    kFailed,  // the client has been told why, where that could be; the caller closes the connection
  };

  /** The most that a client may send before its handshake is done. A usual one sends below 4 kB. */
  static constexpr uint32_t kHandshakeBytes = 24 * 1024;

  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /**
   * Goes on with the handshake as far as the socket allows. To be called until it is done; then
   * `receive` is to be called at once, since what came behind the handshake may be here already.
   */
  Handshake handshake();

  /**
   * As recv(2): the bytes read, 0 when the client has ended its half (by close_notify or by FIN),
   * or -1 with errno: EAGAIN when there is nothing for now, ECONNRESET when the connection is lost.
   * After EAGAIN the next input is announced by the socket. There must be room.
   */
  ssize_t receive(char* to, size_t room);

  /**
   * Whether `receive` has more to give that no event will announce: since it stopped because its
   * room was full, or the end.
   */
  bool pending() const { return pending_; }

  /**
   * Whether some 17 kB may be held: a part of a record has come and the rest not yet, or the room
   * of `receive` was too small for it.
   */
  bool midRecord() const;

  /**
   * As send(2): the bytes taken, possibly fewer than given; 0 when the kernel has no room; -1 with
   * errno when the connection is lost. After 0, or fewer than given, the next call has the same
   * bytes at the front that were not taken, at least as many, at the same place or another: the
   * kernel may have a part of their record.
   */
  ssize_t send(const char* bytes, size_t length);

  /** Says that nothing more comes from here (close_notify), where the kernel has room for it. */
  void endOurHalf();

  /** Whether the handshake was shortened by a ticket. */
  bool resumed() const { return resumed_; }

 private:
  friend class TlsContext;
  friend struct TlsCallbacks;
  class Call;

  TlsSession(TlsContext* context, ssl_st* ssl, int fd) : context_(context), ssl_(ssl), fd_(fd) {}
  ssize_t lost();
  bool handOver();

  TlsContext* context_;
  ssl_st* ssl_;         // nullptr once the handshake of TLS 1.3 is done
  TlsRecords records_;  // from then on
  int fd_;
  uint16_t handshakeBytes_ = 0;
  bool done_ : 1 = false;
  bool failed_ : 1 = false;
  bool pending_ : 1 = false;
  bool resumed_ : 1 = false;
};

/** What the sessions of a port share: certificate and key, and the keys of their tickets. */
class TlsContext {
 public:
  /** Seconds that a ticket key encrypts, and that it decrypts; a ticket is good for the rest. */
  static constexpr uint64_t kNewTicketKeyAfter = 8 * 3600;
  static constexpr uint64_t kTicketKeyEnds = 24 * 3600;

  /**
   * @param recordsAKey records that a session of TLS 1.3 sends before it changes its key
   * @throws std::bad_alloc
   */
  explicit TlsContext(uint64_t recordsAKey = RecordTools::kRecordsAKey);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /**
   * Takes the certificate with its chain, and its key, both PEM, for the handshakes from now on;
   * sessions that exist keep theirs.
   *
   * @returns what is wrong, in words, or an empty text; when something is, nothing has changed
   */
  std::string take(std::string_view certificate, std::string_view key);

  /** When the certificate ends, in seconds since 1970; 0 without one. */
  int64_t validUntil() const { return validUntil_; }

  /**
   * Makes a new ticket key when there is none or the newest is too old, and drops those that no
   * ticket needs any more. To be called once a minute or so; until the first call no session gets
   * a ticket.
   *
   * @returns whether `ticketKeys` has changed
   */
  bool rollTicketKeys(uint64_t nowSeconds);

  /** The ticket keys, to be kept, and to be kept secret. */
  std::string ticketKeys() const;

  /**
   * Takes what `ticketKeys` gave, instead of the keys there are; `rollTicketKeys` drops those that
   * are too old.
   *
   * @returns whether it was that; when not, nothing has changed
   */
  bool takeTicketKeys(std::string_view bytes);

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
    uint64_t madeAt;  // seconds since 1970
  };
  /** As many as can be of use at once. */
  static constexpr size_t kTicketKeys = kTicketKeyEnds / kNewTicketKeyAfter + 1;

  std::unique_ptr<RecordTools> tools_;
  bio_method_st* method_ = nullptr;
  bio_st* bio_ = nullptr;
  ssl_ctx_st* identity_ = nullptr;
  int64_t validUntil_ = 0;
  std::vector<TicketKey> ticketKeys_;  // the newest first

  // The session under way, for the BIO: nothing of it is left when a call has returned.
  TlsSession* current_ = nullptr;
  size_t budget_ = 0;     // how much the call may still read
  int error_ = 0;         // errno of the socket, when it was lost
  bool drained_ = false;  // the last recv gave less than it was asked for
  bool ended_ = false;    // the last recv gave the end
};

}  // namespace server

#endif  // SPRITES_TLS_H_
