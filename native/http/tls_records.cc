#include "http/tls_records.h"

#if __has_include(<openssl/ssl.h>)

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace server {

namespace {

/** The cipher suites of RFC 8446, section B.4, from 0x1301 on; lengths in bytes. */
struct Suite {
  const char* cipher;
  const char* digest;
  size_t key;
  size_t secret;
};
constexpr uint16_t kFirstSuite = 0x1301;
constexpr Suite kSuites[] = {{"AES-128-GCM", "SHA256", 16, 32},
                             {"AES-256-GCM", "SHA384", 32, 48},
                             {"ChaCha20-Poly1305", "SHA256", 32, 32}};

/** A KeyUpdate without its last byte, which asks the peer to update its key, too. */
constexpr unsigned char kUpdate[] = {24, 0, 0, 1};
constexpr std::string_view kUpdateNotRequested("\x18\0\0\1\0", 5);

}  // namespace

// ---- One record ---------------------------------------------------------------------------------

RecordTools::RecordTools(uint64_t recordsAKey)
    : recordsAKey_(recordsAKey),
      input_(std::make_unique<unsigned char[]>(kInput)),
      output_(std::make_unique<unsigned char[]>(kMostRecord)) {
  for (size_t i = 0; i < ciphers_.size(); ++i) {
    // A cipher that this OpenSSL lacks (FIPS) is never negotiated in a handshake.
    EVP_CIPHER* cipher = EVP_CIPHER_fetch(nullptr, kSuites[i].cipher, nullptr);
    ciphers_[i] = cipher == nullptr ? nullptr : EVP_CIPHER_CTX_new();
    if (ciphers_[i] != nullptr &&
        EVP_CipherInit_ex(ciphers_[i], cipher, nullptr, nullptr, nullptr, 1) != 1) {
      EVP_CIPHER_CTX_free(std::exchange(ciphers_[i], nullptr));
    }
    EVP_CIPHER_free(cipher);
  }
  EVP_KDF* kdf = EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_TLS1_3_KDF, nullptr);
  kdf_ = kdf == nullptr ? nullptr : EVP_KDF_CTX_new(kdf);
  EVP_KDF_free(kdf);
  ERR_clear_error();
  if (kdf_ != nullptr) return;
  for (EVP_CIPHER_CTX* cipher : ciphers_) EVP_CIPHER_CTX_free(cipher);
  throw std::bad_alloc();
}

RecordTools::~RecordTools() {
  for (EVP_CIPHER_CTX* cipher : ciphers_) EVP_CIPHER_CTX_free(cipher);
  EVP_KDF_CTX_free(kdf_);
}

/** Computes HKDF-Expand-Label (RFC 8446, section 7.1) without a context. */
bool RecordTools::expand(const RecordKeys& keys, std::string_view label,
                         std::span<unsigned char> to) {
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  char prefix[] = "tls13 ";
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
                                       const_cast<char*>(kSuites[keys.suite].digest), 0),
      OSSL_PARAM_construct_octet_string(
          OSSL_KDF_PARAM_KEY, const_cast<unsigned char*>(keys.secret.data()), keys.secretLength),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, prefix, sizeof prefix - 1),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, const_cast<char*>(label.data()),
                                        label.size()),
      OSSL_PARAM_construct_end()};
  const bool good = EVP_KDF_derive(kdf_, to.data(), to.size(), params) == 1;
  // Deletes OpenSSL's copy of the secret.
  EVP_KDF_CTX_reset(kdf_);
  if (!good) ERR_clear_error();
  return good;
}

bool RecordTools::derive(uint16_t suite, RecordKeys* keys) {
  if (suite < kFirstSuite || suite - kFirstSuite >= static_cast<int>(std::size(kSuites))) {
    return false;
  }
  keys->suite = static_cast<uint8_t>(suite - kFirstSuite);
  const Suite& one = kSuites[keys->suite];
  return ciphers_[keys->suite] != nullptr && keys->secretLength == one.secret &&
         expand(*keys, "key", std::span(keys->key).first(one.key)) && expand(*keys, "iv", keys->iv);
}

