// The grants that JavaScript has verified: it is asked once for each grant.
//
//   SHA-256 of a token ─▶ number ─▶ grant [ end │ what it may read │ jti, sub, key │ watchers ]
//                                     ▲
//   watcher [ …, number ] ────────────┘   its poll ends with the grant
//
// A grant with watchers stays in the table until its last watcher has gone, even if it has ended.
// Grants without watchers make room for new ones, the least recently used first. The number of
// grants and their bytes are bounded. Every serving thread has its own table.
//
// A token that is no grant is remembered, too, by its hash: a client that reads a public feed with
// it is served without JavaScript. Such a token has one fixed place by its hash, so that these take
// no room from grants. It is remembered for half a minute only: a token may become a grant by its
// `nbf`, a new key, or a withdrawn revocation.
//
// Cost: a watcher has the number in bits that were free. A grant takes some 250 bytes for any
// number of watchers. Rejected: a shorter hash (two tokens with one hash would share their rights),
// one table and a lock for all threads.
#ifndef SPRITES_GRANTS_H_
#define SPRITES_GRANTS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/outcome.h"

namespace server {

// Patterns of feeds: a key, "team/*" for all keys below a prefix, or "*" for all keys.
// lib/grants/rights.js reads them in the same way.
class KeyPatterns {
 public:
  KeyPatterns() = default;
  explicit KeyPatterns(std::vector<std::string> all) : patterns_(std::move(all)) {}

  /** Memory of the patterns, in bytes. */
  size_t size() const {
    size_t sum = 0;
    for (const std::string& one : patterns_) sum += sizeof(std::string) + one.capacity();
    return sum;
  }

  /** Whether a pattern matches the key. */
  bool covers(std::string_view key) const {
    return std::any_of(patterns_.begin(), patterns_.end(),
                       [key](std::string_view one) { return matches(one, key); });
  }

 private:
  static bool matches(std::string_view pattern, std::string_view key) {
    if (pattern.back() != '*') return pattern == key;
    pattern.remove_suffix(1);
    return key.size() > pattern.size() && key.starts_with(pattern);
  }

  std::vector<std::string> patterns_;
};

/** The SHA-256 of a token. */
using TokenHash = std::array<unsigned char, 32>;

/** The parts by which grants are ended before their time: id, subject, or signing key. */
enum class GrantPart : uint8_t { kJti, kSub, kKey };
constexpr size_t kGrantParts = 3;

/** The rights that JavaScript has read from a token. */
struct GrantRights {
  TokenHash token = {};
  uint64_t timeLeft = 0;  // milliseconds until its end
  std::vector<std::string> read;
  std::array<std::string, kGrantParts> parts;  // empty: absent
  bool present = false;                        // presence shows `sub`
};

class Grants {
 public:
  static constexpr uint32_t kMaxGrants = (1 << 20) - 1;
  static constexpr uint64_t kMaxBytes = uint64_t{512} << 20;

  /** No grant. */
  static constexpr uint32_t kNone = 0;

  /** The number of a grant that is valid at `now`, in milliseconds; kNone: ask JavaScript. */
  uint32_t find(const TokenHash& token, uint64_t now) const;

  /** Adds a verified grant. kNone: there is no room. */
  uint32_t add(const GrantRights& rights, uint64_t now);

  /** Most tokens that are no grants. */
  static constexpr size_t kMaxBad = 1024;

  /** Remembers that a token is no grant. */
  void rememberBad(const TokenHash& token, uint64_t now);

  /** Whether a token is known to be no grant. */
  bool isBad(const TokenHash& token, uint64_t now) const;

  bool reads(uint32_t number, std::string_view key) const {
    return grants_[number].read.covers(key);
  }

  /** The name that presence shows for its watchers; empty: none. */
  std::string_view nameOf(uint32_t number) const {
    const Grant& grant = grants_[number];
    return grant.showsName ? grant.parts[static_cast<size_t>(GrantPart::kSub)] : std::string_view();
  }

  /** kOk while the grant is valid; otherwise the problem of its end. */
  Outcome problemOf(uint32_t number, uint64_t now) const {
    const Grant& grant = grants_[number];
    if (grant.isEnded) return Outcome::kBadGrant;
    return grant.end <= now ? Outcome::kGrantExpired : Outcome::kOk;
  }

  /** Milliseconds until the grant ends. */
  uint64_t timeLeft(uint32_t number, uint64_t now) const {
    const uint64_t end = grants_[number].end;
    return end > now ? end - now : 0;
  }

  /** A watcher with this grant has come, or gone. */
  void addWatcher(uint32_t number);
  void removeWatcher(uint32_t number);

  /** Ends all grants with this name. Returns whether one of them has watchers. */
  bool endByPart(GrantPart part, std::string_view name);

 private:
  struct Grant {
    TokenHash token;
    uint64_t end;
    KeyPatterns read;
    std::array<std::string, kGrantParts> parts;
    uint32_t watchers = 0;
    bool showsName = false;
    bool isEnded = false;
    std::list<uint32_t>::iterator idlePosition = {};  // its place in idle_, without watchers
  };

  struct Hash {
    size_t operator()(const TokenHash& token) const {
      // The token is a hash already.
      size_t word;
      memcpy(&word, token.data(), sizeof word);
      return word;
    }
  };

  struct BadToken {
    TokenHash token;
    uint64_t until;
  };

  static uint64_t bytesOf(const Grant& grant);
  void remove(uint32_t number);

  std::vector<Grant> grants_ = std::vector<Grant>(1);  // by number
  std::vector<uint32_t> free_;
  std::unordered_map<TokenHash, uint32_t, Hash> byToken_;
  std::list<uint32_t> idle_;         // grants without watchers, the least recently used first
  std::vector<BadToken> badTokens_;  // by hash; empty until the first one
  uint64_t bytes_ = 0;
};

}  // namespace server

#endif  // SPRITES_GRANTS_H_
