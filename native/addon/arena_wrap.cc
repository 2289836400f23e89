// Arena as a JavaScript object. Conversion only: lib/arena has checked every argument.
#include <uv.h>

#include <utility>

#include "arena/arena.h"
#include "base/deadline_clock.h"
#include "convert.h"
#include "ticker.h"
#include "wraps.h"

namespace server {

/** The arenas, and the clock of their players' leases. */
class ArenaObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Arena", create,
                {
                    {"setFields", setFields},
                    {"join", join},
                    {"input", input},
                    {"leave", leave},
                    {"players", players},
                    {"playerNumber", playerNumber},
                    {"collectInputs", collectInputs},
                    {"drain", drain},
                    {"status", status},
                    {"close", close},
                });
  }

 private:
  friend Arena* arenaOf(Local<Value> arena);

  ArenaObject(const ArenaOptions& options, Local<Value> limits)
      : limitsHandle_(limits),
        clock_(uv_now(Nan::GetCurrentEventLoop()), kTickMilliseconds),
        arena_(options, addressLimitsOf(limits), uv_now(Nan::GetCurrentEventLoop())) {}

  ~ArenaObject() override { stop(); }

  void stop() {
    if (std::exchange(isStopped_, true)) return;
    Unref();
    ticker_.stop();
  }

  void tick() {
    // The addon is on the default loop only. Nan::GetCurrentEventLoop needs a context, and none is
    // entered here.
    const bool done = arena_.tick(clock_.advance(uv_now(uv_default_loop()), ticker_.plannedSpan()));
    // The rest waits for the next turn of the loop, not for a whole tick.
    if (!done) ticker_.tickSoon();
    ticker_.setQuiet(arena_.isQuiet(kRestTicks));
  }

  static uint32_t roomIn(const Info& info) { return uint32Of(info[0]); }

  // new Arena({rooms: [name, …], players, lease, rate, tag}, AddressLimits)
  static void create(const Info& info) {
    const ArenaOptions options = {.rooms = textsOf(get(info[0], "rooms")),
                                  .players = uint32In(info[0], "players"),
                                  .lease = uint32In(info[0], "lease"),
                                  .rate = uint32In(info[0], "rate"),
                                  .tag = tagIn(info[0])};
    try {
      auto* arena = new ArenaObject(options, info[1]);
      arena->Wrap(info.This());
      // An object with a timer is alive until close().
      arena->Ref();
    } catch (const std::bad_alloc&) {
      Nan::ThrowError("no address space for arenas of this many players");
    }
  }

  // setFields(room, [{name, min, max, start, integer}, …])
  static void setFields(const Info& info) {
    const auto fieldOf = [](Local<Value> given) {
      return InputField{textIn(given, "name"), numberOf(get(given, "min")),
                        numberOf(get(given, "max")), numberOf(get(given, "start")),
                        flagIn(given, "integer")};
    };
    unwrap<ArenaObject>(info)->arena_.setFields(roomIn(info), vectorOf(info[1], fieldOf));
  }

  // join(name, address, id: Uint8Array(16), number: Uint32Array(1)) → outcome
  static void join(const Info& info) {
    Id id;
    uint32_t number = 0;
    const Outcome outcome = unwrap<ArenaObject>(info)->arena_.join(
        textOf(info[0]), addressOf(info[1]), uv_hrtime() / 1000, &id, &number);
    if (outcome == Outcome::kOk) {
      memcpy(node::Buffer::Data(info[2]), id.bytes, sizeof id.bytes);
      memcpy(node::Buffer::Data(info[3]), &number, sizeof number);
    }
    returnOutcome(info, outcome);
  }

  // input(name, id, n or -1, text: Buffer) → outcome
  static void input(const Info& info) {
    const double number = numberOf(info[2]);
    returnOutcome(info, unwrap<ArenaObject>(info)->arena_.input(
                            textOf(info[0]), idOf(info[1]),
                            number < 0 ? kNoNumber : static_cast<uint64_t>(number),
                            bytesOf(info[3]), uv_hrtime() / 1000));
  }

  // leave(name, id) → outcome
  static void leave(const Info& info) {
    returnOutcome(info, unwrap<ArenaObject>(info)->arena_.leave(textOf(info[0]), idOf(info[1])));
  }

  // players(room) → how many
  static void players(const Info& info) {
    info.GetReturnValue().Set(unwrap<ArenaObject>(info)->arena_.players(roomIn(info)));
  }

  // playerNumber(name, id) → the number by which a reducer knows that player, or 0
  static void playerNumber(const Info& info) {
    info.GetReturnValue().Set(
        unwrap<ArenaObject>(info)->arena_.playerNumber(textOf(info[0]), idOf(info[1])));
  }

  // collectInputs(room, numbers: Uint32Array(most), fresh: Uint8Array(most),
  //     values: Float64Array(16 · most)) → how many players
  static void collectInputs(const Info& info) {
    const auto bytes = [&](int i) { return node::Buffer::Data(info[i]); };
    const Arena::Columns columns = {
        .capacity = static_cast<uint32_t>(node::Buffer::Length(info[2])),
        .numbers = reinterpret_cast<uint32_t*>(bytes(1)),
        .isNew = reinterpret_cast<uint8_t*>(bytes(2)),
        .values = reinterpret_cast<double*>(bytes(3)),
    };
    info.GetReturnValue().Set(
        unwrap<ArenaObject>(info)->arena_.collectInputs(roomIn(info), columns));
  }

  // drain(): joins are refused from now on
  static void drain(const Info& info) { unwrap<ArenaObject>(info)->arena_.drain(); }

  // status() → the counts
  static void status(const Info& info) {
    const ArenaCounts& counts = unwrap<ArenaObject>(info)->arena_.counts();
    info.GetReturnValue().Set(makeObject({
        {"players", counts.players},
        {"playersJoined", counts.joined},
        {"playersLeft", counts.left},
        {"playersExpired", counts.expired},
        {"inputs", counts.inputs},
        {"inputsReduced", counts.reduced},
        {"inputsSuperseded", counts.superseded},
        {"inputsWaiting", counts.waiting},
        {"inputsRepeated", counts.repeated},
    }));
  }

  // close(): no lease ends any more
  static void close(const Info& info) { unwrap<ArenaObject>(info)->stop(); }

  Nan::Global<Value> limitsHandle_;  // the limits outlive the arena
  base::DeadlineClock clock_;
  Arena arena_;
  Ticker ticker_{this, [](void* self) { static_cast<ArenaObject*>(self)->tick(); }};
  bool isStopped_ = false;
};

Arena* arenaOf(Local<Value> arena) {
  return &Nan::ObjectWrap::Unwrap<ArenaObject>(arena.As<Object>())->arena_;
}

void initArena(Local<Object> target) { ArenaObject::init(target); }

}  // namespace server
