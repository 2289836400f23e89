// Presence: the names of a feed's watchers, and presence feeds (presence.h).
#include <algorithm>

#include "base/digits.h"
#include "feeds.h"

namespace server {

namespace {

/** Shortest time between two versions of a presence feed, in milliseconds. */
constexpr uint64_t kTellEvery = 1000;

/** A presence feed without requests is forgotten after this time, in milliseconds. */
constexpr uint64_t kPresenceIdle = 60000;

/** Presence feeds that a tick updates: with more feeds than those of a second, each is updated less
 * often. */
constexpr uint32_t kTellShare = 256;

/** Interval between two questions to the other servers of a world, in milliseconds. */
constexpr uint64_t kAskEvery = 5000;

/** How long an asked server sends its share: two questions may get lost. */
constexpr uint64_t kShareFor = 3 * kAskEvery;

/** Names whose lease a tick checks. */
constexpr uint32_t kLeaseShare = 4096;

/** An epoch is a number below 2^48. */
constexpr uint64_t kEpochs = (uint64_t{1} << 48) - 1;

/** Appends a string in canonical JSON (RFC 8785, section 3.2.2.2). */
void appendText(std::string* to, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::string_view kControls = "\b\t\n\f\r\"\\";
  constexpr std::string_view kLetters = "btnfr\"\\";
  *to += '"';
  for (const char c : text) {
    if (const size_t at = kControls.find(c); at != std::string_view::npos) {
      *to += '\\';
      *to += kLetters[at];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      *to += "\\u00";
      *to += kHex[static_cast<size_t>(c) >> 4];
      *to += kHex[static_cast<size_t>(c) & 15];
    } else {
      *to += c;
    }
  }
  *to += '"';
}

/** Returns the value of a presence feed: this server's share and those of the other servers. */
Attendance withOthers(const Presence& presence, Attendance here) {
  uint64_t watching = here.watching;
  std::vector<std::string>& who = here.who;
  for (const auto& [server, share] : presence.others) {
    watching += share.watching;
    who.insert(who.end(), share.who.begin(), share.who.end());
  }
  here.watching = static_cast<uint32_t>(std::min<uint64_t>(watching, UINT32_MAX));
  if (presence.others.empty()) return here;
  std::sort(who.begin(), who.end());
  who.erase(std::unique(who.begin(), who.end()), who.end());
  if (who.size() > kMostNamed) who.resize(kMostNamed);
  return here;
}

std::string valueOf(const Attendance& told) {
  std::string text = "{\"watching\":";
  base::appendDigits(&text, told.watching);
  text += ",\"who\":[";
  for (const std::string& name : told.who) {
    if (text.back() != '[') text += ',';
    appendText(&text, name);
  }
  return text + "]}";
}

/** Returns the operations from one value to another, different one. */
std::string patchOf(const Attendance& before, const Attendance& now) {
  std::string text;
  if (before.watching != now.watching) {
    text += ",{\"op\":\"replace\",\"path\":\"/watching\",\"value\":";
    base::appendDigits(&text, now.watching);
    text += '}';
  }
  const auto begin = [&text](std::string_view op, size_t index) {
    text.append(",{\"op\":\"").append(op).append("\",\"path\":\"/who/");
    base::appendDigits(&text, index);
    text += '"';
  };
  // Both lists are sorted: the names before `index` are final.
  auto old = before.who.begin();
  const auto end = before.who.end();
  for (size_t index = 0; index < now.who.size() || old != end;) {
    const bool isNext = index < now.who.size();
    if (isNext && old != end && *old == now.who[index]) {
      ++old;
      ++index;
    } else if (!isNext || (old != end && *old < now.who[index])) {
      begin("remove", index);
      text += '}';
      ++old;
    } else {
      begin("add", index);
      text += ",\"value\":";
      appendText(&text, now.who[index++]);
      text += '}';
    }
  }
  return text.substr(1);
}

}  // namespace

// ---- Names --------------------------------------------------------------------------------------

/** Returns the grant with which a watch ends: kNone for a grant that neither opens one of its feeds
 * nor names the watcher there. */
uint32_t Feeds::bindingOf(const Wanted* wanted, uint32_t count, uint32_t grant) const {
  if (grant == Grants::kNone) return grant;
  const bool binds = std::any_of(wanted, wanted + count, [&](const Wanted& one) {
    return isPrivate(one.key) || !nameOf(one.key, grant).empty();
  });
  return binds ? grant : Grants::kNone;
}

/** Returns the name of a watcher of a feed by its grant; empty: none. */
std::string_view Feeds::nameOf(std::string_view key, uint32_t grant) const {
  const std::string_view name = grants_.nameOf(grant);
  const bool isNamed = !name.empty() && toldBy(key).empty() && grants_.reads(grant, key);
  return isNamed ? name : std::string_view();
}

/** Finds a name of the feed, or adds it; nullptr: there is no room. */
Present* Feeds::presentIn(Feed* feed, std::string_view name) {
  if (!feed->names) feed->names = std::make_unique<Names>();
  const auto found = feed->names->find(name);
  if (found != feed->names->end()) return &found->second;
  if (names_ == options_.names) {
    if (feed->names->empty()) feed->names.reset();
    return nullptr;
  }
  ++names_;
  if (shows()) named_.push_back({feed->key, std::string(name), true});
  return &feed->names->emplace(name, Present{}).first->second;
}

/** Adds a watcher with this name. */
void Feeds::come(Feed* feed, std::string_view name) {
  if (name.empty()) return;
  if (Present* const one = presentIn(feed, name)) ++one->watching;
}

/** Removes a watcher with this grant. */
void Feeds::go(Feed* feed, uint32_t grant) {
  const std::string_view name = nameOf(feed->key, grant);
  if (name.empty() || !feed->names) return;
  const auto found = feed->names->find(name);
  // There was no room for the name when the watcher came.
  if (found == feed->names->end() || found->second.watching == 0) return;
  Present& one = found->second;
  if (--one.watching > 0) return;
  if (grants_.over(grant, clockNow()) == Outcome::kBadGrant) return leave(feed, found);
  one.until = now_ + options_.lease;
  if (std::exchange(one.leaving, true)) return;
  leaving_.emplace(one.until, Leaving{feed->number, std::string(name)});
}

/** Ends a name that no watcher here has. */
void Feeds::leave(Feed* feed, Names::iterator one) {
  one->second.until = 0;
  if (shows()) named_.push_back({feed->key, one->first, false});
  forgetName(feed, one);
}

/** Removes a name without watchers. */
void Feeds::forgetName(Feed* feed, Names::iterator one) {
  if (one->second.isThere(now_)) return;
  feed->names->erase(one);
  --names_;
  if (feed->names->empty()) feed->names.reset();
}

void Feeds::forgetNames(Feed* feed) {
  while (feed->presence && !feed->presence->others.empty()) {
    forgetShare(feed->presence.get(), feed->presence->others.begin()->first);
  }
  if (!feed->names) return;
  names_ -= static_cast<uint32_t>(feed->names->size());
  feed->names.reset();
}

/** Checks a share of the names whose leases may be over. */
void Feeds::endLeases() {
  for (uint32_t share = kLeaseShare; share > 0 && !leaving_.empty(); --share) {
    if (leaving_.begin()->first > now_) return;
    const Leaving due = std::move(leaving_.extract(leaving_.begin()).mapped());
    Feed* const feed = feeds_[due.feed].get();
    if (feed == nullptr || !feed->names) continue;
    const auto found = feed->names->find(due.name);
    if (found == feed->names->end()) continue;
    Present& one = found->second;
    one.leaving = one.watching == 0 && one.until > now_;
    if (one.leaving) {
      leaving_.emplace(one.until, due);
    } else if (one.watching == 0) {
      leave(feed, found);
    }
  }
}

void Feeds::namedAtWorker(std::string_view key, std::string_view name, uint32_t thread,
                          bool there) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr) return;
  if (there) {
    if (Present* const one = presentIn(feed, name)) one->threads.set(thread);
    return;
  }
  if (!feed->names) return;
  const auto found = feed->names->find(name);
  if (found == feed->names->end()) return;
  found->second.threads.reset(thread);
  forgetName(feed, found);
}

