// Servers of a world without sockets: pools with seams, clients that record their sprites, and a
// network that loses, doubles and reorders messages.
#ifndef SPRITES_TEST_WORLD_SCENE_H_
#define SPRITES_TEST_WORLD_SCENE_H_

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "expect.h"
#include "fuzz.h"
#include "state_scene.h"
#include "world/crossings.h"

namespace server::test {

/** A client, and the sprites that it has received and not acked. */
struct Client {
  Id id;
  uint64_t seen = 0;
  std::vector<std::pair<uint64_t, uint64_t>> unacked;  // sequence, sprite
};

/** The clients of one server, and the edges by which sprites have come to them. */
struct Clients {
  std::vector<Client> clients;
  std::map<uint64_t, std::string> edges;
};

/** The place where a sprite was received. */
struct Reception {
  size_t server;
  uint32_t record;
  std::string from;
};

/** `memory`: bytes for all mailboxes and outboxes of a server. */
inline PoolOptions worldOptions(uint64_t memory) {
  return {.capacity = 400,
          .hold = 3600,
          .lease = 3600,
          .maxSprite = 400,
          .mailboxSprites = 4,
          .mailboxBytes = 2000,
          .mailboxMemory = memory,
          .answerBytes = 600};
}

constexpr uint64_t kNever = uint64_t{1} << 40;

struct ServerOptions {
  size_t number, count;  // of `count` servers; peers are numbered as servers are
  uint64_t life;
  uint64_t doubt = kNever;
  uint64_t now = 0;
  const scene::Folder* state = nullptr;  // where its state is kept
  uint64_t memory = 60000;
};

/** One process of a server. */
class Server : private PollResponder {
 public:
  explicit Server(const ServerOptions& options)
      : number(options.number),
        life(options.life),
        pool(worldOptions(options.memory), nullptr, options.now),
        store(open(options.state)),
        seams(*pool.enterWorld()),
        crossings(&pool, life) {
    pool.setResponder(PollHolder::kDoor, this);
    for (size_t i = 0; i < options.count; ++i) {
      // Unless a ring says more, the store knows every process.
      seams.peer(pool.findOrAddPeer(std::to_string(i))).epoch = kMaxFrameNumber;
    }
    pool.openSeams({.outboxBytes = 1 << 20, .doubt = options.doubt}, [this] { isWoken = true; });
  }

  bool join() {
    Client client;
    if (pool.join({}, 0, &client.id) != Outcome::kOk) return false;
    clients.push_back(client);
    endTurn();
    return true;
  }

  /** Hands the clients' knowledge from one process to the next. */
  Clients takeClients() { return {std::move(clients), std::move(edges_)}; }
  void setClients(Clients handedOver) {
    clients = std::move(handedOver.clients);
    edges_ = std::move(handedOver.edges);
  }

  void leave(size_t at) {
    pool.leave(clients[at].id);
    clients.erase(clients.begin() + static_cast<ptrdiff_t>(at));
    endTurn();
  }

  Outcome throwOne(size_t at, Edge edge, uint64_t sprite, size_t padding) {
    const Outcome outcome = throwWithinTurn(at, edge, sprite, padding);
    endTurn();
    return outcome;
  }

  /** Throws a sprite in a turn that is not over. */
  Outcome throwWithinTurn(size_t at, Edge edge, uint64_t sprite, size_t padding) {
    const std::string text =
        "{\"u\":" + std::to_string(sprite) + ",\"p\":\"" + std::string(padding, 'x') + "\"}";
    return pool.throwSprite(clients[at].id, edge, kNoNumber, text, 0);
  }

  /** Acks all received sprites, and parks if there are no more. */
  void poll(size_t at, std::map<uint64_t, std::vector<Reception>>* received) {
    Client& client = clients[at];
    for (const auto& [sequence, sprite] : client.unacked) {
      (*received)[sprite].push_back({number, client.id.record(), edges_[sprite]});
    }
    client.unacked.clear();
    const PollResult result =
        pool.poll(client.id, client.seen, 0, PollHolder::kDoor, client.id.record());
    EXPECT(result.outcome == Outcome::kOk);
    if (!result.answer.empty()) read(&client, result.answer);
    if (store != nullptr) endTurn();
  }

  /** Ends a turn, which must be written. */
  void endTurn() { EXPECT(tryEndTurn() == Commit::kDone); }

  /** Ends a turn, which need not be written. */
  Commit tryEndTurn() {
    answers_.clear();
    const Commit commit = store == nullptr ? Commit::kDone : store->commit();
    if (commit == Commit::kDone) answerPolls();
    return commit;
  }

  void check() const {
    const PoolCounts& counts = pool.counts();
    scene::expectLaw(pool);
    EXPECT(seams.waitingSprites() <= counts.waiting);
    if (counts.waiting == 0) EXPECT(counts.mailboxBytes == 0);
  }

  const size_t number;
  const uint64_t life;
  std::vector<Client> clients;
  Pool pool;
  std::string stateAtStart;  // as text
  StoredFeedsAndNotes stored;
  const std::unique_ptr<StateStore> store;
  Seams& seams;
  Crossings crossings;
  bool isWoken = false;
  bool tampered = false;  // sprites from other servers may be anything

