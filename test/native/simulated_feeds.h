// Publishers of feeds, and watchers by all ways: polls with patches, lists of feeds, event streams;
// now and then compressed. A watcher keeps its values, to which it applies patches.
//
//   Records      the value of every version of a feed
//   Publisher    puts values, or appends items, one at a time
//   FeedWatcher  asks for newer versions than its own
//   Headcount    watches the number of a feed's watchers
#ifndef TEST_NATIVE_SIMULATED_FEEDS_H_
#define TEST_NATIVE_SIMULATED_FEEDS_H_

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "simulated_clients.h"

namespace sim {

/** For every version of every feed the number in its value, which its publisher chose. */
class Records {
 public:
  void record(const std::string& key, uint32_t server, Cursor cursor, uint64_t number) {
    const auto [found, isNew] =
        numbers_.emplace(std::tuple(key, cursor.epoch, cursor.version), number);
    expect(isNew || found->second == number, "feeds: one cursor has two values");
    uint64_t& newest = newest_[{key, server}];
    newest = std::max(newest, cursor.version);
  }

  /** Returns the newest version that a server has sent to any client. */
  uint64_t newest(const std::string& key, uint32_t server = 0) { return newest_[{key, server}]; }

  /** Records an item. It must keep its place in the log, also in a new epoch. */
  void recordItem(const std::string& key, uint32_t server, Cursor cursor, uint64_t number) {
    record(key, server, cursor, number);
    const auto [found, isNew] = itemVersions_.emplace(std::pair(key, number), cursor.version);
    expect(isNew || found->second == cursor.version, "logs: an item has two places");
  }

 private:
  std::map<std::pair<std::string, uint64_t>, uint64_t> itemVersions_;
  std::map<std::tuple<std::string, uint64_t, uint64_t>, uint64_t> numbers_;
  std::map<std::pair<std::string, uint32_t>, uint64_t> newest_;
};
inline Records* records = nullptr;

/** The only publisher of a key. It puts values, or appends items to a log: a key that begins with
 * l. */
class Publisher : public Client {
 public:
  /** `cells`: most cells of its values, which are sheets; 0: its values are no sheets. */
  Publisher(std::string key, uint32_t address, uint32_t server = 0, uint64_t cells = 0)
      : Client(address, server), key_(std::move(key)), server_(server), maxCells_(cells) {}

  const std::string& key() const { return key_; }
  /** Whether one of its publications was confirmed. */
  bool hasPublished() const { return confirmedVersion_ > 0; }
  /** Returns when the publication of a number began. */
  uint64_t startedAt(uint64_t number) const { return startedAt_.at(number); }

  /** Also expects that the server has the confirmed version: it survives restarts and epochs. */
  bool isUpToDate() const override {
    const Life* const life = hosts[server_]->life();
    if (life == nullptr) return false;
    expect(life->newest(key_).version >= confirmedVersion_,
           "feeds: a publication is lost that was to hold");
    return true;
  }

  void act(uint64_t) override {
    pipe_.misbehave();
    if (pipe_.pendingCount() == 0 && !crowd->isCalm) sendPublication();
    machine->schedule(1 + machine->below(crowd->odds.think), this, 0);
  }

 private:
  bool isLog() const { return key_[0] == 'l'; }

  void sendPublication() {
    const std::string body = maxCells_ > 0 ? sheetOf(++lastNumber_) : textOf(++lastNumber_);
    startedAt_[lastNumber_] = machine->now();
    if (pipe_.send(postRequest("/feed/" + key_, body, isLog() ? "POST" : "PUT"),
                   {.number = lastNumber_, .timeout = kAnswerTime})) {
      machine->trace("number %" PRIu64 " is published", lastNumber_);
    }
  }

  static std::string textOf(uint64_t number) {
    return "{\"n\":" + std::to_string(number) + ",\"f\":\"" +
           std::string(machine->below(200), 'x') + "\"}";
  }

  /** Returns a document that differs from the last one in a few places. */
  std::string sheetOf(uint64_t number) {
    sheet_.number = number;
    auto& cells = sheet_.cells;
    // Rarely all cells are new.
    if (cells.empty() || machine->below(50) == 0) {
      cells.resize(1 + machine->below(maxCells_));
      for (uint64_t& cell : cells) cell = machine->below(100000);
    }
    const uint64_t place = machine->below(cells.size() + 1);
    for (uint64_t edits = 1 + machine->below(3); edits > 0; --edits) {
      const auto at =
          static_cast<ptrdiff_t>(std::min<uint64_t>(place + machine->below(4), cells.size()));
      const auto cell = cells.begin() + at;
      const uint64_t how = machine->below(3);
      if (how == 0 || cell == cells.end()) {
        if (cells.size() < maxCells_) cells.insert(cell, machine->below(100000));
      } else if (how == 1) {
        cells.erase(cell);
      } else {
        *cell = machine->below(100000);
      }
    }
    std::string text = sheet_.text();
    publishedSheets->emplace(std::pair(key_, number), text);
    return text;
  }