void Feeds::leftAtWorker(std::string_view key, uint32_t thread) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr) return;
  std::vector<std::string> those;
  if (feed->names) {
    for (const auto& [name, one] : *feed->names) {
      if (one.threads.test(thread)) those.push_back(name);
    }
  }
  for (const std::string& name : those) namedAtWorker(key, name, thread, false);
  feed->threads.reset(thread);
  if (feed->awaited) eraseIfOver(feed);
}

// ---- Other servers of a world -------------------------------------------------------------------

void Feeds::askShare(std::string_view key) {
  Feed* feed = lookUp(key);
  if (feed == nullptr || feed->awaited) {
    if (beginPresence(key, now_ + kAskEvery) != Outcome::kOk) return;
    feed = lookUp(key);
    feed->askedAt = 0;  // no request came here
  }
  if (!feed->presence) return;
  Presence& presence = *feed->presence;
  // If one server asks, each server sends its share to all others.
  presence.askAt = now_ + kAskEvery;
  presence.shared.reset();
  if (std::exchange(presence.shareUntil, now_ + kShareFor) > now_) return;
  share(feed, presentHere(lookUp(toldBy(key)), &presence));
}

/** Asks the other servers, or sends them a changed share. */
void Feeds::share(Feed* feed, const Attendance& here) {
  if (!options_.shared) return;
  Presence& presence = *feed->presence;
  Want one = {.key = feed->key};
  one.asks = presence.askAt <= now_ && isAsked(*feed);
  if (one.asks) {
    presence.askAt = now_ + kAskEvery;
    presence.shareUntil = now_ + kShareFor;
    presence.shared.reset();
  }
  if (presence.shareUntil > now_ && presence.shared != here) one.share = presence.shared = here;
  if (one.asks || one.share) want(std::move(one));
}

