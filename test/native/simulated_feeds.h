// Clients of feeds that take them by every way there is: polls with patches, lists of feeds, event
// streams, each compressed now and then. Every one knows what it has of each feed, so that patches
// have something to be applied to.
#ifndef TEST_NATIVE_SIMULATED_FEEDS_H_
#define TEST_NATIVE_SIMULATED_FEEDS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulated_http.h"

namespace sim {

/** Publishes documents that differ in a few places. */
class SheetPublisher : public Publisher {
 public:
  SheetPublisher(std::string key, uint32_t address, uint64_t cells)
      : Publisher(std::move(key), address), most_(cells) {}

 private:
  std::string bodyOf(uint64_t number) override {
    sheet_.number = number;
    auto& cells = sheet_.cells;
    // Seldom all is new.
    if (number == 1 || machine->below(50) == 0) {
      cells.resize(1 + machine->below(most_));
      for (uint64_t& cell : cells) cell = machine->below(100000);
    }
    const uint64_t place = machine->below(cells.size() + 1);
    for (uint64_t edits = 1 + machine->below(3); edits > 0; --edits) {
      const auto at =
          static_cast<ptrdiff_t>(std::min<uint64_t>(place + machine->below(4), cells.size()));
      const auto cell = cells.begin() + at;
      const uint64_t how = machine->below(3);
      if (how == 0 || cell == cells.end()) {
        if (cells.size() < most_) cells.insert(cell, machine->below(100000));
      } else if (how == 1) {
        cells.erase(cell);
      } else {
        *cell = machine->below(100000);
      }
    }
    std::string text = sheet_.text();
    sheets->emplace(std::pair(key(), number), text);
    return text;
  }

  const uint64_t most_;
  Sheet sheet_;
};

class FeedWatcher : public Client, private PipeOwner {
 public:
  enum class Way : uint8_t { kPoll, kList, kStream };

  FeedWatcher(Way way, const std::vector<std::string>& keys, uint32_t address)
      : way_(way), pipe_(this, address) {
    for (const std::string& key : keys) feeds_.emplace_back().key = key;
    machine->after(machine->below(2 * kSecond), this, 0);
  }

  void expectInTime() const override { pipe_.expectInTime(); }
  void close() override { pipe_.cut(false); }

  bool isUpToDate() const override {
    const Life* const life = hosts[0]->life();
    if (life == nullptr) return false;
    for (const Has& one : feeds_) {
      const Feed* const feed = life->feeds().find(one.key);
      if (feed != nullptr && one.version != feed->cursor.version) return false;
    }
    return true;
  }

  void act(uint64_t) override {
    pipe_.misbehave();
    // The page is reloaded, and keeps its values or loses them.
    if (!crowd->calm && machine->below(60) == 0) {
      pipe_.cut(machine->below(2) == 0);
      if (machine->below(3) == 0) forget(&feeds_[machine->below(feeds_.size())]);
    }
    if (pipe_.asked() == 0) ask();
    machine->after(1 + machine->below(kSecond), this, 0);
  }

 private:
  /** What it has of a feed. */
  struct Has {
    std::string key;
    std::string cursor;  // empty: nothing
    bool waits = false;  // it has asked for the first value whenever that comes
    uint64_t version = 0;
    uint64_t told = 0;  // to any client, before it has asked
    Sheet sheet;
    bool isSheet = false;
  };

  static void forget(Has* one) {
    one->cursor.clear();
    one->isSheet = false;
    one->version = 0;
  }

  void ask() {
    for (Has& one : feeds_) {
      one.told = records->newest(one.key);
      one.waits = one.cursor.empty() && machine->below(2) == 0;
    }
    machine->say(way_ == Way::kStream ? "a stream of version %" PRIu64 " is asked for"
                 : way_ == Way::kList
                     ? "a list is asked for, its first feed behind version %" PRIu64
                     : "patches behind version %" PRIu64 " are asked for",
                 feeds_[0].version);
    const bool waits = pipe_.ask(way_ == Way::kList ? requestForAll() : requestForOne(),
                                 kHold * kSecond + kAnswerTime);
    if (!waits) machine->say("no server is there");
  }

