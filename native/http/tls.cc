#include "http/tls.h"

// Some builds of Node come without OpenSSL's headers: then no port can have a certificate.
#if __has_include(<openssl/ssl.h>)

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

namespace server {

namespace {

/** Length of a record's header, and of its longest body (RFC 8446, 5.2; RFC 5246, 6.2.3). */
constexpr size_t kMaxRecordBytes = 5 + 16384 + 2048;

template <auto free>
struct Deleter {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;

Bio openPem(std::string_view pem) {
  if (pem.size() > INT_MAX) return nullptr;
  // The data of an empty text may be nullptr, which OpenSSL takes for a program error.
  return Bio(BIO_new_mem_buf(pem.empty() ? "" : pem.data(), static_cast<int>(pem.size())));
}

/** Refuses a request for a password, and notes it in `passwordRequested`. */
int refusePassword(char* /*to*/, int /*room*/, int /*writing*/, void* passwordRequested) {
  *static_cast<bool*>(passwordRequested) = true;
  return -1;
}

/** Returns `what` and OpenSSL's reason for the last failure, and clears the queue of errors. */
std::string withReason(const char* what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string words = what;
  if (reason != nullptr) words.append(": ").append(reason);
  ERR_clear_error();
  return words;
}

std::string useCertificate(SSL_CTX* context, std::string_view pem, int64_t* validUntil) {
  const Bio bio = openPem(pem);
  const Certificate leaf(
      bio == nullptr ? nullptr : PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr));
  if (leaf == nullptr) return withReason("the certificate is not readable PEM");
  if (SSL_CTX_use_certificate(context, leaf.get()) != 1) {
    return withReason("the certificate cannot be used");
  }
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) != 1) {
      X509_free(next);
      return withReason("a certificate of the chain cannot be used");
    }
  }
  // The end of the text is reported as an error too: the only expected one.
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    return withReason("a certificate of the chain is not readable PEM");
  }
  ERR_clear_error();
  tm end = {};
  *validUntil = ASN1_TIME_to_tm(X509_get0_notAfter(leaf.get()), &end) == 1 ? timegm(&end) : 0;
  return {};
}

std::string useKey(SSL_CTX* context, std::string_view pem) {
  const Bio bio = openPem(pem);
  bool passwordRequested = false;
  const PrivateKey key(bio == nullptr ? nullptr
                                      : PEM_read_bio_PrivateKey(bio.get(), nullptr, refusePassword,
                                                                &passwordRequested));
  if (passwordRequested) {
    ERR_clear_error();
    return "the key is encrypted: give it without a password";
  }
  if (key == nullptr) return withReason("the key is not readable PEM");
  const X509* certificate = SSL_CTX_get0_certificate(context);
  if (X509_check_private_key(certificate, key.get()) != 1) {
    ERR_clear_error();
    return "the key is not the certificate's";
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) return withReason("the key cannot be used");
  return {};
}

}  // namespace

// NOLINTBEGIN(readability-function-size): OpenSSL's arguments
/** Callbacks of OpenSSL. They do not throw. */
struct TlsCallbacks {
  static TlsContext& contextOf(BIO* bio) { return *static_cast<TlsContext*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, int room) {
    BIO_clear_retry_flags(bio);
    TlsContext& context = contextOf(bio);
    TlsSession* session = context.currentSession_;
    if (session == nullptr || session->hasFailed_) return -1;
    const size_t most = std::min(static_cast<size_t>(room), context.readBudget_);
    ssize_t got = -1;
    errno = EAGAIN;
    if (!context.isDrained_ && most > 0) {
      do {
        got = recv(session->fd_, to, most, MSG_DONTWAIT);
      } while (got < 0 && errno == EINTR);
    }
    if (got > 0) {
      context.readBudget_ -= static_cast<size_t>(got);
      context.isDrained_ = static_cast<size_t>(got) < most;
      return static_cast<int>(got);
    }
    if (got == 0) {
      context.hasEnded_ = true;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      BIO_set_retry_read(bio);
    } else {
      context.socketError_ = errno;
    }
    return static_cast<int>(got);
  }

