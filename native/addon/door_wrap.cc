// Door: the front door as a JavaScript object, on Node's own loop. Conversion only.
#include <sys/socket.h>
#include <uv.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <system_error>
#include <vector>

#include "base/deadline_clock.h"
#include "callback_resource.h"
#include "convert.h"
#include "door/door.h"
#include "loop_scope.h"
#include "pool/pool.h"
#include "relay/links.h"
#include "relay/relay.h"
#include "relay/relay_server.h"
#include "server/turn.h"
#include "wraps.h"

namespace server {

namespace {

/** How often a worker sends a batch at the most: 500 times a second, if it has more than one. */
constexpr uint32_t kBatchMicroseconds = 2000;

/** How often the main process, once it has workers, takes a turn at the most. */
constexpr uint32_t kTurnMicroseconds = 1000;

/**
 * {outcomes: [text, …], feedOutcomes: [text, …], feed, feedGzip, feedStream, json,
 * joined: [text, text], timedOut, refused, tooMuchHeld, ready: [[path, text], …]}
 */
Replies repliesOf(Local<Value> given) {
  Replies replies;
  Local<Array> outcomes = get(given, "outcomes").As<Array>();
  for (uint32_t i = 0; i < kOutcomes; ++i) {
    replies.outcomes[i] = Reply(textOf(Nan::Get(outcomes, i).ToLocalChecked()));
  }
  Local<Array> feedOutcomes = get(given, "feedOutcomes").As<Array>();
  for (uint32_t i = 0; i < kFeedOutcomes; ++i) {
    replies.feedOutcomes[i] = Reply(textOf(Nan::Get(feedOutcomes, i).ToLocalChecked()));
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

class DoorObject : public Nan::ObjectWrap, private FeedsWatcher {
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
        poolHandler_(poolHandlerOf(parts)),
        relay_(poolHandler_ ? nullptr : relayOf(get(parts, "relay"))),
        relayed_({.pool = poolHandler_ ? poolOf(get(parts, "pool")) : nullptr,
                  .limits = addressLimitsOf(get(parts, "limits")),
                  .feeds = poolHandler_ && hasFeeds(parts) ? feedsOf(get(parts, "feeds")) : nullptr,
                  .clock = microseconds,
                  .counts = [this] { return door_.liveCounts(); },
                  .arena = poolHandler_ ? arenaIn(parts) : nullptr}),
        onHandOver_(get(parts, "onHandOver").As<Function>()),
        onCounts_(get(parts, "onCounts").As<Function>()),
        resource_("sprites:hand-over"),
        clock_(uv_now(Nan::GetCurrentEventLoop()), kTickMilliseconds),
        links_(&events_),
        door_(
            options, doorParts(parts), repliesOf(get(parts, "replies")),
            [this](int fd, std::string_view bytes, const Address& client) {
              handOver(fd, bytes, client);
            },
            uv_now(Nan::GetCurrentEventLoop())) {
    if (poolHandler_) {
      poolOf(get(parts, "pool"))->setResponder(PollHolder::kDoor, &door_);
      turn_ = turnOf(get(parts, "pool"));
      turn_->onReleased([this](TurnEnd end) {
        if (poll_ == nullptr) return;
        finishTurn(end);
        startPolling();
      });
      turn_->onEnded([this] { links_.send(); });
      if (relayed_.feeds != nullptr) relayed_.feeds->watchFor(this);
    } else {
      answerTo(get(parts, "relay"), &door_);
      addressLimitsOf(get(parts, "limits"))->watch(relay_);
      if (Nan::To<bool>(get(parts, "inputs")).FromJust()) relay_->takeInputs();
      if (hasFeeds(parts)) {
        relay_->replicate(feedsOf(get(parts, "feeds")));
        onStepped(get(parts, "feeds"), [this] { tellOfFeeds(); });
      }
      links_.attach(static_cast<int>(uint32In(parts, "relayFd")), relay_,
                    {.pace = kBatchMicroseconds, .mostKept = 0});
    }
    uv_loop_t* loop = Nan::GetCurrentEventLoop();
    // The handles outlive the object: the loop gives them back when it has closed them.
    poll_ = new uv_poll_t;
    poll_->data = this;
    uv_poll_init(loop, poll_, events_.fd());
    startPolling();
    timer_ = new uv_timer_t;
    timer_->data = this;
    uv_timer_init(loop, timer_);
    uv_timer_start(
        timer_,
        [](uv_timer_t* timer) {
          LoopScope scope;
          auto* self = static_cast<DoorObject*>(timer->data);
          self->door_.tick(self->clock_.advance(uv_now(timer->loop)));
          self->clearLost();
          self->tickReplica();
        },
        kTickMilliseconds, kTickMilliseconds);
    uv_unref(reinterpret_cast<uv_handle_t*>(timer_));
  }

  ~DoorObject() override { stop(); }

  void stop() {
    if (poll_ == nullptr) return;
    if (relayed_.feeds != nullptr) relayed_.feeds->watchFor(nullptr);
    Unref();
    links_.closeAll();
    door_.closeAll();
    uv_close(reinterpret_cast<uv_handle_t*>(poll_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_poll_t*>(handle); });
    uv_close(reinterpret_cast<uv_handle_t*>(timer_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_timer_t*>(handle); });
    poll_ = nullptr;
  }

  /** One turn of Node's loop: what has come is served, then what goes to other processes is sent.
   */
  void turn() {
    if (!events_.due()) return;
    door_.turn();
    // A worker promises nothing: its main process does.
    finishTurn(turn_ != nullptr ? turn_->end() : TurnEnd::kSend);
  }

  /** Answers what the turn has decided, or has it unanswered, or waits. */
  void finishTurn(TurnEnd end) {
    if (end == TurnEnd::kWait) {
      uv_poll_stop(poll_);
      return;
    }
    const Settled settled = end == TurnEnd::kSend ? Settled::kHolds : Settled::kUnknown;
    for (const auto& server : servers_) server->settle(settled);
    if (end == TurnEnd::kSend) {
      door_.sendAnswers();
    } else {
      door_.dropAnswers();
    }
    if (relay_ != nullptr && relay_->feeds() != nullptr) relay_->feeds()->turn();
    links_.send();
    links_.giveUpTheDeaf();
    clearLost();
  }

  void tickReplica() {
    if (relay_ == nullptr || relay_->feeds() == nullptr) return;
    relay_->feeds()->tick(uv_now(Nan::GetCurrentEventLoop()));
    tellOfFeeds();
  }

  /** Sends what the main process is to know of the feeds here. */
  void tellOfFeeds() {
    relay_->feeds()->turn();
    links_.send();
  }

  // What becomes of feeds is sent before whoever has published is answered.

  void published(const Feed& feed) override {
    tellAll([&](RelayServer& server) { server.published(feed); });
  }

  void compressed(const Feed& feed) override {
    tellAll([&](RelayServer& server) { server.compressed(feed); });
  }

  void ended(std::string_view key, FeedOutcome why) override {
    tellAll([&](RelayServer& server) { server.ended(key, why); });
  }

  template <typename Tell>
  void tellAll(Tell&& tell) {
    if (servers_.empty()) return;
    for (const auto& server : servers_) tell(*server);
    links_.send();
  }

  /** Drops the polls of workers that are gone, a share of them a turn. */
  void clearLost() {
    bool all = true;
    for (const auto& server : servers_) all = server->clear() && all;
    if (!all) events_.wake();
  }

  void startPolling() {
    uv_poll_start(poll_, UV_READABLE, [](uv_poll_t* poll, int, int) {
      LoopScope scope;
      static_cast<DoorObject*>(poll->data)->turn();
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
    Door& door = unwrap<DoorObject>(info)->door_;
    const int error = door.listen(
        textOf(info[0]).c_str(), static_cast<uint16_t>(uint32Of(info[1])),
        static_cast<int>(uint32Of(info[2])),
        Nan::To<bool>(info[3]).FromJust() ? Listener::Sharing::kShared : Listener::Sharing::kAlone);
    if (error != 0) return Nan::ThrowError(Nan::ErrnoException(error, "listen"));
    info.GetReturnValue().Set(door.port());
  }

  // adopt(fd): accepts from a socket that listens already
  static void adopt(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->door_.adopt(static_cast<int>(uint32Of(info[0])));
  }

  static void stopListening(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->door_.stopListening();
  }

  /** A place among the holders of polls that no worker has; kNobody: there is none. */
  PollHolder freeHolder() const {
    for (auto i = static_cast<size_t>(PollHolder::kFirstWorker); i < kPollHolders; ++i) {
      const PollHolder holder{static_cast<uint8_t>(i)};
      const bool taken =
          std::any_of(servers_.begin(), servers_.end(),
                      [holder](const auto& server) { return server->holder() == holder; });
      if (!taken) return holder;
    }
    return PollHolder::kNobody;
  }

  // addWorker(connections) → the descriptor of the worker's end of a new relay, which the caller
  //     closes; `connections`: the most that the worker has
  static void addWorker(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* door = unwrap<DoorObject>(info);
    // Frees the ends of relays whose workers have died, and have no poll any more.
    std::erase_if(door->servers_, [door](const auto& server) {
      if (server->over()) door->tallied_.add(server->tally());
      return server->over();
    });
    const PollHolder holder = door->freeHolder();
    if (holder == PollHolder::kNobody) return Nan::ThrowError("too many workers at once");
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return Nan::ThrowError(Nan::ErrnoException(errno, "socketpair"));
    }
    door->servers_.push_back(
        std::make_unique<RelayServer>(door->relayed_, holder, uint32Of(info[0]) + Door::kBeyond));
    door->links_.attach(
        ends[0], door->servers_.back().get(),
        {.pace = 0, .mostKept = kMostSaid, .mostEver = kMostEver, .patience = kPatience});
    door->events_.pace(kTurnMicroseconds);
    info.GetReturnValue().Set(ends[1]);
  }

  // flush(): sends what JavaScript has put into the relay
  static void flush(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* door = unwrap<DoorObject>(info);
    if (door->relay_->feeds() != nullptr) door->relay_->feeds()->turn();
    door->links_.send();
  }

  // feedStatus() → what the feeds of the workers have counted
  static void feedStatus(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* door = unwrap<DoorObject>(info);
    FeedTally sum = door->tallied_;
    for (const auto& server : door->servers_) sum.add(server->tally());
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
    unwrap<DoorObject>(info)->door_.elsewhere(uint32Of(info[0]));
  }

  // setOtherServers(own tag, tags: Uint32Array, ascending): whose clients' requests go to Node's
  // server
  static void setOtherServers(const Nan::FunctionCallbackInfo<Value>& info) {
    Nan::TypedArrayContents<uint32_t> tags(info[1]);
    unwrap<DoorObject>(info)->door_.setOtherServers(uint32Of(info[0]),
                                                    {*tags, *tags + tags.length()});
  }

  // wantNotes(): there will be notes from now on
  static void wantNotes(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<DoorObject>(info)->door_.notes().want();
  }

  // takeNotes() → {notes: [{kind, route, outcome, from}], omitted}
  static void takeNotes(const Nan::FunctionCallbackInfo<Value>& info) {
    const auto [notes, omitted] = unwrap<DoorObject>(info)->door_.notes().take();
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
    info.GetReturnValue().Set(unwrap<DoorObject>(info)->door_.closeIdle());
  }

  // status() → the counts
  static void status(const Nan::FunctionCallbackInfo<Value>& info) {
    const DoorCounts counts = unwrap<DoorObject>(info)->door_.counts();
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

  static std::unique_ptr<PoolHandler> poolHandlerOf(Local<Object> parts) {
    Local<Value> pool = get(parts, "pool");
    if (pool->IsUndefined()) return nullptr;
    return std::make_unique<PoolHandler>(poolOf(pool), microseconds, arenaIn(parts));
  }

  /** nullptr where there are none. */
  static Arena* arenaIn(Local<Object> parts) {
    Local<Value> arena = get(parts, "arena");
    return arena->IsUndefined() ? nullptr : arenaOf(arena);
  }

  static bool hasFeeds(Local<Object> parts) { return !get(parts, "feeds")->IsUndefined(); }

  DoorParts doorParts(Local<Object> parts) {
    RequestHandler* requests = relay_;
    PollHandler* polls = Nan::To<bool>(get(parts, "transient")).FromJust() ? nullptr : relay_;
    if (poolHandler_) {
      requests = poolHandler_.get();
      polls = poolHandler_.get();
    }
    return {.events = &events_,
            .limits = addressLimitsOf(get(parts, "limits")),
            .requests = requests,
            .polls = polls,
            .feeds = hasFeeds(parts) ? feedsOf(get(parts, "feeds")) : nullptr,
            .counts = [this] { return askCounts(); },
            .countsLater = relay_ != nullptr};
  }

  Nan::Persistent<Object> parts_;                      // outlive the front door
  const std::unique_ptr<PoolHandler> poolHandler_;     // in the main process
  std::vector<std::unique_ptr<RelayServer>> servers_;  // the relays' ends to workers
  Turn* turn_ = nullptr;                               // the same
  RelayHandler* const relay_;                          // in a worker
  const RelayParts relayed_;                           // of `servers_`
  FeedTally tallied_;                                  // of those that are gone
  Nan::Callback onHandOver_;
  Nan::Callback onCounts_;
  CallbackResource resource_;
  base::DeadlineClock clock_;
  EventSet events_;
  RelayLinks links_;
  Door door_;
  uv_poll_t* poll_ = nullptr;  // nullptr: closed
  uv_timer_t* timer_ = nullptr;
};

void initDoor(Local<Object> target) { DoorObject::init(target); }

}  // namespace server
