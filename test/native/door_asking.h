// Requests of the front door that are not hot, a part of door_test. The clients use any method and
// framing, in pieces, pipelined among hot requests, over connections that may be lost at any
// moment. JavaScript answers at once, later or never, lets a feed answer, parks, and asks for
// bodies that wait for 100 Continue. Each request is asked once, with the body that was sent, and
// answered once and in order, or its connection closes.
#ifndef SPRITES_TEST_NATIVE_DOOR_ASKING_H_
#define SPRITES_TEST_NATIVE_DOOR_ASKING_H_

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
#include "http/door.h"
#include "peer.h"

namespace server::test {

constexpr uint32_t kOddBody = 40000;
constexpr uint32_t kOddHead = 8192;
inline const BodyBounds kOddBodies = {.most = {{"odd", kOddBody}}};

/** The reaction of JavaScript to a request. */
enum class How : uint8_t {
  kNow,
  kLater,
  kAbandon,
  kAbandonLater,
  kPark,     // parks, and answers later
  kForever,  // parks, until the connection is gone
  kWatch,    // a feed answers at once
  kWait,     // a feed answers when it has news
};

/** A request and its expected result. */
struct Odd {
  How how;
  std::string body;  // expected body of the question
  std::string method;
  int status = 200;
  bool hot = false;      // JavaScript must not be asked
  bool last = false;     // its connection closes after the answer
  bool tooLong = false;  // JavaScript hears that the body is too long
  bool awaited = false;  // its body waits for 100 Continue
  bool refused = false;  // JavaScript does not ask for the body
  bool asked = false;
  bool continued = false;  // the client got 100 Continue
};

/** Most connections that go on with their input in a turn, by a TurnClock. */
constexpr uint64_t kResumes = 50;

/** The clock of a turn's shares. Each call takes 2 microseconds: 100 microseconds are 50 calls. */
class TurnClock {
 public:
  static uint64_t now() { return now_ += 100 / kResumes; }
  /** Uses up the share: further requests wait for a later turn. */
  static void useUpTheTurn() { now_ += 300; }
  /** Ends a rest: see TurnShare. */
  static void passRest() { now_ += 3000; }

 private:
  inline static uint64_t now_ = 0;
};

/** JavaScript's side of one door. */
class OddRoutes {
 public:
  using Odds = std::map<uint64_t, Odd>;

  static constexpr const char* kFeed = "odd";

  /** `cursor` returns the cursor of the feed's newest version. */
  OddRoutes(std::mt19937* random, Odds* odds, std::function<std::string()> cursor)
      : random_(*random), odds_(*odds), cursor_(std::move(cursor)) {}

  void setDoor(Door* door) { door_ = door; }

  /** Sends some of the late answers. */
  void sayLater() {
    for (size_t i = 0; i < later_.size();) {
      if (random_() % 4 != 0) {
        ++i;
        continue;
      }
      const auto [ticket, n] = later_[i];
      later_.erase(later_.begin() + static_cast<long>(i));
      Odd& odd = odds_.at(n);
      if (odd.awaited && !odd.refused && !odd.asked) {
        door_->proceed(ticket);
        continue;
      }
      if (odd.how == How::kAbandonLater) {
        door_->abandon(ticket);
        continue;
      }
      // A feed may answer without the body.
      if (!odd.asked && odd.how >= How::kWatch) {
        act(ticket, n, odd.how);
        continue;
      }
      parked_.erase(keyOf(ticket));
      answer(ticket, n);
    }
  }

  bool done() const { return later_.empty() && parked_.empty(); }
  uint64_t asked() const { return asked_; }
  uint64_t lost() const { return lost_; }

  void ask(const Question& question) {
    ++asked_;
    if (random_() % 8 == 0) TurnClock::useUpTheTurn();
    const size_t at = question.head.target.find("/odd/");
    EXPECT(at != std::string_view::npos);
    const uint64_t n = strtoull(question.head.target.data() + at + 5, nullptr, 10);
    Odd& odd = odds_.at(n);
    EXPECT(!odd.hot && !odd.asked && question.head.method == odd.method);
    if (question.body.state == Body::State::kAwaited) {
      EXPECT(odd.awaited);
      if (!odd.refused && random_() % 2 == 0) return door_->proceed(question.ticket);
      return later_.push_back({question.ticket, n});
    }
    odd.asked = true;
    EXPECT((question.body.state == Body::State::kTooLong) == odd.tooLong);
    EXPECT(odd.tooLong || question.body.bytes == odd.body);
    act(question.ticket, n, odd.how);
  }