  static int write(BIO* bio, const char* bytes, int length) {
    BIO_clear_retry_flags(bio);
    TlsContext& context = contextOf(bio);
    TlsSession* session = context.currentSession_;
    if (session == nullptr) return -1;
    ssize_t sent;
    do {
      sent = ::send(session->fd_, bytes, static_cast<size_t>(length), MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return static_cast<int>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      BIO_set_retry_write(bio);
    } else {
      context.socketError_ = errno;
    }
    return -1;
  }

  static long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
    if (command == BIO_CTRL_FLUSH) return 1;
    if (command == BIO_CTRL_EOF) return contextOf(bio).hasEnded_ ? 1 : 0;
    return 0;
  }

  /** Chooses HTTP/1.1; without a common protocol the handshake fails (RFC 7301, section 3.2). */
  static int selectProtocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* length,
                            const unsigned char* offered, unsigned int offers, void* /*none*/) {
    constexpr std::string_view kHttp = "http/1.1";
    for (unsigned int at = 0; at < offers; at += 1 + offered[at]) {
      const std::string_view one(reinterpret_cast<const char*>(offered + at + 1), offered[at]);
      if (one != kHttp) continue;
      *chosen = offered + at + 1;
      *length = offered[at];
      return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }

  /** Counts sealed records, and ends a session of TLS 1.2 whose client renegotiates. */
  static void onMessage(int isOurs, int /*version*/, int type, const void* /*bytes*/,
                        size_t /*length*/, SSL* /*ssl*/, void* context) {
    TlsSession* session = static_cast<TlsContext*>(context)->currentSession_;
    if (session == nullptr) return;
    if (isOurs != 0 && type == SSL3_RT_HEADER) session->records_.countSealed();
    if (isOurs == 0 && type == SSL3_RT_HANDSHAKE && session->isDone_) session->hasFailed_ = true;
  }

  /**
   * Stores the secret of the records after the handshake; logs it nowhere. OpenSSL has no other way
   * to get it. Its hexadecimal form costs 12 us of a handshake's 165 with 3.0, and too little to
   * measure with 3.5.
   */
  static void onKeyLog(const SSL* ssl, const char* line) {
    auto* context = static_cast<TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
    if (context->currentSession_ != nullptr) context->currentSession_->records_.storeSecret(line);
  }

  /**
   * Prepares the encryption or decryption of a ticket.
   *
   * @returns as in SSL_CTX_set_tlsext_ticket_key_evp_cb(3): 0 unknown, 1 known, 2 known and old
   */
  static int onTicketKey(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                         EVP_MAC_CTX* mac, int encrypts) {
    const auto* context = static_cast<TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
    const auto& keys = context->ticketKeys_;
    const auto key = encrypts != 0
                         ? keys.begin()
                         : std::find_if(keys.begin(), keys.end(), [name](const auto& one) {
                             return memcmp(one.name.data(), name, one.name.size()) == 0;
                           });
    if (key == keys.end()) return 0;
    if (encrypts != 0) {
      memcpy(name, key->name.data(), key->name.size());
      if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return -1;
    }
    char digest[] = "SHA256";
    auto* macKey = const_cast<unsigned char*>(key->mac.data());
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, macKey, key->mac.size()),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    if (EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key->cipher.data(), iv, encrypts) !=
            1 ||
        EVP_MAC_CTX_set_params(mac, params) != 1) {
      return -1;
    }
    if (encrypts != 0) return 1;
    // A client of TLS 1.3 uses a ticket only once: it gets another.
    return SSL_version(ssl) >= TLS1_3_VERSION || key != keys.begin() ? 2 : 1;
  }
};
// NOLINTEND(readability-function-size)

