// The arenas against a plain model, by random joins, inputs, leaves, leases, reductions and changes
// of game; and the reader of inputs against what JSON is.
//
//   arena_test [COUNT] [SEED]
#include "pool/arena.h"

#include <cstdio>
#include <map>
#include <random>
#include <string>

#include "expect.h"

namespace {

using namespace server;

const std::vector<InputField> kFields = {{"y", 0, 1, 0.5, false}, {"taps", -10, 1000, 0, true}};

bool reads(std::string_view text, InputValues* out) { return readInput(text, kFields, out); }

void testReader() {
  InputValues out;
  EXPECT(reads("{}", &out) && out.given == 0);
  EXPECT(reads(" \t\r\n{ \"y\" : 0.25 , \"taps\":3\n} ", &out) && out.given == 3);
  EXPECT(out.values[0] == 0.25 && out.values[1] == 3);
  EXPECT(reads(R"({"taps":-1.0e1})", &out) && out.given == 2 && out.values[1] == -10);
  EXPECT(reads(R"({"taps":1E+3})", &out) && out.values[1] == 1000);
  EXPECT(reads(R"({"y":0})", &out) && reads(R"({"y":-0})", &out) && reads(R"({"y":1e-9})", &out));
  for (const char* bad : {"",
                          " ",
                          "[]",
                          "null",
                          "{",
                          "}",
                          "{}{}",
                          "{} x",
                          "{,}",
                          R"({"y"})",
                          R"({"y":})",
                          R"({"y":1,})",
                          R"({"y":01})",
                          R"({"y":+1})",
                          R"({"y":.5})",
                          R"({"y":1.})",
                          R"({"y":1e})",
                          R"({"y":-})",
                          R"({"y":1e+})",
                          R"({"y":0x1})",
                          R"({"y":NaN})",
                          R"({"y":Infinity})",
                          R"({"y":"1"})",
                          R"({"y":true})",
                          R"({"y":null})",
                          R"({"y":[1]})",
                          R"({"y":{}})",
                          R"({"y":1.01})",
                          R"({"y":-0.01})",
                          R"({"y":1e999})",
                          R"({"taps":1.5})",
                          R"({"taps":1001})",
                          R"({"z":1})",
                          R"({"Y":1})",
                          R"({"":1})",
                          R"({"y":0,"y":0})",
                          R"({"\u0079":0})",
                          R"({y:0})",
                          R"({'y':0})",
                          R"({"y":0 "taps":1})",
                          R"({"y":0;"taps":1})",
                          "{\"y\":0}\x01",
                          "\xef\xbb\xbf{}"}) {
    if (reads(bad, &out)) {
      fprintf(stderr, "taken: %s\n", bad);
      abort();
    }
  }
  // Every beginning of an input is none.
  const std::string whole = R"({"y":0.25,"taps":3})";
  for (size_t i = 0; i < whole.size(); ++i) EXPECT(!reads(whole.substr(0, i), &out));
}

/** What the model knows of a player. */
struct Known {
  Id id;
  uint32_t number;
  double values[2];
  uint64_t newest;
  bool waits;
  uint64_t last;  // milliseconds
};

class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed), arena_(kOptions, nullptr, 0) {
    arena_.setFields(0, kFields);
    arena_.setFields(1, {{"x", 0, 9, 4, false}});
  }

  void step() {
    switch (below(12)) {
      case 0:
      case 1:
        return join();
      case 2:
        return leave();
      case 3:
        return pass(below(20) == 0 ? 3000 : 150);
      case 4:
        return reduce();
      case 5:
        if (below(50) == 0) return another();
        [[fallthrough]];
      default:
        return input();
    }
  }

  void check() {
    const ArenaCounts& counts = arena_.counts();
    uint64_t waiting = 0;
    for (const auto& [number, player] : players_) waiting += player.waits;
    EXPECT(counts.inputs == counts.reduced + counts.superseded + counts.waiting);
    EXPECT(counts.waiting == waiting);
    EXPECT(counts.players == players_.size() && arena_.players(0) == players_.size());
    EXPECT(counts.joined == counts.left + counts.expired + counts.players);
  }

 private:
  static inline const ArenaOptions kOptions = {
      .rooms = {"hall", "yard"}, .players = 20, .lease = 2, .rate = 1000};

  uint32_t below(uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(0, most - 1)(random_);
  }

  Known* any() {
    if (players_.empty()) return nullptr;
    auto at = players_.begin();
    std::advance(at, below(static_cast<uint32_t>(players_.size())));
    return &at->second;
  }

  void join() {
    Id id;
    uint32_t number = 0;
    EXPECT(arena_.join("nowhere", {}, 0, &id, &number) == Outcome::kUnknownArena);
    const Outcome outcome = arena_.join("hall", {}, now_ * 1000, &id, &number);
    if (players_.size() == 20) return EXPECT(outcome == Outcome::kArenaFull);
    EXPECT(outcome == Outcome::kOk && number == ++newest_);
    players_[number] = {id, number, {kFields[0].start, kFields[1].start}, 0, false, now_};
  }

  void leave() {
    Known* const player = any();
    if (player == nullptr) return;
    EXPECT(arena_.leave("yard", player->id) == Outcome::kOk);
    EXPECT(arena_.players(0) == players_.size());
    const Id id = player->id;
    EXPECT(arena_.leave("hall", id) == Outcome::kOk && arena_.leave("hall", id) == Outcome::kOk);
    players_.erase(player->number);
    EXPECT(arena_.input("hall", id, kNoNumber, "{}", now_ * 1000) == Outcome::kUnknownPlayer);
  }

  void input() {
    Known* const player = any();
    if (player == nullptr) return;
    const auto send = [&](const char* room, uint64_t number, const std::string& text) {
      return arena_.input(room, player->id, number, text, now_ * 1000 + (micros_ += 1000));
    };
    EXPECT(send("yard", kNoNumber, "{}") == Outcome::kUnknownPlayer);
    Id wrong = player->id;
    wrong.bytes[below(12)] ^= 1;
    EXPECT(arena_.input("hall", wrong, kNoNumber, "{}", 0) == Outcome::kUnknownPlayer);
    EXPECT(send("hall", kNoNumber, R"({"y":0.1,"taps":0.5})") == Outcome::kBadInput);
    const uint32_t taps = below(1000);
    const uint64_t number = player->newest + below(3);
    EXPECT(send("hall", number, "{\"taps\":" + std::to_string(taps) + "}") == Outcome::kOk);
    if (number < player->newest) return;
    player->newest = number + 1;
    player->values[1] = taps;
    player->waits = true;
    player->last = now_;
  }

  void pass(uint64_t milliseconds) {
    now_ += milliseconds;
    while (!arena_.tick(now_)) {
    }
    // Not before the lease is over, and three ticks later at the most.
    uint32_t numbers[20];
    uint8_t fresh[20];
    double values[20 * 16];
    const uint32_t left = arena_.take(0, {20, numbers, fresh, values});
    for (auto at = players_.begin(); at != players_.end();) {
      bool there = false;
      for (uint32_t i = 0; i < left; ++i) there = there || numbers[i] == at->first;
      at->second.waits = false;
      const uint64_t since = now_ - at->second.last;
      if (since < 2000) EXPECT(there);
      if (since > 2000 + 4 * kTickMilliseconds) EXPECT(!there);
      at = there ? std::next(at) : players_.erase(at);
    }
    // Nobody else waits for a reduction.
    EXPECT(arena_.take(1, {20, numbers, fresh, values}) == 0);
  }

  void reduce() {
    uint32_t numbers[20];
    uint8_t fresh[20];
    double values[20 * 2];
    const uint32_t count = arena_.take(0, {20, numbers, fresh, values});
    EXPECT(count == players_.size());
    for (uint32_t i = 0; i < count; ++i) {
      Known& player = players_.at(numbers[i]);
      EXPECT((fresh[i] == 1) == player.waits);
      EXPECT(values[i] == player.values[0] && values[20 + i] == player.values[1]);
      player.waits = false;
    }
  }

  void another() {
    arena_.setFields(0, kFields);
    for (auto& [number, player] : players_) {
      player.values[0] = kFields[0].start;
      player.values[1] = kFields[1].start;
      player.waits = false;
    }
  }

  std::mt19937_64 random_;
  Arena arena_;
  std::map<uint32_t, Known> players_;
  uint32_t newest_ = 0;
  uint64_t now_ = 0;  // milliseconds
  uint64_t micros_ = 0;
};

