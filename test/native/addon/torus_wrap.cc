// The torus as a JavaScript class, for the tests and the benchmark: arguments are checked and
// converted, and the nodes that each step touches are counted.
#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "addon.h"
#include "addon/convert.h"
#include "torus/torus.h"

namespace server {

namespace {

/** The account of law 2: of how many nodes, other than the one that joins or leaves, links changed.
 */
class Account : public TorusObserver {
 public:
  explicit Account(Torus* torus) : torus_(torus) { torus->observe(this); }

  void changes(uint32_t node) override {
    const auto known = std::find_if(before_.begin(), before_.end(),
                                    [node](const Before& one) { return one.node == node; });
    if (known == before_.end()) before_.push_back(now(node));
  }

  /** Ends a step of `subject`; returns how many others it touched. */
  uint32_t end(uint32_t subject) {
    uint32_t count = 0;
    for (const Before& one : before_) count += one.node != subject && one != now(one.node);
    before_.clear();
    ++steps;
    total += count;
    most = std::max(most, count);
    return count;
  }

  uint64_t steps = 0;
  uint64_t total = 0;
  uint32_t most = 0;

 private:
  /** A node's links before the step first set one. */
  struct Before {
    uint32_t node;
    std::array<uint32_t, 4> links;

    bool operator==(const Before&) const = default;
  };

  Before now(uint32_t node) const {
    Before now = {node, {}};
    for (uint8_t edge = 0; edge < 4; ++edge) now.links[edge] = torus_->neighbor(node, Edge{edge});
    return now;
  }

