// The arenas: rooms whose players send small inputs. The latest input of each player is kept.
//
//   input ─▶ player's record (by its id, no search) ─▶ rate ─▶ fields of the game ─▶ columns
//                                                                                     │
//   reducer ◀── take: dense columns of one room, 10 to 60 times a second ◀────────────┘
//
// A room has a game, of which this table knows only the fields: the names of the inputs and their
// ranges. Values are kept in columns, a column for each field and a place for each player, its
// record. The players of a room are a list, so that a reduction touches no others.
//
// The law of inputs: inputs = reduced + superseded + waiting, at every moment.
//
// Cost of an input: its text read once (some 60 ns), one record, its values, one re-arm of the
// wheel; no allocation. A player costs 48 bytes, 4 to 8 in its room's list, 12 of the wheel and 8 a
// field. Rejected: the values in the record (a reduction would read all of it for one number), a
// queue of inputs (a phone that is shaken would fill it, and a game needs only the newest one), the
// pool's clients as players (a place in the torus and a mailbox that are not needed).
#ifndef SPRITES_ARENA_H_
#define SPRITES_ARENA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/address_limits.h"
#include "base/id.h"
#include "base/journal.h"
#include "base/reserve.h"
#include "base/wheel.h"
#include "input_reader.h"
#include "torus/pool.h"

namespace server {

struct ArenaOptions {
  std::vector<std::string> rooms;  // their names
  uint32_t players;                // in one room
  uint32_t lease;                  // seconds without an input after which a player has left
  uint32_t rate;                   // inputs a second and player; twice that at once
  ServerTag tag = kNoServerTag;    // in new ids
};

struct ArenaCounts {
  uint64_t joined, left, expired;
  uint64_t inputs, reduced, superseded, waiting;  // inputs = reduced + superseded + waiting
  uint64_t repeated;  // inputs that had come before, not counted in `inputs`
  uint32_t players;
};

class Arena {
 public:
  static constexpr uint32_t kNoRoom = UINT32_MAX;

  /**
   * `limits` count players as clients, and must outlive the arena. `now`: milliseconds of tick's
   * clock. Throws std::bad_alloc.
   */
  Arena(const ArenaOptions& options, AddressLimits* limits, uint64_t now);
  ~Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /** Returns the room of that name; kNoRoom: there is none. */
  uint32_t roomOf(std::string_view name) const;

  /** Sets the fields of another game in a room: every player's values start again. */
  void setFields(uint32_t room, std::vector<InputField> fields);

  /**
   * Adds a player from `address`. kOk fills `id` and `number`, which no other player of this room
   * has had. Else kTooManyJoins, kTooManyClients, kArenaFull, kUnknownArena, kDraining or
   * kStateUnwritable. `now`: microseconds of any monotonic clock.
   */
  Outcome join(std::string_view room, const Address& address, uint64_t now, Id* id,
               uint32_t* number);

  /**
   * Takes a player's input, JSON text. `number` is the player's own counter or kNoNumber. Returns
   * kOk, also for a repeated input; kUnknownArena, kUnknownPlayer, kTooManyInputs and kBadInput
   * change nothing.
   */
  Outcome input(std::string_view room, const Id& id, uint64_t number, std::string_view text,
                uint64_t now);

  /** Removes a player. Does nothing where there is no such player. */
  Outcome leave(std::string_view room, const Id& id);

  /**
   * The output of a reduction: arrays of `capacity` each, in `values` one such array for each
   * field.
   */
  struct Columns {
    uint32_t capacity;
    uint32_t* numbers;
    uint8_t* isNew;
    double* values;
  };

  /** Number of players in a room. */
  uint32_t players(uint32_t room) const {
    return static_cast<uint32_t>(rooms_[room].members.size());
  }

  /** The number by which a reducer knows a player; 0: there is no such player. */
  uint32_t playerNumber(std::string_view room, const Id& id) {
    const Player* const player = find(room, id);
    return player == nullptr ? 0 : player->number;
  }