void Feeds::takeShare(std::string_view key, std::string_view server, Attendance share) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->presence) return;
  forgetShare(feed->presence.get(), server);
  const size_t room = std::min<size_t>(kMostNamed, options_.names - names_);
  if (share.who.size() > room) share.who.resize(room);
  names_ += static_cast<uint32_t>(share.who.size());
  feed->presence->others.emplace(server, std::move(share));
}

void Feeds::forgetShare(Presence* presence, std::string_view server) {
  const auto found = presence->others.find(server);
  if (found == presence->others.end()) return;
  names_ -= static_cast<uint32_t>(found->second.who.size());
  presence->others.erase(found);
}

void Feeds::forgetShares(std::string_view server) {
  for (const std::unique_ptr<Feed>& feed : feeds_) {
    if (feed != nullptr && feed->presence) forgetShare(feed->presence.get(), server);
  }
}

// ---- Presence feeds -----------------------------------------------------------------------------

/** Returns this server's share of a presence feed. */
Attendance Feeds::presentHere(Feed* of, Presence* presence) const {
  const uint32_t now = of->watchers();
  Attendance told = {presence->take(now_, std::max(std::exchange(of->most, now), now)), {}};
  if (!of->names) return told;
  for (const auto& [name, one] : *of->names) {
    if (told.who.size() == kMostNamed) break;
    if (one.isThere(now_)) told.who.push_back(name);
  }
  return told;
}

/** Creates a presence feed, which is missing or awaited, and asks the other servers from `askAt`
 * on: kOk, kUnknownFeed where its feed does not exist, kTooManyFeeds, kFeedMemoryFull. */
