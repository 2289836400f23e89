#include "crowd.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "swarm/histogram.h"
#include "swarm/socket.h"

namespace watchers {

namespace {

/** Most connections that open at a time: less than any listen backlog. */
constexpr uint32_t kOpening = 64;
constexpr size_t kReadBytes = 256 * 1024;
constexpr int kEvents = 256;
/** Most unanswered publications; further due documents are left out, and counted. */
constexpr uint32_t kUnanswered = 8;
/** Time for the last document to arrive, in seconds. */
constexpr double kPatience = 5;
/** Pause after all have connected, and after all have sent the second request, in seconds. */
constexpr double kSettle = 0.5;
constexpr double kSettleAsked = 1;

/** Timeout of opening and of a word, in seconds: a million connections may take long. */
constexpr double kPreparation = 7200;
constexpr size_t kWordBytes = 64;
/** How long after the last event an awake load does not sleep, in microseconds. */
constexpr uint64_t kAwake = 2000;
/** The part of the time between two publications after which all are cut off. */
constexpr double kCutAfter = 0.3;

// The filling of documents.
constexpr std::string_view kFillHead = ",\"z\":[";
constexpr std::string_view kEntry =
    R"({"name":"somebody of the second eleven","rating":6.75,"minute":47},)";
constexpr size_t kMinute = kEntry.size() - 4;

// Tags of epoll events; a connection's tag is its number.
constexpr uint64_t kPublisher = uint64_t{1} << 32;
constexpr uint64_t kStdin = uint64_t{1} << 33;

/** CPU time of this process, in seconds. */
double ownCpuSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

class Crowd : private Listener {
 public:
  Crowd(const Options& options, std::unique_ptr<Protocol> protocol, std::unique_ptr<Protocol> then)
      : options_(options),
        protocol_(std::move(protocol)),
        then_(std::move(then)),
        connections_(options.connections),
        buffer_(new char[kReadBytes]) {
    const auto later = static_cast<size_t>(options_.grow * options_.seconds);
    startWith_ = connections_.size() - std::min(connections_.size(), later);
    while (fill_.size() + kEntry.size() + 80 < options_.bytes) {
      fill_ += kEntry;
      ++entries_;
    }
    const size_t rest = options_.bytes - std::min(options_.bytes, fill_.size() + 60);
    fill_ = std::string(kFillHead) + fill_ + "\"" + std::string(rest, 'x') + "\"]}";
  }

  ~Crowd() override {
    for (const Connection& connection : connections_) close(connection.fd);
    close(publisher_);
    close(epoll_);
  }

  void run() {
    target_.set("127.0.0.1", options_.port);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    watch(STDIN_FILENO, EPOLL_CTL_ADD, EPOLLIN, kStdin);
    // The feed has a value from the beginning.
    publish();
    turnUntil([this] { return unanswered_ == 0; }, kPatience);
    began_ = microseconds();
    turnUntil([this] { return opened_ == startWith_; }, kPreparation);
    turnUntil([] { return false; }, kSettle);
    printf("{\"event\":\"open\"}\n");
    fflush(stdout);
    if (!isTold()) return;
    if (then_) return askThen();

    const auto every = static_cast<uint64_t>(options_.every * 1e6);
    uint64_t due = microseconds();
    const auto untilDue = [&] {
      turnUntil([&] { return microseconds() >= due || over_; },
                static_cast<double>(due - std::min(due, microseconds())) / 1e6);
    };
    const auto publishNext = [&](uint64_t apart) {
      untilDue();
      publish();
      due += apart;
    };
    const auto warmupEvery =
        options_.warmupEvery > 0 ? static_cast<uint64_t>(options_.warmupEvery * 1e6) : every;
    for (uint32_t i = 0; i < options_.warmup; ++i) publishNext(warmupEvery);
    untilDue();
    // Waits for the last documents of the warm-up, which do not count.
    turnUntil([this] { return over_ || everybodyHasSeen(version_); }, kPatience);
    printf("{\"event\":\"begin\"}\n");
    fflush(stdout);
    if (!isTold()) return;
    due = std::max(due, microseconds());
    const double ownBefore = ownWorkSeconds();
    const uint64_t before = microseconds();
    firstMeasured_ = version_ + 1;
    unpublished_ = 0;
    growsFrom_ = before;
    const auto publications = std::max<uint64_t>(
        1, static_cast<uint64_t>(std::llround(options_.seconds / options_.every)));
    const auto areBack = [this] {
      return over_ || (again_.empty() && opening_ == 0 &&
                       std::none_of(connections_.begin(), connections_.end(),
                                    [](const auto& one) { return one.silent; }));
    };
    for (uint64_t i = 0; i < publications && !over_; ++i) {
      if (options_.cut > 0 && i + 1 == publications && !areBack()) {
        // Load or server stood still meanwhile: what those who were cut off have missed shows by
        // what comes next.
        turnUntil(areBack, kPatience);
        turnUntil([this] { return over_; }, kSettle);
      }
      publishNext(every);
      if (options_.cut == 0 || i != publications / 2) continue;
      turnUntil([this] { return over_; }, options_.every * kCutAfter);
      cut();
    }
    turnUntil([this] { return over_ || everybodyHasSeen(version_); }, kPatience);
    ownCpu_ = ownWorkSeconds() - ownBefore;
    report(static_cast<double>(microseconds() - before) / 1e6);
  }