  std::string requestForOne() {
    const Has& one = feeds_[0];
    const bool stream = way_ == Way::kStream;
    const std::string after = afterOf(one);
    const bool byHeader = stream && !one.cursor.empty() && machine->below(2) == 0;
    std::string target = "/feed/" + one.key;
    if (machine->below(8) != 0) target += "?delta=1";
    if (!byHeader && !after.empty())
      target += (target.ends_with("=1") ? "&after=" : "?after=") + after;
    std::string head = "GET " + target + " HTTP/1.1\r\nHost: s\r\n";
    if (stream) head += "Accept: text/event-stream\r\n";
    if (byHeader) head += "Last-Event-ID: " + after + "\r\n";
    if (machine->below(2) == 0) head += "Accept-Encoding: gzip\r\n";
    return head + "\r\n";
  }

  std::string requestForAll() const {
    const bool posts = machine->below(2) == 0;
    std::string list;
    for (const Has& one : feeds_) {
      if (!list.empty()) list += ',';
      const std::string& key = one.key;
      list += posts ? "\"" + key + "\":\"" + afterOf(one) + "\"" : key + ":" + afterOf(one);
    }
    if (!posts) return "GET /feeds?watch=" + list + "&delta=1 HTTP/1.1\r\nHost: s\r\n\r\n";
    const std::string body =
        "{\"delta\":true,\"hold\":" + std::to_string(5 + machine->below(kHold - 4)) +
        ",\"feeds\":{" + list + "}}";
    return "POST /feeds HTTP/1.1\r\nHost: s\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }

  static std::string afterOf(const Has& one) {
    return one.cursor.empty() && one.waits ? "none" : one.cursor;
  }

  void answered(const Answer& answer) override {
    if (answer.status == 503) return;
    if (way_ == Way::kStream && answer.status == 200) return;
    if (answer.status != 200) {
      expect(answer.reason == "unknown-feed", "watchers: refused for no reason");
      return unknown(feeds_[0]);
    }
    if (way_ == Way::kList) {
      takeList(answer.body);
    } else {
      takeItem(&feeds_[0], answer.body);
      expect(feeds_[0].version >= feeds_[0].told,
             "watchers: there is something new that another was told of before");
    }
    if (machine->below(10) != 0 && pipe_.asked() == 0) ask();
  }

  static void unknown(const Has& one) {
    expect(one.told == 0, "watchers: a feed is unknown of which another was told before");
    expect(!one.waits, "watchers: one that waits for the first value is told that there is none");
  }

  void takeList(std::string_view body) {
    expect(body.starts_with("{\"items\":[") && body.ends_with("]}"), "lists: one has another form");
    body = body.substr(10, body.size() - 12);
    size_t last = 0;  // feeds come in the order in which they were asked for, but unknown ones
    std::vector<bool> refused(feeds_.size());
    while (!body.empty()) {
      // No document has this in it.
      const size_t end = std::min(body.find(",{\"feed\":\""), body.size());
      const std::string_view item = body.substr(0, end);
      body.remove_prefix(std::min(end + 1, body.size()));
      const std::string key = textIn(item, "{\"feed\":\"");
      const auto found = std::find_if(feeds_.begin(), feeds_.end(),
                                      [&](const Has& one) { return one.key == key; });
      expect(found != feeds_.end(), "lists: a feed comes that was not asked for");
      if (item.find("\"problem\":\"unknown-feed\"") != item.npos) {
        unknown(*found);
        continue;
      }
      takeItem(&*found, item);
      ++last;
    }
    for (const Has& one : feeds_) {
      expect(one.version >= one.told, "lists: a feed is left out of which another was told before");
    }
    machine->say("a list has %" PRIu64 " feeds", last);
  }

  /** An event of a stream, or some; each comes whole. */
  void streamed(std::string_view text) override {
    events_ += text;
    for (size_t end; (end = events_.find("\n\n")) != events_.npos; events_.erase(0, end + 2)) {
      const std::string_view event = std::string_view(events_).substr(0, end);
      if (event == ":") continue;
      const size_t data = event.find("\ndata: ");
      expect(event.starts_with("id: ") && data != event.npos, "streams: an event has another form");
      const std::string id(event.substr(4, data - 4));
      takeItem(&feeds_[0], event.substr(data + 7));
      expect(feeds_[0].cursor == id, "streams: an event's id is not its cursor");
    }
  }

  void lost() override { events_.clear(); }

  void takeItem(Has* one, std::string_view item) {
    const std::string& key = one->key;
    const std::string text = textIn(item, "\"cursor\":\"");
    const Cursor cursor = Cursor::of(text);
    expect(textIn(item, "{\"feed\":\"") == key, "watchers: another feed comes");
    const size_t patch = item.find(",\"patch\":[");
    const size_t value = item.find(",\"value\":");
    const bool items = item.find(",\"items\":[") != item.npos;
    if (patch == item.npos && value == item.npos && !items) {
      expect(text == (one->cursor.empty() ? "none" : one->cursor) && way_ == Way::kPoll,
             "watchers: nothing new has a new cursor");
      return;
    }
    if (items) return takeItems(one, item, text);
    uint64_t number = 0;
    if (patch != item.npos) {
      expect(!one->cursor.empty() && textIn(item, "\"from\":\"") == one->cursor,
             "patches: one is from a version that the client has not");
      expect(one->isSheet && one->sheet.apply(item.substr(patch + 10, item.size() - patch - 12)),
             "patches: one does not fit the value");
      number = one->sheet.number;
    } else {
      const std::string_view document = item.substr(value + 9, item.size() - value - 10);
      one->isSheet = one->sheet.read(document);
      size_t at = 0;
      number = numberIn(document, "{\"n\":", &at);
    }
    if (one->isSheet) {
      const auto published = sheets->find({key, number});
      expect(published != sheets->end() && published->second == one->sheet.text(),
             patch != item.npos ? "patches: one ends at another value than was published"
                                : "watchers: another value comes than was published");
    }
    machine->say(patch == item.npos ? "version %" PRIu64 " comes, number %" PRIu64
                                    : "a patch to version %" PRIu64 " comes, number %" PRIu64,
                 cursor.version, number);
    records->saw(key, 0, cursor, number);
    expect(cursor.version > one->version, "watchers: an older value comes after a newer one");
    expect(cursor.version >= one->told, "watchers: an older value than another was told of before");
    one->version = cursor.version;
    one->cursor = text;
  }

  void takeItems(Has* one, std::string_view item, const std::string& text) {
    const std::string& key = one->key;
    const Cursor to = Cursor::of(text);
    const bool gap = item.find("\"gap\":true") != item.npos;
    const std::string fromText = textIn(item, "\"from\":\"");
    expect(gap || one->cursor.empty() || fromText == one->cursor,
           "logs: an answer does not go on from where it was asked");
    uint64_t version = Cursor::of(fromText).version;
    size_t at = item.find("\"items\":[");
    for (uint64_t number; (number = numberIn(item, "{\"n\":", &at)) != UINT64_MAX;) {
      records->sawItem(key, 0, {to.epoch, ++version}, number);
    }
    machine->say("items up to version %" PRIu64 " come", version);
    expect(gap || version > one->version, "logs: an item comes twice");
    expect(version == to.version, "logs: an answer has not as many items as its cursors say");
    one->version = version;
    one->cursor = text;
    one->told = 0;  // there may be more
  }

  static std::string textIn(std::string_view body, std::string_view behind) {
    const size_t at = body.find(behind);
    if (at == body.npos) return {};
    const size_t begin = at + behind.size();
    return std::string(body.substr(begin, body.find('"', begin) - begin));
  }

  const Way way_;
  Pipe pipe_;
  std::vector<Has> feeds_;
  std::string events_;  // that is not whole yet
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_FEEDS_H_
