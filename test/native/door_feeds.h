// Watchers of feeds at the front door, a part of door_test: the cases of time, stalled sockets and
// shared bytes. (test/native/simulate.cc has their histories.)
#ifndef SPRITES_TEST_NATIVE_DOOR_FEEDS_H_
#define SPRITES_TEST_NATIVE_DOOR_FEEDS_H_

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expect.h"
#include "feeds/feeds.h"
#include "simulated_documents.h"
#include "wire.h"

namespace server::test {

/** A clock that advances by one with each call: a budget is a number of answers. */
inline uint64_t countingClock() {
  static uint64_t looks = 0;
  return ++looks;
}

/**
 * Does a turn's share of the table's work: some answers, and the compressions that JavaScript would
 * be asked for.
 */
inline void stepFeeds(Feeds* feeds) {
  feeds->step(40);
  for (const Feeds::Task& want : feeds->takeTasks()) {
    feeds->setCompressed(want.key, want.cursor,
                         "compressed " + std::to_string(want.cursor.version));
  }
}

class DoorFeeds {
 public:
  using Turn = std::function<void()>;
  using PassTime = std::function<void(uint64_t milliseconds)>;

  /** `secure` is a TLS port. */
  DoorFeeds(Feeds* feeds, Port port, Port secure, Turn turn, PassTime pass)
      : feeds_(feeds),
        port_(port),
        secure_(secure),
        turn_(std::move(turn)),
        passTime_(std::move(pass)) {}

  /** A poll's hold ends; a quiet stream gets a comment every 25 seconds. */
  void comment() {
    publish(kScores);
    Wire stream(secure_);
    stream.send(get(kScores, "?after=" + cursor(kScores), "Accept: text/event-stream\r\n"));
    Wire poll(port_);
    poll.send(get(kScores, "?hold=20&after=" + cursor(kScores)));
    until([&] { return (stream.read(), feeds_->find(kScores)->watching == 2); });
    constexpr std::string_view kComment = "3\r\n:\n\n\r\n";
    const auto comments = [&] {
      size_t count = 0;
      const std::string& text = stream.read();
      for (size_t at = 0; (at = text.find(kComment, at)) != text.npos; ++at) ++count;
      return count;
    };
    // The first comment comes with the head.
    until([&] { return comments() == 1; });
    passTime_(24000);
    EXPECT(comments() == 1);
    std::string head;
    std::string body;
    until([&] { return poll.readAnswer(&head, &body); });
    EXPECT(body ==
           "{\"feed\":\"" + std::string(kScores) + "\",\"cursor\":\"" + cursor(kScores) + "\"}");
    passTime_(1500);
    until([&] { return comments() == 2; });
    passTime_(25500);
    until([&] { return comments() == 3; });
    stream.close();
    until([&] { return feeds_->counts().watching == 0; });
  }

  /** Stalled readers of an answer and of an event are closed after writeTime. */
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
    // The slow readers hold the first version, once.
    EXPECT(feeds_->unsentBytes() < 2 * kLargeValue);
    // The client that reads gets the first version, then the newest (conflated).
    std::string versions;
    until([&] {
      std::string& text = reader.read();
      for (size_t at = 0; (at = text.find("\"v\":", at)) != text.npos; at += 5) {
        if (at + 6 <= text.size()) versions += text.substr(at + 4, 2);
      }
      // Keeps bytes that may be the beginning of a version.
      text.erase(0, text.size() - std::min<size_t>(text.size(), 5));
      return versions.size() >= 4;
    });
    EXPECT(versions == "1,4,");
    EXPECT(feeds_->counts().skipped >= skipped + 2);
    for (uint32_t passed = 0; passed < writeTime + 1000; passed += 500) passTime_(500);
    until([&] { return feeds_->counts().streams == 1; });
  }

  /** A reader that has taken a part has the whole time again. */
  void readInParts(uint32_t writeTime) {
    publish(kLarge, kLargeValue);
    Wire wire(port_, 1 << 16);
    wire.send(get(kLarge, ""));
    until([&] { return !wire.read(1).empty(); });
    passTime_(writeTime - 1000);
    // So much that the kernel takes more from the server.
    until([&] { return wire.read(1).size() > 1800000; });
    passTime_(writeTime - 1000);
    std::string head;
    std::string body;
    until([&] { return wire.readAnswer(&head, &body); });
  }

  /** A long answer is sent to most readers from a file, which is closed after the last of them. */
  void sendFromFile() {
    const std::string key = "shared";
    publish(key, kLargeValue);
    std::vector<std::unique_ptr<Wire>> wires(8);
    for (auto& wire : wires) {
      wire = std::make_unique<Wire>(port_);
      wire->send(get(key, "?after=" + cursor(key)));
    }
    until([&] { return feeds_->find(key)->watching == wires.size(); });
    EXPECT(base::MemoryFile::count() == 0);
    publish(key, kLargeValue);
    until([&] { return feeds_->find(key)->watching == 0; });
    // No reader has read all. A tick frees the messages kept for further readers; the file stays.
    passTime_(200);
    EXPECT(base::MemoryFile::count() == 1);
    wires.back()->reset();
    wires.pop_back();
    std::vector<std::string> bodies(wires.size());
    std::string head;
    for (size_t i = 0; i < wires.size(); ++i) {
      until([&] { return wires[i]->readAnswer(&head, &bodies[i]); });
      // The first readers get copies.
      EXPECT(bodies[i] == bodies[0]);
    }
    EXPECT(bodies[0].find("\"v\":" + std::to_string(versions_[key]) + ",") != std::string::npos);
    passTime_(200);
    EXPECT(base::MemoryFile::count() == 0);
  }