  const Torus* const torus_;
  std::vector<Before> before_;
};

/**
 * `new Torus(capacity)`: nodes are the integers below `capacity`. Methods throw a TypeError for an
 * argument of the wrong kind, and a RangeError for a node that does not fit the call.
 */
class TorusWrap : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Torus", construct,
                {
                    {"join", join},
                    {"leave", leave},
                    {"neighbor", neighbor},
                    {"contains", contains},
                    {"slot", slot},
                    {"place", place},
                    {"state", state},
                    {"touches", touches},
                    {"links", links},
                    {"slots", slots},
                    {"restore", restore},
                });
  }

 private:
  explicit TorusWrap(uint32_t capacity) : torus_(capacity), account_(&torus_) {}

  static TorusWrap* self(const Nan::FunctionCallbackInfo<Value>& info) {
    return unwrap<TorusWrap>(info);
  }

  /** Reads a uint32 argument; throws a TypeError and returns false if it is none. */
  static bool number(Local<Value> value, const char* message, uint32_t* out) {
    if (!value->IsUint32()) {
      Nan::ThrowTypeError(message);
      return false;
    }
    *out = value.As<v8::Uint32>()->Value();
    return true;
  }

  /** Reads a node that is (or is not) in the torus; throws and returns false for any other. */
  bool node(Local<Value> value, bool inside, uint32_t* out) const {
    if (!number(value, "a node is an unsigned integer", out)) return false;
    if (*out >= torus_.capacity()) {
      Nan::ThrowRangeError("the node is not below the capacity");
      return false;
    }
    if (torus_.contains(*out) != inside) {
      Nan::ThrowRangeError(inside ? "the node is not in the torus" : "the node is in the torus");
      return false;
    }
    return true;
  }

  /** new Torus(capacity: number) */
  static NAN_METHOD(construct) {
    uint32_t capacity;
    if (!info.IsConstructCall()) return Nan::ThrowTypeError("Torus needs new");
    if (!number(info[0], "the capacity is an unsigned integer", &capacity)) return;
    try {
      (new TorusWrap(capacity))->Wrap(info.This());
    } catch (const std::bad_alloc&) {
      return Nan::ThrowRangeError("no address space for a torus of that capacity");
    }
    info.GetReturnValue().Set(info.This());
  }

  /** join(node): number of other nodes touched */
  static NAN_METHOD(join) {
    TorusWrap* wrap = self(info);
    uint32_t node;
    if (!wrap->node(info[0], false, &node)) return;
    wrap->torus_.join(node);
    info.GetReturnValue().Set(wrap->account_.end(node));
  }

  /** leave(node): number of other nodes touched */
  static NAN_METHOD(leave) {
    TorusWrap* wrap = self(info);
    uint32_t node;
    if (!wrap->node(info[0], true, &node)) return;
    wrap->torus_.leave(node);
    info.GetReturnValue().Set(wrap->account_.end(node));
  }

  /** neighbor(node, edge): the node beyond edge 0 left, 1 right, 2 up, 3 down */
  static NAN_METHOD(neighbor) {
    TorusWrap* wrap = self(info);
    uint32_t node;
    uint32_t edge;
    if (!wrap->node(info[0], true, &node)) return;
    if (!number(info[1], "an edge is an integer from 0 to 3", &edge)) return;
    if (edge > 3) return Nan::ThrowRangeError("an edge is an integer from 0 to 3");
    info.GetReturnValue().Set(wrap->torus_.neighbor(node, static_cast<Edge>(edge)));
  }

  /** contains(node): boolean */
  static NAN_METHOD(contains) {
    TorusWrap* wrap = self(info);
    uint32_t node;
    if (!number(info[0], "a node is an unsigned integer", &node)) return;
    info.GetReturnValue().Set(node < wrap->torus_.capacity() && wrap->torus_.contains(node));
  }

  /** slot(node): number */
  static NAN_METHOD(slot) {
    TorusWrap* wrap = self(info);
    uint32_t node;
    if (wrap->node(info[0], true, &node)) info.GetReturnValue().Set(wrap->torus_.slot(node));
  }

  /** place(node): {row, column, rows, columns} */
  static NAN_METHOD(place) {
    TorusWrap* wrap = self(info);
    uint32_t node;
    if (!wrap->node(info[0], true, &node)) return;
    info.GetReturnValue().Set(objectOf(wrap->torus_.place(node)));
  }

  /** state(): {size, opened, rows, columns, ownRows, ownColumns} */
  static NAN_METHOD(state) {
    const Torus& torus = self(info)->torus_;
    Local<Object> result = Nan::New<Object>();
    set(result, "size", torus.size());
    set(result, "opened", torus.opened());
    set(result, "rows", torus.rows());
    set(result, "columns", torus.columns());
    set(result, "ownRows", torus.ownRows());
    set(result, "ownColumns", torus.ownColumns());
    info.GetReturnValue().Set(result);
  }

  /** touches(): {steps, total, most}, the account of law 2 */
  static NAN_METHOD(touches) {
    const Account& touches = self(info)->account_;
    Local<Object> result = Nan::New<Object>();
    set(result, "steps", static_cast<double>(touches.steps));
    set(result, "total", static_cast<double>(touches.total));
    set(result, "most", touches.most);
    info.GetReturnValue().Set(result);
  }

  /**
   * links(out: Uint32Array): fills it with the neighbors of nodes 0, 1, 2, …, four each by edge,
   * as far as it reaches; 2^32 - 1 for nodes that are not in the torus
   */
  static NAN_METHOD(links) {
    TorusWrap* wrap = self(info);
    if (!info[0]->IsUint32Array()) return Nan::ThrowTypeError("links go into a Uint32Array");
    Nan::TypedArrayContents<uint32_t> out(info[0]);
    if (out.length() > size_t{4} * wrap->torus_.capacity()) {
      return Nan::ThrowRangeError("there are not so many links");
    }
    for (size_t i = 0; i < out.length(); ++i) {
      (*out)[i] = wrap->torus_.neighbor(static_cast<uint32_t>(i / 4), static_cast<Edge>(i % 4));
    }
  }

  /** slots(out: Uint32Array): fills it with the slots of nodes 0, 1, 2, …, as links() does */
  static NAN_METHOD(slots) {
    TorusWrap* wrap = self(info);
    if (!info[0]->IsUint32Array()) return Nan::ThrowTypeError("slots go into a Uint32Array");
    Nan::TypedArrayContents<uint32_t> out(info[0]);
    if (out.length() > wrap->torus_.capacity()) {
      return Nan::ThrowRangeError("there are not so many nodes");
    }
    for (uint32_t node = 0; node < out.length(); ++node) {
      (*out)[node] = wrap->torus_.contains(node) ? wrap->torus_.slot(node) : Torus::kNone;
    }
  }

  /** restore(opened, ownRows, ownColumns, seats: Uint32Array of node, slot, …): boolean */
  static NAN_METHOD(restore) {
    uint32_t opened;
    uint32_t ownRows;
    uint32_t ownColumns;
    if (!number(info[0], "opened is an unsigned integer", &opened)) return;
    if (!number(info[1], "ownRows is an unsigned integer", &ownRows)) return;
    if (!number(info[2], "ownColumns is an unsigned integer", &ownColumns)) return;
    if (!info[3]->IsUint32Array()) return Nan::ThrowTypeError("seats are a Uint32Array");
    Nan::TypedArrayContents<uint32_t> pairs(info[3]);
    std::vector<Seat> seats(pairs.length() / 2);
    for (size_t i = 0; i < seats.size(); ++i) seats[i] = {(*pairs)[2 * i], (*pairs)[2 * i + 1]};
    bool restored =
        self(info)->torus_.restore(opened, ownRows, ownColumns, seats.data(), seats.size());
    info.GetReturnValue().Set(restored);
  }

  Torus torus_;
  Account account_;
};

}  // namespace

void initTorus(v8::Local<v8::Object> target) { TorusWrap::init(target); }

}  // namespace server
