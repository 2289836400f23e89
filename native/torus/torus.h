// The torus: a two-dimensional circular doubly linked list of nodes. Every join and every leave
// repairs the links around it.
//
// Every node has four links: left and right in the cycle of its row, up and down in the cycle of
// its column. Reading a link is one load. Below the links lies a grid, which only joins and leaves
// look at.
//
// THE LAWS it keeps:
//
//   1. right(left(x)) = x and down(up(x)) = x, after every step. A step is a join or a leave.
//   2. A step changes the links of four other nodes; where it must also keep the shape, of at most
//      twelve. Over random churn at a steady population the mean is below five.
//   3. Constant time for every step, at a thousand nodes and at a million. A throw follows a link.
//   4. From nine nodes on, after any history, no node is its own neighbor, each node has at least
//      three different neighbors, and every row and column is one cycle, between a quarter of and
//      four times the square root of the population long.
//   5. Left then up leads where up then left leads, for more than 90% of the nodes under random
//      churn.
//
// THE GRID. Its slots are opened one after the other in shells, a column and a row in turn, so the
// grid is a square, or a square and part of one more line, at every size. A slot never moves:
//
//            0   1   2   3   column
//        0   0   1   4   9           k - m*m <  m : row k - m*m, column m        m = isqrt(k)
//        1   2   3   5  10           k - m*m >= m : row m, column k - m*m - m
//        2   6   7   8  11
//        3  12  13  14  15           column >  row : k = column*column + row
//      row                           column <= row : k = row*row + row + column
//
// `opened` counts the slots opened so far; the newest node is the one in slot opened - 1.
//
// THE LINE BEING FILLED. A line is a row or a column. The line being filled would be a short cycle
// of its own, of one node at first. So it continues the cycle of the line before it: it "hangs" on
// that line, as one turn of a thread on a screw hangs on the turn before. When it is complete it
// splits off into a cycle of its own, by two links:
//
//      a ─ b ─ c ─ d ─┐                 ┌─ a ─ b ─ c ─ d ─┐
//    ┌────────────────┘        ──▶      └─────────────────┘
//    └ e ─ f ─ (to a)                   ┌─ e ─ f ─ g ─ h ─┐
//                                       └─────────────────┘
//
// When the grid shrinks again the line stays a cycle of its own until a quarter of it is closed;
// then it hangs again. Without that quarter, a population that goes up and down by one around a
// full line would split and join the line at every step. Lines below `ownLines_` are cycles of
// their own; only the last opened line can be hanging.
//
// THE HOLES. A leave closes no slot in the middle of the grid; it leaves a hole, and its four
// neighbors are linked to each other. One rule keeps the torus in shape:
//
//     In each aligned block of 4 x 4 slots there is at most one hole.
//
// A leave from a block that has its hole already takes the newest node of the grid into the slot,
// and the grid shrinks by one. A join fills a hole if there is one, else opens the next slot. Holes
// at the end of the grid close with it: slot opened - 1 always has a node. What follows from it:
//
//   - A line crosses each of its blocks with at most one hole, and two holes are side by side only
//     across a block's border. So at most two slots in a row are empty, and the nearest node of a
//     line is at most three slots away: look at the slots, there is nothing to search (law 3).
//   - After any history the grid is at least 15/16 full in every whole block, and no row or column
//     is much shorter than the square root of the population (law 4). A hanging line at most
//     doubles the cycle it hangs on.
//   - A step touches, other than the node itself (law 2): joining into a hole, 4 nodes; into the
//     next slot, 4, and when that completes its line also the line's first node: 5. Leaving with a
//     hole, 4; from the last slot, 4, and 2 more when the line hangs again. Any other leave: the
//     leaver's 4 neighbors, the newest node, its 4, and when its line hangs again, of the four ends
//     two that are none of these yet: 11. The line that hangs again is the newest node's own,
//     unless the grid shrinks past more holes at the end of the line before than a quarter of that
//     line. Such a run is at most two holes, across a block's border, and a quarter of eight slots
//     is two already: only lines of five slots or fewer can end so. All this is over by slot 32,
//     and the tests enumerate every shape and every step up to there. They find 12.
//   - Left then up is up then left (law 5), but for three nodes around each hole, and where the
//     line being filled ends. Churn at a steady population fills holes faster than it digs them.
//   - There are no holes when a slot is opened, so `opened` never exceeds the most nodes there
//     ever were: the grid needs one slot for each node of the capacity.
//
// COSTS. A join, a leave, a look: constant time. 20 bytes a node, 4 a slot, half a byte a slot for
// holes. Address space is reserved for the capacity; memory is touched only as the grid grows.
// Nothing is allocated after construction. Indices are stored plus one, so that zeroed memory says
// "none".
//
// REJECTED. Occupancy bitmaps with lines up to half empty: the search for a neighbor then has no
// local bound, and a torus that shrank from a million to ten keeps lines of empty slots between
// its nodes. Always moving the newest node into the gap: no holes at all, but nearly every leave
// touches nine, and so a step six or seven on average. A hole per line instead of per block: holes
// of neighboring lines can line up and leave a column empty. Links by pointer: twice the memory,
// and no snapshot.
#ifndef SPRITES_TORUS_H_
#define SPRITES_TORUS_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "base/reserve.h"

