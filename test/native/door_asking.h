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
#include "wire.h"

namespace server::test {

constexpr uint32_t kMaxColdBody = 40000;
constexpr uint32_t kMaxColdHead = 8192;
inline const BodyBounds kColdBodyBounds = {.most = {{"odd", kMaxColdBody}}};

/** The reaction of JavaScript to a request. */
enum class Reaction : uint8_t {
  kNow,
  kLater,
  kAbandon,
  kAbandonLater,
  kPark,            // parks, and answers later
  kParkForever,     // parks, until the connection is gone
  kWatchAtOnce,     // a feed answers at once
  kWatchUntilNews,  // a feed answers when it has news
};

/** A request and its expected result. */
struct ColdExchange {
  Reaction reaction;
  std::string body;  // expected body of the question
  std::string method;
  int status = 200;
  bool isHot = false;             // JavaScript must not be asked
  bool closesConnection = false;  // its connection closes after the answer
  bool isTooLong = false;         // JavaScript hears that the body is too long
  bool isAwaited = false;         // its body waits for 100 Continue
  bool isRefused = false;         // JavaScript does not ask for the body
  bool wasAsked = false;
  bool gotContinue = false;  // the client got 100 Continue
};

/** Most connections that go on with their input in a turn, by a TurnClock. */
constexpr uint64_t kMaxResumesATurn = 50;

/** The clock of a turn's shares. Each call takes 2 microseconds: 100 microseconds are 50 calls. */
class TurnClock {
 public:
  static uint64_t now() { return now_ += 100 / kMaxResumesATurn; }
  /** Uses up the share: further requests wait for a later turn. */
  static void useUpTheTurn() { now_ += 300; }
  /** Ends a rest: see TurnShare. */
  static void passRest() { now_ += 3000; }

 private:
  inline static uint64_t now_ = 0;
};

/** JavaScript's side of one door. */
class SimulatedScript {
 public:
  using Exchanges = std::map<uint64_t, ColdExchange>;

  static constexpr const char* kFeed = "odd";

  /** `cursor` returns the cursor of the feed's newest version. */
  SimulatedScript(std::mt19937* random, Exchanges* exchanges, std::function<std::string()> cursor)
      : random_(*random), exchanges_(*exchanges), cursor_(std::move(cursor)) {}

  void setDoor(Door* door) { door_ = door; }

  /** Sends some of the late answers. */
  void sendLateAnswers() {
    for (size_t i = 0; i < lateAnswers_.size();) {
      if (random_() % 4 != 0) {
        ++i;
        continue;
      }
      const auto [ticket, n] = lateAnswers_[i];
      lateAnswers_.erase(lateAnswers_.begin() + static_cast<long>(i));
      ColdExchange& exchange = exchanges_.at(n);
      if (exchange.isAwaited && !exchange.isRefused && !exchange.wasAsked) {
        door_->proceed(ticket);
        continue;
      }
      if (exchange.reaction == Reaction::kAbandonLater) {
        door_->abandon(ticket);
        continue;
      }
      // A feed may answer without the body.
      if (!exchange.wasAsked && exchange.reaction >= Reaction::kWatchAtOnce) {
        react(ticket, n, exchange.reaction);
        continue;
      }
      parked_.erase(keyOf(ticket));
      answer(ticket, n);
    }
  }

  bool isDone() const { return lateAnswers_.empty() && parked_.empty(); }
  uint64_t askedCount() const { return askedCount_; }
  uint64_t lostCount() const { return lostCount_; }