 private:
  /** Waits for a word on stdin. @return false when the parent is gone */
  bool isTold() {
    go_ = false;
    turnUntil([this] { return go_ || over_; }, kPreparation);
    return go_;
  }

  double ownWorkSeconds() const { return ownCpuSeconds() - awakeForNothing_; }

  // ---- Connections
  // --------------------------------------------------------------------------------

  int connectTo(uint32_t number, uint64_t tag) {
    const int fd =
        target_.connect(options_.addresses > 1 ? int64_t{number % options_.addresses} : -1);
    if (fd < 0) broken(std::string("connect: ") + strerror(errno));
    watch(fd, EPOLL_CTL_ADD, EPOLLOUT, tag);
    return fd;
  }

  void watch(int fd, int operation, uint32_t events, uint64_t tag) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    if (epoll_ctl(epoll_, operation, fd, &event) != 0) broken("epoll_ctl");
  }

  void openMore() {
    if (began_ == 0) return;
    if (begun_ < connections_.size()) openFirst();
    if (!again_.empty()) openAgain();
  }

  void openFirst() {
    auto allowed = static_cast<double>(startWith_);
    if (growsFrom_ > 0) {
      allowed += options_.grow * static_cast<double>(microseconds() - growsFrom_) / 1e6;
    }
    while (begun_ < connections_.size() && begun_ < allowed && opening_ < kOpening) {
      connections_[begun_].fd = connectTo(begun_, begun_);
      ++begun_;
      ++opening_;
    }
  }

  void openAgain() {
    const uint64_t now = microseconds();
    while (!again_.empty() && again_.front().first <= now && opening_ < kOpening) {
      const size_t number = again_.front().second;
      again_.pop_front();
      connections_[number].fd = connectTo(static_cast<uint32_t>(number), number);
      ++opening_;
    }
  }

  /** A connection is no more; it comes again when it is due. */
  void lose(size_t number, uint64_t due) {
    Connection& connection = connections_[number];
    close(connection.fd);
    connection.fd = -1;
    connection.fresh();
    if (std::exchange(connection.opening, false)) --opening_;
    again_.emplace_back(due, number);
  }

