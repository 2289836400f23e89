// Without OpenSSL's headers, which some builds of Node come without, this is empty.
#if __has_include(<openssl/ssl.h>)

#include "openssl_tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <stdexcept>
#include <utility>

namespace swarm {

namespace {

bool isAddress(const std::string& name) {
  in6_addr address;
  return inet_pton(AF_INET, name.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

/** Adds each certificate of a PEM text. @return how many there were */
int addAuthorities(X509_STORE* store, const std::string& text) {
  BIO* bio = BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  int count = 0;
  while (X509* authority = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    X509_STORE_add_cert(store, authority);
    X509_free(authority);
    count++;
  }
  BIO_free(bio);
  // The last one that isn't there is an error, too.
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
    // What can stand in a name of core.h's Tally.
    const bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                       (*at >= '0' && *at <= '9') || *at == '-';
    words.push_back(plain ? *at : ' ');
  }
  return words.substr(0, 64);
}

}  // namespace

OpensslTls::OpensslTls(std::string serverName, const std::string& authorities)
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

OpensslTls::~OpensslTls() {
  for (SSL* session : sessions_) SSL_free(session);
  SSL_CTX_free(context_);
}

SSL* OpensslTls::begin(int fd) {
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

Opening OpensslTls::open(int fd, std::string* why) {
  SSL* session = static_cast<size_t>(fd) < sessions_.size() ? sessions_[fd] : nullptr;
  if (session == nullptr) session = begin(fd);
  if (session == nullptr) {
    *why = "TLS out of memory";
    ERR_clear_error();
    return Opening::kFailed;
  }
  const int result = SSL_do_handshake(session);
  if (result == 1) return Opening::kDone;
  const int error = SSL_get_error(session, result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return Opening::kMore;
  *why = reasonOf(session);
  ERR_clear_error();
  return Opening::kFailed;
}

/** @return 0 for the end of the stream, or -1 with errno: EAGAIN when there is nothing for now */
ssize_t OpensslTls::failed(SSL* session, int result) {
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

ssize_t OpensslTls::send(int fd, const char* bytes, size_t length) {
  size_t written = 0;
  const int result = SSL_write_ex(sessions_[fd], bytes, length, &written);
  if (result == 1) return static_cast<ssize_t>(written);
  const ssize_t error = failed(sessions_[fd], result);
  if (error == 0) errno = EPIPE;
  return -1;
}

ssize_t OpensslTls::receive(int fd, char* bytes, size_t length) {
  // A record at a time: until there is none, because the socket tells of the first alone.
  size_t all = 0;
  while (all < length) {
    size_t got = 0;
    const int result = SSL_read_ex(sessions_[fd], bytes + all, length - all, &got);
    if (result != 1) {
      const ssize_t error = failed(sessions_[fd], result);
      return all > 0 ? static_cast<ssize_t>(all) : error;
    }
    all += got;
  }
  return static_cast<ssize_t>(all);
}

void OpensslTls::end(int fd) {
  if (static_cast<size_t>(fd) >= sessions_.size() || sessions_[fd] == nullptr) return;
  // Says that it closes, as every client does; whether that still goes out is all the same.
  if (SSL_is_init_finished(sessions_[fd]) == 1) SSL_shutdown(sessions_[fd]);
  ERR_clear_error();
  SSL_free(sessions_[fd]);
  sessions_[fd] = nullptr;
}

}  // namespace swarm

#endif  // OpenSSL's headers
