#include "contract.h"

namespace load {

namespace {

using std::string;
using std::string_view;

/** The wire contract of sprites. */
class SpritesContract : public Contract {
 public:
  explicit SpritesContract(const std::vector<Client>* clients) : clients_(*clients) {}

  bool joins() const override { return true; }

  void join(string* out) const override {
    out->append("POST /join");
    finishPost("", out);
  }

  void joined(const Answer& answer, Client* client) const override {
    constexpr string_view kKey = "\"id\":\"";
    size_t at = answer.body.find(kKey);
    if (answer.status != 201 || at == string_view::npos) {
      fail("join was answered " + std::to_string(answer.status) + " " + string(answer.body));
    }
    at += kKey.size();
    client->id = answer.body.substr(at, answer.body.find('"', at) - at);
  }

  void poll(size_t client, string* out) const override {
    const Client& one = clients_[client];
    out->append("GET /poll/").append(one.id).append("?ack=").append(std::to_string(one.ack));
    out->append(kHeaders).append("\r\n");
  }

  void polled(const Answer& answer, Client* client, std::vector<uint64_t>* numbers) const override {
    constexpr string_view kKey = "\"seq\":";
    size_t at = answer.body.find(kKey);
    if (answer.status != 200 || at == string_view::npos) {
      fail("a poll was answered " + std::to_string(answer.status) + " " + string(answer.body));
    }
    client->ack = numberAt(answer.body.substr(at + kKey.size()));
    takeNumbers(answer.body, numbers);
  }

  void throwSprite(size_t thrower, unsigned edge, string_view sprite, string* out) const override {
    static constexpr string_view kEdges[] = {"left", "right", "up", "down"};
    const Client& one = clients_[thrower];
    out->append("POST /throw/").append(one.id).append("/").append(kEdges[edge]);
    out->append("?n=").append(std::to_string(one.thrown));
    finishPost(sprite, out);
  }

  void leave(size_t client, string* out) const override {
    out->append("POST /leave/").append(clients_[client].id);
    finishPost("", out);
  }

 private:
  const std::vector<Client>& clients_;
};

}  // namespace

std::unique_ptr<Contract> makeSprites(const std::vector<Client>* clients) {
  return std::make_unique<SpritesContract>(clients);
}

}  // namespace load
