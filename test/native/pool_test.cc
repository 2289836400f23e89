// The client pool against a small model: random joins, leaves, throws, polls, drops and time. Also
// how long sprites wait, counted from stamps of 16 bits.
//
//   pool_test [steps] [seed]
//
// The model keeps each mailbox as a plain list. It trusts the pool in nothing but the torus, which
// has a model of its own. After every step the test compares the answers, their receivers, every
// count, and how long sprites have waited. Holds and leases must end within their time, and never
// before.
#include "torus/pool.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "expect.h"

namespace {

using namespace server;

constexpr uint32_t kLease = 3;
constexpr uint32_t kHold = 20;
constexpr uint32_t kDrain = 500;  // milliseconds
constexpr uint64_t kLate = 450;   // milliseconds: four ticks, and the delay of the ticks here

/** A parsed answer. */
struct Answer {
  PollHolder holder;
  uint32_t token;
  uint64_t sequence;
  std::vector<std::pair<uint64_t, std::pair<uint64_t, std::string>>> sprites;  // seq, uid, from
  bool superseded;
  std::optional<uint64_t> retry;
};

struct Recorder : PollResponder {
  explicit Recorder(PollHolder by, std::vector<Answer>* to) : holder(by), answers(to) {}

  void answer(uint32_t token, std::string_view body) override {
    const std::string text(body);
    Answer answer = {holder, token, 0, {}, false, {}};
    int used = 0;
    EXPECT(sscanf(text.c_str(), "{\"seq\":%" SCNu64 ",\"sprites\":[%n", &answer.sequence, &used) ==
           1);
    const char* at = text.c_str() + used;
    while (*at == '{' || *at == ',') {
      if (*at == ',') ++at;
      uint64_t sequence;
      uint64_t uid;
      char from[8];
      EXPECT(sscanf(at, "{\"seq\":%" SCNu64 ",\"from\":\"%7[a-z]\",\"sprite\":{\"u\":%" SCNu64 "%n",
                    &sequence, from, &uid, &used) == 3);
      at = strstr(at + used, "}}") + 2;
      answer.sprites.push_back({sequence, {uid, from}});
    }
    EXPECT(*at == ']');
    answer.superseded = strstr(at, ",\"superseded\":true") != nullptr;
    uint64_t retry;
    const char* const last = strstr(at, ",\"retry\":");
    if (last != nullptr && sscanf(last, ",\"retry\":%" SCNu64, &retry) == 1) answer.retry = retry;
    answers->push_back(answer);
  }

  PollHolder holder;
  std::vector<Answer>* answers;
};

struct WaitingSprite {
  uint64_t uid;
  Edge from;
  uint32_t cost;
  uint64_t thrown;     // time of the throw, milliseconds
  bool flown = false;  // has flown into the mailbox it waits in
};

struct Member {
  Id id;
  std::deque<WaitingSprite> mailbox;
  std::deque<WaitingSprite> backlog;  // have flown to it, and find no room in its box yet
  uint64_t acked = 0;
  uint64_t sent = 0;
  bool parked = false;
  PollHolder holder = PollHolder::kNobody;
  uint32_t token = 0;
  uint64_t timerStart = 0;  // time when its hold or its lease began
  uint32_t hold = 0;
  std::set<uint64_t> numbers;
  uint64_t newest = 0;

  uint64_t sequence() const { return acked + mailbox.size(); }
};

const char* const kNames[] = {"left", "right", "up", "down"};

/** Options with small bounds, which a few steps reach. */
PoolOptions optionsFor(uint32_t capacity) {
  return {.capacity = capacity,
          .hold = kHold,
          .lease = kLease,
          .maxSprite = 120,
          .mailboxSprites = 4,
          .mailboxBytes = 400,
          .mailboxMemory = 2500,
          .answerBytes = 1 << 20};
}

class Model {
 public:
  Model(uint64_t seed, uint32_t capacity)
      : random_(seed),
        options_(optionsFor(capacity)),
        door_(PollHolder::kDoor, &answers_),
        routes_(PollHolder::kRoutes, &answers_),
        pool_(options_, &limits_, now_) {
    pool_.setResponder(PollHolder::kDoor, &door_);
    pool_.setResponder(PollHolder::kRoutes, &routes_);
    pool_.setThrowClock([] { return now_ * 1000; });
  }

