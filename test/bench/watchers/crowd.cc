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
constexpr uint32_t kMaxOpening = 64;
constexpr size_t kReadBytes = 256 * 1024;
constexpr int kEvents = 256;
/** Most unanswered publications; further due documents are left out, and counted. */
constexpr uint32_t kMaxUnanswered = 8;
/** Time for the last document to arrive, in seconds. */
constexpr double kLastDocumentTimeout = 5;
/** Pause after all have connected, and after all have sent the second request, in seconds. */
constexpr double kSettle = 0.5;
constexpr double kSettleAsked = 1;

/** Timeout of opening and of a word, in seconds: a million connections may take long. */
constexpr double kPreparationTimeout = 7200;
constexpr size_t kWordBytes = 64;
/** How long after the last event an awake load does not sleep, in microseconds. */
constexpr uint64_t kAwakeMicros = 2000;
/** The part of the time between two publications after which all are cut off. */
constexpr double kCutAfter = 0.3;

// The filling of documents.
constexpr std::string_view kFillHead = ",\"z\":[";
constexpr std::string_view kFillEntry =
    R"({"name":"somebody of the second eleven","rating":6.75,"minute":47},)";
constexpr size_t kMinuteOffset = kFillEntry.size() - 4;

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
  Crowd(const Options& options, std::unique_ptr<Protocol> protocol,
        std::unique_ptr<Protocol> secondProtocol)
      : options_(options),
        protocol_(std::move(protocol)),
        secondProtocol_(std::move(secondProtocol)),
        connections_(options.connections),
        buffer_(new char[kReadBytes]) {
    const auto later = static_cast<size_t>(options_.newPerSecond * options_.seconds);
    initialCount_ = connections_.size() - std::min(connections_.size(), later);
    while (filling_.size() + kFillEntry.size() + 80 < options_.bytes) {
      filling_ += kFillEntry;
      ++entries_;
    }
    const size_t rest = options_.bytes - std::min(options_.bytes, filling_.size() + 60);
    filling_ = std::string(kFillHead) + filling_ + "\"" + std::string(rest, 'x') + "\"]}";
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
    runUntil([this] { return unanswered_ == 0; }, kLastDocumentTimeout);
    openingBeganAt_ = microseconds();
    runUntil([this] { return openedCount_ == initialCount_; }, kPreparationTimeout);
    runUntil([] { return false; }, kSettle);
    printf("{\"event\":\"open\"}\n");
    fflush(stdout);
    if (!waitForWord()) return;
    if (secondProtocol_) return sendSecondRequests();

    const auto every = static_cast<uint64_t>(options_.every * 1e6);
    uint64_t due = microseconds();
    const auto untilDue = [&] {
      runUntil([&] { return microseconds() >= due || isParentGone_; },
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
    runUntil([this] { return isParentGone_ || haveAllSeen(version_); }, kLastDocumentTimeout);
    printf("{\"event\":\"begin\"}\n");
    fflush(stdout);
    if (!waitForWord()) return;
    due = std::max(due, microseconds());
    const double cpuBefore = workCpuSeconds();
    const uint64_t before = microseconds();
    firstMeasured_ = version_ + 1;
    unpublished_ = 0;
    growsSince_ = before;
    const auto publications = std::max<uint64_t>(
        1, static_cast<uint64_t>(std::llround(options_.seconds / options_.every)));
    const auto areBack = [this] {
      return isParentGone_ || (reopenQueue_.empty() && openingCount_ == 0 &&
                               std::none_of(connections_.begin(), connections_.end(),
                                            [](const auto& one) { return one.isSilent; }));
    };
    for (uint64_t i = 0; i < publications && !isParentGone_; ++i) {
      if (options_.cutSeconds > 0 && i + 1 == publications && !areBack()) {
        // Load or server stood still meanwhile: what those who were cut off have missed shows by
        // what comes next.
        runUntil(areBack, kLastDocumentTimeout);
        runUntil([this] { return isParentGone_; }, kSettle);
      }
      publishNext(every);
      if (options_.cutSeconds == 0 || i != publications / 2) continue;
      runUntil([this] { return isParentGone_; }, options_.every * kCutAfter);
      cut();
    }
    runUntil([this] { return isParentGone_ || haveAllSeen(version_); }, kLastDocumentTimeout);
    loadCpu_ = workCpuSeconds() - cpuBefore;
    report(static_cast<double>(microseconds() - before) / 1e6);
  }

 private:
  /** Waits for a word on stdin. @return false when the parent is gone */
  bool waitForWord() {
    isWordRead_ = false;
    runUntil([this] { return isWordRead_ || isParentGone_; }, kPreparationTimeout);
    return isWordRead_;
  }

  double workCpuSeconds() const { return ownCpuSeconds() - idlePollingCpu_; }

  // ---- Connections
  // --------------------------------------------------------------------------------

  int connectTo(uint32_t number, uint64_t tag) {
    const int fd =
        target_.connect(options_.addresses > 1 ? int64_t{number % options_.addresses} : -1);
    if (fd < 0) fail(std::string("connect: ") + strerror(errno));
    watch(fd, EPOLL_CTL_ADD, EPOLLOUT, tag);
    return fd;
  }

  void watch(int fd, int operation, uint32_t events, uint64_t tag) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = tag;
    if (epoll_ctl(epoll_, operation, fd, &event) != 0) fail("epoll_ctl");
  }

  void openMore() {
    if (openingBeganAt_ == 0) return;
    if (begunCount_ < connections_.size()) openFirst();
    if (!reopenQueue_.empty()) reopen();
  }

  void openFirst() {
    auto allowed = static_cast<double>(initialCount_);
    if (growsSince_ > 0) {
      allowed += options_.newPerSecond * static_cast<double>(microseconds() - growsSince_) / 1e6;
    }
    while (begunCount_ < connections_.size() && begunCount_ < allowed &&
           openingCount_ < kMaxOpening) {
      connections_[begunCount_].fd = connectTo(begunCount_, begunCount_);
      ++begunCount_;
      ++openingCount_;
    }
  }

  void reopen() {
    const uint64_t now = microseconds();
    while (!reopenQueue_.empty() && reopenQueue_.front().first <= now &&
           openingCount_ < kMaxOpening) {
      const size_t number = reopenQueue_.front().second;
      reopenQueue_.pop_front();
      connections_[number].fd = connectTo(static_cast<uint32_t>(number), number);
      ++openingCount_;
    }
  }

  /** A connection is no more; it comes again when it is due. */
  void closeAndRequeue(size_t number, uint64_t due) {
    Connection& connection = connections_[number];
    close(connection.fd);
    connection.fd = -1;
    connection.resetReader();
    if (std::exchange(connection.isOpening, false)) --openingCount_;
    reopenQueue_.emplace_back(due, number);
  }

  /** Takes the network from all that read. */
  void cut() {
    const uint64_t due = microseconds() + static_cast<uint64_t>(options_.cutSeconds * 1e6);
    // Without an end: what is under way is lost at once, on both sides.
    const linger reset{1, 0};
    for (size_t i = 0; i < connections_.size(); ++i) {
      const Connection& connection = connections_[i];
      if (connection.fd < 0 || connection.firstOpenVersion == 0 || connection.isStalled) continue;
      setsockopt(connection.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      closeAndRequeue(i, due);
    }
  }

  /** Whether a connection is one of those that stop reading: spread evenly over all. */
  bool shouldStall(size_t number) const {
    const double share = options_.stalledShare;
    return static_cast<uint64_t>(static_cast<double>(number + 1) * share) >
           static_cast<uint64_t>(static_cast<double>(number) * share);
  }

  void onOpen(Connection& connection) {
    const int error = swarm::connectError(connection.fd);
    if (error != 0) fail(std::string("connect: ") + strerror(error));
    const auto number = static_cast<size_t>(&connection - connections_.data());
    connection.lastOpenVersion = version_;
    if (connection.firstOpenVersion == 0) {
      ++openedCount_;
      connection.firstOpenVersion = version_;
      connection.isStalled = shouldStall(number);
      connection.isOpening = secondProtocol_ != nullptr;
    } else {
      connection.reopenVersion = version_;
      connection.reopenedAt = microseconds();
      connection.isSilent = true;
    }
    if (!connection.isOpening) --openingCount_;
    watch(connection.fd, EPOLL_CTL_MOD, EPOLLIN, number);
    std::string request;
    protocol_->makeOpenRequest(connection, &request);
    send(connection, request);
  }

  void handleEvents(Connection& connection, uint32_t events) {
    if ((events & EPOLLOUT) != 0) return onOpen(connection);
    const ssize_t bytesRead = recv(connection.fd, buffer_.get(), kReadBytes, 0);
    if (bytesRead < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (bytesRead <= 0 && options_.reopenAfter > 0) {
      ++endedByServer_;
      const auto number = static_cast<size_t>(&connection - connections_.data());
      return closeAndRequeue(number,
                             microseconds() + static_cast<uint64_t>(options_.reopenAfter * 1e6));
    }
    if (bytesRead <= 0) {
      fail((bytesRead == 0 ? "a watcher's connection was ended"
                           : std::string("a watcher's connection: ") + strerror(errno)) +
           " (" + std::to_string(openedCount_) + " were open)");
    }
    if (std::exchange(connection.isOpening, false)) --openingCount_;
    connection.isSilent = false;
    if (firstMeasured_ <= version_) bytes_ += static_cast<uint64_t>(bytesRead);
    protocol_->read(connection, {buffer_.get(), static_cast<size_t>(bytesRead)}, this);
  }

  void onMessage(Connection& connection, std::string_view sample) override {
    const Stamp stamp = Stamp::in(sample);
    if (stamp.version == 0) return;  // a ping, a comment
    if (stamp.version <= connection.seenVersion) {
      // Only measured versions count: a stream and a poll may get their first document twice.
      if (stamp.version >= firstMeasured_) ++repeated_;
      return;
    }
    const uint64_t before = std::exchange(connection.seenVersion, stamp.version);
    if (connection.isStalled) {
      if (stamp.version > 1) epoll_ctl(epoll_, EPOLL_CTL_DEL, connection.fd, nullptr);
      return;
    }
    if (connection.reopenVersion > 0) countReturn(connection, before, stamp.version);
    if (stamp.version < firstMeasured_) return;
    ++documents_;
    const uint64_t had = std::max({before, connection.firstOpenVersion, firstMeasured_ - 1});
    if (stamp.version > had) skipped_ += stamp.version - had - 1;
    // What was published before it came is not late.
    if (stamp.version <= connection.lastOpenVersion) return;
    const uint64_t late = microseconds() - stamp.time;
    lateness_.record(late * 1000);
    largestLateness_ = std::max(largestLateness_, late);
  }

  /** Something new has come to one that was away, and had `before`. */
  void countReturn(Connection& connection, uint64_t before, uint64_t version) {
    const uint64_t target = std::exchange(connection.reopenVersion, 0);
    if (before >= target) return;  // nothing was published meanwhile
    if (version > target) {
      ++cutNext_;
    } else if (version == before + 1) {
      ++cutAll_;
    } else {
      ++cutNewest_;
    }
    cutWait_ += microseconds() - connection.reopenedAt;
  }

  void send(Connection& connection, std::string_view bytes) override {
    const ssize_t sent = ::send(connection.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && options_.reopenAfter > 0) return;  // it was ended: its reading will tell
    if (sent != static_cast<ssize_t>(bytes.size())) fail("a request could not be sent");
  }

  [[noreturn]] void fail(const std::string& why) override {
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
    document += filling_;
    if (options_.changingShare == 0) return document;
    const auto step = static_cast<size_t>(std::llround(1 / options_.changingShare));
    for (size_t entry = 0; entry < entries_; entry += step) {
      const size_t at = fill + entry * kFillEntry.size() + kMinuteOffset;
      document[at] = static_cast<char>('1' + version_ % 9);
      document[at + 1] = static_cast<char>('1' + version_ / 9 % 9);
    }
    // The stamp again at the end, where joined patches have the newest one.
    document.pop_back();
    return document + ",\"zz\":\"" + stamp + "\"}";
  }

  void publish() {
    if (unanswered_ >= kMaxUnanswered) {
      ++unpublished_;
      return;
    }
    const std::string stamp = Stamp{++version_, microseconds()}.text();
    std::string request;
    protocol_->makePublishRequest(document(stamp), &request);
    publication_ += request;
    ++unanswered_;
    if (publisher_ < 0) {
      // A new connection each time: a server may close an idle one at the moment of the next
      // publication.
      publisher_ = connectTo(0, kPublisher);
    } else if (isPublisherReady_) {
      flushPublication();
    }
  }

  void flushPublication() {
    if (publication_.empty()) return;
    const ssize_t sent = ::send(publisher_, publication_.data(), publication_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) fail("a publication could not be sent");
    if (sent > 0) publication_.erase(0, static_cast<size_t>(sent));
    watch(publisher_, EPOLL_CTL_MOD, publication_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT,
          kPublisher);
  }

  void servePublisher(uint32_t events) {
    isPublisherReady_ = true;
    if ((events & EPOLLOUT) != 0) {
      watch(publisher_, EPOLL_CTL_MOD, EPOLLIN, kPublisher);
      flushPublication();
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    const ssize_t bytesRead = recv(publisher_, buffer_.get(), kReadBytes, 0);
    if (bytesRead == 0) fail("the publisher's connection was ended");
    if (bytesRead < 0) return;
    answers_.append(buffer_.get(), static_cast<size_t>(bytesRead));
    constexpr std::string_view kHead = "HTTP/1.1 ";
    for (size_t at; (at = answers_.find(kHead)) != answers_.npos &&
                    answers_.find("\r\n\r\n", at) != answers_.npos;) {
      if (answers_[at + kHead.size()] != '2') fail("a publication was answered " + answers_);
      answers_.erase(0, answers_.find("\r\n\r\n", at) + 4);
      if (unanswered_ > 0) --unanswered_;
    }
    if (unanswered_ > 0) return;
    close(publisher_);
    publisher_ = -1;
    isPublisherReady_ = false;
    answers_.clear();
  }

  // ---- Running
  // ------------------------------------------------------------------------------------

  void runTurn(int wait) {
    openMore();
    epoll_event events[kEvents];
    const uint64_t before = microseconds();
    const bool awake = options_.staysAwake && before - lastEvent_ < kAwakeMicros;
    // CPU time, since it is subtracted from CPU time: wall time also passes while other processes
    // have the core, and the difference could be negative.
    const double cpu = awake ? ownCpuSeconds() : 0;
    const int ready = epoll_wait(epoll_, events, kEvents, awake ? 0 : wait);
    if (ready > 0) {
      lastEvent_ = microseconds();
    } else if (awake) {
      idlePollingCpu_ += ownCpuSeconds() - cpu;
    }
    for (int i = 0; i < ready; ++i) {
      const uint64_t tag = events[i].data.u64;
      if (tag == kStdin) {
        char word[kWordBytes];
        if (::read(STDIN_FILENO, word, sizeof word) > 0) {
          isWordRead_ = true;
        } else {
          isParentGone_ = true;
          epoll_ctl(epoll_, EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
        }
      } else if (tag == kPublisher) {
        servePublisher(events[i].events);
      } else {
        handleEvents(connections_[tag], events[i].events);
      }
    }
  }

  /** Sends a request of the second protocol over each connection, and holds all of them. */
  void sendSecondRequests() {
    protocol_ = std::move(secondProtocol_);
    for (size_t i = 0; i < connections_.size(); ++i) {
      std::string request;
      protocol_->makeOpenRequest(connections_[i], &request);
      send(connections_[i], request);
      if (i % kEvents == 0) runTurn(0);
    }
    runUntil([this] { return isParentGone_; }, kSettleAsked);
    printf("{\"event\":\"asked\"}\n");
    fflush(stdout);
    runUntil([this] { return isParentGone_; }, kPreparationTimeout);
  }

  /** Runs the loop until `isDone()`, or until the time is over. */
  template <typename IsDone>
  void runUntil(IsDone isDone, double seconds) {
    const uint64_t end = microseconds() + static_cast<uint64_t>(seconds * 1e6);
    while (!isDone()) {
      const uint64_t now = microseconds();
      if (now >= end) return;
      runTurn(static_cast<int>(std::min<uint64_t>(20, (end - now) / 1000 + 1)));
    }
  }

  bool haveAllSeen(uint64_t version) const {
    return std::all_of(connections_.begin(), connections_.end(), [&](const Connection& connection) {
      if (connection.firstOpenVersion == 0 || connection.isStalled) return true;
      return std::max(connection.seenVersion, connection.firstOpenVersion) >= version;
    });
  }

  void report(double seconds) {
    uint64_t missing = 0;
    for (const Connection& connection : connections_) {
      if (connection.firstOpenVersion == 0 || connection.isStalled) continue;
      missing += version_ - std::max({connection.seenVersion, connection.firstOpenVersion,
                                      firstMeasured_ - 1});
    }
    const auto stalled =
        std::count_if(connections_.begin(), connections_.end(),
                      [](const auto& one) { return one.isStalled && one.seenVersion > 1; });
    std::string lateness;
    lateness_.takeInterval(&lateness);
    printf("{\"event\":\"result\",\"seconds\":%.3f,\"published\":%" PRIu64
           ",\"unpublished\":%u,"
           "\"documents\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"skipped\":%" PRIu64
           ",\"missing\":%" PRIu64 ",\"repeated\":%" PRIu64
           ",\"stalled\":%u,\"ended\":%u,\"cutAll\":%u,\"cutNewest\":%u,\"cutNext\":%u,"
           "\"cutWait\":%" PRIu64 ",\"loadCpu\":%.6f,\"latest\":%" PRIu64 ",\"lateness\":%s}\n",
           seconds, version_ + 1 - firstMeasured_, unpublished_, documents_, bytes_, skipped_,
           missing, repeated_, static_cast<unsigned>(stalled), endedByServer_, cutAll_, cutNewest_,
           cutNext_, cutWait_, loadCpu_, largestLateness_, lateness.c_str());
    fflush(stdout);
  }

  const Options options_;
  std::unique_ptr<Protocol> protocol_;
  std::unique_ptr<Protocol> secondProtocol_;
  std::vector<Connection> connections_;
  std::unique_ptr<char[]> buffer_;
  swarm::Target target_;
  int epoll_ = -1;
  uint64_t openingBeganAt_ = 0;
  uint64_t growsSince_ = 0;    // when those that grow began to; 0: not yet
  size_t initialCount_ = 0;    // connections before that
  uint32_t begunCount_ = 0;    // connections that were begun
  uint32_t openedCount_ = 0;   // and were there
  uint32_t openingCount_ = 0;  // are on their way
  std::deque<std::pair<uint64_t, size_t>> reopenQueue_;  // when it comes again, and which
  bool isWordRead_ = false;
  bool isParentGone_ = false;

  int publisher_ = -1;
  bool isPublisherReady_ = false;
  std::string publication_;  // unsent bytes of publications
  std::string answers_;
  uint32_t unanswered_ = 0;
  uint32_t unpublished_ = 0;  // documents left out, as too many were unanswered
  uint64_t version_ = 0;
  uint64_t firstMeasured_ = UINT64_MAX;
  std::string filling_;
  size_t entries_ = 0;  // number of entries in filling_

  swarm::Histogram lateness_;     // nanoseconds
  uint64_t largestLateness_ = 0;  // largest lateness, in microseconds
  uint64_t documents_ = 0, bytes_ = 0, skipped_ = 0, repeated_ = 0;
  double loadCpu_ = 0;
  uint32_t endedByServer_ = 0;  // connections that the server ended
  // Of those that were cut off and came again: how many got every version they had missed, only the
  // newest, or nothing before the next one; and microseconds until it came.
  uint32_t cutAll_ = 0, cutNewest_ = 0, cutNext_ = 0;
  uint64_t cutWait_ = 0;
  uint64_t lastEvent_ = 0;     // when something last came
  double idlePollingCpu_ = 0;  // seconds of CPU in which it looked, and nothing had come
};

}  // namespace

void runCrowd(const Options& options, std::unique_ptr<Protocol> protocol,
              std::unique_ptr<Protocol> secondProtocol) {
  Crowd(options, std::move(protocol), std::move(secondProtocol)).run();
}

}  // namespace watchers
