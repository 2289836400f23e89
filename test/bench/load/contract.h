// How a contender is spoken to: one class a contract, one file each.
//
// To add a contract: a subclass in a file of its own, its name in `makeContract` (load.cc), and the
// contender that speaks it in contenders.js.
#ifndef SPRITES_BENCH_LOAD_CONTRACT_H_
#define SPRITES_BENCH_LOAD_CONTRACT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answer.h"

namespace load {

/** One client; what is in it is for its contract. */
struct Client {
  int fd = -1;
  bool joined = false;
  std::string id;
  uint64_t ack = 0;
  uint64_t thrown = 0;
  std::string since, tag;  // nchan's cursor
  std::string rest;        // of an answer that came in pieces
};

/** How a contender is spoken to. */
class Contract {
 public:
  virtual ~Contract() = default;
  /** Whether a client has to join before it polls. */
  virtual bool joins() const = 0;
  virtual void join(std::string* out) const = 0;
  virtual void joined(const Answer& answer, Client* client) const = 0;
  virtual void poll(size_t client, std::string* out) const = 0;
  /** Takes a poll's answer: the client's cursor moves on, the sprites' numbers go to `numbers`. */
  virtual void polled(const Answer& answer, Client* client,
                      std::vector<uint64_t>* numbers) const = 0;
  virtual void throwSprite(size_t thrower, unsigned edge, std::string_view sprite,
                           std::string* out) const = 0;
  virtual void leave(size_t client, std::string* out) const = 0;
};

/** The end of every request's first line, and the headers of all. */
constexpr std::string_view kHeaders =
    " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n";
/** Begins every sprite; its number follows. */
constexpr std::string_view kNumberKey = "{\"number\":";

/** Writes what follows a POST's target: the headers and the body. */
void finishPost(std::string_view body, std::string* out);

/** Finds the numbers of the sprites in a poll's answer. */
void takeNumbers(std::string_view body, std::vector<uint64_t>* numbers);

// Each makes the contract of its name. It reads `clients`, which must outlive it.
std::unique_ptr<Contract> makeSprites(const std::vector<Client>* clients);
std::unique_ptr<Contract> makeNchan(const std::vector<Client>* clients);

}  // namespace load

#endif  // SPRITES_BENCH_LOAD_CONTRACT_H_
