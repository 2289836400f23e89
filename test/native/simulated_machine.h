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

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace sim {

constexpr uint64_t kMillisecond = 1000;
constexpr uint64_t kSecond = 1000 * kMillisecond;
constexpr uint64_t kNever = UINT64_MAX;
constexpr uint32_t kMostServers = 4;

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
  ~Thread() override { munmap(stack_, kStack); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /** Ends the wait with the number `what`. */
  void act(uint64_t what) override {
    if (what == waits_ && !done_) resume();
  }

  /** Runs the thread until it waits or is done. */
  void resume();

  /** Makes the thread a worker of its server. */
  void call(uint64_t number) { worker = server_ * uint64_t{10} + number; }

  /** Waits until `at` or `wake`; the thread itself calls it. */
  void wait(uint64_t at);

  /** Ends the thread's wait after `delay`. */
  void wake(uint64_t delay);

  bool done() const { return done_; }

  const void* condition = nullptr;  // the condition it waits for
  uint64_t worker = 0;              // server and worker: 12 is worker 2 of server 1; 0: no worker

 private:
  static constexpr size_t kStack = 1 << 20;

  __attribute__((no_sanitize("undefined"))) static void enter();
  void leave();

  Machine* const machine_;
  const uint32_t server_;
  ThreadBody* body_;  // owned; a sanitizer mistakes its class
  void* stack_ = mmap(nullptr, kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ucontext_t own_ = {};
  ucontext_t main_ = {};
  uint64_t waits_ = 0;
  bool begun_ = false;
  bool done_ = false;
  // The stacks, for AddressSanitizer.
  void* fake_ = nullptr;
  const void* mainStack_ = nullptr;
  size_t mainSize_ = 0;
};

class Machine {
 public:
  Machine(uint64_t seed, bool traces) : seed_(seed), random_(seed * 7919 + 17), traces_(traces) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  uint64_t now() const { return now_; }

  /** Reads the clock. Every fourth read takes time. */
  uint64_t look() {
    if (++looks_ % 4 == 0) now_ += lookTakes;
    return now_;
  }

  /** Advances the clock: it jumps, or the running code took this long. */
  void pass(uint64_t microseconds) { now_ += microseconds; }

  uint64_t below(uint64_t bound) { return bound == 0 ? 0 : random_() % bound; }
  bool chance(uint64_t ofMillion) { return ofMillion != 0 && random_() % 1000000 < ofMillion; }

  void after(uint64_t delay, Actor* actor, uint64_t what) {
    events_.push({now_ + delay, ++ordered_, actor, what});
  }

  /** Returns the time of the next event. */
  uint64_t next() const { return events_.empty() ? kNever : events_.top().at; }

  /** Runs the next event. */
  void step() {
    const Event event = events_.top();
    events_.pop();
    if (event.at > now_) now_ = event.at;
    ++steps_;
    event.actor->act(event.what);
  }

  uint64_t steps() const { return steps_; }

  void say(const char* format, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0) {
    said_[saidCount_++ % said_.size()] = {now_, steps_, format, {a, b, c}};
    const Said& last = said_[(saidCount_ - 1) % said_.size()];
    if (traces_) print(stdout, last);
    if (told) told(textOf(last));
  }

  /** Ends the run: prints the last steps and the broken law. */
  [[noreturn]] void broken(const std::string& law) {
    fflush(stdout);
    const uint64_t from = saidCount_ < said_.size() ? 0 : saidCount_ - said_.size();
    for (uint64_t i = from; i < saidCount_; ++i) print(stderr, said_[i % said_.size()]);
    fprintf(stderr, "seed %" PRIu64 ", broken in step %" PRIu64 ", after %.3f s: %s\n", seed_,
            steps_, static_cast<double>(now_ - kBegins) / kSecond, law.c_str());
    fflush(stderr);
    if (ended) ended(law);
    _Exit(1);
  }

  // ---- Threads

  Thread* begin(ThreadBody* body) {
    threads_.push_back(std::make_unique<Thread>(this, body));
    threads_.back()->wake(below(50));
    return threads_.back().get();
  }

  /** Runs a thread to its end, and removes it. */
  void join(Thread* thread) {
    for (int times = 0; !thread->done(); ++times) {
      if (times > 100000) broken("a thread does not end");
      thread->resume();
    }
    forgotten_.push_back(thread);
  }

  /** The running thread; nullptr: the main thread. */
  Thread* running = nullptr;

  /** Wakes one thread that waits for the condition. */
  void notify(const void* condition) {
    for (const auto& thread : threads_) {
      if (thread->condition != condition || thread->done()) continue;
      thread->condition = nullptr;
      return thread->wake(below(100));
    }
  }

  /** Frees ended threads that have no events left. */
  void tidy() {
    if (forgotten_.empty() || running != nullptr) return;
    const auto isForgotten = [this](const Event& event) {
      for (const Thread* one : forgotten_) {
        if (event.actor == one) return true;
      }
      return false;
    };
    std::vector<Event> kept;
    for (; !events_.empty(); events_.pop()) {
      if (!isForgotten(events_.top())) kept.push_back(events_.top());
    }
    for (const Event& event : kept) events_.push(event);
    std::erase_if(threads_, [this](const auto& thread) {
      for (const Thread* one : forgotten_) {
        if (thread.get() == one) return true;
      }
      return false;
    });
    forgotten_.clear();
  }

  uint32_t server = 0;  // the server whose code runs, or ran last

  /** The server's process is dead: its code has no more effect, and all its calls fail. */
  bool dead = false;

  // Called for each step in words, and for the broken law.
  std::function<void(const std::string&)> told, ended;

  uint64_t lookTakes = 1;  // microseconds of every fourth read of the clock

  static constexpr uint64_t kBegins = 1000 * kSecond;

 private:
  struct Event {
    uint64_t at;
    uint64_t order;
    Actor* actor;
    uint64_t what;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  struct Said {
    uint64_t at, step;
    const char* format;
    uint64_t numbers[3];
  };

  static std::string textOf(const Said& said) {
    char text[400];
    const int head = snprintf(text, sizeof text, "%10.6f  %-8" PRIu64 " ",
                              static_cast<double>(said.at - kBegins) / kSecond, said.step);
    snprintf(text + head, sizeof text - static_cast<size_t>(head), said.format, said.numbers[0],
             said.numbers[1], said.numbers[2]);
    return text;
  }

  static void print(FILE* to, const Said& said) { fprintf(to, "%s\n", textOf(said).c_str()); }

  const uint64_t seed_;
  std::mt19937_64 random_;
  const bool traces_;
  uint64_t now_ = kBegins;
  uint64_t looks_ = 0;
  uint64_t ordered_ = 0;
  uint64_t steps_ = 0;
  std::priority_queue<Event> events_;
  std::array<Said, 60> said_ = {};
  uint64_t saidCount_ = 0;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> forgotten_;
};

/** This run's machine. Global, since the server's system calls have no other access to it. */
inline Machine* machine = nullptr;

inline void expect(bool holds, const char* law) {
  if (!holds) machine->broken(law);
}

// ---- Threads ------------------------------------------------------------------------------------

inline Thread::Thread(Machine* machine, ThreadBody* body)
    : machine_(machine), server_(machine->server), body_(body) {}

inline void Thread::wait(uint64_t at) {
  ++waits_;
  if (at != kNever) machine_->after(at > machine_->now() ? at - machine_->now() : 0, this, waits_);
  leave();
}

inline void Thread::wake(uint64_t delay) { machine_->after(delay, this, waits_); }

inline void Thread::resume() {
  Thread* const before = machine_->running;
  machine_->running = this;
  machine_->server = server_;
  if (!begun_) {
    begun_ = true;
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_;
    own_.uc_stack.ss_size = kStack;
    own_.uc_link = nullptr;
    makecontext(&own_, &Thread::enter, 0);
  }
#if defined(__SANITIZE_ADDRESS__)
  void* fake;
  __sanitizer_start_switch_fiber(&fake, stack_, kStack);
#endif
  swapcontext(&main_, &own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  machine_->running = before;
}

inline void Thread::leave() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(done_ ? nullptr : &fake_, mainStack_, mainSize_);
#endif
  swapcontext(&own_, &main_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_, &mainStack_, &mainSize_);
#endif
}

inline void Thread::enter() {
  Thread* const self = machine->running;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->mainStack_, &self->mainSize_);
#endif
  self->body_->run();
  delete self->body_;
  self->done_ = true;
  self->leave();
}

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_MACHINE_H_