TlsContext::TlsContext(uint64_t recordsPerKey)
    : tools_(std::make_unique<RecordTools>(recordsPerKey)),
      method_(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "connection")) {
  if (method_ == nullptr) throw std::bad_alloc();
  BIO_meth_set_read(method_, TlsCallbacks::read);
  BIO_meth_set_write(method_, TlsCallbacks::write);
  BIO_meth_set_ctrl(method_, TlsCallbacks::control);
  bio_ = BIO_new(method_);
  if (bio_ == nullptr) {
    BIO_meth_free(method_);
    throw std::bad_alloc();
  }
  BIO_set_data(bio_, this);
  BIO_set_init(bio_, 1);
}

TlsContext::~TlsContext() {
  SSL_CTX_free(sslContext_);
  BIO_free(bio_);
  BIO_meth_free(method_);
  for (TicketKey& key : ticketKeys_) OPENSSL_cleanse(&key, sizeof key);
}

std::string TlsContext::setCertificate(std::string_view certificate, std::string_view key) {
  ERR_clear_error();
  const Context owner(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = owner.get();
  if (context == nullptr) return withReason("OpenSSL gives no context");
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // OpenSSL must not read the bytes after the handshake of TLS 1.3.
  SSL_CTX_set_read_ahead(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_timeout(context, kTicketKeyLifetime - kNewTicketKeyAfter);
  SSL_CTX_set_max_early_data(context, 0);
  SSL_CTX_set_alpn_select_cb(context, TlsCallbacks::selectProtocol, nullptr);
  SSL_CTX_set_msg_callback(context, TlsCallbacks::onMessage);
  SSL_CTX_set_msg_callback_arg(context, this);
  SSL_CTX_set_keylog_callback(context, TlsCallbacks::onKeyLog);
  constexpr unsigned char kName[] = "sprites";
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_session_id_context(context, kName, sizeof kName) != 1 ||
      SSL_CTX_set_tlsext_ticket_key_evp_cb(context, TlsCallbacks::onTicketKey) != 1 ||
      SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384") != 1 ||
      SSL_CTX_set_ciphersuites(context,
                               "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                               "TLS_CHACHA20_POLY1305_SHA256") != 1 ||
      SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
    return withReason("OpenSSL does not take the settings");
  }
  int64_t validUntil = 0;
  std::string problem = useCertificate(context, certificate, &validUntil);
  if (problem.empty()) problem = useKey(context, key);
  if (!problem.empty()) return problem;
  SSL_CTX_free(sslContext_);
  SSL_CTX_up_ref(context);
  sslContext_ = context;
  validUntil_ = validUntil;
  return {};
}

bool TlsContext::rollTicketKeys(uint64_t nowSeconds) {
  bool changed = false;
  // A clock that was set back does not make a key live longer.
  for (TicketKey& key : ticketKeys_) key.createdAt = std::min(key.createdAt, nowSeconds);
  while (!ticketKeys_.empty() && nowSeconds - ticketKeys_.back().createdAt >= kTicketKeyLifetime) {
    OPENSSL_cleanse(&ticketKeys_.back(), sizeof(TicketKey));
    ticketKeys_.pop_back();
    changed = true;
  }
  if (!ticketKeys_.empty() && nowSeconds - ticketKeys_.front().createdAt < kNewTicketKeyAfter) {
    return changed;
  }
  TicketKey key;
  key.createdAt = nowSeconds;
  if (RAND_bytes(key.name.data(), static_cast<int>(key.name.size())) == 1 &&
      RAND_priv_bytes(key.cipher.data(), static_cast<int>(key.cipher.size())) == 1 &&
      RAND_priv_bytes(key.mac.data(), static_cast<int>(key.mac.size())) == 1) {
    ticketKeys_.insert(ticketKeys_.begin(), key);
    changed = true;
  }
  OPENSSL_cleanse(&key, sizeof key);
  ERR_clear_error();
  return changed;
}

namespace {

constexpr std::string_view kTicketFormat = "ticket keys 1\n";

}  // namespace

std::string TlsContext::ticketKeys() const {
  std::string bytes(kTicketFormat);
  for (const TicketKey& key : ticketKeys_) {
    bytes.append(reinterpret_cast<const char*>(&key), sizeof key);
  }
  return bytes;
}

bool TlsContext::setTicketKeys(std::string_view bytes) {
  if (!bytes.starts_with(kTicketFormat)) return false;
  bytes.remove_prefix(kTicketFormat.size());
  if (bytes.size() % sizeof(TicketKey) != 0 || bytes.size() / sizeof(TicketKey) > kMaxTicketKeys) {
    return false;
  }
  std::vector<TicketKey> keys(bytes.size() / sizeof(TicketKey));
  memcpy(keys.data(), bytes.data(), bytes.size());
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i].createdAt > keys[i - 1].createdAt) return false;
  }
  std::swap(keys, ticketKeys_);
  for (TicketKey& key : keys) OPENSSL_cleanse(&key, sizeof key);
  return true;
}

