// Presence: the names of a feed's watchers, and presence feeds (presence.h).
#include <algorithm>

#include "base/digits.h"
#include "feeds.h"

namespace server {

namespace {

/** Shortest time between two versions of a presence feed, in milliseconds. */
constexpr uint64_t kPresenceEvery = 1000;

/** A presence feed without requests is forgotten after this time, in milliseconds. */
constexpr uint64_t kPresenceIdle = 60000;

/** Presence feeds that a tick updates: with more feeds than those of a second, each is updated less
 * often. */
constexpr uint32_t kPresenceBudget = 256;

/** Interval between two questions to the other servers of a world, in milliseconds. */
constexpr uint64_t kAskEvery = 5000;

/** How long an asked server sends its share: two questions may get lost. */
constexpr uint64_t kSendShareFor = 3 * kAskEvery;

/** Names whose lease a tick checks. */
constexpr uint32_t kLeaseBudget = 4096;

/** An epoch is a number below 2^48. */
constexpr uint64_t kEpochs = (uint64_t{1} << 48) - 1;

/** Appends a string in canonical JSON (RFC 8785, section 3.2.2.2). */
void appendJsonText(std::string* to, std::string_view text) {
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
Attendance withOthers(const Presence& presence, Attendance own) {
  uint64_t watching = own.watching;
  std::vector<std::string>& names = own.names;
  for (const auto& [server, share] : presence.otherShares) {
    watching += share.watching;
    names.insert(names.end(), share.names.begin(), share.names.end());
  }
  own.watching = static_cast<uint32_t>(std::min<uint64_t>(watching, UINT32_MAX));
  if (presence.otherShares.empty()) return own;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.size() > kMaxNamed) names.resize(kMaxNamed);
  return own;
}

std::string presenceValue(const Attendance& attendance) {
  std::string text = "{\"watching\":";
  base::appendDigits(&text, attendance.watching);
  text += ",\"who\":[";
  for (const std::string& name : attendance.names) {
    if (text.back() != '[') text += ',';
    appendJsonText(&text, name);
  }
  return text + "]}";
}

/** Returns the operations from one value to another, different one. */
std::string presencePatch(const Attendance& before, const Attendance& now) {
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
  auto old = before.names.begin();
  const auto end = before.names.end();
  for (size_t index = 0; index < now.names.size() || old != end;) {
    const bool isNext = index < now.names.size();
    if (isNext && old != end && *old == now.names[index]) {
      ++old;
      ++index;
    } else if (!isNext || (old != end && *old < now.names[index])) {
      begin("remove", index);
      text += '}';
      ++old;
    } else {
      begin("add", index);
      text += ",\"value\":";
      appendJsonText(&text, now.names[index++]);
      text += '}';
    }
  }
  return text.substr(1);
}

}  // namespace

// ---- Names --------------------------------------------------------------------------------------

/** Returns the grant with which a watch ends: kNone for a grant that neither opens one of its feeds
 * nor names the watcher there. */
uint32_t Feeds::bindingGrant(const FeedRequest* requests, uint32_t count, uint32_t grant) const {
  if (grant == Grants::kNone) return grant;
  const bool binds = std::any_of(requests, requests + count, [&](const FeedRequest& one) {
    return isPrivate(one.key) || !watcherName(one.key, grant).empty();
  });
  return binds ? grant : Grants::kNone;
}

/** Returns the name of a watcher of a feed by its grant; empty: none. */
std::string_view Feeds::watcherName(std::string_view key, uint32_t grant) const {
  const std::string_view name = grants_.nameOf(grant);
  const bool isNamed = !name.empty() && presenceSubjectOf(key).empty() && grants_.reads(grant, key);
  return isNamed ? name : std::string_view();
}

/** Finds a name of the feed, or adds it; nullptr: there is no room. */
PresentName* Feeds::findOrAddName(Feed* feed, std::string_view name) {
  if (!feed->names) feed->names = std::make_unique<Names>();
  const auto found = feed->names->find(name);
  if (found != feed->names->end()) return &found->second;
  if (nameCount_ == options_.maxNames) {
    if (feed->names->empty()) feed->names.reset();
    return nullptr;
  }
  ++nameCount_;
  if (isWorkerTable()) nameChanges_.push_back({feed->key, std::string(name), true});
  return &feed->names->emplace(name, PresentName{}).first->second;
}

/** Adds a watcher with this name. */
void Feeds::addNamedWatcher(Feed* feed, std::string_view name) {
  if (name.empty()) return;
  if (PresentName* const one = findOrAddName(feed, name)) ++one->watching;
}

/** Removes a watcher with this grant. */
void Feeds::removeNamedWatcher(Feed* feed, uint32_t grant) {
  const std::string_view name = watcherName(feed->key, grant);
  if (name.empty() || !feed->names) return;
  const auto found = feed->names->find(name);
  // There was no room for the name when the watcher came.
  if (found == feed->names->end() || found->second.watching == 0) return;
  PresentName& one = found->second;
  if (--one.watching > 0) return;
  if (grants_.problemOf(grant, clockNow()) == Outcome::kBadGrant) return endName(feed, found);
  one.leaseEnd = now_ + options_.lease;
  if (std::exchange(one.hasLeaseEntry, true)) return;
  nameLeases_.emplace(one.leaseEnd, NameLease{feed->number, std::string(name)});
}

/** Ends a name that no watcher here has. */
void Feeds::endName(Feed* feed, Names::iterator one) {
  one->second.leaseEnd = 0;
  if (isWorkerTable()) nameChanges_.push_back({feed->key, one->first, false});
  removeNameIfUnused(feed, one);
}

/** Removes a name without watchers. */
void Feeds::removeNameIfUnused(Feed* feed, Names::iterator one) {
  if (one->second.isPresent(now_)) return;
  feed->names->erase(one);
  --nameCount_;
  if (feed->names->empty()) feed->names.reset();
}

void Feeds::removeAllNames(Feed* feed) {
  while (feed->presence && !feed->presence->otherShares.empty()) {
    removeShare(feed->presence.get(), feed->presence->otherShares.begin()->first);
  }
  if (!feed->names) return;
  nameCount_ -= static_cast<uint32_t>(feed->names->size());
  feed->names.reset();
}

/** Checks a share of the names whose leases may be over. */
void Feeds::endNameLeases() {
  for (uint32_t budget = kLeaseBudget; budget > 0 && !nameLeases_.empty(); --budget) {
    if (nameLeases_.begin()->first > now_) return;
    const NameLease due = std::move(nameLeases_.extract(nameLeases_.begin()).mapped());
    Feed* const feed = feeds_[due.feed].get();
    if (feed == nullptr || !feed->names) continue;
    const auto found = feed->names->find(due.name);
    if (found == feed->names->end()) continue;
    PresentName& one = found->second;
    one.hasLeaseEntry = one.watching == 0 && one.leaseEnd > now_;
    if (one.hasLeaseEntry) {
      nameLeases_.emplace(one.leaseEnd, due);
    } else if (one.watching == 0) {
      endName(feed, found);
    }
  }
}

void Feeds::setNameAtWorker(std::string_view key, std::string_view name, uint32_t thread,
                            bool isPresent) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr) return;
  if (isPresent) {
    if (PresentName* const one = findOrAddName(feed, name)) one->workers.set(thread);
    return;
  }
  if (!feed->names) return;
  const auto found = feed->names->find(name);
  if (found == feed->names->end()) return;
  found->second.workers.reset(thread);
  removeNameIfUnused(feed, found);
}

