// The grants that JavaScript has verified, so that it is asked once for each.
//
//   SHA-256 of a token ─▶ number ─▶ grant [ end │ what it may read │ jti, sub, key │ watchers ]
//                                     ▲
//   watcher [ …, number ] ────────────┘   its poll ends with the grant
//
// A grant that watchers have stays in the table until the last of them has gone, however it has
// ended; any other one makes room for a new one, the one first that was used longest ago. The
// bound is of grants and of their bytes. Every thread that serves has a table of its own.
//
// A token that is no grant is remembered as well, by its hash: a client that reads a public feed
// with it is served without JavaScript. Each has the one place that its hash says, so these take no
// room from grants. They are remembered for half a minute only: a token may become a grant by its
// `nbf`, a new key, or a revocation that is taken back.
//
// Cost: a watcher has the number in bits that were free. A grant takes some 250 bytes, however many
// watch by it. Rejected: a shorter hash (two tokens of one hash would share their rights), one
// table and a lock for all threads.
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

// Which feeds are meant: a key, "team/*" for all keys below a prefix, or "*" for all of them. As
// lib/grants/rights.js has it.
class KeyPatterns {
 public:
  KeyPatterns() = default;
  explicit KeyPatterns(std::vector<std::string> all) : all_(std::move(all)) {}

  /** Bytes that it takes. */
  size_t size() const {
    size_t sum = 0;
    for (const std::string& one : all_) sum += sizeof(std::string) + one.capacity();
    return sum;
  }

  /** Whether a key is meant. */
  bool covers(std::string_view key) const {
    return std::any_of(all_.begin(), all_.end(),
                       [key](std::string_view one) { return isOf(one, key); });
  }

 private:
  static bool isOf(std::string_view pattern, std::string_view key) {
    if (pattern.back() != '*') return pattern == key;
    pattern.remove_suffix(1);
    return key.size() > pattern.size() && key.starts_with(pattern);
  }

  std::vector<std::string> all_;
};

/** The SHA-256 of a token. */
using TokenHash = std::array<unsigned char, 32>;

/** By what grants are ended before their time: an id, a subject, or the key that has signed. */
enum class GrantPart : uint8_t { kJti, kSub, kKey };
constexpr size_t kGrantParts = 3;

/** What JavaScript has found in a token. */
struct GrantRights {
  TokenHash token = {};
  uint64_t left = 0;  // milliseconds that it has to live
  std::vector<std::string> read;
  std::array<std::string, kGrantParts> parts;  // empty: it has none
  bool present = false;                        // `sub` is named among those that watch
};

class Grants {
 public:
  static constexpr uint32_t kMost = (1 << 20) - 1;
  static constexpr uint64_t kMostBytes = uint64_t{512} << 20;

  /** No grant. */
  static constexpr uint32_t kNone = 0;

  /** The number of a grant that holds at `now`, milliseconds; kNone: JavaScript is to be asked. */
  uint32_t find(const TokenHash& token, uint64_t now) const;

  /** Takes one that was verified. kNone: there is no room. */
  uint32_t take(const GrantRights& rights, uint64_t now);

  /** Tokens that are none, at most. */
  static constexpr size_t kMostBad = 1024;

  /** Remembers that a token is none. */
  void refuse(const TokenHash& token, uint64_t now);

  /** Whether that is remembered. */
  bool isBad(const TokenHash& token, uint64_t now) const;

  bool reads(uint32_t number, std::string_view key) const {
    return grants_[number].read.covers(key);
  }

  /** The name of its holder among those that watch; empty: it has none. */
  std::string_view nameOf(uint32_t number) const {
    const Grant& grant = grants_[number];
    return grant.present ? grant.parts[static_cast<size_t>(GrantPart::kSub)] : std::string_view();
  }

  /** kOk while it holds; else what its holder is told. */
  Outcome over(uint32_t number, uint64_t now) const {
    const Grant& grant = grants_[number];
    if (grant.ended) return Outcome::kBadGrant;
    return grant.end <= now ? Outcome::kGrantExpired : Outcome::kOk;
  }

  /** Milliseconds until it ends. */
  uint64_t left(uint32_t number, uint64_t now) const {
    const uint64_t end = grants_[number].end;
    return end > now ? end - now : 0;
  }

  /** A watcher by it has come, or gone. */
  void watched(uint32_t number);
  void unwatched(uint32_t number);

  /** Ends all that have this name; says whether one of them has watchers. */
  bool end(GrantPart part, std::string_view name);

 private:
  struct Grant {
    TokenHash token;
    uint64_t end;
    KeyPatterns read;
    std::array<std::string, kGrantParts> parts;
    uint32_t watchers = 0;
    bool present = false;
    bool ended = false;
    std::list<uint32_t>::iterator idle = {};  // where it has no watchers
  };

  struct Hash {
    size_t operator()(const TokenHash& token) const {
      // It is a hash already.
      size_t word;
      memcpy(&word, token.data(), sizeof word);
      return word;
    }
  };

  struct Bad {
    TokenHash token;
    uint64_t until;
  };

  static uint64_t bytesOf(const Grant& grant);
  void forget(uint32_t number);

  std::vector<Grant> grants_ = std::vector<Grant>(1);  // by number
  std::vector<uint32_t> free_;
  std::unordered_map<TokenHash, uint32_t, Hash> byToken_;
  std::list<uint32_t> idle_;  // without watchers, the one used longest ago first
  std::vector<Bad> bad_;      // by hash; empty until there is one
  uint64_t bytes_ = 0;
};

}  // namespace server

#endif  // SPRITES_GRANTS_H_
