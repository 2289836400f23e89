// See torus.h for the grid, the thread on the screw, the holes, and why the steps below are enough.
#include "torus.h"

#include <cmath>
#include <new>

namespace server {

namespace {

// A square root of a 32-bit number is exact enough in a double never to round up to the next root.
uint32_t isqrt(uint32_t number) {
  return static_cast<uint32_t>(std::sqrt(static_cast<double>(number)));
}

// Blocks that cover a grid of `capacity` slots: the grid is at most a square of this side.
size_t blocksFor(uint32_t capacity) {
  size_t side = capacity == 0 ? 0 : isqrt(capacity - 1) + 1;
  size_t blocks = (side + 3) / 4;
  return blocks * blocks;
}

uint32_t checkedCapacity(uint32_t capacity) {
  if (capacity > Torus::kMaxCapacity) throw std::bad_alloc();
  return capacity;
}

}  // namespace

Torus::Torus(uint32_t capacity)
    : capacity_(checkedCapacity(capacity)),
      extent_(extentOf(0)),
      nodes_(capacity),
      grid_(capacity),
      holes_(blocksFor(capacity)),
      blockHole_(blocksFor(capacity)) {}

void Torus::join(uint32_t node) {
  uint32_t slot;
  if (holeCount_ > 0) {
    slot = holes_[holeCount_ - 1];
    fillHole(slot);
  } else {
    slot = opened_;
    resize(opened_ + 1);
  }
  seat(node, slot);
  weave(node);
  splitLines();
  ++size_;
}

void Torus::leave(uint32_t node) {
  uint32_t slot = this->slot(node);
  uint32_t last = opened_ - 1;
  splice(node);
  grid_[slot] = 0;
  if (slot == last) {
    shrink();
  } else if (!hasHole(blockOf(slot))) {
    digHole(slot);
  } else {
    const uint32_t moved = grid_[last] - 1;
    splice(moved);
    grid_[last] = 0;
    // The node is seated before the grid shrinks, which could close the slot.
    seat(moved, slot);
    weave(moved);
    shrink();
  }
  --size_;
  nodes_[node] = Node{};
}

Place Torus::place(uint32_t node) const {
  return {nodes_[node].row, nodes_[node].column, rows(), columns()};
}

uint32_t Torus::slot(uint32_t node) const { return slotAt(nodes_[node].row, nodes_[node].column); }

// ---- the ends of rows ----

bool Torus::closesRow(uint32_t node, Edge edge) const {
  const Node& from = nodes_[node];
  // At most two slots in a row are empty: only nodes that near an end of their row are looked at.
  constexpr uint32_t kNear = 3;
  if (edge == Edge::kRight) {
    if (from.column + kNear < lineLength(kRow, from.row)) return false;
  } else if (edge != Edge::kLeft || from.column >= kNear) {
    return false;
  }
  const Node& to = nodes_[neighbor(node, edge)];
  const bool before = to.row != from.row ? to.row < from.row : to.column < from.column;
  return neighbor(node, edge) == node || before == (edge == Edge::kRight);
}

uint32_t Torus::firstOfCycle(uint32_t row) const {
  for (uint32_t column = 0;; ++column) {
    if (const uint32_t found = nodeAt(kRow, row, column)) return found - 1;
  }
}

uint32_t Torus::lastOfCycle(uint32_t row) const {
  // If the next row hangs on this one, the last node is at the end of that row.
  const uint32_t hanging = row + 1 == ownLines_[kRow] ? lastOf(kRow, row + 1) : 0;
  return (hanging != 0 ? hanging : lastOf(kRow, row)) - 1;
}

// ---- the grid: slots, lines and their lengths ----

uint32_t Torus::slotAt(uint32_t row, uint32_t column) {
  return column > row ? column * column + row : row * row + row + column;
}

/** The extent of a grid of `opened` slots. It ends right before the slot of that number. */
Torus::Extent Torus::extentOf(uint32_t opened) {
  uint32_t side = isqrt(opened);
  uint32_t extra = opened - side * side;
  if (extra < side) return {kColumn, extra, {side, side}};
  return {kRow, extra - side, {side, side + 1}};
}

Torus::Cell Torus::cellOf(uint32_t slot) {
  Extent extent = extentOf(slot);
  uint32_t line = extent.lines[extent.filling];
  return extent.filling == kRow ? Cell{line, extent.part} : Cell{extent.part, line};
}

uint32_t Torus::blockOf(uint32_t slot) {
  Cell cell = cellOf(slot);
  return slotAt(cell.row / 4, cell.column / 4);
}

/** The number of slots that are opened when a line is complete. */
uint32_t Torus::lineEnd(Axis axis, uint32_t line) {
  return axis == kRow ? (line + 1) * (line + 1) : line * line + line;
}

/** A line that is a cycle of its own hangs again when fewer slots than this are opened. */
uint32_t Torus::hangsBelow(Axis axis, uint32_t line) {
  uint32_t length = axis == kRow ? line + 1 : line;
  return lineEnd(axis, line) - length / 4;
}

uint32_t Torus::lines(Axis axis) const {
  if (opened_ == 0) return 0;
  return extent_.lines[axis] + (extent_.filling == axis && extent_.part > 0);
}

/** How many slots of a line are opened; 0 for a line that is not opened. */
uint32_t Torus::lineLength(Axis axis, uint32_t line) const {
  uint32_t full = extent_.lines[axis ^ 1];
  if (extent_.filling == axis) {
    return line < extent_.lines[axis] ? full : line == extent_.lines[axis] ? extent_.part : 0;
  }
  return line < extent_.lines[axis] ? full + (line < extent_.part) : 0;
}

/** The node at a position of a line plus one, or zero. */
uint32_t Torus::nodeAt(Axis axis, uint32_t line, uint32_t position) const {
  return grid_[axis == kRow ? slotAt(line, position) : slotAt(position, line)];
}

// The searches below end within three steps, or a few more while a slot is empty in mid-step. They
// return a node plus one, or 0 for an empty line.

uint32_t Torus::lastBelow(Axis axis, uint32_t line, uint32_t position) const {
  while (position > 0) {
    if (uint32_t found = nodeAt(axis, line, --position)) return found;
  }
  return 0;
}

uint32_t Torus::lastOf(Axis axis, uint32_t line) const {
  return lastBelow(axis, line, lineLength(axis, line));
}

/** The node before a position in its cycle; the node at the position, if it is alone there. */
uint32_t Torus::nodeBefore(Axis axis, uint32_t line, uint32_t position) const {
  if (uint32_t found = lastBelow(axis, line, position)) return found - 1;
  // The node is the first of its line. The node before it ends the line that shares its cycle, if
  // there is one: for a hanging line the last line of its own, and the other way round.
  uint32_t found = 0;
  if (line == ownLines_[axis]) found = lastOf(axis, line - 1);
  if (line + 1 == ownLines_[axis]) found = lastOf(axis, line + 1);
  if (found == 0) found = lastOf(axis, line);
  return found - 1;
}

/** Opens or closes slots at the end of the grid. */
void Torus::resize(uint32_t opened) {
  opened_ = opened;
  extent_ = extentOf(opened);
}

// ---- the links ----

uint32_t Torus::previous(Axis axis, uint32_t node) const {
  return nodes_[node].link[backward(axis)] - 1;
}

uint32_t Torus::next(Axis axis, uint32_t node) const {
  return nodes_[node].link[forward(axis)] - 1;
}

/** Makes `to` follow `from` along an axis. */
void Torus::bind(Axis axis, uint32_t from, uint32_t to) {
  nodes_[from].link[forward(axis)] = to + 1;
  nodes_[to].link[backward(axis)] = from + 1;
}

/** Binds two nodes within a step, and notifies the observer. */
void Torus::link(Axis axis, uint32_t from, uint32_t to) {
  notifyObserver(from);
  notifyObserver(to);
  bind(axis, from, to);
}

/** Puts a node into an empty slot of the grid, without links yet. */
void Torus::seat(uint32_t node, uint32_t slot) {
  Cell cell = cellOf(slot);
  nodes_[node].row = static_cast<uint16_t>(cell.row);
  nodes_[node].column = static_cast<uint16_t>(cell.column);
  grid_[slot] = node + 1;
}

/** Takes a node out of both its cycles. */
void Torus::splice(uint32_t node) {
  for (Axis axis : kAxes) {
    link(axis, previous(axis, node), next(axis, node));
  }
}

/** Puts a seated node into both its cycles. */
void Torus::weave(uint32_t node) {
  for (Axis axis : kAxes) {
    uint32_t line = axis == kRow ? nodes_[node].row : nodes_[node].column;
    uint32_t position = axis == kRow ? nodes_[node].column : nodes_[node].row;
    uint32_t from = nodeBefore(axis, line, position);
    uint32_t to = from == node ? node : next(axis, from);
    link(axis, from, node);
    link(axis, node, to);
  }
}

/**
 * Exchanges the successors of the ends of a line and of the line before it: splits or joins them.
 */
void Torus::exchangeEnds(Axis axis, uint32_t line) {
  uint32_t end = lastOf(axis, line);
  uint32_t base = lastOf(axis, line - 1);
  if (end == 0 || base == 0) return;
  uint32_t afterEnd = next(axis, end - 1);
  uint32_t afterBase = next(axis, base - 1);
  link(axis, end - 1, afterBase);
  link(axis, base - 1, afterEnd);
}

/** Splits off the hanging line of each axis that is complete. */
void Torus::splitLines() {
  for (Axis axis : kAxes) {
    while (opened_ >= lineEnd(axis, ownLines_[axis])) exchangeEnds(axis, ownLines_[axis]++);
  }
}

/** Hangs the last line of each axis on the one before it again, if too little of it is left. */
void Torus::hangLines() {
  for (Axis axis : kAxes) {
    while (ownLines_[axis] > 1 && opened_ < hangsBelow(axis, ownLines_[axis] - 1))
      exchangeEnds(axis, --ownLines_[axis]);
  }
}

/** Closes the empty slots at the end of the grid. */
void Torus::shrink() {
  uint32_t opened = opened_;
  while (opened > 0 && grid_[opened - 1] == 0) {
    --opened;
    if (isHole(opened)) fillHole(opened);
  }
  resize(opened);
  hangLines();
}

// ---- the holes ----

bool Torus::hasHole(uint32_t block) const { return blockHole_[block] != 0; }

bool Torus::isHole(uint32_t slot) const {
  uint32_t index = blockHole_[blockOf(slot)];
  return index != 0 && holes_[index - 1] == slot;
}

void Torus::digHole(uint32_t slot) {
  holes_[holeCount_++] = slot;
  blockHole_[blockOf(slot)] = holeCount_;
}

void Torus::fillHole(uint32_t slot) {
  uint32_t& index = blockHole_[blockOf(slot)];
  // The last hole of the list moves to the place of the filled one.
  uint32_t last = holes_[--holeCount_];
  holes_[index - 1] = last;
  blockHole_[blockOf(last)] = index;
  index = 0;
}

// ---- a saved torus ----

bool Torus::restore(uint32_t opened, uint32_t ownRows, uint32_t ownColumns,
                    std::span<const Seat> seats, const std::vector<uint32_t>* holes) {
  clear();
  if (restoreSeats(opened, ownRows, ownColumns, seats) &&
      (holes == nullptr || restoreHoles(*holes))) {
    return true;
  }
  clear();
  return false;
}

/** Puts the known holes into the given order. Returns false when the given ones are others. */
bool Torus::restoreHoles(const std::vector<uint32_t>& holes) {
  if (holes.size() != holeCount_) return false;
  for (const uint32_t slot : holes) {
    if (slot >= opened_ || !isHole(slot)) return false;
  }
  // The number is right, and each is a hole: only a repeated one can be wrong now.
  while (holeCount_ > 0) fillHole(holes_[holeCount_ - 1]);
  for (const uint32_t slot : holes) {
    if (hasHole(blockOf(slot))) return false;
    digHole(slot);
  }
  return true;
}

bool Torus::restoreSeats(uint32_t opened, uint32_t ownRows, uint32_t ownColumns,
                         std::span<const Seat> seats) {
  if (opened > capacity_) return false;
  resize(opened);
  if (!canOwn(kRow, ownRows) || !canOwn(kColumn, ownColumns)) return false;
  ownLines_[kRow] = ownRows;
  ownLines_[kColumn] = ownColumns;
  for (const Seat& one : seats) {
    if (one.node >= capacity_ || one.slot >= opened) return false;
    // A node that is seated already is found in its slot; any other node has the place of zeroed
    // memory.
    if (grid_[one.slot] != 0 || grid_[slot(one.node)] == one.node + 1) return false;
    seat(one.node, one.slot);
  }
  if (opened > 0 && grid_[opened - 1] == 0) return false;
  for (uint32_t slot = 0; slot < opened; ++slot) {
    if (grid_[slot] != 0) continue;
    if (hasHole(blockOf(slot))) return false;
    digHole(slot);
  }
  size_ = static_cast<uint32_t>(seats.size());
  for (Axis axis : kAxes) weaveAll(axis);
  return true;
}

/** Returns whether `ownLines` lines can be cycles of their own while `opened_` slots are opened. */
bool Torus::canOwn(Axis axis, uint32_t ownLines) const {
  uint32_t openedLines = opened_ == 0 ? 1 : lines(axis);
  if (ownLines == openedLines)
    return openedLines == 1 || opened_ >= hangsBelow(axis, openedLines - 1);
  return ownLines > 0 && ownLines + 1 == openedLines && opened_ < lineEnd(axis, openedLines - 1);
}

/** Sets every link of an axis from the grid. */
void Torus::weaveAll(Axis axis) {
  uint32_t first = 0;
  uint32_t last = 0;
  for (uint32_t line = 0; line < lines(axis); ++line) {
    if (line < ownLines_[axis]) first = 0;
    uint32_t length = lineLength(axis, line);
    for (uint32_t position = 0; position < length; ++position) {
      uint32_t node = nodeAt(axis, line, position);
      if (node == 0) continue;
      if (first == 0) first = last = node;
      bind(axis, last - 1, node - 1);
      bind(axis, node - 1, first - 1);
      last = node;
    }
  }
}

void Torus::clear() {
  for (uint32_t slot = 0; slot < opened_; ++slot) {
    if (grid_[slot] != 0) nodes_[grid_[slot] - 1] = Node{};
    grid_[slot] = 0;
  }
  while (holeCount_ > 0) fillHole(holes_[holeCount_ - 1]);
  size_ = 0;
  ownLines_[kRow] = ownLines_[kColumn] = 1;
  resize(0);
}

}  // namespace server
