// The swarm's engine inside a Node process (lib/swarm/tls-engine.js), which exports its OpenSSL to
// addons, with the headers of the same version: an https load needs no library of the system. The
// engine takes the whole thread: no JavaScript runs meanwhile.
#include <nan.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "swarm/engine.h"

// Some builds of Node come without OpenSSL's headers: then there is no https.
#if __has_include(<openssl/ssl.h>)
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <utility>
#endif

namespace {

#if __has_include(<openssl/ssl.h>)

bool isAddress(const std::string& name) {
  in6_addr address;
  return inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

/** Adds each certificate of a PEM text. @return the number of certificates */
int addAuthorities(X509_STORE* store, const std::string& text) {
  BIO* bio = BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  int count = 0;
  while (X509* authority = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(store, authority);
    X509_free(authority);
    count++;
  }
  BIO_free(bio);
  // The end of the text is reported as an error, too.
  ERR_clear_error();
  return count;
}

std::string reasonOf(SSL* session) {
  const long verified = SSL_get_verify_result(session);
  const char* reason = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
                                             : ERR_reason_error_string(ERR_peek_error());
  std::string words = "TLS";
  for (const char* at = reason == nullptr ? " connection closed" : reason; *at != '\0'; at++) {
    if (at == reason) words.push_back(' ');
    // The characters that Tally (core.h) accepts in a name.
    const bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                       (*at >= '0' && *at <= '9') || *at == '-';
    words.push_back(plain ? *at : ' ');
  }
  return words.substr(0, 64);
}

// TLS as a client, by OpenSSL. The server's certificate is checked against the given authorities
// and against the server's name. Every connection makes a full handshake without resumption, as
// after a restart of all desktops. A parked session keeps no buffers (SSL_MODE_RELEASE_BUFFERS).
class OpensslTls : public swarm::Tls {
 public:
  /**
   * @param serverName host name or address in the certificate
   * @param authorities PEM of the trusted authorities; empty: any certificate is accepted
   */
  OpensslTls(std::string serverName, const std::string& authorities)
      : serverName_(std::move(serverName)),
        isAddress_(isAddress(serverName_)),
        context_(SSL_CTX_new(TLS_client_method())) {
    if (context_ == nullptr) throw std::runtime_error("OpenSSL gives no context");
    SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                   SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context_, SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
    if (authorities.empty()) return;
    if (addAuthorities(SSL_CTX_get_cert_store(context_), authorities) == 0) {
      SSL_CTX_free(context_);
      throw std::runtime_error("no certificate among the authorities");
    }
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
  }

  ~OpensslTls() override {
    for (SSL* session : sessions_) SSL_free(session);
    SSL_CTX_free(context_);
  }
  OpensslTls(const OpensslTls&) = delete;
  OpensslTls& operator=(const OpensslTls&) = delete;

  swarm::OpenState open(int fd, std::string* why) override {
    SSL* session = static_cast<size_t>(fd) < sessions_.size() ? sessions_[fd] : nullptr;
    if (session == nullptr) session = beginSession(fd);
    if (session == nullptr) {
      *why = "TLS out of memory";
      ERR_clear_error();
      return swarm::OpenState::kFailed;
    }
    const int result = SSL_do_handshake(session);
    if (result == 1) return swarm::OpenState::kDone;
    const int error = SSL_get_error(session, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
      return swarm::OpenState::kPending;
    *why = reasonOf(session);
    ERR_clear_error();
    return swarm::OpenState::kFailed;
  }

  ssize_t send(int fd, const char* bytes, size_t length) override {
    size_t written = 0;
    const int result = SSL_write_ex(sessions_[fd], bytes, length, &written);
    if (result == 1) return static_cast<ssize_t>(written);
    const ssize_t error = translateError(sessions_[fd], result);
    if (error == 0) errno = EPIPE;
    return -1;
  }

  ssize_t receive(int fd, char* bytes, size_t length) override {
    // SSL_read_ex returns one record. Reads all of them: epoll is edge-triggered and knows no
    // records.
    size_t all = 0;
    while (all < length) {
      size_t got = 0;
      const int result = SSL_read_ex(sessions_[fd], bytes + all, length - all, &got);
      if (result != 1) {
        const ssize_t error = translateError(sessions_[fd], result);
        return all > 0 ? static_cast<ssize_t>(all) : error;
      }
      all += got;
    }
    return static_cast<ssize_t>(all);
  }

  void endSession(int fd) override {
    if (static_cast<size_t>(fd) >= sessions_.size() || sessions_[fd] == nullptr) return;
    // Sends close_notify, as every client does; a failure does not matter.
    if (SSL_is_init_finished(sessions_[fd]) == 1) SSL_shutdown(sessions_[fd]);
    ERR_clear_error();
    SSL_free(sessions_[fd]);
    sessions_[fd] = nullptr;
  }

 private:
  SSL* beginSession(int fd) {
    if (static_cast<size_t>(fd) >= sessions_.size()) sessions_.resize(fd * 3 / 2 + 16);
    SSL* session = SSL_new(context_);
    if (session == nullptr) return nullptr;
    sessions_[fd] = session;
    if (isAddress_) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), serverName_.c_str());
    } else {
      SSL_set_tlsext_host_name(session, serverName_.c_str());
      SSL_set1_host(session, serverName_.c_str());
    }
    SSL_set_connect_state(session);
    return SSL_set_fd(session, fd) == 1 ? session : nullptr;
  }

  /** @return 0 for the end of the stream, or -1 with errno; EAGAIN: nothing is available now */
  static ssize_t translateError(SSL* session, int result) {
    switch (SSL_get_error(session, result)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
      case SSL_ERROR_ZERO_RETURN:
        return 0;
      default:
        ERR_clear_error();
        errno = ECONNRESET;
        return -1;
    }
  }

  std::string serverName_;
  bool isAddress_;
  SSL_CTX* context_;
  std::vector<SSL*> sessions_;  // by descriptor
};

std::unique_ptr<swarm::Tls> openTls(const std::string& serverName, const std::string& authorities) {
  return std::make_unique<OpensslTls>(serverName, authorities);
}

#else

std::unique_ptr<swarm::Tls> openTls(const std::string&, const std::string&) {
  throw std::runtime_error(
      "built without OpenSSL's headers, which this Node came without: no https");
}

#endif

using v8::Local;
using v8::Value;

// run(args: string[], authorities: string) → the exit code; authorities '': accepts any certificate
void runCall(const Nan::FunctionCallbackInfo<Value>& info) {
  const Local<v8::Array> args = info[0].As<v8::Array>();
  const std::string authorities = *Nan::Utf8String(info[1]);
  std::vector<std::string> texts = {"swarm"};
  for (uint32_t i = 0; i < args->Length(); i++) {
    texts.emplace_back(*Nan::Utf8String(Nan::Get(args, i).ToLocalChecked()));
  }
  std::vector<char*> pointers;
  pointers.reserve(texts.size());
  for (std::string& text : texts) pointers.push_back(text.data());
  info.GetReturnValue().Set(
      swarm::run(static_cast<int>(pointers.size()), pointers.data(),
                 [&authorities](const std::string& name) { return openTls(name, authorities); }));
}

}  // namespace

// It has all the arguments that Node passes: NAN_MODULE_INIT declares fewer, and clang warns.
void initialize(v8::Local<v8::Object> target, v8::Local<v8::Value>, void*) {
  Nan::SetMethod(target, "run", runCall);
}

NODE_MODULE(swarm_tls, initialize)
