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
//   - a presence feed shows no more watchers than were there within a lease, and no other names
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
constexpr uint64_t kWorkerLate = kSecond;

/** The watchers of each feed, counted by the clients: never fewer than the server's count. */
class Attendances : public Actor {
 public:
  explicit Attendances(bool workers) : workers_(workers) {}

  void came(const std::string& key, const std::string& name) {
    One& one = all_[key];
    change(&one, 1);
    if (!name.empty()) ++one.names[name].watching;
  }

  /** Removes a watcher. `lost`: its connection is lost, and the server may notice that late. */
  void went(const std::string& key, const std::string& name, bool lost) {
    const uint64_t late = lost ? 5 * kSecond + crowd->late : workers_ ? kWorkerLate : 0;
    gone_.push_back({key, name});
    machine->after(late, this, gone_.size() - 1);
  }

  void act(uint64_t number) override {
    const auto& [key, name] = gone_[number];
    One& one = all_[key];
    change(&one, -1);
    if (name.empty()) return;
    Name& its = one.names[name];
    --its.watching;
    its.last = machine->now();
  }

  /** Returns the most watchers at any time since `since`. */
  uint64_t mostSince(const std::string& key, uint64_t since) const {
    const auto found = all_.find(key);
    if (found == all_.end()) return 0;
    uint64_t most = 0;
    const auto& changes = found->second.changes;
    for (auto at = changes.rbegin(); at != changes.rend(); ++at) {
      most = std::max(most, at->second);
      if (at->first < since) break;
    }
    return most;
  }

  bool wasThere(const std::string& key, const std::string& name, uint64_t since) const {
    const auto found = all_.find(key);
    if (found == all_.end()) return false;
    const auto its = found->second.names.find(name);
    if (its == found->second.names.end()) return false;
    return its->second.watching > 0 || its->second.last >= since;
  }

 private:
  struct Name {
    uint64_t watching = 0, last = 0;
  };
  struct One {
    std::deque<std::pair<uint64_t, uint64_t>> changes;  // time, and number from then on
    std::map<std::string, Name> names;
  };

  static void change(One* one, int by) {
    const uint64_t before = one->changes.empty() ? 0 : one->changes.back().second;
    one->changes.emplace_back(machine->now(), before + static_cast<uint64_t>(by));
  }

  const bool workers_;
  std::map<std::string, One> all_;
  std::deque<std::pair<std::string, std::string>> gone_;
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
        own_(std::move(key)),
        publisher_(publisher) {}

  const std::string& key() const { return own_; }

  /** The visitor's name in its last grant; empty: none. */
  std::string name() const { return isSettled_ && grant_->present ? grant_->sub : ""; }

  /** Whether its last presence has exactly these watchers. */
  bool knows(uint64_t watching, const std::set<std::string>& who) const {
    return watching_ == watching && who_ == who;
  }

  void expectInTime() const override {
    pipe_.expectInTime();
    if (pipe_.asked() == 0 || grant_ == nullptr || !binds() || machine->now() <= latest()) return;
    machine->say("that is of visitor %" PRIu64, number_);
    machine->broken("grants: a poll, or a stream, goes on behind its end");
  }

  /** Whether it has the newest version. For presence see Lobby::isRight. */
  bool isUpToDate() const override {
    const Life* const life = hosts[0]->life();
    return life != nullptr && (tells(own_) || version_ == life->newest(own_).version);
  }

  void act(uint64_t) override {
    expectInTime();
    pipe_.misbehave();
    if (pipe_.asked() == 0) ask();
    machine->after(1 + machine->below(kPause), this, 0);
  }

 private:
  static constexpr uint64_t kHour = 3600 * kSecond;
  /** Length of a reader's pause. */
  static constexpr uint64_t kPause = kSecond;

  /** Returns by when its poll must end with its grant: half a second later, plus possible delays. A
   * poll sent after the grant's end lasts until the grant is verified. */
  uint64_t latest() const {
    const uint64_t end = std::max(book->endOf(*grant_), sentAt_ + kVerifies);
    const uint64_t pause = crowd->odds.stops > 0 ? kPause : 0;
    return end >= kNever - kHour ? kNever : end + 500 * kMillisecond + pause + crowd->late;
  }

