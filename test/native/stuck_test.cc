// A disk that accepts nothing more, which the process learns only in the middle of a batch: the
// process may write files up to a length that ends there, and later longer ones.
//
//   stuck_test [seed]
//
// Nothing of the turn that could not be written is answered or delivered, and a crash then undoes
// that turn. Written steps go on: polls, acks, deliveries, up to a bound in memory. Then the disk
// heals.
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <deque>
#include <optional>

#include "base/files.h"
#include "state_scene.h"
#include "store/journal_replay.h"

namespace {

using namespace scene;

/** Keeps the answer of each poll. */
struct Recorder : PollResponder {
  void answer(uint32_t token, std::string_view body) override { answers[token] = body; }

  /** Returns a poll's answer; nothing while it is parked. */
  std::optional<std::string> answerTo(uint32_t token) const {
    const auto found = answers.find(token);
    return found == answers.end() ? std::nullopt : std::optional(found->second);
  }

  std::map<uint32_t, std::string> answers;
};

/** A stored pool and a few clients. */
class Stage : public StoredPool {
 public:
  explicit Stage(const StateStoreOptions& options) : StoredPool(options) {
    pool().setResponder(PollHolder::kRoutes, &recorder);
    EXPECT(store().start() == 0);
  }

  Id join() {
    Id id;
    EXPECT(pool().join({}, 0, &id) == Outcome::kOk);
    return id;
  }

  Outcome poll(const Id& id, uint64_t ack, uint32_t token) {
    return pool().poll(id, ack, 0, PollHolder::kRoutes, token).outcome;
  }

  Outcome throwTo(const Id& from, Edge edge, const char* text) {
    return pool().throwSprite(from, edge, kNoNumber, text, 0);
  }

