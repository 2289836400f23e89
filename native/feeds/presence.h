// Presence: the value of a presence feed, and the names of the watchers of its feed.
//
//   feed "scores"            watching, most        counted for every feed
//     └ names                "ann" ─▶ watchers │ end of its lease │ threads that have the name
//   feed "presence/scores"   {"watching":4012,"who":["ann","bo"]}
//     └ presence             counts of the last lease │ last value │ time of the next one
//
// Only a watcher with `present` in its grant has a name, and only it pays for that: the name is
// looked up when the watcher comes and goes. A name stays for a lease after its last watcher.
//
// A worker's table reports a new name, and a name whose lease is over, to the main thread: the
// polls in between cross nothing. The main table has a bit for each thread that has the name.
//
// In a world, a server with a presence feed asks the others. Each sends its own share, which is
// valid as long as that server is a member (lib/world/shared-presence.js):
//
//   asked ─▶ "here": the share of this server ─▶ sent to the others after each change
//                      + others: a ─▶ share, c ─▶ share  =  told
//
// Cost: some 150 bytes for each name and feed. Rejected: a look at all watchers once a second (a
// million takes longer than a turn may), a count by grant (a client with a new grant counts twice).
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
#include <vector>

namespace server {

/** A name that watches a feed, or has just done so. */
struct PresentName {
  uint32_t watching = 0;       // its watchers in this table
  bool hasLeaseEntry = false;  // in Feeds::nameLeases_, until its lease is over
  uint64_t leaseEnd = 0;       // milliseconds: the end of its lease without a watcher
  std::bitset<128> workers;    // workers that have the name

  bool isPresent(uint64_t now) const { return watching > 0 || leaseEnd > now || workers.any(); }
};

/** Names in the order of their bytes. */
using Names = std::map<std::string, PresentName, std::less<>>;

/** Most names in a presence feed. */
constexpr size_t kMaxNamed = 100;

/** The value of a presence feed. */
struct Attendance {
  uint32_t watching;
  std::vector<std::string> names;

  bool operator==(const Attendance&) const = default;
};

/** The state of a presence feed. */
class Presence {
 public:
  /** `now` and `lease` in milliseconds. */
  Presence(uint64_t now, uint64_t lease)
      : partLength_(std::max<uint64_t>(1, lease / kParts)), newestPart_(now / partLength_) {}

  /** Takes the most watchers at a time since the last call. Returns the most within a lease. */
  uint32_t recordPeak(uint64_t now, uint32_t watchers) {
    const uint64_t newest = now / partLength_;
    for (uint64_t i = 1; i <= std::min<uint64_t>(newest - newestPart_, kParts); ++i) {
      peaks_[(newestPart_ + i) % kParts] = 0;
    }
    newestPart_ = newest;
    uint32_t& peak = peaks_[newest % kParts];
    peak = std::max(peak, watchers);
    return *std::max_element(peaks_.begin(), peaks_.end());
  }

  Attendance published = {};       // the last value
  uint64_t nextVersionAt = 0;      // milliseconds: the time of the next version
  bool reportsNextChange = false;  // this program waits for a change

  // In a world:
  std::map<std::string, Attendance, std::less<>> otherShares;  // shares of other servers
  std::optional<Attendance> sentShare;  // the share that was sent to them last
  uint64_t sendsShareUntil = 0;         // milliseconds: the others want the share until then
  uint64_t nextAskAt = 0;               // milliseconds: the next question to the others

 private:
  static constexpr uint64_t kParts = 8;

  uint64_t partLength_;  // length of a part of the lease, milliseconds
  uint64_t newestPart_;  // number of the newest part
  std::array<uint32_t, kParts> peaks_ = {};
};

}  // namespace server

#endif  // SPRITES_PRESENCE_H_
