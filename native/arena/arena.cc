#include "arena.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace server {

namespace {

/** Most leases checked in one turn. */
constexpr uint32_t kSweepBudget = 4096;

}  // namespace

Arena::Arena(const ArenaOptions& options, AddressLimits* limits, uint64_t now)
    : options_(options),
      capacity_(static_cast<uint32_t>(options.rooms.size()) * options.players),
      limits_(limits),
      players_(capacity_),
      values_(size_t{capacity_} * kInputFields),
      wheel_(capacity_, now),
      ids_(options.tag),
      now_(now) {
  for (const std::string& name : options.rooms) rooms_.push_back({.name = name});
}

uint32_t Arena::roomOf(std::string_view name) const {
  for (uint32_t i = 0; i < rooms_.size(); ++i) {
    if (rooms_[i].name == name) return i;
  }
  return kNoRoom;
}

Arena::Player* Arena::find(std::string_view room, const Id& id) {
  const uint32_t record = id.record();
  if (record >= used_) return nullptr;
  Player& player = players_[record];
  return player.isLive && player.id == id && rooms_[player.room].name == room ? &player : nullptr;
}

// ---- Games --------------------------------------------------------------------------------------

void Arena::setFields(uint32_t room, std::vector<InputField> fields) {
  rooms_[room].fields = std::move(fields);
  const auto& now = rooms_[room].fields;
  for (const uint32_t record : rooms_[room].members) {
    supersedeInput(&players_[record]);
    for (size_t i = 0; i < now.size(); ++i) valueOf(record, i) = now[i].start;
    writeNote(record);
  }
}

/** Drops a waiting input: it will not be reduced. */
void Arena::supersedeInput(Player* player) {
  if (!std::exchange(player->hasWaitingInput, false)) return;
  --counts_.waiting;
  ++counts_.superseded;
}

uint32_t Arena::collectInputs(uint32_t room, const Columns& columns) {
  const Room& from = rooms_[room];
  const auto count = std::min(static_cast<uint32_t>(from.members.size()), columns.capacity);
  for (uint32_t i = 0; i < count; ++i) {
    Player& player = players_[from.members[i]];
    columns.numbers[i] = player.number;
    columns.isNew[i] = player.hasWaitingInput ? 1 : 0;
    if (!std::exchange(player.hasWaitingInput, false)) continue;
    --counts_.waiting;
    ++counts_.reduced;
  }
  for (size_t field = 0; field < from.fields.size(); ++field) {
    double* const column = columns.values + field * columns.capacity;
    for (uint32_t i = 0; i < count; ++i) column[i] = valueOf(from.members[i], field);
  }
  return count;
}

// ---- Players ------------------------------------------------------------------------------------

Outcome Arena::join(std::string_view name, const Address& address, uint64_t now, Id* id,
                    uint32_t* number) {
  const uint32_t room = roomOf(name);
  if (room == kNoRoom) return Outcome::kUnknownArena;
  if (draining_) return Outcome::kDraining;
  if (journal_ != nullptr && !journal_->isPromising()) return Outcome::kStateUnwritable;
  if (!limits_->tryJoin(address, now / 1000)) return Outcome::kTooManyJoins;
  if (rooms_[room].members.size() >= options_.players) return Outcome::kArenaFull;
  const Source source = limits_->addClient(address);
  if (source == kNoSource) return Outcome::kTooManyClients;
  uint32_t record;
  if (freeRecord_ != 0) {
    record = freeRecord_ - 1;
    freeRecord_ = players_[record].place;
  } else {
    // There is a free record: this room is not full, and there are records for all rooms' players.
    record = used_++;
  }
  // The record is the newcomer's, so its earlier player must not come back after a crash.
  if (players_[record].isNoteStale && journal_ != nullptr) journal_->unnote(playerNoteName(record));
  *id = ids_.make(record);
  *number = ++rooms_[room].newestNumber;
  admit(record, *id, room, *number);
  players_[record].source = source;
  if (journal_ != nullptr) {
    writeNote(record);
    journal_->note(roomNoteName(room), {reinterpret_cast<const char*>(number), sizeof *number});
  }
  ++counts_.joined;
  return Outcome::kOk;
}

/** Gives a free record to a player. */
void Arena::admit(uint32_t record, const Id& id, uint32_t room, uint32_t number) {
  Player& player = players_[record];
  player = Player{};
  player.id = id;
  player.source = kNoSource;
  player.number = number;
  player.room = static_cast<uint8_t>(room);
  player.isLive = true;
  player.place = static_cast<uint32_t>(rooms_[room].members.size());
  rooms_[room].members.push_back(record);
  const auto& fields = rooms_[room].fields;
  for (size_t i = 0; i < fields.size(); ++i) valueOf(record, i) = fields[i].start;
  ++counts_.players;
  renewLease(record);
}

/** Renews the lease. As in Pool::armTimer, it never ends early. */
void Arena::renewLease(uint32_t record) {
  wheel_.arm(record, now_ + options_.lease * uint64_t{1000} + 2 * kTickMilliseconds);
}

