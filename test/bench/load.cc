// The benchmark's load: one process, one epoll, the same work for every contender.
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
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using std::string;
using std::string_view;

/** Connections on their way to being parked at the same time: less than any listen backlog. */
constexpr size_t kOpening = 64;
/** Clients a source address; the kernel lends an address some 28,000 ports. */
constexpr size_t kClientsPerAddress = 20000;
/** Seconds with nothing arriving after which what is still under way counts as missing. */
constexpr double kPatience = 5;
constexpr size_t kReadBytes = 256 * 1024;
constexpr int kEvents = 512;

/** Ends the program with an error line; what the server did is in `message`. */
[[noreturn]] void fail(const string& message) {
  string quoted;
  for (char c : message) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  std::printf("{\"event\":\"error\",\"message\":\"%s\"}\n", quoted.c_str());
  std::fflush(stdout);
  std::exit(1);
}

struct Options {
  uint16_t port = 0;
  string contract = "sprites";
  size_t clients = 5000;
  size_t throwers = 64;
  double warmup = 1;      // seconds of throwing before the window opens
  double seconds = 5;     // the window
  bool leave = false;     // every client leaves at the end
  std::vector<int> pids;  // the server's processes
};

/** One HTTP answer, its spans pointing into the bytes read. */
struct Answer {
  int status;
  string_view head;
  string_view body;
  size_t length;  // head and body
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/** Value of the header `name` (lower case, with its colon), empty where there is none. */
string_view header(string_view head, string_view name) {
  size_t line = head.find("\r\n");
  while (line != string_view::npos && line + 2 + name.size() <= head.size()) {
    line += 2;
    size_t end = std::min(head.find("\r\n", line), head.size());
    bool same = std::equal(name.begin(), name.end(), head.begin() + static_cast<long>(line),
                           [](char a, char b) { return a == lower(b); });
    if (same) {
      size_t value = std::min(head.find_first_not_of(' ', line + name.size()), end);
      return head.substr(value, end - value);
    }
    line = head.find("\r\n", line);
  }
  return {};
}

uint64_t numberAt(string_view text) {
  uint64_t number = 0;
  for (char c : text) {
    if (c < '0' || c > '9') break;
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  return number;
}

/** Reads an answer at the start of `data`; false while it is not whole. */
bool readAnswer(string_view data, Answer* out) {
  size_t end = data.find("\r\n\r\n");
  if (end == string_view::npos) return false;
  if (data.substr(0, 9) != "HTTP/1.1 ") fail("not HTTP/1.1: " + string(data.substr(0, 60)));
  out->status = static_cast<int>(numberAt(data.substr(9)));
  out->head = data.substr(0, end);
  string_view length = header(out->head, "content-length:");
  if (length.empty() && out->status != 204 && out->status != 304) {
    fail("an answer without Content-Length: " + string(out->head));
  }
  out->length = end + 4 + numberAt(length);
  if (data.size() < out->length) return false;
  out->body = data.substr(end + 4, numberAt(length));
  return true;
}

struct Client {
  int fd = -1;
  bool joined = false;
  string id;
  uint64_t ack = 0;
  uint64_t thrown = 0;
  string since, tag;  // nchan's cursor
  string rest;        // of an answer that came in pieces
};

/** How a contender is spoken to. */
class Contract {
 public:
  virtual ~Contract() = default;
  /** Whether a client has to join before it polls. */
  virtual bool joins() const = 0;
  virtual void join(string* out) const = 0;
  virtual void joined(const Answer& answer, Client* client) const = 0;
  virtual void poll(size_t client, string* out) const = 0;
  /** Takes a poll's answer: the client's cursor moves on, the sprites' numbers go to `numbers`. */
  virtual void polled(const Answer& answer, Client* client,
                      std::vector<uint64_t>* numbers) const = 0;
  virtual void throwSprite(size_t thrower, unsigned edge, string_view sprite,
                           string* out) const = 0;
  virtual void leave(size_t client, string* out) const = 0;
};

constexpr string_view kHeaders =
    " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n";
constexpr string_view kNumberKey = "{\"number\":";

void finishPost(string_view body, string* out) {
  out->append(kHeaders);
  if (!body.empty()) out->append("Content-Type: application/json\r\n");
  out->append("Content-Length: ")
      .append(std::to_string(body.size()))
      .append("\r\n\r\n")
      .append(body);
}

void takeNumbers(string_view body, std::vector<uint64_t>* numbers) {
  for (size_t at = body.find(kNumberKey); at != string_view::npos; at = body.find(kNumberKey, at)) {
    at += kNumberKey.size();
    numbers->push_back(numberAt(body.substr(at)));
  }
}

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

/** Seconds of CPU, user and system, all threads of all `pids`. */
double cpuSeconds(const std::vector<int>& pids) {
  double ticks = 0;
  for (int pid : pids) {
    char text[1024];
    string path = "/proc/" + std::to_string(pid) + "/stat";
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (length <= 0) fail("no process " + std::to_string(pid));
    text[length] = 0;
    // The name may hold anything, so fields are counted from the bracket that ends it.
    const char* field = std::strrchr(text, ')');
    unsigned long user = 0, system = 0;
    if (field == nullptr ||
        std::sscanf(field, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                    &system) != 2) {
      fail("unreadable " + path);
    }
    ticks += static_cast<double>(user + system);
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/** What is known of a sprite: it may arrive before its 202 does. */
enum : uint8_t { kTaken = 1, kArrived = 2, kRefused = 4 };

class Load {
 public:
  explicit Load(const Options& options) : options_(options), clients_(options.clients) {
    if (options.contract == "nchan") {
      contract_ = std::make_unique<NchanContract>(&clients_);
    } else {
      contract_ = std::make_unique<SpritesContract>(&clients_);
    }
  }

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
    rusage before{}, after{};
    const uint64_t receivedBefore = received_;
    getrusage(RUSAGE_SELF, &before);
    const double cpuBefore = cpuSeconds(options_.pids);
    const auto began = Clock::now();
    const auto end = began + Seconds(options_.seconds);
    turnUntil([&] { return Clock::now() >= end || closed_; });
    seconds_ = Seconds(Clock::now() - began).count();
    cpu_ = cpuSeconds(options_.pids) - cpuBefore;
    getrusage(RUSAGE_SELF, &after);
    counted_ = received_ - receivedBefore;
    loadCpu_ = cpuOf(after) - cpuOf(before);
    std::printf("{\"event\":\"end\"}\n");
    std::fflush(stdout);
  }

  static double cpuOf(const rusage& use) {
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
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

[[noreturn]] void usage(const string& wrong) {
  std::fprintf(stderr,
               "load: %s\n"
               "load --port P [--contract sprites|nchan] [--clients N] [--throwers T]\n"
               "     [--warmup S] [--seconds S] [--pids P,P] [--leave yes]\n",
               wrong.c_str());
  std::exit(2);
}

Options readOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const string name = argv[i];
    if (i + 1 == argc) usage(name + " wants a value");
    const string value = argv[i + 1];
    const double number = std::atof(value.c_str());
    if (name == "--port") {
      options.port = static_cast<uint16_t>(number);
    } else if (name == "--contract") {
      options.contract = value;
    } else if (name == "--clients") {
      options.clients = static_cast<size_t>(number);
    } else if (name == "--throwers") {
      options.throwers = static_cast<size_t>(number);
    } else if (name == "--warmup") {
      options.warmup = number;
    } else if (name == "--seconds") {
      options.seconds = number;
    } else if (name == "--leave") {
      options.leave = value == "yes";
    } else if (name == "--pids") {
      for (char *at = argv[i + 1], *end = at; *at != 0; at = *end == ',' ? end + 1 : end) {
        options.pids.push_back(static_cast<int>(std::strtol(at, &end, 10)));
        if (end == at) usage("--pids wants numbers");
      }
    } else {
      usage("unknown option " + name);
    }
  }
  if (options.port == 0) usage("--port is wanted");
  if (options.clients == 0 || options.throwers == 0) usage("at least one client and one thrower");
  return options;
}

void raiseFiles(const Options& options) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const size_t wanted = options.clients + options.throwers + 16;
  if (files.rlim_max < wanted) {
    fail("ulimit -n is " + std::to_string(files.rlim_max) + ", and " + std::to_string(wanted) +
         " files are wanted");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = readOptions(argc, argv);
  raiseFiles(options);
  return Load(options).run();
}
