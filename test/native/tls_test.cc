// Tests the server's TLS with OpenSSL's client. The test controls its bytes on the socket: whole,
// one by one, cut off, and records that the test makes.
//
//   tls_test
//   node -e "process.dlopen({exports: {}}, 'tls_test.node')"      by Node's own OpenSSL
#include "http/tls.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "expect.h"
#include "tls_client.h"

namespace {

/** Bytes that the kernel accepts from a socket; fd -1: no limit. */
struct Kernel {
  int fd = -1;
  size_t room = 0;
};
Kernel kernel;

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" ssize_t __real_send(int fd, const void* bytes, size_t length, int flags);
extern "C" ssize_t __wrap_send(int fd, const void* bytes, size_t length, int flags) {
  if (fd != kernel.fd) return __real_send(fd, bytes, length, flags);
  if (kernel.room == 0) {
    errno = EAGAIN;
    return -1;
  }
  const ssize_t sent = __real_send(fd, bytes, std::min(length, kernel.room), flags);
  if (sent > 0) kernel.room -= static_cast<size_t>(sent);
  return sent;
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

using namespace server;
using namespace server::test;
using Handshake = TlsSession::Handshake;
using namespace std::string_literals;

constexpr uint64_t kNow = 1'800'000'000;
constexpr uint64_t kHour = 3600;

/** Options of a client. */
struct ClientOptions {
  int version = TLS1_3_VERSION;
  std::string protocols = "\x08http/1.1";
  SSL_SESSION* ticket = nullptr;
  const char* ciphers = nullptr;
  const char* suite = nullptr;  // for TLS 1.3
};

std::string unhex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += digits[i] == ' ' ? 1 : 2) {
    if (digits[i] == ' ') continue;
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

RecordKeys keysOf(RecordTools* tools, uint16_t suite, std::string_view secret) {
  RecordKeys keys;
  memcpy(keys.secret.data(), secret.data(), secret.size());
  keys.secretLength = static_cast<uint8_t>(secret.size());
  EXPECT(tools->derive(suite, &keys));
  return keys;
}

/** Seals a record, and increments the sequence number. */
std::string sealed(RecordTools* tools, RecordKeys* keys, int type, std::string_view content) {
  std::string record(content.size() + RecordTools::kMinRecord, '\0');
  auto* to = reinterpret_cast<unsigned char*>(record.data());
  EXPECT(tools->seal(*keys, static_cast<RecordType>(type), content, to) == record.size());
  ++keys->sequence;
  return record;
}

/** A client and the server's session, over a socket pair. */
class SessionPair {
 public:
  explicit SessionPair(TlsContext* context, const ClientOptions& options = {}) {
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    fd_ = ends[0];
    clientFd_ = ends[1];
    session.reset(context->open(fd_));
    EXPECT(session != nullptr);
    client_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_app_data(client_, this);
    SSL_CTX_set_session_cache_mode(client_, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(client_, [](SSL* one, SSL_SESSION* ticket) {
      auto* pair = static_cast<SessionPair*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(one)));
      pair->tickets.push_back(ticket);
      return 1;
    });
    // The client must be able to offer what the server refuses.
    SSL_CTX_set_security_level(client_, 0);
    SSL_CTX_set_min_proto_version(client_, options.version);
    SSL_CTX_set_max_proto_version(client_, options.version);
    if (options.ciphers != nullptr) EXPECT(SSL_CTX_set_cipher_list(client_, options.ciphers) == 1);
    if (options.suite != nullptr) EXPECT(SSL_CTX_set_ciphersuites(client_, options.suite) == 1);
    SSL_CTX_set_keylog_callback(client_, [](const SSL* one, const char* line) {
      const std::string_view text(line);
      auto* pair = static_cast<SessionPair*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(one)));
      if (text.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) {
        pair->secret_ = unhex(text.substr(text.rfind(' ') + 1));
      }
    });
    SSL_CTX_set_msg_callback(
        client_, [](int isOurs, int, int type, const void* bytes, size_t, SSL* one, void*) {
          auto* pair = static_cast<SessionPair*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(one)));
          const bool updates = type == SSL3_RT_HANDSHAKE && *static_cast<const char*>(bytes) == 24;
          if (isOurs == 0 && updates) ++pair->keyUpdates;
        });
    ssl = SSL_new(client_);
    SSL_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (!options.protocols.empty()) {
      SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(options.protocols.data()),
                          static_cast<unsigned>(options.protocols.size()));
    }
    if (options.ticket != nullptr) EXPECT(SSL_set_session(ssl, options.ticket) == 1);
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(ssl, in_, out_);
    SSL_set_connect_state(ssl);
  }
  ~SessionPair() {
    session.reset();
    for (SSL_SESSION* ticket : tickets) SSL_SESSION_free(ticket);
    // Without this the client would mark its tickets as bad.
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
    SSL_CTX_free(client_);
    close(fd_);
    if (clientFd_ >= 0) close(clientFd_);
    // A session must leave no error in the queue for later calls.
    ERR_clear_error();
  }
  SessionPair(const SessionPair&) = delete;
  SessionPair& operator=(const SessionPair&) = delete;

  /** Returns the client's pending bytes. */
  std::string outgoing() {
    std::string bytes(BIO_ctrl_pending(out_), '\0');
    if (!bytes.empty()) BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  /** Sends bytes to the server. */
  void sendBytes(std::string_view bytes) const {
    EXPECT(::send(clientFd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size()));
  }
  void flush() { sendBytes(outgoing()); }
  /** Reads the bytes that the server has sent. */
  void receiveBytes() const {
    char bytes[65536];
    for (ssize_t got; (got = recv(clientFd_, bytes, sizeof bytes, 0)) > 0;) {
      BIO_write(in_, bytes, static_cast<int>(got));
    }
  }
  /** Runs the handshake of both sides as far as possible. */
  Handshake shakeHands() {
    Handshake state = Handshake::kWantsRead;
    for (int i = 0; i < 20 && state == Handshake::kWantsRead; ++i) {
      ERR_clear_error();
      clientResult = SSL_do_handshake(ssl);
      flush();
      state = session->handshake();
      EXPECT(ERR_peek_error() == 0);
      receiveBytes();
    }
    ERR_clear_error();
    if (clientResult != 1) clientResult = SSL_do_handshake(ssl);
    return state;
  }
  /** Sends the client's hello only. */
  void sayHello() {
    SSL_do_handshake(ssl);
    flush();
    EXPECT(session->handshake() == Handshake::kWantsRead);
  }
  void writeText(std::string_view text) {
    EXPECT(SSL_write(ssl, text.data(), static_cast<int>(text.size())) ==
           static_cast<int>(text.size()));
    flush();
  }
  /** Returns the text that the client reads; it also reads tickets. */
  std::string readText() {
    receiveBytes();
    std::string text;
    char bytes[65536];
    ERR_clear_error();
    for (int got; (got = SSL_read(ssl, bytes, sizeof bytes)) > 0;) {
      text.append(bytes, static_cast<size_t>(got));
    }
    return text;
  }
  std::string receive(size_t room = 65536) {
    std::string bytes(room, '\0');
    result = session->receive(bytes.data(), room);
    error = errno;
    EXPECT(ERR_peek_error() == 0);
    bytes.resize(result > 0 ? static_cast<size_t>(result) : 0);
    return bytes;
  }
  ssize_t send(std::string_view text) {
    const ssize_t sent = session->send(text.data(), text.size());
    error = errno;
    EXPECT(ERR_peek_error() == 0);
    return sent;
  }
  /** Sends a request and its answer. */
  void exchange() {
    writeText("request");
    EXPECT(receive() == "request" && !session->hasPending());
    EXPECT(send("answer") == 6);
    EXPECT(readText() == "answer");
  }
  void hangUp() {
    close(clientFd_);
    clientFd_ = -1;
  }
  void endHalf() const { shutdown(clientFd_, SHUT_WR); }
  int serverFd() const { return fd_; }
  /** The keys of the client's first record after the handshake. */
  RecordKeys clientKeys(RecordTools* tools) const {
    return keysOf(tools, SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl)), secret_);
  }
  /** The server's last alert, as the client has read it; 0: none. */
  int alertRead() {
    readText();
    const unsigned long last = ERR_peek_last_error();
    const int reason = ERR_GET_REASON(last);
    ERR_clear_error();
    return reason > SSL_AD_REASON_OFFSET ? reason - SSL_AD_REASON_OFFSET : 0;
  }

  std::unique_ptr<TlsSession> session;
  SSL* ssl;
  std::vector<SSL_SESSION*> tickets;
  int clientResult = 0;
  int keyUpdates = 0;  // KeyUpdates of the server
  ssize_t result = 0;
  int error = 0;

 private:
  int fd_;
  int clientFd_;
  SSL_CTX* client_;
  std::string secret_;
  BIO* in_;
  BIO* out_;
};

