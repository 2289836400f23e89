// HTTP requests over one libcurl multi handle: the only file that knows curl.
//
// Each request is an easy handle of its own in the multi, which keeps the connections: one for the
// parked poll and one for each simultaneous throw, reused. A request lives from start() until
// takeReplies() has returned its reply, or until cancel(). There are no callbacks: takeReplies()
// returns the replies, so that no caller's code runs inside curl.
//
// A throw needs to know whether its bytes may have reached the server. curl asks a read function
// for the body, so a server certainly has not accepted a request whose body curl never asked for.
// (CURLINFO_REQUEST_SIZE won't do: it starts again when curl resends on a fresh connection.)
//
// In a world of several servers another one may have the place: the answer then is 421
// `misdirected` with Location. The request is repeated there at once, and later requests of the
// place go there, too, until that server gives no answer, or garbage. The answer after
// kMaxRedirects such redirects in a row becomes 404 `unknown-client`: the place counts as
// forgotten.
//
// Rejected: curl_multi_socket_action(). With some dozens of sockets curl_multi_poll() costs very
// little, needs no event loop and no file descriptors, and is the same on Windows. For a program
// with its own loop fd() returns one descriptor, an epoll set of curl's sockets. It only signals:
// curl itself finds out which socket has work.
#ifndef SPRITES_CLIENT_TRANSPORT_H_
#define SPRITES_CLIENT_TRANSPORT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sprites/connection.h"

namespace sprites {

using Millis = std::chrono::milliseconds;

enum class Method : uint8_t { kGet, kPost };

/** One request to make. */
struct Request {
  Method method = Method::kGet;
  std::string path;  // after the server's URL, beginning with '/'
  std::string body;  // of a kPost
  Millis timeout{0};
  bool isForPlace = false;  // its path has a place's id; it goes to the server with that place
};

using RequestId = uint64_t;  // never 0, never used twice

/** The result of a request. */
struct Reply {
  RequestId id = 0;
  int status = 0;           // of a whole answer; 0: no whole answer, see `error`
  std::string body;         // of a whole answer
  bool maybeSent = false;   // bytes of the request's body may have reached the server
  bool isResent = false;    // curl has resent it by itself: the server may have it from before
  Millis retryAfter{0};     // Retry-After of 429 and 503, at most an hour
  bool isTimedOut = false;  // the time limit is over
  bool isTooLong = false;   // the answer is longer than maxAnswerBytes
  std::string error;
  std::string logLine;  // for a log: the method and the path with its id shortened
};

/** Sends requests. For one thread at a time, but any thread may call wake() while this lives. */
class Transport {
 public:
  /** Throws std::invalid_argument for options out of bounds, std::runtime_error without curl. */
  Transport(ConnectionOptions options, size_t maxAnswerBytes);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /**
   * Starts a request; its reply comes with a later takeReplies().
   *
   * @param header  an additional header line; empty: none
   */
  RequestId start(const Request& request, const std::string& header = {});

  /** Forgets where the place was: its requests go to the configured server again. */
  void resetPlaceServer();

  /** Drops a request and its connection; no reply will come. Ignores unknown ids. */
  void cancel(RequestId id);

  /** Moves bytes without waiting, and returns the complete replies. */
  std::vector<Reply> takeReplies();

  /** Waits until there are bytes to move, wake() is called, or `timeout` is over. */
  void wait(Millis timeout);

  void wake();

  /**
   * Returns a descriptor that is readable when takeReplies() has work; -1 on other systems than
   * Linux. Call it before the first start(). Throws std::runtime_error when no descriptor is left.
   */
  int fd();

  /** Makes fd() not readable until the next event. Call it before takeReplies(). */
  void clearFd();

  /** Returns how long takeReplies() may wait while fd() is not readable. */
  Millis timeout();

 private:
  struct Transfer;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_TRANSPORT_H_