 private:
  std::unique_ptr<StateStore> open(const scene::Folder* state) {
    if (state == nullptr) return nullptr;
    auto opened = std::make_unique<StateStore>(scene::storeOptions(*state), &pool, &stored);
    const Recovery recovery = opened->recover(&stored);
    if (!recovery.ok()) {
      fprintf(stderr, "%s: %s\n", recovery.file.c_str(), recovery.problem.c_str());
    }
    EXPECT(recovery.ok() && opened->start() == 0);
    stateAtStart = scene::stateOf(pool);
    return opened;
  }

  void answer(uint32_t token, std::string_view body) override {
    answers_.emplace_back(token, body);
  }

  void answerPolls() {
    pool.answerPolls();
    for (const auto& [record, body] : answers_) {
      for (Client& client : clients) {
        if (client.id.record() == record) read(&client, body);
      }
    }
  }

  /** Notes the sprites of an answer. */
  void read(Client* client, std::string_view body) {
    constexpr const char* kItem = "{\"seq\":";
    const std::string text(body);
    const char* at = strchr(text.c_str(), '[');
    while (at != nullptr && (at = strstr(at + 1, kItem)) != nullptr) {
      uint64_t sequence;
      uint64_t sprite;
      char from[8];
      int length = 0;
      EXPECT(sscanf(at, "{\"seq\":%" SCNu64 ",\"from\":\"%7[a-z]\",\"sprite\":%n", &sequence, from,
                    &length) == 2);
      EXPECT(length > 0 && sequence == client->seen + 1);
      client->seen = sequence;
      if (sscanf(at + length, "{\"u\":%" SCNu64, &sprite) == 1) {
        client->unacked.emplace_back(sequence, sprite);
        edges_[sprite] = from;
      } else {
        EXPECT(tampered);
      }
    }
  }

  std::vector<std::pair<uint32_t, std::string>> answers_;
  std::map<uint64_t, std::string> edges_;
};

/** The head of the sprite {}. */
constexpr CrosserHead kEmptySprite = {.length = 2};

/** Returns a frame with the sprite {} under each of these heads. */
inline std::string frameText(const FrameHead& head, const std::vector<CrosserHead>& sprites = {}) {
  std::string text;
  FrameWriter writer(head, &text);
  for (const CrosserHead& sprite : sprites) writer.add(sprite, "{}");
  writer.finish();
  return text;
}

/** A message in flight. */
struct Message {
  size_t from, to;
  std::string bytes;
};

/** Delivers another server's answer, if there is one. */
inline void deliverAnswer(Server* to, size_t from, const std::string& answer, uint64_t now) {
  if (answer.empty()) return;
  std::string none;
  to->crossings.receive(static_cast<PeerNumber>(from), answer, now, &none);
  EXPECT(none.empty());
}

/**
 * Delivers all due messages of one server to the other, and the immediate answers. Returns the
 * number of messages.
 */
inline uint64_t deliverMessages(Server* from, Server* to, uint64_t now) {
  uint64_t messages = 0;
  const auto sender = static_cast<PeerNumber>(from->number);
  std::string frame;
  for (; from->crossings.nextMessage(static_cast<PeerNumber>(to->number), now, &frame);
       frame.clear()) {
    std::string answer;
    EXPECT(to->crossings.receive(sender, frame, now, &answer) != FrameRefusal::kMalformed);
    to->endTurn();
    deliverAnswer(from, to->number, answer, now);
    messages += answer.empty() ? 1 : 2;
  }
  return messages;
}

/** Returns the ring as `me` sees it: `in` are its servers, in order, with their rows. */
inline Ring ringOf(const std::vector<std::pair<size_t, uint32_t>>& in, size_t me, bool open) {
  Ring ring;
  ring.isOpen = open;
  size_t own = in.size();
  uint32_t rows = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i].first == me) {
      own = i;
    } else {
      ring.peers.push_back(static_cast<PeerNumber>(in[i].first));
      rows = std::max(rows, in[i].second);
    }
  }
  ring.accepted = ring.peers;
  if (own == in.size() || in.size() == 1) {
    Ring alone;
    alone.accepted = ring.accepted;
    return alone;
  }
  ring.rows.resize(rows);
  for (size_t step = 1; step < in.size(); ++step) {
    for (const Edge edge : {Edge::kLeft, Edge::kRight}) {
      const auto side = static_cast<size_t>(edge);
      const size_t at = (own + (edge == Edge::kRight ? step : in.size() - step)) % in.size();
      const auto peer = static_cast<PeerNumber>(in[at].first);
      if (step == 1) ring.neighbors.peer[side] = peer;
      for (uint32_t row = 0; row < in[at].second; ++row) {
        if (ring.rows[row].peer[side] == kNoPeer) ring.rows[row].peer[side] = peer;
      }
    }
  }
  return ring;
}

}  // namespace server::test

#endif  // SPRITES_TEST_WORLD_SCENE_H_