  static bool tells(std::string_view key) { return !toldBy(key).empty(); }
  static bool isPrivate(std::string_view key) {
    const KeyPatterns patterns(kPrivate);
    return patterns.covers(key) || patterns.covers(toldBy(key));
  }

  bool reads() const { return grant_ != nullptr && !grant_->forged && grant_->reads(key_); }
  /** Returns whether its poll must end with the grant. At a public feed only if the grant was good
   * when it was verified. */
  bool binds() const {
    if (!reads() || isPrivate(key_)) return reads();
    const uint64_t end = std::min(grant_->end, book->begunOf(*grant_));
    return grant_->present && !tells(key_) && end > sentAt_ + kVerifies + crowd->late;
  }
  std::string nameHere() const {
    return reads() && grant_->present && !tells(key_) ? grant_->sub : std::string();
  }

  /** Chooses a grant: at the end of the run a good one; before that any kind. */
  void takeGrant() {
    const uint64_t kind = crowd->calm ? 9 : machine->below(10);
    asOutsider_ = kind < 3;
    isSettled_ = crowd->calm;
    if (kind == 0) {
      grant_ = nullptr;
      return;
    }
    if (kind == 3 && book->any() != nullptr) {
      // An old grant, perhaps another visitor's, perhaps revoked.
      grant_ = book->any();
      machine->say("visitor %" PRIu64 " takes an old grant", number_);
      return;
    }
    const uint64_t most = machine->below(3) == 0 ? 90000 : 20000;
    const uint64_t length = crowd->calm ? kHour : (1 + machine->below(most)) * kMillisecond;
    const char* const wide[] = {"secret/*", "*"};
    const bool isOwn = machine->below(3) == 0;
    const std::string told = tells(own_) ? std::string(toldBy(own_)) : own_;
    // A name is reused until it is revoked.
    if (sub_.empty() || book->isRevoked(sub_)) {
      sub_ = "v" + std::to_string(number_) + "." + std::to_string(++names_);
    }
    grant_ = book->sign({.token = {},
                         .sub = sub_,
                         .jti = {},
                         .read = kind == 1                   ? "other/*"
                                 : isOwn || !isPrivate(own_) ? told
                                                             : wide[machine->below(2)],
                         .present = machine->below(3) != 0,
                         .forged = kind == 2,
                         .end = machine->now() + length});
    machine->say("visitor %" PRIu64 " takes a grant for %" PRIu64 " ms, of kind %" PRIu64, number_,
                 length / kMillisecond, kind);
  }

  bool needsGrant() const {
    if (crowd->calm && !isSettled_) return true;
    return !hasGrant_ || refused_ || (!crowd->calm && grant_ == nullptr && machine->below(2) == 0);
  }

  void ask() {
    if (needsGrant()) {
      takeGrant();
      hasGrant_ = true;
      refused_ = false;
      cursor_.clear();
    }
    static constexpr const char* kAny[] = {"secret/a", "secret/none", "presence/secret/a",
                                           "presence/secret/none"};
    // An outsider must not see a difference between these.
    key_ = asOutsider_ ? kAny[machine->below(4)] : own_;
    std::string query, fields;
    after_ = cursor_;
    if (way_ == Way::kStream) {
      fields = "Accept: text/event-stream\r\n";
      if (!after_.empty()) fields += "Last-Event-ID: " + after_ + "\r\n";
    } else if (machine->below(5) != 0) {
      if (after_.empty()) after_ = "none";
      query = "?after=" + after_;
    } else {
      after_.clear();
    }
    if (grant_ != nullptr && machine->below(2) == 0) {
      query += (query.empty() ? "?grant=" : "&grant=") + grant_->token;
    } else if (grant_ != nullptr) {
      fields += "Authorization: Bearer " + grant_->token + "\r\n";
    }
    sentAt_ = machine->now();
    wasPublished_ = publisher_ != nullptr && publisher_->holds();
    // An outsider must get its answer at once.
    const bool refusedAtOnce = isPrivate(key_) && !reads();
    const uint64_t within = refusedAtOnce ? kVerifies + crowd->late : kHold * kSecond + kAnswerTime;
    attendances->came(key_, nameHere());
    watches_ = true;
    if (!pipe_.ask(get("/feed/" + key_ + query, fields), {.within = within})) return goes(true);
    machine->say(asOutsider_ ? "visitor %" PRIu64 " asks as an outsider"
                             : "visitor %" PRIu64 " asks for more than version %" PRIu64,
                 number_, version_);
  }