  /** Takes the network from all that read. */
  void cut() {
    const uint64_t due = microseconds() + static_cast<uint64_t>(options_.cut * 1e6);
    // Without an end: what is under way is lost at once, on both sides.
    const linger reset{1, 0};
    for (size_t i = 0; i < connections_.size(); ++i) {
      const Connection& connection = connections_[i];
      if (connection.fd < 0 || connection.since == 0 || connection.stalled) continue;
      setsockopt(connection.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      lose(i, due);
    }
  }

  /** Whether a connection is one of those that stop reading: spread evenly over all. */
  bool stalls(size_t number) const {
    const double share = options_.stalled;
    return static_cast<uint64_t>(static_cast<double>(number + 1) * share) >
           static_cast<uint64_t>(static_cast<double>(number) * share);
  }

  void opened(Connection& connection) {
    const int error = swarm::connectError(connection.fd);
    if (error != 0) broken(std::string("connect: ") + strerror(error));
    const auto number = static_cast<size_t>(&connection - connections_.data());
    connection.away = version_;
    if (connection.since == 0) {
      ++opened_;
      connection.since = version_;
      connection.stalled = stalls(number);
      connection.opening = then_ != nullptr;
    } else {
      connection.target = version_;
      connection.came = microseconds();
      connection.silent = true;
    }
    if (!connection.opening) --opening_;
    watch(connection.fd, EPOLL_CTL_MOD, EPOLLIN, number);
    std::string request;
    protocol_->open(connection, &request);
    send(connection, request);
  }

  void serve(Connection& connection, uint32_t events) {
    if ((events & EPOLLOUT) != 0) return opened(connection);
    const ssize_t got = recv(connection.fd, buffer_.get(), kReadBytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0 && options_.again > 0) {
      ++ended_;
      const auto number = static_cast<size_t>(&connection - connections_.data());
      return lose(number, microseconds() + static_cast<uint64_t>(options_.again * 1e6));
    }
    if (got <= 0) {
      broken((got == 0 ? "a watcher's connection was ended"
                       : std::string("a watcher's connection: ") + strerror(errno)) +
             " (" + std::to_string(opened_) + " were open)");
    }
    if (std::exchange(connection.opening, false)) --opening_;
    connection.silent = false;
    if (firstMeasured_ <= version_) bytes_ += static_cast<uint64_t>(got);
    protocol_->read(connection, {buffer_.get(), static_cast<size_t>(got)}, this);
  }

  void message(Connection& connection, std::string_view sample) override {
    const Stamp stamp = Stamp::in(sample);
    if (stamp.version == 0) return;  // a ping, a comment
    if (stamp.version <= connection.seen) {
      // Only measured versions count: a stream and a poll may get their first document twice.
      if (stamp.version >= firstMeasured_) ++repeated_;
      return;
    }
    const uint64_t before = std::exchange(connection.seen, stamp.version);
    if (connection.stalled) {
      if (stamp.version > 1) epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.fd, nullptr);
      return;
    }
    if (connection.target > 0) cameBackTo(connection, before, stamp.version);
    if (stamp.version < firstMeasured_) return;
    ++documents_;
    const uint64_t had = std::max({before, connection.since, firstMeasured_ - 1});
    if (stamp.version > had) skipped_ += stamp.version - had - 1;
    // What was published before it came is not late.
    if (stamp.version <= connection.away) return;
    const uint64_t late = microseconds() - stamp.time;
    lateness_.record(late * 1000);
    latest_ = std::max(latest_, late);
  }

  /** Something new has come to one that was away, and had `before`. */
  void cameBackTo(Connection& connection, uint64_t before, uint64_t version) {
    const uint64_t target = std::exchange(connection.target, 0);
    if (before >= target) return;  // nothing was published meanwhile
    if (version > target) {
      ++cutNext_;
    } else if (version == before + 1) {
      ++cutAll_;
    } else {
      ++cutNewest_;
    }
    cutWait_ += microseconds() - connection.came;
  }

  void send(Connection& connection, std::string_view bytes) override {
    const ssize_t sent = ::send(connection.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && options_.again > 0) return;  // it was ended: its reading will tell
    if (sent != static_cast<ssize_t>(bytes.size())) broken("a request could not be sent");
  }

  [[noreturn]] void broken(const std::string& why) override {
    std::string quoted;
    for (const char c : why) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    printf("{\"event\":\"error\",\"message\":\"%s\"}\n", quoted.c_str());
    fflush(stdout);
    exit(1);
  }

  // ---- Publishing
  // ---------------------------------------------------------------------------------

  std::string document(const std::string& stamp) const {
    std::string document = "{\"a\":\"" + stamp + "\"";
    const size_t fill = document.size() + kFillHead.size();
    document += fill_;
    if (options_.changing == 0) return document;
    const auto step = static_cast<size_t>(std::llround(1 / options_.changing));
    for (size_t entry = 0; entry < entries_; entry += step) {
      const size_t at = fill + entry * kEntry.size() + kMinute;
      document[at] = static_cast<char>('1' + version_ % 9);
      document[at + 1] = static_cast<char>('1' + version_ / 9 % 9);
    }
    // The stamp again at the end, where joined patches have the newest one.
    document.pop_back();
    return document + ",\"zz\":\"" + stamp + "\"}";
  }