void Feeds::detachWorker(std::string_view key, uint32_t thread) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr) return;
  std::vector<std::string> departing;
  if (feed->names) {
    for (const auto& [name, one] : *feed->names) {
      if (one.workers.test(thread)) departing.push_back(name);
    }
  }
  for (const std::string& name : departing) setNameAtWorker(key, name, thread, false);
  feed->waitingWorkers.reset(thread);
  if (feed->isAwaited) eraseIfUnused(feed);
}

// ---- Other servers of a world -------------------------------------------------------------------

void Feeds::answerShareRequest(std::string_view key) {
  Feed* feed = lookUp(key);
  if (feed == nullptr || feed->isAwaited) {
    if (createPresence(key, now_ + kAskEvery) != Outcome::kOk) return;
    feed = lookUp(key);
    feed->lastRequestAt = 0;  // no request came here
  }
  if (!feed->presence) return;
  Presence& presence = *feed->presence;
  // If one server asks, each server sends its share to all others.
  presence.nextAskAt = now_ + kAskEvery;
  presence.sentShare.reset();
  if (std::exchange(presence.sendsShareUntil, now_ + kSendShareFor) > now_) return;
  exchangeShares(feed, ownShare(lookUp(presenceSubjectOf(key)), &presence));
}

/** Asks the other servers, or sends them a changed share. */
void Feeds::exchangeShares(Feed* feed, const Attendance& own) {
  if (!options_.inWorld) return;
  Presence& presence = *feed->presence;
  Task one = {.key = feed->key};
  one.asksForShares = presence.nextAskAt <= now_ && isRecentlyWatched(*feed);
  if (one.asksForShares) {
    presence.nextAskAt = now_ + kAskEvery;
    presence.sendsShareUntil = now_ + kSendShareFor;
    presence.sentShare.reset();
  }
  if (presence.sendsShareUntil > now_ && presence.sentShare != own)
    one.ownShare = presence.sentShare = own;
  if (one.asksForShares || one.ownShare) addTask(std::move(one));
}

