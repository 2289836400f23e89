// Door: the front, with its door and its workers, as a JavaScript object on Node's own loop.
// Conversion only.
#include <cmath>
#include <memory>
#include <system_error>
#include <vector>

#include "base/deadline_clock.h"
#include "convert.h"
#include "loop.h"
#include "loop_turns.h"
#include "server/front.h"
#include "ticker.h"
#include "watch_arguments.h"
#include "wraps.h"

namespace server {

namespace {

/**
 * {outcomes: [text, …], feed, feedGzip, feedPublic, feedUnchanged, feedStream, feedStreamGzip,
 * feedStreamPlain, json, joined: [text, text], stays, fixed: [[path, text, bytes], …]}
 */
Replies repliesOf(Local<Value> given) {
  Replies replies;
  const std::vector<std::string> outcomes = textsOf(get(given, "outcomes"));
  for (uint32_t i = 0; i < kOutcomes; ++i) replies.outcomes[i] = Reply(outcomes[i]);
  replies.feed = Reply(textIn(given, "feed"));
  replies.feedGzip = Reply(textIn(given, "feedGzip"));
  replies.feedPublic = Reply(textIn(given, "feedPublic"));
  replies.feedUnchanged = Reply(textIn(given, "feedUnchanged"));
  replies.feedStream = Reply(textIn(given, "feedStream"));
  replies.feedStreamGzip = Reply(textIn(given, "feedStreamGzip"));
  replies.feedStreamPlain = Reply(textIn(given, "feedStreamPlain"));
  const std::vector<std::string> joined = textsOf(get(given, "joined"));
  replies.joined = Reply(joined[0]);
  replies.afterJoinedId = joined[1];
  replies.json = Reply(textIn(given, "json"));
  replies.keepAliveFields = textIn(given, "stays");
  Local<Value> fixed = get(given, "fixed");
  for (uint32_t i = 0; i < fixed.As<Array>()->Length(); ++i) {
    Local<Value> entry = elementOf(fixed, i);
    Reply reply(textOf(elementOf(entry, 1)));
    reply.afterStatusLine.append(bytesOf(elementOf(entry, 2)));
    replies.fixed.emplace(textOf(elementOf(entry, 0)), std::move(reply));
  }
  return replies;
}

/** [[first segment of a path, bytes], …] */
std::vector<std::pair<std::string, uint32_t>> bodyBoundsOf(Local<Value> given) {
  return vectorOf(given, [](Local<Value> entry) {
    return std::pair(textOf(elementOf(entry, 0)), uint32Of(elementOf(entry, 1)));
  });
}

/** Factor of a worker's number in the number by which JavaScript knows a connection. */
constexpr double kWorkerFactor = 4294967296;

Caller callerOf(Local<Value> connection, Local<Value> generation) {
  const double number = numberOf(connection);
  const double worker = std::floor(number / kWorkerFactor);
  return {static_cast<uint32_t>(worker),
          {static_cast<uint32_t>(number - worker * kWorkerFactor), uint32Of(generation)}};
}

Local<Value> numberOfConnection(const Caller& caller) {
  return Nan::New(caller.worker * kWorkerFactor + caller.ticket.connection);
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
                    {"setTls", setTls},
                    {"stopListening", stopListening},
                    {"drain", drain},
                    {"respond", respond},
                    {"watch", watch},
                    {"park", park},
                    {"proceed", proceed},
                    {"abandon", abandon},
                    {"setOtherServers", setOtherServers},
                    {"endGrants", endGrants},
                    {"closeIdle", closeIdle},
                    {"wantLogEvents", wantLogEvents},
                    {"takeLogEvents", takeLogEvents},
                    {"counts", counts},
                    {"close", close},
                });
  }

 private:
  /** `parts`: see create. */
  DoorObject(const DoorOptions& options, Local<Object> parts)
      : nativeObjects_(nativeObjectsOf(parts)),
        onRequest_(get(parts, "onRequest").As<Function>()),
        onGone_(get(parts, "onGone").As<Function>()),
        onCounts_(get(parts, "onCounts").As<Function>()),
        resource_("sprites:request"),
        clock_(uv_now(Nan::GetCurrentEventLoop()), kTickMilliseconds),
        front_(options, frontParts(parts), repliesOf(get(parts, "replies")),
               {.ask = [this](uint32_t worker,
                              const ScriptRequest& question) { callOnRequest(worker, question); },
                .gone = [this](Caller caller) { callOnGone(caller); },
                .bodies = {.most = bodyBoundsOf(get(parts, "mostBody")),
                           .other = uint32In(parts, "otherBody")}},
               uv_now(Nan::GetCurrentEventLoop())) {
    const auto how = flagIn(parts, "ownsProcess") ? LoopTurns::makeSleeping : LoopTurns::makePolled;
    turns_ = how(this, &front_);
    front_.onWaitChange([this](bool isWaiting) { turns_->setPaused(isWaiting); });
  }

  void tick() {
    LoopScope scope(this);
    front_.tick(clock_.advance(uv_now(Nan::GetCurrentEventLoop()), ticker_.plannedSpan()));
    ticker_.setQuiet(front_.isQuiet(kRestTicks));
  }

  ~DoorObject() override { stop(); }

  void stop() {
    if (std::exchange(isStopped_, true)) return;
    Unref();
    front_.close();
    turns_->close();
    ticker_.stop();
    // The callbacks reference this object, which would never be collected.
    onRequest_.Reset();
    onGone_.Reset();
    onCounts_.Reset();
  }

  /** The native objects of `parts` that the front uses. */
  static Local<Object> nativeObjectsOf(Local<Object> parts) {
    Local<Object> nativeObjects = Nan::New<Object>();
    for (const char* name : {"limits", "pool", "feeds", "arena"}) {
      set(nativeObjects, name, get(parts, name));
    }
    return nativeObjects;
  }

  void callOnRequest(uint32_t worker, const ScriptRequest& question) {
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
    if (question.body.state == Body::State::kWhole) body = bufferOf(question.body.bytes);
    Local<Value> arguments[] = {numberOfConnection({worker, question.ticket}),
                                Nan::New(question.ticket.generation),
                                latin1(head.method),
                                latin1(head.target),
                                Array::New(isolate, fields.data(), fields.size()),
                                body,
                                valueOf(question.client.text()),
                                Nan::New(question.secure),
                                Nan::New(question.transient)};
    onRequest_.Call(9, arguments, resource_.get());
  }

  void callOnGone(Caller caller) {
    Nan::HandleScope scope;
    Local<Value> arguments[] = {numberOfConnection(caller), Nan::New(caller.ticket.generation)};
    onGone_.Call(2, arguments, resource_.get());
  }

  /** The live counts, as text from JavaScript; empty if it returns none. */
  std::string askCounts() {
    Nan::HandleScope scope;
    const Local<Value> answer =
        Nan::Call(onCounts_, 0, nullptr).FromMaybe(Nan::Undefined().As<Value>());
    return answer->IsString() ? textOf(answer) : std::string();
  }

  // new Door({connections, …}, {limits, pool, perhaps feeds and arena, workers, ownsProcess,
  //     replies, mostBody, otherBody, onRequest(connection, generation, method, target, [name,
  //     value, …], body, client, secure, transient), where `body` is null if it is too long, and
  //     undefined if it is awaited; onGone(connection, generation), onCounts(): text}). A
  //     connection is known by a number.
  static void create(const Info& info) {
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
        .privateJoin = flagIn(info[0], "privateJoin"),
    };
    try {
      auto* door = new DoorObject(options, info[1].As<Object>());
      door->Wrap(info.This());
      // As with a pool: the collector may run while JavaScript handles a request.
      door->Ref();
    } catch (const std::bad_alloc&) {
      Nan::ThrowError("no address space for this many connections");
    } catch (const std::system_error& error) {
      Nan::ThrowError(startError(error.code().value(), "epoll_create1"));
    }
  }

  // listen(address, port, {backlog, tls, transient, reserved: descriptor or -1}) → the port; throws
  // with code and syscall
  static void listen(const Info& info) {
    uint16_t port = 0;
    const int error = unwrap<DoorObject>(info)->front_.listen(
        {.address = textOf(info[0]),
         .port = static_cast<uint16_t>(uint32Of(info[1])),
         .backlog = static_cast<int>(uint32In(info[2], "backlog")),
         .tls = flagIn(info[2], "tls"),
         .transient = flagIn(info[2], "transient"),
         .reservedSocket = static_cast<int>(numberOf(get(info[2], "reserved")))},
        &port);
    if (error != 0) return Nan::ThrowError(Nan::ErrnoException(error, "listen"));
    info.GetReturnValue().Set(port);
  }

  // setTls(certificate, key, ticket keys: bytes): for the handshakes from now on
  static void setTls(const Info& info) {
    const auto bytes = [&](int at) { return std::string(bytesOf(info[at])); };
    unwrap<DoorObject>(info)->front_.setTls(bytes(0), bytes(1), bytes(2));
  }

  static void stopListening(const Info& info) { unwrap<DoorObject>(info)->front_.stopListening(); }

  // drain(window: ms): answers the watchers of the workers within `window`
  static void drain(const Info& info) { unwrap<DoorObject>(info)->front_.drain(uint32Of(info[0])); }

  // respond(connection, generation, status line, other fields: bytes, body: text, bytes or none)
  static void respond(const Info& info) {
    const std::string statusLine = textOf(info[2]);
    const std::string_view fields = bytesOf(info[3]);
    std::string text;
    std::string_view body;
    if (node::Buffer::HasInstance(info[4])) {
      body = bytesOf(info[4]);
    } else if (info[4]->IsString()) {
      text = textOf(info[4]);
      body = text;
    }
    unwrap<DoorObject>(info)->front_.respond(callerOf(info[0], info[1]), statusLine, fields, body);
  }

  // watch(connection, generation, {keys, afters, hold, delta, gzip, stream, many, noneMatch, from})
  static void watch(const Info& info) {
    const WatchArguments arguments(info[2]);
    unwrap<DoorObject>(info)->front_.watch(callerOf(info[0], info[1]), arguments.wanted(),
                                           arguments.count(), arguments.how);
  }

  // proceed(connection, generation): see Door::proceed
  static void proceed(const Info& info) {
    unwrap<DoorObject>(info)->front_.proceed(callerOf(info[0], info[1]));
  }

  // park(connection, generation) → whether it may wait: see Door::park
  static void park(const Info& info) {
    info.GetReturnValue().Set(unwrap<DoorObject>(info)->front_.park(callerOf(info[0], info[1])));
  }

  // abandon(connection, generation): the connection closes without an answer
  static void abandon(const Info& info) {
    unwrap<DoorObject>(info)->front_.abandon(callerOf(info[0], info[1]));
  }

  // endGrants(number of a GrantPart, name): see Feeds::endGrants
  static void endGrants(const Info& info) {
    const auto part = static_cast<uint8_t>(uint32Of(info[0]));
    unwrap<DoorObject>(info)->front_.endGrants(GrantPart{part}, textOf(info[1]));
  }

  // setOtherServers(own tag, tags: Uint32Array, ascending): requests by clients of the servers with
  // these tags go to JavaScript
  static void setOtherServers(const Info& info) {
    Nan::TypedArrayContents<uint32_t> tags(info[1]);
    unwrap<DoorObject>(info)->front_.setOtherServers(uint32Of(info[0]),
                                                     {*tags, *tags + tags.length()});
  }

  // wantLogEvents(): collects log events from now on
  static void wantLogEvents(const Info& info) {
    unwrap<DoorObject>(info)->front_.enableLogEvents();
  }

  // takeLogEvents() → {events: [{kind, route, outcome, from}], omitted}
  static void takeLogEvents(const Info& info) {
    const auto [events, omitted] = unwrap<DoorObject>(info)->front_.takeLogEvents();
    const auto objectOf = [](const auto& event) {
      return makeObject({
          {"kind", event.kind},
          {"route", event.route},
          {"outcome", event.outcome},
          {"from", event.address.text()},
      });
    };
    info.GetReturnValue().Set(
        makeObject({{"events", listOf(events, objectOf)}, {"omitted", omitted}}));
  }

  // closeIdle() → connections left
  static void closeIdle(const Info& info) {
    info.GetReturnValue().Set(unwrap<DoorObject>(info)->front_.closeIdle());
  }

  /** The counts of one thread that serves. */
  static Local<Object> countsOf(const WorkerCounts& all) {
    const DoorCounts& counts = all.door;
    Local<Object> door = makeObject({
        {"connections", counts.open},
        {"tlsConnections", counts.secure},
        {"handshakes", counts.handshakes},
        {"handshakesResumed", counts.resumed},
        {"handshakesFailed", counts.failedHandshakes},
        {"accepted", counts.accepted},
        {"connectionsRefused", counts.refused(Outcome::kTooManyConnections)},
        {"requests", counts.requests},
        {"handled", counts.handled},
        {"timedOut", counts.refused(Outcome::kRequestTimeout)},
        {"slowReaders", counts.slowReaders},
        {"outOfFiles", counts.outOfFiles},
        {"heldBytes", counts.heldBytes},
    });
    Local<Object> feeds = makeObject({
        {"feedPolls", all.feeds.polls},
        {"feedPings", all.feeds.pings},
        {"documents", all.feeds.documents},
        {"patches", all.feeds.patches},
        {"skipped", all.feeds.skipped},
        {"watching", all.feeds.watching},
        {"streams", all.feeds.streams},
    });
    Local<Object> refused = Nan::New<Object>();
    for (size_t i = 0; i < kOutcomes; ++i) {
      const uint64_t count = counts.refused(Outcome{static_cast<uint8_t>(i)});
      if (count != 0) set(refused, kOutcomeNames[i], count);
    }
    return makeObject({{"door", door}, {"feeds", feeds}, {"refused", refused}});
  }

  // counts() → [{door, feeds, refused}]: of the main thread, then of each worker. `feeds` leaves
  //     out the main thread's own table; `refused`: requests, by the outcomes' names
  static void counts(const Info& info) {
    info.GetReturnValue().Set(listOf(unwrap<DoorObject>(info)->front_.counts(), countsOf));
  }

  // close(): closes every connection, and stops watching on Node's loop
  static void close(const Info& info) { unwrap<DoorObject>(info)->stop(); }

  FrontParts frontParts(Local<Object> given) {
    const Local<Value> arena = get(given, "arena");
    return {.limits = addressLimitsOf(get(given, "limits")),
            .feeds = feedsOf(get(given, "feeds")),
            .clock = microseconds,
            .counts = [this] { return askCounts(); },
            .turn = turnOf(get(given, "pool")),
            .pool = poolOf(get(given, "pool")),
            .arena = arena->IsUndefined() ? nullptr : arenaOf(arena),
            .workers = uint32In(given, "workers")};
  }

  Nan::Global<Object> nativeObjects_;  // outlive the front
  Nan::Callback onRequest_;
  Nan::Callback onGone_;
  Nan::Callback onCounts_;
  CallbackResource resource_;
  base::DeadlineClock clock_;
  Front front_;
  std::unique_ptr<LoopTurns> turns_;
  bool isStopped_ = false;
  Ticker ticker_{this, [](void* self) { static_cast<DoorObject*>(self)->tick(); }};
};

void initDoor(Local<Object> target) { DoorObject::init(target); }

}  // namespace server
