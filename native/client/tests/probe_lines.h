// Shared by the probes: the command line, the commands on stdin, and the grants.
#ifndef SPRITES_CLIENT_TESTS_PROBE_LINES_H_
#define SPRITES_CLIENT_TESTS_PROBE_LINES_H_

#ifdef __linux__
#include <poll.h>
#include <unistd.h>
#endif

#include <chrono>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>

namespace probe {

/** The words of a command line, one after the other. */
class Arguments {
 public:
  Arguments(int argc, char** argv) : argc_(argc), argv_(argv) {}

  /** Runs the action of each option. @throws std::invalid_argument for an unknown option */
  void runActions(const std::map<std::string, std::function<void()>>& actions) {
    while (at_ < argc_) {
      name_ = argv_[at_++];
      const auto option = actions.find(name_);
      if (option == actions.end()) throw std::invalid_argument("there is no option " + name_);
      option->second();
    }
  }

  /** Reads the option's value. @throws std::invalid_argument when there is none */
  std::string value() {
    if (at_ == argc_) throw std::invalid_argument(name_ + " needs a value");
    return argv_[at_++];
  }

  /** Reads the option's value as a number. @throws std::invalid_argument when it is none */
  unsigned number() { return static_cast<unsigned>(std::stoul(value())); }
  std::chrono::milliseconds milliseconds() { return std::chrono::milliseconds(number()); }

 private:
  int argc_;
  char** argv_;
  int at_ = 1;
  std::string name_;
};

/** Grants of a program, returned one after the other; the last one stays. "fails" stands for
 * std::nullopt. */
class Grants {
 public:
  void add(const std::string& grant) {
    const std::lock_guard<std::mutex> lock(mutex_);
    grants_.push_back(grant);
  }

  /** Returns the callback for a client, empty without grants. It calls `onRequest` each time. */
  std::function<std::optional<std::string>()> callback(std::function<void()> onRequest) {
    if (grants_.empty()) return nullptr;
    return [this, onRequest = std::move(onRequest)]() -> std::optional<std::string> {
      onRequest();
      const std::lock_guard<std::mutex> lock(mutex_);
      const std::string grant = grants_.front();
      if (grants_.size() > 1) grants_.pop_front();
      return grant == "fails" ? std::nullopt : std::optional<std::string>(grant);
    };
  }

 private:
  std::mutex mutex_;
  std::deque<std::string> grants_;
};

/**
 * Runs a client in its own thread while commands come.
 *
 * @param command takes a line; it returns false to end
 */
template <class Client, class Command>
void runThreaded(Client* client, Command command) {
  client->start();
  std::string line;
  while (std::getline(std::cin, line) && command(line)) {
  }
}

#ifdef __linux__
/**
 * Runs a client in an event loop: poll(2) on stdin and on the client's descriptor.
 *
 * @param command takes a line; it returns false to end
 * @param onTurn called after each turn of the loop
 */
template <class Client, class Command, class OnTurn>
void runPolled(Client* client, Command command, OnTurn onTurn) {
  constexpr std::chrono::milliseconds kLongest{60000};
  pollfd descriptors[2] = {{client->fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  std::string text;
  for (bool hasEnded = false; !hasEnded;) {
    const std::chrono::milliseconds timeout = client->timeout();
    poll(descriptors, 2, static_cast<int>((timeout < kLongest ? timeout : kLongest).count()));
    client->perform(std::chrono::milliseconds(0));
    onTurn();
    if (descriptors[1].revents == 0) continue;
    char bytes[4096];
    const ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
    hasEnded = length <= 0;
    if (length > 0) text.append(bytes, static_cast<size_t>(length));
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      if (!command(text.substr(0, end))) hasEnded = true;
      text.erase(0, end + 1);
    }
  }
}
#endif

}  // namespace probe

#endif  // SPRITES_CLIENT_TESTS_PROBE_LINES_H_