/** A pair whose handshake is done. */
struct ConnectedPair : SessionPair {
  explicit ConnectedPair(TlsContext* context, const ClientOptions& options = {})
      : SessionPair(context, options) {
    EXPECT(shakeHands() == Handshake::kDone);
  }
};

const Credentials& ecdsa() {
  static const Credentials identity = makeCredentials(KeyKind::kEcdsa);
  return identity;
}

const Credentials& rsa() {
  static const Credentials identity = makeCredentials(KeyKind::kRsa);
  return identity;
}

void certify(TlsContext* context, const Credentials& identity = ecdsa()) {
  EXPECT(context->setCertificate(identity.certificate, identity.key).empty());
}

/** A context with a certificate. */
struct Certified : TlsContext {
  explicit Certified(const Credentials& identity = ecdsa()) { certify(this, identity); }
};

void versionsAndKeys() {
  for (const Credentials& identity : {ecdsa(), rsa()}) {
    Certified context(identity);
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      SessionPair pair(&context, {.version = version});
      EXPECT(pair.shakeHands() == Handshake::kDone && pair.clientResult == 1);
      EXPECT(SSL_version(pair.ssl) == version && !pair.session->isResumed());
      pair.exchange();
      EXPECT(pair.session->handshake() == Handshake::kDone);
    }
    SessionPair old(&context, {.version = TLS1_1_VERSION});
    EXPECT(old.shakeHands() == Handshake::kFailed && old.clientResult != 1);
    EXPECT(old.session->handshake() == Handshake::kFailed);
    // Ciphers without forward secrecy, and without authenticated encryption, are refused.
    for (const char* cipher :
         {"AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA"}) {
      SessionPair weak(&context, {.version = TLS1_2_VERSION, .ciphers = cipher});
      EXPECT(weak.shakeHands() == Handshake::kFailed && weak.clientResult != 1);
    }
  }
}

void protocols() {
  Certified context;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const char* offer : {"\x08http/1.1", "\x02h2\x08http/1.1", ""}) {
      ConnectedPair pair(&context, {.version = version, .protocols = offer});
      const unsigned char* chosen = nullptr;
      unsigned length = 0;
      SSL_get0_alpn_selected(pair.ssl, &chosen, &length);
      EXPECT(std::string(chosen, chosen + length) == (*offer == '\0' ? "" : "http/1.1"));
      pair.exchange();
    }
    for (const char* offer : {"\x02h2", "\x08http/1.0\x08HTTP/1.1"}) {
      SessionPair pair(&context, {.version = version, .protocols = offer});
      EXPECT(pair.shakeHands() == Handshake::kFailed && pair.clientResult != 1);
      EXPECT(ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
    }
  }
}

std::string nameAtClient(SessionPair* pair) {
  X509* certificate = SSL_get1_peer_certificate(pair->ssl);
  std::string text = pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
  X509_free(certificate);
  return text;
}

