// How late Node's loop is, as a JavaScript object: it tells base/loop_delays.h of every turn.
#include <uv.h>

#include "base/loop_delays.h"
#include "convert.h"
#include "loop_scope.h"
#include "wraps.h"

namespace server {

namespace {

/** Milliseconds from one look whether the loop is woken in time to the next: a tick of the pool. */
constexpr uint64_t kBeat = 100;

/** Microseconds by which the loop's own clock, which knows milliseconds, may be wrong. */
constexpr uint64_t kSlack = 2000;

constexpr double kMicroseconds = 1e6;  // a second

uint64_t slept(uv_loop_t* loop) { return uv_metrics_idle_time(loop) / 1000; }

}  // namespace

class LoopDelaysObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "LoopDelays", create,
                {
                    {"read", read},
                    {"forgetLongest", forgetLongest},
                    {"takeInterval", takeInterval},
                    {"close", close},
                });
  }

 private:
  explicit LoopDelaysObject(uv_loop_t* loop)
      : delays_(microseconds(), slept(loop)), beat_(new uv_timer_t), end_(new uv_prepare_t) {
    // The handles outlive the object: the loop gives them back when it has closed them.
    beat_->data = end_->data = this;
    uv_timer_init(loop, beat_);
    beatAt_ = microseconds() + kBeat * 1000;
    uv_timer_start(beat_, beat, kBeat, kBeat);
    uv_unref(reinterpret_cast<uv_handle_t*>(beat_));
    // Called at the end of every turn, before the loop sleeps.
    uv_prepare_init(loop, end_);
    uv_prepare_start(end_, [](uv_prepare_t* end) {
      static_cast<LoopDelaysObject*>(end->data)->delays_.turn(microseconds(), slept(end->loop));
    });
    uv_unref(reinterpret_cast<uv_handle_t*>(end_));
  }

  ~LoopDelaysObject() override { stop(); }

  void stop() {
    if (beat_ == nullptr) return;
    uv_close(reinterpret_cast<uv_handle_t*>(beat_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_timer_t*>(handle); });
    uv_close(reinterpret_cast<uv_handle_t*>(end_),
             [](uv_handle_t* handle) { delete reinterpret_cast<uv_prepare_t*>(handle); });
    beat_ = nullptr;
    end_ = nullptr;
  }

  static void beat(uv_timer_t* timer) {
    auto* self = static_cast<LoopDelaysObject*>(timer->data);
    const uint64_t time = microseconds();
    if (time > self->beatAt_ + kSlack) self->delays_.late(self->beatAt_);
    self->beatAt_ = time + kBeat * 1000;
  }

  // new LoopDelays()
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* delays = new LoopDelaysObject(Nan::GetCurrentEventLoop());
    delays->Wrap(info.This());
    info.GetReturnValue().Set(info.This());
  }

  // read() → {bounds, counts, sum, longest}, in seconds: counts as of bounds, and of what is longer
  static void read(const Nan::FunctionCallbackInfo<Value>& info) {
    const base::LoopDelays& delays = unwrap<LoopDelaysObject>(info)->delays_;
    std::array<double, base::LoopDelays::kBounds.size()> bounds;
    for (size_t i = 0; i < bounds.size(); ++i) {
      bounds[i] = base::LoopDelays::kBounds[i] / kMicroseconds;
    }
    Local<Object> result = Nan::New<Object>();
    setList(result, "bounds", bounds);
    setList(result, "counts", delays.counts());
    set(result, "sum", delays.sum() / kMicroseconds);
    set(result, "longest", delays.longest() / kMicroseconds);
    info.GetReturnValue().Set(result);
  }

  // forgetLongest()
  static void forgetLongest(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<LoopDelaysObject>(info)->delays_.forgetLongest();
  }

  // takeInterval() → {count, min, max, mean, stddev, p50, p90, p99}, in seconds, since the last
  static void takeInterval(const Nan::FunctionCallbackInfo<Value>& info) {
    const auto taken = unwrap<LoopDelaysObject>(info)->delays_.takeInterval();
    Local<Object> result = Nan::New<Object>();
    set(result, "count", taken.count);
    set(result, "min", taken.min / kMicroseconds);
    set(result, "max", taken.max / kMicroseconds);
    set(result, "mean", taken.mean / kMicroseconds);
    set(result, "stddev", taken.deviation / kMicroseconds);
    set(result, "p50", taken.p50 / kMicroseconds);
    set(result, "p90", taken.p90 / kMicroseconds);
    set(result, "p99", taken.p99 / kMicroseconds);
    info.GetReturnValue().Set(result);
  }

  // close()
  static void close(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<LoopDelaysObject>(info)->stop();
  }

  base::LoopDelays delays_;
  uint64_t beatAt_ = 0;  // microseconds: when the timer is due
  uv_timer_t* beat_;
  uv_prepare_t* end_;
};

void initLoopDelays(Local<Object> target) { LoopDelaysObject::init(target); }

}  // namespace server