namespace server {

/** An edge of a desktop, and the neighbor beyond it. `opposite` is the edge a sprite enters by. */
enum class Edge : uint8_t { kLeft = 0, kRight = 1, kUp = 2, kDown = 3 };

constexpr Edge opposite(Edge edge) { return static_cast<Edge>(static_cast<uint8_t>(edge) ^ 1); }

/** Where a node sits in the grid, and how large the grid is. Rows and columns count from 0. */
struct Place {
  uint32_t row;
  uint32_t column;
  uint32_t rows;
  uint32_t columns;
};

/** The JSON text of a place, for clients. */
class PlaceText {
 public:
  explicit PlaceText(const Place& place)
      : length_(snprintf(text_, sizeof text_, R"({"row":%u,"column":%u,"rows":%u,"columns":%u})",
                         place.row, place.column, place.rows, place.columns)) {}

  std::string_view view() const { return {text_, static_cast<size_t>(length_)}; }

 private:
  char text_[128];
  int length_;
};

/** A node and its slot, as a snapshot keeps them. */
struct Seat {
  uint32_t node;
  uint32_t slot;
};

/** Observes the steps of a torus: the tests check law 2 by it. */
class TorusObserver {
 public:
  virtual ~TorusObserver() = default;

  /** Reports that a step is about to set links of `node`, once or more often in a step. */
  virtual void onChange(uint32_t node) = 0;
};

/**
 * The torus over nodes numbered by the caller, below `capacity`. It trusts its caller: a node that
 * joins is not in it, a node that leaves or is looked at is (but see `neighbor`).
 */
class Torus {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kMaxCapacity = 1u << 30;

  /** Reserves the tables. Throws std::bad_alloc without address space, or above kMaxCapacity. */
  explicit Torus(uint32_t capacity);

  Torus(const Torus&) = delete;
  Torus& operator=(const Torus&) = delete;

  /** Gives `node` a place. */
  void join(uint32_t node);

  /** Takes `node` out. */
  void leave(uint32_t node);

  /** The node beyond an edge (itself, if it is alone there); kNone for a node not in the torus. */
  uint32_t neighbor(uint32_t node, Edge edge) const {
    return nodes_[node].link[static_cast<uint8_t>(edge)] - 1;
  }

  /** Prefetches the links of a node. */
  void prefetch(uint32_t node) const { __builtin_prefetch(&nodes_[node]); }

  bool contains(uint32_t node) const { return nodes_[node].link[0] != 0; }

  /**
   * Whether the link of `node` over an edge is the one that closes its row: from the row's last
   * node to its first by the right edge, and back by the left one. Columns have none.
   */
  bool closesRow(uint32_t node, Edge edge) const;

  /** Rows that are cycles of their own; none without nodes. A hanging row is part of the one before
   * it. */
  uint32_t cycles() const { return size_ == 0 ? 0 : ownLines_[kRow]; }

  /** The row, below `cycles()`, whose cycle `node` is in. */
  uint32_t cycleOf(uint32_t node) const {
    return nodes_[node].row < ownLines_[kRow] ? nodes_[node].row : ownLines_[kRow] - 1;
  }

  /** The first node of the cycle of a row below `cycles()`, and the last. */
  uint32_t firstOfCycle(uint32_t row) const;
  uint32_t lastOfCycle(uint32_t row) const;

  Place place(uint32_t node) const;

  /** The slot of a node in the torus: its place, as one number below `opened()`. */
  uint32_t slot(uint32_t node) const;

  /** Nodes in the torus. */
  uint32_t size() const { return size_; }
  uint32_t capacity() const { return capacity_; }

  /** Opened rows and columns of the grid. */
  uint32_t rows() const { return lines(kRow); }
  uint32_t columns() const { return lines(kColumn); }

