// The watchers of one server, and its publisher: one process, one epoll.
//
//   open N, some at a time ─▶ "open" ──word on stdin──▶ warm up ─▶ "begin" ──word──▶ publish,
//   again and again ─▶ wait ─▶ "result"
//
// A document is stamped when it is due (protocol.h), so what a busy server or a busy publisher
// costs is in its lateness: from then to the last byte's arrival at each watcher. A watcher that
// sees version 9 after version 7 has skipped one; one that has not seen the last one in the end
// misses it. The first publications warm up, and are not counted.
//
// A cut takes every watcher's connection (by a reset, as when a phone changes its network), and
// gives it back so many seconds later, to ask with whatever its protocol lets it ask with. What
// came while it was away is not late, but skipped, or missing, when it never comes.
//
// The measured time begins with another word: what the server's processes take is its parent's to
// look at, before it and when the result has come. All of it goes to stdout, a JSON object a line.
//
// Cost: a document is not copied, its bytes are looked through for the ends of events at most.
// Rejected: a thread for the publisher (two cores: the server has the other), time stamps of the
// server (it would be its clock that says how late it is).
#ifndef SPRITES_BENCH_CROWD_H_
#define SPRITES_BENCH_CROWD_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol.h"
#include "swarm/histogram.h"
#include "swarm/socket.h"

namespace watchers {

struct Options {
  uint16_t port = 0;
  std::string protocol;
  std::string
      then;  // not empty: what all of them ask by when they are told to; nothing is measured
  uint32_t connections = 100;
  double stalled = 0;      // share of them that stops reading
  uint32_t addresses = 1;  // source addresses, from 127.0.0.1 on
  size_t bytes = 5000;     // of a document
  size_t patch = 0;        // of what changes in it each time; 0: the whole is published
  double every = 1;        // seconds between two publications
  double seconds = 5;      // that are measured
  uint32_t warmup = 2;     // publications before
  double warmupEvery = 0;  // seconds between those; 0: as between the others
  double grow = 0;         // new ones a second while it is measured; so many fewer before
  double changing = 0;     // share of a document's entries that change each time
  double cut = 0;          // seconds for which all are without the network, half way
  double again = 0;        // seconds after which one that was ended comes again; 0: it may not be
  bool awake = false;      // it does not sleep while documents are under way
  size_t read = 0;         // bytes at a time of a recording
  std::string token;
};

class Crowd : private Listener {
 public:
  /** `then`: of `options.then`, or nothing. */
  Crowd(const Options& options, std::unique_ptr<Protocol> protocol, std::unique_ptr<Protocol> then);
  ~Crowd() override;

  void run();

 private:
  // Connections.
  int connectTo(uint32_t number, uint64_t tag);
  void openMore();
  void askThen();
  /** Seconds of CPU of this process so far, but those in which it looked and nothing had come. */
  double ownWorkSeconds() const;
  void openFirst();
  void openAgain();
  void opened(Connection& connection);
  void lose(size_t number, uint64_t due);
  void cut();
  void serve(Connection& connection, uint32_t events);
  void watch(int fd, int operation, uint32_t events, uint64_t tag);
  bool stalls(size_t number) const;

  // Listener.
  void message(Connection& connection, std::string_view sample) override;
  void cameBackTo(Connection& connection, uint64_t before, uint64_t version);
  void send(Connection& connection, std::string_view bytes) override;
  [[noreturn]] void broken(const std::string& why) override;

  // Publishing.
  void publish();
  void servePublisher(uint32_t events);
  void flushPublication();
  std::string document(const std::string& stamp, const std::string& patch) const;

  // Running.
  bool isTold();
  void turn(int wait);
  template <typename Done>
  void turnUntil(Done done, double seconds);
  bool everybodyHasSeen(uint64_t version) const;
  void report(double seconds);

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
  std::string publication_;  // what is still to be sent
  std::string answers_;
  uint32_t unanswered_ = 0;
  uint32_t unpublished_ = 0;  // were due while too many were unanswered
  uint64_t version_ = 0;
  uint64_t firstMeasured_ = UINT64_MAX;
  std::string fill_;
  size_t entries_ = 0;  // of fill_

  swarm::Histogram lateness_;  // nanoseconds
  uint64_t latest_ = 0;        // the largest lateness, microseconds
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

}  // namespace watchers

#endif  // SPRITES_BENCH_CROWD_H_