  void step() {
    passTime();
    switch (below(20)) {
      case 0:
      case 1:
        join();
        break;
      case 2:
        leave();
        break;
      case 3:
        drop();
        break;
      case 4:
      case 5:
      case 6:
      case 7:
        poll();
        break;
      default:
        throwSprite();
    }
    EXPECT(answers_.empty());
    compare();
  }

  void end() {
    if (below(2) == 0) {
      pool_.drain(kDrain);
      Id id;
      EXPECT(pool_.join({}, 0, &id) == Outcome::kDraining);
      for (int i = 0; i < 8; ++i) {
        const Links links = neighbors();
        now_ += 100;
        pool_.tick(now_);
        pool_.answerPolls();
        applyTick(links);
      }
      for (const auto& [record, member] : members_) {
        EXPECT(!member.parked);
        // Polls are no longer parked.
        EXPECT(!pool_.poll(member.id, member.acked, 0, PollHolder::kDoor, 0).answer.empty());
      }
    }
    while (!members_.empty()) leaveRecord(members_.begin()->first);
    const PoolCounts& counts = pool_.counts();
    EXPECT(counts.clients == 0 && counts.parked == 0 && counts.waiting == 0);
    EXPECT(counts.mailboxBytes == 0 && pool_.torus().size() == 0);
  }

  const PoolCounts& counts() const { return pool_.counts(); }

 private:
  /** The neighbors of each record, by edge. */
  using Links = std::map<uint32_t, std::array<uint32_t, 4>>;

  uint64_t below(uint64_t bound) { return random_() % bound; }

  Member* pickMember(uint32_t* record) {
    if (members_.empty()) return nullptr;
    auto at = members_.begin();
    std::advance(at, below(members_.size()));
    *record = at->first;
    return &at->second;
  }

  // ---- the steps ----

  void join() {
    Id id;
    const Outcome outcome = pool_.join({}, 0, &id);
    if (members_.size() == options_.capacity) return EXPECT(outcome == Outcome::kTorusFull);
    EXPECT(outcome == Outcome::kOk);
    const uint32_t record = pool_.find(id);
    EXPECT(record == id.record() && members_.count(record) == 0);
    Member member;
    member.id = id;
    member.timerStart = now_;
    members_[record] = member;
    departedIds_.push_back(id);
    if (departedIds_.size() > 50) departedIds_.erase(departedIds_.begin());
  }

  void leave() {
    // Now and then the step uses a client that may have left long ago.
    if (!departedIds_.empty() && below(4) == 0) {
      const Id id = departedIds_[below(departedIds_.size())];
      const auto at = members_.find(id.record());
      if (at == members_.end() || memcmp(at->second.id.bytes, id.bytes, sizeof id.bytes) != 0) {
        pool_.leave(id);
        // The dropped poll is not that of the record's present client.
        const bool parked = at != members_.end() && at->second.parked;
        pool_.drop(id, parked ? at->second.holder : PollHolder::kDoor,
                   parked ? at->second.token : 1);
        EXPECT(pool_.poll(id, 0, 0, PollHolder::kDoor, 1).outcome == Outcome::kUnknownClient);
        EXPECT(pool_.throwSprite(id, Edge::kLeft, 1, "{}", 0) == Outcome::kUnknownClient);
        return;
      }
    }
    uint32_t record;
    if (pickMember(&record) != nullptr) leaveRecord(record);
  }

  void leaveRecord(uint32_t record) {
    const auto links = neighbors();
    Member member = members_[record];
    pool_.leave(member.id);
    pool_.answerPolls();
    EXPECT(pool_.find(member.id) == Pool::kNoRecord);
    if (member.parked) {
      EXPECT(!answers_.empty() && answers_[0].token == member.token);
      EXPECT(answers_[0].sprites.empty() && answers_[0].sequence == member.sequence());
      answers_.erase(answers_.begin());
    }
    flyOn(record, links);
    ++left_;
    readFlownAnswers();
  }

  void drop() {
    uint32_t record;
    Member* member = pickMember(&record);
    if (member == nullptr) return;
    const bool isCurrentPoll = below(3) > 0 && member->parked;
    const PollHolder by = isCurrentPoll   ? member->holder
                          : below(2) == 0 ? PollHolder::kDoor
                                          : PollHolder::kRoutes;
    const uint32_t token =
        isCurrentPoll ? member->token : static_cast<uint32_t>(below(nextToken_ + 2));
    if (below(2) == 0) {
      pool_.drop(member->id, by, token);
    } else {
      pool_.drop(record, by, token);
    }
    if (member->parked && by == member->holder && token == member->token) {
      member->parked = false;
      member->timerStart = now_;
    }
  }

