// Watchers of feeds at the front door, a part of door_test: polls that are parked, compressed
// and of many feeds, event streams, heads and bodies in pieces, connections that close at any
// moment, stalled readers. No watcher may see versions out of order, and one that keeps asking has
// the newest in the end.
#ifndef SPRITES_TEST_NATIVE_DOOR_FEEDS_H_
#define SPRITES_TEST_NATIVE_DOOR_FEEDS_H_

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expect.h"
#include "feeds/feeds.h"
#include "http/replies.h"
#include "peer.h"
#include "simulated_documents.h"

namespace server::test {

/** A clock that is one further at each look: a budget is a number of answers. */
inline uint64_t countingClock() {
  static uint64_t looks = 0;
  return ++looks;
}

/** One turn's share of the table's work: some answers, and what JavaScript would be asked for. */
inline void stepFeeds(Feeds* feeds) {
  feeds->step(40);
  for (const Feeds::Want& want : feeds->takeWants()) {
    feeds->compressed(want.key, want.cursor, "compressed " + std::to_string(want.cursor.version));
  }
}

/** The words of the table's answers. */
inline void addFeedReplies(Replies* replies) {
  replies->feed = Reply("HTTP/1.1 200 OK\r\nContent-Length: ");
  replies->feedGzip = Reply("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ");
  replies->feedStream = Reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

/** How an answer names its outcome. */
inline std::string problem(Outcome outcome) {
  return "Outcome: " + std::to_string(static_cast<int>(outcome)) + "\r\n";
}

class DoorFeeds {
 public:
  using Turn = std::function<void()>;
  using Pass = std::function<void(uint64_t milliseconds)>;

  /** `secure` is a port by TLS. */
  DoorFeeds(Feeds* feeds, Port port, Port secure, std::mt19937* random, Turn turn, Pass pass)
      : feeds_(feeds),
        port_(port),
        secure_(secure),
        random_(*random),
        turn_(std::move(turn)),
        pass_(std::move(pass)) {}

  /** Versions come while all kinds of watchers come, go and ask again. */
  void parkAndPublish() {
    for (const char* key : kKeys) publish(key);
    std::vector<Reader> readers(48);
    for (size_t i = 0; i < readers.size(); ++i) {
      readers[i].kind = static_cast<Kind>(i % kKinds);
      ask(&readers[i]);
    }
    for (int round = 0; round < 120; ++round) {
      publish(kKeys[below(2)]);
      for (uint32_t turns = below(4); turns > 0; --turns) turn_();
      for (Reader& reader : readers) {
        if (below(40) == 0) {
          below(2) == 0 ? reader.wire->reset() : reader.wire->close();
          ask(&reader);
        } else if (below(3) == 0) {
          listen(&reader);
        }
      }
    }
    until([&] {
      bool all = true;
      for (Reader& reader : readers) {
        listen(&reader);
        all = all && reader.seen == version_[reader.key];
      }
      return all;
    });
    // Those of them that are streams, and nothing but the value's end, are told so.
    EXPECT(feeds_->counts().streams > 0);
    publish(kGone);
    Wire poll(port_);
    Wire stream(port_);
    poll.send(get(kGone, "?after=" + cursor(kGone)));
    stream.send(get(kGone, "", "Accept: text/event-stream\r\n"));
    until([&] { return stream.read().find("\"v\":1") != std::string::npos; });
    until([&] { return feeds_->find(kGone)->watching == 2; });
    feeds_->remove(kGone);
    version_.erase(kGone);
    until([&] { return poll.read().find(problem(Outcome::kUnknownFeed)) != std::string::npos; });
    until([&] {
      return stream.read().find("unknown-feed\"}\n\n\r\n0\r\n\r\n") != std::string::npos;
    });
    readers.clear();
    until([&] { return feeds_->counts().watching == 0; });
  }

  /** What the table refuses, and what is for JavaScript to answer. */
  void askOddly(Port worker) {
    Wire refused(port_);
    refused.send(get("nobody", ""));
    until([&] { return refused.read().find(problem(Outcome::kUnknownFeed)) != std::string::npos; });
    refused.read().clear();
    refused.send(get(kKeys[0], "?hold=99"));
    until([&] { return refused.read().find(problem(Outcome::kBadHold)) != std::string::npos; });
    Wire many(port_);
    many.send(post("{\"feeds\":{\"nobody\":\"\",\"" + std::string(kKeys[0]) + "\":\"\"}}"));
    until([&] { return many.read().find("unknown-feed\"},{") != std::string::npos; });
    const std::string odd[] = {
        get("a//b", ""),
        get(kKeys[0], "?after=a_b"),
        get(kKeys[0], "", "Accept: text/event-stream;q=1\r\n"),
        post("{}"),
        post("{\"feeds\":{\"\\u0061\":\"\"}}"),
        post("{\"feeds\":{\"a\":\"\",\"a\":\"\"}}"),
        post(std::string(20000, ' ')),
    };
    for (const std::string& text : odd) {
      Wire wire(port_);
      wire.send(text);
      until([&] { return wire.read().starts_with("HTTP/1.1 404"); });
    }
    // A worker has no feeds.
    Wire elsewhere(worker);
    elsewhere.send(get(kKeys[0], ""));
    until([&] { return elsewhere.read().starts_with("HTTP/1.1 404"); });
  }

  /** A poll's hold ends; a quiet stream is given a comment in every 25 seconds. */
  void comment() {
    Wire stream(port_);
    stream.send(get(kKeys[0], "?after=" + cursor(kKeys[0]), "Accept: text/event-stream\r\n"));
    Wire poll(port_);
    poll.send(get(kKeys[0], "?hold=20&after=" + cursor(kKeys[0])));
    until([&] { return feeds_->find(kKeys[0])->watching == 2; });
    constexpr std::string_view kComment = "3\r\n:\n\n\r\n";
    const auto comments = [&] {
      size_t count = 0;
      const std::string& text = stream.read();
      for (size_t at = 0; (at = text.find(kComment, at)) != text.npos; ++at) ++count;
      return count;
    };
    // The first one takes the head with it.
    until([&] { return comments() == 1; });
    pass_(24000);
    EXPECT(comments() == 1);
    std::string head;
    std::string body;
    until([&] { return poll.take(&head, &body); });
    EXPECT(body ==
           "{\"feed\":\"" + std::string(kKeys[0]) + "\",\"cursor\":\"" + cursor(kKeys[0]) + "\"}");
    pass_(1500);
    until([&] { return comments() == 2; });
    pass_(25500);
    until([&] { return comments() == 3; });
    stream.close();
    until([&] { return feeds_->counts().watching == 0; });
  }

  /** Stalled readers of an answer and of an event are closed in the end. */
  void readSlowly(uint32_t writeTime) {
    publish(kLarge, kLargeValue);
    const uint64_t skipped = feeds_->counts().skipped;
    Wire poll(port_, 1);
    Wire stream(port_, 1);
    Wire reader(port_);
    poll.send(get(kLarge, ""));
    stream.send(get(kLarge, "", "Accept: text/event-stream\r\n"));
    reader.send(get(kLarge, "", "Accept: text/event-stream\r\n"));
    until([&] { return feeds_->counts().streams == 2 && feeds_->counts().watching == 2; });
    for (int turns = 0; turns < 100; ++turns) turn_();
    for (int i = 0; i < 3; ++i) publish(kLarge, kLargeValue);
    // What the slow ones hold is the first version, once.
    EXPECT(feeds_->held() < 2 * kLargeValue);
    // The client that reads on gets the first and then the newest.
    std::string versions;
    until([&] {
      std::string& text = reader.read();
      for (size_t at = 0; (at = text.find("\"v\":", at)) != text.npos; at += 5) {
        if (at + 6 <= text.size()) versions += text.substr(at + 4, 2);
      }
      // What may be the beginning of one stays.
      text.erase(0, text.size() - std::min<size_t>(text.size(), 5));
      return versions.size() >= 4;
    });
    EXPECT(versions == "1,4,");
    EXPECT(feeds_->counts().skipped >= skipped + 2);
    for (uint32_t passed = 0; passed < writeTime + 1000; passed += 500) pass_(500);
    until([&] { return feeds_->counts().streams == 1; });
  }

  /** A long answer goes to most of its readers from a file, which ends with the last of them. */
  void sendFromFile() {
    const std::string key = "shared";
    publish(key, kLargeValue);
    std::vector<std::unique_ptr<Wire>> peers(8);
    for (auto& peer : peers) {
      peer = std::make_unique<Wire>(port_);
      peer->send(get(key, "?after=" + cursor(key)));
    }
    until([&] { return feeds_->find(key)->watching == peers.size(); });
    EXPECT(base::MemoryFile::count() == 0);
    publish(key, kLargeValue);
    until([&] { return feeds_->find(key)->watching == 0; });
    // None of them has read all: what is kept for further readers goes with a tick, the file stays.
    pass_(200);
    EXPECT(base::MemoryFile::count() == 1);
    peers.back()->reset();
    peers.pop_back();
    std::vector<std::string> bodies(peers.size());
    std::string head;
    for (size_t i = 0; i < peers.size(); ++i) {
      until([&] { return peers[i]->take(&head, &bodies[i]); });
      // The first ones are sent copies.
      EXPECT(bodies[i] == bodies[0]);
    }
    EXPECT(bodies[0].find("\"v\":" + std::to_string(version_[key]) + ",") != std::string::npos);
    pass_(200);
    EXPECT(base::MemoryFile::count() == 0);
  }

  /** Patches and lists are compressed once for all clients that read gzip, as long as the budget
   * lasts. */
  void packPatches() {
    constexpr size_t kRemembered = 8;
    constexpr size_t kPatch = 1500;
    const std::string key = "packed";
    publish(key, 4 * kRemembered * kPatch, kPatch);
    std::vector<std::unique_ptr<Wire>> peers(9);
    const std::string list =
        post("{\"delta\":true,\"feeds\":{\"" + key + "\":\"" + cursor(key) + "\"}}");
    for (size_t i = 0; i < peers.size(); ++i) {
      const std::string header = i % 3 == 0 ? "" : kGzip;
      std::string text = i % 3 < 2 ? get(key, "?delta=1&after=" + cursor(key), header) : list;
      if (i % 3 == 2) text.insert(text.find("\r\n") + 2, header);
      peers[i] = std::make_unique<Wire>(port_);
      peers[i]->send(text);
      until([&] { return feeds_->find(key)->watching == i + 1; });
    }
    publish(key, 4 * kRemembered * kPatch, kPatch);
    std::string bodies[3];
    for (size_t i = 0; i < peers.size(); ++i) {
      std::string head;
      std::string body;
      until([&] { return peers[i]->take(&head, &body); });
      EXPECT((head.find("Content-Encoding: gzip") != head.npos) == (i % 3 > 0));
      if (i < 3) bodies[i] = body;
      EXPECT(body == bodies[i % 3]);
    }
    EXPECT(bodies[1].size() < bodies[0].size() / 2);
    EXPECT(unpacked(bodies[1]) == bodies[0]);
    EXPECT(unpacked(bodies[2]) == "{\"items\":[" + bodies[0] + "]}");
    // Many different answers, one after the other, take the budget of a tick, and no more.
    for (size_t i = 2; i < kRemembered; ++i) publish(key, 4 * kRemembered * kPatch, kPatch);
    const auto isPacked = [&](uint64_t version) {
      std::string head;
      std::string body;
      peers[0]->send(get(key, "?delta=1&after=" + cursorOf(key, version), kGzip));
      until([&] { return peers[0]->take(&head, &body); });
      EXPECT(head.find("Content-Encoding: gzip") != head.npos || body.ends_with("]}"));
      return head.find("Content-Encoding: gzip") != head.npos;
    };
    pass_(200);
    EXPECT(isPacked(1));
    size_t packed = 0;
    for (size_t i = 0; i < 100; ++i) packed += isPacked(1 + i % (kRemembered - 1)) ? 1 : 0;
    EXPECT(packed > 10 && packed < 90);
    pass_(200);
    EXPECT(isPacked(1));
    // What is short is as it is.
    publish(key, 4 * kRemembered * kPatch);
    EXPECT(!isPacked(kRemembered));
  }

  /** All feeds end, and with them whatever is left. */
  void end() {
    for (const auto& [key, version] : version_) EXPECT(feeds_->remove(key) == Outcome::kOk);
    version_.clear();
    until([&] { return feeds_->counts().watching == 0 && !feeds_->busy(); });
  }

 private:
  static constexpr const char* kKeys[] = {"scores", "match/8"};
  static constexpr const char* kGone = "gone";
  static constexpr const char* kGzip = "Accept-Encoding: gzip\r\n";
  static constexpr const char* kLarge = "large";
  /** More than the kernel buffers for a stalled reader. */
  static constexpr size_t kLargeValue = 6000000;
  static constexpr size_t kValue = 2000;

  enum class Kind { kPoll, kDelta, kGzip, kMany, kPieces, kStream, kStreamOfPatches };
  static constexpr size_t kKinds = 7;

  /** A watcher that asks again after an answer, and reconnects when it was cut off. */
  struct Reader {
    Kind kind;
    std::unique_ptr<Wire> wire;
    std::string key;
    uint64_t seen = 0;  // the version that it has
    bool headed = false;
  };

  uint32_t below(uint32_t bound) { return random_() % bound; }

  template <typename Holds>
  void until(Holds&& holds) {
    for (int turns = 0; !holds(); ++turns) {
      EXPECT(turns < 200000);
      if (turns > 1000) usleep(50);
      turn_();
    }
  }

  static std::string get(const std::string& key, const std::string& query,
                         const std::string& header = {}) {
    return "GET /feed/" + key + query + " HTTP/1.1\r\nHost: sprites.test\r\n" + header + "\r\n";
  }

  static std::string post(const std::string& body) { return request("POST", "/feeds", body); }

  std::string cursorOf(const std::string& key, uint64_t version) const {
    std::string text;
    Cursor{feeds_->find(key)->cursor.epoch, version}.appendTo(&text);
    return text;
  }
  std::string cursor(const std::string& key) const { return cursorOf(key, version_.at(key)); }

  /** `more`: bytes of another member, which the patch changes, too. */
  void publish(const std::string& key, size_t length = kValue, size_t more = 0) {
    const uint64_t version = ++version_[key];
    std::string value = "{\"v\":" + std::to_string(version) + ",\"fill\":\"";
    value += std::string(length, 'x') + "\"}";
    std::string patch = R"({"op":"replace","path":"/v","value":)" + std::to_string(version) + "}";
    if (more > 0) {
      patch += R"(,{"op":"add","path":"/more","value":")" + std::string(more, 'm') + "\"}";
    }
    // Some versions have their compressed form ready.
    const std::string gzip = below(2) == 0 ? "compressed " + std::to_string(version) : "";
    const Feed* feed = feeds_->find(key);
    const uint64_t epoch = feed == nullptr ? 1 + below(1000) : feed->cursor.epoch;
    uint32_t watching;
    const Outcome outcome = feeds_->publish(
        {.key = key, .cursor = {epoch, version}, .value = value, .patch = patch, .gzip = gzip},
        &watching);
    EXPECT(outcome == Outcome::kOk);
  }

  /** Watches from the reader's version on, over a new connection where there is none. */
  void ask(Reader* reader, bool anew = true) {
    if (reader->key.empty()) reader->key = kKeys[below(2)];
    if (anew) {
      reader->wire = std::make_unique<Wire>(below(4) == 0 ? secure_ : port_);
      reader->headed = false;
    }
    const std::string& key = reader->key;
    const std::string after = reader->seen == 0 ? "" : cursorOf(key, reader->seen);
    const std::string query = "?after=" + after;
    std::string text;
    switch (reader->kind) {
      case Kind::kPoll:
      case Kind::kPieces:
        text = get(key, query);
        break;
      case Kind::kDelta:
        text = get(key, query + "&delta=1&hold=30");
        break;
      case Kind::kGzip:
        text = get(key, query, kGzip);
        break;
      case Kind::kMany:
        text = post("{\"delta\":true,\"feeds\":{\"" + key + "\":\"" + after + "\"}}");
        break;
      case Kind::kStream:
        text = get(key, query, "Accept: text/event-stream\r\n");
        break;
      case Kind::kStreamOfPatches:
        text = get(key, query + "&delta=1", "Accept: text/event-stream\r\n");
        break;
    }
    const bool pieces = reader->kind == Kind::kPieces || below(8) == 0;
    const uint32_t cut = pieces ? 1 + below(text.size() - 1) : 0;
    if (cut > 0) {
      reader->wire->send(std::string_view(text).substr(0, cut));
      turn_();
    }
    reader->wire->send(std::string_view(text).substr(cut));
  }

  /** The last version that some text tells of; 0 for none. */
  static uint64_t versionIn(std::string_view text) {
    uint64_t version = 0;
    for (const std::string_view sign : {"{\"v\":", "/v\",\"value\":", "compressed "}) {
      const size_t at = text.rfind(sign);
      if (at == text.npos) continue;
      version = std::max<uint64_t>(version, strtoull(text.data() + at + sign.size(), nullptr, 10));
    }
    return version;
  }

  static std::string unpacked(std::string_view bytes) {
    std::string text;
    sim::Inflater inflater;
    EXPECT(inflater.add(bytes, &text) && inflater.ended());
    return text;
  }

  void see(Reader* reader, uint64_t version) {
    EXPECT(version > reader->seen && version <= version_[reader->key]);
    reader->seen = version;
  }

  void listen(Reader* reader) {
    if (reader->kind >= Kind::kStream) return listenToEvents(reader);
    std::string head;
    std::string body;
    if (!reader->wire->take(&head, &body)) return;
    EXPECT(head.compare(0, 12, "HTTP/1.1 200") == 0);
    EXPECT(head.find("gzip") == head.npos || reader->kind == Kind::kGzip);
    see(reader, versionIn(body));
    ask(reader, false);
  }

  void listenToEvents(Reader* reader) {
    std::string& text = reader->wire->read();
    if (!reader->headed) {
      const size_t end = text.find("\r\n\r\n");
      if (end == text.npos) return;
      EXPECT(text.find("chunked") < end);
      text.erase(0, end + 4);
      reader->headed = true;
    }
    // An event is one chunk.
    for (;;) {
      const size_t line = text.find("\r\n");
      if (line == text.npos) return;
      const size_t length = strtoul(text.c_str(), nullptr, 16);
      if (text.size() < line + 2 + length + 2) return;
      const std::string event = text.substr(line + 2, length);
      text.erase(0, line + 2 + length + 2);
      EXPECT(event.compare(event.size() - 2, 2, "\n\n") == 0);
      if (event == ":\n\n") continue;
      EXPECT(event.compare(0, 4, "id: ") == 0);
      see(reader, versionIn(event));
    }
  }

  Feeds* const feeds_;
  const Port port_;
  const Port secure_;
  std::mt19937& random_;
  const Turn turn_;
  const Pass pass_;
  std::map<std::string, uint64_t> version_;  // the newest of each feed
};

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_DOOR_FEEDS_H_