/** What is refused for its rate changes nothing, and the allowance grows again. */
void testRate() {
  Arena arena({.rooms = {"hall"}, .players = 1, .lease = 2, .rate = 5}, nullptr, 0);
  arena.setFields(0, kFields);
  Id id;
  uint32_t number;
  EXPECT(arena.join("hall", {}, 0, &id, &number) == Outcome::kOk);
  for (int i = 0; i < 10; ++i) {
    EXPECT(arena.input("hall", id, kNoNumber, "{}", 1000) == Outcome::kOk);
  }
  EXPECT(arena.input("hall", id, kNoNumber, "{}", 1000) == Outcome::kTooManyInputs);
  EXPECT(arena.counts().inputs == 10);
  EXPECT(arena.input("hall", id, kNoNumber, "{}", 1000 + 200000) == Outcome::kOk);
  EXPECT(arena.input("hall", id, kNoNumber, "{}", 1000 + 200000) == Outcome::kTooManyInputs);
  arena.drain();
  EXPECT(arena.join("hall", {}, 0, &id, &number) == Outcome::kDraining);
}

/** A restart brings players with their ids, and newcomers get the places between. */
void testRestore() {
  const ArenaOptions options = {.rooms = {"hall"}, .players = 8, .lease = 2, .rate = 5};
  Arena before(options, nullptr, 0);
  before.setFields(0, kFields);
  Id ids[6];
  uint32_t number;
  for (Id& id : ids) EXPECT(before.join("hall", {}, 0, &id, &number) == Outcome::kOk);
  EXPECT(before.input("hall", ids[4], 7, R"({"y":0.75})", 0) == Outcome::kOk);
  for (const int i : {0, 2, 5}) before.leave("hall", ids[i]);
  Arena after(options, nullptr, 0);
  after.setFields(0, kFields);
  const auto give = [&after](const std::string& name, std::string_view bytes) {
    EXPECT(after.restore(name, bytes));
    // Neither another room's, nor one that is cut off or there already.
    EXPECT(!after.restore("player/yard" + name.substr(name.rfind('/')), bytes));
    EXPECT(!after.restore(name, bytes.substr(1)));
    EXPECT(!name.starts_with("player/") || !after.restore(name, bytes));
  };
  before.eachNote(give);
  after.settled();
  EXPECT(after.players(0) == 3);
  uint32_t numbers[8];
  uint8_t fresh[8];
  double values[16];
  EXPECT(after.take(0, {8, numbers, fresh, values}) == 3);
  for (int i = 0; i < 3; ++i) EXPECT(values[i] == (numbers[i] == 5 ? 0.75 : 0.5) && fresh[i] == 0);
  EXPECT(after.input("hall", ids[4], 7, R"({"y":0})", 0) == Outcome::kOk);
  EXPECT(after.counts().repeated == 1 && after.counts().inputs == 0);
  Id id;
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT(after.join("hall", {}, 0, &id, &number) == Outcome::kOk && number == 7 + i);
  }
  EXPECT(after.join("hall", {}, 0, &id, &number) == Outcome::kArenaFull);
  EXPECT(after.input("hall", ids[1], kNoNumber, "{}", 0) == Outcome::kOk);
}

}  // namespace

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 200000;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : std::random_device()();
  testReader();
  testRate();
  testRestore();
  printf("arena: seed %llu\n", static_cast<unsigned long long>(seed));
  Model model(seed);
  for (long i = 0; i < count; ++i) {
    model.step();
    model.check();
  }
  return 0;
}