  /** Polls. An answer that comes at once is recorded after that of the poll that it supersedes. */
  Outcome pollAs(const Member& member, uint64_t ack, uint32_t hold, PollHolder by, uint32_t token) {
    const PollResult result = pool_.poll(member.id, ack, hold, by, token);
    if (result.outcome == Outcome::kOk) EXPECT(result.record == member.id.record());
    if (result.answer.empty()) return result.outcome;
    EXPECT(result.outcome == Outcome::kOk);
    (by == PollHolder::kDoor ? door_ : routes_).answer(token, result.answer);
    return result.outcome;
  }

  void poll() {
    uint32_t record;
    Member* member = pickMember(&record);
    if (member == nullptr) return;
    const uint64_t oddAcks[] = {below(member->sequence() + 3), 0, member->acked,
                                below(20) == 0 ? UINT64_MAX - below(3) : member->sent};
    const uint64_t way = below(8);
    const uint64_t ack = way < std::size(oddAcks) ? oddAcks[way] : member->sent;
    const uint32_t holds[] = {0, 5, 6, kHold, 4, kHold + 1, UINT32_MAX};
    const uint32_t hold = holds[below(below(4) == 0 ? 7 : 4)];
    const PollHolder by = below(2) == 0 ? PollHolder::kDoor : PollHolder::kRoutes;
    const uint32_t token = nextToken_++;
    const Outcome outcome = pollAs(*member, ack, hold, by, token);
    if (hold != 0 && (hold < 5 || hold > kHold)) return EXPECT(outcome == Outcome::kBadHold);
    if (ack > member->sent) return EXPECT(outcome == Outcome::kAckAhead);
    EXPECT(outcome == Outcome::kOk);
    if (member->parked) {
      const Answer answer = popAnswer(*member);
      EXPECT(answer.superseded && answer.sprites.empty() && answer.sequence == member->acked);
    }
    takeAck(member, ack);
    // A client that is answered at once, and has not acked all earlier sprites, keeps its old
    // lease.
    const uint64_t timerStart = member->acked < member->sent ? member->timerStart : now_;
    member->parked = true;
    member->holder = by;
    member->token = token;
    member->hold = hold == 0 ? kHold : hold;
    if (!member->mailbox.empty()) readAnswer(member);
    member->timerStart = timerStart;
  }

  void throwSprite() {
    uint32_t record;
    Member* member = pickMember(&record);
    if (member == nullptr) return;
    const uint64_t uid = nextUid_++;
    std::string text = "{\"u\":" + std::to_string(uid) + "}";
    text.insert(text.size() - 1, below(90), ' ');
    Outcome expected = Outcome::kOk;
    if (below(15) == 0) {
      text.resize(text.size() - 1);
      expected = Outcome::kBadSprite;
    } else if (below(15) == 0) {
      text.resize(options_.maxSprite + 1 + below(3), ' ');
      expected = Outcome::kSpriteTooLarge;
    }
    uint64_t number = kNoNumber;
    if (below(3) > 0) {
      const uint64_t ahead = below(30) == 0 ? below(300) : below(4);
      number = member->newest + ahead;
      if (below(3) == 0) number -= std::min<uint64_t>(number, below(100));
      if (below(4) == 0 && !member->numbers.empty()) {
        // The number is the oldest that may still be remembered, or the one before it.
        const uint64_t edge = member->newest - std::min<uint64_t>(member->newest, 63 + below(2));
        number = *member->numbers.lower_bound(edge);
      }
      if (below(5000) == 0) number = (uint64_t{1} << 53) - 1 - below(70);
    }
    const Edge edge{static_cast<uint8_t>(below(4))};
    const uint32_t target = pool_.torus().neighbor(record, edge);
    EXPECT(members_.count(target) == 1);
    Member& neighbor = members_[target];
    const uint32_t cost = Sprite::cost(text.size());
    uint64_t bytes = 0;
    for (const WaitingSprite& one : neighbor.mailbox) bytes += one.cost;
    if (expected == Outcome::kOk && number != kNoNumber) {
      if (member->numbers.count(number) == 1 && member->newest - number < 64) {
        expected = Outcome::kDuplicate;
      } else if (number + 64 <= member->newest) {
        expected = Outcome::kStaleNumber;
      }
    }
    if (expected == Outcome::kOk) {
      if (neighbor.mailbox.size() >= options_.mailboxSprites ||
          bytes + cost > options_.mailboxBytes) {
        expected = Outcome::kNeighborBusy;
      } else if (bytes_ + cost > options_.mailboxMemory) {
        expected = Outcome::kMailboxesFull;
      } else {
        expected = neighbor.parked ? Outcome::kDelivered : Outcome::kQueued;
      }
    }
    const Outcome outcome = pool_.throwSprite(member->id, edge, number, text, now_ * 1000);
    pool_.answerPolls();
    EXPECT(outcome == expected);
    if (outcome != Outcome::kDelivered && outcome != Outcome::kQueued) return;
    if (number != kNoNumber) {
      member->numbers.insert(number);
      member->newest = std::max(member->newest, number);
    }
    ++thrown_;
    bytes_ += cost;
    neighbor.mailbox.push_back({uid, opposite(edge), cost, now_});
    if (outcome == Outcome::kDelivered) readAnswer(&neighbor);
  }

