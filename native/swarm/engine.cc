#include "engine.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <exception>
#include <string>

#include "clients.h"
#include "core.h"
#include "lanes.h"
#include "options.h"

namespace swarm {

namespace {

constexpr int kEvents = 256;

/** The names of all Counters, in their order. */
constexpr std::array kCounterNames = {
    "connections", "closed",  "joined",        "rejoined", "left",      "answers",
    "empty",       "retries", "superseded",    "sent",     "resends",   "accepted",
    "delivered",   "queued",  "duplicates",    "refused",  "unsettled", "received",
    "resent",      "doubles", "unackedLosses", "foreign",  "mangled",   "badAnswers"};

void appendMember(std::string* json, const char* name, uint64_t value) {
  json->append(",\"");
  json->append(name);
  json->append("\":");
  json->append(std::to_string(value));
}

/** @return the number after the command's first word; 0: none */
template <typename Number = uint64_t>
Number argumentOf(const std::string& command) {
  const size_t space = command.find(' ');
  Number number = 0;
  if (space != std::string::npos) {
    std::from_chars(command.data() + space + 1, command.data() + command.size(), number);
  }
  return number;
}

// One engine: the loop around the clients and the lanes, the parent's commands, and the reports to
// the parent.
class Engine {
 public:
  /** @param tls sessions of the connections, nullptr for plain TCP; outlives the engine */
  Engine(const Options& options, Tls* tls)
      : core_(options, tls),
        clients_(&core_),
        lanes_(&core_, &clients_),
        endsAt_(core_.now + options.limit * kSecond) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = Token{Token::kParent, 0, 0}.pack();
    epoll_ctl(core_.epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
  }

  /** Runs until the parent sends quit or is gone, or until the time limit. */
  void run() {
    nextTick_ = core_.now;
    while (isRunning_) {
      wait();
      core_.wheel.sweep(core_.now, UINT32_MAX, [this](uint32_t item) {
        if (item < clients_.size()) {
          clients_.timeout(item);
        } else {
          lanes_.timeout(item - clients_.size());
        }
      });
      clients_.pump();
      lanes_.pump();
      if (core_.now >= nextTick_) tick();
      if (core_.now >= endsAt_) isRunning_ = false;
    }
  }

 private:
  /** Waits for events, the next turn of the wheel, the next due sprite or the next tick, and
   * handles the events. */
  void wait() {
    const uint64_t now = clockNow();
    const uint64_t busyTime = now - core_.now;
    uint64_t nanoseconds = clients_.isReconnecting() ? 0 : std::min(kTickNs, lanes_.untilDue());
    nanoseconds = std::min(nanoseconds, nextTick_ > now ? nextTick_ - now : 0);
    epoll_event events[kEvents];
    int count = -1;
    if (hasEpollPwait2_) {
      const timespec timeout = {0, static_cast<long>(nanoseconds)};
      count = static_cast<int>(
          syscall(SYS_epoll_pwait2, core_.epoll, events, kEvents, &timeout, nullptr, 0));
      if (count < 0 && errno == ENOSYS) hasEpollPwait2_ = false;
    }
    if (!hasEpollPwait2_) {
      count =
          epoll_wait(core_.epoll, events, kEvents, static_cast<int>((nanoseconds + kMs - 1) / kMs));
    }
    core_.now = clockNow();
    // Events end the sleep early. A sleep beyond its timeout means that this process could not run.
    const uint64_t slept = core_.now - now;
    lateness_ = std::max(lateness_, busyTime + (slept > nanoseconds ? slept - nanoseconds : 0));
    for (int i = 0; i < count; i++) dispatch(events[i]);
  }

  void dispatch(const epoll_event& event) {
    const Token token = Token::unpack(event.data.u64);
    switch (token.kind) {
      case Token::kClient:
        clients_.handle(token.index, token.generation, event.events);
        return;
      case Token::kLane:
        lanes_.handle(token.index, token.generation, event.events);
        return;
      case Token::kParent:
        isRunning_ = readCommands();
        return;
    }
  }

  /** @return false when the parent has sent quit or is gone */
  bool readCommands() {
    char bytes[4096];
    const ssize_t bytesRead = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (bytesRead <= 0) return bytesRead < 0 && (errno == EAGAIN || errno == EINTR);
    commands_.append(bytes, bytesRead);
    for (size_t end; isRunning_ && (end = commands_.find('\n')) != std::string::npos;) {
      execute(commands_.substr(0, end));
      commands_.erase(0, end + 1);
    }
    return isRunning_;
  }

