// Visitors of a simulation: clients with grants that watch private feeds and presence feeds, by
// polls or event streams; and the operator, which revokes grants.
//
//   Attendance  most watchers of a feed at any time, and their names
//   Visitor     asks for its feed with a grant (good, expired, forged, another's) or without one
//   Operator    revokes one grant at a time, by `sub` or by `jti`
//
// The laws that visitors check:
//   - a request after a grant's end is refused, also after a crash
//   - a value published after a grant's end is not sent by it; its poll or stream ends with it
//   - a good grant is not refused
//   - an outsider gets the same answer, at once, whether the feed exists or not
//   - a presence feed shows no more watchers than were there within a lease, no other names, and
//     at least as many watchers as names
#ifndef TEST_NATIVE_SIMULATED_VISITORS_H_
#define TEST_NATIVE_SIMULATED_VISITORS_H_

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulated_feeds.h"
#include "simulated_grants.h"

namespace sim {

/** Most delay of a worker's count of watchers, in microseconds. */
constexpr uint64_t kMaxWorkerDelay = kSecond;

/** The watchers of each feed, counted by the clients: never fewer than the server's count. */
class Attendances : public Actor {
 public:
  explicit Attendances(bool workers) : workers_(workers) {}

  void arrive(const std::string& key, const std::string& name) {
    FeedWatchers& one = byFeed_[key];
    change(&one, 1);
    if (!name.empty()) ++one.names[name].watching;
  }

  /** Removes a watcher. `lost`: its connection is lost, and the server may notice that late. */
  void leave(const std::string& key, const std::string& name, bool lost) {
    const uint64_t delay = lost ? 5 * kSecond + crowd->maxDelay : workers_ ? kMaxWorkerDelay : 0;
    departures_.push_back({key, name});
    machine->schedule(delay, this, departures_.size() - 1);
  }

  void act(uint64_t number) override {
    const auto& [key, name] = departures_[number];
    FeedWatchers& one = byFeed_[key];
    change(&one, -1);
    if (name.empty()) return;
    NamedWatcher& its = one.names[name];
    --its.watching;
    its.lastSeen = machine->now();
  }

  /** Returns the most watchers at any time since `since`. */
  uint64_t mostSince(const std::string& key, uint64_t since) const {
    const auto found = byFeed_.find(key);
    if (found == byFeed_.end()) return 0;
    uint64_t most = 0;
    const auto& changes = found->second.changes;
    for (auto at = changes.rbegin(); at != changes.rend(); ++at) {
      most = std::max(most, at->second);
      if (at->first < since) break;
    }
    return most;
  }

  bool wasWatching(const std::string& key, const std::string& name, uint64_t since) const {
    const auto found = byFeed_.find(key);
    if (found == byFeed_.end()) return false;
    const auto its = found->second.names.find(name);
    if (its == found->second.names.end()) return false;
    return its->second.watching > 0 || its->second.lastSeen >= since;
  }

 private:
  struct NamedWatcher {
    uint64_t watching = 0, lastSeen = 0;
  };
  struct FeedWatchers {
    std::deque<std::pair<uint64_t, uint64_t>> changes;  // time, and number from then on
    std::map<std::string, NamedWatcher> names;
  };

  static void change(FeedWatchers* one, int by) {
    const uint64_t before = one->changes.empty() ? 0 : one->changes.back().second;
    one->changes.emplace_back(machine->now(), before + static_cast<uint64_t>(by));
  }

  const bool workers_;
  std::map<std::string, FeedWatchers> byFeed_;
  std::deque<std::pair<std::string, std::string>> departures_;
};
inline Attendances* attendances = nullptr;

class Visitor : public Client {
 public:
  enum class Way : uint8_t { kPoll, kStream };

  /** `publisher`: that of the feed, or of the feed whose presence `key` shows; nullptr: none. */
  Visitor(uint32_t number, Way way, std::string key, const Publisher* publisher)
      : Client(0x0d000000 + number),
        number_(number),
        way_(way),
        feedKey_(std::move(key)),
        publisher_(publisher) {}

  const std::string& key() const { return feedKey_; }

