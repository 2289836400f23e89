// What JavaScript asks to watch, converted for the table of feeds.
#ifndef SPRITES_WATCH_ARGUMENTS_H_
#define SPRITES_WATCH_ARGUMENTS_H_

#include <cstring>
#include <string>
#include <vector>

#include "convert.h"
#include "feeds/feeds.h"

namespace server {

/**
 * {keys, afters, hold or -1, delta, gzip, stream, many, posted, last or -1, noneMatch, from:
 * address, and perhaps problems: [outcome, …] and grant: {token: its SHA-256, left: milliseconds,
 * read: [pattern, …], jti, sub, key, present}}.
 */
class WatchArguments {
 public:
  explicit WatchArguments(Local<Value> given)
      : keys_(textsOf(get(given, "keys"))), afters_(textsOf(get(given, "afters"))) {
    for (size_t i = 0; i < keys_.size(); ++i) wanted_.push_back({keys_[i], afters_[i]});
    Local<Value> problems = get(given, "problems");
    for (uint32_t i = 0; problems->IsArray() && i < wanted_.size(); ++i) {
      wanted_[i].problem = Outcome{static_cast<uint8_t>(uint32Of(elementOf(problems, i)))};
    }
    noneMatch_ = textIn(given, "noneMatch");
    const double hold = numberOf(get(given, "hold"));
    const double last = numberOf(get(given, "last"));
    how = {.hold = hold < 0 ? kNoFeedHold : static_cast<uint32_t>(hold),
           .delta = flagIn(given, "delta"),
           .gzip = flagIn(given, "gzip"),
           .stream = flagIn(given, "stream"),
           .hasManyFeeds = flagIn(given, "many"),
           .isPost = flagIn(given, "posted"),
           .lastItems = last < 0 ? kNoLastItems : static_cast<uint32_t>(last),
           .noneMatch = noneMatch_,
           .address = addressOf(get(given, "from"))};
    if (Local<Value> grant = get(given, "grant"); grant->IsObject()) {
      readGrant(grant);
      how.verifiedGrant = &verified_;
    }
  }

  const FeedRequest* wanted() const { return wanted_.data(); }
  uint32_t count() const { return static_cast<uint32_t>(wanted_.size()); }

  WatchOptions how;

 private:
  void readGrant(Local<Value> given) {
    const std::string_view token = bytesOf(get(given, "token"));
    if (token.size() == verified_.token.size()) {
      memcpy(verified_.token.data(), token.data(), token.size());
    }
    verified_.timeLeft = uint64In(given, "left");
    verified_.read = textsOf(get(given, "read"));
    verified_.present = flagIn(given, "present");
    verified_.parts = {textIn(given, "jti"), textIn(given, "sub"), textIn(given, "key")};
  }

  GrantRights verified_;
  const std::vector<std::string> keys_;
  const std::vector<std::string> afters_;
  std::vector<FeedRequest> wanted_;  // views of keys_ and afters_
  std::string noneMatch_;
};

}  // namespace server

#endif  // SPRITES_WATCH_ARGUMENTS_H_
