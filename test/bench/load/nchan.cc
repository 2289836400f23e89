#include <unistd.h>

#include "contract.h"

namespace load {

namespace {

using std::string;
using std::string_view;

/** nchan: a client is a channel, its neighbors come from a torus by arithmetic, here. */
class NchanContract : public Contract {
 public:
  explicit NchanContract(const std::vector<Client>* clients) : clients_(*clients) {
    while ((columns_ + 1) * (columns_ + 1) <= clients_.size()) columns_++;
  }

  bool joins() const override { return false; }
  void join(string*) const override {}
  void joined(const Answer&, Client*) const override {}

  void poll(size_t client, string* out) const override {
    const Client& one = clients_[client];
    out->append("GET /poll?id=").append(channel(client)).append(kHeaders);
    if (!one.since.empty()) {
      out->append("If-Modified-Since: ").append(one.since);
      out->append("\r\nIf-None-Match: ").append(one.tag).append("\r\n");
    }
    out->append("\r\n");
  }

  void polled(const Answer& answer, Client* client, std::vector<uint64_t>* numbers) const override {
    if (answer.status == 304 || answer.status == 408) return;
    if (answer.status != 200) fail("a poll was answered " + std::to_string(answer.status));
    client->since = header(answer.head, "last-modified:");
    client->tag = header(answer.head, "etag:");
    takeNumbers(answer.body, numbers);
  }

  void throwSprite(size_t thrower, unsigned edge, string_view sprite, string* out) const override {
    const size_t count = clients_.size();
    const size_t steps[] = {count - 1, 1, count - columns_, columns_};
    out->append("POST /throw?id=").append(channel((thrower + steps[edge]) % count));
    finishPost(sprite, out);
  }

  void leave(size_t, string*) const override { fail("nchan knows no leave"); }

 private:
  /** Of this load alone: nchan keeps for the next one what nobody fetched. */
  string channel(size_t client) const {
    return std::to_string(getpid()) + "-" + std::to_string(client);
  }

  const std::vector<Client>& clients_;
  size_t columns_ = 1;
};

}  // namespace

std::unique_ptr<Contract> makeNchan(const std::vector<Client>* clients) {
  return std::make_unique<NchanContract>(clients);
}

}  // namespace load
