// Pool as a JavaScript object. Conversion only: lib/torus/pool.js has checked every argument.
#include <uv.h>

#include <utility>

#include "base/deadline_clock.h"
#include "convert.h"
#include "loop.h"
#include "pool_views.h"
#include "server/turn.h"
#include "ticker.h"
#include "torus/pool.h"
#include "torus/seams.h"
#include "wraps.h"

namespace server {

/** A pool, and the responder of the polls that JavaScript has parked. */
class PoolObject : public Nan::ObjectWrap, private PollResponder {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Pool", create,
                {
                    {"join", join},
                    {"poll", poll},
                    {"drop", drop},
                    {"throw", throwSprite},
                    {"leave", leave},
                    {"place", place},
                    {"inspect", inspect},
                    {"status", status},
                    {"worldRows", worldRows},
                    {"enterWorld", enterWorld},
                    {"endWorld", endWorld},
                    {"outboxes", outboxes},
                    {"deliveryTimes", deliveryTimes},
                    {"commit", commit},
                    {"openState", openState},
                    {"startState", startState},
                    {"finishState", finishState},
                    {"closeState", closeState},
                    {"rescueState", rescueState},
                    {"stateStatus", stateStatus},
                    {"save", save},
                    {"attachFeeds", attachFeeds},
                    {"attachArena", attachArena},
                    {"note", note},
                    {"removeNote", removeNote},
                    {"notes", notes},
                    {"drain", drain},
                    {"close", close},
                });
    set(target, "outcomes", kOutcomeNames);
  }

 private:
  friend Pool* poolOf(Local<Value> pool);
  friend Turn* turnOf(Local<Value> pool);

  PoolObject(const PoolOptions& options, Local<Value> limits, Local<Function> onAnswer)
      : limitsHandle_(limits),
        limits_(limits->IsUndefined() ? nullptr : addressLimitsOf(limits)),
        clock_(uv_now(Nan::GetCurrentEventLoop()), kTickMilliseconds),
        pool_(options, limits_, uv_now(Nan::GetCurrentEventLoop())),
        turn_(&pool_),
        onAnswer_(onAnswer),
        resource_("sprites:poll") {
    pool_.setResponder(PollHolder::kRoutes, this);
    pool_.setThrowClock([] { return uv_hrtime() / 1000; });
  }

  ~PoolObject() override { stop(); }

  void stop() {
    if (std::exchange(isStopped_, true)) return;
    Unref();
    ticker_.stop();
    // The callbacks reference this object, which would never be collected.
    onAnswer_.Reset();
    onDurable_.Reset();
    // The thread that syncs must end before async_, which it calls.
    if (turn_.store() != nullptr) turn_.store()->stopSyncing();
    async_.reset();
  }

  void answer(uint32_t token, std::string_view body) override {
    if (isStopped_) return;
    Nan::HandleScope scope;
    Local<Value> arguments[] = {Nan::New(token), bufferOf(body)};
    onAnswer_.Call(2, arguments, resource_.get());
  }

  /** Called on a signal of the thread that syncs: the disk may have caught up. */
  static void onDiskSignal(uv_async_t* async) {
    auto* self = static_cast<PoolObject*>(async->data);
    LoopScope scope(self);
    self->turn_.onDiskCaughtUp();
  }

  /**
   * Keeps the process alive, or no longer. While a turn waits for the disk no door is watched, and
   * nothing else keeps the process alive.
   */
  void keepProcessAlive(bool isNeeded) {
    if (async_ == nullptr) return;
    auto* const handle = reinterpret_cast<uv_handle_t*>(async_.get());
    isNeeded ? uv_ref(handle) : uv_unref(handle);
  }

  void onReleased(TurnEnd end) {
    if (isStopped_) return;
    Nan::HandleScope scope;
    Local<Value> arguments[] = {Nan::New(static_cast<uint32_t>(end))};
    onDurable_.Call(1, arguments, resource_.get());
  }

  void tick() {
    LoopScope scope(this);
    const uint64_t now = uv_now(Nan::GetCurrentEventLoop());
    if (limits_ != nullptr) limits_->tick(now);
    // The rest waits for the next turn of the loop, not for a whole tick.
    if (!turn_.tick(now, clock_.advance(now, ticker_.plannedSpan()))) ticker_.tickSoon();
    ticker_.setQuiet(turn_.isQuiet(kRestTicks));
  }

  // new Pool({capacity, hold, …}, AddressLimits or undefined, onAnswer(token, body))
  static void create(const Info& info) {
    const PoolOptions options = {
        .capacity = uint32In(info[0], "capacity"),
        .hold = uint32In(info[0], "hold"),
        .lease = uint32In(info[0], "lease"),
        .maxSprite = uint32In(info[0], "maxSprite"),
        .mailboxSprites = uint32In(info[0], "mailbox"),
        .mailboxBytes = uint32In(info[0], "mailboxBytes"),
        .mailboxMemory = uint64In(info[0], "mailboxMemory"),
        .answerBytes = uint32In(info[0], "answerBytes"),
        .throwRate = uint32In(info[0], "throwRate"),
        .throwBurst = uint32In(info[0], "throwBurst"),
        .pollRate = uint32In(info[0], "pollRate"),
        .pollBurst = uint32In(info[0], "pollBurst"),
        .tag = tagIn(info[0]),
    };
    try {
      auto* pool = new PoolObject(options, info[1], info[2].As<Function>());
      pool->Wrap(info.This());
      // The collector may run in an answer that the timer has caused, and must not take the pool
      // then: an object with a timer is alive until close().
      pool->Ref();
    } catch (const std::bad_alloc&) {
      Nan::ThrowError("no address space for a pool of this capacity");
    }
  }

  // join(address, id: Uint8Array(16)) → outcome
  static void join(const Info& info) {
    Id id;
    const Outcome outcome =
        unwrap<PoolObject>(info)->pool_.join(addressOf(info[0]), uv_hrtime() / 1000, &id);
    if (outcome == Outcome::kOk) memcpy(node::Buffer::Data(info[1]), id.bytes, sizeof id.bytes);
    returnOutcome(info, outcome);
  }

  // poll(id, ack, hold or 0, token) → outcome, or the answer as a Buffer if there is one at once
  static void poll(const Info& info) {
    const PollResult result = unwrap<PoolObject>(info)->pool_.poll(
        idOf(info[0]), static_cast<uint64_t>(numberOf(info[1])), uint32Of(info[2]),
        PollHolder::kRoutes, uint32Of(info[3]));
    if (result.answer.empty()) return returnOutcome(info, result.outcome);
    info.GetReturnValue().Set(bufferOf(result.answer));
  }

  // drop(id, token)
  static void drop(const Info& info) {
    unwrap<PoolObject>(info)->pool_.drop(idOf(info[0]), PollHolder::kRoutes, uint32Of(info[1]));
  }

  // throw(id, edge, n or -1, sprite: Buffer) → outcome
  static void throwSprite(const Info& info) {
    const double number = numberOf(info[2]);
    returnOutcome(info, unwrap<PoolObject>(info)->pool_.throwSprite(
                            idOf(info[0]), Edge{static_cast<uint8_t>(uint32Of(info[1]))},
                            number < 0 ? kNoNumber : static_cast<uint64_t>(number),
                            bytesOf(info[3]), uv_hrtime() / 1000));
  }

  // leave(id) → outcome
  static void leave(const Info& info) {
    returnOutcome(info, unwrap<PoolObject>(info)->pool_.leave(idOf(info[0])));
  }

  // place(id) → {row, column, rows, columns} or null
  static void place(const Info& info) {
    Place place;
    if (!unwrap<PoolObject>(info)->pool_.place(idOf(info[0]), &place)) {
      return info.GetReturnValue().SetNull();
    }
    info.GetReturnValue().Set(objectOf(place));
  }

  // inspect(id) → {row, column, parked, waiting, unsent, bytes, sequence, address or null} or null
  static void inspect(const Info& info) {
    Pool::View view;
    if (!unwrap<PoolObject>(info)->pool_.readView(idOf(info[0]), &view)) {
      return info.GetReturnValue().SetNull();
    }
    info.GetReturnValue().Set(objectOf(view));
  }

  // status() → the counts
  static void status(const Info& info) {
    info.GetReturnValue().Set(countsOf(unwrap<PoolObject>(info)->pool_));
  }

  // worldRows() → the rows that this server has in a world: see native/torus/seams.h
  static void worldRows(const Info& info) {
    info.GetReturnValue().Set(unwrap<PoolObject>(info)->pool_.torus().cycles());
  }

  // enterWorld() → {memory, life: of the last process, or 0}; end the turn after it
  static void enterWorld(const Info& info) {
    const Identity& self = unwrap<PoolObject>(info)->pool_.enterWorld()->self();
    info.GetReturnValue().Set(makeObject({{"memory", self.memory}, {"life", self.life}}));
  }

  // endWorld() → how many sprites that waited to cross have landed here; end the turn after it
  static void endWorld(const Info& info) {
    info.GetReturnValue().Set(valueOf(unwrap<PoolObject>(info)->pool_.endWorld()));
  }

  // outboxes() → {sprites, bytes: of all, servers: [{name, waiting}, …]}
  static void outboxes(const Info& info) {
    info.GetReturnValue().Set(outboxesOf(unwrap<PoolObject>(info)->pool_.ownedSeams()));
  }

  // deliveryTimes() → {bounds: [ms, …], counts: [sprites up to each, …, beyond the last], sum: ms}
  static void deliveryTimes(const Info& info) {
    info.GetReturnValue().Set(objectOf(unwrap<PoolObject>(info)->pool_.deliveryTimes()));
  }

  // commit() → 0: the answers may go out; 1: they may after onDurable; 2: none may
  static void commit(const Info& info) {
    info.GetReturnValue().Set(
        static_cast<uint32_t>(unwrap<PoolObject>(info)->turn_.endOutsideFront()));
  }

  // openState({path, stateBytes, journalBytes, snapshotEvery, sync}, onDurable(0 or 2)) →
  //     {clients, sprites, bytes, journals, records, torn, runBefore, doubtful}; throws an error
  //     with a code, or with the name of the file
  static void openState(const Info& info) {
    auto* self = unwrap<PoolObject>(info);
    self->onDurable_.Reset(info[1].As<Function>());
    const Recovery recovery = self->turn_.open(StateStoreOptions{
        .path = textIn(info[0], "path"),
        .stateBytes = uint64In(info[0], "stateBytes"),
        .journalBytes = uint64In(info[0], "journalBytes"),
        .snapshotSeconds = uint32In(info[0], "snapshotEvery"),
        .sync = Sync{static_cast<uint8_t>(uint32In(info[0], "sync"))},
    });
    if (!recovery.ok()) {
      if (recovery.error != 0) {
        return Nan::ThrowError(
            Nan::ErrnoException(recovery.error, "open", "", recovery.file.c_str()));
      }
      const bool snapshot = recovery.file == textIn(info[0], "path");
      return Nan::ThrowError(((snapshot ? "" : recovery.file + ": ") + recovery.problem).c_str());
    }
    self->turn_.onReleased([self](TurnEnd end) { self->onReleased(end); });
    const PoolCounts& counts = self->pool_.counts();
    info.GetReturnValue().Set(makeObject({
        {"clients", counts.clients},
        {"sprites", counts.waiting},
        {"bytes", recovery.snapshot.bytes},
        {"journals", recovery.journals},
        {"records", recovery.records},
        {"torn", recovery.tornBytes},
        {"runBefore", recovery.run},
        {"doubtful", recovery.doubtful},
    }));
  }

  // startState(): from now on every step is written; throws with code
  static void startState(const Info& info) {
    auto* self = unwrap<PoolObject>(info);
    self->async_ = makeQuietHandle<uv_async_t>(self, uv_async_init, onDiskSignal);
    self->turn_.onWaitChange([self](bool isWaiting) { self->keepProcessAlive(isWaiting); });
    if (const int error =
            self->turn_.start([async = self->async_.get()] { uv_async_send(async); })) {
      Nan::ThrowError(startError(error, "open"));
    }
  }

  // attachFeeds(feeds: Feeds): restores the feeds of the last run to it; throws if they do not fit
  static void attachFeeds(const Info& info) {
    auto* self = unwrap<PoolObject>(info);
    self->feeds_.Reset(info[0]);
    std::string key;
    const Outcome outcome = self->turn_.attach(feedsOf(info[0]), &key);
    if (outcome == Outcome::kOk) return;
    const std::string name(kOutcomeNames[static_cast<size_t>(outcome)]);
    Nan::ThrowError((name + " at " + key).c_str());
  }

  // attachArena(arena: Arena or undefined)
  static void attachArena(const Info& info) {
    auto* self = unwrap<PoolObject>(info);
    self->arena_.Reset(info[0]);
    self->turn_.attach(info[0]->IsUndefined() ? nullptr : arenaOf(info[0]));
  }

  /** The name of a note: text, or bytes if it contains an id. */
  static std::string nameIn(Local<Value> name) {
    return name->IsString() ? textOf(name) : std::string(bytesOf(name));
  }

  // note(name, bytes) → whether it was noted; end the turn after it
  static void note(const Info& info) {
    info.GetReturnValue().Set(
        unwrap<PoolObject>(info)->turn_.note(nameIn(info[0]), bytesOf(info[1])));
  }

  // removeNote(name) → whether the note was removed; end the turn after it
  static void removeNote(const Info& info) {
    info.GetReturnValue().Set(unwrap<PoolObject>(info)->turn_.unnote(textOf(info[0])));
  }

  // notes(prefix) → [[the rest of the name, bytes], …]
  static void notes(const Info& info) {
    const std::string prefix = textOf(info[0]);
    const StoredFeedsAndNotes::NoteMap& all = unwrap<PoolObject>(info)->turn_.notes();
    Local<Array> list = Nan::New<Array>();
    for (auto at = all.lower_bound(prefix); at != all.end() && at->first.starts_with(prefix);
         ++at) {
      Nan::Set(list, list->Length(), pairOf(at->first.substr(prefix.size()), bufferOf(at->second)))
          .Check();
    }
    info.GetReturnValue().Set(list);
  }

  // finishState() → {clients, sprites, bytes}: one whole state, no journal; throws as save does
  static void finishState(const Info& info) {
    returnSnapshot(info, unwrap<PoolObject>(info)->turn_.finish());
  }

  // closeState(): writes nothing from now on
  static void closeState(const Info& info) { unwrap<PoolObject>(info)->turn_.close(); }

  // rescueState(): writes the whole state again, from memory; throws as save does
  static void rescueState(const Info& info) {
    const std::string problem = unwrap<PoolObject>(info)->turn_.rescue();
    if (!problem.empty()) Nan::ThrowError(problem.c_str());
  }

  // stateStatus() → {blocked, journalBytes, …} or null where no state is kept
  static void stateStatus(const Info& info) {
    const StateStore* store = unwrap<PoolObject>(info)->turn_.store();
    if (store == nullptr) return info.GetReturnValue().SetNull();
    info.GetReturnValue().Set(countsOf(*store));
  }

  // save(path, most bytes) → {clients, sprites, bytes}; throws with code
  static void save(const Info& info) {
    returnSnapshot(info, unwrap<PoolObject>(info)->turn_.save(
                             textOf(info[0]), static_cast<uint64_t>(numberOf(info[1]))));
  }

  static void returnSnapshot(const Info& info, const SnapshotResult& result) {
    if (result.error != 0) return Nan::ThrowError(Nan::ErrnoException(result.error, "save"));
    if (!result.problem.empty()) return Nan::ThrowError(result.problem.c_str());
    info.GetReturnValue().Set(makeObject({
        {"clients", result.clients},
        {"sprites", result.sprites},
        {"bytes", result.bytes},
    }));
  }

  // drain(window: ms)
  static void drain(const Info& info) { unwrap<PoolObject>(info)->pool_.drain(uint32Of(info[0])); }

  // close(): no hold and no lease ends any more
  static void close(const Info& info) { unwrap<PoolObject>(info)->stop(); }

  Nan::Global<Value> limitsHandle_;  // limits_ outlive the pool
  AddressLimits* const limits_;      // nullptr: no limits are given
  base::DeadlineClock clock_;
  Pool pool_;
  Turn turn_;
  Nan::Global<Value> feeds_;  // attached objects live as long as the pool
  Nan::Global<Value> arena_;
  Nan::Callback onDurable_;
  LoopHandle<uv_async_t> async_;
  Nan::Callback onAnswer_;
  CallbackResource resource_;
  Ticker ticker_{this, [](void* self) { static_cast<PoolObject*>(self)->tick(); }};
  bool isStopped_ = false;
};

Pool* poolOf(Local<Value> pool) {
  return &Nan::ObjectWrap::Unwrap<PoolObject>(pool.As<Object>())->pool_;
}

void initPool(Local<Object> target) { PoolObject::init(target); }

Turn* turnOf(Local<Value> pool) {
  return &Nan::ObjectWrap::Unwrap<PoolObject>(pool.As<Object>())->turn_;
}

}  // namespace server
