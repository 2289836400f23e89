// The watchers of a feed: what its presence feed says, and the names that the table has for that.
//
//   feed "scores"            watching, most        counted for every feed, as ever
//     └ names                "ann" ─▶ watchers │ until when it stays │ threads that have it
//   feed "presence/scores"   {"watching":4012,"who":["ann","bo"]}
//     └ presence             the last leases' counts │ what was told │ when it is told again
//
// Only a watcher whose grant says `present` is named, and only it pays for that: a name that is
// looked up when it comes and goes. A name stays for a lease after its last watcher has gone.
//
// A worker's table tells the main thread of a name that has come, and of one whose lease is over:
// the polls in between cross nothing. There a name has a bit for each thread.
//
// In a world of several servers one that has a presence feed asks the others, and each tells its
// own share of it, which is theirs for as long as that server is (lib/world/shared-presence.js):
//
//   asked ─▶ "here": the share of this server ─▶ told to the others when it has changed
//                      + others: a ─▶ share, c ─▶ share  =  told
//
// Cost: some 150 bytes a name and feed. Rejected: to look at all watchers once a second (a million
// takes longer than a turn may), to count by grant (a client that takes a new one would be two).
#ifndef SPRITES_PRESENCE_H_
#define SPRITES_PRESENCE_H_

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace server {

/** A name that watches a feed, or has just done so. */
struct Present {
  uint32_t watching = 0;     // its watchers in this table
  bool leaving = false;      // is looked at when its lease is over
  uint64_t until = 0;        // milliseconds: how long it stays without a watcher
  std::bitset<128> threads;  // workers that have the name

  bool isThere(uint64_t now) const { return watching > 0 || until > now || threads.any(); }
};

/** In the order of their bytes. */
using Names = std::map<std::string, Present, std::less<>>;

/** The most names that a presence feed says. */
constexpr size_t kMostNamed = 100;

/** What a presence feed has as its value. */
struct Attendance {
  uint32_t watching;
  std::vector<std::string> who;

  bool operator==(const Attendance&) const = default;
};

/** What a presence feed tells. */
class Presence {
 public:
  /** `now` and `lease` in milliseconds. */
  Presence(uint64_t now, uint64_t lease)
      : share_(std::max<uint64_t>(1, lease / kShares)), newest_(now / share_) {}

  /** Takes how many have watched at a time since the last call: the most of a lease. */
  uint32_t take(uint64_t now, uint32_t most) {
    const uint64_t newest = now / share_;
    for (uint64_t i = 1; i <= std::min<uint64_t>(newest - newest_, kShares); ++i) {
      shares_[(newest_ + i) % kShares] = 0;
    }
    newest_ = newest;
    uint32_t& share = shares_[newest % kShares];
    share = std::max(share, most);
    return *std::max_element(shares_.begin(), shares_.end());
  }

  Attendance told = {};  // last
  uint64_t at = 0;       // milliseconds: when it is told again
  bool heard = false;    // this program waits for a change

  // In a world:
  std::map<std::string, Attendance, std::less<>> others;  // what other servers have told of theirs
  std::optional<Attendance> shared;                       // what they were told of this one's, last
  uint64_t shareUntil = 0;  // milliseconds: for so long they want to be told
  uint64_t askAt = 0;       // milliseconds: when they are asked again

 private:
  static constexpr uint64_t kShares = 8;

  uint64_t share_;   // milliseconds of a share
  uint64_t newest_;  // the number of the newest share
  std::array<uint32_t, kShares> shares_ = {};
};

}  // namespace server

#endif  // SPRITES_PRESENCE_H_