  // ---- time ----

  Links neighbors() const {
    Links links;
    for (const auto& [record, member] : members_) {
      for (uint8_t edge = 0; edge < 4; ++edge) {
        links[record][edge] = pool_.torus().neighbor(record, Edge{edge});
      }
    }
    return links;
  }

  /** Lets time pass. The pool's tick comes about every 100 ms, sometimes late. */
  void passTime() {
    const uint64_t end = now_ + (below(40) == 0 ? below(3000) : below(60));
    for (; nextTick_ <= end; nextTick_ += 100 + below(10)) {
      const Links links = neighbors();
      now_ = nextTick_;
      pool_.tick(now_);
      pool_.answerPolls();
      applyTick(links);
    }
    now_ = end;
  }

  /** Applies what a tick has done: holds and leases have ended, and sprites have flown on. */
  void applyTick(const Links& links) {
    std::vector<uint32_t> expired;
    for (const auto& [record, member] : members_) {
      const bool hasLeft = pool_.find(member.id) == Pool::kNoRecord;
      if (hasLeft) {
        EXPECT(!member.parked && now_ >= member.timerStart + kLease * 1000);
        expired.push_back(record);
      } else if (!member.parked) {
        EXPECT(now_ <= member.timerStart + kLease * 1000 + kLate);
      }
    }
    expired_ += expired.size();
    if (expired.size() == 1) {
      flyOn(expired[0], links);
    } else if (expired.size() > 1) {
      // Only the pool knows in which order: the places of these sprites are checked below.
      for (const uint32_t record : expired) {
        for (const WaitingSprite& one : members_[record].mailbox) unplaced_[one.uid] = one;
        for (const WaitingSprite& one : members_[record].backlog) unplaced_[one.uid] = one;
        members_.erase(record);
      }
      if (members_.empty()) {
        for (const auto& [uid, one] : unplaced_) {
          bytes_ -= one.cost;
          ++lost_;
        }
        unplaced_.clear();
      }
    }
    for (const Answer& answer : answers_) {
      Member* member = find(answer);
      if (answer.sprites.empty()) {
        EXPECT(pool_.draining() || now_ >= member->timerStart + member->hold * 1000);
        EXPECT(answer.retry.has_value() == pool_.draining());
        EXPECT(answer.retry.value_or(0) <= 2 * kDrain);
        EXPECT(now_ <= member->timerStart + member->hold * 1000 * 17 / 16 + kLate);
        EXPECT(answer.sequence == member->acked && !answer.superseded);
      } else {
        applyAnswer(member, answer);
      }
      member->parked = false;
      member->timerStart = now_;
    }
    answers_.clear();
    // Every client acks all its sprites, until all sprites adrift were found.
    for (int rounds = 0; !unplaced_.empty(); ++rounds) {
      EXPECT(rounds < 1000);
      for (auto& [record, member] : members_) ackAll(&member);
    }
  }

  void takeAck(Member* member, uint64_t ack) {
    for (; member->acked < ack; ++member->acked) {
      bytes_ -= member->mailbox.front().cost;
      ++acked_;
      member->mailbox.pop_front();
    }
    catchUp(member);
  }