  void gone(Ticket ticket) {
    const auto parked = parked_.find(keyOf(ticket));
    EXPECT(parked != parked_.end());  // only for a parked request, and only once
    const uint64_t n = parked->second;
    parked_.erase(parked);
    ++lost_;
    // Too late: the answer must have no effect.
    answer(ticket, n);
  }

  /** The same for a request that may have been answered meanwhile. */
  void goneLate(Ticket ticket) {
    if (parked_.contains(keyOf(ticket))) gone(ticket);
  }

 private:
  static uint64_t keyOf(Ticket ticket) {
    return uint64_t{ticket.generation} << 32 | ticket.connection;
  }

  void act(Ticket ticket, uint64_t n, How how) {
    switch (how) {
      case How::kNow:
        return answer(ticket, n);
      case How::kLater:
      case How::kAbandonLater:
        return later_.push_back({ticket, n});
      case How::kAbandon:
        return door_->abandon(ticket);
      case How::kPark:
        later_.push_back({ticket, n});
        [[fallthrough]];
      case How::kForever:
        EXPECT(parked_.emplace(keyOf(ticket), n).second);
        if (!door_->park(ticket)) parked_.erase(keyOf(ticket));
        return;
      case How::kWatch:
      case How::kWait: {
        const std::string after = how == How::kWait ? cursor_() : "";
        const FeedRequest wanted = {kFeed, after};
        WatchOptions kind = {};
        kind.hold = kNoFeedHold;
        door_->watch(ticket, &wanted, 1, kind);
      }
    }
  }

  void answer(Ticket ticket, uint64_t n) {
    const Odd& odd = odds_.at(n);
    const std::string body = "body " + std::to_string(n);
    door_->respond(ticket, "HTTP/1.1 " + std::to_string(odd.status) + " Said\r\n",
                   "N: " + std::to_string(n) +
                       "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n",
                   body);
  }

  std::mt19937& random_;
  Odds& odds_;
  const std::function<std::string()> cursor_;
  Door* door_ = nullptr;
  std::vector<std::pair<Ticket, uint64_t>> later_;
  std::map<uint64_t, uint64_t> parked_;  // requests by the keys of their tickets
  uint64_t asked_ = 0;
  uint64_t lost_ = 0;
};

/** The side of the clients. */
class DoorAsking {
 public:
  using Turn = std::function<void()>;

  DoorAsking(OddRoutes::Odds* odds, std::mt19937* random, Turn turn)
      : odds_(*odds), random_(*random), turn_(std::move(turn)) {}

  /** `count` clients connect to a port; `watches`: it has feeds. */
  void come(Port port, int count, bool watches) {
    for (int i = 0; i < count; ++i) {
      clients_.push_back(std::make_unique<Client>(port));
      write(clients_.back().get(), watches);
    }
  }

  /**
   * Runs until each client has its answers, or has lost its connection. `publish` publishes the
   * feed that some wait for.
   */
  void run(const std::function<void()>& publish) {
    for (int turns = 0; !clients_.empty(); ++turns) {
      EXPECT(turns < 200000);
      if (turns > 2000) usleep(50);
      for (size_t i = 0; i < clients_.size();) {
        Client& client = *clients_[i];
        send(&client);
        if (below(600) == 0) {
          below(2) == 0 ? client.wire.reset() : client.wire.close();
          clients_.erase(clients_.begin() + static_cast<long>(i));
          continue;
        }
        if (listen(&client)) {
          clients_.erase(clients_.begin() + static_cast<long>(i));
          continue;
        }
        ++i;
      }
      if (below(8) == 0) publish();
      turn_();
    }
  }

 private:
  struct Piece {
    std::string text;
    uint64_t waits = 0;  // number of a request: waits for its 100 Continue, or its answer
  };