  /** The visitor's name in its last grant; empty: none. */
  std::string name() const { return isSettled_ && grant_->present ? grant_->sub : ""; }

  /** Whether its last presence has exactly these watchers. */
  bool hasReceived(uint64_t watching, const std::set<std::string>& who) const {
    return watching_ == watching && watcherNames_ == who;
  }

  void expectInTime() const override {
    pipe_.expectInTime();
    if (pipe_.pendingCount() == 0 || grant_ == nullptr || !endsWithGrant() ||
        machine->now() <= latestEnd())
      return;
    machine->trace("that is of visitor %" PRIu64, number_);
    machine->fail("grants: a poll, or a stream, goes on behind its end");
  }

  /** Whether it has the newest version. For presence see Lobby::isPresenceRight. */
  bool isUpToDate() const override {
    const Life* const life = hosts[0]->life();
    return life != nullptr && (isPresence(feedKey_) || version_ == life->newest(feedKey_).version);
  }

  void act(uint64_t) override {
    expectInTime();
    pipe_.misbehave();
    if (pipe_.pendingCount() == 0) sendRequest();
    machine->schedule(1 + machine->below(kPause), this, 0);
  }

 private:
  static constexpr uint64_t kHour = 3600 * kSecond;
  /** Length of a reader's pause. */
  static constexpr uint64_t kPause = kSecond;

  /** Returns by when its poll must end with its grant: half a second later, plus possible delays. A
   * poll sent after the grant's end lasts until the grant is verified. */
  uint64_t latestEnd() const {
    const uint64_t end = std::max(book->endOfGrant(*grant_), sentAt_ + kMaxVerifyTime);
    const uint64_t pause = crowd->odds.stops > 0 ? kPause : 0;
    return end >= kNever - kHour ? kNever : end + 500 * kMillisecond + pause + crowd->maxDelay;
  }

  static bool isPresence(std::string_view key) { return !presenceSubjectOf(key).empty(); }
  static bool isPrivate(std::string_view key) {
    const KeyPatterns patterns(kPrivate);
    return patterns.covers(key) || patterns.covers(presenceSubjectOf(key));
  }

  bool grantReads() const { return grant_ != nullptr && !grant_->forged && grant_->reads(key_); }
  /** Returns whether its poll must end with the grant. At a public feed only if the grant was good
   * when it was verified. */
  bool endsWithGrant() const {
    if (!grantReads() || isPrivate(key_)) return grantReads();
    const uint64_t end = std::min(grant_->end, book->revocationStart(*grant_));
    return grant_->present && !isPresence(key_) && end > sentAt_ + kMaxVerifyTime + crowd->maxDelay;
  }
  std::string shownName() const {
    return grantReads() && grant_->present && !isPresence(key_) ? grant_->sub : std::string();
  }

  /** Chooses a grant: at the end of the run a good one; before that any kind. */
  void chooseGrant() {
    const uint64_t kind = crowd->isCalm ? 9 : machine->below(10);
    asOutsider_ = kind < 3;
    isSettled_ = crowd->isCalm;
    if (kind == 0) {
      grant_ = nullptr;
      return;
    }
    if (kind == 3 && book->randomGrant() != nullptr) {
      // An old grant, perhaps another visitor's, perhaps revoked.
      grant_ = book->randomGrant();
      machine->trace("visitor %" PRIu64 " takes an old grant", number_);
      return;
    }
    const uint64_t most = machine->below(3) == 0 ? 90000 : 20000;
    const uint64_t length = crowd->isCalm ? kHour : (1 + machine->below(most)) * kMillisecond;
    const char* const wide[] = {"secret/*", "*"};
    const bool isOwn = machine->below(3) == 0;
    const std::string watchedKey =
        isPresence(feedKey_) ? std::string(presenceSubjectOf(feedKey_)) : feedKey_;
    // A name is reused until it is revoked.
    if (subject_.empty() || book->isRevoked(subject_)) {
      subject_ = "v" + std::to_string(number_) + "." + std::to_string(++nameCount_);
    }
    grant_ = book->sign({.token = {},
                         .sub = subject_,
                         .jti = {},
                         .read = kind == 1                       ? "other/*"
                                 : isOwn || !isPrivate(feedKey_) ? watchedKey
                                                                 : wide[machine->below(2)],
                         .present = machine->below(3) != 0,
                         .forged = kind == 2,
                         .end = machine->now() + length});
    machine->trace("visitor %" PRIu64 " takes a grant for %" PRIu64 " ms, of kind %" PRIu64,
                   number_, length / kMillisecond, kind);
  }

