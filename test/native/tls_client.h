// The client's side of TLS, and certificates that sign themselves, for the test and the bench of
// native/http/tls.h.
#ifndef SPRITES_TEST_NATIVE_TLS_CLIENT_H_
#define SPRITES_TEST_NATIVE_TLS_CLIENT_H_

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string>

#include "expect.h"

namespace server::test {

/** A certificate and its key, both PEM. */
struct Identity {
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

/** @param seconds how long the certificate is good from now on */
inline Identity makeIdentity(KeyKind kind, long seconds = 86400) {
  EVP_PKEY* key = makeKey(kind);
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), seconds);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  X509_set_pubkey(certificate, key);
  EXPECT(X509_sign(certificate, key, EVP_sha256()) > 0);
  Identity identity = {pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); }),
                       keyPem(key)};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return identity;
}

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_TLS_CLIENT_H_