void Feeds::setShare(std::string_view key, std::string_view server, Attendance share) {
  Feed* const feed = lookUp(key);
  if (feed == nullptr || !feed->presence) return;
  removeShare(feed->presence.get(), server);
  const size_t room = std::min<size_t>(kMaxNamed, options_.maxNames - nameCount_);
  if (share.names.size() > room) share.names.resize(room);
  nameCount_ += static_cast<uint32_t>(share.names.size());
  feed->presence->otherShares.emplace(server, std::move(share));
}

void Feeds::removeShare(Presence* presence, std::string_view server) {
  const auto found = presence->otherShares.find(server);
  if (found == presence->otherShares.end()) return;
  nameCount_ -= static_cast<uint32_t>(found->second.names.size());
  presence->otherShares.erase(found);
}

void Feeds::removeShares(std::string_view server) {
  for (const std::unique_ptr<Feed>& feed : feeds_) {
    if (feed != nullptr && feed->presence) removeShare(feed->presence.get(), server);
  }
}

// ---- Presence feeds -----------------------------------------------------------------------------

/** Returns this server's share of a presence feed. */
Attendance Feeds::ownShare(Feed* subject, Presence* presence) const {
  const uint32_t now = subject->watchers();
  Attendance attendance = {
      presence->recordPeak(now_, std::max(std::exchange(subject->peakWatchers, now), now)), {}};
  if (!subject->names) return attendance;
  for (const auto& [name, one] : *subject->names) {
    if (attendance.names.size() == kMaxNamed) break;
    if (one.isPresent(now_)) attendance.names.push_back(name);
  }
  // A named watcher counts as long as it is named: between two polls, and before the first request.
  const auto named = static_cast<uint32_t>(attendance.names.size());
  attendance.watching = std::max(attendance.watching, named);
  return attendance;
}

/** Creates a presence feed, which is missing or awaited, and asks the other servers from `askAt`
 * on: kOk, kUnknownFeed where its feed does not exist, kTooManyFeeds, kFeedMemoryFull. */
Outcome Feeds::createPresence(std::string_view key, uint64_t askAt) {
  Feed* const subject = lookUp(presenceSubjectOf(key));
  if (subject == nullptr || !subject->value || subject->presence) return Outcome::kUnknownFeed;
  if (counts_.presences >= options_.feeds) return Outcome::kTooManyFeeds;
  // Watchers before the first request do not count.
  subject->peakWatchers = 0;
  auto presence = std::make_unique<Presence>(now_, options_.lease);
  presence->nextAskAt = askAt;
  const Attendance attendance = ownShare(subject, presence.get());
  const std::string value = presenceValue(attendance);
  if (!fits(nullptr, peakBytesOf(value.size(), 0))) return Outcome::kFeedMemoryFull;
  Feed* feed = lookUp(key);
  if (feed == nullptr) {
    feed = createUncounted(key);
  } else {
    --countOf(*feed);
    feed->isAwaited = false;
  }
  feed->presence = std::move(presence);
  ++countOf(*feed);
  const uint64_t random = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  publishPresence(feed, {1 + random % kEpochs, 1}, attendance, value, {});
  exchangeShares(feed, attendance);
  return Outcome::kOk;
}