  bool needsGrant() const {
    if (crowd->isCalm && !isSettled_) return true;
    return !hasGrant_ || isRefused_ ||
           (!crowd->isCalm && grant_ == nullptr && machine->below(2) == 0);
  }

  void sendRequest() {
    if (needsGrant()) {
      chooseGrant();
      hasGrant_ = true;
      isRefused_ = false;
      cursor_.clear();
    }
    static constexpr const char* kAny[] = {"secret/a", "secret/none", "presence/secret/a",
                                           "presence/secret/none"};
    // An outsider must not see a difference between these.
    key_ = asOutsider_ ? kAny[machine->below(4)] : feedKey_;
    std::string query, fields;
    requestCursor_ = cursor_;
    if (way_ == Way::kStream) {
      fields = "Accept: text/event-stream\r\n";
      if (!requestCursor_.empty()) fields += "Last-Event-ID: " + requestCursor_ + "\r\n";
    } else if (machine->below(5) != 0) {
      if (requestCursor_.empty()) requestCursor_ = "none";
      query = "?after=" + requestCursor_;
    } else {
      requestCursor_.clear();
    }
    if (grant_ != nullptr && machine->below(2) == 0) {
      query += (query.empty() ? "?grant=" : "&grant=") + grant_->token;
    } else if (grant_ != nullptr) {
      fields += "Authorization: Bearer " + grant_->token + "\r\n";
    }
    sentAt_ = machine->now();
    wasPublished_ = publisher_ != nullptr && publisher_->hasPublished();
    // An outsider must get its answer at once.
    const bool refusedAtOnce = isPrivate(key_) && !grantReads();
    const uint64_t within =
        refusedAtOnce ? kMaxVerifyTime + crowd->maxDelay : kHold * kSecond + kAnswerTime;
    attendances->arrive(key_, shownName());
    isWatching_ = true;
    if (!pipe_.send(getRequest("/feed/" + key_ + query, fields), {.timeout = within}))
      return stopWatching(true);
    machine->trace(asOutsider_ ? "visitor %" PRIu64 " asks as an outsider"
                               : "visitor %" PRIu64 " asks for more than version %" PRIu64,
                   number_, version_);
  }

  void onAnswer(const PendingRequest&, const Answer& answer) override {
    stopWatching(false);
    if (answer.status == 503) return;
    if (answer.status != 200) {
      expect(answer.body.empty(), "grants: a refusal has a body");
      return onRefused(answer.reason);
    }
    expectGranted();
    readValue(answer.body);
    if (machine->below(10) != 0) sendRequest();
  }

  void onStream(std::string_view text) override {
    events_.add(text, [this](std::string_view event) {
      const std::string problem = textBehind(event, "\"problem\":\"");
      if (!problem.empty()) {
        stopWatching(false);
        return onRefused(problem);
      }
      expectGranted();
      readValue(event);
    });
  }

  /** Checks that it may read the feed: the answer is no refusal, or tells that the feed exists. */
  void expectGranted() const {
    if (isPrivate(key_)) {
      expect(grantReads(), "grants: a private feed is told without a grant that reads it");
      expect(sentAt_ < book->endOfGrant(*grant_), "grants: one opens a feed behind its end");
    }
    if (grant_ != nullptr && endsWithGrant()) {
      expect(machine->now() <= latestEnd(), "grants: an answer comes long behind its end");
    }
  }

