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
#include "watch_words.h"
#include "wraps.h"

namespace server {

namespace {

/**
 * {outcomes: [text, …], feed, feedGzip, feedStream, feedStreamPlain, json, joined: [text, text],
 * timedOut, refused, tooMuchHeld, badRequest, headTooLarge, expectationFailed, stays,
 * ready: [[path, text], …]}
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
  replies.feedStreamPlain = Reply(textIn(given, "feedStreamPlain"));
  Local<Array> joined = get(given, "joined").As<Array>();
  replies.joined = Reply(textOf(Nan::Get(joined, 0).ToLocalChecked()));
  replies.joinedEnd = textOf(Nan::Get(joined, 1).ToLocalChecked());
  replies.json = Reply(textIn(given, "json"));
  replies.timedOut = Reply(textIn(given, "timedOut"));
  replies.refused = Reply(textIn(given, "refused"));
  replies.tooMuchHeld = Reply(textIn(given, "tooMuchHeld"));
  replies.badRequest = Reply(textIn(given, "badRequest"));
  replies.headTooLarge = Reply(textIn(given, "headTooLarge"));
  replies.expectationFailed = Reply(textIn(given, "expectationFailed"));
  replies.stays = textIn(given, "stays");
  Local<Array> ready = get(given, "ready").As<Array>();
  for (uint32_t i = 0; i < ready->Length(); ++i) {
    Local<Array> entry = Nan::Get(ready, i).ToLocalChecked().As<Array>();
    replies.ready.emplace(textOf(Nan::Get(entry, 0).ToLocalChecked()),
                          textOf(Nan::Get(entry, 1).ToLocalChecked()));
  }
  return replies;
}

/** [[first segment of a path, bytes], …] */
std::vector<std::pair<std::string, uint32_t>> mostBodyOf(Local<Value> given) {
  Local<Array> list = given.As<Array>();
  std::vector<std::pair<std::string, uint32_t>> bounds;
  for (uint32_t i = 0; i < list->Length(); ++i) {
    Local<Array> entry = Nan::Get(list, i).ToLocalChecked().As<Array>();
    bounds.emplace_back(textOf(Nan::Get(entry, 0).ToLocalChecked()),
                        uint32Of(Nan::Get(entry, 1).ToLocalChecked()));
  }
  return bounds;
}

Ticket ticketOf(Local<Value> connection, Local<Value> generation) {
  return {uint32Of(connection), uint32Of(generation)};
}

/** Bytes of a head as JavaScript has them: one character a byte (RFC 9110, section 5.5). */
Local<Value> latin1(std::string_view bytes) {
  return Nan::NewOneByteString(reinterpret_cast<const uint8_t*>(bytes.data()),
                               static_cast<int>(bytes.size()))
      .ToLocalChecked();
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
                    {"respond", respond},
                    {"watch", watch},
                    {"park", park},
                    {"proceed", proceed},
                    {"abandon", abandon},
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
        onRequest_(get(parts, "onRequest").As<Function>()),
        onGone_(get(parts, "onGone").As<Function>()),
        onCounts_(get(parts, "onCounts").As<Function>()),
        resource_("sprites:request"),
        clock_(uv_now(Nan::GetCurrentEventLoop()), kTickMilliseconds),
        front_(options, frontParts(parts), repliesOf(get(parts, "replies")),
               {.ask = [this](const Question& question) { ask(question); },
                .gone = [this](Ticket ticket) { gone(ticket); },
                .mostBody = mostBodyOf(get(parts, "mostBody"))},
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
      auto* self = static_cast<DoorObject*>(poll->data);
      // What is deferred may close it.
      Nan::HandleScope scope;
      [[maybe_unused]] const Local<Object> kept = self->handle();
      uint64_t ended;
      {
        LoopScope turn;
        self->front_.turn();
        ended = microseconds();
      }
      self->front_.door().countDeferred(microseconds() - ended);
    });
  }

  void ask(const Question& question) {
    Nan::HandleScope scope;
    v8::Isolate* const isolate = v8::Isolate::GetCurrent();
    const RequestHead& head = question.head;
    std::vector<Local<Value>> fields;
    fields.reserve(head.fields.size() * 2);
    for (const Field& field : head.fields) {
      fields.push_back(latin1(field.name));
      fields.push_back(latin1(field.value));
    }
    Local<Value> body = Nan::Undefined();
    if (question.body.state == Body::State::kTooLong) body = Nan::Null();
    if (question.body.state == Body::State::kWhole) {
      const std::string_view bytes = question.body.bytes;
      body = Nan::CopyBuffer(bytes.data(), bytes.size()).ToLocalChecked();
    }
    Local<Value> arguments[] = {Nan::New(question.ticket.connection),
                                Nan::New(question.ticket.generation),
                                latin1(head.method),
                                latin1(head.target),
                                Array::New(isolate, fields.data(), fields.size()),
                                body,
                                Nan::New(question.client.text()).ToLocalChecked(),
                                Nan::New(question.secure)};
    onRequest_.Call(8, arguments, resource_.get());
  }

  void gone(Ticket ticket) {
    Nan::HandleScope scope;
    Local<Value> arguments[] = {Nan::New(ticket.connection), Nan::New(ticket.generation)};
    onGone_.Call(2, arguments, resource_.get());
  }