  void execute(const std::string& command) {
    const std::string word = command.substr(0, command.find(' '));
    if (word == "open") {
      clients_.open();
    } else if (word == "throw") {
      lanes_.startThrowing(argumentOf(command) * kMs);
      lateness_ = 0;
    } else if (word == "stop") {
      lanes_.stopThrowing();
    } else if (word == "drop") {
      clients_.drop();
    } else if (word == "back") {
      clients_.reconnect(argumentOf(command) * kMs);
    } else if (word == "account") {
      tick();
      core_.account.write(core_.options.process, STDOUT_FILENO);
      isRunning_ = writeAll(STDOUT_FILENO, "{\"type\":\"account\",\"bytes\":0}\n");
    } else if (word == "clients") {
      clients_.setClientCount(static_cast<uint32_t>(argumentOf(command)));
    } else if (word == "rate") {
      lanes_.setRate(argumentOf<double>(command));
    } else if (word == "batch") {
      core_.batches.begin(argumentOf(command));
    } else if (word == "quit") {
      isRunning_ = false;
    }
  }

  void tick() {
    nextTick_ = core_.now + core_.options.tick * kMs;
    std::string json = "{\"type\":\"tick\",\"bytes\":0";
    appendMember(&json, "process", core_.options.process);
    appendMember(&json, "at", core_.now);
    appendMember(&json, "parked", clients_.countIn(Clients::kParked));
    appendMember(&json, "members", clients_.members());
    appendMember(&json, "pending", lanes_.pending());
    appendMember(&json, "behind", lanes_.behind());
    appendMember(&json, "over", lanes_.throwingEnds());
    appendMember(&json, "lateness", lateness_);
    const auto counts = std::bit_cast<std::array<uint64_t, kCounterNames.size()>>(core_.count);
    for (size_t i = 0; i < kCounterNames.size(); i++)
      appendMember(&json, kCounterNames[i], counts[i]);
    for (const auto& [name, tally] :
         {std::pair{"refusals", &core_.refusals}, std::pair{"problems", &core_.problems},
          std::pair{"connectErrors", &core_.connectErrors}}) {
      json.append(",\"" + std::string(name) + "\":");
      tally->print(&json);
    }
    for (const auto& [name, histogram] :
         {std::pair{"arrival", &core_.arrivalTimes}, std::pair{"answer", &core_.answerTimes},
          std::pair{"probe", &core_.probeTimes}}) {
      json.append(",\"" + std::string(name) + "\":");
      histogram->takeInterval(&json);
    }
    if (core_.options.batched) {
      json.append(",\"batches\":");
      core_.batches.print(&json);
    }
    json.append("}\n");
    if (!writeAll(STDOUT_FILENO, json)) isRunning_ = false;
  }

  Core core_;
  Clients clients_;
  Lanes lanes_;
  std::string commands_;  // received bytes of commands, up to an incomplete line
  uint64_t endsAt_;
  uint64_t nextTick_ = 0;
  uint64_t lateness_ = 0;  // longest turn of the loop since throwing began, without its sleep
  bool isRunning_ = true;
  bool hasEpollPwait2_ = true;  // the kernel knows epoll_pwait2
};

}  // namespace

int run(int argc, char** argv, const TlsFactory& openTls) {
  Options options;
  std::string error;
  if (!readOptions(argc, argv, &options, &error)) {
    fprintf(stderr, "swarm: %s (this program is started by bin/sprites-swarm)\n", error.c_str());
    return 2;
  }
  // Ctrl-C and the hangup of a terminal reach the whole process group, and SIGTERM of systemd the
  // whole unit. The engine ignores them, since the parent first asks for the account.
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_TIMERSLACK, 1);
  raiseFileLimit();
  try {
    const std::unique_ptr<Tls> tls = openTls ? openTls(options.serverName) : nullptr;
    Engine engine(options, tls.get());
    engine.run();
  } catch (const std::exception& failure) {
    fprintf(stderr, "swarm: %s\n", failure.what());
    return 2;
  }
  return 0;
}

}  // namespace swarm