  void onRefused(std::string_view reason) {
    machine->trace(reason == "not-granted"     ? "visitor %" PRIu64 " is refused: not granted"
                   : reason == "bad-grant"     ? "visitor %" PRIu64 " is refused: a bad grant"
                   : reason == "grant-expired" ? "visitor %" PRIu64 " is refused: an old grant"
                                               : "visitor %" PRIu64 " is refused",
                   number_);
    const uint64_t now = machine->now();
    const bool mayRead = !isPrivate(key_) || grantReads();
    bool fits = false;
    if (reason == "unknown-feed") {
      expect(mayRead, "grants: an outsider is told that there is no such feed");
      fits = !wasPublished_ || isPresence(key_);
    } else if (reason == "grant-required") {
      fits = grant_ == nullptr && isPrivate(key_);
    } else if (reason == "not-granted") {
      fits = grant_ != nullptr && !grant_->forged && !mayRead;
    } else if (reason == "bad-grant") {
      fits = grant_ != nullptr &&
             (grant_->forged ? isPrivate(key_) : book->revocationStart(*grant_) <= now);
    } else if (reason == "grant-expired") {
      // The server's clock has milliseconds.
      fits = grant_ != nullptr && grant_->end <= now + 2 * kMillisecond;
    }
    if (!fits) machine->fail("grants: refused for no reason, by " + std::string(reason));
    isRefused_ = reason != "unknown-feed";
  }

  void readValue(std::string_view body) {
    if (body.find("\"value\":") == body.npos) return;
    cursor_ = textBehind(body, "\"cursor\":\"");
    const uint64_t before = std::exchange(version_, Cursor::parse(cursor_).version);
    if (isPresence(key_)) return readPresence(body);
    const bool isNew = requestCursor_.empty() || requestCursor_ == "none" || version_ > before;
    expect(isNew, "watchers: an older value comes after a newer one");
    requestCursor_ = cursor_;
    size_t place = 0;
    const uint64_t value = numberBehind(body, "\"value\":{\"n\":", &place);
    machine->trace("visitor %" PRIu64 " gets version %" PRIu64 ", number %" PRIu64, number_,
                   version_, value);
    records->record(key_, 0, Cursor::parse(cursor_), value);
    if (!isPrivate(key_)) return;
    // A value may still come that is published before a worker learns of the grant's end.
    expect(publisher_->startedAt(value) <= book->endOfGrant(*grant_) + kSecond,
           "grants: a value comes that was published behind its end");
  }

  void readPresence(std::string_view body) {
    size_t at = 0;
    watching_ = numberBehind(body, "\"watching\":", &at);
    watcherNames_.clear();
    at = body.find("\"who\":[") + 7;
    while (body[at] != ']') {
      const size_t begin = body.find('"', at) + 1;
      const size_t end = body.find('"', begin);
      watcherNames_.insert(std::string(body.substr(begin, end - begin)));
      at = end + 1;
    }
    machine->trace("visitor %" PRIu64 " hears of %" PRIu64 " watchers, %" PRIu64 " by name",
                   number_, watching_, watcherNames_.size());
    const std::string watchedKey(presenceSubjectOf(key_));
    // Presence is up to a second old, and includes watchers that were there within the lease.
    const uint64_t back = (kLease + 1) * kSecond + kSecond + crowd->maxDelay;
    const uint64_t since = sentAt_ > back ? sentAt_ - back : 0;
    const uint64_t named = watcherNames_.size();
    expect(watching_ >= named, "presence: fewer watchers are told of than names");
    const uint64_t most = std::max(named, attendances->mostSince(watchedKey, since));
    if (watching_ > most) {
      machine->fail("presence: " + std::to_string(watching_) + " are told of where " +
                    std::to_string(most) + " watch");
    }
    for (const std::string& name : watcherNames_) {
      expect(attendances->wasWatching(watchedKey, name, since),
             "presence: a name has not been there");
      const uint64_t end = book->endOfName(name);
      expect(end == kNever || sentAt_ <= end + 2 * kSecond + crowd->maxDelay,
             "presence: a name is told that was revoked");
    }
  }

  void stopWatching(bool lost) {
    if (std::exchange(isWatching_, false)) attendances->leave(key_, shownName(), lost);
  }

  void onLost(const PendingRequest&) override {
    events_.clear();
    stopWatching(true);
  }