bool RecordTools::next(RecordKeys* keys) {
  std::array<unsigned char, sizeof keys->secret> secret;
  const bool good = expand(*keys, "traffic upd", std::span(secret).first(keys->secretLength));
  if (good) keys->secret = secret;
  OPENSSL_cleanse(secret.data(), secret.size());
  keys->sequence = 0;
  return good && derive(static_cast<uint16_t>(kFirstSuite + keys->suite), keys);
}

/**
 * Returns the cipher, ready for the record of the sequence number (RFC 8446, section 5.3), or
 * nullptr.
 */
EVP_CIPHER_CTX* RecordTools::keyed(const RecordKeys& keys, int seals) {
  std::array<unsigned char, sizeof keys.iv> nonce = keys.iv;
  for (size_t i = 0; i < 8; ++i) {
    nonce[nonce.size() - 1 - i] ^= static_cast<unsigned char>(keys.sequence >> 8 * i);
  }
  EVP_CIPHER_CTX* cipher = ciphers_[keys.suite];
  return EVP_CipherInit_ex(cipher, nullptr, nullptr, keys.key.data(), nonce.data(), seals) == 1
             ? cipher
             : nullptr;
}

size_t RecordTools::seal(const RecordKeys& keys, RecordType type, std::string_view content,
                         unsigned char* record) {
  const size_t sealed = content.size() + 1 + kTag;
  record[0] = static_cast<unsigned char>(RecordType::kApplicationData);
  record[1] = record[2] = 3;
  record[3] = static_cast<unsigned char>(sealed >> 8);
  record[4] = static_cast<unsigned char>(sealed);
  const auto inner = static_cast<unsigned char>(type);
  unsigned char* to = record + kHeader;
  unsigned char* tag = to + content.size() + 1;
  int length = 0;
  EVP_CIPHER_CTX* cipher = keyed(keys, 1);
  if (cipher == nullptr ||
      EVP_CipherUpdate(cipher, nullptr, &length, record, static_cast<int>(kHeader)) != 1 ||
      EVP_CipherUpdate(cipher, to, &length, reinterpret_cast<const unsigned char*>(content.data()),
                       static_cast<int>(content.size())) != 1 ||
      EVP_CipherUpdate(cipher, to + content.size(), &length, &inner, 1) != 1 ||
      EVP_CipherFinal_ex(cipher, tag, &length) != 1 ||
      EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, kTag, tag) != 1) {
    ERR_clear_error();
    return 0;
  }
  return kHeader + sealed;
}

TlsAlert RecordTools::open(RecordKeys* keys, std::span<unsigned char> record, Content* content) {
  // A record too short for a tag and a type is refused like one with a wrong tag.
  if (record.size() < kHeader + kTag) return TlsAlert::kBadRecordMac;
  std::span<unsigned char> inner = record.subspan(kHeader, record.size() - kHeader - kTag);
  int length = 0;
  EVP_CIPHER_CTX* cipher = keyed(*keys, 0);
  if (cipher == nullptr ||
      EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, kTag, inner.data() + inner.size()) != 1 ||
      EVP_CipherUpdate(cipher, nullptr, &length, record.data(), static_cast<int>(kHeader)) != 1 ||
      EVP_CipherUpdate(cipher, inner.data(), &length, inner.data(),
                       static_cast<int>(inner.size())) != 1 ||
      EVP_CipherFinal_ex(cipher, inner.data() + inner.size(), &length) != 1) {
    ERR_clear_error();
    return TlsAlert::kBadRecordMac;
  }
  ++keys->sequence;
  if (inner.size() > kMostContent + 1) return TlsAlert::kRecordOverflow;
  while (!inner.empty() && inner.back() == 0) inner = inner.first(inner.size() - 1);
  if (inner.empty()) return TlsAlert::kUnexpectedMessage;
  *content = {static_cast<RecordType>(inner.back()), inner.first(inner.size() - 1)};
  return TlsAlert::kNone;
}