  /**
   * Writes the latest inputs of the players in a room, at most `capacity`, to `columns`, and counts
   * waiting inputs as reduced. Returns the number of players.
   */
  uint32_t collectInputs(uint32_t room, const Columns& columns);

  /** Ends the leases that are due at `now`, milliseconds; false: call again soon. */
  bool tick(uint64_t now);

  /** Returns whether the next `ticks` have nothing to do if no request comes. */
  bool isQuiet(uint32_t ticks) const { return wheel_.isQuiet(ticks); }

  /** Refuses joins from now on. */
  void drain() { draining_ = true; }

  /** Notes players and games in `journal` from now on, which must outlive the arena. */
  void keepJournal(Journal* journal) { journal_ = journal; }

  /**
   * Calls `see(name, bytes)` with a note (feeds_and_notes.h) for each room and each player:
   *
   *   arena/{room}          the newest number of a player
   *   player/{room}/{id}    a PlayerNote and its values; the id's 16 bytes
   */
  template <typename See>
  void forEachNote(See&& see) const {
    for (uint32_t room = 0; room < rooms_.size(); ++room) {
      const uint32_t& number = rooms_[room].newestNumber;
      see(roomNoteName(room),
          std::string_view(reinterpret_cast<const char*>(&number), sizeof number));
      for (const uint32_t record : rooms_[room].members)
        see(playerNoteName(record), noteBytes(record));
    }
  }

  /**
   * Restores a note of the last run to a new arena whose fields are set. Returns false for a note
   * of no room here, or without a place for the player. Call `finishRestore` after the last note.
   */
  bool restore(std::string_view name, std::string_view bytes);

  /** Ends the restoring: all notes of the last run were there. */
  void finishRestore();

  const ArenaCounts& counts() const { return counts_; }

 private:
  struct Player {
    Id id;
    uint64_t allowanceFullAt;  // time when the allowance is full again, microseconds (GCRA)
    uint64_t nextInputNumber;  // the highest input number + 1; 0: none
    Source source;
    uint32_t number;
    uint32_t place;  // among the room's members; of a free record: the next free one + 1
    uint8_t room;
    bool isLive;
    bool hasWaitingInput;  // its latest input has not been reduced
    bool isNoteStale;      // has left, and the journal could not record that
  };
  static_assert(sizeof(Player) == 48, "the cost that is named above");

  struct Room {
    std::string name;
    std::vector<InputField> fields = {};
    std::vector<uint32_t> members = {};
    uint32_t newestNumber = 0;
  };

  /** The head of a player's note. One double for each field follows it. */
  struct PlayerNote {
    uint64_t nextInputNumber;
    Address address;
    uint32_t number;
    uint32_t fields;
  };
  static_assert(sizeof(PlayerNote) == 32, "a change of the format is a new version");

  std::string roomNoteName(uint32_t room) const;
  std::string playerNoteName(uint32_t record) const;
  std::string_view noteBytes(uint32_t record) const;
  void writeNote(uint32_t record);
  Player* find(std::string_view room, const Id& id);
  void admit(uint32_t record, const Id& id, uint32_t room, uint32_t number);
  void remove(Player* player);
  void supersedeInput(Player* player);
  void renewLease(uint32_t record);
  double& valueOf(uint32_t record, size_t field) { return values_[field * capacity_ + record]; }
  double valueOf(uint32_t record, size_t field) const {
    return values_[field * capacity_ + record];
  }

  const ArenaOptions options_;
  const uint32_t capacity_;
  AddressLimits* const limits_;
  std::vector<Room> rooms_;
  base::Reserved<Player> players_;
  base::Reserved<double> values_;
  base::Wheel<kTickMilliseconds> wheel_;
  IdMaker ids_;
  ArenaCounts counts_ = {};
  uint32_t used_ = 0;
  uint32_t freeRecord_ = 0;  // the first free one + 1
  uint64_t now_;             // milliseconds, of the last tick
  bool draining_ = false;
  Journal* journal_ = nullptr;
  mutable std::string noteBuffer_;  // result of noteBytes
};

}  // namespace server

#endif  // SPRITES_ARENA_H_