  void onAnswer(const PendingRequest& request, const Answer& answer) override {
    if (answer.status == 503) return;
    if (answer.status != 200) {
      return expect(answer.reason == "state-unwritable", "publications: refused for no reason");
    }
    const Cursor cursor = Cursor::parse(answer.body);
    confirmedVersion_ = std::max(confirmedVersion_, cursor.version);
    isLog() ? records->recordItem(key_, server_, cursor, request.number)
            : records->record(key_, server_, cursor, request.number);
    machine->trace("number %" PRIu64 " holds", request.number);
  }

  void onLost(const PendingRequest& request) override {
    machine->trace("it is unknown whether number %" PRIu64 " holds", request.number);
  }

  const std::string key_;
  const uint32_t server_;
  const uint64_t maxCells_;
  Sheet sheet_;
  uint64_t lastNumber_ = server_ * uint64_t{1000000000};
  uint64_t confirmedVersion_ = 0;  // version of the last confirmed publication
  std::map<uint64_t, uint64_t> startedAt_;
};

class FeedWatcher : public Client {
 public:
  enum class Way : uint8_t { kPoll, kList, kStream };

  FeedWatcher(Way way, const std::vector<std::string>& keys, uint32_t address, uint32_t server = 0)
      : Client(address, server), way_(way), server_(server) {
    for (const std::string& key : keys) feeds_.emplace_back().key = key;
  }

  bool isUpToDate() const override {
    const Life* const life = hosts[server_]->life();
    if (life == nullptr) return false;
    for (const WatchedFeed& one : feeds_) {
      const Feed* const feed = life->feeds().find(one.key);
      if (feed != nullptr && one.version != feed->cursor.version) return false;
    }
    return true;
  }

  void act(uint64_t) override {
    pipe_.misbehave();
    // The page reloads, and keeps or loses its values.
    if (!crowd->isCalm && machine->below(60) == 0) {
      pipe_.close(machine->below(2) == 0);
      if (machine->below(3) == 0) forget(&feeds_[machine->below(feeds_.size())]);
    }
    if (pipe_.pendingCount() == 0) sendRequest();
    machine->schedule(1 + machine->below(kSecond), this, 0);
  }

 private:
  /** The watcher's state of a feed. */
  struct WatchedFeed {
    std::string key;
    std::string cursor;          // empty: nothing
    bool waitsForFirst = false;  // it waits for the first value
    uint64_t version = 0;
    uint64_t newestBefore = 0;  // newest version sent to any client before this request
    Sheet sheet;
    bool isSheet = false;
  };

  static void forget(WatchedFeed* one) {
    one->cursor.clear();
    one->isSheet = false;
    one->version = 0;
  }

  void sendRequest() {
    for (WatchedFeed& one : feeds_) {
      one.newestBefore = records->newest(one.key, server_);
      one.waitsForFirst = one.cursor.empty() && machine->below(2) == 0;
    }
    machine->trace(way_ == Way::kStream ? "a watcher asks for a stream behind version %" PRIu64
                   : way_ == Way::kList
                       ? "a watcher asks for a list, its first feed behind version %" PRIu64
                       : "a watcher asks for patches behind version %" PRIu64,
                   feeds_[0].version);
    pipe_.send(way_ == Way::kList ? requestForAll() : requestForOne(),
               {.timeout = kHold * kSecond + kAnswerTime});
  }

  std::string requestForOne() {
    const WatchedFeed& one = feeds_[0];
    const bool stream = way_ == Way::kStream;
    const std::string after = afterOf(one);
    const bool byHeader = stream && !one.cursor.empty() && machine->below(2) == 0;
    std::string target = "/feed/" + one.key;
    if (machine->below(8) != 0) target += "?delta=1";
    if (!byHeader && !after.empty())
      target += (target.ends_with("=1") ? "&after=" : "?after=") + after;
    if (machine->below(8) == 0) target += target.find('?') == target.npos ? "?hold=0" : "&hold=0";
    std::string fields;
    if (stream) fields += "Accept: text/event-stream\r\n";
    if (byHeader) fields += "Last-Event-ID: " + after + "\r\n";
    if (machine->below(2) == 0) fields += "Accept-Encoding: gzip\r\n";
    return getRequest(target, fields);
  }