  void onRequest(const ScriptRequest& question) {
    ++askedCount_;
    if (random_() % 8 == 0) TurnClock::useUpTheTurn();
    const size_t at = question.head.target.find("/odd/");
    EXPECT(at != std::string_view::npos);
    const uint64_t n = strtoull(question.head.target.data() + at + 5, nullptr, 10);
    ColdExchange& exchange = exchanges_.at(n);
    EXPECT(!exchange.isHot && !exchange.wasAsked && question.head.method == exchange.method);
    if (question.body.state == Body::State::kAwaited) {
      EXPECT(exchange.isAwaited);
      if (!exchange.isRefused && random_() % 2 == 0) return door_->proceed(question.ticket);
      return lateAnswers_.push_back({question.ticket, n});
    }
    exchange.wasAsked = true;
    EXPECT((question.body.state == Body::State::kTooLong) == exchange.isTooLong);
    EXPECT(exchange.isTooLong || question.body.bytes == exchange.body);
    react(question.ticket, n, exchange.reaction);
  }

  void onParkedClosed(Ticket ticket) {
    const auto parked = parked_.find(keyOf(ticket));
    EXPECT(parked != parked_.end());  // only for a parked request, and only once
    const uint64_t n = parked->second;
    parked_.erase(parked);
    ++lostCount_;
    // Too late: the answer must have no effect.
    answer(ticket, n);
  }

  /** The same for a request that may have been answered meanwhile. */
  void onParkedClosedLate(Ticket ticket) {
    if (parked_.contains(keyOf(ticket))) onParkedClosed(ticket);
  }

 private:
  static uint64_t keyOf(Ticket ticket) {
    return uint64_t{ticket.generation} << 32 | ticket.connection;
  }

  void react(Ticket ticket, uint64_t n, Reaction reaction) {
    switch (reaction) {
      case Reaction::kNow:
        return answer(ticket, n);
      case Reaction::kLater:
      case Reaction::kAbandonLater:
        return lateAnswers_.push_back({ticket, n});
      case Reaction::kAbandon:
        return door_->abandon(ticket);
      case Reaction::kPark:
        lateAnswers_.push_back({ticket, n});
        [[fallthrough]];
      case Reaction::kParkForever:
        EXPECT(parked_.emplace(keyOf(ticket), n).second);
        if (!door_->park(ticket)) parked_.erase(keyOf(ticket));
        return;
      case Reaction::kWatchAtOnce:
      case Reaction::kWatchUntilNews: {
        const std::string after = reaction == Reaction::kWatchUntilNews ? cursor_() : "";
        const FeedRequest wanted = {kFeed, after};
        WatchOptions how = {};
        how.hold = kNoFeedHold;
        door_->watch(ticket, &wanted, 1, how);
      }
    }
  }

  void answer(Ticket ticket, uint64_t n) {
    const ColdExchange& exchange = exchanges_.at(n);
    const std::string body = "body " + std::to_string(n);
    door_->respond(ticket, "HTTP/1.1 " + std::to_string(exchange.status) + " Said\r\n",
                   "N: " + std::to_string(n) +
                       "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n",
                   body);
  }

  std::mt19937& random_;
  Exchanges& exchanges_;
  const std::function<std::string()> cursor_;
  Door* door_ = nullptr;
  std::vector<std::pair<Ticket, uint64_t>> lateAnswers_;
  std::map<uint64_t, uint64_t> parked_;  // requests by the keys of their tickets
  uint64_t askedCount_ = 0;
  uint64_t lostCount_ = 0;
};

/** The side of the clients. */
class ColdClients {
 public:
  using Turn = std::function<void()>;

  ColdClients(SimulatedScript::Exchanges* exchanges, std::mt19937* random, Turn turn)
      : exchanges_(*exchanges), random_(*random), turn_(std::move(turn)) {}

