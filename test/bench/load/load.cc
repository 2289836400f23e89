// The load: one process, one epoll, the same work for every contender.
//
//   open N clients ──▶ all parked ──"throw" on stdin──▶ T closed loops ──▶ drain ──▶ result
//
// Every client keeps one connection with a long poll on it and asks again, with its ack, the moment
// it is answered. T more connections throw, each in a closed loop: a sprite, its 202, the next
// sprite, in the name of a random client off a random edge, so that the sprites come down all over
// the torus. Thrower t speaks for the clients whose number is t modulo T, which keeps each client's
// own count of throws in order.
//
// A sprite carries a number of its own, and two bits for each number say whether the server took it
// and whether it arrived: at the end nothing may be missing, repeated, or arrive after a refusal.
//
// The server's CPU is read by the load itself, out of /proc, in the moment the measured window
// opens and closes, since whoever else would do it comes late on a busy machine.
//
// What it says goes to stdout, a JSON object a line: {"event":"parked"}, {"event":"begin"},
// {"event":"end"}, {"event":"result",…}, or {"event":"error","message":…}. It exits 1 where a
// sprite is missing or repeated, or the server didn't keep to its contract, and 2 on a wrong
// option.
//
// Rejected: one process a core (on two cores it takes the server's), a thread a thrower (switches
// cost more than the work), and an HTTP library (it would be the load's own limit).
#include "load.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "../watchers/measure.h"
#include "contract.h"

namespace load {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using std::string;
using std::string_view;

using watchers::cpuSeconds;
using watchers::ownCpuSeconds;

/** Connections on their way to being parked at the same time: less than any listen backlog. */
constexpr size_t kOpening = 64;
/** Clients a source address; the kernel lends an address some 28,000 ports. */
constexpr size_t kClientsPerAddress = 20000;
/** Seconds with nothing arriving after which what is still under way counts as missing. */
constexpr double kPatience = 5;
constexpr size_t kReadBytes = 256 * 1024;
constexpr int kEvents = 512;

std::unique_ptr<Contract> makeContract(const string& name, const std::vector<Client>* clients) {
  return name == "nchan" ? makeNchan(clients) : makeSprites(clients);
}

/** What is known of a sprite: it may arrive before its 202 does. */
enum : uint8_t { kTaken = 1, kArrived = 2, kRefused = 4 };

class Load {
 public:
  explicit Load(const Options& options)
      : options_(options),
        clients_(options.clients),
        contract_(makeContract(options.contract, &clients_)) {}

  /** Runs all of it. Returns the exit status. */
  int run() {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    const auto began = Clock::now();
    while (opened_ < std::min(kOpening, clients_.size())) openNext();
    turnUntil([this] { return parked_ == clients_.size(); });
    std::printf("{\"event\":\"parked\",\"clients\":%zu,\"seconds\":%.3f}\n", parked_,
                Seconds(Clock::now() - began).count());
    std::fflush(stdout);
    if (!waitForWord()) return 0;
    openThrowers();
    measure();
    drain();
    if (options_.leave) leaveAll();
    return report();
  }

 private:
  enum class Doing { kConnecting, kNothing, kThrowing, kLeaving };

  struct Thrower {
    int fd = -1;
    Doing doing = Doing::kConnecting;
    size_t client = 0;
    uint64_t number = 0;
    string rest;
  };

  // What an event is for: clients count from 0, throwers from kThrowerBit, stdin is kStdin.
  static constexpr uint64_t kThrowerBit = uint64_t{1} << 32;
  static constexpr uint64_t kStdin = uint64_t{1} << 33;