  std::string requestForAll() const {
    const bool posts = machine->below(2) == 0;
    std::string list;
    for (const WatchedFeed& one : feeds_) {
      if (!list.empty()) list += ',';
      const std::string& key = one.key;
      list += posts ? "\"" + key + "\":\"" + afterOf(one) + "\"" : key + ":" + afterOf(one);
    }
    if (!posts) return getRequest("/feeds?watch=" + list + "&delta=1");
    const std::string hold =
        std::to_string(machine->below(4) == 0 ? 0 : 5 + machine->below(kHold - 4));
    return postRequest("/feeds", "{\"delta\":true,\"hold\":" + hold + ",\"feeds\":{" + list + "}}");
  }

  static std::string afterOf(const WatchedFeed& one) {
    return one.cursor.empty() && one.waitsForFirst ? "none" : one.cursor;
  }

  void onAnswer(const PendingRequest&, const Answer& answer) override {
    if (answer.status == 503) return;
    if (way_ == Way::kStream && answer.status == 200) return;
    if (answer.status != 200) {
      expect(answer.reason == "unknown-feed", "watchers: refused for no reason");
      return expectUnknown(feeds_[0]);
    }
    if (way_ == Way::kList) {
      readList(answer.body);
    } else {
      readItem(&feeds_[0], answer.body);
      expect(feeds_[0].version >= feeds_[0].newestBefore,
             "watchers: there is something new that another was told of before");
    }
    if (machine->below(10) != 0 && pipe_.pendingCount() == 0) sendRequest();
  }

  static void expectUnknown(const WatchedFeed& one) {
    expect(one.newestBefore == 0, "watchers: a feed is unknown of which another was told before");
    expect(!one.waitsForFirst,
           "watchers: one that waits for the first value is told that there is none");
  }

  void readList(std::string_view body) {
    expect(body.starts_with("{\"items\":[") && body.ends_with("]}"), "lists: one has another form");
    body = body.substr(10, body.size() - 12);
    size_t last = 0;  // feeds come in the order of the request, except unknown ones
    std::vector<bool> refused(feeds_.size());
    while (!body.empty()) {
      // No document contains this text.
      const size_t end = std::min(body.find(",{\"feed\":\""), body.size());
      const std::string_view item = body.substr(0, end);
      body.remove_prefix(std::min(end + 1, body.size()));
      const std::string key = textBehind(item, "{\"feed\":\"");
      const auto found = std::find_if(feeds_.begin(), feeds_.end(),
                                      [&](const WatchedFeed& one) { return one.key == key; });
      expect(found != feeds_.end(), "lists: a feed comes that was not asked for");
      if (item.find("\"problem\":\"unknown-feed\"") != item.npos) {
        expectUnknown(*found);
        continue;
      }
      readItem(&*found, item);
      ++last;
    }
    for (const WatchedFeed& one : feeds_) {
      expect(one.version >= one.newestBefore,
             "lists: a feed is left out of which another was told before");
    }
    machine->trace("a watcher gets a list of %" PRIu64 " feeds", last);
  }

  /** Reads the events of a stream. */
  void onStream(std::string_view text) override {
    events_.add(text, [this](std::string_view event) {
      const size_t data = event.find("\ndata: ");
      expect(event.starts_with("id: ") && data != event.npos, "streams: an event has another form");
      const std::string id(event.substr(4, data - 4));
      readItem(&feeds_[0], event.substr(data + 7));
      expect(feeds_[0].cursor == id, "streams: an event's id is not its cursor");
    });
  }

  void onLost(const PendingRequest&) override { events_.clear(); }

