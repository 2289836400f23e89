// The machine that a simulation runs on: one seed, the time, a queue of events, and threads.
//
//   events  [ at │ actor │ what ] …  ─ the next one ─▶ actor.act(what): a step
//   time    advances to the event's time, and a little at some reads of the clock
//   threads each has its own stack, and runs as a step until it waits: for its event set, a lock's
//           condition, the disk. Only one runs at a time, so that the seed decides the run.
//
// A step is described in words with up to three numbers. The last steps are kept for a failure.
#ifndef TEST_NATIVE_SIMULATED_MACHINE_H_
#define TEST_NATIVE_SIMULATED_MACHINE_H_

#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

namespace sim {

constexpr uint64_t kMillisecond = 1000;
constexpr uint64_t kSecond = 1000 * kMillisecond;
constexpr uint64_t kNever = UINT64_MAX;
constexpr uint32_t kMaxServers = 4;

/** The receiver of events. It must outlive its events. */
class Actor {
 public:
  virtual ~Actor() = default;
  virtual void act(uint64_t what) = 0;
};

/** The library's object that a std::thread runs: a vtable with two destructors and `run`. */
class ThreadBody {
 public:
  virtual ~ThreadBody() = default;
  virtual void run() = 0;
};

class Machine;

/** A thread of a server. */
class Thread : public Actor {
 public:
  Thread(Machine* machine, ThreadBody* body);
  ~Thread() override { munmap(stack_, kStackBytes); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /** Ends the wait with the number `what`. */
  void act(uint64_t what) override {
    if (what == waitNumber_ && !isDone_) resume();
  }

  /** Runs the thread until it waits or is done. */
  void resume();

  /** Makes the thread a worker of its server. */
  void setWorker(uint64_t number) { worker = server_ * uint64_t{10} + number; }

  /** Waits until `at` or `wake`; the thread itself calls it. */
  void wait(uint64_t at);

  /** Ends the thread's wait after `delay`. */
  void wake(uint64_t delay);

  bool isDone() const { return isDone_; }

  const void* condition = nullptr;  // the condition it waits for
  uint64_t worker = 0;              // server and worker: 12 is worker 2 of server 1; 0: no worker

 private:
  static constexpr size_t kStackBytes = 1 << 20;

  __attribute__((no_sanitize("undefined"))) static void enter();
  void yield();

  Machine* const machine_;
  const uint32_t server_;
  ThreadBody* body_;  // owned; a sanitizer mistakes its class
  void* stack_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ucontext_t context_ = {};
  ucontext_t mainContext_ = {};
  uint64_t waitNumber_ = 0;
  bool hasBegun_ = false;
  bool isDone_ = false;
};

class Machine {
 public:
  Machine(uint64_t seed, bool traces) : seed_(seed), random_(seed * 7919 + 17), traces_(traces) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  uint64_t now() const { return now_; }

  /** Reads the clock. Every fourth read takes time. */
  uint64_t readClock() {
    if (++clockReads_ % 4 == 0) now_ += clockReadTime;
    return now_;
  }

  /** Advances the clock: it jumps, or the running code took this long. */
  void advance(uint64_t microseconds) { now_ += microseconds; }

  uint64_t below(uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }
  bool happens(uint64_t ofMillion) { return ofMillion != 0 && random_() % 1000000 < ofMillion; }

  void schedule(uint64_t delay, Actor* actor, uint64_t what) {
    events_.push({now_ + delay, ++lastOrder_, actor, what});
  }

  /** Returns the time of the next event. */
  uint64_t nextTime() const { return events_.empty() ? kNever : events_.top().at; }

  /** Runs the next event. */
  void step() {
    const Event event = events_.top();
    events_.pop();
    if (event.at > now_) now_ = event.at;
    ++steps_;
    event.actor->act(event.code);
  }

  uint64_t steps() const { return steps_; }

  void trace(const char* format, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) {
    tracedSteps_[tracedCount_++ % tracedSteps_.size()] = {now_, steps_, format, {a, b, c}};
    const TracedStep& last = tracedSteps_[(tracedCount_ - 1) % tracedSteps_.size()];
    if (traces_) print(stdout, last);
    if (onTrace) onTrace(textOf(last));
  }

  /** Ends the run: prints the last steps and the broken law. */
  [[noreturn]] void fail(const std::string& law) {
    fflush(stdout);
    const uint64_t from =
        tracedCount_ < tracedSteps_.size() ? 0 : tracedCount_ - tracedSteps_.size();
    for (uint64_t i = from; i < tracedCount_; ++i)
      print(stderr, tracedSteps_[i % tracedSteps_.size()]);
    fprintf(stderr, "seed %" PRIu64 ", broken in step %" PRIu64 ", after %.3f s: %s\n", seed_,
            steps_, static_cast<double>(now_ - kStartTime) / kSecond, law.c_str());
    fflush(stderr);
    if (onFailure) onFailure(law);
    _Exit(1);
  }

