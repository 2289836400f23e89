// HTTP requests over one libcurl multi handle: the only file that knows curl.
//
// Each request is an easy handle of its own in the multi, which keeps the connections: one for the
// parked poll and as many as there are throws at once, reused. A request lives from start() until
// its reply was taken or cancel(). Nothing here calls back: replies are fetched with takeReplies(),
// so that no caller's code runs inside curl.
//
// What counts for a throw is whether its bytes may have reached the server. curl asks a read
// function for the body, so a request whose body was never asked for was surely not taken.
// (CURLINFO_REQUEST_SIZE won't do: it starts anew when curl resends on a fresh connection.)
//
// In a world of many servers another one may have a place: it says so by 421 `misdirected` with
// Location. Such a request is asked again there, at once, and so is all else of the place from then
// on, until there is no answer from there, or garbage. After kMovesMost such answers in a row the
// reply is 404 `unknown-client`: the place counts as forgotten.
//
// Rejected: curl_multi_socket_action(). With some dozens of sockets curl_multi_poll() costs nothing
// to speak of, needs no event loop and no file descriptors, and is the same on Windows. For a
// program with a loop of its own fd() gives one descriptor, an epoll set of curl's sockets that is
// only looked at: what there is to do curl finds out by itself.
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
  bool ofPlace = false;  // it has a place's id in its path, and goes where that place is
};

using RequestId = uint64_t;  // never 0, never used twice

/** What came of a request. */
struct Reply {
  RequestId id = 0;
  int status = 0;        // of a whole answer; 0: there is none, and `error` says why
  std::string body;      // of a whole answer
  bool sent = false;     // bytes of the request's body may have reached the server
  bool resent = false;   // curl has sent it again by itself: it may have reached the server before
  Millis retryAfter{0};  // Retry-After of 429 and 503, at most an hour
  bool slow = false;     // not answered in time
  bool tooLong = false;  // an answer longer than is taken
  std::string error;
  std::string line;  // for a log: the method and the path, its id cut short
};

/** Not for two threads at once, but for wake(), which is for any thread while this lives. */
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
   * @param header  one more line; empty: none
   */
  RequestId start(const Request& request, const std::string& header = {});

  /** The place is gone: the next one is where the server says. */
  void goHome();

  /** Drops a request, its connection with it; no reply will come. Unknown ids are ignored. */
  void cancel(RequestId id);

  /** Moves bytes without waiting, and answers the replies that are complete. */
  std::vector<Reply> takeReplies();

  /** Waits until there are bytes to move, wake() is called, or `timeout` is over. */
  void wait(Millis timeout);

  void wake();

  /**
   * A descriptor that is readable when takeReplies() has something to do; -1 where the system has
   * none. Before the first start(). Throws std::runtime_error when there is none to be had.
   */
  int fd();

  /** Takes notice of what made fd() readable: before takeReplies(). */
  void settleFd();

  /** How long takeReplies() may be put off while fd() is not readable. */
  Millis timeout();

 private:
  struct Transfer;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_TRANSPORT_H_