  /** The live counts as JavaScript says them; empty where it does not. */
  std::string askCounts() {
    Nan::HandleScope scope;
    const Local<Value> said =
        Nan::Call(onCounts_, 0, nullptr).FromMaybe(Nan::Undefined().As<Value>());
    return said->IsString() ? textOf(said) : std::string();
  }

  // new Door({connections, …}, {limits, replies, mostBody, onRequest(connection, generation,
  // method,
  //     target, [name, value, …], body, client, secure), where a body is null that is too long, and
  //     undefined that is awaited; onGone(connection, generation),
  //     onCounts(): text, pool, feeds and perhaps arena, or relay, relayFd, whether inputs cross by
  //     that and whether it is for the transient port alone})
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    const DoorOptions options = {
        .connections = uint32In(info[0], "connections"),
        .maxSprite = uint32In(info[0], "maxSprite"),
        .headBytes = uint32In(info[0], "headBytes"),
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
      // As for a pool: the collector may run while JavaScript handles a request.
      door->Ref();
      info.GetReturnValue().Set(info.This());
    } catch (const std::bad_alloc&) {
      Nan::ThrowError("no address space for this many connections");
    } catch (const std::system_error& error) {
      Nan::ThrowError(Nan::ErrnoException(error.code().value(), "epoll_create1"));
    }
  }

  /** The Tls object of a call, kept for as long as the door is, or nullptr where there is none. */
  TlsContext* keptTls(Local<Value> given) {
    if (!given->IsObject()) return nullptr;
    tls_.Reset(given.As<Object>());
    return tlsOf(given);
  }

  // listen(address, port, backlog, shared, tls or undefined) → the port; throws with code and
  // syscall
  static void listen(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* self = unwrap<DoorObject>(info);
    uint16_t port = 0;
    const int error = self->front_.door().listen(
        textOf(info[0]).c_str(), static_cast<uint16_t>(uint32Of(info[1])),
        static_cast<int>(uint32Of(info[2])),
        Nan::To<bool>(info[3]).FromJust() ? Listener::Sharing::kShared : Listener::Sharing::kAlone,
        self->keptTls(info[4]), &port);
    if (error != 0) return Nan::ThrowError(Nan::ErrnoException(error, "listen"));
    info.GetReturnValue().Set(port);
  }

  // adopt(fd, tls or undefined): accepts from a socket that listens already
  static void adopt(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* self = unwrap<DoorObject>(info);
    self->front_.door().adopt(static_cast<int>(uint32Of(info[0])), self->keptTls(info[1]));
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

  // respond(connection, generation, status line, other fields, body: text, bytes or undefined)
  static void respond(const Nan::FunctionCallbackInfo<Value>& info) {
    const std::string statusLine = textOf(info[2]);
    const std::string fields = textOf(info[3]);
    std::string text;
    std::string_view body;
    if (node::Buffer::HasInstance(info[4])) {
      body = {node::Buffer::Data(info[4]), node::Buffer::Length(info[4])};
    } else if (info[4]->IsString()) {
      text = textOf(info[4]);
      body = text;
    }
    unwrap<DoorObject>(info)->front_.door().respond(ticketOf(info[0], info[1]), statusLine, fields,
                                                    body);
  }

  // watch(connection, generation, {keys, afters, hold, delta, gzip, stream, many, from}) → outcome;
  //     see Feeds.watch
  static void watch(const Nan::FunctionCallbackInfo<Value>& info) {
    const WatchWords words(info[2]);
    const Outcome outcome = unwrap<DoorObject>(info)->front_.door().watch(
        ticketOf(info[0], info[1]), words.wanted(), words.count(), words.how);
    info.GetReturnValue().Set(static_cast<uint32_t>(outcome));
  }

  // proceed(connection, generation): see Door::proceed
  static void proceed(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->front_.door().proceed(ticketOf(info[0], info[1]));
  }

  // park(connection, generation) → whether it may wait: see Door::park
  static void park(const Nan::FunctionCallbackInfo<Value>& info) {
    info.GetReturnValue().Set(
        unwrap<DoorObject>(info)->front_.door().park(ticketOf(info[0], info[1])));
  }

  // abandon(connection, generation): the connection closes without an answer
  static void abandon(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->front_.door().abandon(ticketOf(info[0], info[1]));
  }

  // setOtherServers(own tag, tags: Uint32Array, ascending): whose clients' requests are
  // JavaScript's
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
    set(result, "tlsConnections", counts.secure);
    set(result, "handshakes", counts.handshakes);
    set(result, "handshakesResumed", counts.resumed);
    set(result, "handshakesFailed", counts.failedHandshakes);
    set(result, "accepted", counts.accepted);
    set(result, "connectionsRefused", counts.refused);
    set(result, "requests", counts.requests);
    set(result, "handled", counts.handled);
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
  Nan::Persistent<Object> tls_;    // the same
  Nan::Callback onRequest_;
  Nan::Callback onGone_;
  Nan::Callback onCounts_;
  CallbackResource resource_;
  base::DeadlineClock clock_;
  Front front_;
  uv_poll_t* poll_ = nullptr;  // nullptr: closed
  uv_timer_t* timer_ = nullptr;
};

void initDoor(Local<Object> target) { DoorObject::init(target); }

}  // namespace server