// ---- Start and end of a connection's records ----------------------------------------------------

TlsRecords::~TlsRecords() {
  OPENSSL_cleanse(&in_, sizeof in_);
  OPENSSL_cleanse(&out_, sizeof out_);
}

void TlsRecords::takeSecret(std::string_view line) {
  RecordKeys* keys = line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")   ? &in_
                     : line.starts_with("SERVER_TRAFFIC_SECRET_0 ") ? &out_
                                                                    : nullptr;
  if (keys == nullptr) return;
  // The line has the label, the client's random number and the secret; OpenSSL reads hexadecimal up
  // to a NUL.
  const std::string_view digits = line.substr(line.rfind(' ') + 1);
  char text[2 * sizeof keys->secret + 1] = {};
  size_t length = 0;
  if (digits.size() < sizeof text) {
    memcpy(text, digits.data(), digits.size());
    if (OPENSSL_hexstr2buf_ex(keys->secret.data(), keys->secret.size(), &length, text, '\0') != 1) {
      length = 0;
      ERR_clear_error();
    }
  }
  OPENSSL_cleanse(text, sizeof text);
  keys->secretLength = static_cast<uint8_t>(length);
  keys->sequence = 0;
}

bool TlsRecords::begin(RecordTools& tools, uint16_t suite) {
  return tools.derive(suite, &in_) && tools.derive(suite, &out_);
}

// ---- Reading ------------------------------------------------------------------------------------

void TlsRecords::Freed::operator()(unsigned char* bytes) const { free(bytes); }

/** Keeps a copy of `bytes` for the next call. Returns false without memory. */
bool TlsRecords::hold(std::span<const unsigned char> bytes) {
  held_.reset(static_cast<unsigned char*>(malloc(bytes.size())));
  if (held_ == nullptr) return false;
  memcpy(held_.get(), bytes.data(), bytes.size());
  heldFrom_ = 0;
  heldTo_ = static_cast<uint16_t>(bytes.size());
  return true;
}

/** Copies held content to `rest`, as much as there is room for. */
void TlsRecords::takeHeld(std::span<char>* rest) {
  const size_t length = std::min(rest->size(), size_t{heldTo_} - heldFrom_);
  memcpy(rest->data(), held_.get() + heldFrom_, length);
  *rest = rest->subspan(length);
  heldFrom_ = static_cast<uint16_t>(heldFrom_ + length);
  if (heldFrom_ < heldTo_) return;
  held_.reset();
  heldFrom_ = heldTo_ = 0;
  opened_ = false;
}