  /** Patches and lists are compressed once for all clients that read gzip, within the budget. */
  void packPatches() {
    constexpr size_t kRemembered = 8;
    constexpr size_t kPatch = 1500;
    const std::string key = "packed";
    publish(key, 4 * kRemembered * kPatch, kPatch);
    std::vector<std::unique_ptr<Wire>> wires(9);
    const std::string list =
        post("{\"delta\":true,\"feeds\":{\"" + key + "\":\"" + cursor(key) + "\"}}");
    for (size_t i = 0; i < wires.size(); ++i) {
      const std::string header = i % 3 == 0 ? "" : kGzip;
      std::string text = i % 3 < 2 ? get(key, "?delta=1&after=" + cursor(key), header) : list;
      if (i % 3 == 2) text.insert(text.find("\r\n") + 2, header);
      wires[i] = std::make_unique<Wire>(i < 3 ? secure_ : port_);
      wires[i]->send(text);
      until([&] { return (wires[i]->read(), feeds_->find(key)->watching == i + 1); });
    }
    publish(key, 4 * kRemembered * kPatch, kPatch);
    std::string bodies[3];
    for (size_t i = 0; i < wires.size(); ++i) {
      std::string head;
      std::string body;
      until([&] { return wires[i]->readAnswer(&head, &body); });
      EXPECT((head.find("Content-Encoding: gzip") != head.npos) == (i % 3 > 0));
      if (i < 3) bodies[i] = body;
      EXPECT(body == bodies[i % 3]);
    }
    EXPECT(bodies[1].size() < bodies[0].size() / 2);
    EXPECT(unpacked(bodies[1]) == bodies[0]);
    EXPECT(unpacked(bodies[2]) == "{\"items\":[" + bodies[0] + "]}");
    // Many different answers use the budget of a tick, and no more.
    for (size_t i = 2; i < kRemembered; ++i) publish(key, 4 * kRemembered * kPatch, kPatch);
    const auto isPacked = [&](uint64_t version) {
      std::string head;
      std::string body;
      wires[0]->send(get(key, "?delta=1&after=" + cursorOf(version), kGzip));
      until([&] { return wires[0]->readAnswer(&head, &body); });
      EXPECT(head.find("Content-Encoding: gzip") != head.npos || body.ends_with("]}"));
      return head.find("Content-Encoding: gzip") != head.npos;
    };
    passTime_(200);
    EXPECT(isPacked(1));
    size_t packed = 0;
    for (size_t i = 0; i < 100; ++i) packed += isPacked(1 + i % (kRemembered - 1)) ? 1 : 0;
    EXPECT(packed > 10 && packed < 90);
    passTime_(200);
    EXPECT(isPacked(1));
    // A short answer is sent plain.
    publish(key, 4 * kRemembered * kPatch);
    EXPECT(!isPacked(kRemembered));
  }

  /** All feeds end, and with them all watchers. */
  void removeAll() {
    for (const auto& [key, version] : versions_) EXPECT(feeds_->remove(key) == Outcome::kOk);
    versions_.clear();
    until([&] { return feeds_->counts().watching == 0 && !feeds_->hasWork(); });
  }

 private:
  static constexpr const char* kScores = "scores";
  static constexpr const char* kGzip = "Accept-Encoding: gzip\r\n";
  static constexpr const char* kLarge = "large";
  /** Bytes of a value: more than the kernel buffers for a stalled reader. */
  static constexpr size_t kLargeValue = 6000000;
  static constexpr size_t kValue = 2000;

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

  static std::string cursorOf(uint64_t version) {
    std::string text;
    Cursor{1, version}.appendTo(&text);
    return text;
  }
  std::string cursor(const std::string& key) const { return cursorOf(versions_.at(key)); }

  /** `more`: bytes of a further member, which the patch changes too. */
  void publish(const std::string& key, size_t length = kValue, size_t more = 0) {
    const uint64_t version = ++versions_[key];
    std::string value = "{\"v\":" + std::to_string(version) + ",\"fill\":\"";
    value += std::string(length, 'x') + "\"}";
    std::string patch = R"({"op":"replace","path":"/v","value":)" + std::to_string(version) + "}";
    if (more > 0) {
      patch += R"(,{"op":"add","path":"/more","value":")" + std::string(more, 'm') + "\"}";
    }
    uint32_t watching;
    const Outcome outcome = feeds_->publish(
        {.key = key, .cursor = {1, version}, .value = value, .patch = patch}, &watching);
    EXPECT(outcome == Outcome::kOk);
  }

  static std::string unpacked(std::string_view bytes) {
    std::string text;
    sim::Inflater inflater;
    EXPECT(inflater.add(bytes, &text) && inflater.ended());
    return text;
  }

  Feeds* const feeds_;
  const Port port_;
  const Port secure_;
  const Turn turn_;
  const PassTime passTime_;
  std::map<std::string, uint64_t> versions_;  // newest version of each feed
};

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_DOOR_FEEDS_H_