  int connectTo(size_t number, uint64_t tag) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) fail(string("socket: ") + std::strerror(errno) + " (raise `ulimit -n`)");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (clients_.size() > kClientsPerAddress) {
      setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
      address.sin_addr.s_addr =
          htonl(INADDR_LOOPBACK + static_cast<uint32_t>(number / kClientsPerAddress));
      if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
    }
    address.sin_port = htons(options_.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
        errno != EINPROGRESS) {
      fail(string("connect: ") + std::strerror(errno));
    }
    watch(fd, EPOLL_CTL_ADD, EPOLLOUT, tag);
    return fd;
  }

  void watch(int fd, int operation, uint32_t events, uint64_t tag) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    if (epoll_ctl(epoll_, operation, fd, &event) != 0) fail("epoll_ctl");
  }

  /** A connection is there: from now on it is read from. */
  void connected(int fd, uint64_t tag) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) fail(string("connect: ") + std::strerror(error));
    watch(fd, EPOLL_CTL_MOD, EPOLLIN, tag);
  }

  void sendOut(int fd) {
    if (send(fd, out_.data(), out_.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out_.size())) {
      fail("the server stopped reading, or closed a connection it had to keep");
    }
    out_.clear();
  }

  void openNext() {
    clients_[opened_].fd = connectTo(opened_, opened_);
    opened_++;
  }

  void park(size_t number) {
    contract_->poll(number, &out_);
    sendOut(clients_[number].fd);
  }

  void firstPark(size_t number) {
    clients_[number].joined = true;
    park(number);
    parked_++;
    if (opened_ < clients_.size()) openNext();
  }

  /**
   * Reads what there is on `fd` and gives each whole answer to `take`; what is left of one in
   * pieces stays in `rest`.
   */
  template <typename Take>
  void read(int fd, string* rest, Take take) {
    ssize_t length = recv(fd, in_.data(), in_.size(), 0);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) fail("the server closed a connection it had to keep");
    string_view data(in_.data(), static_cast<size_t>(length));
    if (!rest->empty()) {
      rest->append(data);
      data = *rest;
    }
    Answer answer;
    size_t used = 0;
    while (used < data.size() && readAnswer(data.substr(used), &answer)) {
      used += answer.length;
      take(answer);
    }
    string left(data.substr(used));
    *rest = std::move(left);
  }

  void serveClient(size_t number, uint32_t events) {
    Client& client = clients_[number];
    if (!client.joined && client.id.empty() && (events & EPOLLOUT) != 0) {
      connected(client.fd, number);
      if (contract_->joins()) {
        contract_->join(&out_);
        sendOut(client.fd);
      } else {
        firstPark(number);
      }
      return;
    }
    if (leaving_) return;
    read(client.fd, &client.rest, [&](const Answer& answer) {
      if (!client.joined) {
        contract_->joined(answer, &client);
        firstPark(number);
        return;
      }
      numbers_.clear();
      contract_->polled(answer, &client, &numbers_);
      for (uint64_t sprite : numbers_) arrived(sprite);
      park(number);
    });
  }

  void arrived(uint64_t number) {
    if (number >= sprites_.size()) fail("a sprite arrived that nobody threw");
    if ((sprites_[number] & kArrived) != 0) repeated_++;
    sprites_[number] |= kArrived;
    received_++;
    lastArrival_ = Clock::now();
  }

  uint64_t random() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_;
  }

  void throwNext(size_t number) {
    Thrower& thrower = throwers_[number];
    if (!throwing_) {
      thrower.doing = Doing::kNothing;
      return;
    }
    const uint64_t dice = random();
    const size_t speaksFor = (clients_.size() - number - 1) / throwers_.size() + 1;
    thrower.client = number + (dice >> 8) % speaksFor * throwers_.size();
    thrower.number = sprites_.size();
    thrower.doing = Doing::kThrowing;
    sprites_.push_back(0);
    clients_[thrower.client].thrown++;
    sprite_.assign(kNumberKey).append(std::to_string(thrower.number));
    sprite_.append(
        ",\"kind\":\"ball\",\"x\":0.25,\"y\":0.75,\"vx\":-3.5,\"vy\":1.25,\"image\":\"ball.png\"}");
    contract_->throwSprite(thrower.client, dice & 3, sprite_, &out_);
    sendOut(thrower.fd);
  }

  void leaveNext(size_t number) {
    Thrower& thrower = throwers_[number];
    thrower.doing = Doing::kNothing;
    if (left_ == clients_.size()) return;
    contract_->leave(left_++, &out_);
    thrower.doing = Doing::kLeaving;
    sendOut(thrower.fd);
  }

  void serveThrower(size_t number, uint32_t events) {
    Thrower& thrower = throwers_[number];
    if (thrower.doing == Doing::kConnecting) {
      if ((events & EPOLLOUT) == 0) return;
      connected(thrower.fd, kThrowerBit | number);
      throwNext(number);
      return;
    }
    read(thrower.fd, &thrower.rest, [&](const Answer& answer) {
      if (thrower.doing == Doing::kLeaving) {
        if (answer.status != 204) fail("leave was answered " + std::to_string(answer.status));
        leaveNext(number);
        return;
      }
      const bool taken = answer.status == 202 || answer.status == 201;
      if (!taken && answer.status != 503 && answer.status != 429) {
        fail("a throw was answered " + std::to_string(answer.status) + " " + string(answer.body));
      }
      sprites_[thrower.number] |= taken ? kTaken : kRefused;
      throwNext(number);
    });
  }

  void serveStdin() {
    char word[64];
    ssize_t length = ::read(STDIN_FILENO, word, sizeof word);
    if (length > 0) {
      heard_ = true;
    } else {
      closed_ = true;
    }
  }

  /** One turn of the loop, of at most `wait` milliseconds. */
  void turn(int wait) {
    epoll_event events[kEvents];
    int ready = epoll_wait(epoll_, events, kEvents, wait);
    for (int i = 0; i < ready; i++) {
      const uint64_t tag = events[i].data.u64;
      if (tag == kStdin) {
        serveStdin();
      } else if ((tag & kThrowerBit) != 0) {
        serveThrower(tag & ~kThrowerBit, events[i].events);
      } else {
        serveClient(tag, events[i].events);
      }
    }
  }

  template <typename Done>
  void turnUntil(Done done) {
    while (!done()) turn(100);
  }

  /** Holds the clients until a line on stdin says to throw; false where stdin ends instead. */
  bool waitForWord() {
    watch(STDIN_FILENO, EPOLL_CTL_ADD, EPOLLIN, kStdin);
    turnUntil([this] { return heard_ || closed_; });
    return heard_;
  }

  void openThrowers() {
    throwing_ = true;
    throwers_.resize(std::min(options_.throwers, clients_.size()));
    for (size_t i = 0; i < throwers_.size(); i++) {
      throwers_[i].fd = connectTo(clients_.size() + i, kThrowerBit | i);
    }
  }

  void measure() {
    auto until = Clock::now() + Seconds(options_.warmup);
    turnUntil([&] { return Clock::now() >= until || closed_; });
    std::printf("{\"event\":\"begin\"}\n");
    std::fflush(stdout);
    const uint64_t receivedBefore = received_;
    const double ownBefore = ownCpuSeconds();
    const double cpuBefore = cpuSeconds(options_.pids);
    const auto began = Clock::now();
    const auto end = began + Seconds(options_.seconds);
    turnUntil([&] { return Clock::now() >= end || closed_; });
    seconds_ = Seconds(Clock::now() - began).count();
    cpu_ = cpuSeconds(options_.pids) - cpuBefore;
    counted_ = received_ - receivedBefore;
    loadCpu_ = ownCpuSeconds() - ownBefore;
    std::printf("{\"event\":\"end\"}\n");
    std::fflush(stdout);
  }

  bool idle() const {
    return std::all_of(throwers_.begin(), throwers_.end(),
                       [](const Thrower& thrower) { return thrower.doing == Doing::kNothing; });
  }

  uint64_t count(uint8_t mask, uint8_t value) const {
    return static_cast<uint64_t>(
        std::count_if(sprites_.begin(), sprites_.end(),
                      [&](uint8_t sprite) { return (sprite & mask) == value; }));
  }

  /** Throws no more and waits for what is under way, as long as some of it still comes. */
  void drain() {
    throwing_ = false;
    lastArrival_ = Clock::now();
    turnUntil([this] {
      const bool late = Seconds(Clock::now() - lastArrival_).count() > kPatience;
      return late || (idle() && count(kTaken | kArrived, kTaken) == 0);
    });
  }

  void leaveAll() {
    if (!idle()) return;
    leaving_ = true;
    for (const Client& client : clients_) {
      epoll_ctl(epoll_, EPOLL_CTL_DEL, client.fd, nullptr);
    }
    for (size_t i = 0; i < throwers_.size(); i++) leaveNext(i);
    turnUntil([this] { return left_ == clients_.size() && idle(); });
  }

  int report() const {
    const uint64_t missing = count(kTaken | kArrived, kTaken);
    const uint64_t uncalled = count(kRefused | kArrived, kRefused | kArrived);
    const uint64_t unanswered = count(kTaken | kRefused, 0);
    const double sprites = static_cast<double>(std::max<uint64_t>(counted_, 1));
    std::printf(
        "{\"event\":\"result\",\"sprites\":%llu,\"seconds\":%.3f,\"rate\":%.1f,\"cpu\":%.3f,"
        "\"cpuPerSprite\":%.3f,\"loadCpuPerSprite\":%.3f,\"sent\":%zu,\"received\":%llu,"
        "\"refused\":%llu,\"unanswered\":%llu,\"missing\":%llu,\"repeated\":%llu,\"uncalled\":%llu}"
        "\n",
        static_cast<unsigned long long>(counted_), seconds_,
        static_cast<double>(counted_) / seconds_, cpu_, cpu_ / sprites * 1e6,
        loadCpu_ / sprites * 1e6, sprites_.size(), static_cast<unsigned long long>(received_),
        static_cast<unsigned long long>(count(kRefused, kRefused)),
        static_cast<unsigned long long>(unanswered), static_cast<unsigned long long>(missing),
        static_cast<unsigned long long>(repeated_), static_cast<unsigned long long>(uncalled));
    return missing + unanswered + repeated_ + uncalled == 0 ? 0 : 1;
  }

  const Options options_;
  std::vector<Client> clients_;
  std::vector<Thrower> throwers_;
  std::unique_ptr<Contract> contract_;
  int epoll_ = -1;
  size_t opened_ = 0, parked_ = 0, left_ = 0;
  bool throwing_ = false, leaving_ = false, heard_ = false, closed_ = false;
  std::vector<char> in_ = std::vector<char>(kReadBytes);
  string out_, sprite_;
  std::vector<uint64_t> numbers_;
  std::vector<uint8_t> sprites_;  // by number: kTaken, kArrived, kRefused
  uint64_t received_ = 0, repeated_ = 0, counted_ = 0;
  double seconds_ = 0, cpu_ = 0, loadCpu_ = 0;
  Clock::time_point lastArrival_;
  uint64_t random_ = 88172645463325252u;
};

}  // namespace

int runLoad(const Options& options) { return Load(options).run(); }

}  // namespace load