ssize_t TlsRecords::receive(RecordTools& tools, int fd, char* to, size_t room) {
  std::span<char> rest(to, room);
  int error = ECONNRESET;
  if (opened_) takeHeld(&rest);
  // Goes on until there is content: `empty_` and `updates_` bound the records without content.
  while (rest.size() == room && !opened_ && !ended_ && !failed_) {
    unsigned char* input = tools.input_.get();
    const size_t held = heldTo_;
    // Reads no more than surely fits the room once it is opened, but at least a whole record.
    size_t most = rest.size() + RecordTools::kLeastRecord - 1;
    if (held >= RecordTools::kHeader) {
      const unsigned char* header = held_.get();
      most = std::max(most, RecordTools::kHeader + (size_t{header[3]} << 8 | header[4]));
    }
    most = std::min(most, RecordTools::kInput) - held;
    ssize_t got;
    do {
      got = recv(fd, input + held, most, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      if (got < 0) error = errno;
      ended_ = got == 0;
      failed_ = got < 0;
      break;
    }
    if (held > 0) memcpy(input, held_.get(), held);
    held_.reset();
    heldTo_ = 0;
    take(tools, {input, held + static_cast<size_t>(got)}, &rest);
    if (static_cast<size_t>(got) < most) break;
  }
  if (wrong_ != TlsAlert::kNone) tell(tools, fd, wrong_);
  const size_t all = room - rest.size();
  pending_ = opened_ || ended_ || failed_;
  if (all > 0) return static_cast<ssize_t>(all);
  if (ended_) return 0;
  errno = failed_ ? error : EAGAIN;
  return -1;
}

/** Opens the complete records in `bytes`, and keeps the rest. */
void TlsRecords::take(RecordTools& tools, std::span<unsigned char> bytes, std::span<char>* rest) {
  while (bytes.size() >= RecordTools::kHeader) {
    const size_t length = RecordTools::kHeader + (size_t{bytes[3]} << 8 | bytes[4]);
    // The version must be ignored (RFC 8446, section 5.2); the tag covers it.
    if (bytes[0] != static_cast<unsigned char>(RecordType::kApplicationData)) {
      wrong_ = TlsAlert::kUnexpectedMessage;
    } else if (length > RecordTools::kMostRecord) {
      wrong_ = TlsAlert::kRecordOverflow;
    } else if (length > bytes.size()) {
      break;
    } else {
      RecordTools::Content content = {};
      wrong_ = tools.open(&in_, bytes.first(length), &content);
      if (wrong_ == TlsAlert::kNone) wrong_ = takeContent(tools, content, rest);
    }
    if (wrong_ != TlsAlert::kNone) failed_ = true;
    // Bytes after the end must be ignored (RFC 8446, section 6.1).
    if (failed_ || ended_) return;
    bytes = bytes.subspan(length);
  }
  if (!bytes.empty() && (opened_ || !hold(bytes))) failed_ = true;
}

TlsAlert TlsRecords::takeContent(RecordTools& tools, const RecordTools::Content& content,
                                 std::span<char>* rest) {
  const std::span<const unsigned char> bytes = content.bytes;
  if (content.type == RecordType::kHandshake) return takeUpdate(tools, bytes);
  // The records of one message must not be interrupted (RFC 8446, section 5.1).
  if (updateBytes_ > 0) return TlsAlert::kUnexpectedMessage;
  if (content.type == RecordType::kAlert) return takeAlert(bytes);
  if (content.type != RecordType::kApplicationData) return TlsAlert::kUnexpectedMessage;
  if (bytes.empty()) {
    return ++empty_ > kMostEmpty ? TlsAlert::kUnexpectedMessage : TlsAlert::kNone;
  }
  empty_ = 0;
  const size_t fits = std::min(bytes.size(), rest->size());
  memcpy(rest->data(), bytes.data(), fits);
  *rest = rest->subspan(fits);
  if (fits == bytes.size()) return TlsAlert::kNone;
  // Such a record is the last one of the input: `receive` has read no more.
  opened_ = hold(bytes.subspan(fits));
  return opened_ ? TlsAlert::kNone : TlsAlert::kInternalError;
}

TlsAlert TlsRecords::takeAlert(std::span<const unsigned char> bytes) {
  if (bytes.size() != 2) return TlsAlert::kDecodeError;
  const auto alert = static_cast<TlsAlert>(bytes[1]);
  if (alert == TlsAlert::kCloseNotify) {
    ended_ = true;
  } else if (alert == TlsAlert::kUserCanceled) {
    // Precedes close_notify, and does not end the connection.
    return ++empty_ > kMostEmpty ? TlsAlert::kUnexpectedMessage : TlsAlert::kNone;
  } else {
    failed_ = true;
  }
  return TlsAlert::kNone;
}

/**
 * Reads a KeyUpdate (RFC 8446, section 4.6.3). A client sends no other message after its handshake.
 */
TlsAlert TlsRecords::takeUpdate(RecordTools& tools, std::span<const unsigned char> bytes) {
  if (bytes.empty()) return TlsAlert::kUnexpectedMessage;
  while (!bytes.empty() && updateBytes_ < sizeof kUpdate) {
    if (bytes[0] != kUpdate[updateBytes_]) {
      return updateBytes_ == 0 ? TlsAlert::kUnexpectedMessage : TlsAlert::kDecodeError;
    }
    ++updateBytes_;
    bytes = bytes.subspan(1);
  }
  if (bytes.empty()) return TlsAlert::kNone;
  if (bytes[0] > 1) return TlsAlert::kIllegalParameter;
  // A new key starts with a new record (RFC 8446, section 5.1).
  if (bytes.size() > 1 || ++updates_ > kMostUpdates) return TlsAlert::kUnexpectedMessage;
  updateBytes_ = 0;
  if (bytes[0] == 1) owes_ = true;
  return tools.next(&in_) ? TlsAlert::kNone : TlsAlert::kInternalError;
}

// ---- Sending ------------------------------------------------------------------------------------

/**
 * Seals a record and passes the kernel the bytes that it has not accepted yet.
 *
 * @returns whether it has all of them
 */
bool TlsRecords::put(RecordTools& tools, int fd, RecordType type, std::string_view content) {
  const unsigned char* record = tools.output_.get();
  const size_t length = tools.seal(out_, type, content, tools.output_.get());
  if (length == 0) {
    failed_ = true;
    errno = ENOMEM;
    return false;
  }
  ssize_t sent;
  do {
    sent = ::send(fd, record + outSent_, length - outSent_, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    failed_ = errno != EAGAIN && errno != EWOULDBLOCK;
    return false;
  }
  outSent_ = static_cast<uint16_t>(outSent_ + sent);
  outLength_ = static_cast<uint16_t>(content.size());
  if (outSent_ < length) return false;
  outSent_ = 0;
  ++out_.sequence;
  return true;
}

ssize_t TlsRecords::send(RecordTools& tools, int fd, const char* bytes, size_t length) {
  errno = EPIPE;
  if (failed_ || closed_) return -1;
  size_t all = 0;
  while (all < length) {
    if (outSent_ == 0) updating_ = owes_ || out_.sequence >= tools.recordsAKey();
    if (updating_) {
      if (!put(tools, fd, RecordType::kHandshake, kUpdateNotRequested)) break;
      owes_ = false;
      if (!tools.next(&out_)) {
        failed_ = true;
        errno = ENOMEM;
        break;
      }
      continue;
    }
    const size_t begun = outSent_ > 0 ? outLength_ : 0;
    const size_t next =
        begun > 0 ? begun : std::min(length - all, size_t{RecordTools::kMostContent});
    if (next > length - all) {
      // The caller passes fewer bytes than in the last call.
      failed_ = true;
      errno = EINVAL;
      break;
    }
    if (!put(tools, fd, RecordType::kApplicationData, {bytes + all, next})) break;
    all += next;
  }
  return failed_ ? -1 : static_cast<ssize_t>(all);
}

/** Sends an alert, as far as the kernel accepts it, but not in the middle of a record. */
void TlsRecords::tell(RecordTools& tools, int fd, TlsAlert alert) {
  const bool ends = alert == TlsAlert::kCloseNotify;
  const char content[] = {ends ? '\1' : '\2', static_cast<char>(alert)};
  if (!closed_ && outSent_ == 0) put(tools, fd, RecordType::kAlert, {content, sizeof content});
  closed_ = true;
}

void TlsRecords::endOurHalf(RecordTools& tools, int fd) {
  if (!failed_) tell(tools, fd, TlsAlert::kCloseNotify);
}

}  // namespace server

#else

namespace server {

void TlsRecords::Freed::operator()(unsigned char* /*bytes*/) const {}
TlsRecords::~TlsRecords() = default;
RecordTools::~RecordTools() = default;

}  // namespace server

#endif  // OpenSSL's headers
