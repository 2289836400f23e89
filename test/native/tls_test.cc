// The server's TLS against OpenSSL's client, whose bytes go over a socket as the test wants them
// to: whole, one by one, cut off.
//
//   tls_test
//   node -e "process.dlopen({exports: {}}, 'tls_test.node')"      by Node's own OpenSSL
#include "http/tls.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "expect.h"
#include "tls_client.h"

namespace {

using namespace server;
using namespace server::test;
using Handshake = TlsSession::Handshake;

constexpr uint64_t kNow = 1'800'000'000;
constexpr uint64_t kHour = 3600;

/** What a client asks for. */
struct Wish {
  int version = TLS1_3_VERSION;
  std::string protocols = "\x08http/1.1";
  SSL_SESSION* ticket = nullptr;
  const char* ciphers = nullptr;
};

/** A client and the server's session, over a pair of sockets. */
class Talk {
 public:
  explicit Talk(TlsContext* context, const Wish& wish = {}) {
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
      auto* talk = static_cast<Talk*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(one)));
      talk->tickets.push_back(ticket);
      return 1;
    });
    // The client offers what the server is to refuse.
    SSL_CTX_set_security_level(client_, 0);
    SSL_CTX_set_min_proto_version(client_, wish.version);
    SSL_CTX_set_max_proto_version(client_, wish.version);
    if (wish.ciphers != nullptr) EXPECT(SSL_CTX_set_cipher_list(client_, wish.ciphers) == 1);
    ssl = SSL_new(client_);
    SSL_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (!wish.protocols.empty()) {
      SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(wish.protocols.data()),
                          static_cast<unsigned>(wish.protocols.size()));
    }
    if (wish.ticket != nullptr) EXPECT(SSL_set_session(ssl, wish.ticket) == 1);
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(ssl, in_, out_);
    SSL_set_connect_state(ssl);
  }
  ~Talk() {
    session.reset();
    for (SSL_SESSION* ticket : tickets) SSL_SESSION_free(ticket);
    // Else the client would take its tickets for bad ones.
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
    SSL_CTX_free(client_);
    close(fd_);
    if (clientFd_ >= 0) close(clientFd_);
    // No call of a session leaves an error for the next one that looks.
    ERR_clear_error();
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  /** What the client has to send and has not sent. */
  std::string outgoing() {
    std::string bytes(BIO_ctrl_pending(out_), '\0');
    if (!bytes.empty()) BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  /** Puts bytes on the way to the server. */
  void put(std::string_view bytes) const {
    EXPECT(::send(clientFd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size()));
  }
  void flush() { put(outgoing()); }
  /** Takes what the server has sent. */
  void fill() const {
    char bytes[65536];
    for (ssize_t got; (got = recv(clientFd_, bytes, sizeof bytes, 0)) > 0;) {
      BIO_write(in_, bytes, static_cast<int>(got));
    }
  }
  /** Both sides go on until neither can. */
  Handshake shake() {
    Handshake state = Handshake::kReads;
    for (int i = 0; i < 20 && state == Handshake::kReads; ++i) {
      ERR_clear_error();
      clientResult = SSL_do_handshake(ssl);
      flush();
      state = session->handshake();
      EXPECT(ERR_peek_error() == 0);
      fill();
    }
    ERR_clear_error();
    if (clientResult != 1) clientResult = SSL_do_handshake(ssl);
    return state;
  }
  void say(std::string_view text) {
    EXPECT(SSL_write(ssl, text.data(), static_cast<int>(text.size())) ==
           static_cast<int>(text.size()));
    flush();
  }
  /** What the client reads of what has come, tickets included. */
  std::string hear() {
    fill();
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
  /** A request and its answer. */
  void exchange() {
    say("request");
    EXPECT(receive() == "request" && !session->pending());
    EXPECT(send("answer") == 6);
    EXPECT(hear() == "answer");
  }
  void hangUp() {
    close(clientFd_);
    clientFd_ = -1;
  }
  void endHalf() const { shutdown(clientFd_, SHUT_WR); }
  int serverFd() const { return fd_; }

  std::unique_ptr<TlsSession> session;
  SSL* ssl;
  std::vector<SSL_SESSION*> tickets;
  int clientResult = 0;
  ssize_t result = 0;
  int error = 0;

 private:
  int fd_;
  int clientFd_;
  SSL_CTX* client_;
  BIO* in_;
  BIO* out_;
};

const Identity& ecdsa() {
  static const Identity identity = makeIdentity(KeyKind::kEcdsa);
  return identity;
}

const Identity& rsa() {
  static const Identity identity = makeIdentity(KeyKind::kRsa);
  return identity;
}

void use(TlsContext* context, const Identity& identity = ecdsa()) {
  EXPECT(context->take(identity.certificate, identity.key).empty());
}

void versionsAndKeys() {
  for (const Identity& identity : {ecdsa(), rsa()}) {
    TlsContext context;
    use(&context, identity);
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      Talk talk(&context, {.version = version});
      EXPECT(talk.shake() == Handshake::kDone && talk.clientResult == 1);
      EXPECT(SSL_version(talk.ssl) == version && !talk.session->resumed());
      talk.exchange();
      EXPECT(talk.session->handshake() == Handshake::kDone);
    }
    Talk old(&context, {.version = TLS1_1_VERSION});
    EXPECT(old.shake() == Handshake::kFailed && old.clientResult != 1);
    EXPECT(old.session->handshake() == Handshake::kFailed);
    // Neither without forward secrecy nor without authenticated encryption.
    for (const char* cipher :
         {"AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA"}) {
      Talk weak(&context, {.version = TLS1_2_VERSION, .ciphers = cipher});
      EXPECT(weak.shake() == Handshake::kFailed && weak.clientResult != 1);
    }
  }
}

void protocols() {
  TlsContext context;
  use(&context);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const char* offer : {"\x08http/1.1", "\x02h2\x08http/1.1", ""}) {
      Talk talk(&context, {.version = version, .protocols = offer});
      EXPECT(talk.shake() == Handshake::kDone);
      const unsigned char* chosen = nullptr;
      unsigned length = 0;
      SSL_get0_alpn_selected(talk.ssl, &chosen, &length);
      EXPECT(std::string(chosen, chosen + length) == (*offer == '\0' ? "" : "http/1.1"));
      talk.exchange();
    }
    for (const char* offer : {"\x02h2", "\x08http/1.0\x08HTTP/1.1"}) {
      Talk talk(&context, {.version = version, .protocols = offer});
      EXPECT(talk.shake() == Handshake::kFailed && talk.clientResult != 1);
      EXPECT(ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
    }
  }
}