  /** `count` clients connect to a port; `hasFeeds`: it has feeds. */
  void connect(Port port, int count, bool hasFeeds) {
    for (int i = 0; i < count; ++i) {
      clients_.push_back(std::make_unique<Client>(port));
      writeRequests(clients_.back().get(), hasFeeds);
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
        if (readAnswers(&client)) {
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
    uint64_t waitsForRequest = 0;  // number of a request: waits for its 100 Continue, or its answer
  };

  struct Client {
    explicit Client(Port port) : wire(port) {}
    Wire wire;
    std::vector<uint64_t> numbers;
    std::vector<Piece> pieces;
    size_t sent = 0;        // pieces sent
    size_t offset = 0;      // bytes sent of the next piece
    size_t answered = 0;    // answered requests
    bool endsHalf = false;  // ends its half after the last piece
    bool hasEnded = false;
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
  void writeRequests(Client* client, bool hasFeeds) {
    size_t bytes = 0;
    bool mayWatch = false;
    for (uint32_t left = 1 + below(12); left > 0; --left) {
      const uint64_t n = ++requests_;
      ColdExchange& exchange = exchanges_[n];
      client->numbers.push_back(n);
      const Piece piece =
          below(3) == 0 ? hotRequest(&exchange) : coldRequest(client, n, &exchange, hasFeeds);
      mayWatch = mayWatch || exchange.reaction == Reaction::kPark ||
                 exchange.reaction >= Reaction::kWatchAtOnce;
      bytes += piece.text.size();
      client->pieces.push_back(piece);
      if (exchange.closesConnection) break;
    }
    // A watching or parked client that ends its half counts as gone; so does one that has sent too
    // much ahead.
    const bool parksForever = exchanges_[client->numbers.back()].reaction == Reaction::kParkForever;
    client->endsHalf = (parksForever || below(3) == 0) && bytes < 16000 && !mayWatch;
  }

  Piece hotRequest(ColdExchange* exchange) {
    exchange->isHot = true;
    exchange->status = 204;
    return {kAnyRequest};
  }

  Piece coldRequest(Client* client, uint64_t n, ColdExchange* exchange, bool hasFeeds) {
    constexpr const char* kMethods[] = {"GET", "PUT", "POST", "DELETE", "OPTIONS", "BREW!"};
    exchange->method = kMethods[below(6)];
    exchange->reaction = static_cast<Reaction>(below(hasFeeds ? 8 : 6));
    exchange->closesConnection = exchange->reaction == Reaction::kAbandon ||
                                 exchange->reaction == Reaction::kAbandonLater ||
                                 exchange->reaction == Reaction::kParkForever;
    const bool isHttp10 = below(6) == 0;
    std::string text = below(6) == 0 ? "\r\n" : "";
    text += exchange->method + (below(4) == 0 ? " http://sprites.test" : " ") + "/odd/" +
            std::to_string(n) +
            (isHttp10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\nHost: sprites.test\r\n");
    if (isHttp10 && below(2) == 0) {
      text += "Connection: Keep-Alive\r\n";
    } else if (isHttp10 || below(8) == 0) {
      if (!isHttp10) text += "Connection: x, Close\r\n";
      exchange->closesConnection = true;
    }
    if (below(10) == 0) return malformedRequest(text, exchange);
    const bool chunks = !isHttp10 && below(2) == 0;
    if (below(3) > 0) exchange->body = std::string(below(below(3) == 0 ? kMaxColdBody : 300), 'b');
    if (below(12) == 0) return tooLongRequest(text, chunks, exchange);
    const std::string framing =
        chunks ? "Transfer-Encoding: Chunked\r\n"
               : "Content-Length: " + std::to_string(exchange->body.size()) + "\r\n";
    const std::string body = chunks ? chunked(exchange->body) : exchange->body;
    if (below(4) == 0 && !body.empty()) {
      text += "Expect: 100-Continue\r\n";
      // 1.0 has no expectations.
      if (!isHttp10) return awaitedBody(client, text + framing + "\r\n", body, n, exchange);
    }
    return {text + framing + "\r\n" + body};
  }

  /** Adds the head now. The body follows after 100 Continue, or a little later without it. */
  Piece awaitedBody(Client* client, const std::string& head, const std::string& body, uint64_t n,
                    ColdExchange* exchange) {
    exchange->isAwaited = true;
    exchange->isRefused = below(4) == 0;
    exchange->closesConnection = exchange->closesConnection || exchange->isRefused;
    client->pieces.push_back({head});
    return {body, n};
  }

  Piece tooLongRequest(const std::string& text, bool chunks, ColdExchange* exchange) {
    exchange->isTooLong = exchange->closesConnection = true;
    exchange->status = 413;
    if (exchange->reaction == Reaction::kWatchAtOnce ||
        exchange->reaction == Reaction::kWatchUntilNews)
      exchange->reaction = Reaction::kNow;
    if (!chunks) {
      return {text + "Content-Length: " + std::to_string(kMaxColdBody + 1) + "\r\n\r\n" +
              std::string(below(2000), 'b')};
    }
    return {text + "Transfer-Encoding: chunked\r\n\r\n" +
            chunked(std::string(kMaxColdBody + 1, 'b'))};
  }

  /** A request that is refused without asking JavaScript. */
  Piece malformedRequest(std::string text, ColdExchange* exchange) {
    exchange->isHot = exchange->closesConnection = true;
    exchange->reaction = Reaction::kNow;
    exchange->status = 400;
    switch (below(6)) {
      case 0:
        exchange->status = 431;
        return {text + "Large: " + std::string(kMaxColdHead, 'x')};
      case 1:
        exchange->status = 417;
        // 1.0 has no expectations.
        if (text.find("HTTP/1.0") != text.npos) exchange->status = 400, text += " x";
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
      if (client->endsHalf && !client->hasEnded) client->wire.endHalf();
      client->hasEnded = client->endsHalf;
      return;
    }
    const Piece& piece = client->pieces[client->sent];
    // Some clients do not wait forever for 100 Continue (RFC 9110, section 10.1.1).
    if (piece.waitsForRequest != 0 && !exchanges_[piece.waitsForRequest].gotContinue &&
        (exchanges_[piece.waitsForRequest].isRefused || below(40) != 0)) {
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
  bool readAnswers(Client* client) {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    for (;;) {
      if (client->answered == client->numbers.size()) return true;
      const uint64_t n = client->numbers[client->answered];
      ColdExchange& exchange = exchanges_[n];
      std::string& text = client->wire.read();
      if (text.starts_with(kContinue)) {
        EXPECT(exchange.isAwaited && !exchange.isRefused && !exchange.gotContinue);
        exchange.gotContinue = true;
        text.erase(0, kContinue.size());
      }
      std::string head;
      std::string body;
      if (!client->wire.readAnswer(&head, &body)) {
        if (!client->wire.isClosed()) return false;
        const bool abandoned = exchange.reaction == Reaction::kAbandon ||
                               exchange.reaction == Reaction::kAbandonLater ||
                               exchange.reaction == Reaction::kParkForever;
        EXPECT(abandoned && text.empty());
        return true;
      }
      check(n, exchange, head, body);
      ++client->answered;
      if (!exchange.closesConnection) continue;
      EXPECT(client->answered == client->numbers.size());
      EXPECT(head.find("Connection: close") != head.npos);
      EXPECT(text.empty());
    }
  }

  static void check(uint64_t n, const ColdExchange& exchange, const std::string& head,
                    const std::string& body) {
    EXPECT(atoi(head.c_str() + 9) == exchange.status);
    if (exchange.isHot) return;
    const bool isAnsweredByFeed = exchange.reaction >= Reaction::kWatchAtOnce;
    EXPECT(exchange.wasAsked || exchange.isRefused);
    if (isAnsweredByFeed) {
      EXPECT(body.find("\"feed\":\"odd\"") != body.npos);
    } else {
      EXPECT(body == "body " + std::to_string(n));
      EXPECT(head.find("N: " + std::to_string(n)) != head.npos);
    }
  }

  SimulatedScript::Exchanges& exchanges_;
  std::mt19937& random_;
  const Turn turn_;
  std::vector<std::unique_ptr<Client>> clients_;
  uint64_t requests_ = 0;
};

}  // namespace server::test

#endif  // SPRITES_TEST_NATIVE_DOOR_ASKING_H_