TlsSession* TlsContext::open(int fd) {
  if (sslContext_ == nullptr) return nullptr;
  ERR_clear_error();
  SSL* ssl = SSL_new(sslContext_);
  auto* session = ssl == nullptr ? nullptr : new (std::nothrow) TlsSession(this, ssl, fd);
  if (session == nullptr) {
    SSL_free(ssl);
    ERR_clear_error();
    return nullptr;
  }
  // One reference for reading and one for writing. The BIO finds the session by `currentSession_`.
  BIO_up_ref(bio_);
  BIO_up_ref(bio_);
  SSL_set0_rbio(ssl, bio_);
  SSL_set0_wbio(ssl, bio_);
  SSL_set_accept_state(ssl);
  return session;
}

/** Makes a session the current one during a call, and clears OpenSSL's errors before it. */
class TlsSession::ScopedCall {
 public:
  ScopedCall(TlsSession* session, size_t budget) : context_(session->context_) {
    ERR_clear_error();
    context_->currentSession_ = session;
    context_->readBudget_ = budget;
    context_->socketError_ = 0;
    context_->isDrained_ = false;
    context_->hasEnded_ = false;
  }
  ~ScopedCall() { context_->currentSession_ = nullptr; }
  ScopedCall(const ScopedCall&) = delete;
  ScopedCall& operator=(const ScopedCall&) = delete;

 private:
  TlsContext* context_;
};

TlsSession::~TlsSession() { SSL_free(ssl_); }

TlsSession::Handshake TlsSession::handshake() {
  if (isDone_) return Handshake::kDone;
  if (hasFailed_) return Handshake::kFailed;
  const ScopedCall call(this, kHandshakeBytes - handshakeBytes_);
  const int result = SSL_do_handshake(ssl_);
  const bool isFull = context_->readBudget_ == 0;
  handshakeBytes_ = static_cast<uint16_t>(kHandshakeBytes - context_->readBudget_);
  if (result == 1) {
    isDone_ = true;
    isResumed_ = SSL_session_reused(ssl_) == 1;
    hasPending_ = true;
    if (startRecords()) return Handshake::kDone;
    fail();
    return Handshake::kFailed;
  }
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_WANT_WRITE) return Handshake::kWantsWrite;
  if (error == SSL_ERROR_WANT_READ && !isFull) return Handshake::kWantsRead;
  fail();
  return Handshake::kFailed;
}

/** Frees OpenSSL's session after a handshake of TLS 1.3. Returns false if that fails. */
bool TlsSession::startRecords() {
  if (SSL_version(ssl_) < TLS1_3_VERSION) {
    // From now on one read gets a record's header and body.
    SSL_set_read_ahead(ssl_, 1);
    return true;
  }
  // The kernel has the tickets, and no byte after the client's last message has been read.
  const uint16_t suite = SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl_));
  if (SSL_has_pending(ssl_) == 1 || !records_.deriveKeys(*context_->tools_, suite)) return false;
  SSL_free(std::exchange(ssl_, nullptr));
  return true;
}

