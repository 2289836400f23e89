// The delays of Node's loop, as a JavaScript object: it reports every turn to base/loop_delays.h.
#include "base/loop_delays.h"
#include "convert.h"
#include "loop.h"
#include "loop_turns.h"
#include "ticker.h"
#include "wraps.h"

namespace server {

namespace {

/** Possible error of the loop's own clock, which counts milliseconds, in microseconds. */
constexpr uint64_t kSlack = 2000;

constexpr double kMicroseconds = 1e6;  // a second

}  // namespace

class LoopDelaysObject : public Nan::ObjectWrap, private SleepListener {
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
  LoopDelaysObject()
      : delays_(microseconds(), totalSleep()),
        prepareHandle_(makeQuietHandle<uv_prepare_t>(this, uv_prepare_init)) {
    // Called at the end of every turn, before the loop sleeps.
    uv_prepare_start(prepareHandle_.get(), [](uv_prepare_t* end) {
      static_cast<LoopDelaysObject*>(end->data)->onSleep(microseconds());
    });
  }

  ~LoopDelaysObject() override { stop(); }

  void stop() {
    ticker_.stop();
    prepareHandle_.reset();
  }

  void onSleep(uint64_t now) override { delays_.turn(now, totalSleep()); }

  /** Checks whether the loop was woken in time. */
  void tick() {
    const uint64_t dueAt = ticker_.wasDueAt();
    if (microseconds() > dueAt + kSlack) delays_.setPlannedTime(dueAt);
    ticker_.setQuiet(true);
  }

  // new LoopDelays()
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* delays = new LoopDelaysObject;
    delays->Wrap(info.This());
    info.GetReturnValue().Set(info.This());
  }

  // read() → {bounds, counts, sum, longest}, in seconds; counts: one for each bound, and one for
  // longer delays
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
    unwrap<LoopDelaysObject>(info)->delays_.resetLongest();
  }

  // takeInterval() → {count, min, max, mean, stddev, p50, p90, p99}, in seconds, since the last
  // call
  static void takeInterval(const Nan::FunctionCallbackInfo<Value>& info) {
    const auto interval = unwrap<LoopDelaysObject>(info)->delays_.takeInterval();
    Local<Object> result = Nan::New<Object>();
    set(result, "count", interval.count);
    set(result, "min", interval.min / kMicroseconds);
    set(result, "max", interval.max / kMicroseconds);
    set(result, "mean", interval.mean / kMicroseconds);
    set(result, "stddev", interval.deviation / kMicroseconds);
    set(result, "p50", interval.p50 / kMicroseconds);
    set(result, "p90", interval.p90 / kMicroseconds);
    set(result, "p99", interval.p99 / kMicroseconds);
    info.GetReturnValue().Set(result);
  }

  // close()
  static void close(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<LoopDelaysObject>(info)->stop();
  }

  base::LoopDelays delays_;
  Ticker ticker_{this, [](void* self) { static_cast<LoopDelaysObject*>(self)->tick(); }};
  LoopHandle<uv_prepare_t> prepareHandle_;
};

void initLoopDelays(Local<Object> target) { LoopDelaysObject::init(target); }

}  // namespace server
