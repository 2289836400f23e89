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

/** How much may wait for who reads nothing for `patience` microseconds; as much again otherwise. */
constexpr size_t kSome = 4 << 20;

LinkOptions patient(uint32_t patience) {
  return {.pace = 0, .mostKept = kSome, .mostEver = 2 * kSome, .patience = patience};
}

/** One end with a link, and the other's descriptor. */
struct Linked {
  explicit Linked(const LinkOptions& options) : links(&events) {
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    links.attach(ends[0], &end, options);
  }
  ~Linked() { close(ends[1]); }
  Linked(const Linked&) = delete;
  Linked& operator=(const Linked&) = delete;

  /** More than may wait gathers in a turn; whether its process is given up by the turn's end. */
  bool gatherTooMuch() {
    end.gather(kSome + kSome / 2);
    links.send();
    links.giveUpTheDeaf();
    return end.timesLost > 0;
  }

  EventSet events;
  RelayLinks links;
  Gathering end;
  int ends[2];
};

/** What has gathered at once is no reason: the other process had no time to read it. */
void givesTimeToRead() {
  Linked one(patient(UINT32_MAX));
  EXPECT(!one.gatherTooMuch());
  // All memory has an end.
  EXPECT(one.gatherTooMuch());
}

/** Who reads nothing in the time there is, is given up. */
void givesUpInTime() {
  constexpr uint32_t kPatience = 30000;
  Linked one(patient(kPatience));
  const uint64_t began = EventSet::now();
  for (bool lost = one.gatherTooMuch(); !lost; lost = one.end.timesLost > 0) {
    EXPECT(EventSet::now() - began < 2000 * uint64_t{kPatience});
    usleep(1000);
    one.links.giveUpTheDeaf();
  }
  EXPECT(EventSet::now() - began >= kPatience);
}

/** Who has read on is not, though this process has not looked at its events since. */
void noticesWhoReadsOn() {
  constexpr uint32_t kPatience = 250000;
  Linked one(patient(kPatience));
  EXPECT(!one.gatherTooMuch());
  usleep(kPatience + 50000);
  bool closed;
  EXPECT(drain(one.ends[1], &closed) > 0);
  one.links.giveUpTheDeaf();
  EXPECT(one.end.timesLost == 0);
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
  givesTimeToRead();
  givesUpInTime();
  noticesWhoReadsOn();
  takesNoMoreThanMayWait();
}