  void readItem(WatchedFeed* one, std::string_view item) {
    const std::string& key = one->key;
    const std::string text = textBehind(item, "\"cursor\":\"");
    const Cursor cursor = Cursor::parse(text);
    expect(textBehind(item, "{\"feed\":\"") == key, "watchers: another feed comes");
    const size_t patch = item.find(",\"patch\":[");
    const size_t value = item.find(",\"value\":");
    const bool items = item.find(",\"items\":[") != item.npos;
    if (patch == item.npos && value == item.npos && !items) {
      expect(text == (one->cursor.empty() ? "none" : one->cursor) && way_ == Way::kPoll,
             "watchers: nothing new has a new cursor");
      return;
    }
    if (items) return readItems(one, item, text);
    uint64_t number = 0;
    if (patch != item.npos) {
      expect(!one->cursor.empty() && textBehind(item, "\"from\":\"") == one->cursor,
             "patches: one is from a version that the client has not");
      expect(one->isSheet && one->sheet.apply(item.substr(patch + 10, item.size() - patch - 12)),
             "patches: one does not fit the value");
      number = one->sheet.number;
    } else {
      const std::string_view document = item.substr(value + 9, item.size() - value - 10);
      one->isSheet = one->sheet.parse(document);
      size_t at = 0;
      number = numberBehind(document, "{\"n\":", &at);
    }
    if (one->isSheet) {
      const auto published = publishedSheets->find({key, number});
      expect(published != publishedSheets->end() && published->second == one->sheet.text(),
             patch != item.npos ? "patches: one ends at another value than was published"
                                : "watchers: another value comes than was published");
    }
    machine->trace(patch == item.npos ? "a watcher gets version %" PRIu64 ", number %" PRIu64
                                      : "a watcher gets a patch to version %" PRIu64
                                        ", number %" PRIu64,
                   cursor.version, number);
    records->record(key, server_, cursor, number);
    expect(cursor.version > one->version, "watchers: an older value comes after a newer one");
    expect(cursor.version >= one->newestBefore,
           "watchers: an older value than another was told of before");
    one->version = cursor.version;
    one->cursor = text;
  }

  void readItems(WatchedFeed* one, std::string_view item, const std::string& text) {
    const std::string& key = one->key;
    const Cursor to = Cursor::parse(text);
    const bool gap = item.find("\"gap\":true") != item.npos;
    const std::string fromText = textBehind(item, "\"from\":\"");
    expect(gap || one->cursor.empty() || fromText == one->cursor,
           "logs: an answer does not go on from where it was asked");
    uint64_t version = Cursor::parse(fromText).version;
    size_t at = item.find("\"items\":[");
    for (uint64_t number; (number = numberBehind(item, "{\"n\":", &at)) != UINT64_MAX;) {
      records->recordItem(key, server_, {to.epoch, ++version}, number);
    }
    machine->trace("a watcher gets items up to version %" PRIu64, version);
    expect(gap || version > one->version, "logs: an item comes twice");
    expect(version == to.version, "logs: an answer has not as many items as its cursors say");
    one->version = version;
    one->cursor = text;
    one->newestBefore = 0;  // the stream may have more events
  }

  const Way way_;
  const uint32_t server_;
  std::vector<WatchedFeed> feeds_;
  EventReader events_;
};

/** Watches the number of a feed's watchers at all servers of a world. */
class Headcount : public Client {
 public:
  /** `watching`: the feed's watchers at the end of the run. */
  Headcount(std::string key, uint64_t watching, uint32_t server)
      : Client(0x11000000, server), key_(std::move(key)), expected_(watching) {}

  /** The number is right, or some server has no version of the feed: it reports no watchers. */
  bool isUpToDate() const override {
    bool isEverywhere = true;
    for (const Host* const host : hosts) {
      if (host == nullptr) continue;
      if (host->life() == nullptr) return false;
      isEverywhere = isEverywhere && host->life()->newest(key_).version > 0;
    }
    return watching_ == expected_ || !isEverywhere;
  }

  void act(uint64_t) override {
    pipe_.misbehave();
    if (pipe_.pendingCount() == 0) {
      pipe_.send(getRequest("/feed/presence/" + key_ + "?after=" + cursor_),
                 {.timeout = kHold * kSecond + kAnswerTime});
    }
    machine->schedule(1 + machine->below(kSecond), this, 0);
  }

 private:
  void onAnswer(const PendingRequest&, const Answer& answer) override {
    if (answer.status == 503) return;
    if (answer.status != 200) {
      cursor_ = kNone;
      return expect(answer.reason == "unknown-feed", "watchers: refused for no reason");
    }
    size_t at = 0;
    const uint64_t watching = numberBehind(answer.body, "\"watching\":", &at);
    if (watching == UINT64_MAX) return;
    watching_ = watching;
    machine->trace("%" PRIu64 " are told to watch in all the world", watching_);
    cursor_ = textBehind(answer.body, "\"cursor\":\"");
  }

  inline static const std::string kNone = "none";

  const std::string key_;
  const uint64_t expected_;
  std::string cursor_ = kNone;
  uint64_t watching_ = 0;  // the last number received
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_FEEDS_H_