  // ---- Threads

  Thread* startThread(ThreadBody* body) {
    threads_.push_back(std::make_unique<Thread>(this, body));
    threads_.back()->wake(below(50));
    return threads_.back().get();
  }

  /** Runs a thread to its end, and removes it. */
  void joinThread(Thread* thread) {
    for (int times = 0; !thread->isDone(); ++times) {
      if (times > 100000) fail("a thread does not end");
      thread->resume();
    }
    endedThreads_.push_back(thread);
  }

  /** The running thread; nullptr: the main thread. */
  Thread* running = nullptr;

  /** Wakes one thread that waits for the condition. */
  void notify(const void* condition) {
    for (const auto& thread : threads_) {
      if (thread->condition != condition || thread->isDone()) continue;
      thread->condition = nullptr;
      return thread->wake(below(100));
    }
  }

  /** Frees ended threads that have no events left. */
  void freeEndedThreads() {
    if (endedThreads_.empty() || running != nullptr) return;
    const auto hasEnded = [this](const Event& event) {
      for (const Thread* one : endedThreads_) {
        if (event.actor == one) return true;
      }
      return false;
    };
    std::vector<Event> remaining;
    for (; !events_.empty(); events_.pop()) {
      if (!hasEnded(events_.top())) remaining.push_back(events_.top());
    }
    for (const Event& event : remaining) events_.push(event);
    std::erase_if(threads_, [this](const auto& thread) {
      for (const Thread* one : endedThreads_) {
        if (thread.get() == one) return true;
      }
      return false;
    });
    endedThreads_.clear();
  }

  uint32_t server = 0;  // the server whose code runs, or ran last

  /** The server's process is dead: its code has no more effect, and all its calls fail. */
  bool isDead = false;

  // Called for each step in words, and for the broken law.
  std::function<void(const std::string&)> onTrace, onFailure;

  uint64_t clockReadTime = 1;  // microseconds of every fourth read of the clock

  static constexpr uint64_t kStartTime = 1000 * kSecond;

 private:
  struct Event {
    uint64_t at;
    uint64_t order;
    Actor* actor;
    uint64_t code;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  struct TracedStep {
    uint64_t at, step;
    const char* format;
    uint64_t numbers[3];
  };

  static std::string textOf(const TracedStep& step) {
    char text[400];
    const int head = snprintf(text, sizeof text, "%10.6f  %-8" PRIu64 " ",
                              static_cast<double>(step.at - kStartTime) / kSecond, step.step);
    snprintf(text + head, sizeof text - static_cast<size_t>(head), step.format, step.numbers[0],
             step.numbers[1], step.numbers[2]);
    return text;
  }

  static void print(FILE* to, const TracedStep& step) { fprintf(to, "%s\n", textOf(step).c_str()); }

  const uint64_t seed_;
  std::mt19937_64 random_;
  const bool traces_;
  uint64_t now_ = kStartTime;
  uint64_t clockReads_ = 0;
  uint64_t lastOrder_ = 0;
  uint64_t steps_ = 0;
  std::priority_queue<Event> events_;
  std::array<TracedStep, 60> tracedSteps_ = {};
  uint64_t tracedCount_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> endedThreads_;
};

/** This run's machine. Global, since the server's system calls have no other access to it. */
inline Machine* machine = nullptr;

inline void expect(bool holds, const char* law) {
  if (!holds) machine->fail(law);
}

// ---- Threads ------------------------------------------------------------------------------------

inline Thread::Thread(Machine* machine, ThreadBody* body)
    : machine_(machine), server_(machine->server), body_(body) {}

inline void Thread::wait(uint64_t at) {
  ++waitNumber_;
  if (at != kNever)
    machine_->schedule(at > machine_->now() ? at - machine_->now() : 0, this, waitNumber_);
  yield();
}

inline void Thread::wake(uint64_t delay) { machine_->schedule(delay, this, waitNumber_); }

inline void Thread::resume() {
  Thread* const before = machine_->running;
  machine_->running = this;
  machine_->server = server_;
  if (!hasBegun_) {
    hasBegun_ = true;
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_;
    context_.uc_stack.ss_size = kStackBytes;
    context_.uc_link = nullptr;
    makecontext(&context_, &Thread::enter, 0);
  }
  swapcontext(&mainContext_, &context_);
  machine_->running = before;
}

inline void Thread::yield() { swapcontext(&context_, &mainContext_); }

inline void Thread::enter() {
  Thread* const self = machine->running;
  self->body_->run();
  delete self->body_;
  self->isDone_ = true;
  self->yield();
}

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_MACHINE_H_