void identities() {
  TlsContext context;
  EXPECT(context.open(0) == nullptr);
  EXPECT(context.validUntil() == 0);
  certify(&context);
  EXPECT(std::abs(context.validUntil() - time(nullptr) - 86400) < 60);
  ConnectedPair before(&context);

  EVP_PKEY* key = makeKey(KeyKind::kEcdsa);
  const std::string encrypted = keyPem(key, EVP_aes_128_cbc());
  EVP_PKEY_free(key);
  const Credentials& good = rsa();
  const std::string broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const struct {
    std::string certificate;
    std::string key;
    const char* wrong;
  } refused[] = {
      {"", good.key, "the certificate is not readable PEM"},
      {"nothing", good.key, "the certificate is not readable PEM"},
      {good.key, good.key, "the certificate is not readable PEM"},
      {broken, good.key, "the certificate is not readable PEM"},
      {good.certificate + broken, good.key, "a certificate of the chain is not readable PEM"},
      {good.certificate, "", "the key is not readable PEM"},
      {good.certificate, good.certificate, "the key is not readable PEM"},
      {good.certificate, encrypted, "the key is encrypted: give it without a password"},
      {good.certificate, ecdsa().key, "the key is not the certificate's"},
      {ecdsa().certificate, makeCredentials(KeyKind::kEcdsa).key,
       "the key is not the certificate's"},
  };
  for (const auto& one : refused) {
    const std::string problem = context.setCertificate(one.certificate, one.key);
    EXPECT(problem.starts_with(one.wrong));
    EXPECT(problem.find('\n') == std::string::npos && ERR_peek_error() == 0);
    SessionPair pair(&context);
    EXPECT(pair.shakeHands() == Handshake::kDone && nameAtClient(&pair) == ecdsa().certificate);
  }

  // A view without data equals an empty text.
  EXPECT(context.setCertificate({}, good.key) == context.setCertificate("", good.key));

  // The whole chain is sent; existing sessions go on.
  certify(&context, {good.certificate + "some words between\n" + ecdsa().certificate, good.key});
  SessionPair after(&context);
  EXPECT(after.shakeHands() == Handshake::kDone && nameAtClient(&after) == good.certificate);
  EXPECT(sk_X509_num(SSL_get_peer_cert_chain(after.ssl)) == 2);
  after.exchange();
  before.exchange();
}

/** Returns a ticket of the context, from a client's handshake. */
SSL_SESSION* ticketOf(TlsContext* context, int version) {
  ConnectedPair pair(context, {.version = version});
  pair.exchange();
  EXPECT(pair.tickets.size() == 1);
  SSL_SESSION* ticket = pair.tickets[0];
  pair.tickets.clear();
  EXPECT(SSL_SESSION_get_max_early_data(ticket) == 0);
  return ticket;
}

bool resumes(TlsContext* context, int version, SSL_SESSION* ticket) {
  SSL_SESSION* own = SSL_SESSION_dup(ticket);
  SessionPair pair(context, {.version = version, .ticket = own});
  SSL_SESSION_free(own);
  EXPECT(pair.shakeHands() == Handshake::kDone);
  EXPECT(pair.session->isResumed() == (SSL_session_reused(pair.ssl) == 1));
  pair.exchange();
  // A client of TLS 1.3 uses a ticket only once, and always gets another.
  EXPECT(version != TLS1_3_VERSION || pair.tickets.size() == 1);
  return pair.session->isResumed();
}

void tickets() {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Certified first;
    {
      ConnectedPair pair(&first, {.version = version});
      pair.exchange();
      for (SSL_SESSION* one : pair.tickets) EXPECT(SSL_SESSION_has_ticket(one) == 0);
    }
    EXPECT(first.rollTicketKeys(kNow) && !first.rollTicketKeys(kNow + 8 * kHour - 1));
    SSL_SESSION* ticket = ticketOf(&first, version);
    EXPECT(resumes(&first, version, ticket));
    // Another process, also with another certificate, needs the ticket keys.
    Certified second(rsa());
    second.rollTicketKeys(kNow);
    EXPECT(!resumes(&second, version, ticket));
    EXPECT(second.setTicketKeys(first.ticketKeys()));
    EXPECT(second.ticketKeys() == first.ticketKeys());
    EXPECT(resumes(&second, version, ticket));
    // The key is no longer the newest; later it is too old.
    EXPECT(second.rollTicketKeys(kNow + 8 * kHour) && second.ticketKeys() != first.ticketKeys());
    EXPECT(resumes(&second, version, ticket));
    EXPECT(second.rollTicketKeys(kNow + 23 * kHour));
    EXPECT(resumes(&second, version, ticket));
    EXPECT(second.rollTicketKeys(kNow + 24 * kHour));
    EXPECT(!resumes(&second, version, ticket));
    SSL_SESSION_free(ticket);
  }
}

void ticketKeys() {
  TlsContext context;
  const std::string none = context.ticketKeys();
  for (uint64_t hour = 0; hour < 100; ++hour) context.rollTicketKeys(kNow + hour * kHour);
  const std::string kept = context.ticketKeys();
  TlsContext other;
  EXPECT(other.setTicketKeys(kept) && other.ticketKeys() == kept);
  const size_t key = (kept.size() - none.size()) / 3;
  EXPECT(kept.size() == none.size() + 3 * key);
  const std::string_view first = std::string_view(kept).substr(none.size(), key);
  const std::string swapped = none + kept.substr(none.size() + key, key) + std::string(first);
  for (const std::string& wrong :
       {std::string(), std::string("ticket keys 2\n"), kept.substr(1),
        kept.substr(0, kept.size() - 1), kept + "x", kept + kept.substr(none.size()), swapped}) {
    EXPECT(!other.setTicketKeys(wrong) && other.ticketKeys() == kept);
  }
  // Too old keys are dropped. After the clock was set back, no key is from the future.
  EXPECT(other.rollTicketKeys(kNow + 129 * kHour));
  EXPECT(other.ticketKeys().size() == none.size() + key);
  EXPECT(other.setTicketKeys(kept) && !other.rollTicketKeys(kNow));
  EXPECT(other.ticketKeys().size() == kept.size());
  other.rollTicketKeys(kNow + 24 * kHour);
  EXPECT(other.ticketKeys().size() == none.size() + key);
}

