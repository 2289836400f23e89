// Door: the front door as a JavaScript object, on Node's own loop. Conversion only.
#include <uv.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <vector>

#include "base/deadline_clock.h"
#include "callback_resource.h"
#include "convert.h"
#include "loop_scope.h"
#include "server/front.h"
#include "wraps.h"

namespace server {

namespace {

/**
 * {outcomes: [text, …], feed, feedGzip, feedStream, json, joined: [text, text], timedOut, refused,
 * tooMuchHeld, ready: [[path, text], …]}
 */
Replies repliesOf(Local<Value> given) {
  Replies replies;
  Local<Array> outcomes = get(given, "outcomes").As<Array>();
  for (uint32_t i = 0; i < kOutcomes; ++i) {
    replies.outcomes[i] = Reply(textOf(Nan::Get(outcomes, i).ToLocalChecked()));
  }
  replies.feed = Reply(textIn(given, "feed"));
  replies.feedGzip = Reply(textIn(given, "feedGzip"));
  replies.feedStream = Reply(textIn(given, "feedStream"));
  Local<Array> joined = get(given, "joined").As<Array>();
  replies.joined = Reply(textOf(Nan::Get(joined, 0).ToLocalChecked()));
  replies.joinedEnd = textOf(Nan::Get(joined, 1).ToLocalChecked());
  replies.json = Reply(textIn(given, "json"));
  replies.timedOut = Reply(textIn(given, "timedOut"));
  replies.refused = Reply(textIn(given, "refused"));
  replies.tooMuchHeld = Reply(textIn(given, "tooMuchHeld"));
  Local<Array> ready = get(given, "ready").As<Array>();
  for (uint32_t i = 0; i < ready->Length(); ++i) {
    Local<Array> entry = Nan::Get(ready, i).ToLocalChecked().As<Array>();
    replies.ready.emplace(textOf(Nan::Get(entry, 0).ToLocalChecked()),
                          textOf(Nan::Get(entry, 1).ToLocalChecked()));
  }
  return replies;
}

}  // namespace

class DoorObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Door", create,
                {
                    {"listen", listen},
                    {"adopt", adopt},
                    {"stopListening", stopListening},
                    {"addWorker", addWorker},
                    {"flush", flush},
                    {"feedStatus", feedStatus},
                    {"elsewhere", elsewhere},
                    {"setOtherServers", setOtherServers},
                    {"closeIdle", closeIdle},
                    {"wantNotes", wantNotes},
                    {"takeNotes", takeNotes},
                    {"status", status},
                    {"close", close},
                });
  }

 private:
  /** `parts`: see create. */
  DoorObject(const DoorOptions& options, Local<Object> parts)
      : parts_(parts),
        onHandOver_(get(parts, "onHandOver").As<Function>()),
        onCounts_(get(parts, "onCounts").As<Function>()),
        resource_("sprites:hand-over"),
        clock_(uv_now(Nan::GetCurrentEventLoop()), kTickMilliseconds),
        front_(
            options, frontParts(parts), repliesOf(get(parts, "replies")),
            [this](int fd, std::string_view bytes, const Address& client) {
              handOver(fd, bytes, client);
            },
            uv_now(Nan::GetCurrentEventLoop())) {
    if (!get(parts, "relay")->IsUndefined()) {
      answerTo(get(parts, "relay"), &front_.door());
      if (Nan::To<bool>(get(parts, "inputs")).FromJust())
        relayOf(get(parts, "relay"))->takeInputs();
      if (!get(parts, "feeds")->IsUndefined())
        onStepped(get(parts, "feeds"), [this] { front_.flush(); });
      front_.link(static_cast<int>(uint32In(parts, "relayFd")));
    }
    front_.onWaits([this](bool whether) { whether ? (void)uv_poll_stop(poll_) : startPolling(); });
    uv_loop_t* loop = Nan::GetCurrentEventLoop();
    // The handles outlive the object: the loop gives them back when it has closed them.
    poll_ = new uv_poll_t;
    poll_->data = this;
    uv_poll_init(loop, poll_, front_.fd());
    startPolling();
    timer_ = new uv_timer_t;
    timer_->data = this;
    uv_timer_init(loop, timer_);
    uv_timer_start(
        timer_,
        [](uv_timer_t* timer) {
          LoopScope scope;
          auto* self = static_cast<DoorObject*>(timer->data);
          const uint64_t now = uv_now(timer->loop);
          self->front_.tick(self->clock_.advance(now), now);
        },
        kTickMilliseconds, kTickMilliseconds);
    uv_unref(reinterpret_cast<uv_handle_t*>(timer_));
  }

  ~DoorObject() override { stop(); }

  void stop() {
    if (poll_ == nullptr) return;
    Unref();
    front_.close();
    uv_close(reinterpret_cast<uv_handle_t*>(poll_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_poll_t*>(handle); });
    uv_close(reinterpret_cast<uv_handle_t*>(timer_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_timer_t*>(handle); });
    poll_ = nullptr;
  }

  void startPolling() {
    uv_poll_start(poll_, UV_READABLE, [](uv_poll_t* poll, int, int) {
      LoopScope scope;
      static_cast<DoorObject*>(poll->data)->front_.turn();
    });
  }

  void handOver(int fd, std::string_view bytes, const Address& client) {
    Nan::HandleScope scope;
    Local<Value> arguments[] = {Nan::New(fd),
                                Nan::CopyBuffer(bytes.data(), bytes.size()).ToLocalChecked(),
                                Nan::New(client.text()).ToLocalChecked()};
    onHandOver_.Call(3, arguments, resource_.get());
  }

  /** The live counts as JavaScript says them; empty where it does not. */
  std::string askCounts() {
    Nan::HandleScope scope;
    const Local<Value> said =
        Nan::Call(onCounts_, 0, nullptr).FromMaybe(Nan::Undefined().As<Value>());
    return said->IsString() ? textOf(said) : std::string();
  }

  // new Door({connections, …}, {limits, replies, onHandOver(fd, bytes, client), onCounts(): text,
  //     pool, feeds and perhaps arena, or relay, relayFd, whether inputs cross by that and whether
  //     it is for the transient port alone})
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    const DoorOptions options = {
        .connections = uint32In(info[0], "connections"),
        .maxSprite = uint32In(info[0], "maxSprite"),
        .headTime = uint32In(info[0], "headTime"),
        .bodyTime = uint32In(info[0], "bodyTime"),
        .idleTime = uint32In(info[0], "idleTime"),
        .writeTime = uint32In(info[0], "writeTime"),
        .keepIdle = uint32In(info[0], "keepIdle"),
        .trust = Trust{static_cast<uint8_t>(uint32In(info[0], "trust"))},
    };
    try {
      auto* door = new DoorObject(options, info[1].As<Object>());
      door->Wrap(info.This());
      // As for a pool: the collector may run while a connection is being handed over.
      door->Ref();
      info.GetReturnValue().Set(info.This());
    } catch (const std::bad_alloc&) {
      Nan::ThrowError("no address space for this many connections");
    } catch (const std::system_error& error) {
      Nan::ThrowError(Nan::ErrnoException(error.code().value(), "epoll_create1"));
    }
  }

  // listen(address, port, backlog, shared) → the port; throws with code and syscall
  static void listen(const Nan::FunctionCallbackInfo<Value>& info) {
    Door& door = unwrap<DoorObject>(info)->front_.door();
    const int error = door.listen(
        textOf(info[0]).c_str(), static_cast<uint16_t>(uint32Of(info[1])),
        static_cast<int>(uint32Of(info[2])),
        Nan::To<bool>(info[3]).FromJust() ? Listener::Sharing::kShared : Listener::Sharing::kAlone);
    if (error != 0) return Nan::ThrowError(Nan::ErrnoException(error, "listen"));
    info.GetReturnValue().Set(door.port());
  }

  // adopt(fd): accepts from a socket that listens already
  static void adopt(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->front_.door().adopt(static_cast<int>(uint32Of(info[0])));
  }

  static void stopListening(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->front_.door().stopListening();
  }

  // addWorker(connections) → the descriptor of the worker's end of a new relay, which the caller
  //     closes; `connections`: the most that the worker has
  static void addWorker(const Nan::FunctionCallbackInfo<Value>& info) {
    const int fd = unwrap<DoorObject>(info)->front_.addWorker(uint32Of(info[0]));
    if (fd >= 0) return info.GetReturnValue().Set(fd);
    if (errno == EUSERS) return Nan::ThrowError("too many workers at once");
    Nan::ThrowError(Nan::ErrnoException(errno, "socketpair"));
  }

  // flush(): sends what JavaScript has put into the relay
  static void flush(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->front_.flush();
  }

  // feedStatus() → what the feeds of the workers have counted
  static void feedStatus(const Nan::FunctionCallbackInfo<Value>& info) {
    const FeedTally sum = unwrap<DoorObject>(info)->front_.workersFeeds();
    Local<Object> result = Nan::New<Object>();
    set(result, "feedPolls", sum.polls);
    set(result, "feedPings", sum.pings);
    set(result, "documents", sum.documents);
    set(result, "patches", sum.patches);
    set(result, "skipped", sum.skipped);
    set(result, "feedHeld", sum.held);
    set(result, "watching", sum.watching);
    set(result, "streams", sum.streams);
    info.GetReturnValue().Set(result);
  }

  // elsewhere(connections): how many others of this process hold
  static void elsewhere(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->front_.door().elsewhere(uint32Of(info[0]));
  }

  // setOtherServers(own tag, tags: Uint32Array, ascending): whose clients' requests go to Node's
  // server
  static void setOtherServers(const Nan::FunctionCallbackInfo<Value>& info) {
    Nan::TypedArrayContents<uint32_t> tags(info[1]);
    unwrap<DoorObject>(info)->front_.door().setOtherServers(uint32Of(info[0]),
                                                            {*tags, *tags + tags.length()});
  }

  // wantNotes(): there will be notes from now on
  static void wantNotes(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->front_.door().notes().want();
  }

  // takeNotes() → {notes: [{kind, route, outcome, from}], omitted}
  static void takeNotes(const Nan::FunctionCallbackInfo<Value>& info) {
    const auto [notes, omitted] = unwrap<DoorObject>(info)->front_.door().notes().take();
    Local<Array> list = Nan::New<Array>(static_cast<int>(notes.size()));
    for (uint32_t i = 0; i < notes.size(); ++i) {
      Local<Object> note = Nan::New<Object>();
      set(note, "kind", static_cast<double>(notes[i].kind));
      set(note, "route", static_cast<double>(notes[i].route));
      set(note, "outcome", static_cast<double>(notes[i].outcome));
      set(note, "from", Nan::New(notes[i].peer.text()).ToLocalChecked());
      Nan::Set(list, i, note).Check();
    }
    Local<Object> result = Nan::New<Object>();
    set(result, "notes", list);
    set(result, "omitted", static_cast<double>(omitted));
    info.GetReturnValue().Set(result);
  }

  // closeIdle() → connections left
  static void closeIdle(const Nan::FunctionCallbackInfo<Value>& info) {
    info.GetReturnValue().Set(unwrap<DoorObject>(info)->front_.door().closeIdle());
  }

  // status() → the counts
  static void status(const Nan::FunctionCallbackInfo<Value>& info) {
    const DoorCounts counts = unwrap<DoorObject>(info)->front_.door().counts();
    Local<Object> result = Nan::New<Object>();
    set(result, "connections", counts.open);
    set(result, "accepted", counts.accepted);
    set(result, "connectionsRefused", counts.refused);
    set(result, "handedOver", counts.handedOver);
    set(result, "requests", counts.requests);
    set(result, "timedOut", counts.timedOut);
    set(result, "slowReaders", counts.slowReaders);
    set(result, "outOfFiles", counts.outOfFiles);
    set(result, "heldBytes", counts.heldBytes);
    info.GetReturnValue().Set(result);
  }

  // close(): closes every connection, and stops watching on Node's loop
  static void close(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->stop();
  }

  /** Those of a worker where there is a relay. */
  FrontParts frontParts(Local<Object> given) {
    const auto is = [&](const char* name) { return !get(given, name)->IsUndefined(); };
    FrontParts parts = {.limits = addressLimitsOf(get(given, "limits")),
                        .feeds = is("feeds") ? feedsOf(get(given, "feeds")) : nullptr,
                        .clock = microseconds,
                        .counts = [this] { return askCounts(); }};
    if (is("relay")) {
      parts.relay = relayOf(get(given, "relay"));
      parts.transient = Nan::To<bool>(get(given, "transient")).FromJust();
    } else {
      parts.turn = turnOf(get(given, "pool"));
      parts.pool = poolOf(get(given, "pool"));
      parts.arena = is("arena") ? arenaOf(get(given, "arena")) : nullptr;
    }
    return parts;
  }

  Nan::Persistent<Object> parts_;  // outlive the front
  Nan::Callback onHandOver_;
  Nan::Callback onCounts_;
  CallbackResource resource_;
  base::DeadlineClock clock_;
  Front front_;
  uv_poll_t* poll_ = nullptr;  // nullptr: closed
  uv_timer_t* timer_ = nullptr;
};

void initDoor(Local<Object> target) { DoorObject::init(target); }

}  // namespace server