std::string nameAtClient(Talk* talk) {
  X509* certificate = SSL_get1_peer_certificate(talk->ssl);
  std::string text = pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
  X509_free(certificate);
  return text;
}

void identities() {
  TlsContext context;
  EXPECT(context.open(0) == nullptr);
  EXPECT(context.validUntil() == 0);
  use(&context);
  EXPECT(std::abs(context.validUntil() - time(nullptr) - 86400) < 60);
  Talk before(&context);
  EXPECT(before.shake() == Handshake::kDone);

  EVP_PKEY* key = makeKey(KeyKind::kEcdsa);
  const std::string encrypted = keyPem(key, EVP_aes_128_cbc());
  EVP_PKEY_free(key);
  const Identity& good = rsa();
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
      {ecdsa().certificate, makeIdentity(KeyKind::kEcdsa).key, "the key is not the certificate's"},
  };
  for (const auto& one : refused) {
    const std::string wrong = context.take(one.certificate, one.key);
    EXPECT(wrong.starts_with(one.wrong));
    EXPECT(wrong.find('\n') == std::string::npos && ERR_peek_error() == 0);
    Talk talk(&context);
    EXPECT(talk.shake() == Handshake::kDone && nameAtClient(&talk) == ecdsa().certificate);
  }

  // A chain is sent whole; sessions that exist go on.
  use(&context, {good.certificate + "some words between\n" + ecdsa().certificate, good.key});
  Talk after(&context);
  EXPECT(after.shake() == Handshake::kDone && nameAtClient(&after) == good.certificate);
  EXPECT(sk_X509_num(SSL_get_peer_cert_chain(after.ssl)) == 2);
  after.exchange();
  before.exchange();
}

/** Has a client get a ticket of the context. */
SSL_SESSION* ticketOf(TlsContext* context, int version) {
  Talk talk(context, {.version = version});
  EXPECT(talk.shake() == Handshake::kDone);
  talk.exchange();
  EXPECT(talk.tickets.size() == 1);
  SSL_SESSION* ticket = talk.tickets[0];
  talk.tickets.clear();
  EXPECT(SSL_SESSION_get_max_early_data(ticket) == 0);
  return ticket;
}