  void answered(const Asked&, const Answer& answer) override {
    goes(false);
    if (answer.status == 503) return;
    if (answer.status != 200) {
      expect(answer.body.empty(), "grants: a refusal has a body");
      return refusedBy(answer.reason);
    }
    expectGranted();
    take(answer.body);
    if (machine->below(10) != 0) ask();
  }

  void streamed(std::string_view text) override {
    events_.add(text, [this](std::string_view event) {
      const std::string problem = textIn(event, "\"problem\":\"");
      if (!problem.empty()) {
        goes(false);
        return refusedBy(problem);
      }
      expectGranted();
      take(event);
    });
  }

  /** Checks that it may read the feed: the answer is no refusal, or tells that the feed exists. */
  void expectGranted() const {
    if (isPrivate(key_)) {
      expect(reads(), "grants: a private feed is told without a grant that reads it");
      expect(sentAt_ < book->endOf(*grant_), "grants: one opens a feed behind its end");
    }
    if (grant_ != nullptr && binds()) {
      expect(machine->now() <= latest(), "grants: an answer comes long behind its end");
    }
  }

  void refusedBy(std::string_view reason) {
    machine->say(reason == "not-granted"     ? "visitor %" PRIu64 " is refused: not granted"
                 : reason == "bad-grant"     ? "visitor %" PRIu64 " is refused: a bad grant"
                 : reason == "grant-expired" ? "visitor %" PRIu64 " is refused: an old grant"
                                             : "visitor %" PRIu64 " is refused",
                 number_);
    const uint64_t now = machine->now();
    const bool mayRead = !isPrivate(key_) || reads();
    bool fits = false;
    if (reason == "unknown-feed") {
      expect(mayRead, "grants: an outsider is told that there is no such feed");
      fits = !wasPublished_ || tells(key_);
    } else if (reason == "grant-required") {
      fits = grant_ == nullptr && isPrivate(key_);
    } else if (reason == "not-granted") {
      fits = grant_ != nullptr && !grant_->forged && !mayRead;
    } else if (reason == "bad-grant") {
      fits =
          grant_ != nullptr && (grant_->forged ? isPrivate(key_) : book->begunOf(*grant_) <= now);
    } else if (reason == "grant-expired") {
      // The server's clock has milliseconds.
      fits = grant_ != nullptr && grant_->end <= now + 2 * kMillisecond;
    }
    if (!fits) machine->broken("grants: refused for no reason, by " + std::string(reason));
    refused_ = reason != "unknown-feed";
  }

  void take(std::string_view body) {
    if (body.find("\"value\":") == body.npos) return;
    cursor_ = textIn(body, "\"cursor\":\"");
    const uint64_t before = std::exchange(version_, Cursor::of(cursor_).version);
    if (tells(key_)) return takePresence(body);
    const bool isNew = after_.empty() || after_ == "none" || version_ > before;
    expect(isNew, "watchers: an older value comes after a newer one");
    after_ = cursor_;
    size_t place = 0;
    const uint64_t value = numberIn(body, "\"value\":{\"n\":", &place);
    machine->say("visitor %" PRIu64 " gets version %" PRIu64 ", number %" PRIu64, number_, version_,
                 value);
    records->saw(key_, 0, Cursor::of(cursor_), value);
    if (!isPrivate(key_)) return;
    // A value may still come that is published before a worker learns of the grant's end.
    expect(publisher_->askedAt(value) <= book->endOf(*grant_) + kSecond,
           "grants: a value comes that was published behind its end");
  }