  void ackAll(Member* one) {
    Member& member = *one;
    const uint32_t token = nextToken_++;
    EXPECT(pollAs(member, member.sent, 0, PollHolder::kDoor, token) == Outcome::kOk);
    if (member.parked) {
      EXPECT(find(answers_.at(0)) == &member && answers_[0].superseded);
      answers_.erase(answers_.begin());
    }
    takeAck(&member, member.sent);
    member.parked = answers_.empty();
    member.holder = PollHolder::kDoor;
    member.token = token;
    member.hold = kHold;
    member.timerStart = now_;
    if (!answers_.empty()) applyAnswer(&member, answers_[0]);
    answers_.clear();
  }

  /** Takes an answer that may carry sprites of unknown place. */
  void applyAnswer(Member* member, const Answer& answer) {
    size_t at = 0;
    for (const auto& [sequence, sprite] : answer.sprites) {
      EXPECT(sequence == member->acked + ++at);
      if (at > member->mailbox.size()) {
        const auto unplaced = unplaced_.find(sprite.first);
        EXPECT(unplaced != unplaced_.end());
        member->mailbox.push_back(unplaced->second);
        member->mailbox.back().flown = true;
        unplaced_.erase(unplaced);
      }
      EXPECT(member->mailbox[at - 1].uid == sprite.first);
      EXPECT(kNames[static_cast<size_t>(member->mailbox[at - 1].from)] == sprite.second);
      if (sequence <= member->sent) continue;
      const auto& bounds = DeliveryTimes::kBounds;
      const uint64_t waited = now_ - member->mailbox[at - 1].thrown;
      ++waitCounts_[std::lower_bound(bounds.begin(), bounds.end(), waited) - bounds.begin()];
    }
    EXPECT(at == member->mailbox.size() && answer.sequence == member->sequence());
    member->sent = member->sequence();
  }

  // ---- effects on sprites ----

  void flyOn(uint32_t record, const Links& links) {
    const Member member = members_[record];
    members_.erase(record);
    std::vector<WaitingSprite> all(member.mailbox.begin(), member.mailbox.end());
    all.insert(all.end(), member.backlog.begin(), member.backlog.end());
    for (const WaitingSprite& one : all) {
      const auto from = static_cast<size_t>(one.from);
      uint32_t next = links.at(record)[from ^ 1];
      if (next == record) next = links.at(record)[from < 2 ? 2 : 0];
      if (next == record) {
        EXPECT(members_.empty());
        bytes_ -= one.cost;
        ++lost_;
        continue;
      }
      members_.at(next).backlog.push_back(one);
      catchUp(&members_.at(next));
      ++flown_;
    }
  }

  /**
   * Moves flown sprites up. They may fill half of a mailbox, a place each; an empty mailbox accepts
   * any sprite.
   */
  void catchUp(Member* member) {
    for (; !member->backlog.empty(); member->backlog.pop_front()) {
      WaitingSprite one = member->backlog.front();
      const uint32_t place = options_.mailboxBytes / options_.mailboxSprites;
      uint32_t bytes = one.cost;
      uint32_t flown = 0;
      for (const WaitingSprite& other : member->mailbox) {
        bytes += other.cost;
        if (other.flown) flown += std::max(other.cost, place);
      }
      const bool hasRoom =
          member->mailbox.size() < options_.mailboxSprites && bytes <= options_.mailboxBytes &&
          (flown == 0 || flown + std::max(one.cost, place) <= options_.mailboxBytes / 2);
      if (!member->mailbox.empty() && !hasRoom) return;
      one.flown = true;
      member->mailbox.push_back(one);
    }
  }

  void readFlownAnswers() {
    for (const Answer& answer : answers_) {
      Member* member = find(answer);
      EXPECT(!answer.sprites.empty());
      applyAnswer(member, answer);
      member->parked = false;
      member->timerStart = now_;
    }
    answers_.clear();
    for (const auto& [record, member] : members_) EXPECT(!member.parked || member.mailbox.empty());
  }

  Member* find(const Answer& answer) {
    for (auto& [record, member] : members_) {
      if (member.parked && member.token == answer.token && member.holder == answer.holder) {
        return &member;
      }
    }
    fail("an answer to no client", __FILE__, __LINE__);
  }

  Answer popAnswer(const Member& member) {
    EXPECT(!answers_.empty() && answers_[0].token == member.token);
    EXPECT(answers_[0].holder == member.holder);
    Answer answer = answers_[0];
    answers_.erase(answers_.begin());
    return answer;
  }