bool resumes(TlsContext* context, int version, SSL_SESSION* ticket) {
  SSL_SESSION* own = SSL_SESSION_dup(ticket);
  Talk talk(context, {.version = version, .ticket = own});
  SSL_SESSION_free(own);
  EXPECT(talk.shake() == Handshake::kDone);
  EXPECT(talk.session->resumed() == (SSL_session_reused(talk.ssl) == 1));
  talk.exchange();
  // A client of TLS 1.3 uses a ticket once: it always gets another.
  EXPECT(version != TLS1_3_VERSION || talk.tickets.size() == 1);
  return talk.session->resumed();
}

void tickets() {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsContext first;
    use(&first);
    {
      Talk talk(&first, {.version = version});
      EXPECT(talk.shake() == Handshake::kDone);
      talk.exchange();
      for (SSL_SESSION* one : talk.tickets) EXPECT(SSL_SESSION_has_ticket(one) == 0);
    }
    EXPECT(first.rollTicketKeys(kNow) && !first.rollTicketKeys(kNow + 8 * kHour - 1));
    SSL_SESSION* ticket = ticketOf(&first, version);
    EXPECT(resumes(&first, version, ticket));
    // Another process, or another certificate.
    TlsContext second;
    use(&second, rsa());
    second.rollTicketKeys(kNow);
    EXPECT(!resumes(&second, version, ticket));
    EXPECT(second.takeTicketKeys(first.ticketKeys(), kNow + kHour));
    EXPECT(second.ticketKeys() == first.ticketKeys());
    EXPECT(resumes(&second, version, ticket));
    // The key is no longer the newest, and then too old.
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
  const uint64_t now = kNow + 99 * kHour;
  TlsContext other;
  EXPECT(other.takeTicketKeys(kept, now) && other.ticketKeys() == kept);
  const size_t key = (kept.size() - none.size()) / 3;
  EXPECT(kept.size() == none.size() + 3 * key);
  const std::string_view first = std::string_view(kept).substr(none.size(), key);
  const std::string swapped = none + kept.substr(none.size() + key, key) + std::string(first);
  for (const std::string& wrong :
       {std::string(), std::string("ticket keys 2\n"), kept.substr(1),
        kept.substr(0, kept.size() - 1), kept + "x", kept + kept.substr(none.size()), swapped}) {
    EXPECT(!other.takeTicketKeys(wrong, now) && other.ticketKeys() == kept);
  }
  // Keys that are too old are not taken, and no key is older than now where a clock was set back.
  EXPECT(other.takeTicketKeys(kept, now + 30 * kHour) &&
         other.ticketKeys().size() == none.size() + key);
  EXPECT(other.takeTicketKeys(kept, kNow) && other.ticketKeys().size() == kept.size());
  other.rollTicketKeys(kNow + 24 * kHour);
  EXPECT(other.ticketKeys().size() == none.size() + key);
}

void byteByByte() {
  TlsContext context;
  use(&context);
  context.rollTicketKeys(kNow);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Talk talk(&context, {.version = version});
    Handshake state = Handshake::kReads;
    while (state == Handshake::kReads) {
      talk.fill();
      SSL_do_handshake(talk.ssl);
      const std::string bytes = talk.outgoing();
      EXPECT(!bytes.empty());
      for (const char byte : bytes) {
        EXPECT(state == Handshake::kReads);
        talk.put({&byte, 1});
        state = talk.session->handshake();
      }
    }
    EXPECT(state == Handshake::kDone && talk.session->pending());
    EXPECT(talk.receive().empty() && talk.error == EAGAIN && !talk.session->pending());
    talk.hear();
    SSL_write(talk.ssl, "abc", 3);
    const std::string record = talk.outgoing();
    EXPECT(!talk.session->midRecord());
    for (size_t i = 0; i + 1 < record.size(); ++i) {
      talk.put(record.substr(i, 1));
      EXPECT(talk.receive().empty() && talk.result == -1 && talk.error == EAGAIN);
      EXPECT(talk.session->midRecord() && !talk.session->pending());
    }
    talk.put(record.substr(record.size() - 1));
    EXPECT(talk.receive() == "abc" && !talk.session->midRecord());
  }
}

void requestBehindHandshake() {
  TlsContext context;
  use(&context);
  Talk talk(&context);
  SSL_do_handshake(talk.ssl);
  talk.flush();
  EXPECT(talk.session->handshake() == Handshake::kReads);
  talk.fill();
  EXPECT(SSL_do_handshake(talk.ssl) == 1);
  SSL_write(talk.ssl, "early bird", 10);
  talk.flush();
  EXPECT(talk.session->handshake() == Handshake::kDone && talk.session->pending());
  EXPECT(talk.receive() == "early bird" && !talk.session->pending());
}

