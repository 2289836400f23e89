// The seams of a world as a JavaScript object. Conversion only: lib/world/crossing.js has checked
// every argument.
#include <uv.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "convert.h"
#include "loop.h"
#include "world/crossings.h"
#include "wraps.h"

namespace server {

namespace {

/** Returns the server of a JavaScript number; negative: none. */
PeerNumber peerOf(double number) { return number < 0 ? kNoPeer : static_cast<PeerNumber>(number); }

std::vector<PeerNumber> peersIn(Local<Value> object, const char* name) {
  Nan::TypedArrayContents<int32_t> numbers(get(object, name));
  std::vector<PeerNumber> peers(numbers.length());
  for (size_t i = 0; i < peers.size(); ++i) peers[i] = peerOf((*numbers)[i]);
  return peers;
}

/** Sets the server beyond an edge of each row, seam by seam; both edges have the same rows. */
void readSides(Local<Value> object, const char* name, Edge edge, std::vector<Sides>* rows) {
  Nan::TypedArrayContents<int32_t> seams(get(object, name));
  size_t row = 0;
  for (size_t i = 0; i < seams.length(); i += 2) {
    const auto to = static_cast<size_t>((*seams)[i]);
    if (to > rows->size()) rows->resize(to);
    for (; row < to; ++row) {
      (*rows)[row].peer[static_cast<uint8_t>(edge)] = peerOf((*seams)[i + 1]);
    }
  }
}

/** Milliseconds of a monotonic clock: the loop's. */
uint64_t milliseconds() { return microseconds() / 1000; }

/** Milliseconds until messages that are due, and could not be sent, are tried again. */
constexpr uint64_t kTryAgain = 50;

}  // namespace

/**
 * Calls JavaScript when a message is due: a throw has put a sprite into an outbox, or a time has
 * come (Crossings::dueAt). While nothing is in flight there is no timer.
 *
 * Rejected: a pause of some milliseconds between two sendings. 5 ms saved no measurable CPU time,
 * and added 2.2 ms to the median crossing time at full speed.
 */
class WorldObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "World", create,
                {
                    {"add", add},
                    {"replace", replace},
                    {"setRing", setRing},
                    {"takeMessages", takeMessages},
                    {"receive", receive},
                    {"status", status},
                    {"close", close},
                });
    set(target, "refusals", kRefusalNames);
  }

 private:
  WorldObject(Local<Value> pool, const SeamsOptions& options, uint64_t life, Local<Function> onWake)
      : poolHandle_(pool),
        pool_(poolOf(pool)),
        crossings_(pool_, life),
        onWake_(onWake),
        resource_("sprites:world"),
        timer_(makeQuietHandle<uv_timer_t>(this, uv_timer_init)) {
    pool_->openSeams(options, [this] { callAt(milliseconds()); });
  }

  ~WorldObject() override { stop(); }

  void stop() {
    if (timer_ == nullptr) return;
    Unref();
    pool_->closeSeams();
    timer_.reset();
  }

  /**
   * Has JavaScript called at `at`, after the turn of the loop then. An earlier call stays as it is.
   */
  void callAt(uint64_t at) {
    if (at >= callAt_ || timer_ == nullptr) return;
    callAt_ = at;
    const uint64_t time = uv_now(timer_->loop);
    uv_timer_start(timer_.get(), woken, at > time ? at - time : 0, 0);
  }

  static void woken(uv_timer_t* timer) {
    auto* self = static_cast<WorldObject*>(timer->data);
    LoopScope scope(self);
    self->callAt_ = kNeverDue;
    self->onWake_.Call(0, nullptr, self->resource_.get());
  }

  // new World(pool, {outboxBytes, doubt: ms, life}, onWake())
  static void create(const Info& info) {
    const SeamsOptions options = {
        .outboxBytes = uint64In(info[1], "outboxBytes"),
        .doubt = uint32In(info[1], "doubt"),
    };
    auto* world =
        new WorldObject(info[0], options, uint64In(info[1], "life"), info[2].As<Function>());
    world->Wrap(info.This());
    // Alive until close(), as the pool is.
    world->Ref();
  }

  // add(name) → the number of that server, or -1: there are too many
  static void add(const Info& info) {
    const PeerNumber peer = unwrap<WorldObject>(info)->pool_->findOrAddPeer(textOf(info[0]));
    info.GetReturnValue().Set(peer == kNoPeer ? -1 : int32_t{peer});
  }

  // replace(number, name, emptied) → whether the server of that name has that number from now on
  static void replace(const Info& info) {
    auto* self = unwrap<WorldObject>(info);
    const PeerNumber peer = peerOf(numberOf(info[0]));
    const bool isReplaced =
        self->pool_->replacePeer(peer, textOf(info[1]), Nan::To<bool>(info[2]).FromJust());
    if (isReplaced)
      std::erase_if(self->answers_, [peer](const auto& one) { return one.first == peer; });
    info.GetReturnValue().Set(isReplaced);
  }

  // setRing({peers, accepted, epochPeers, left, right, next: Int32Array each, epochs: Float64Array,
  // open}): `epochs` are of the servers in `epochPeers`. `left` and `right` have two numbers for
  // each seam, the row after its last row, and the server. `next` is [left, right]; -1: none
  static void setRing(const Info& info) {
    Ring ring;
    ring.peers = peersIn(info[0], "peers");
    ring.accepted = peersIn(info[0], "accepted");
    const std::vector<PeerNumber> epochPeers = peersIn(info[0], "epochPeers");
    Nan::TypedArrayContents<double> epochs(get(info[0], "epochs"));
    for (size_t i = 0; i < epochPeers.size(); ++i) {
      ring.epochs.push_back({epochPeers[i], static_cast<uint64_t>((*epochs)[i])});
    }
    readSides(info[0], "left", Edge::kLeft, &ring.rows);
    readSides(info[0], "right", Edge::kRight, &ring.rows);
    const std::vector<PeerNumber> next = peersIn(info[0], "next");
    ring.neighbors = {{next[0], next[1]}};
    ring.isOpen = flagIn(info[0], "open");
    unwrap<WorldObject>(info)->seams().setRing(std::move(ring), milliseconds());
  }

  // takeMessages() → [name, Buffer, name, Buffer, …]: all due messages, each with its receiver; end
  // the pool's turn after it
  static void takeMessages(const Info& info) {
    auto* self = unwrap<WorldObject>(info);
    info.GetReturnValue().Set(self->takeAll(milliseconds()));
  }

  Local<Array> takeAll(uint64_t time) {
    Local<Array> messages = Nan::New<Array>();
    uint32_t count = 0;
    const auto add = [&](PeerNumber peer, std::string_view bytes) {
      Nan::Set(messages, count++, valueOf(seams().peer(peer).name)).Check();
      Nan::Set(messages, count++, bufferOf(bytes)).Check();
    };
    for (const auto& [peer, answer] : answers_) add(peer, answer);
    answers_.clear();
    crossings_.rerouteStranded(time);
    for (size_t number = 0; number < seams().size(); ++number) {
      const auto peer = static_cast<PeerNumber>(number);
      for (message_.clear(); crossings_.nextMessage(peer, time, &message_); message_.clear()) {
        add(peer, message_);
      }
    }
    if (timer_ == nullptr) return messages;
    callAt_ = kNeverDue;
    uv_timer_stop(timer_.get());
    const uint64_t due = crossings_.dueAt();
    callAt(due > time ? due : time + kTryAgain);
    return messages;
  }

  // receive(peer or -1, message) → the refusal, as a number. The answer is among the messages of
  // take(), which must be called in the same turn
  static void receive(const Info& info) {
    auto* self = unwrap<WorldObject>(info);
    const PeerNumber peer = peerOf(numberOf(info[0]));
    if (peer == kNoPeer) {
      return info.GetReturnValue().Set(
          static_cast<uint32_t>(self->crossings_.refuseUnknownServer()));
    }
    self->message_.clear();
    const FrameRefusal refusal =
        self->crossings_.receive(peer, bytesOf(info[1]), milliseconds(), &self->message_);
    if (!self->message_.empty()) self->answers_.emplace_back(peer, self->message_);
    info.GetReturnValue().Set(static_cast<uint32_t>(refusal));
  }

  /** The seams, which outlive this object: the pool has them. */
  Seams& seams() const { return *pool_->enterWorld(); }

  // status() → {refused: [by reason]}
  static void status(const Info& info) {
    auto* self = unwrap<WorldObject>(info);
    const std::span<const uint64_t> refused(self->crossings_.refused(), kRefusals);
    info.GetReturnValue().Set(makeObject({{"refused", refused}}));
  }

  // close(): rows close on themselves again
  static void close(const Info& info) { unwrap<WorldObject>(info)->stop(); }

  Nan::Global<Value> poolHandle_;  // the pool
  Pool* const pool_;
  Crossings crossings_;
  Nan::Callback onWake_;
  CallbackResource resource_;
  LoopHandle<uv_timer_t> timer_;
  uint64_t callAt_ = kNeverDue;  // when JavaScript is called next
  std::vector<std::pair<PeerNumber, std::string>> answers_;
  std::string message_;
};

void initWorld(Local<Object> target) { WorldObject::init(target); }

}  // namespace server
