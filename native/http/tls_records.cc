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
constexpr unsigned char kKeyUpdate[] = {24, 0, 0, 1};
constexpr std::string_view kKeyUpdateNotRequested("\x18\0\0\1\0", 5);

}  // namespace

// ---- One record ---------------------------------------------------------------------------------

RecordTools::RecordTools(uint64_t recordsPerKey)
    : recordsPerKey_(recordsPerKey),
      input_(std::make_unique<unsigned char[]>(kInputBytes)),
      output_(std::make_unique<unsigned char[]>(kMaxRecord)) {
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
bool RecordTools::expandLabel(const RecordKeys& keys, std::string_view label,
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
  const bool isDerived = EVP_KDF_derive(kdf_, to.data(), to.size(), params) == 1;
  // Deletes OpenSSL's copy of the secret.
  EVP_KDF_CTX_reset(kdf_);
  if (!isDerived) ERR_clear_error();
  return isDerived;
}

bool RecordTools::derive(uint16_t suite, RecordKeys* keys) {
  if (suite < kFirstSuite || suite - kFirstSuite >= static_cast<int>(std::size(kSuites))) {
    return false;
  }
  keys->suite = static_cast<uint8_t>(suite - kFirstSuite);
  const Suite& one = kSuites[keys->suite];
  return ciphers_[keys->suite] != nullptr && keys->secretLength == one.secret &&
         expandLabel(*keys, "key", std::span(keys->key).first(one.key)) &&
         expandLabel(*keys, "iv", keys->iv);
}

bool RecordTools::advanceKeys(RecordKeys* keys) {
  std::array<unsigned char, sizeof keys->secret> secret;
  const bool isDerived =
      expandLabel(*keys, "traffic upd", std::span(secret).first(keys->secretLength));
  if (isDerived) keys->secret = secret;
  OPENSSL_cleanse(secret.data(), secret.size());
  keys->sequence = 0;
  return isDerived && derive(static_cast<uint16_t>(kFirstSuite + keys->suite), keys);
}

/**
 * Returns the cipher, ready for the record of the sequence number (RFC 8446, section 5.3), or
 * nullptr.
 */
EVP_CIPHER_CTX* RecordTools::cipherFor(const RecordKeys& keys, int seals) {
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
  EVP_CIPHER_CTX* cipher = cipherFor(keys, 1);
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
  EVP_CIPHER_CTX* cipher = cipherFor(*keys, 0);
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
  if (inner.size() > kMaxContent + 1) return TlsAlert::kRecordOverflow;
  while (!inner.empty() && inner.back() == 0) inner = inner.first(inner.size() - 1);
  if (inner.empty()) return TlsAlert::kUnexpectedMessage;
  *content = {static_cast<RecordType>(inner.back()), inner.first(inner.size() - 1)};
  return TlsAlert::kNone;
}

// ---- Start and end of a connection's records ----------------------------------------------------

TlsRecords::~TlsRecords() {
  OPENSSL_cleanse(&readKeys_, sizeof readKeys_);
  OPENSSL_cleanse(&writeKeys_, sizeof writeKeys_);
}

void TlsRecords::storeSecret(std::string_view line) {
  RecordKeys* keys = line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")   ? &readKeys_
                     : line.starts_with("SERVER_TRAFFIC_SECRET_0 ") ? &writeKeys_
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

bool TlsRecords::deriveKeys(RecordTools& tools, uint16_t suite) {
  return tools.derive(suite, &readKeys_) && tools.derive(suite, &writeKeys_);
}

// ---- Reading ------------------------------------------------------------------------------------

void TlsRecords::Deleter::operator()(unsigned char* bytes) const { free(bytes); }

/** Keeps a copy of `bytes` for the next call. Returns false without memory. */
bool TlsRecords::holdBytes(std::span<const unsigned char> bytes) {
  held_.reset(static_cast<unsigned char*>(malloc(bytes.size())));
  if (held_ == nullptr) return false;
  memcpy(held_.get(), bytes.data(), bytes.size());
  heldFrom_ = 0;
  heldTo_ = static_cast<uint16_t>(bytes.size());
  return true;
}

/** Copies held content to `rest`, as much as there is room for. */
void TlsRecords::readHeld(std::span<char>* rest) {
  const size_t length = std::min(rest->size(), size_t{heldTo_} - heldFrom_);
  memcpy(rest->data(), held_.get() + heldFrom_, length);
  *rest = rest->subspan(length);
  heldFrom_ = static_cast<uint16_t>(heldFrom_ + length);
  if (heldFrom_ < heldTo_) return;
  held_.reset();
  heldFrom_ = heldTo_ = 0;
  heldIsOpened_ = false;
}

ssize_t TlsRecords::receive(RecordTools& tools, int fd, char* to, size_t room) {
  std::span<char> rest(to, room);
  int error = ECONNRESET;
  if (heldIsOpened_) readHeld(&rest);
  // Goes on until there is content: `emptyRecords_` and `keyUpdates_` bound the records without
  // content.
  while (rest.size() == room && !heldIsOpened_ && !peerHasEnded_ && !hasFailed_) {
    unsigned char* input = tools.input_.get();
    const size_t held = heldTo_;
    // Reads no more than surely fits the room once it is opened, but at least a whole record.
    size_t most = rest.size() + RecordTools::kMinRecord - 1;
    if (held >= RecordTools::kHeader) {
      const unsigned char* header = held_.get();
      most = std::max(most, RecordTools::kHeader + (size_t{header[3]} << 8 | header[4]));
    }
    most = std::min(most, RecordTools::kInputBytes) - held;
    ssize_t got;
    do {
      got = recv(fd, input + held, most, MSG_DONTWAIT);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      if (got < 0) error = errno;
      peerHasEnded_ = got == 0;
      hasFailed_ = got < 0;
      break;
    }
    if (held > 0) memcpy(input, held_.get(), held);
    held_.reset();
    heldTo_ = 0;
    openRecords(tools, {input, held + static_cast<size_t>(got)}, &rest);
    if (static_cast<size_t>(got) < most) break;
  }
  if (alert_ != TlsAlert::kNone) sendAlert(tools, fd, alert_);
  const size_t total = room - rest.size();
  hasPending_ = heldIsOpened_ || peerHasEnded_ || hasFailed_;
  if (total > 0) return static_cast<ssize_t>(total);
  if (peerHasEnded_) return 0;
  errno = hasFailed_ ? error : EAGAIN;
  return -1;
}

/** Opens the complete records in `bytes`, and keeps the rest. */
void TlsRecords::openRecords(RecordTools& tools, std::span<unsigned char> bytes,
                             std::span<char>* rest) {
  while (bytes.size() >= RecordTools::kHeader) {
    const size_t length = RecordTools::kHeader + (size_t{bytes[3]} << 8 | bytes[4]);
    // The version must be ignored (RFC 8446, section 5.2); the tag covers it.
    if (bytes[0] != static_cast<unsigned char>(RecordType::kApplicationData)) {
      alert_ = TlsAlert::kUnexpectedMessage;
    } else if (length > RecordTools::kMaxRecord) {
      alert_ = TlsAlert::kRecordOverflow;
    } else if (length > bytes.size()) {
      break;
    } else {
      RecordTools::Content content = {};
      alert_ = tools.open(&readKeys_, bytes.first(length), &content);
      if (alert_ == TlsAlert::kNone) alert_ = acceptContent(tools, content, rest);
    }
    if (alert_ != TlsAlert::kNone) hasFailed_ = true;
    // Bytes after the end must be ignored (RFC 8446, section 6.1).
    if (hasFailed_ || peerHasEnded_) return;
    bytes = bytes.subspan(length);
  }
  if (!bytes.empty() && (heldIsOpened_ || !holdBytes(bytes))) hasFailed_ = true;
}

TlsAlert TlsRecords::acceptContent(RecordTools& tools, const RecordTools::Content& content,
                                   std::span<char>* rest) {
  const std::span<const unsigned char> bytes = content.bytes;
  if (content.type == RecordType::kHandshake) return acceptKeyUpdate(tools, bytes);
  // The records of one message must not be interrupted (RFC 8446, section 5.1).
  if (keyUpdateBytes_ > 0) return TlsAlert::kUnexpectedMessage;
  if (content.type == RecordType::kAlert) return acceptAlert(bytes);
  if (content.type != RecordType::kApplicationData) return TlsAlert::kUnexpectedMessage;
  if (bytes.empty()) {
    return ++emptyRecords_ > kMaxEmptyRecords ? TlsAlert::kUnexpectedMessage : TlsAlert::kNone;
  }
  emptyRecords_ = 0;
  const size_t fits = std::min(bytes.size(), rest->size());
  memcpy(rest->data(), bytes.data(), fits);
  *rest = rest->subspan(fits);
  if (fits == bytes.size()) return TlsAlert::kNone;
  // Such a record is the last one of the input: `receive` has read no more.
  heldIsOpened_ = holdBytes(bytes.subspan(fits));
  return heldIsOpened_ ? TlsAlert::kNone : TlsAlert::kInternalError;
}

TlsAlert TlsRecords::acceptAlert(std::span<const unsigned char> bytes) {
  if (bytes.size() != 2) return TlsAlert::kDecodeError;
  const auto alert = static_cast<TlsAlert>(bytes[1]);
  if (alert == TlsAlert::kCloseNotify) {
    peerHasEnded_ = true;
  } else if (alert == TlsAlert::kUserCanceled) {
    // Precedes close_notify, and does not end the connection.
    return ++emptyRecords_ > kMaxEmptyRecords ? TlsAlert::kUnexpectedMessage : TlsAlert::kNone;
  } else {
    hasFailed_ = true;
  }
  return TlsAlert::kNone;
}

/**
 * Reads a KeyUpdate (RFC 8446, section 4.6.3). A client sends no other message after its handshake.
 */
TlsAlert TlsRecords::acceptKeyUpdate(RecordTools& tools, std::span<const unsigned char> bytes) {
  if (bytes.empty()) return TlsAlert::kUnexpectedMessage;
  while (!bytes.empty() && keyUpdateBytes_ < sizeof kKeyUpdate) {
    if (bytes[0] != kKeyUpdate[keyUpdateBytes_]) {
      return keyUpdateBytes_ == 0 ? TlsAlert::kUnexpectedMessage : TlsAlert::kDecodeError;
    }
    ++keyUpdateBytes_;
    bytes = bytes.subspan(1);
  }
  if (bytes.empty()) return TlsAlert::kNone;
  if (bytes[0] > 1) return TlsAlert::kIllegalParameter;
  // A new key starts with a new record (RFC 8446, section 5.1).
  if (bytes.size() > 1 || ++keyUpdates_ > kMaxKeyUpdates) return TlsAlert::kUnexpectedMessage;
  keyUpdateBytes_ = 0;
  if (bytes[0] == 1) mustUpdateKey_ = true;
  return tools.advanceKeys(&readKeys_) ? TlsAlert::kNone : TlsAlert::kInternalError;
}

// ---- Sending ------------------------------------------------------------------------------------

/**
 * Seals a record and passes the kernel the bytes that it has not accepted yet.
 *
 * @returns whether it has all of them
 */
bool TlsRecords::sendRecord(RecordTools& tools, int fd, RecordType type, std::string_view content) {
  const unsigned char* record = tools.output_.get();
  const size_t length = tools.seal(writeKeys_, type, content, tools.output_.get());
  if (length == 0) {
    hasFailed_ = true;
    errno = ENOMEM;
    return false;
  }
  ssize_t sent;
  do {
    sent = ::send(fd, record + partialSent_, length - partialSent_, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    hasFailed_ = errno != EAGAIN && errno != EWOULDBLOCK;
    return false;
  }
  partialSent_ = static_cast<uint16_t>(partialSent_ + sent);
  partialContent_ = static_cast<uint16_t>(content.size());
  if (partialSent_ < length) return false;
  partialSent_ = 0;
  ++writeKeys_.sequence;
  return true;
}

ssize_t TlsRecords::send(RecordTools& tools, int fd, const char* bytes, size_t length) {
  errno = EPIPE;
  if (hasFailed_ || ownHalfEnded_) return -1;
  size_t total = 0;
  while (total < length) {
    if (partialSent_ == 0)
      sendsKeyUpdate_ = mustUpdateKey_ || writeKeys_.sequence >= tools.recordsPerKey();
    if (sendsKeyUpdate_) {
      if (!sendRecord(tools, fd, RecordType::kHandshake, kKeyUpdateNotRequested)) break;
      mustUpdateKey_ = false;
      if (!tools.advanceKeys(&writeKeys_)) {
        hasFailed_ = true;
        errno = ENOMEM;
        break;
      }
      continue;
    }
    const size_t partial = partialSent_ > 0 ? partialContent_ : 0;
    const size_t next =
        partial > 0 ? partial : std::min(length - total, size_t{RecordTools::kMaxContent});
    if (next > length - total) {
      // The caller passes fewer bytes than in the last call.
      hasFailed_ = true;
      errno = EINVAL;
      break;
    }
    if (!sendRecord(tools, fd, RecordType::kApplicationData, {bytes + total, next})) break;
    total += next;
  }
  return hasFailed_ ? -1 : static_cast<ssize_t>(total);
}

/** Sends an alert, as far as the kernel accepts it, but not in the middle of a record. */
void TlsRecords::sendAlert(RecordTools& tools, int fd, TlsAlert alert) {
  const bool ends = alert == TlsAlert::kCloseNotify;
  const char content[] = {ends ? '\1' : '\2', static_cast<char>(alert)};
  if (!ownHalfEnded_ && partialSent_ == 0)
    sendRecord(tools, fd, RecordType::kAlert, {content, sizeof content});
  ownHalfEnded_ = true;
}

void TlsRecords::endOurHalf(RecordTools& tools, int fd) {
  if (!hasFailed_) sendAlert(tools, fd, TlsAlert::kCloseNotify);
}

}  // namespace server

#else

namespace server {

void TlsRecords::Deleter::operator()(unsigned char* /*bytes*/) const {}
TlsRecords::~TlsRecords() = default;
RecordTools::~RecordTools() = default;

}  // namespace server

#endif  // OpenSSL's headers