void sizes() {
  TlsContext context;
  use(&context);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Talk talk(&context, {.version = version});
    EXPECT(talk.shake() == Handshake::kDone);
    talk.hear();
    for (const size_t size : {1, 2, 100, 4095, 16383, 16384, 16385, 33000, 70000}) {
      std::string text(size, 'x');
      for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 >> 3);
      for (const size_t room : {size_t{1000}, size_t{65536}}) {
        talk.say(text);
        std::string got;
        do {
          got += talk.receive(room);
          // What the room did not hold has no event, but in the kernel's buffer.
          int left = 0;
          EXPECT(talk.result > 0 || (talk.error == EAGAIN && !talk.session->pending()));
          EXPECT(talk.session->pending() || recv(talk.serverFd(), &left, 1, MSG_PEEK) == 1 ||
                 got.size() == size);
        } while (got.size() < size);
        EXPECT(got == text && !talk.session->midRecord());
      }
      EXPECT(talk.send(text) == static_cast<ssize_t>(size));
      EXPECT(talk.hear() == text);
    }
    // Records without content are no end of anything.
    for (int i = 0; i < 5; ++i) SSL_write(talk.ssl, "", 0);
    talk.exchange();
    EXPECT(talk.session->send("", 0) == 0);
  }
}

void noRoom() {
  TlsContext context;
  use(&context);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Talk talk(&context, {.version = version});
    const int small = 1;
    setsockopt(talk.serverFd(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    while (talk.session->handshake() != Handshake::kDone) {
      SSL_do_handshake(talk.ssl);
      talk.flush();
      const Handshake state = talk.session->handshake();
      EXPECT(state != Handshake::kFailed);
      talk.fill();
    }
    std::string text(300'000, 'x');
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 17 >> 5);
    std::string heard;
    size_t sent = 0;
    int refused = 0;
    while (sent < text.size()) {
      // Each time at another place, and more than the last time.
      const std::string rest = text.substr(sent, 40'000 + static_cast<size_t>(refused));
      const ssize_t now = talk.send(rest);
      EXPECT(now >= 0);
      sent += static_cast<size_t>(now);
      if (now > 0) continue;
      ++refused;
      // Reading and ending go on meanwhile.
      EXPECT(talk.receive().empty() && talk.error == EAGAIN);
      heard += talk.hear();
    }
    heard += talk.hear();
    EXPECT(heard == text && refused > 0);
    talk.exchange();
  }
}

void ends() {
  TlsContext context;
  use(&context);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    {
      // close_notify behind a request, in one: first the request, then the end, then the answer.
      Talk talk(&context, {.version = version});
      EXPECT(talk.shake() == Handshake::kDone);
      SSL_write(talk.ssl, "last", 4);
      SSL_shutdown(talk.ssl);
      talk.flush();
      EXPECT(talk.receive() == "last" && talk.session->pending());
      EXPECT(talk.receive().empty() && talk.result == 0 && !talk.session->pending());
      EXPECT(talk.receive().empty() && talk.result == 0);
      EXPECT(talk.send("answer") == 6);
      talk.session->endOurHalf();
      EXPECT(ERR_peek_error() == 0);
      EXPECT(talk.send("more") == -1);
      EXPECT(talk.hear() == "answer" &&
             SSL_get_shutdown(talk.ssl) == (SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN));
    }
    {
      // FIN without close_notify, between records and within one.
      for (const size_t cut : {0, 3, 10}) {
        Talk talk(&context, {.version = version});
        EXPECT(talk.shake() == Handshake::kDone);
        SSL_write(talk.ssl, "last", 4);
        const std::string record = talk.outgoing();
        talk.put(record + record.substr(0, cut));
        talk.endHalf();
        EXPECT(talk.receive() == "last");
        EXPECT(talk.receive().empty() && talk.result == 0);
        EXPECT(talk.send("answer") == 6 && talk.hear() == "answer");
      }
    }
    {
      // A peer that is gone: no SIGPIPE, which would end this program.
      Talk talk(&context, {.version = version});
      EXPECT(talk.shake() == Handshake::kDone);
      talk.hangUp();
      EXPECT(talk.send("answer") == -1 && talk.error == EPIPE);
      EXPECT(talk.send("answer") == -1 && talk.receive().empty() && talk.result == -1);
      talk.session->endOurHalf();
    }
    {
      // Bytes that are no record, and a record that somebody changed.
      for (const bool changed : {false, true}) {
        Talk talk(&context, {.version = version});
        EXPECT(talk.shake() == Handshake::kDone);
        SSL_write(talk.ssl, "text", 4);
        std::string record = talk.outgoing();
        record.back() = static_cast<char>(record.back() ^ 1);
        talk.put(changed ? record : std::string("GET / HTTP/1.1\r\n\r\n"));
        EXPECT(talk.receive().empty() && talk.result == -1 && talk.error == ECONNRESET);
        EXPECT(talk.hear().empty() && SSL_get_error(talk.ssl, -1) == SSL_ERROR_SSL);
      }
    }
    {
      // In the middle of the handshake.
      Talk talk(&context, {.version = version});
      SSL_do_handshake(talk.ssl);
      talk.flush();
      EXPECT(talk.session->handshake() == Handshake::kReads);
      EXPECT(talk.receive().empty() && talk.result == -1 && talk.send("x") == -1);
      talk.session->endOurHalf();
      talk.endHalf();
      EXPECT(talk.session->handshake() == Handshake::kFailed);
    }
  }
}

void reset() {
  TlsContext context;
  use(&context);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0);
  EXPECT(listen(listener, 1) == 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  EXPECT(connect(client, reinterpret_cast<sockaddr*>(&address), length) == 0);
  const int server = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
  const linger now = {1, 0};
  setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(client);
  const std::unique_ptr<TlsSession> session(context.open(server));
  EXPECT(session->handshake() == Handshake::kFailed && errno == ECONNRESET);
  close(server);
  close(listener);
}

void lateHandshakes() {
  TlsContext context;
  use(&context);
  {
    Talk talk(&context, {.version = TLS1_2_VERSION});
    EXPECT(talk.shake() == Handshake::kDone);
    talk.exchange();
    EXPECT(SSL_renegotiate(talk.ssl) == 1);
    SSL_do_handshake(talk.ssl);
    talk.flush();
    EXPECT(talk.receive().empty() && talk.result == -1 && talk.error == ECONNRESET);
    EXPECT(talk.send("x") == -1);
  }
  for (const int asks : {SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED}) {
    Talk talk(&context);
    EXPECT(talk.shake() == Handshake::kDone);
    for (int i = 0; i < 32; ++i) {
      EXPECT(SSL_key_update(talk.ssl, asks) == 1);
      talk.exchange();
    }
    EXPECT(SSL_key_update(talk.ssl, asks) == 1);
    SSL_write(talk.ssl, "text", 4);
    talk.flush();
    talk.receive();
    EXPECT(talk.receive().empty() && talk.result == -1);
  }
}

void strangers() {
  TlsContext context;
  use(&context);
  for (const char* text : {"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff"}) {
    Talk talk(&context);
    talk.put(text);
    EXPECT(talk.session->handshake() == Handshake::kFailed && ERR_peek_error() == 0);
    // Its error is not the next one's.
    Talk next(&context);
    EXPECT(next.shake() == Handshake::kDone);
    next.exchange();
  }
  // A hello that never ends: records of a handshake message of 120,000 bytes.
  Talk talk(&context);
  const std::string body(16000, '\0');
  std::string record = "\x16\x03\x01\x3e\x80";
  record[4] = '\x80';
  std::string first = body;
  first[0] = 1;
  first[1] = 1;
  Handshake state = Handshake::kReads;
  size_t put = 0;
  for (int i = 0; i < 8 && state == Handshake::kReads; ++i) {
    const std::string all = record + (i == 0 ? first : body);
    for (size_t at = 0; at < all.size() && state == Handshake::kReads; at += 1000) {
      const std::string part = all.substr(at, 1000);
      talk.put(part);
      put += part.size();
      state = talk.session->handshake();
    }
  }
  EXPECT(state == Handshake::kFailed && put <= TlsSession::kHandshakeBytes + 1000);
}

int run() {
  versionsAndKeys();
  protocols();
  identities();
  tickets();
  ticketKeys();
  byteByByte();
  requestBehindHandshake();
  sizes();
  noRoom();
  ends();
  reset();
  lateHandshakes();
  strangers();
  printf("tls: versions, protocols, identities, tickets, records, ends and strangers\n");
  return 0;
}

}  // namespace

#ifdef SPRITES_IN_NODE
extern "C" void* napi_register_module_v1(void* /*env*/, void* exports) {
  run();
  return exports;
}
#else
int main() { return run(); }
#endif