  void takePresence(std::string_view body) {
    size_t at = 0;
    watching_ = numberIn(body, "\"watching\":", &at);
    who_.clear();
    at = body.find("\"who\":[") + 7;
    while (body[at] != ']') {
      const size_t begin = body.find('"', at) + 1;
      const size_t end = body.find('"', begin);
      who_.insert(std::string(body.substr(begin, end - begin)));
      at = end + 1;
    }
    machine->say("visitor %" PRIu64 " hears of %" PRIu64 " watchers, %" PRIu64 " by name", number_,
                 watching_, who_.size());
    const std::string told(toldBy(key_));
    // Presence is up to a second old, and includes watchers that were there within the lease.
    const uint64_t back = (kLease + 1) * kSecond + kSecond + crowd->late;
    const uint64_t since = sentAt_ > back ? sentAt_ - back : 0;
    const uint64_t most = attendances->mostSince(told, since);
    if (watching_ > most) {
      machine->broken("presence: " + std::to_string(watching_) + " are told of where " +
                      std::to_string(most) + " watch");
    }
    for (const std::string& name : who_) {
      expect(attendances->wasThere(told, name, since), "presence: a name has not been there");
      const uint64_t end = book->endOfName(name);
      expect(end == kNever || sentAt_ <= end + 2 * kSecond + crowd->late,
             "presence: a name is told that was revoked");
    }
  }

  void goes(bool lost) {
    if (std::exchange(watches_, false)) attendances->went(key_, nameHere(), lost);
  }

  void lost(const Asked&) override {
    events_.clear();
    goes(true);
  }

  const uint32_t number_;
  const Way way_;
  const std::string own_;  // its feed
  const Publisher* const publisher_;
  Events events_;
  std::string sub_;
  uint64_t names_ = 0;
  const SignedGrant* grant_ = nullptr;
  bool hasGrant_ = false;   // whether it has chosen a grant, or none
  bool isSettled_ = false;  // whether it keeps the choice to the end
  bool asOutsider_ = false;
  bool refused_ = false;
  bool watches_ = false;
  bool wasPublished_ = false;  // at the time of the request
  std::string key_;            // of the request
  std::string cursor_;
  std::string after_;  // the request's cursor, or a newer one
  uint64_t version_ = 0;
  uint64_t sentAt_ = 0;
  uint64_t watching_ = 0;
  std::set<std::string> who_;
};

class Operator : public Actor {
 public:
  Operator() { machine->after(machine->below(10 * kSecond), this, 0); }

  void act(uint64_t) override {
    if (crowd->calm) return;
    const SignedGrant* const grant = book->any();
    if (grant != nullptr && hosts[0]->life() != nullptr && !machine->dead) {
      const bool bySub = machine->below(2) == 0;
      const std::string& name = bySub ? grant->sub : grant->jti;
      const std::string what = (bySub ? "sub/" : "jti/") + name;
      machine->say(bySub ? "the operator revokes a name" : "the operator revokes a grant");
      book->begin(what);
      hosts[0]->life()->admission().revoke(bySub ? GrantPart::kSub : GrantPart::kJti, name, [what] {
        machine->say("the revocation holds");
        book->held(what);
      });
    }
    machine->after(kSecond + machine->below(15 * kSecond), this, 0);
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
  bool isRight() const {
    for (const auto& one : visitors_) {
      const std::string_view told = toldBy(one->key());
      if (told.empty()) continue;
      std::set<std::string> who;
      uint64_t watching = 0;
      bool isPublished = false;
      for (const auto& of : publishers_) isPublished |= of->key() == told && of->holds();
      for (const auto& other : visitors_) {
        if (other->key() != told) continue;
        ++watching;
        if (!other->name().empty()) who.insert(other->name());
      }
      if (isPublished && !one->knows(watching, who)) return false;
    }
    return true;
  }

 private:
  Book book_;
  Attendances attendances_;
  std::vector<const Publisher*> publishers_;
  std::vector<const Visitor*> visitors_;
  std::unique_ptr<Operator> operator_;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_VISITORS_H_
