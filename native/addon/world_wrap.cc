// The seams of a world as a JavaScript object. Conversion only: lib/world/crossing.js has checked
// every argument.
#include <uv.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "callback_resource.h"
#include "convert.h"
#include "loop_scope.h"
#include "pool/crossings.h"
#include "wraps.h"

namespace server {

namespace {

using Info = Nan::FunctionCallbackInfo<Value>;

/** The server of a JavaScript number; a negative one says that there is none. */
PeerNumber peerOf(double number) { return number < 0 ? kNoPeer : static_cast<PeerNumber>(number); }

std::vector<PeerNumber> peersIn(Local<Value> object, const char* name) {
  Nan::TypedArrayContents<int32_t> numbers(get(object, name));
  std::vector<PeerNumber> peers(numbers.length());
  for (size_t i = 0; i < peers.size(); ++i) peers[i] = peerOf((*numbers)[i]);
  return peers;
}

/** Milliseconds of a clock that never goes back. */
uint64_t now() { return uv_hrtime() / 1'000'000; }

}  // namespace

class WorldObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "World", create,
                {
                    {"add", add},
                    {"set", setRing},
                    {"next", next},
                    {"receive", receive},
                    {"sortOut", sortOut},
                    {"status", status},
                    {"close", close},
                });
    setNames(target, "refusals", kRefusalNames);
  }

 private:
  WorldObject(Local<Value> pool, const SeamsOptions& options, uint64_t life, Local<Function> onWake)
      : kept_(pool),
        pool_(poolOf(pool)),
        crossings_(pool_, life),
        onWake_(onWake),
        resource_("sprites:world"),
        async_(new uv_async_t) {
    // The handle outlives the object: the loop gives it back when it has closed it.
    async_->data = this;
    uv_async_init(Nan::GetCurrentEventLoop(), async_, woken);
    uv_unref(reinterpret_cast<uv_handle_t*>(async_));
    pool_->openSeams(options, [this] { wake(); });
  }

  ~WorldObject() override {
    stop();
    kept_.Reset();
  }

  void stop() {
    if (async_ == nullptr) return;
    Unref();
    pool_->closeSeams();
    uv_close(reinterpret_cast<uv_handle_t*>(async_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_async_t*>(handle); });
    async_ = nullptr;
  }

  /** A throw has filled an outbox: JavaScript is told when this turn is over. */
  void wake() {
    if (!std::exchange(wakes_, true) && async_ != nullptr) uv_async_send(async_);
  }

  static void woken(uv_async_t* async) {
    LoopScope scope;
    auto* self = static_cast<WorldObject*>(async->data);
    self->wakes_ = false;
    self->onWake_.Call(0, nullptr, self->resource_.get());
  }

  // new World(pool, {outboxBytes, doubt: ms, life}, onWake())
  static void create(const Info& info) {
    const SeamsOptions options = {
        .outboxBytes = static_cast<uint64_t>(numberOf(get(info[1], "outboxBytes"))),
        .doubt = uint32In(info[1], "doubt"),
    };
    auto* world =
        new WorldObject(info[0], options, static_cast<uint64_t>(numberOf(get(info[1], "life"))),
                        info[2].As<Function>());
    world->Wrap(info.This());
    // Alive until close(), as the pool is.
    world->Ref();
    info.GetReturnValue().Set(info.This());
  }

  // add(name) → the number of that server, or -1: there are too many
  static void add(const Info& info) {
    const PeerNumber peer = unwrap<WorldObject>(info)->pool_->know(textOf(info[0]));
    info.GetReturnValue().Set(peer == kNoPeer ? -1 : int32_t{peer});
  }

  // set({peers, accepted, left, right, next: Int32Array each, open}): next is [left, right], -1 for
  // nobody
  static void setRing(const Info& info) {
    Ring ring;
    ring.peers = peersIn(info[0], "peers");
    ring.accepted = peersIn(info[0], "accepted");
    const std::vector<PeerNumber> left = peersIn(info[0], "left");
    const std::vector<PeerNumber> right = peersIn(info[0], "right");
    const std::vector<PeerNumber> next = peersIn(info[0], "next");
    ring.rows.resize(left.size());
    for (size_t row = 0; row < left.size(); ++row) ring.rows[row] = {{left[row], right[row]}};
    ring.next = {{next[0], next[1]}};
    ring.open = Nan::To<bool>(get(info[0], "open")).FromJust();
    unwrap<WorldObject>(info)->seams().set(std::move(ring), now());
  }

  // next(peer) → the next frame for it as a Buffer, or undefined
  static void next(const Info& info) {
    auto* self = unwrap<WorldObject>(info);
    self->frame_.clear();
    if (!self->crossings_.next(peerOf(numberOf(info[0])), now(), &self->frame_)) return;
    info.GetReturnValue().Set(copy(self->frame_));
  }

  // receive(peer, frame) → {refusal, answer: Buffer or undefined}; the pool's turn is to be ended
  static void receive(const Info& info) {
    auto* self = unwrap<WorldObject>(info);
    self->frame_.clear();
    const Refusal refusal =
        self->crossings_.receive(peerOf(numberOf(info[0])), bytesOf(info[1]), now(), &self->frame_);
    Local<Object> result = Nan::New<Object>();
    set(result, "refusal", static_cast<double>(refusal));
    if (!self->frame_.empty()) set(result, "answer", copy(self->frame_));
    info.GetReturnValue().Set(result);
  }

  /** It outlives this object: the pool has it. */
  Seams& seams() const { return *pool_->enterWorld(); }

  // sortOut(): what waits for servers that are in the ring no more goes where it is to go now
  static void sortOut(const Info& info) { unwrap<WorldObject>(info)->crossings_.sortOut(now()); }

  // status() → {refused: [by reason]}
  static void status(const Info& info) {
    auto* self = unwrap<WorldObject>(info);
    Local<Object> result = Nan::New<Object>();
    const uint64_t* refused = self->crossings_.refused();
    setList(result, "refused", std::vector<uint64_t>(refused, refused + kRefusals));
    info.GetReturnValue().Set(result);
  }

  // close(): rows close on themselves again
  static void close(const Info& info) { unwrap<WorldObject>(info)->stop(); }

  static Local<Object> copy(std::string_view bytes) {
    return Nan::CopyBuffer(bytes.data(), static_cast<uint32_t>(bytes.size())).ToLocalChecked();
  }

  Nan::Persistent<Value> kept_;  // the pool
  Pool* const pool_;
  Crossings crossings_;
  Nan::Callback onWake_;
  CallbackResource resource_;
  uv_async_t* async_;
  bool wakes_ = false;
  std::string frame_;
};

void initWorld(Local<Object> target) { WorldObject::init(target); }

}  // namespace server
