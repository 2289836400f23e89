#include "loop_turns.h"

#include <cerrno>
#include <system_error>
#include <vector>

#include "loop.h"
#include "ticker.h"

namespace server {

namespace {

// State of the only loop with this addon, the default one.
std::vector<SleepListener*> listeners;
uint64_t sleptHere = 0;         // microseconds
bool calledJavaScript = false;  // since sleepAndTurn began

/** Takes turns within a callback of the loop. */
template <typename Turns>
void takeTurns(Nan::ObjectWrap* object, Front* front, Turns&& turns) {
  // Deferred JavaScript may close the object.
  Nan::HandleScope scope;
  [[maybe_unused]] const v8::Local<v8::Object> keptAlive = object->handle();
  uint64_t ended;
  {
    LoopScope callback(object);
    turns();
    ended = microseconds();
  }
  front->countDeferred(microseconds() - ended);
}

class PolledTurns final : public LoopTurns {
 public:
  PolledTurns(Nan::ObjectWrap* object, Front* front)
      : object_(object),
        front_(front),
        poll_(makeHandle<uv_poll_t>(this, uv_poll_init, front->events()->fd())) {
    setPaused(false);
  }

  void setPaused(bool isPaused) override {
    if (isPaused) {
      uv_poll_stop(poll_.get());
      return;
    }
    uv_poll_start(poll_.get(), UV_READABLE, [](uv_poll_t* poll, int, int) {
      auto* const self = static_cast<PolledTurns*>(poll->data);
      takeTurns(self->object_, self->front_, [self] { self->front_->turn(); });
    });
  }

  void close() override { poll_.reset(); }

 private:
  Nan::ObjectWrap* const object_;
  Front* const front_;
  LoopHandle<uv_poll_t> poll_;
};

class SleepingTurns final : public LoopTurns, private Watcher {
 public:
  SleepingTurns(Nan::ObjectWrap* object, Front* front)
      : object_(object),
        front_(front),
        loop_(Nan::GetCurrentEventLoop()),
        idleHandle_(makeQuietHandle<uv_idle_t>(this, uv_idle_init)),
        checkHandle_(makeHandle<uv_check_t>(this, uv_check_init)) {
    if (!front->events()->add(uv_backend_fd(loop_), this, EPOLLIN)) {
      throw std::system_error(errno, std::generic_category());
    }
    v8::Isolate::GetCurrent()->AddBeforeCallEnteredCallback(
        [](v8::Isolate*) { calledJavaScript = true; });
    setPaused(false);
  }

  void setPaused(bool isPaused) override {
    isPaused_ = isPaused;
    setAwake(!isPaused);
    if (isPaused) {
      uv_check_stop(checkHandle_.get());
      return;
    }
    uv_check_start(checkHandle_.get(),
                   [](uv_check_t* handle) { static_cast<SleepingTurns*>(handle->data)->check(); });
  }

  void close() override {
    isPaused_ = true;
    idleHandle_.reset();
    checkHandle_.reset();
  }

 private:
  /** Notes that Node's set is ready. */
  void onEvents(uint32_t /*events*/) override { isLoopReady_ = true; }

  /**
   * Keeps the loop awake: while an idle handle is active the loop does not wait, and
   * uv_backend_timeout returns 0.
   */
  void setAwake(bool isAwake) {
    if (isAwake) {
      uv_idle_start(idleHandle_.get(), [](uv_idle_t*) {});
    } else {
      uv_idle_stop(idleHandle_.get());
    }
  }

  /** Called when the loop has looked at its set. */
  void check() {
    setAwake(false);
    // Deferred JavaScript runs after the turn that has called JavaScript, which is the last turn.
    takeTurns(object_, front_, [this] { sleepAndTurn(); });
    if (!isPaused_) setAwake(true);
  }

  /**
   * Sleeps and takes turns until the loop has something to do; looks for events once in any case.
   */
  void sleepAndTurn() {
    // JavaScript may have set deadlines.
    if (calledJavaScript) Ticker::clearQuiet();
    isLoopReady_ = calledJavaScript = false;
    int timeout;
    do {
      Ticker::restIfQuiet();
      // The timeout is 0 while the kernel does not know yet all that the loop waits for.
      timeout = uv_backend_timeout(loop_);
      // A tick may have closed the door.
      if (!sleep(timeout) || isPaused_) return;
      front_->turn();
    } while (timeout != 0 && !isLoopReady_ && !calledJavaScript && !isPaused_);
  }

  /** Sleeps. Returns whether an event has come. */
  bool sleep(int milliseconds) {
    const uint64_t began = microseconds();
    for (SleepListener* one : listeners) one->onSleep(began);
    EventSet* const events = front_->events();
    events->waitAtNextCollect(milliseconds);
    events->collect();
    sleptHere += microseconds() - began;
    uv_update_time(loop_);
    Ticker::makeUpMissedTicks();
    if (events->hasEvents()) Ticker::clearQuiet();
    return events->hasEvents();
  }

  Nan::ObjectWrap* const object_;
  Front* const front_;
  uv_loop_t* const loop_;
  bool isLoopReady_ = false;  // Node's set is ready
  bool isPaused_ = false;     // or closed
  LoopHandle<uv_idle_t> idleHandle_;
  LoopHandle<uv_check_t> checkHandle_;
};

}  // namespace

std::unique_ptr<LoopTurns> LoopTurns::makePolled(Nan::ObjectWrap* object, Front* front) {
  return std::make_unique<PolledTurns>(object, front);
}

std::unique_ptr<LoopTurns> LoopTurns::makeSleeping(Nan::ObjectWrap* object, Front* front) {
  return std::make_unique<SleepingTurns>(object, front);
}

SleepListener::SleepListener() { listeners.push_back(this); }

SleepListener::~SleepListener() { std::erase(listeners, this); }

uint64_t SleepListener::totalSleep() {
  return sleptHere + uv_metrics_idle_time(uv_default_loop()) / 1000;
}

}  // namespace server