Outcome Arena::input(std::string_view room, const Id& id, uint64_t number, std::string_view text,
                     uint64_t now) {
  Player* const player = find(room, id);
  if (player == nullptr) {
    return roomOf(room) == kNoRoom ? Outcome::kUnknownArena : Outcome::kUnknownPlayer;
  }
  // A token bucket in one number: see Pool::allowedToThrow.
  const uint64_t interval = 1000000 / options_.rate;
  const uint64_t burst = 2 * uint64_t{options_.rate};
  if (player->allowanceFullAt > now + (burst - 1) * interval) return Outcome::kTooManyInputs;
  const auto& fields = rooms_[player->room].fields;
  InputValues read;
  if (!readInput(text, fields, &read)) return Outcome::kBadInput;
  player->allowanceFullAt = std::max(player->allowanceFullAt, now) + interval;
  if (number != kNoNumber) {
    if (number < player->nextInputNumber) {
      ++counts_.repeated;
      return Outcome::kOk;
    }
    player->nextInputNumber = number + 1;
  }
  const uint32_t record = id.record();
  for (size_t i = 0; i < fields.size(); ++i) {
    if ((read.namedFields >> i & 1) != 0) valueOf(record, i) = read.values[i];
  }
  ++counts_.inputs;
  if (player->hasWaitingInput) {
    ++counts_.superseded;
  } else {
    player->hasWaitingInput = true;
    ++counts_.waiting;
  }
  renewLease(record);
  writeNote(record);
  return Outcome::kOk;
}

Outcome Arena::leave(std::string_view room, const Id& id) {
  if (Player* const player = find(room, id)) {
    remove(player);
    ++counts_.left;
  }
  return Outcome::kOk;
}

void Arena::remove(Player* player) {
  const auto record = static_cast<uint32_t>(player - players_.data());
  // If the disk accepts nothing for long, the player comes back after a crash, for one lease.
  player->isNoteStale = journal_ != nullptr && !journal_->hasRoom();
  if (journal_ != nullptr && !player->isNoteStale) journal_->unnote(playerNoteName(record));
  supersedeInput(player);
  auto& members = rooms_[player->room].members;
  members[player->place] = members.back();
  players_[members.back()].place = player->place;
  members.pop_back();
  limits_->removeClient(player->source);
  wheel_.disarm(record);
  player->isLive = false;
  player->place = freeRecord_;
  freeRecord_ = record + 1;
  --counts_.players;
}

bool Arena::tick(uint64_t now) {
  now_ = now;
  return wheel_.sweep(now, kSweepBudget, [this](uint32_t record) {
    remove(&players_[record]);
    ++counts_.expired;
  });
}

// ---- From one run to the next -------------------------------------------------------------------

std::string Arena::roomNoteName(uint32_t room) const { return "arena/" + rooms_[room].name; }

std::string Arena::playerNoteName(uint32_t record) const {
  const Id& id = players_[record].id;
  std::string name = "player/" + rooms_[players_[record].room].name + "/";
  name.append(reinterpret_cast<const char*>(id.bytes), sizeof id.bytes);
  return name;
}

/** Returns the bytes of a player's note, valid until the next call. */
std::string_view Arena::noteBytes(uint32_t record) const {
  const Player& player = players_[record];
  const size_t fields = rooms_[player.room].fields.size();
  const PlayerNote head = {.nextInputNumber = player.nextInputNumber,
                           .address = limits_->addressOf(player.source),
                           .number = player.number,
                           .fields = static_cast<uint32_t>(fields)};
  noteBuffer_.assign(reinterpret_cast<const char*>(&head), sizeof head);
  for (size_t i = 0; i < fields; ++i) {
    const double value = valueOf(record, i);
    noteBuffer_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return noteBuffer_;
}

void Arena::writeNote(uint32_t record) {
  if (journal_ != nullptr && journal_->hasRoom()) {
    journal_->note(playerNoteName(record), noteBytes(record));
  }
}

bool Arena::restore(std::string_view name, std::string_view bytes) {
  const bool isPlayer = name.starts_with("player/");
  const std::string_view rest = name.substr(name.find('/') + 1);
  Id id;
  if (isPlayer && rest.size() <= sizeof id.bytes) return false;
  const size_t length = isPlayer ? rest.size() - sizeof id.bytes - 1 : rest.size();
  const uint32_t room = roomOf(rest.substr(0, length));
  if (room == kNoRoom) return false;
  Room& in = rooms_[room];
  if (!isPlayer) {
    if (bytes.size() != sizeof in.newestNumber) return false;
    memcpy(&in.newestNumber, bytes.data(), sizeof in.newestNumber);
    return true;
  }
  memcpy(id.bytes, rest.data() + length + 1, sizeof id.bytes);
  PlayerNote head;
  if (!id.isWellFormed() || bytes.size() < sizeof head) return false;
  memcpy(&head, bytes.data(), sizeof head);
  bytes.remove_prefix(sizeof head);
  const uint32_t record = id.record();
  if (bytes.size() != head.fields * sizeof(double) || record >= capacity_ ||
      players_[record].isLive || in.members.size() >= options_.players) {
    return false;
  }
  used_ = std::max(used_, record + 1);
  admit(record, id, room, head.number);
  players_[record].nextInputNumber = head.nextInputNumber;
  players_[record].source = limits_->findOrAdd(head.address);
  limits_->addClientAnyway(players_[record].source);
  // If the game has another number of fields now, each value keeps its start.
  if (head.fields != in.fields.size()) return true;
  for (size_t i = 0; i < head.fields; ++i) {
    double value;
    memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    if (value >= in.fields[i].min && value <= in.fields[i].max) valueOf(record, i) = value;
  }
  return true;
}

void Arena::finishRestore() {
  // Players are sorted by when they joined.
  for (Room& room : rooms_) {
    std::sort(room.members.begin(), room.members.end(), [this](uint32_t one, uint32_t other) {
      return players_[one].number < players_[other].number;
    });
    for (uint32_t place = 0; place < room.members.size(); ++place) {
      players_[room.members[place]].place = place;
    }
  }
  for (uint32_t record = used_; record-- > 0;) {
    if (players_[record].isLive) continue;
    players_[record].place = freeRecord_;
    freeRecord_ = record + 1;
  }
}

}  // namespace server