/** Publishes a version of a presence feed, and plans the next one. */
void Feeds::publishPresence(Feed* feed, Cursor cursor, Attendance attendance,
                            std::string_view value, std::string patch) {
  apply({.key = feed->key,
         .cursor = cursor,
         .value = base::Bytes::copyOf(value, &sharedCounts_->ledger),
         .patch = std::move(patch)});
  Presence& presence = *feed->presence;
  presence.published = std::move(attendance);
  if (std::exchange(presence.reportsNextChange, false)) {
    addTask({.key = feed->key, .cursor = cursor, .reportsChange = true});
  }
  schedulePresence(feed);
}  // NOLINT(clang-analyzer-unix.Malloc): a reference is counted, not leaked

/** Publishes a version if the value has changed. */
void Feeds::updatePresence(Feed* feed) {
  Presence& presence = *feed->presence;
  // A presence feed ends with its feed.
  Attendance own = ownShare(lookUp(presenceSubjectOf(feed->key)), &presence);
  exchangeShares(feed, own);
  Attendance attendance = withOthers(presence, std::move(own));
  if (attendance != presence.published) {
    const std::string value = presenceValue(attendance);
    // Without memory for it, the next version has the change.
    if (fits(feed, peakBytesOf(value.size(), 0))) {
      const Cursor next = {feed->cursor.epoch, feed->cursor.version + 1};
      const std::string patch = presencePatch(presence.published, attendance);
      return publishPresence(feed, next, std::move(attendance), value, patch);
    }
  }
  schedulePresence(feed);
}

/** Queues a presence feed for its next version. */
void Feeds::schedulePresence(Feed* feed) {
  feed->presence->nextVersionAt = now_ + kPresenceEvery;
  presenceSchedule_.emplace_back(feed->presence->nextVersionAt, feed->number);
}

/** Whether a client of this server watches a presence feed, or has watched it recently. */
bool Feeds::isRecentlyWatched(const Feed& presence) const {
  return presence.watchers() > 0 || presence.presence->reportsNextChange ||
         presence.lastRequestAt + kPresenceIdle > now_;
}

/** Updates a share of the presence feeds whose time has come. */
void Feeds::updateDuePresences() {
  for (uint32_t budget = kPresenceBudget; budget > 0 && !presenceSchedule_.empty(); --budget) {
    const auto [at, number] = presenceSchedule_.front();
    if (at > now_) return;
    presenceSchedule_.pop_front();
    Feed* const feed = feeds_[number].get();
    // The number may be another feed's by now.
    if (feed == nullptr || feed->isDeleted || !feed->presence ||
        feed->presence->nextVersionAt != at)
      continue;
    if (isRecentlyWatched(*feed) || feed->presence->sendsShareUntil > now_) {
      updatePresence(feed);
    } else {
      end(feed);
    }
  }
}

/** Deletes the presence feed of a deleted feed. */
void Feeds::deletePresenceOf(std::string_view key) {
  if (counts_.presences == 0) return;
  Feed* const feed = lookUp(std::string(kPresencePrefix).append(key));
  if (feed != nullptr && feed->presence) end(feed);
}

const Feed* Feeds::findOrCreatePresence(std::string_view key) {
  Feed* const feed = lookUp(key);
  const bool begins = !presenceSubjectOf(key).empty() && (feed == nullptr || feed->isAwaited);
  if (begins && createPresence(key) != Outcome::kOk) return feed;
  return lookUp(key);
}

const Feed* Feeds::reportNextChange(std::string_view key) {
  const Feed* const feed = findOrCreatePresence(key);
  if (feed != nullptr && feed->presence) feed->presence->reportsNextChange = true;
  for (Staged& one : staged_) one.reportsChange = one.reportsChange || one.key == key;
  return feed;
}

}  // namespace server