  void publish() {
    if (unanswered_ >= kUnanswered) {
      ++unpublished_;
      return;
    }
    const std::string stamp = Stamp{++version_, microseconds()}.text();
    std::string request;
    protocol_->publish(document(stamp), &request);
    publication_ += request;
    ++unanswered_;
    if (publisher_ < 0) {
      // A new connection each time: a server may close an idle one at the moment of the next
      // publication.
      publisher_ = connectTo(0, kPublisher);
    } else if (publisherReady_) {
      flushPublication();
    }
  }

  void flushPublication() {
    if (publication_.empty()) return;
    const ssize_t sent = ::send(publisher_, publication_.data(), publication_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) broken("a publication could not be sent");
    if (sent > 0) publication_.erase(0, static_cast<size_t>(sent));
    watch(publisher_, EPOLL_CTL_MOD, publication_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT,
          kPublisher);
  }

  void servePublisher(uint32_t events) {
    publisherReady_ = true;
    if ((events & EPOLLOUT) != 0) {
      watch(publisher_, EPOLL_CTL_MOD, EPOLLIN, kPublisher);
      flushPublication();
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    const ssize_t got = recv(publisher_, buffer_.get(), kReadBytes, 0);
    if (got == 0) broken("the publisher's connection was ended");
    if (got < 0) return;
    answers_.append(buffer_.get(), static_cast<size_t>(got));
    constexpr std::string_view kHead = "HTTP/1.1 ";
    for (size_t at; (at = answers_.find(kHead)) != answers_.npos &&
                    answers_.find("\r\n\r\n", at) != answers_.npos;) {
      if (answers_[at + kHead.size()] != '2') broken("a publication was answered " + answers_);
      answers_.erase(0, answers_.find("\r\n\r\n", at) + 4);
      if (unanswered_ > 0) --unanswered_;
    }
    if (unanswered_ > 0) return;
    close(publisher_);
    publisher_ = -1;
    publisherReady_ = false;
    answers_.clear();
  }

  // ---- Running
  // ------------------------------------------------------------------------------------

  void turn(int wait) {
    openMore();
    epoll_event events[kEvents];
    const uint64_t before = microseconds();
    const bool awake = options_.awake && before - lastEvent_ < kAwake;
    // CPU time, since it is subtracted from CPU time: wall time also passes while other processes
    // have the core, and the difference could be negative.
    const double cpu = awake ? ownCpuSeconds() : 0;
    const int ready = epoll_wait(epoll_, events, kEvents, awake ? 0 : wait);
    if (ready > 0) {
      lastEvent_ = microseconds();
    } else if (awake) {
      awakeForNothing_ += ownCpuSeconds() - cpu;
    }
    for (int i = 0; i < ready; ++i) {
      const uint64_t tag = events[i].data.u64;
      if (tag == kStdin) {
        char word[kWordBytes];
        if (::read(STDIN_FILENO, word, sizeof word) > 0) {
          go_ = true;
        } else {
          over_ = true;
          epoll_ctl(epoll_, EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
        }
      } else if (tag == kPublisher) {
        servePublisher(events[i].events);
      } else {
        serve(connections_[tag], events[i].events);
      }
    }
  }

  /** Sends a request of the second protocol over each connection, and holds all of them. */
  void askThen() {
    protocol_ = std::move(then_);
    for (size_t i = 0; i < connections_.size(); ++i) {
      std::string request;
      protocol_->open(connections_[i], &request);
      send(connections_[i], request);
      if (i % kEvents == 0) turn(0);
    }
    turnUntil([this] { return over_; }, kSettleAsked);
    printf("{\"event\":\"asked\"}\n");
    fflush(stdout);
    turnUntil([this] { return over_; }, kPreparation);
  }

  /** Runs the loop until `done()`, or until the time is over. */
  template <typename Done>
  void turnUntil(Done done, double seconds) {
    const uint64_t end = microseconds() + static_cast<uint64_t>(seconds * 1e6);
    while (!done()) {
      const uint64_t now = microseconds();
      if (now >= end) return;
      turn(static_cast<int>(std::min<uint64_t>(20, (end - now) / 1000 + 1)));
    }
  }

  bool everybodyHasSeen(uint64_t version) const {
    return std::all_of(connections_.begin(), connections_.end(), [&](const Connection& connection) {
      if (connection.since == 0 || connection.stalled) return true;
      return std::max(connection.seen, connection.since) >= version;
    });
  }

  void report(double seconds) {
    uint64_t missing = 0;
    for (const Connection& connection : connections_) {
      if (connection.since == 0 || connection.stalled) continue;
      missing += version_ - std::max({connection.seen, connection.since, firstMeasured_ - 1});
    }
    const auto stalled = std::count_if(connections_.begin(), connections_.end(),
                                       [](const auto& one) { return one.stalled && one.seen > 1; });
    std::string lateness;
    lateness_.takeInterval(&lateness);
    printf("{\"event\":\"result\",\"seconds\":%.3f,\"published\":%" PRIu64
           ",\"unpublished\":%u,"
           "\"documents\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"skipped\":%" PRIu64
           ",\"missing\":%" PRIu64 ",\"repeated\":%" PRIu64
           ",\"stalled\":%u,\"ended\":%u,\"cutAll\":%u,\"cutNewest\":%u,\"cutNext\":%u,"
           "\"cutWait\":%" PRIu64 ",\"loadCpu\":%.6f,\"latest\":%" PRIu64 ",\"lateness\":%s}\n",
           seconds, version_ + 1 - firstMeasured_, unpublished_, documents_, bytes_, skipped_,
           missing, repeated_, static_cast<unsigned>(stalled), ended_, cutAll_, cutNewest_,
           cutNext_, cutWait_, ownCpu_, latest_, lateness.c_str());
    fflush(stdout);
  }

  const Options options_;
  std::unique_ptr<Protocol> protocol_;
  std::unique_ptr<Protocol> then_;
  std::vector<Connection> connections_;
  std::unique_ptr<char[]> buffer_;
  swarm::Target target_;
  int epoll_ = -1;
  uint64_t began_ = 0;
  uint64_t growsFrom_ = 0;                         // when those that grow began to; 0: not yet
  size_t startWith_ = 0;                           // connections before that
  uint32_t begun_ = 0;                             // connections that were begun
  uint32_t opened_ = 0;                            // and were there
  uint32_t opening_ = 0;                           // are on their way
  std::deque<std::pair<uint64_t, size_t>> again_;  // when it comes again, and which
  bool go_ = false;
  bool over_ = false;

  int publisher_ = -1;
  bool publisherReady_ = false;
  std::string publication_;  // unsent bytes of publications
  std::string answers_;
  uint32_t unanswered_ = 0;
  uint32_t unpublished_ = 0;  // documents left out, as too many were unanswered
  uint64_t version_ = 0;
  uint64_t firstMeasured_ = UINT64_MAX;
  std::string fill_;
  size_t entries_ = 0;  // number of entries in fill_

  swarm::Histogram lateness_;  // nanoseconds
  uint64_t latest_ = 0;        // largest lateness, in microseconds
  uint64_t documents_ = 0, bytes_ = 0, skipped_ = 0, repeated_ = 0;
  double ownCpu_ = 0;
  uint32_t ended_ = 0;  // connections that the server ended
  // Of those that were cut off and came again: how many got every version they had missed, only the
  // newest, or nothing before the next one; and microseconds until it came.
  uint32_t cutAll_ = 0, cutNewest_ = 0, cutNext_ = 0;
  uint64_t cutWait_ = 0;
  uint64_t lastEvent_ = 0;      // when something last came
  double awakeForNothing_ = 0;  // seconds of CPU in which it looked, and nothing had come
};

}  // namespace

void runCrowd(const Options& options, std::unique_ptr<Protocol> protocol,
              std::unique_ptr<Protocol> then) {
  Crowd(options, std::move(protocol), std::move(then)).run();
}

}  // namespace watchers