/**
 * Marks the connection as lost.
 *
 * @returns -1, with errno
 */
ssize_t TlsSession::fail() {
  hasFailed_ = true;
  ERR_clear_error();
  errno = context_->socketError_ != 0 ? context_->socketError_ : ECONNRESET;
  return -1;
}

ssize_t TlsSession::receive(char* to, size_t room) {
  errno = ECONNRESET;
  if (hasFailed_ || !isDone_) return -1;
  if (ssl_ == nullptr) {
    const ssize_t got = records_.receive(*context_->tools_, fd_, to, room);
    hasPending_ = records_.hasPending();
    return got;
  }
  // Records without content use no room of the reader: the budget of the read bounds them.
  const ScopedCall call(this, room + kMaxRecordBytes);
  size_t total = 0;
  while (total < room) {
    size_t got = 0;
    if (SSL_read_ex(ssl_, to + total, room - total, &got) == 1) {
      total += got;
      continue;
    }
    const int error = SSL_get_error(ssl_, 0);
    if ((error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) && !hasFailed_) {
      hasPending_ = false;
      errno = EAGAIN;
      return total > 0 ? static_cast<ssize_t>(total) : -1;
    }
    // The bytes before the end are returned first; `hasPending_` is set, since no event announces
    // the end again.
    hasPending_ = true;
    if (error != SSL_ERROR_ZERO_RETURN) fail();
    if (total > 0) return static_cast<ssize_t>(total);
    return error == SSL_ERROR_ZERO_RETURN ? 0 : -1;
  }
  hasPending_ = true;
  return static_cast<ssize_t>(total);
}

bool TlsSession::isMidRecord() const {
  if (ssl_ == nullptr) return records_.isMidRecord();
  // A partial header is pending; after the header, OpenSSL is reading the body.
  return !hasPending_ && (SSL_has_pending(ssl_) == 1 || strcmp(SSL_rstate_string(ssl_), "RB") == 0);
}

ssize_t TlsSession::send(const char* bytes, size_t length) {
  errno = EPIPE;
  if (hasFailed_ || !isDone_) return -1;
  if (ssl_ == nullptr) return records_.send(*context_->tools_, fd_, bytes, length);
  const ScopedCall call(this, 0);
  size_t total = 0;
  while (total < length) {
    size_t sent = 0;
    if (SSL_write_ex(ssl_, bytes + total, length - total, &sent) == 1) {
      total += sent;
      continue;
    }
    const int error = SSL_get_error(ssl_, 0);
    if (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ) break;
    return fail();
  }
  return static_cast<ssize_t>(total);
}

void TlsSession::endOurHalf() {
  if (hasFailed_ || !isDone_) return;
  if (ssl_ == nullptr) return records_.endOurHalf(*context_->tools_, fd_);
  const ScopedCall call(this, 0);
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace server

#else

namespace server {

TlsSession::~TlsSession() = default;
TlsSession::Handshake TlsSession::handshake() { return Handshake::kFailed; }
ssize_t TlsSession::receive(char* /*to*/, size_t /*room*/) { return -1; }
bool TlsSession::isMidRecord() const { return false; }
ssize_t TlsSession::send(const char* /*bytes*/, size_t /*length*/) { return -1; }
void TlsSession::endOurHalf() {}

TlsContext::TlsContext(uint64_t /*recordsPerKey*/) {}
TlsContext::~TlsContext() = default;
std::string TlsContext::setCertificate(std::string_view /*certificate*/, std::string_view /*key*/) {
  return "built without OpenSSL's headers, which this Node came without: no TLS";
}
bool TlsContext::rollTicketKeys(uint64_t /*nowSeconds*/) { return false; }
std::string TlsContext::ticketKeys() const { return {}; }
bool TlsContext::setTicketKeys(std::string_view /*bytes*/) { return false; }
TlsSession* TlsContext::open(int /*fd*/) { return nullptr; }

}  // namespace server

#endif  // OpenSSL's headers