  struct Client {
    explicit Client(Port port) : wire(port) {}
    Wire wire;
    std::vector<uint64_t> odds;
    std::vector<Piece> pieces;
    size_t sent = 0;      // pieces sent
    size_t offset = 0;    // bytes sent of the next piece
    size_t answered = 0;  // answered requests
    bool ends = false;    // ends its half after the last piece
    bool ended = false;
  };

  uint32_t below(uint32_t bound) { return random_() % bound; }

  std::string chunked(const std::string& body) {
    std::string text;
    for (size_t at = 0; at < body.size();) {
      const size_t length =
          std::min<size_t>(1 + below(below(4) == 0 ? 20000 : 700), body.size() - at);
      char size[32];
      snprintf(size, sizeof size, below(2) == 0 ? "%zx" : "%04zX", length);
      text += size;
      if (below(8) == 0) text += ";name=\"a;b\"";
      text += "\r\n" + body.substr(at, length) + "\r\n";
      at += length;
    }
    text += below(4) == 0 ? "000\r\n" : "0\r\n";
    if (below(4) == 0) text += "Sum: 7\r\nContent-Length: 9\r\n";
    return text + "\r\n";
  }

  /** Writes a client's requests. The last one may end its connection. */
  void write(Client* client, bool watches) {
    size_t bytes = 0;
    bool watched = false;
    for (uint32_t left = 1 + below(12); left > 0; --left) {
      const uint64_t n = ++requests_;
      Odd& odd = odds_[n];
      client->odds.push_back(n);
      const Piece piece = below(3) == 0 ? hot(&odd) : cold(client, n, &odd, watches);
      watched = watched || odd.how == How::kPark || odd.how >= How::kWatch;
      bytes += piece.text.size();
      client->pieces.push_back(piece);
      if (odd.last) break;
    }
    // A watching or parked client that ends its half counts as gone; so does one that has sent too
    // much ahead.
    const bool forever = odds_[client->odds.back()].how == How::kForever;
    client->ends = (forever || below(3) == 0) && bytes < 16000 && !watched;
  }

  Piece hot(Odd* odd) {
    odd->hot = true;
    odd->status = 204;
    return {request("POST", "/leave/00000000-0000-4000-8000-000000000000")};
  }

  Piece cold(Client* client, uint64_t n, Odd* odd, bool watches) {
    constexpr const char* kMethods[] = {"GET", "PUT", "POST", "DELETE", "OPTIONS", "BREW!"};
    odd->method = kMethods[below(6)];
    odd->how = static_cast<How>(below(watches ? 8 : 6));
    odd->last =
        odd->how == How::kAbandon || odd->how == How::kAbandonLater || odd->how == How::kForever;
    const bool old = below(6) == 0;
    std::string text = below(6) == 0 ? "\r\n" : "";
    text += odd->method + (below(4) == 0 ? " http://sprites.test" : " ") + "/odd/" +
            std::to_string(n) + (old ? " HTTP/1.0\r\n" : " HTTP/1.1\r\nHost: sprites.test\r\n");
    if (old && below(2) == 0) {
      text += "Connection: Keep-Alive\r\n";
    } else if (old || below(8) == 0) {
      if (!old) text += "Connection: x, Close\r\n";
      odd->last = true;
    }
    if (below(10) == 0) return spoilt(text, odd);
    const bool chunks = !old && below(2) == 0;
    if (below(3) > 0) odd->body = std::string(below(below(3) == 0 ? kOddBody : 300), 'b');
    if (below(12) == 0) return tooLong(text, chunks, odd);
    const std::string framing =
        chunks ? "Transfer-Encoding: Chunked\r\n"
               : "Content-Length: " + std::to_string(odd->body.size()) + "\r\n";
    const std::string body = chunks ? chunked(odd->body) : odd->body;
    if (below(4) == 0 && !body.empty()) {
      text += "Expect: 100-Continue\r\n";
      // 1.0 has no expectations.
      if (!old) return awaited(client, text + framing + "\r\n", body, n, odd);
    }
    return {text + framing + "\r\n" + body};
  }

  /** Adds the head now. The body follows after 100 Continue, or a little later without it. */
  Piece awaited(Client* client, const std::string& head, const std::string& body, uint64_t n,
                Odd* odd) {
    odd->awaited = true;
    odd->refused = below(4) == 0;
    odd->last = odd->last || odd->refused;
    client->pieces.push_back({head});
    return {body, n};
  }