  const uint32_t number_;
  const Way way_;
  const std::string feedKey_;  // its feed
  const Publisher* const publisher_;
  EventReader events_;
  std::string subject_;
  uint64_t nameCount_ = 0;
  const SignedGrant* grant_ = nullptr;
  bool hasGrant_ = false;   // whether it has chosen a grant, or none
  bool isSettled_ = false;  // whether it keeps the choice to the end
  bool asOutsider_ = false;
  bool isRefused_ = false;
  bool isWatching_ = false;
  bool wasPublished_ = false;  // at the time of the request
  std::string key_;            // of the request
  std::string cursor_;
  std::string requestCursor_;  // the request's cursor, or a newer one
  uint64_t version_ = 0;
  uint64_t sentAt_ = 0;
  uint64_t watching_ = 0;
  std::set<std::string> watcherNames_;
};

class Operator : public Actor {
 public:
  Operator() { machine->schedule(machine->below(10 * kSecond), this, 0); }

  void act(uint64_t) override {
    if (crowd->isCalm) return;
    const SignedGrant* const grant = book->randomGrant();
    if (grant != nullptr && hosts[0]->life() != nullptr && !machine->isDead) {
      const bool bySub = machine->below(2) == 0;
      const std::string& name = bySub ? grant->sub : grant->jti;
      const std::string what = (bySub ? "sub/" : "jti/") + name;
      machine->trace(bySub ? "the operator revokes a name" : "the operator revokes a grant");
      book->beginRevocation(what);
      hosts[0]->life()->admission().revoke(bySub ? GrantPart::kSub : GrantPart::kJti, name, [what] {
        machine->trace("the revocation holds");
        book->confirmRevocation(what);
      });
    }
    machine->schedule(kSecond + machine->below(15 * kSecond), this, 0);
  }
};

/** All visitors, with the publishers of their feeds. */
class Lobby {
 public:
  explicit Lobby(bool workers) : attendances_(workers) {
    book = &book_;
    attendances = &attendances_;
  }

  /** Adds visitors and publishers to the run's `clients`. */
  void open(std::vector<std::unique_ptr<Client>>* clients) {
    static constexpr const char* kKeys[] = {"secret/a", "secret/b", "hall/a", "secret/c"};
    for (const char* key : kKeys) {
      clients->push_back(std::make_unique<Publisher>(key, 0x0e000000));
      publishers_.push_back(static_cast<const Publisher*>(clients->back().get()));
    }
    struct Some {
      uint32_t count;
      const char* key;
      int publisher;
      Visitor::Way way = Visitor::Way::kPoll;
    };
    static constexpr Some kVisitors[] = {
        {3, "secret/a", 0},       {1, "secret/b", 1},
        {3, "hall/a", 2},         {3, "secret/c", 3, Visitor::Way::kStream},
        {1, "secret/none", -1},   {1, "presence/secret/a", 0},
        {2, "presence/hall/a", 2}};
    for (const auto& [count, key, publisher, way] : kVisitors) {
      for (uint32_t i = 0; i < count; ++i) {
        clients->push_back(
            std::make_unique<Visitor>(static_cast<uint32_t>(visitors_.size()), way, key,
                                      publisher < 0 ? nullptr : publishers_[publisher]));
        visitors_.push_back(static_cast<const Visitor*>(clients->back().get()));
      }
    }
    operator_ = std::make_unique<Operator>();
  }

  /** At the end of the run: whether presence shows exactly the actual watchers. */
  bool isPresenceRight() const {
    for (const auto& one : visitors_) {
      const std::string_view told = presenceSubjectOf(one->key());
      if (told.empty()) continue;
      std::set<std::string> who;
      uint64_t watching = 0;
      bool isPublished = false;
      for (const auto& of : publishers_) isPublished |= of->key() == told && of->hasPublished();
      for (const auto& other : visitors_) {
        if (other->key() != told) continue;
        ++watching;
        if (!other->name().empty()) who.insert(other->name());
      }
      if (isPublished && !one->hasReceived(watching, who)) return false;
    }
    return true;
  }

 private:
  GrantBook book_;
  Attendances attendances_;
  std::vector<const Publisher*> publishers_;
  std::vector<const Visitor*> visitors_;
  std::unique_ptr<Operator> operator_;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_VISITORS_H_
