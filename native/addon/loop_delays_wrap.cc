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
  static void create(const Info& info) {
    auto* delays = new LoopDelaysObject;
    delays->Wrap(info.This());
  }

  // read() → {bounds, counts, sum, longest}, in seconds; counts: one for each bound, and one for
  // longer delays
  static void read(const Info& info) {
    const base::LoopDelays& delays = unwrap<LoopDelaysObject>(info)->delays_;
    const auto inSeconds = [](uint32_t bound) { return bound / kMicroseconds; };
    info.GetReturnValue().Set(makeObject({
        {"bounds", listOf(base::LoopDelays::kBounds, inSeconds)},
        {"counts", delays.counts()},
        {"sum", delays.sum() / kMicroseconds},
        {"longest", delays.longest() / kMicroseconds},
    }));
  }

  // forgetLongest()
  static void forgetLongest(const Info& info) {
    unwrap<LoopDelaysObject>(info)->delays_.resetLongest();
  }

  // takeInterval() → {count, min, max, mean, stddev, p50, p90, p99}, in seconds, since the last
  // call
  static void takeInterval(const Info& info) {
    const auto interval = unwrap<LoopDelaysObject>(info)->delays_.takeInterval();
    info.GetReturnValue().Set(makeObject({
        {"count", interval.count},
        {"min", interval.min / kMicroseconds},
        {"max", interval.max / kMicroseconds},
        {"mean", interval.mean / kMicroseconds},
        {"stddev", interval.deviation / kMicroseconds},
        {"p50", interval.p50 / kMicroseconds},
        {"p90", interval.p90 / kMicroseconds},
        {"p99", interval.p99 / kMicroseconds},
    }));
  }

  // close()
  static void close(const Info& info) { unwrap<LoopDelaysObject>(info)->stop(); }

  base::LoopDelays delays_;
  Ticker ticker_{this, [](void* self) { static_cast<LoopDelaysObject*>(self)->tick(); }};
  LoopHandle<uv_prepare_t> prepareHandle_;
};

void initLoopDelays(Local<Object> target) { LoopDelaysObject::init(target); }

}  // namespace server