void byteByByte() {
  Certified context;
  context.rollTicketKeys(kNow);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    SessionPair pair(&context, {.version = version});
    Handshake state = Handshake::kWantsRead;
    while (state == Handshake::kWantsRead) {
      pair.receiveBytes();
      SSL_do_handshake(pair.ssl);
      const std::string bytes = pair.outgoing();
      EXPECT(!bytes.empty());
      for (const char byte : bytes) {
        EXPECT(state == Handshake::kWantsRead);
        pair.sendBytes({&byte, 1});
        state = pair.session->handshake();
      }
    }
    EXPECT(state == Handshake::kDone && pair.session->hasPending());
    EXPECT(pair.receive().empty() && pair.error == EAGAIN && !pair.session->hasPending());
    pair.readText();
    SSL_write(pair.ssl, "abc", 3);
    const std::string record = pair.outgoing();
    EXPECT(!pair.session->isMidRecord());
    for (size_t i = 0; i + 1 < record.size(); ++i) {
      pair.sendBytes(record.substr(i, 1));
      EXPECT(pair.receive().empty() && pair.result == -1 && pair.error == EAGAIN);
      EXPECT(pair.session->isMidRecord() && !pair.session->hasPending());
    }
    pair.sendBytes(record.substr(record.size() - 1));
    EXPECT(pair.receive() == "abc" && !pair.session->isMidRecord());
  }
}

void sizes() {
  Certified context;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ConnectedPair pair(&context, {.version = version});
    pair.readText();
    for (const size_t size : {1, 2, 100, 4095, 16383, 16384, 16385, 33000, 70000}) {
      std::string text(size, 'x');
      for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 >> 3);
      for (const size_t room : {size_t{1000}, size_t{65536}}) {
        pair.writeText(text);
        std::string got;
        do {
          got += pair.receive(room);
          // Bytes that did not fit the room have no event, except those in the kernel's buffer.
          int left = 0;
          const bool more = recv(pair.serverFd(), &left, 1, MSG_PEEK) == 1;
          EXPECT(pair.result > 0 || (pair.error == EAGAIN && !pair.session->hasPending() && !more));
          EXPECT(pair.session->hasPending() || more || got.size() == size);
        } while (got.size() < size);
        EXPECT(got == text && !pair.session->isMidRecord());
      }
      EXPECT(pair.send(text) == static_cast<ssize_t>(size));
      EXPECT(pair.readText() == text);
    }
    // Records without content do not end the connection.
    for (int i = 0; i < 5; ++i) SSL_write(pair.ssl, "", 0);
    pair.exchange();
    EXPECT(pair.session->send("", 0) == 0);
  }
}

void ends() {
  Certified context;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    {
      // close_notify in one segment with a request: first the request is read, then the end, then
      // the answer is sent.
      ConnectedPair pair(&context, {.version = version});
      SSL_write(pair.ssl, "last", 4);
      SSL_shutdown(pair.ssl);
      pair.flush();
      EXPECT(pair.receive() == "last" && pair.session->hasPending());
      EXPECT(pair.receive().empty() && pair.result == 0 && pair.session->hasPending());
      EXPECT(pair.receive().empty() && pair.result == 0);
      EXPECT(pair.send("answer") == 6);
      pair.session->endOurHalf();
      EXPECT(ERR_peek_error() == 0);
      EXPECT(pair.send("more") == -1);
      EXPECT(pair.readText() == "answer" &&
             SSL_get_shutdown(pair.ssl) == (SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN));
    }
    {
      // FIN without close_notify, between records and within one.
      for (const size_t cut : {0, 3, 10}) {
        ConnectedPair pair(&context, {.version = version});
        SSL_write(pair.ssl, "last", 4);
        const std::string record = pair.outgoing();
        pair.sendBytes(record + record.substr(0, cut));
        pair.endHalf();
        EXPECT(pair.receive() == "last");
        EXPECT(pair.receive().empty() && pair.result == 0);
        EXPECT(pair.send("answer") == 6 && pair.readText() == "answer");
      }
    }
    {
      // The peer is gone: there is no SIGPIPE, which would end this program.
      ConnectedPair pair(&context, {.version = version});
      pair.hangUp();
      EXPECT(pair.send("answer") == -1 && pair.error == EPIPE);
      EXPECT(pair.send("answer") == -1 && pair.receive().empty() && pair.result == -1);
      pair.session->endOurHalf();
    }
    {
      // Bytes that are not a record, and a changed record.
      for (const bool changed : {false, true}) {
        ConnectedPair pair(&context, {.version = version});
        SSL_write(pair.ssl, "text", 4);
        std::string record = pair.outgoing();
        record.back() = static_cast<char>(record.back() ^ 1);
        pair.sendBytes(changed ? record : std::string("GET / HTTP/1.1\r\n\r\n"));
        EXPECT(pair.receive().empty() && pair.result == -1 && pair.error == ECONNRESET);
        EXPECT(pair.readText().empty() && SSL_get_error(pair.ssl, -1) == SSL_ERROR_SSL);
      }
    }
    {
      // In the middle of the handshake.
      SessionPair pair(&context, {.version = version});
      pair.sayHello();
      EXPECT(pair.receive().empty() && pair.result == -1 && pair.send("x") == -1);
      pair.session->endOurHalf();
      pair.endHalf();
      EXPECT(pair.session->handshake() == Handshake::kFailed);
    }
    {
      // The peer is gone without reading: the socket is reset.
      SessionPair pair(&context, {.version = version});
      pair.sayHello();
      pair.hangUp();
      EXPECT(pair.session->handshake() == Handshake::kFailed && errno == ECONNRESET);
    }
  }
}