  Piece tooLong(const std::string& text, bool chunks, Odd* odd) {
    odd->tooLong = odd->last = true;
    odd->status = 413;
    if (odd->how == How::kWatch || odd->how == How::kWait) odd->how = How::kNow;
    if (!chunks) {
      return {text + "Content-Length: " + std::to_string(kOddBody + 1) + "\r\n\r\n" +
              std::string(below(2000), 'b')};
    }
    return {text + "Transfer-Encoding: chunked\r\n\r\n" + chunked(std::string(kOddBody + 1, 'b'))};
  }

  /** A request that is refused without asking JavaScript. */
  Piece spoilt(std::string text, Odd* odd) {
    odd->hot = odd->last = true;
    odd->how = How::kNow;
    odd->status = 400;
    switch (below(6)) {
      case 0:
        odd->status = 431;
        return {text + "Large: " + std::string(kOddHead, 'x')};
      case 1:
        odd->status = 417;
        // 1.0 has no expectations.
        if (text.find("HTTP/1.0") != text.npos) odd->status = 400, text += " x";
        return {text + "Expect: more\r\n\r\n"};
      case 2:
        return {text + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"};
      case 3:
        return {text + "A: b\r\n c\r\n\r\n"};
      case 4:
        return {text + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n"};
      default:
        if (text.find("HTTP/1.0") != text.npos) return {text + "A\r\n"};
        return {text + "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n"};
    }
  }

  /** Sends some more bytes. */
  void send(Client* client) {
    if (client->sent == client->pieces.size()) {
      if (client->ends && !client->ended) client->wire.end();
      client->ended = client->ends;
      return;
    }
    const Piece& piece = client->pieces[client->sent];
    // Some clients do not wait forever for 100 Continue (RFC 9110, section 10.1.1).
    if (piece.waits != 0 && !odds_[piece.waits].continued &&
        (odds_[piece.waits].refused || below(40) != 0)) {
      return;
    }
    const size_t left = piece.text.size() - client->offset;
    const size_t length = below(3) == 0 ? std::min<size_t>(left, 1 + below(2000)) : left;
    client->wire.send(std::string_view(piece.text).substr(client->offset, length));
    client->offset += length;
    if (client->offset < piece.text.size()) return;
    ++client->sent;
    client->offset = 0;
  }

  /** Reads answers. Returns true when no further one will come. */
  bool listen(Client* client) {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    for (;;) {
      if (client->answered == client->odds.size()) return true;
      const uint64_t n = client->odds[client->answered];
      Odd& odd = odds_[n];
      std::string& text = client->wire.read();
      if (text.starts_with(kContinue)) {
        EXPECT(odd.awaited && !odd.refused && !odd.continued);
        odd.continued = true;
        text.erase(0, kContinue.size());
      }
      std::string head;
      std::string body;
      if (!client->wire.take(&head, &body)) {
        if (!client->wire.over()) return false;
        const bool abandoned =
            odd.how == How::kAbandon || odd.how == How::kAbandonLater || odd.how == How::kForever;
        EXPECT(abandoned && text.empty());
        return true;
      }
      check(n, odd, head, body);
      ++client->answered;
      if (!odd.last) continue;
      EXPECT(client->answered == client->odds.size());
      EXPECT(head.find("Connection: close") != head.npos);
      EXPECT(text.empty());
    }
  }

  static void check(uint64_t n, const Odd& odd, const std::string& head, const std::string& body) {
    EXPECT(atoi(head.c_str() + 9) == odd.status);
    if (odd.hot) return;
    const bool fed = odd.how >= How::kWatch;
    EXPECT(odd.asked || odd.refused);
    if (fed) {
      EXPECT(body.find("\"feed\":\"odd\"") != body.npos);
    } else {
      EXPECT(body == "body " + std::to_string(n));
      EXPECT(head.find("N: " + std::to_string(n)) != head.npos);
    }
  }

  OddRoutes::Odds& odds_;
  std::mt19937& random_;
  const Turn turn_;
  std::vector<std::unique_ptr<Client>> clients_;
  uint64_t requests_ = 0;
};

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_DOOR_ASKING_H_