  void readAnswer(Member* member) {
    applyAnswer(member, popAnswer(*member));
    member->parked = false;
    member->timerStart = now_;
  }

  void compare() const {
    const PoolCounts& counts = pool_.counts();
    uint64_t waiting = 0;
    uint32_t parked = 0;
    for (const auto& [record, member] : members_) {
      waiting += member.mailbox.size() + member.backlog.size();
      parked += member.parked;
    }
    EXPECT(counts.thrown == counts.acked + counts.waiting + counts.lost);
    EXPECT(counts.thrown == thrown_ && counts.acked == acked_ && counts.lost == lost_);
    EXPECT(counts.waiting == waiting && counts.mailboxBytes == bytes_);
    EXPECT(counts.parked == parked && counts.clients == members_.size());
    EXPECT(counts.left == left_ && counts.expired == expired_);
    EXPECT(pool_.torus().size() == members_.size());
    EXPECT(pool_.deliveryTimes().counts() == waitCounts_);
  }

  std::mt19937_64 random_;
  const PoolOptions options_;
  inline static uint64_t now_ = 1000000;  // milliseconds
  uint64_t nextTick_ = now_ + 100;
  std::vector<Answer> answers_;
  Recorder door_;
  Recorder routes_;
  AddressLimits limits_{AddressLimitsOptions{}};
  Pool pool_;
  std::map<uint32_t, Member> members_;
  std::map<uint64_t, WaitingSprite> unplaced_;
  std::vector<Id> departedIds_;
  uint32_t nextToken_ = 1;
  uint64_t nextUid_ = 1;
  uint64_t thrown_ = 0, acked_ = 0, lost_ = 0, flown_ = 0, left_ = 0, expired_ = 0, bytes_ = 0;
  /** Counts of sprites by their wait until an answer carried them first. */
  std::array<uint64_t, DeliveryTimes::kBounds.size() + 1> waitCounts_ = {};
};

/**
 * Holds of polls that came together do not end together: a hold is lengthened by up to a sixteenth.
 */
void holdsAreSpread() {
  constexpr uint32_t kPolls = 200;
  std::vector<Answer> answers;
  Recorder recorder(PollHolder::kDoor, &answers);
  AddressLimits limits{AddressLimitsOptions{}};
  Pool pool(optionsFor(kPolls), &limits, 0);
  pool.setResponder(PollHolder::kDoor, &recorder);
  for (uint32_t token = 0; token < kPolls; ++token) {
    Id id;
    EXPECT(pool.join({}, 0, &id) == Outcome::kOk);
    const PollResult result = pool.poll(id, 0, kNoHold, PollHolder::kDoor, token);
    EXPECT(result.outcome == Outcome::kOk && result.answer.empty());
  }
  size_t most = 0;
  for (uint64_t now = 0; answers.size() < kPolls; now += kTickMilliseconds) {
    EXPECT(now <= kHold * 1000 * 17 / 16 + kLate);
    const size_t before = answers.size();
    pool.tick(now);
    // A poll may have come two ticks later than the pool knows.
    EXPECT(answers.size() == before || now > kHold * 1000 + 2 * kTickMilliseconds);
    most = std::max(most, answers.size() - before);
  }
  // A sixteenth of 20 s has some 13 ticks: none of them ends a third of the holds.
  EXPECT(most < kPolls / 3);
}

/**
 * A join that finds no place counts for no address. A client may throw and poll at once as often as
 * its burst says, and again after a pause.
 */
void allowances() {
  PoolOptions options = optionsFor(1);
  options.throwRate = options.pollRate = 10;
  options.throwBurst = options.pollBurst = 3;
  std::vector<Answer> answers;
  Recorder recorder(PollHolder::kDoor, &answers);
  AddressLimits limits({.connections = 0, .clients = 2});
  Pool pool(options, &limits, 0);
  pool.setResponder(PollHolder::kDoor, &recorder);
  Id id, other;
  EXPECT(pool.join({}, 0, &id) == Outcome::kOk);
  for (int i = 0; i < 5; ++i) EXPECT(pool.join({}, 0, &other) == Outcome::kTorusFull);
  for (uint64_t now = 0; now < 3000; now += 1000) {
    pool.tick(now);
    for (uint32_t i = 0; i < 4; ++i) {
      const auto polled = pool.poll(id, 0, kNoHold, PollHolder::kDoor, i).outcome;
      EXPECT(polled == (i < 3 ? Outcome::kOk : Outcome::kTooManyPolls));
      const Outcome thrown = pool.throwSprite(id, Edge::kUp, kNoNumber, "{}", now * 1000);
      EXPECT((thrown == Outcome::kTooManyThrows) == (i == 3));
    }
  }
}

/**
 * The unit of a stamp follows the lease. A sprite that has flown on for minutes counts as "longer
 * than the last bound", even if its stamp has wrapped around.
 */
namespace waits {

constexpr uint64_t kStart = 0x123456789a;  // microseconds
constexpr uint64_t kMilli = 1000;
constexpr uint64_t kSecond = 1000 * kMilli;

/** Returns the index of the only count that is not 0. */
size_t countedBucket(const DeliveryTimes& times) {
  const auto& counts = times.counts();
  EXPECT(std::accumulate(counts.begin(), counts.end(), uint64_t{0}) == 1);
  size_t index = 0;
  while (counts[index] == 0) ++index;
  return index;
}

size_t bucketOf(uint32_t lease, uint64_t wait, uint64_t start = kStart) {
  DeliveryTimes times(lease);
  times.count(times.stamp(start), start + wait);
  return countedBucket(times);
}

void everyBound() {
  for (size_t i = 0; i < DeliveryTimes::kBounds.size(); ++i) {
    const uint64_t bound = DeliveryTimes::kBounds[i] * kMilli;
    EXPECT(bucketOf(30, bound) == i);
    EXPECT(bucketOf(30, bound + kMilli) > i);
  }
  EXPECT(bucketOf(30, 0) == 0);
  // This holds wherever the stamps wrap around.
  for (uint64_t second = 0; second < 140; ++second) {
    EXPECT(bucketOf(30, 29 * kSecond, kStart + second * kSecond) ==
           DeliveryTimes::kBounds.size() - 1);
  }
}

/** The longest stay in one mailbox is counted right for every possible lease. */
void everyLease() {
  for (uint32_t lease = 1; lease <= 3600; ++lease) {
    const uint64_t wait = lease * kSecond;
    DeliveryTimes times(lease);
    times.count(times.stamp(kStart), kStart + wait);
    const uint64_t counted = times.sum();
    EXPECT(counted + 200 >= lease * uint64_t{1000} && counted <= lease * uint64_t{1000} + 200);
    EXPECT(countedBucket(times) >= (lease > 30 ? DeliveryTimes::kBounds.size() : 9));
  }
}

/** A sprite flies from one leaver to the next, each time after a lease. */
void longFlights() {
  for (const uint32_t lease : {1u, 30u, 47u, 600u, 3600u}) {
    for (int stays = 1; stays < 50; ++stays) {
      DeliveryTimes times(lease);
      uint64_t now = kStart;
      DeliveryTimes::Stamp stamp = times.stamp(now);
      for (int i = 0; i < stays; ++i) {
        now += lease * kSecond;
        stamp = times.flownStamp(stamp, now);
      }
      times.count(stamp, now);
      if (lease * stays > 33u) EXPECT(countedBucket(times) == DeliveryTimes::kBounds.size());
      if (lease * stays <= 30u) EXPECT(times.sum() == lease * stays * 1000u);
    }
  }
}

void test() {
  everyBound();
  everyLease();
  longFlights();
}

}  // namespace waits

}  // namespace

int main(int argc, char** argv) {
  const auto [steps, seed] = readArguments(argc, argv, 200000);
  waits::test();
  holdsAreSpread();
  allowances();
  uint64_t thrown = 0, flown = 0, expired = 0, lost = 0;
  for (uint64_t done = 0, run = 0; done < steps; ++run) {
    Model model(seed + run, 1 + static_cast<uint32_t>(run % 12));
    for (int i = 0; i < 2000 && done < steps; ++i, ++done) model.step();
    model.end();
    thrown += model.counts().thrown;
    flown += model.counts().flown;
    expired += model.counts().expired;
    lost += model.counts().lost;
  }
  printf("thrown %" PRIu64 ", flown on %" PRIu64 ", expired %" PRIu64 ", lost %" PRIu64 "\n",
         thrown, flown, expired, lost);
  // The run must have had enough of each event.
  EXPECT(steps < 200000 || std::min({thrown, flown, expired, lost}) > 1000);
  return 0;
}
