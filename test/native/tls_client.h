// The client's side of TLS, and self-signed certificates.
#ifndef SPRITES_TEST_NATIVE_TLS_CLIENT_H_
#define SPRITES_TEST_NATIVE_TLS_CLIENT_H_

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "expect.h"

namespace server::test {

/** A certificate and its key, both PEM. */
struct Credentials {
  std::string certificate;
  std::string key;
};

enum class KeyKind { kEcdsa, kRsa };

template <class Write>
std::string pem(Write&& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  EXPECT(write(bio) == 1);
  char* bytes = nullptr;
  const long length = BIO_get_mem_data(bio, &bytes);
  std::string text(bytes, static_cast<size_t>(length));
  BIO_free(bio);
  return text;
}

inline EVP_PKEY* makeKey(KeyKind kind) {
  EVP_PKEY* key = kind == KeyKind::kRsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
  EXPECT(key != nullptr);
  return key;
}

inline std::string keyPem(EVP_PKEY* key, const EVP_CIPHER* cipher = nullptr) {
  char password[] = "secret";
  return pem([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, cipher, nullptr, 0, nullptr,
                                    cipher == nullptr ? nullptr : password);
  });
}

/** Creates a certificate that is valid for a day. */
inline Credentials makeCredentials(KeyKind kind) {
  EVP_PKEY* key = makeKey(kind);
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  X509_set_pubkey(certificate, key);
  EXPECT(X509_sign(certificate, key, EVP_sha256()) > 0);
  Credentials identity = {pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); }),
                          keyPem(key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return identity;
}

/** The client's side of a connection, between its text and the bytes of its socket. */
class ClientTls {
 public:
  /** @param version as in SSL_CTX_set_max_proto_version */
  explicit ClientTls(int version) : ssl_(SSL_new(context())) {
    SSL_set_max_proto_version(ssl_, version);
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(ssl_, in_, out_);
    SSL_set_connect_state(ssl_);
  }
  ~ClientTls() { SSL_free(ssl_); }
  ClientTls(const ClientTls&) = delete;
  ClientTls& operator=(const ClientTls&) = delete;

  /** Sends `text` when the handshake is done. */
  void queueText(std::string_view text) { unsentText_ += text; }

  /** Sends close_notify after the pending text. */
  void queueEnd() { mustEnd_ = true; }

  /** Reads bytes from the server, and appends their text to `*received`. */
  void receive(std::string_view bytes, std::string* received) {
    BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
    char text[16384];
    for (int got; isHandshakeDone() && (got = SSL_read(ssl_, text, sizeof text)) > 0;) {
      received->append(text, static_cast<size_t>(got));
    }
    ERR_clear_error();
  }

  /** Whether the server has sent close_notify. */
  bool isClosed() const { return (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0; }

  bool isHandshakeDone() {
    const bool shaken = SSL_do_handshake(ssl_) == 1;
    ERR_clear_error();
    return shaken;
  }

  /** Returns the bytes to send now. */
  std::string outgoing() {
    if (isHandshakeDone() && !unsentText_.empty()) {
      EXPECT(SSL_write(ssl_, unsentText_.data(), static_cast<int>(unsentText_.size())) > 0);
      unsentText_.clear();
    }
    if (isHandshakeDone() && std::exchange(mustEnd_, false)) SSL_shutdown(ssl_);
    std::string bytes(BIO_ctrl_pending(out_), '\0');
    if (!bytes.empty()) BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }

 private:
  static SSL_CTX* context() {
    static const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> kContext(
        SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    return kContext.get();
  }

  SSL* const ssl_;
  BIO* in_;
  BIO* out_;
  std::string unsentText_;
  bool mustEnd_ = false;
};

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_TLS_CLIENT_H_
