// The bounds of what waits to cross between a worker and the main process: a process that does not
// read is given up, and a worker takes no more requests while too much waits.
//
//   links_test
#include "relay/links.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "expect.h"
#include "relay/relay.h"
#include "relay/relay_server.h"

namespace {

using namespace server;

/** An end that gathers bytes for a process that may not read them. */
class Gathering : public RelayEnd {
 public:
  void gather(size_t bytes) { outgoing().append(bytes, 'x'); }
  bool receive(std::string_view) override { return true; }
  void lost() override { ++timesLost; }

  int timesLost = 0;
};

/** Bytes that can be read from `fd` until its other end is closed, or until none come. */
size_t drain(int fd, bool* closed) {
  static char buffer[1 << 16];
  size_t sum = 0;
  for (;;) {
    const ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    *closed = got == 0;
    if (got <= 0) return sum;
    sum += got;
  }
}

/** A process may leave so many bytes unread, and not one more: then its end is closed. */
void givesUpWhoDoesNotRead() {
  EventSet events;
  RelayLinks links(&events);
  Gathering deaf, hearing;
  int deafEnds[2], hearingEnds[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, deafEnds) == 0);
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, hearingEnds) == 0);
  links.attach(deafEnds[0], &deaf, {.pace = 0, .mostKept = kMostSaid});
  links.attach(hearingEnds[0], &hearing, {.pace = 0, .mostKept = kMostSaid});

  deaf.gather(kMostSaid);
  hearing.gather(kMostSaid);
  links.send();
  bool closed;
  for (size_t heard = 0; heard < kMostSaid; links.send()) {
    heard += drain(hearingEnds[1], &closed);
    events.dispatch([](uint32_t, uint32_t, uint32_t) {});
  }
  // What the kernel has taken waits no more: as much may come in its place.
  int taken = 0;
  EXPECT(ioctl(deafEnds[1], FIONREAD, &taken) == 0 && taken > 0);
  deaf.gather(taken);
  links.giveUpTheDeaf();
  EXPECT(links.attached(&deaf) && deaf.timesLost == 0);
  deaf.gather(1);
  hearing.gather(1);
  links.giveUpTheDeaf();
  EXPECT(!links.attached(&deaf) && deaf.timesLost == 1);
  EXPECT(links.attached(&hearing) && hearing.timesLost == 0);
  drain(deafEnds[1], &closed);
  EXPECT(closed);
  close(deafEnds[1]);
  close(hearingEnds[1]);
}

/** A worker has room for requests while less than its bound waits, and again when that has gone. */
void takesNoMoreThanMayWait() {
  RelayHandler handler(1000);
  const std::string sprite = R"({"x":1,"padding":")" + std::string(900, 'x') + "\"}";
  const auto ask = [&] {
    EXPECT(!handler.throwSprite({1, 0}, Id{}, Edge::kLeft, kNoNumber, sprite));
  };
  ask();
  const size_t each = handler.outgoing().size();
  while (handler.hasRoom()) ask();
  const size_t waits = handler.outgoing().size();
  EXPECT(waits >= kMostAsked && waits - each < kMostAsked);
  handler.outgoing().erase(0, each);
  EXPECT(handler.hasRoom());
}

}  // namespace

int main() {
  givesUpWhoDoesNotRead();
  takesNoMoreThanMayWait();
}