  Recorder recorder;
};

/**
 * The state that a process would find that starts now. That process knows all that `life` has
 * delivered.
 */
std::string afterACrash(const Folder& folder, const Life* life = nullptr) {
  limitFiles(RLIM_INFINITY);
  AfterACrash crash(folder);
  if (life != nullptr) life->expectDeliveredIn(crash.pool());
  return crash.state();
}

bool contains(const std::optional<std::string>& answer, const char* text) {
  return answer && answer->find(text) != std::string::npos;
}

/** From the turn that could not be written to the next one that is written. */
void nothingUnwrittenIsDelivered(uint64_t cut) {
  const Folder folder;
  Stage stage(storeOptions(folder, Sync::kNever, 1000));
  const Id one = stage.join();
  const Id two = stage.join();
  // Two clients in a row: a sprite that one throws to the left comes to two, and the other way
  // round.
  EXPECT(stage.end() == Commit::kDone);
  for (int i = 0; i < 3; ++i) {
    EXPECT(stage.throwTo(two, Edge::kLeft, R"({"old":1})") == Outcome::kQueued);
  }
  EXPECT(stage.poll(two, 0, 1) == Outcome::kOk);
  EXPECT(stage.end() == Commit::kDone);
  const std::string before = stateOf(stage.pool());
  const uint64_t bytes = stage.store().counts().journalBytes;

  limitFiles(bytes + cut);
  EXPECT(stage.throwTo(one, Edge::kLeft, R"({"new":1})") == Outcome::kDelivered);
  EXPECT(stage.end() == Commit::kNotWritten);
  EXPECT(!stage.recorder.answerTo(1));
  EXPECT(stage.store().blocked() == EFBIG);
  // Turns and time go on. Nothing is promised, and the poll of two stays parked.
  for (int i = 0; i < 5; ++i) {
    EXPECT(stage.throwTo(one, Edge::kLeft, R"({"newer":1})") == Outcome::kStateUnwritable);
    EXPECT(stage.end() == Commit::kDone);
    stage.tick();
  }
  Id none;
  EXPECT(stage.pool().join({}, 0, &none) == Outcome::kStateUnwritable);
  EXPECT(!stage.recorder.answerTo(1));
  EXPECT(afterACrash(folder) == before);
  limitFiles(bytes + cut);
  // A poll that supersedes it gets nothing either.
  EXPECT(stage.poll(two, 0, 2) == Outcome::kOk);
  EXPECT(stage.end() == Commit::kDone);
  EXPECT(contains(stage.recorder.answerTo(1), "superseded") &&
         !contains(stage.recorder.answerTo(1), "new"));
  EXPECT(!stage.recorder.answerTo(2));

  // Sprites that were written before are delivered, and acked one by one.
  uint32_t token = 10;
  for (uint64_t ack = 0; ack < 3; ++ack) {
    EXPECT(stage.poll(one, ack, ++token) == Outcome::kOk);
    EXPECT(stage.end() == Commit::kDone);
    EXPECT(contains(stage.recorder.answerTo(token), "old"));
  }
  EXPECT(afterACrash(folder) == before);

  // The disk recovers.
  limitFiles(RLIM_INFINITY);
  stage.tick();
  EXPECT(stage.store().blocked() == 0);
  EXPECT(contains(stage.recorder.answerTo(2), "new"));
  EXPECT(stage.throwTo(one, Edge::kLeft, R"({"newer":1})") == Outcome::kQueued);
  EXPECT(stage.end() == Commit::kDone);
  EXPECT(afterACrash(folder) == stateOf(stage.pool()));
}

/**
 * If a poll's turn can't be written, an end of the poll in the same turn does not answer it: the
 * answer would say that its ack holds.
 */
void noEndOfAPollConfirmsItsAck() {
  const Folder folder;
  Stage stage(storeOptions(folder));
  const std::vector<Id> ids = {stage.join(), stage.join(), stage.join()};
  for (const Id& id : ids) {
    EXPECT(stage.throwTo(id, Edge::kLeft, R"({"old":1})") == Outcome::kQueued);
  }
  for (const Id& id : ids) EXPECT(stage.poll(id, 0, 100) == Outcome::kOk);
  EXPECT(stage.end() == Commit::kDone);
  stage.recorder.answers.clear();
  const std::string before = stateOf(stage.pool());
  limitFiles(stage.store().counts().journalBytes);
  for (uint32_t token = 0; token < 3; ++token) {
    EXPECT(stage.poll(ids[token], 1, token) == Outcome::kOk);
  }
  EXPECT(stage.pool().leave(ids[0]) == Outcome::kOk);
  EXPECT(stage.poll(ids[1], 1, 11) == Outcome::kOk);
  EXPECT(stage.poll(ids[2], 1, 12) == Outcome::kOk);
  EXPECT(stage.end() == Commit::kNotWritten);
  EXPECT(stage.recorder.answers.empty());
  EXPECT(afterACrash(folder) == before);

  // A poll that has lost its connection meanwhile is not answered at all.
  stage.pool().drop(ids[2], PollHolder::kRoutes, 2);
  EXPECT(stage.pool().counts().parked == 2);
  limitFiles(RLIM_INFINITY);
  stage.tick();
  EXPECT(contains(stage.recorder.answerTo(0), R"({"seq":1,)"));
  EXPECT(contains(stage.recorder.answerTo(1), R"("superseded":true)"));
  EXPECT(!stage.recorder.answerTo(2));
}

/** The steps that wait in memory have a bound. */
void theBacklogIsBounded() {
  const Folder folder;
  Stage stage(storeOptions(folder, Sync::kNever, 400));
  std::vector<Id> ids(40);
  for (Id& id : ids) id = stage.join();
  for (const Id& id : ids) {
    EXPECT(stage.throwTo(id, Edge::kLeft, R"({"old":1})") == Outcome::kQueued);
  }
  EXPECT(stage.end() == Commit::kDone);
  for (size_t i = 0; i < ids.size(); ++i) EXPECT(stage.poll(ids[i], 0, i) == Outcome::kOk);
  EXPECT(stage.end() == Commit::kDone);
  limitFiles(stage.store().counts().journalBytes);
  EXPECT(stage.throwTo(ids[0], Edge::kLeft, R"({"new":1})") == Outcome::kQueued);
  EXPECT(stage.end() == Commit::kNotWritten);
  // Acks are accepted up to the bound, then neither acks nor leaves. A poll that acks nothing is
  // always accepted.
  uint32_t acceptedAcks = 0;
  uint32_t token = 100;
  for (const Id& id : ids) {
    const Outcome outcome = stage.poll(id, 1, ++token);
    acceptedAcks += outcome == Outcome::kOk;
    EXPECT(outcome == Outcome::kOk || outcome == Outcome::kStateUnwritable);
    EXPECT(stage.end() == Commit::kDone);
  }
  EXPECT(acceptedAcks > 5 && acceptedAcks < 20);
  EXPECT(stage.store().counts().backlogBytes < 500);
  EXPECT(stage.poll(ids.back(), 0, ++token) == Outcome::kOk);
  EXPECT(stage.end() == Commit::kDone);
  EXPECT(contains(stage.recorder.answerTo(token), "old"));
  const uint32_t clients = stage.pool().counts().clients;
  EXPECT(stage.pool().leave(ids[1]) == Outcome::kStateUnwritable);
  // Leases do not end any more, however long it takes.
  for (int i = 0; i < 300; ++i) stage.tick();
  EXPECT(stage.pool().counts().clients == clients);
  EXPECT(stage.store().counts().backlogBytes < 500);

  limitFiles(RLIM_INFINITY);
  stage.tick();
  EXPECT(stage.store().counts().backlogBytes == 0);
  EXPECT(stage.pool().leave(ids[1]) == Outcome::kOk);
  EXPECT(stage.poll(ids[2], 1, ++token) == Outcome::kOk);
  EXPECT(stage.end() == Commit::kDone);
  EXPECT(afterACrash(folder) == stateOf(stage.pool()));
}

/**
 * A client that owes an ack, and is answered at the end of its lease because the disk accepts
 * nothing, gets another lease.
 */
void everyLeaseBeginsAnew() {
  const Folder folder;
  Stage stage(storeOptions(folder));
  const Id one = stage.join();
  const Id two = stage.join();
  EXPECT(stage.throwTo(two, Edge::kLeft, R"({"old":1})") == Outcome::kQueued);
  EXPECT(stage.poll(one, 0, 1) == Outcome::kOk);
  EXPECT(stage.end() == Commit::kDone);
  EXPECT(contains(stage.recorder.answerTo(1), "old"));

  limitFiles(stage.store().counts().journalBytes);
  EXPECT(stage.throwTo(two, Edge::kLeft, R"({"new":1})") == Outcome::kQueued);
  EXPECT(stage.end() == Commit::kNotWritten);
  EXPECT(stage.poll(one, 0, 2) == Outcome::kOk);
  EXPECT(stage.end() == Commit::kDone);
  const uint32_t ticks = 3 * poolOptions(100).lease * 1000 / kTickMilliseconds;
  for (uint32_t i = 0; i < ticks; ++i) stage.tick();
  EXPECT(stage.recorder.answerTo(2) && !contains(stage.recorder.answerTo(2), "old"));

  limitFiles(RLIM_INFINITY);
  for (uint32_t i = 0; i < ticks; ++i) stage.tick();
  EXPECT(stage.pool().counts().clients == 0);
}

/**
 * If the disk accepts nothing, the leaving of a player is not written. In the next run this player
 * does not have the place that another has got since.
 */
void aPlaceOfAnArenaIsTheLastPlayers() {
  const Folder folder;
  const std::string path = folder.file() + ".journal-0";
  Journal journal(1, 1);
  EXPECT(journal.open(path, 0, 0) == 0);
  const ArenaOptions options = {.rooms = {"hall"}, .players = 8, .lease = 2, .rate = 5};
  AddressLimits limits({});
  Arena before(options, &limits, 0);
  before.keepJournal(&journal);
  Id left;
  Id stays = {};
  uint32_t number;
  EXPECT(before.join("hall", {}, 0, &left, &number) == Outcome::kOk);
  EXPECT(journal.write(0) == 0);
  limitFiles(journal.bytes());
  EXPECT(before.input("hall", left, kNoNumber, "{}", 0) == Outcome::kOk);
  EXPECT(journal.write(0) != 0 && !journal.hasRoom());
  before.leave("hall", left);
  limitFiles(RLIM_INFINITY);
  EXPECT(journal.write(0) == 0);
  // A start reads the note of the player that has left first.
  do {
    before.leave("hall", stays);
    EXPECT(before.join("hall", {}, 0, &stays, &number) == Outcome::kOk);
    EXPECT(stays.record() == left.record());
  } while (memcmp(stays.bytes, left.bytes, sizeof left.bytes) < 0);
  EXPECT(journal.write(0) == 0);

  base::MappedFile file;
  EXPECT(file.open(path, UINT64_MAX) == 0);
  Pool pool(poolOptions(8), nullptr, 0);
  StoredFeedsAndNotes stored;
  EXPECT(replayJournal(file.bytes(), UINT64_MAX, &pool, &stored).problem.empty());
  Arena after(options, &limits, 0);
  for (const auto& [name, bytes] : stored.detachNotes()) after.restore(name, bytes);
  after.finishRestore();
  EXPECT(after.playerNumber("hall", stays) == number);
}

/** Random lives with a disk that comes and goes: all that was delivered is in the files. */
void randomLives(uint64_t seed) {
  std::mt19937_64 random(seed);
  const Folder folder;
  Life life(random(), 40, storeOptions(folder, Sync::kNever, 2000),
            seed % 2 == 0 ? Where::kAlone : Where::kInWorld);
  EXPECT(life.recover().ok());
  EXPECT(life.start() == 0);
  // The states that may be in the files, oldest first: every moment since the one that was last
  // found there.
  std::deque<std::string> states = {stateOf(life)};
  uint64_t stuck = 0;
  for (int turns = 0; turns < 150; ++turns) {
    if (random() % 10 == 0) limitFiles(life.store().counts().journalBytes + random() % 400);
    life.steps();
    const auto recordStates = [&](auto&& step) {
      rlimit limit;
      getrlimit(RLIMIT_FSIZE, &limit);
      limitFiles(RLIM_INFINITY);
      states.push_back(stateOf(life));
      limitFiles(limit.rlim_cur);
      step();
    };
    recordStates([&] { life.end(); });
    if (random() % 4 == 0) recordStates([&] { life.tick(); });
    const bool isWritten = life.store().counts().backlogBytes == 0;
    stuck += !isWritten;
    rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    const std::string found = afterACrash(folder, &life);
    states.push_back(stateOf(life));
    EXPECT(!isWritten || found == states.back());
    while (!states.empty() && states.front() != found) states.pop_front();
    EXPECT(!states.empty());
    if (random() % 4 != 0) limitFiles(limit.rlim_cur);
  }
  limitFiles(RLIM_INFINITY);
  EXPECT(stuck > 10);
  EXPECT(life.finish().ok());
  EXPECT(afterACrash(folder) == stateOf(life));
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? strtoull(argv[1], nullptr, 10) : std::random_device{}();
  printf("stuck_test: seed %" PRIu64 "\n", seed);
  fflush(stdout);
  signal(SIGXFSZ, SIG_IGN);
  for (const uint64_t cut : {0, 1, 31, 32, 40, 71}) nothingUnwrittenIsDelivered(cut);
  noEndOfAPollConfirmsItsAck();
  theBacklogIsBounded();
  everyLeaseBeginsAnew();
  aPlaceOfAnArenaIsTheLastPlayers();
  for (uint64_t i = 0; i < 4; ++i) randomLives(seed + i);
  return 0;
}
