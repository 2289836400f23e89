// Feeds: the table of feeds as a JavaScript object. Conversion only: lib/feeds has checked every
// argument.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/entity_tags.h"
#include "convert.h"
#include "feeds/feeds.h"
#include "loop.h"
#include "ticker.h"
#include "torus/pool.h"
#include "wraps.h"

namespace server {

namespace {

/** Time for due watchers in one turn of the loop, in microseconds. */
constexpr uint64_t kTurnShare = 2500;

Cursor cursorIn(Local<Value> object) {
  return {uint64In(object, "epoch"), uint64In(object, "version")};
}

/** Keeps the first `count` feeds, in order. */
template <typename IsBefore>
void keepFirst(std::vector<const Feed*>* feeds, size_t count, IsBefore isBefore) {
  count = std::min(count, feeds->size());
  std::partial_sort(feeds->begin(), feeds->begin() + static_cast<ptrdiff_t>(count), feeds->end(),
                    isBefore);
  feeds->resize(count);
}

/** Returns the bytes of a property, which may be missing. */
std::string_view bytesIn(Local<Value> object, const char* name) {
  Local<Value> value = get(object, name);
  return value->IsUndefined() ? std::string_view() : bytesOf(value);
}

}  // namespace

/** The table and its clock. */
class FeedsObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Feeds", create,
                {
                    {"publish", publish},
                    {"append", append},
                    {"itemsAfter", itemsAfter},
                    {"answerHead", answerHead},
                    {"roomFor", roomFor},
                    {"valueEquals", valueEquals},
                    {"countUnchanged", countUnchanged},
                    {"setCompressed", setCompressed},
                    {"remove", remove},
                    {"removeFetched", removeFetched},
                    {"fail", fail},
                    {"find", find},
                    {"takeTasks", takeTasks},
                    {"keys", keys},
                    {"restore", restore},
                    {"status", status},
                    {"mostWatched", mostWatched},
                    {"list", list},
                    {"drain", drain},
                    {"close", close},
                    {"reportNextChange", reportNextChange},
                    {"answerShareRequest", answerShareRequest},
                    {"setShare", setShare},
                    {"removeShares", removeShares},
                });
  }

 private:
  friend Feeds* feedsOf(Local<Value> feeds);

  FeedsObject(const FeedsOptions& options, Local<Function> onTasks, Local<Value> limits)
      : limitsHandle_(limits),
        feeds_(options, uv_now(Nan::GetCurrentEventLoop()), microseconds,
               limits->IsUndefined() ? nullptr : addressLimitsOf(limits)),
        onTasks_(onTasks),
        resource_("sprites:feed"),
        idle_(makeHandle<uv_idle_t>(this, uv_idle_init)) {
    // The idle handle is called in every turn of the loop, which does not sleep while there is
    // work.
    feeds_.onBusy([this] { uv_idle_start(idle_.get(), turn); });
  }

  ~FeedsObject() override { stop(); }

  void stop() {
    if (idle_ == nullptr) return;
    Unref();
    feeds_.onBusy({});
    // The callback references this object, which would never be collected.
    onTasks_.Reset();
    ticker_.stop();
    idle_.reset();
  }

  static void turn(uv_idle_t* idle) {
    auto* self = static_cast<FeedsObject*>(idle->data);
    LoopScope scope(self);
    if (self->feeds_.hasTasks()) self->onTasks_.Call(0, nullptr, self->resource_.get());
    self->feeds_.step(kTurnShare);
    if (self->idle_ != nullptr && !self->feeds_.hasWork()) uv_idle_stop(idle);
  }

  void tick() {
    LoopScope scope(this);
    // The rest waits for the next turn of the loop, not for a whole tick.
    if (!feeds_.tick(uv_now(Nan::GetCurrentEventLoop()))) ticker_.tickSoon();
    ticker_.setQuiet(feeds_.isQuiet(kRestTicks));
  }

  /** Reads the patterns of private feeds; nullptr: there are none. */
  static std::shared_ptr<const KeyPatterns> privatesIn(Local<Value> given) {
    std::vector<std::string> all = textsOf(get(given, "private"));
    return all.empty() ? nullptr : std::make_shared<const KeyPatterns>(std::move(all));
  }

  // new Feeds({hold, feeds, memory, watchers, upstream, shared, cache, logItems, logBytes,
  // answerBytes, lease, named, private: [pattern, …]}, onTasks(), limits)
  static void create(const Info& info) {
    const FeedsOptions options = {
        .hold = uint32In(info[0], "hold"),
        .feeds = uint32In(info[0], "feeds"),
        .memory = uint64In(info[0], "memory"),
        .watchers = uint32In(info[0], "watchers"),
        .upstream = flagIn(info[0], "upstream"),
        .privatePatterns = privatesIn(info[0]),
        .inWorld = flagIn(info[0], "shared"),
        .log = {.items = uint32In(info[0], "logItems"), .bytes = uint32In(info[0], "logBytes")},
        .answerBytes = uint32In(info[0], "answerBytes"),
        .cache = uint32In(info[0], "cache"),
        .hasGrants = flagIn(info[0], "named"),
        .lease = uint64_t{1000} * uint32In(info[0], "lease"),
    };
    try {
      auto* feeds = new FeedsObject(options, info[1].As<Function>(), info[2]);
      feeds->Wrap(info.This());
      // As with a pool: the collector may run in a call that the timer has caused.
      feeds->Ref();
    } catch (const std::bad_alloc&) {
      Nan::ThrowError("no address space for this many watchers");
    }
  }

  // publish({key, epoch, version, value, patch, gzip, upstream}) → [outcome, watching]
  static void publish(const Info& info) {
    const std::string key = textIn(info[0], "key");
    uint32_t watching = 0;
    const Outcome outcome = unwrap<FeedsObject>(info)->feeds_.publish(
        {
            .key = key,
            .cursor = cursorIn(info[0]),
            .value = bytesIn(info[0], "value"),
            .patch = bytesIn(info[0], "patch"),
            .gzip = bytesIn(info[0], "gzip"),
            .upstream = flagIn(info[0], "upstream"),
        },
        &watching);
    info.GetReturnValue().Set(pairOf(outcome, watching));
  }

  // append({key, epoch, version, item, fresh}) → [outcome, watching]. Without an item the log only
  // gets another epoch. `fresh`: an existing log forgets its items first
  static void append(const Info& info) {
    const std::string key = textIn(info[0], "key");
    uint32_t watching = 0;
    const Outcome outcome = unwrap<FeedsObject>(info)->feeds_.append(
        key, cursorIn(info[0]), bytesIn(info[0], "item"), &watching, flagIn(info[0], "fresh"));
    info.GetReturnValue().Set(pairOf(outcome, watching));
  }

  // itemsAfter(key, after) → {epoch, version, gap, items: bytes}: the items of a log after a
  // cursor, or all that it keeps; null: there are none
  static void itemsAfter(const Info& info) {
    const Feed* feed = unwrap<FeedsObject>(info)->feeds_.find(textOf(info[0]));
    const std::string after = textOf(info[1]);
    Cursor cursor = Cursor::parse(after);
    if (feed == nullptr || !feed->isLog) return info.GetReturnValue().SetNull();
    const bool isOurs =
        cursor.epoch == feed->cursor.epoch && cursor.version <= feed->cursor.version;
    if (!isOurs) cursor.version = 0;
    if (cursor.version == feed->cursor.version) return info.GetReturnValue().SetNull();
    const LogPart part = feed->partAfter(cursor.version, UINT32_MAX);
    const bool knew = !after.empty() && after != kNoCursor;
    std::string items = "[";
    items += feed->history->text().substr(part.begin, part.end - part.begin);
    items += ']';
    info.GetReturnValue().Set(makeObject({
        {"epoch", feed->cursor.epoch},
        {"version", feed->cursor.version},
        {"gap", part.gap || (knew && cursor.version == 0)},
        {"items", bufferOf(items)},
    }));
  }

  // answerHead(key, noneMatch) → {length, tag, isKnown} of the answer to a client without a value,
  // or null; `isKnown`: whether If-None-Match has the tag
  static void answerHead(const Info& info) {
    Feeds& feeds = unwrap<FeedsObject>(info)->feeds_;
    const std::string key = textOf(info[0]);
    feeds.findOrCreatePresence(key);
    std::string tag;
    const uint64_t length = feeds.answerLength(key, &tag);
    if (length == 0) return info.GetReturnValue().SetNull();
    const bool isKnown = base::hasTag(textOf(info[1]), tag);
    info.GetReturnValue().Set(makeObject({{"length", length}, {"tag", tag}, {"isKnown", isKnown}}));
  }

  // roomFor(key, value: bytes, gzip: bytes) → outcome
  static void roomFor(const Info& info) {
    returnOutcome(info, unwrap<FeedsObject>(info)->feeds_.roomFor(
                            textOf(info[0]), uint32Of(info[1]), uint32Of(info[2])));
  }

  // valueEquals(key, value) → whether that is the feed's value
  static void valueEquals(const Info& info) {
    info.GetReturnValue().Set(
        unwrap<FeedsObject>(info)->feeds_.valueEquals(textOf(info[0]), bytesOf(info[1])));
  }

  // countUnchanged(key) → outcome: counts a publication that changed nothing
  static void countUnchanged(const Info& info) {
    returnOutcome(info, unwrap<FeedsObject>(info)->feeds_.countUnchanged(textOf(info[0])));
  }

  // setCompressed({key, epoch, version, gzip})
  static void setCompressed(const Info& info) {
    unwrap<FeedsObject>(info)->feeds_.setCompressed(textIn(info[0], "key"), cursorIn(info[0]),
                                                    bytesIn(info[0], "gzip"));
  }

  // remove(key) → outcome
  static void remove(const Info& info) {
    returnOutcome(info, unwrap<FeedsObject>(info)->feeds_.remove(textOf(info[0])));
  }

  // removeFetched(key) → whether the feed was forgotten
  static void removeFetched(const Info& info) {
    info.GetReturnValue().Set(unwrap<FeedsObject>(info)->feeds_.removeFetched(textOf(info[0])));
  }

  // fail(key, milliseconds from now)
  static void fail(const Info& info) {
    unwrap<FeedsObject>(info)->feeds_.fail(textOf(info[0]),
                                           uv_now(Nan::GetCurrentEventLoop()) + uint32Of(info[1]));
  }

  // find(key) → {epoch, version, length, watching, patched, idle, upstream, log, gzipAsked} or
  // null; length 0: there is no value yet; `patched`: patches are asked for. find(key, true): with
  // a copy of the value
  static void find(const Info& info) {
    const Feed* feed = unwrap<FeedsObject>(info)->feeds_.find(textOf(info[0]));
    if (feed == nullptr) return info.GetReturnValue().SetNull();
    const uint64_t now = uv_now(Nan::GetCurrentEventLoop());
    Local<Object> result = makeObject({
        {"epoch", feed->cursor.epoch},
        {"version", feed->cursor.version},
        {"length", feed->length()},
        {"watching", feed->watchers()},
        {"patched", feed->takesPatches(now)},
        {"idle", now - feed->lastRequestAt},
        {"upstream", feed->upstream},
        {"log", feed->isLog},
        {"gzipAsked", feed->hasGzipReaders},
    });
    if (Nan::To<bool>(info[1]).FromJust() && feed->value) {
      set(result, "value", bufferOf(feed->value->text()));
    }
    info.GetReturnValue().Set(result);
  }

  // reportNextChange(key): see Feeds; `takeTasks` returns the news
  static void reportNextChange(const Info& info) {
    unwrap<FeedsObject>(info)->feeds_.reportNextChange(textOf(info[0]));
  }

  // answerShareRequest(key): see Feeds::answerShareRequest
  static void answerShareRequest(const Info& info) {
    unwrap<FeedsObject>(info)->feeds_.answerShareRequest(textOf(info[0]));
  }

  // setShare(server, {key, watching, who: [name, …]})
  static void setShare(const Info& info) {
    unwrap<FeedsObject>(info)->feeds_.setShare(
        textIn(info[1], "key"), textOf(info[0]),
        {uint32Of(get(info[1], "watching")), textsOf(get(info[1], "who"))});
  }

  // removeShares(server)
  static void removeShares(const Info& info) {
    unwrap<FeedsObject>(info)->feeds_.removeShares(textOf(info[0]));
  }

  // takeTasks() → [{key, fetch, reportsChange, asks, share: {watching, who} or missing, source,
  // epoch, version}]
  static void takeTasks(const Info& info) {
    const auto objectOf = [](const Feeds::Task& task) {
      Local<Object> one = makeObject({
          {"key", task.key},
          {"fetch", task.fetch},
          {"reportsChange", task.reportsChange},
          {"asks", task.asksForShares},
          {"source", task.source},
          {"epoch", task.cursor.epoch},
          {"version", task.cursor.version},
      });
      if (task.ownShare) {
        const auto& [watching, names] = *task.ownShare;
        set(one, "share", makeObject({{"watching", watching}, {"who", names}}));
      }
      return one;
    };
    info.GetReturnValue().Set(listOf(unwrap<FeedsObject>(info)->feeds_.takeTasks(), objectOf));
  }

  // keys() → the keys of the feeds that have a value
  static void keys(const Info& info) {
    Local<Array> list = Nan::New<Array>();
    unwrap<FeedsObject>(info)->feeds_.forEach(
        [&](const Feed& feed) { Nan::Set(list, list->Length(), valueOf(feed.key)).Check(); });
    info.GetReturnValue().Set(list);
  }

  // restore({key, epoch, version, value, log, patches, upstream}) → outcome
  static void restore(const Info& info) {
    FeedValue feed;
    feed.restore(cursorIn(info[0]), bytesIn(info[0], "value"), bytesIn(info[0], "log"),
                 vectorOf(get(info[0], "patches"), uint32Of), nullptr);
    feed.upstream = flagIn(info[0], "upstream");
    returnOutcome(info, unwrap<FeedsObject>(info)->feeds_.restore(textIn(info[0], "key"), feed));
  }

  // status() → the counts
  static void status(const Info& info) {
    const Feeds& feeds = unwrap<FeedsObject>(info)->feeds_;
    const FeedCounts& counts = feeds.counts();
    info.GetReturnValue().Set(makeObject({
        {"feeds", counts.feeds},
        {"feedsAwaited", counts.awaited},
        {"watching", counts.watching},
        {"streams", counts.streams},
        {"published", counts.published},
        {"unchanged", counts.unchanged},
        {"deleted", counts.deleted},
        {"feedPolls", counts.polls},
        {"feedPings", counts.pings},
        {"documents", counts.documents},
        {"patches", counts.patches},
        {"skipped", counts.skipped},
        {"feedMemory", counts.memory},
        {"feedHeld", feeds.unsentBytes()},
    }));
  }

  // mostWatched(count) → [{key, watching, bytes, version, upstream}]: the feeds with the most
  // watchers, among equals the largest
  static void mostWatched(const Info& info) {
    std::vector<const Feed*> all;
    unwrap<FeedsObject>(info)->feeds_.forEach([&](const Feed& feed) { all.push_back(&feed); });
    const auto isBefore = [](const Feed* one, const Feed* other) {
      return std::tuple(other->watchers(), other->cost()) <
             std::tuple(one->watchers(), one->cost());
    };
    keepFirst(&all, uint32Of(info[0]), isBefore);
    info.GetReturnValue().Set(listOf(all, [](const Feed* feed) {
      return makeObject({
          {"key", feed->key},
          {"watching", feed->watchers()},
          {"bytes", feed->cost()},
          {"version", feed->cursor.version},
          {"upstream", feed->upstream},
      });
    }));
  }

  // list(prefix, from, count) → [{key, epoch, version, bytes, watching, log}]: the first `count`
  // feeds, in the order of their keys, whose keys begin with `prefix` and come after `from`
  static void list(const Info& info) {
    const std::string prefix = textOf(info[0]);
    const std::string from = textOf(info[1]);
    std::vector<const Feed*> all;
    unwrap<FeedsObject>(info)->feeds_.forEach([&](const Feed& feed) {
      if (feed.key > from && feed.key.starts_with(prefix)) all.push_back(&feed);
    });
    keepFirst(&all, uint32Of(info[2]),
              [](const Feed* one, const Feed* other) { return one->key < other->key; });
    info.GetReturnValue().Set(listOf(all, [](const Feed* feed) {
      return makeObject({
          {"key", feed->key},
          {"epoch", feed->cursor.epoch},
          {"version", feed->cursor.version},
          {"bytes", feed->length()},
          {"log", feed->isLog},
          {"watching", feed->watchers()},
      });
    }));
  }

  // drain(window: ms)
  static void drain(const Info& info) {
    unwrap<FeedsObject>(info)->feeds_.drain(uint32Of(info[0]));
  }

  // close(): nothing is answered any more
  static void close(const Info& info) { unwrap<FeedsObject>(info)->stop(); }

  Nan::Global<Value> limitsHandle_;  // the limits, which outlive the table
  Feeds feeds_;
  Nan::Callback onTasks_;
  CallbackResource resource_;
  Ticker ticker_{this, [](void* self) { static_cast<FeedsObject*>(self)->tick(); }};
  LoopHandle<uv_idle_t> idle_;
};

Feeds* feedsOf(Local<Value> feeds) {
  return &Nan::ObjectWrap::Unwrap<FeedsObject>(feeds.As<Object>())->feeds_;
}

void initFeeds(Local<Object> target) { FeedsObject::init(target); }

}  // namespace server