void renegotiation() {
  Certified context;
  ConnectedPair pair(&context, {.version = TLS1_2_VERSION});
  pair.exchange();
  EXPECT(SSL_renegotiate(pair.ssl) == 1);
  SSL_do_handshake(pair.ssl);
  pair.flush();
  EXPECT(pair.receive().empty() && pair.result == -1 && pair.error == ECONNRESET);
  EXPECT(pair.send("x") == -1);
}

constexpr const char* kSuites[] = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
                                   "TLS_CHACHA20_POLY1305_SHA256"};

std::string randomText(std::mt19937* random, size_t size) {
  std::string text(size, '\0');
  for (char& one : text) one = static_cast<char>((*random)());
  return text;
}

/** Compares with the vectors of RFC 8448, section 3. */
void vectors() {
  RecordTools tools;
  RecordKeys client = keysOf(
      &tools, 0x1301, unhex("9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5"));
  RecordKeys server = keysOf(
      &tools, 0x1301, unhex("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643"));
  const auto is = [&](const auto& bytes, std::string_view digits) {
    return unhex(digits) == std::string(bytes.begin(), bytes.begin() + digits.size() / 2);
  };
  EXPECT(is(client.key, "17422dda596ed5d9acd890e3c63f5051"));
  EXPECT(is(client.iv, "5b78923dee08579033e523d9"));
  EXPECT(is(server.key, "9f02283b6c9c07efc26bb9f2ac92e356"));
  EXPECT(is(server.iv, "cf782b88dd83549aadf1e984"));
  std::string text(50, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i);
  EXPECT(sealed(&tools, &client, 23, text) ==
         unhex("1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395b"
               "d54a9a20441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4"));
  EXPECT(sealed(&tools, &client, 21, "\1\0"s) ==
         unhex("1703030013c9872760655666b74d7ff1153efd6db6d0b0e3"));
  server.sequence = 1;  // after the ticket
  EXPECT(sealed(&tools, &server, 23, text) ==
         unhex("17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc"
               "602dcb501a59a8fcc49c4bf2e5f0a21c0047c2abf332540dd032e167c2955d"));
  RecordKeys none;
  for (const uint16_t suite : {0x1300, 0x1301, 0x1304, 0xc02f}) {
    EXPECT(!tools.derive(suite, &none));
  }
}

/**
 * The records that a client of TLS 1.3 may send after its handshake, and the server's alerts for
 * others.
 */
class Records {
 public:
  using Make = std::function<std::string(RecordKeys*)>;
  struct Case {
    Make make;
    std::string text;
    int result;  // of the read after the text: 0 the end, -1 lost or nothing more
    int alert;   // 0: none
  };

  explicit Records(RecordTools* tools) : tools_(*tools) {}

  std::vector<Case> cases() const {
    const std::string update = "\x18\0\0\1\0"s;
    const auto text = one(23, "text");
    const std::vector<Make> empty(32, one(23, ""));
    const auto skips = [&tools = tools_](RecordKeys* keys) {
      ++keys->sequence;
      return sealed(&tools, keys, 23, "text");
    };
    const auto again = [&tools = tools_](RecordKeys* keys) {
      const std::string record = sealed(&tools, keys, 23, "text");
      return record + record;
    };
    const auto next = [&tools = tools_](RecordKeys* keys) {
      EXPECT(tools.advanceKeys(keys));
      return std::string();
    };
    return {
        // With and without padding.
        {one(0, "text\x17"s + zeros(1)), "text", -1, 0},
        {one(0, "text\x17"s + zeros(16379)), "text", -1, 0},
        {one(0, "\x17"s + zeros(100)), "", -1, 0},
        {one(23, zeros(16384)), zeros(16384), -1, 0},
        {one(23, zeros(16385)), "", -1, 22},
        {one(0, "text\x17"s + zeros(16380)), "", -1, 22},
        {one(0, ""), "", -1, 10},
        {one(0, zeros(16384)), "", -1, 10},
        {all({text, one(0, zeros(40))}), "text", -1, 10},
        // Headers.
        {plain("GET / HTTP/1.1\r\n\r\n"), "", -1, 10},
        {plain("\x14\3\3\0\1\1"s), "", -1, 10},
        {plain("\x15\3\3\0\2\2\x28"s), "", -1, 10},
        {all({text, plain("\x16\3\3\0\1\1"s)}), "text", -1, 10},
        {plain("\x17\3\3\x41\1"s), "", -1, 22},
        {plain("\x17\3\3\0\0"s), "", -1, 20},
        {plain("\x17\3\3\0\x0f"s + zeros(15)), "", -1, 20},
        {plain("\x17\3\3\0\x10"s + zeros(16)), "", -1, 20},
        {plain("\x17\3\3\x41\0"s + zeros(16640)), "", -1, 20},
        // Changed, dropped and repeated records.
        {changed(1, 1), "", -1, 20},
        {changed(5, 1), "", -1, 20},
        {changed(9, 128), "", -1, 20},
        {changed(25, 1), "", -1, 20},
        {skips, "", -1, 20},
        {again, "text", -1, 20},
        {all({text, next, text}), "text", -1, 20},
        // Types.
        {one(20, "\1"), "", -1, 10},
        {one(24, "text"), "", -1, 10},
        {one(255, "text"), "", -1, 10},
        // Empty records, some and too many.
        {all({all(empty), text, all(empty), text}), "texttext", -1, 0},
        {all({all(empty), one(23, ""), text}), "", -1, 10},
        {all({all(empty), one(0, "\x17"s + zeros(9))}), "", -1, 10},
        // Alerts.
        {one(21, "\1\0"s), "", 0, 0},
        {one(21, "\2\0"s), "", 0, 0},
        {all({text, one(21, "\1\0"s), plain("GET /")}), "text", 0, 0},
        {all({one(21, "\1\x5a"), text, one(21, "\1\0"s)}), "text", 0, 0},
        {all(std::vector<Make>(33, one(21, "\1\x5a"))), "", -1, 10},
        {all({text, one(21, "\2\x28"), text}), "text", -1, -1},
        {one(21, "\1\x28"), "", -1, -1},
        {one(21, ""), "", -1, 50},
        {one(21, "\1"), "", -1, 50},
        {one(21, "\1\0\0"s), "", -1, 50},
        // KeyUpdate, whole, padded and in parts.
        {all({text, one(22, update), next, text}), "texttext", -1, 0},
        {all({one(22, update), text}), "", -1, 20},
        {all({one(0, update + "\x16" + zeros(77)), next, text}), "text", -1, 0},
        {all({one(22, "\x18"), one(22, zeros(2)), one(22, "\1"), one(22, "\1"), next, text}),
         "text", -1, 0},
        {all({one(22, "\x18\0"s), one(22, "\0\1\0"s), next, text}), "text", -1, 0},
        {all({one(22, "\x18\0"s), text}), "", -1, 10},
        {all({one(22, "\x18\0"s), one(21, "\1\0"s)}), "", -1, 10},
        {one(22, ""), "", -1, 10},
        {all({one(22, "\x18\0"s), one(22, "")}), "", -1, 10},
        {one(22, update + "\x18"), "", -1, 10},
        {one(22, "\x18\0\0\1\2"s), "", -1, 47},
        {one(22, "\x18\0\0\2\0"s), "", -1, 50},
        {one(22, "\x18\1"s), "", -1, 50},
        // Other messages of the handshake: a hello, a certificate, an end.
        {one(22, "\1\0\0\0"s), "", -1, 10},
        {one(22, "\x0b\0\0\0"s), "", -1, 10},
        {one(22, "\x14\0\0\x20"s + zeros(32)), "", -1, 10},
    };
  }