  /** Opened slots of the grid: what a snapshot keeps, with the two below and every seat. */
  uint32_t opened() const { return opened_; }
  /** Rows, and columns, that are cycles of their own; at least 1. */
  uint32_t ownRows() const { return ownLines_[kRow]; }
  uint32_t ownColumns() const { return ownLines_[kColumn]; }

  /** The slots of the holes: the next join fills the last one. */
  const uint32_t* holes() const { return &holes_[0]; }
  uint32_t holeCount() const { return holeCount_; }

  /**
   * Replaces the torus by a saved one, link for link. With `holes`, later joins fill the holes in
   * the order of the saved torus; without, in any order. Checks everything: when the data is no
   * torus (or one larger than the capacity) it returns false, and the torus is empty. Takes time in
   * proportion to `opened`, of both. The observer is not notified.
   */
  bool restore(uint32_t opened, uint32_t ownRows, uint32_t ownColumns, std::span<const Seat> seats,
               const std::vector<uint32_t>* holes = nullptr);

  /** Notifies `observer` of every later step; it must outlive the torus. nullptr: no observer. */
  void observe(TorusObserver* observer) { observer_ = observer; }

 private:
  // A line is a row or a column, by its axis: one code serves both. Backward and forward in a
  // line are left and right, or up and down.
  enum Axis : uint8_t { kRow = 0, kColumn = 1 };
  static constexpr Axis kAxes[] = {kRow, kColumn};

  struct Node {
    uint32_t link[4];  // by Edge, plus one; zero in a node that is not in the torus
    uint16_t row;
    uint16_t column;
  };

  // The opened part of the grid: lines[kRow] times lines[kColumn] slots, and the first `part` slots
  // of one further line of the axis `filling`.
  struct Extent {
    Axis filling;
    uint32_t part;
    uint32_t lines[2];
  };

  struct Cell {
    uint32_t row;
    uint32_t column;
  };

  static uint32_t slotAt(uint32_t row, uint32_t column);
  static Extent extentOf(uint32_t opened);
  static Cell cellOf(uint32_t slot);
  static uint32_t blockOf(uint32_t slot);
  static uint32_t lineEnd(Axis axis, uint32_t line);
  static uint32_t hangsBelow(Axis axis, uint32_t line);

  uint32_t lines(Axis axis) const;
  uint32_t lineLength(Axis axis, uint32_t line) const;
  uint32_t nodeAt(Axis axis, uint32_t line, uint32_t position) const;
  uint32_t lastBelow(Axis axis, uint32_t line, uint32_t position) const;
  uint32_t lastOf(Axis axis, uint32_t line) const;
  uint32_t nodeBefore(Axis axis, uint32_t line, uint32_t position) const;

  static size_t backward(Axis axis) { return size_t{2} * axis; }
  static size_t forward(Axis axis) { return size_t{2} * axis + 1; }
  uint32_t previous(Axis axis, uint32_t node) const;
  uint32_t next(Axis axis, uint32_t node) const;
  void bind(Axis axis, uint32_t from, uint32_t to);
  void link(Axis axis, uint32_t from, uint32_t to);
  void seat(uint32_t node, uint32_t slot);
  void splice(uint32_t node);
  void weave(uint32_t node);
  void exchangeEnds(Axis axis, uint32_t line);
  void splitLines();
  void hangLines();
  void shrink();
  void resize(uint32_t opened);

  bool hasHole(uint32_t block) const;
  bool isHole(uint32_t slot) const;
  void digHole(uint32_t slot);
  void fillHole(uint32_t slot);

  bool restoreSeats(uint32_t opened, uint32_t ownRows, uint32_t ownColumns,
                    std::span<const Seat> seats);
  bool restoreHoles(const std::vector<uint32_t>& holes);
  bool canOwn(Axis axis, uint32_t ownLines) const;
  void weaveAll(Axis axis);
  void clear();

  void notifyObserver(uint32_t node) {
    if (observer_ != nullptr) observer_->onChange(node);
  }

  uint32_t capacity_;
  uint32_t size_ = 0;
  uint32_t opened_ = 0;
  uint32_t ownLines_[2] = {1, 1};
  Extent extent_;
  uint32_t holeCount_ = 0;

  base::Reserved<Node> nodes_;      // by node
  base::Reserved<uint32_t> grid_;   // by slot: the node there plus one, zero if there is none
  base::Reserved<uint32_t> holes_;  // the holes' slots, in no order: the first holeCount_ of them
  base::Reserved<uint32_t>
      blockHole_;  // by block: the index in holes_ of its hole plus one, or zero

  TorusObserver* observer_ = nullptr;
};

}  // namespace server

#endif  // SPRITES_TORUS_H_