Outcome Feeds::beginPresence(std::string_view key, uint64_t askAt) {
  Feed* const of = lookUp(toldBy(key));
  if (of == nullptr || !of->value || of->presence) return Outcome::kUnknownFeed;
  if (counts_.presences >= options_.feeds) return Outcome::kTooManyFeeds;
  // Watchers before the first request do not count.
  of->most = 0;
  auto presence = std::make_unique<Presence>(now_, options_.lease);
  presence->askAt = askAt;
  const Attendance told = presentHere(of, presence.get());
  const std::string value = valueOf(told);
  if (!fits(nullptr, mostOf(value.size(), 0))) return Outcome::kFeedMemoryFull;
  Feed* feed = lookUp(key);
  if (feed == nullptr) {
    feed = make(key);
  } else {
    --placesOf(*feed);
    feed->awaited = false;
  }
  feed->presence = std::move(presence);
  ++placesOf(*feed);
  const uint64_t random = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  tell(feed, {1 + random % kEpochs, 1}, told, value, {});
  share(feed, told);
  return Outcome::kOk;
}

/** Publishes a version of a presence feed, and plans the next one. */
void Feeds::tell(Feed* feed, Cursor cursor, Attendance told, std::string_view value,
                 std::string patch) {
  apply({.key = feed->key,
         .cursor = cursor,
         .value = base::Bytes::copyOf(value, &shared_->ledger),
         .patch = std::move(patch)});
  Presence& presence = *feed->presence;
  presence.told = std::move(told);
  if (std::exchange(presence.heard, false)) {
    want({.key = feed->key, .cursor = cursor, .heard = true});
  }
  tellLater(feed);
}  // NOLINT(clang-analyzer-unix.Malloc): a reference is counted, not leaked

/** Publishes a version if the value has changed. */
void Feeds::tellAgain(Feed* feed) {
  Presence& presence = *feed->presence;
  // A presence feed ends with its feed.
  Attendance here = presentHere(lookUp(toldBy(feed->key)), &presence);
  share(feed, here);
  Attendance told = withOthers(presence, std::move(here));
  if (told != presence.told) {
    const std::string value = valueOf(told);
    // Without memory for it, the next version has the change.
    if (fits(feed, mostOf(value.size(), 0))) {
      const Cursor next = {feed->cursor.epoch, feed->cursor.version + 1};
      const std::string patch = patchOf(presence.told, told);
      return tell(feed, next, std::move(told), value, patch);
    }
  }
  tellLater(feed);
}

/** Queues a presence feed for its next version. */
void Feeds::tellLater(Feed* feed) {
  feed->presence->at = now_ + kTellEvery;
  telling_.emplace_back(feed->presence->at, feed->number);
}

/** Whether a client of this server watches a presence feed, or has watched it recently. */
bool Feeds::isAsked(const Feed& presence) const {
  return presence.watchers() > 0 || presence.presence->heard ||
         presence.askedAt + kPresenceIdle > now_;
}

/** Updates a share of the presence feeds whose time has come. */
void Feeds::tellDue() {
  for (uint32_t share = kTellShare; share > 0 && !telling_.empty(); --share) {
    const auto [at, number] = telling_.front();
    if (at > now_) return;
    telling_.pop_front();
    Feed* const feed = feeds_[number].get();
    // The number may be another feed's by now.
    if (feed == nullptr || feed->gone || !feed->presence || feed->presence->at != at) continue;
    if (isAsked(*feed) || feed->presence->shareUntil > now_) {
      tellAgain(feed);
    } else {
      end(feed);
    }
  }
}

/** Deletes the presence feed of a deleted feed. */
void Feeds::endPresenceOf(std::string_view key) {
  if (counts_.presences == 0) return;
  Feed* const feed = lookUp(std::string(kPresence).append(key));
  if (feed != nullptr && feed->presence) end(feed);
}

const Feed* Feeds::seek(std::string_view key) {
  Feed* const feed = lookUp(key);
  const bool begins = !toldBy(key).empty() && (feed == nullptr || feed->awaited);
  if (begins && beginPresence(key) != Outcome::kOk) return feed;
  return lookUp(key);
}

const Feed* Feeds::hear(std::string_view key) {
  const Feed* const feed = seek(key);
  if (feed != nullptr && feed->presence) feed->presence->heard = true;
  for (Staged& one : staged_) one.heard = one.heard || one.key == key;
  return feed;
}

}  // namespace server
