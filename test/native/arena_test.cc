// The arena's reader of inputs compared with JSON, the rate limit of inputs, and a restart. The
// simulation checks the guarantees to players and reductions (simulated_arena.h).
//
//   arena_test
#include "arena/arena.h"

#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "expect.h"

namespace {

using namespace server;

const std::vector<InputField> kFields = {{"y", 0, 1, 0.5, false}, {"taps", -10, 1000, 0, true}};

bool reads(std::string_view text, InputValues* out) { return readInput(text, kFields, out); }

void testReader() {
  InputValues out;
  EXPECT(reads("{}", &out) && out.namedFields == 0);
  EXPECT(reads(" \t\r\n{ \"y\" : 0.25 , \"taps\":3\n} ", &out) && out.namedFields == 3);
  EXPECT(out.values[0] == 0.25 && out.values[1] == 3);
  EXPECT(reads(R"({"taps":-1.0e1})", &out) && out.namedFields == 2 && out.values[1] == -10);
  EXPECT(reads(R"({"taps":1E+3})", &out) && out.values[1] == 1000);
  EXPECT(reads(R"({"y":0})", &out) && reads(R"({"y":-0})", &out) && reads(R"({"y":1e-9})", &out));
  std::vector<std::string> bad = {"",
                                  " ",
                                  "{} x",
                                  R"({"y" 1})",
                                  R"({"y":0 "taps":1})",
                                  "{\"y\":0}\x01",
                                  std::string("{\"y\":0}\0", 8),
                                  "\xef\xbb\xbf{}"};
  // Each word is a bad input.
  std::istringstream words(R"(
      [] 1 "y" null { } {}{} {,} {"y"} {"y":} {"y":1,} {"y":1 {"y":0}{} {"y":0;"taps":1} {y:0} {'y':0}
      {"y":01} {"y":+1} {"y":.5} {"y":1.} {"y":1e} {"y":-} {"y":1e+} {"y":0x1} {"y":NaN} {"y":Infinity}
      {"y":"1"} {"y":true} {"y":null} {"y":[1]} {"y":{}} {"y":1.001} {"y":-0.001} {"y":1e999}
      {"taps":0.5} {"taps":1001} {"y":0.5,"taps":2000}
      {"z":1} {"Y":1} {"":1} {"__proto__":0} {"y":0,"y":0} {"\u0079":0})");
  for (std::string word; words >> word;) bad.push_back(word);
  for (const std::string& text : bad) {
    if (reads(text, &out)) {
      fprintf(stderr, "taken: %s\n", text.c_str());
      abort();
    }
  }
  // No proper prefix of an input is an input.
  const std::string whole = R"({"y":0.25,"taps":3})";
  for (size_t i = 0; i < whole.size(); ++i) EXPECT(!reads(whole.substr(0, i), &out));
}

/** An input above the rate limit changes nothing; a player that is silent for a lease has left. */
void testRate() {
  AddressLimits limits({});
  Arena arena({.rooms = {"hall"}, .players = 1, .lease = 2, .rate = 5}, &limits, 0);
  arena.setFields(0, kFields);
  Id id;
  uint32_t number;
  EXPECT(arena.join("hall", {}, 0, &id, &number) == Outcome::kOk);
  for (int i = 0; i < 10; ++i) {
    EXPECT(arena.input("hall", id, kNoNumber, "{}", 1000) == Outcome::kOk);
  }
  EXPECT(arena.input("hall", id, kNoNumber, "{}", 1000) == Outcome::kTooManyInputs);
  EXPECT(arena.counts().inputs == 10);
  // The next game hears of no input for the one before.
  arena.setFields(0, kFields);
  EXPECT(arena.counts().superseded == 10 && arena.counts().waiting == 0);
  arena.tick(1000);
  EXPECT(arena.input("hall", id, kNoNumber, "{}", 1000 + 200000) == Outcome::kOk);
  EXPECT(arena.input("hall", id, kNoNumber, "{}", 1000 + 200000) == Outcome::kTooManyInputs);
  // A lease without an input ends the player, never early: the input may have come two ticks after
  // the last one. Its number is never reused.
  arena.tick(3000 + 2 * kTickMilliseconds);
  EXPECT(arena.counts().expired == 0 && arena.players(0) == 1);
  arena.tick(3000 + 3 * kTickMilliseconds);
  EXPECT(arena.counts().expired == 1 && arena.players(0) == 0);
  EXPECT(arena.input("hall", id, kNoNumber, "{}", 1000) == Outcome::kUnknownPlayer);
  EXPECT(arena.join("hall", {}, 0, &id, &number) == Outcome::kOk && number == 2);
  arena.leave("hall", id);
  arena.tick(10000);
  EXPECT(arena.counts().expired == 1 && limits.size() == 0);
  arena.drain();
  EXPECT(arena.join("hall", {}, 0, &id, &number) == Outcome::kDraining);
}

/** A restart keeps the players and their ids. New players get the free places between them. */
void testRestore() {
  const ArenaOptions options = {.rooms = {"hall"}, .players = 8, .lease = 2, .rate = 5};
  AddressLimits limits({});
  Arena before(options, &limits, 0);
  before.setFields(0, kFields);
  Id ids[6];
  uint32_t number;
  for (Id& id : ids) EXPECT(before.join("hall", {}, 0, &id, &number) == Outcome::kOk);
  EXPECT(before.input("hall", ids[4], 7, R"({"y":0.75})", 0) == Outcome::kOk);
  for (const int i : {0, 2, 5}) before.leave("hall", ids[i]);
  Arena after(options, &limits, 0);
  after.setFields(0, kFields);
  const auto restoreNote = [&after](const std::string& name, std::string_view bytes) {
    EXPECT(after.restore(name, bytes));
    // Refused: a player of another room, a truncated one, and a second copy.
    EXPECT(!after.restore("player/yard" + name.substr(name.rfind('/')), bytes));
    EXPECT(!after.restore(name, bytes.substr(1)));
    EXPECT(!name.starts_with("player/") || !after.restore(name, bytes));
  };
  before.forEachNote(restoreNote);
  after.finishRestore();
  EXPECT(after.players(0) == 3);
  uint32_t numbers[8];
  uint8_t isNew[8];
  double values[16];
  EXPECT(after.collectInputs(0, {8, numbers, isNew, values}) == 3);
  for (int i = 0; i < 3; ++i) EXPECT(values[i] == (numbers[i] == 5 ? 0.75 : 0.5) && isNew[i] == 0);
  EXPECT(after.input("hall", ids[4], 7, R"({"y":0})", 0) == Outcome::kOk);
  EXPECT(after.counts().repeated == 1 && after.counts().inputs == 0);
  Id id;
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT(after.join("hall", {}, 0, &id, &number) == Outcome::kOk && number == 7 + i);
  }
  EXPECT(after.join("hall", {}, 0, &id, &number) == Outcome::kArenaFull);
  // With fewer places, and a game that takes smaller numbers: the value above them is not restored.
  Arena smaller({.rooms = {"hall", "a", "b", "c"}, .players = 2, .lease = 2, .rate = 5}, &limits,
                0);
  smaller.setFields(0, {{"y", 0, 0.6, 0.5, false}, {"taps", 0, 1, 0, true}});
  std::vector<std::pair<std::string, std::string>> notes;
  before.forEachNote([&notes](const std::string& name, std::string_view bytes) {
    if (name.starts_with("player/")) notes.emplace_back(name, bytes);
  });
  int restored = 0;
  for (auto note = notes.rbegin(); note != notes.rend(); ++note) {
    restored += smaller.restore(note->first, note->second);
  }
  EXPECT(restored == 2 && smaller.collectInputs(0, {8, numbers, isNew, values}) == 2);
  EXPECT(values[0] == 0.5 && values[1] == 0.5);
  EXPECT(after.input("hall", ids[1], kNoNumber, "{}", 0) == Outcome::kOk);
}

}  // namespace

int main() {
  testReader();
  testRate();
  testRestore();
  printf("arena_test: inputs, their allowance, and a restart\n");
  return 0;
}
