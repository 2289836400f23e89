// The torus as a JavaScript class, for the tests and the benchmark. It converts arguments, and
// counts the nodes that each step touches.
#include <algorithm>
#include <array>
#include <vector>

#include "addon/convert.h"
#include "torus/torus.h"

namespace server {

namespace {

/**
 * The account of law 2: how many nodes' links a step has changed, without the node that joins or
 * leaves.
 */
class StepCounter : public TorusObserver {
 public:
  explicit StepCounter(Torus* torus) : torus_(torus) { torus->observe(this); }

  void onChange(uint32_t node) override {
    const auto known = std::find_if(linksBefore_.begin(), linksBefore_.end(),
                                    [node](const NodeLinks& one) { return one.node == node; });
    if (known == linksBefore_.end()) linksBefore_.push_back(linksOf(node));
  }

  /** Ends a step of `subject`. Returns how many other nodes it touched. */
  uint32_t endStep(uint32_t subject) {
    uint32_t count = 0;
    for (const NodeLinks& one : linksBefore_)
      count += one.node != subject && one != linksOf(one.node);
    linksBefore_.clear();
    return count;
  }

 private:
  /** A node's links before the step first set one. */
  struct NodeLinks {
    uint32_t node;
    std::array<uint32_t, 4> links;

    bool operator==(const NodeLinks&) const = default;
  };

  NodeLinks linksOf(uint32_t node) const {
    NodeLinks current = {node, {}};
    for (uint8_t edge = 0; edge < 4; ++edge)
      current.links[edge] = torus_->neighbor(node, Edge{edge});
    return current;
  }

  const Torus* const torus_;
  std::vector<NodeLinks> linksBefore_;
};

/** `new Torus(capacity)`: nodes are the integers below `capacity`. */
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
                    {"links", links},
                    {"slots", slots},
                    {"restore", restore},
                });
  }

 private:
  explicit TorusWrap(uint32_t capacity) : torus_(capacity), stepCounter_(&torus_) {}

  static TorusWrap* self(const Info& info) { return unwrap<TorusWrap>(info); }

  /** new Torus(capacity: number) */
  static NAN_METHOD(construct) { (new TorusWrap(uint32Of(info[0])))->Wrap(info.This()); }

  /** join(node): number of other nodes touched */
  static NAN_METHOD(join) {
    TorusWrap* wrap = self(info);
    const uint32_t node = uint32Of(info[0]);
    wrap->torus_.join(node);
    info.GetReturnValue().Set(wrap->stepCounter_.endStep(node));
  }

  /** leave(node): number of other nodes touched */
  static NAN_METHOD(leave) {
    TorusWrap* wrap = self(info);
    const uint32_t node = uint32Of(info[0]);
    wrap->torus_.leave(node);
    info.GetReturnValue().Set(wrap->stepCounter_.endStep(node));
  }

  /** neighbor(node, edge): the node beyond edge 0 left, 1 right, 2 up, 3 down */
  static NAN_METHOD(neighbor) {
    const auto edge = static_cast<Edge>(uint32Of(info[1]));
    info.GetReturnValue().Set(self(info)->torus_.neighbor(uint32Of(info[0]), edge));
  }

  /** contains(node): boolean */
  static NAN_METHOD(contains) {
    info.GetReturnValue().Set(self(info)->torus_.contains(uint32Of(info[0])));
  }

  /** slot(node): number */
  static NAN_METHOD(slot) { info.GetReturnValue().Set(self(info)->torus_.slot(uint32Of(info[0]))); }

  /** place(node): {row, column, rows, columns} */
  static NAN_METHOD(place) {
    info.GetReturnValue().Set(objectOf(self(info)->torus_.place(uint32Of(info[0]))));
  }

  /** state(): {size, opened, rows, columns, ownRows, ownColumns} */
  static NAN_METHOD(state) {
    const Torus& torus = self(info)->torus_;
    info.GetReturnValue().Set(makeObject({
        {"size", torus.size()},
        {"opened", torus.opened()},
        {"rows", torus.rows()},
        {"columns", torus.columns()},
        {"ownRows", torus.ownRows()},
        {"ownColumns", torus.ownColumns()},
    }));
  }

  /**
   * links(out: Uint32Array): fills `out` with the neighbors of nodes 0, 1, 2, …, four each by edge,
   * up to its length; 2^32 - 1 for nodes that are not in the torus
   */
  static NAN_METHOD(links) {
    TorusWrap* wrap = self(info);
    Nan::TypedArrayContents<uint32_t> out(info[0]);
    for (size_t i = 0; i < out.length(); ++i) {
      (*out)[i] = wrap->torus_.neighbor(static_cast<uint32_t>(i / 4), static_cast<Edge>(i % 4));
    }
  }

  /** slots(out: Uint32Array): fills `out` with the slots of nodes 0, 1, 2, …, like links() */
  static NAN_METHOD(slots) {
    TorusWrap* wrap = self(info);
    Nan::TypedArrayContents<uint32_t> out(info[0]);
    for (uint32_t node = 0; node < out.length(); ++node) {
      (*out)[node] = wrap->torus_.contains(node) ? wrap->torus_.slot(node) : Torus::kNone;
    }
  }

  /** restore(opened, ownRows, ownColumns, seats: Uint32Array of node, slot, …): boolean */
  static NAN_METHOD(restore) {
    Nan::TypedArrayContents<uint32_t> pairs(info[3]);
    std::vector<Seat> seats(pairs.length() / 2);
    for (size_t i = 0; i < seats.size(); ++i) seats[i] = {(*pairs)[2 * i], (*pairs)[2 * i + 1]};
    const bool restored =
        self(info)->torus_.restore(uint32Of(info[0]), uint32Of(info[1]), uint32Of(info[2]), seats);
    info.GetReturnValue().Set(restored);
  }

  Torus torus_;
  StepCounter stepCounter_;
};

}  // namespace

void initTorus(v8::Local<v8::Object> target) { TorusWrap::init(target); }

}  // namespace server
