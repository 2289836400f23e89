// The law of the turn, over sockets and without Node: no answer goes out before the journal has
// what was decided, and by Sync::kTurn not before the disk has; what can't be written is not
// answered at all.
//
//   front_test
#include "server/front.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>

#include "door_options.h"
#include "peer.h"
#include "state_scene.h"

namespace {

using namespace scene;
using server::test::request;
using server::test::Wire;

/** The disk takes nothing. */
std::atomic<bool> failing = false;
/** A sync lasts until this is over. */
std::atomic<bool> slow = false;

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {
ssize_t __real_pwrite(int fd, const void* bytes, size_t length, off_t at);
int __real_fdatasync(int fd);

ssize_t __wrap_pwrite(int fd, const void* bytes, size_t length, off_t at) {
  if (!failing) return __real_pwrite(fd, bytes, length, at);
  errno = EIO;
  return -1;
}
int __wrap_fdatasync(int fd) {
  while (slow) usleep(100);
  return __real_fdatasync(fd);
}
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

uint64_t microseconds() { return 1'000'000; }

/** A front with a state, as the main process has it. */
class Stage {
 public:
  explicit Stage(const Folder& folder, Sync sync)
      : folder_(folder),
        pool_(poolOptions(100), &limits_, 0),
        turn_(&pool_),
        front_(test::doorOptions(16, 1000), parts(), test::doorReplies(),
               {.ask = {}, .gone = {}, .bodies = {}}, 0) {
    EXPECT(turn_.open(storeOptions(folder, sync)).ok());
    EXPECT(turn_.start([this] { synced_ = true; }) == 0);
    front_.onWaits([this](bool whether) { waits_ = whether; });
    EXPECT(front_.listen(
               {.address = "127.0.0.1", .port = 0, .backlog = 16, .tls = false, .transient = false},
               &port_) == 0);
  }
  ~Stage() { turn_.store()->stopSyncing(); }

  uint16_t port() const { return port_; }
  const Counts& counts() { return pool_.counts(); }
  bool waits() const { return waits_; }

  /** Turns of the loop, until `holds`. */
  void until(const std::function<bool()>& holds) {
    for (int turns = 0; !holds(); ++turns) {
      EXPECT(turns < 200000);
      if (turns > 100) usleep(100);
      if (!waits_) front_.turn();
      if (synced_.exchange(false)) turn_.caughtUp();
    }
  }

  /** The clients and sprites that a process would find that starts now. */
  std::pair<uint64_t, uint64_t> afterACrash() const {
    AfterACrash crash(folder_);
    const Counts& counts = crash.pool().counts();
    return {counts.clients, counts.thrown};
  }

 private:
  FrontParts parts() {
    return {.limits = &limits_,
            .clock = microseconds,
            .counts = [] { return std::string("{}"); },
            .turn = &turn_,
            .pool = &pool_};
  }

  const Folder& folder_;
  AddressLimits limits_{AddressLimitsOptions{}};
  Pool pool_;
  Turn turn_;
  Front front_;
  std::atomic<bool> synced_ = false;
  bool waits_ = false;
  uint16_t port_ = 0;
};

/** The status of the next answer, and its body. */
std::string answerTo(Stage* stage, Wire* wire, const std::string& text, std::string* body) {
  wire->send(text);
  std::string head;
  stage->until([&] { return wire->take(&head, body); });
  return head.substr(9, 3);
}

void anAnswerIsInTheJournal(Sync sync) {
  const Folder folder;
  Stage stage(folder, sync);
  Wire wire(stage.port());
  std::string id;
  EXPECT(answerTo(&stage, &wire, request("POST", "/join"), &id) == "201");
  EXPECT((stage.afterACrash() == std::pair(1ul, 0ul)));
  std::string body;
  for (uint64_t thrown = 1; thrown <= 3; ++thrown) {
    EXPECT(answerTo(&stage, &wire, request("POST", "/throw/" + id + "/left", "{}"), &body) ==
           "202");
    EXPECT((stage.afterACrash() == std::pair(1ul, thrown)));
  }
}

void theDiskIsWaitedFor() {
  const Folder folder;
  Stage stage(folder, Sync::kTurn);
  Wire wire(stage.port());
  std::string id;
  EXPECT(answerTo(&stage, &wire, request("POST", "/join"), &id) == "201");
  slow = true;
  wire.send(request("POST", "/join"));
  stage.until([&] { return stage.waits(); });
  EXPECT(stage.counts().clients == 2);
  EXPECT(wire.read().empty());
  slow = false;
  stage.until([&] { return wire.read().starts_with("HTTP/1.1 201"); });
}

void whatIsNotWrittenIsNotAnswered() {
  const Folder folder;
  Stage stage(folder, Sync::kNever);
  Wire first(stage.port());
  std::string id;
  EXPECT(answerTo(&stage, &first, request("POST", "/join"), &id) == "201");
  failing = true;
  Wire second(stage.port());
  second.send(request("POST", "/join"));
  stage.until([&] { return (second.read(), second.over()); });
  EXPECT(second.read().empty());
  // From now on it is said.
  std::string body;
  EXPECT(answerTo(&stage, &first, request("POST", "/throw/" + id + "/left", "{}"), &body) == "400");
  failing = false;
  EXPECT(stage.afterACrash().first == 1);
}

}  // namespace

int main() {
  anAnswerIsInTheJournal(Sync::kNever);
  anAnswerIsInTheJournal(Sync::kTurn);
  theDiskIsWaitedFor();
  whatIsNotWrittenIsNotAnswered();
  puts("front_test: each answer was in the journal before it went out");
}