 private:
  static std::string zeros(size_t count) { return std::string(count, '\0'); }
  Make one(int type, const std::string& content) const {
    return [&tools = tools_, type, content](RecordKeys* keys) {
      return sealed(&tools, keys, type, content);
    };
  }
  static Make all(const std::vector<Make>& makes) {
    return [makes](RecordKeys* keys) {
      std::string bytes;
      for (const Make& make : makes) bytes += make(keys);
      return bytes;
    };
  }
  static Make plain(const std::string& bytes) {
    return [bytes](RecordKeys*) { return bytes; };
  }
  Make changed(size_t at, int by) const {
    return [&tools = tools_, at, by](RecordKeys* keys) {
      std::string record = sealed(&tools, keys, 23, "text");
      record[at] = static_cast<char>(record[at] ^ by);
      return record;
    };
  }

  RecordTools& tools_;
};

void records() {
  Certified context;
  context.rollTicketKeys(kNow);
  RecordTools tools;
  for (const char* suite : kSuites) {
    for (const auto& each : Records(&tools).cases()) {
      // At once, cut in two, and one by one.
      for (const size_t piece : {size_t{100'000}, size_t{0}, size_t{1}}) {
        ConnectedPair pair(&context, {.suite = suite});
        RecordKeys keys = pair.clientKeys(&tools);
        const std::string bytes = each.make(&keys);
        if (piece == 1 && bytes.size() > 300) continue;
        const size_t length = piece == 0 ? bytes.size() / 2 + 1 : piece;
        std::string received;
        for (size_t at = 0; at < bytes.size(); at += length) {
          pair.sendBytes(std::string_view(bytes).substr(at, length));
          received += pair.receive();
        }
        while (pair.result > 0 && pair.session->hasPending()) received += pair.receive();
        EXPECT(received == each.text);
        EXPECT(pair.receive().empty() && pair.result == each.result);
        EXPECT(pair.result == 0 || pair.error == (each.alert == 0 ? EAGAIN : ECONNRESET));
        EXPECT(!pair.session->isMidRecord());
        EXPECT(pair.session->hasPending() == (pair.result == 0 || pair.error != EAGAIN));
        if (each.alert == 0) {
          EXPECT(pair.send("answer") == 6 && pair.readText() == "answer");
        } else {
          EXPECT(pair.send("answer") == -1);
          pair.session->endOurHalf();
          EXPECT(pair.alertRead() == std::max(each.alert, 0));
        }
      }
    }
  }
}

/**
 * The end of the handshake, with the bytes that may follow in the same segment, cut at every byte.
 */
void handOver() {
  Certified context;
  context.rollTicketKeys(kNow);
  size_t length = 1;
  for (size_t cut = 0; cut <= length; ++cut) {
    SessionPair pair(&context);
    pair.sayHello();
    pair.receiveBytes();
    EXPECT(SSL_do_handshake(pair.ssl) == 1);
    SSL_write(pair.ssl, "early", 5);
    SSL_key_update(pair.ssl, SSL_KEY_UPDATE_REQUESTED);
    SSL_write(pair.ssl, " bird", 5);
    const std::string bytes = pair.outgoing();
    length = bytes.size();
    std::string received;
    for (const std::string& part : {bytes.substr(0, cut), bytes.substr(cut)}) {
      pair.sendBytes(part);
      if (pair.session->handshake() == Handshake::kDone) received += pair.receive();
    }
    EXPECT(received == "early bird" && pair.session->handshake() == Handshake::kDone);
    EXPECT(pair.send("answer") == 6 && pair.readText() == "answer");
    EXPECT(pair.tickets.size() == 1 && pair.keyUpdates == 1);
    pair.exchange();
  }
}

/** The kernel accepts a number of the server's bytes, then none until it has room. */
void stalls() {
  Certified context;
  context.rollTicketKeys(kNow);
  for (size_t room = 0; room < 300; ++room) {
    SessionPair pair(&context, {.suite = kSuites[room % 3]});
    // Stops in the middle of the ticket.
    pair.sayHello();
    pair.receiveBytes();
    EXPECT(SSL_do_handshake(pair.ssl) == 1);
    pair.flush();
    kernel = {pair.serverFd(), room};
    const Handshake state = pair.session->handshake();
    EXPECT(state == Handshake::kDone || state == Handshake::kWantsWrite);
    EXPECT(room < 200 ? state == Handshake::kWantsWrite : room < 280 || state == Handshake::kDone);
    kernel = {};
    EXPECT(pair.session->handshake() == Handshake::kDone);
    EXPECT(pair.send("answer") == 6 && pair.readText() == "answer" && pair.tickets.size() == 1);
    // Stops in the middle of a KeyUpdate of 27 bytes, or of the record of 122 bytes after it.
    SSL_key_update(pair.ssl, SSL_KEY_UPDATE_REQUESTED);
    pair.writeText("request");
    EXPECT(pair.receive() == "request");
    const std::string text(100, 'x');
    kernel = {pair.serverFd(), room};
    const ssize_t sent = pair.send(text);
    EXPECT(sent == (room < 149 ? 0 : 100));
    EXPECT(pair.readText() == text.substr(0, static_cast<size_t>(sent)));
    if (room < 149 && room % 2 == 0) {
      // close_notify is sent only between two records.
      kernel = {};
      pair.session->endOurHalf();
      const bool between = room == 0;
      EXPECT(pair.readText().empty() && pair.send(text) == -1);
      EXPECT(SSL_get_shutdown(pair.ssl) == (between ? SSL_RECEIVED_SHUTDOWN : 0));
      continue;
    }
    // The server reads meanwhile, and the client asks for a further KeyUpdate.
    SSL_key_update(pair.ssl, SSL_KEY_UPDATE_REQUESTED);
    pair.writeText("more");
    EXPECT(pair.receive() == "more");
    const std::string rest = text.substr(static_cast<size_t>(sent)) + "yz";
    kernel = {pair.serverFd(), 1};
    EXPECT(room == 148 || pair.send(rest) == 0);
    kernel = {};
    const ssize_t second = pair.send(rest);
    EXPECT(room == 148 || second == static_cast<ssize_t>(rest.size()));
    EXPECT(pair.readText() == rest.substr(0, static_cast<size_t>(second)));
    pair.exchange();
    EXPECT(pair.keyUpdates == (room < 27 ? 1 : 2));
    // Fewer bytes than those of the record that the kernel has accepted in part.
    kernel = {pair.serverFd(), 50};
    EXPECT(pair.send(text) == 0);
    kernel = {};
    EXPECT(pair.send("x") == -1 && pair.error == EINVAL && pair.send(text) == -1);
  }
}

/**
 * Both sides send texts in random pieces, while keys change: with OpenSSL's session (TLS 1.2) and
 * with TlsRecords (1.3).
 */
void exchanges() {
  constexpr size_t kSize = 1 << 20;
  for (unsigned seed = 0; seed < 8; ++seed) {
    TlsContext context(10 + seed);
    certify(&context);
    context.rollTicketKeys(kNow);
    std::mt19937 random(seed);
    const auto below = [&](size_t most) { return random() % most; };
    const auto length = [&](size_t left) {
      const size_t most = below(3) == 0 ? 60'000 : below(2) == 0 ? 3000 : 30;
      return std::min(left, 1 + below(most));
    };
    const int version = seed % 4 == 3 ? TLS1_2_VERSION : TLS1_3_VERSION;
    ConnectedPair pair(&context, {.version = version, .suite = kSuites[seed % 4 % 3]});
    const std::string up = randomText(&random, kSize);
    const std::string down = randomText(&random, kSize);
    std::string unsentBytes;  // bytes of the client that are not sent yet
    std::string atServer;
    std::string atClient;
    size_t writtenBytes = 0;
    size_t sentBytes = 0;
    size_t atLeast = 0;
    int updates = 0;
    while (atServer.size() < kSize || atClient.size() < kSize) {
      switch (below(8)) {
        case 0:
        case 1: {
          if (writtenBytes == kSize || writtenBytes - atServer.size() > 80'000) break;
          const size_t size = length(kSize - writtenBytes);
          EXPECT(SSL_write(pair.ssl, up.data() + writtenBytes, static_cast<int>(size)) ==
                 static_cast<int>(size));
          writtenBytes += size;
          break;
        }
        case 2:
          unsentBytes += pair.outgoing();
          if (!unsentBytes.empty()) {
            const size_t size = length(unsentBytes.size());
            pair.sendBytes(std::string_view(unsentBytes).substr(0, size));
            unsentBytes.erase(0, size);
          }
          break;
        case 3:
        case 4:
          atServer += pair.receive(length(70'000));
          EXPECT(pair.result > 0 || pair.error == EAGAIN);
          break;
        case 5: {
          if (sentBytes == kSize) break;
          kernel = {pair.serverFd(), below(4) == 0 ? SIZE_MAX : below(40'000)};
          const size_t size = std::max(atLeast, length(kSize - sentBytes));
          const ssize_t now = pair.send(std::string(down, sentBytes, size));
          kernel = {};
          EXPECT(now >= 0);
          sentBytes += static_cast<size_t>(now);
          atLeast = size - static_cast<size_t>(now);
          break;
        }
        case 6:
          atClient += pair.readText();
          break;
        case 7:
          if (version == TLS1_2_VERSION || updates == 30 || below(8) > 0) break;
          EXPECT(SSL_key_update(pair.ssl, static_cast<int>(below(2))) == 1);
          EXPECT(SSL_do_handshake(pair.ssl) == 1);
          ++updates;
          break;
      }
    }
    EXPECT(atServer == up && atClient == down && !pair.session->isMidRecord());
    EXPECT(version == TLS1_2_VERSION ? pair.keyUpdates == 0 : pair.keyUpdates > 0 && updates > 0);
    pair.exchange();
  }
}

void keyUpdates() {
  {
    // All KeyUpdates that a client requests are answered by one, up to a bound.
    Certified context;
    for (const int asks : {SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED}) {
      ConnectedPair pair(&context);
      for (int i = 0; i < 32; ++i) {
        EXPECT(SSL_key_update(pair.ssl, asks) == 1);
        pair.writeText("x");
      }
      EXPECT(pair.receive() == std::string(32, 'x') && pair.readText().empty() &&
             pair.keyUpdates == 0);
      EXPECT(pair.send("answer") == 6 && pair.readText() == "answer");
      EXPECT(pair.keyUpdates == (asks == SSL_KEY_UPDATE_REQUESTED ? 1 : 0));
      pair.exchange();
      EXPECT(SSL_key_update(pair.ssl, asks) == 1);
      pair.writeText("text");
      EXPECT(pair.receive().empty() && pair.result == -1 && pair.error == ECONNRESET);
      EXPECT(pair.alertRead() == 10);
    }
  }
  // A key of the server is for four records: the ticket and three more; then comes the KeyUpdate.
  for (const char* suite : kSuites) {
    TlsContext context(4);
    certify(&context);
    context.rollTicketKeys(kNow);
    ConnectedPair pair(&context, {.suite = suite});
    for (int i = 1; i <= 40; ++i) {
      pair.exchange();
      EXPECT(pair.keyUpdates == i / 4);
    }
  }
}

/** A destroyed session leaves none of its keys in memory. */
void wipes() {
  alignas(TlsRecords) unsigned char memory[sizeof(TlsRecords)];
  RecordTools tools;
  auto* records = new (memory) TlsRecords;
  const std::string secret(64, 'a');
  for (const char* label : {"CLIENT_TRAFFIC_SECRET_0 ", "SERVER_TRAFFIC_SECRET_0 "}) {
    EXPECT(!records->deriveKeys(tools, 0x1301));
    records->storeSecret(label + std::string(64, '0') + " " + secret);
  }
  records->storeSecret("EXPORTER_SECRET " + std::string(64, '0') + " " + std::string(64, 'b'));
  EXPECT(!records->deriveKeys(tools, 0x1302) && records->deriveKeys(tools, 0x1301));
  RecordKeys keys = keysOf(&tools, 0x1301, std::string(32, '\xaa'));
  const auto find = [&](const unsigned char* bytes, size_t length) {
    return memmem(static_cast<unsigned char*>(memory), sizeof memory, bytes, length) != nullptr;
  };
  EXPECT(find(keys.secret.data(), 32) && find(keys.key.data(), 16) && find(keys.iv.data(), 12));
  records->~TlsRecords();
  asm volatile("" ::"r"(memory) : "memory");
  EXPECT(!find(keys.secret.data(), 4) && !find(keys.key.data(), 4) && !find(keys.iv.data(), 4));
}

void strangers() {
  Certified context;
  for (const char* text : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff"}) {
    SessionPair pair(&context);
    pair.sendBytes(text);
    EXPECT(pair.session->handshake() == Handshake::kFailed && ERR_peek_error() == 0);
    // An error of one session does not affect the next one.
    ConnectedPair next(&context);
    next.exchange();
  }
  // An endless hello: records of a handshake message of 120,000 bytes.
  SessionPair pair(&context);
  const std::string body(16000, '\0');
  std::string record = "\x16\x03\x01\x3e\x80";
  record[4] = '\x80';
  std::string first = body;
  first[0] = 1;
  first[1] = 1;
  Handshake state = Handshake::kWantsRead;
  size_t put = 0;
  for (int i = 0; i < 8 && state == Handshake::kWantsRead; ++i) {
    const std::string all = record + (i == 0 ? first : body);
    for (size_t at = 0; at < all.size() && state == Handshake::kWantsRead; at += 1000) {
      const std::string part = all.substr(at, 1000);
      pair.sendBytes(part);
      put += part.size();
      state = pair.session->handshake();
    }
  }
  EXPECT(state == Handshake::kFailed && put <= TlsSession::kHandshakeBytes + 1000);
}

#ifdef SPRITES_IN_NODE
/** An idle session of TLS 1.3 has freed OpenSSL's session. */
void memory() {
  constexpr size_t kSessions = 500;
  Certified context;
  context.rollTicketKeys(kNow);
  std::vector<std::unique_ptr<TlsSession>> idle;
  idle.reserve(2 * kSessions);
  const auto heapOfEach = [&](int version) {
    const size_t before = mallinfo2().uordblks;
    for (size_t i = 0; i < kSessions; ++i) {
      ConnectedPair pair(&context, {.version = version});
      pair.exchange();
      idle.push_back(std::move(pair.session));
    }
    return (mallinfo2().uordblks - before) / kSessions;
  };
  // The first sessions also load things that belong to no session.
  heapOfEach(TLS1_3_VERSION);
  idle.clear();
  const size_t each = heapOfEach(TLS1_3_VERSION);
  printf("tls: %s: an idle session keeps %zu bytes of heap by TLS 1.3, %zu by 1.2\n",
         OpenSSL_version(OPENSSL_VERSION), each, heapOfEach(TLS1_2_VERSION));
  EXPECT(each < 400);
}
#endif

int run() {
  versionsAndKeys();
  protocols();
  identities();
  tickets();
  ticketKeys();
  byteByByte();
  sizes();
  ends();
  renegotiation();
  vectors();
  records();
  handOver();
  stalls();
  exchanges();
  keyUpdates();
  wipes();
  strangers();
  printf("tls: versions, protocols, identities, tickets, records, ends and strangers\n");
  return 0;
}

}  // namespace

#ifdef SPRITES_IN_NODE
extern "C" void* napi_register_module_v1(void* /*env*/, void* exports) {
  run();
  memory();
  return exports;
}
#else
int main() { return run(); }
#endif
