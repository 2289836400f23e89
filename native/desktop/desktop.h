// The desktop as a plane on which sprites slide, walk, hop and leave: numbers only, no SDL.
//
//        0 ───────── x ───────▶ width        A body leaves when its middle crosses an edge, and
//      0 ┌─────────────────────┐              enters with its middle on the edge; so it is seen
//        │            ○──▶     │              whole, half here and half there.
//      y │   ◐ resting         ◑ flying: its throw is not yet answered
//        ▼                     │
// height └─────────────────────┘              Where there is no way out (offline) edges are walls.
//
// Lengths are pixels, times seconds. Sprites move by the same rules and numbers as on the web
// page, so that a sprite feels the same on both sides of an edge.
//
// Bodies are in a vector, the last one on top, and have ids: the answer to a throw comes later and
// from another thread, when a pointer might be dangling. A lookup scans the vector, since a desktop
// has a few hundred bodies at most.
#ifndef SPRITES_DESKTOP_DESKTOP_H_
#define SPRITES_DESKTOP_DESKTOP_H_

#include <sprites/client.h>
#include <sprites/sprite.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sprites::desktop {

/** Names a body; 0 is none. Never used twice. */
using BodyId = uint64_t;

/** A sprite on this desktop. */
struct Body {
  BodyId id = 0;
  Sprite sprite;
  double x = 0;  // the middle
  double y = 0;
  double vx = 0;  // pixels a second
  double vy = 0;
  double z = 0;  // height above the desktop, while it hops
  double vz = 0;
  double halfSide = 0;
  bool isHeld = false;             // by the pointer
  std::optional<Edge> flightEdge;  // the edge over which it flies until its throw is answered
  double flightTime = 0;           // seconds since it crossed that edge
};

/** Most sprites on one desktop: further arrivals fly on, see App. */
constexpr size_t kMaxBodies = 400;

class Desktop {
 public:
  /** Called inside step() when a body's middle has crossed an open edge: it flies from then on. */
  using OnLeave = std::function<void(const Body& body, Edge edge)>;

  Desktop(double width, double height, OnLeave onLeave);

  double width() const { return width_; }
  double height() const { return height_; }

  /** Sets the size; each body keeps its place as a share of the size. */
  void resize(double width, double height);

  /** Sets whether sprites may leave; else the edges are walls. */
  void setEdgesOpen(bool open) { edgesOpen_ = open; }

  /** Puts a sprite on the desktop, at rest and fully visible. */
  BodyId add(const Sprite& sprite, double x, double y, double halfSide);

  /** Lets a sprite in by an edge, with its place and speed on the other desktop. */
  BodyId enter(const Sprite& sprite, Edge edge, double halfSide);

  /** Returns the body's sprite for a throw over an edge, with the body's place and speed. */
  Sprite spriteToThrow(const Body& body, Edge edge) const;

  /** Replaces a body's picture and photo. */
  void setPictures(BodyId id, const std::string& picture, const std::string& photo);

  /** Removes a body that was thrown or put away. Ignores unknown ids. */
  void remove(BodyId id);

  /** Lets a body that could not leave come back from its edge. */
  void bounceBack(BodyId id);

  /** Returns the topmost body at a point, or within `margin` pixels of it; 0: none. */
  BodyId hitTest(double x, double y, double margin) const;

  /** Selects a body (0: none) and puts it on top. */
  void select(BodyId id);
  BodyId selected() const { return selected_; }

  /** Lets the selected body walk: -1, 0 or 1 along each axis. */
  void walk(int x, int y);

  /** Lets the selected body hop, if it stands on the ground. */
  void jump();

  /** Selects the next body (step 1), the previous one (-1), or one if none is selected (0). */
  void selectByStep(int step);

  /** Throws the selected body: -1, 0 or 1 along each axis. */
  void throwSelected(int x, int y);

  /** Removes a body; false if it flies, as it may be the neighbor's already. */
  bool putAway(BodyId id);

  /**
   * Holds a body, moves it, and releases it with a speed. A body that is released at an edge flies
   * over the edge, however slow it was.
   */
  void hold(BodyId id);
  void drag(BodyId id, double x, double y);
  void release(BodyId id, double vx, double vy);

  /** Returns whether a body released over the footer is put away; a faster one is thrown. */
  bool isDrop(double vy) const;

  /** Moves all bodies; long times are cut, so that no body jumps after a pause. */
  void step(double seconds);

  /** Returns whether any body moves, flies or is held. */
  bool isMoving() const;

  const std::vector<Body>& bodies() const { return bodies_; }
  const Body* find(BodyId id) const;

 private:
  Body* findMutable(BodyId id);
  void slide(Body* body, double time);
  void crossEdge(Body* body);
  void bounceOffWalls(Body* body);
  void fly(Body* body, double time);

  double width_;
  double height_;
  OnLeave onLeave_;
  bool edgesOpen_ = false;
  std::vector<Body> bodies_;
  BodyId lastId_ = 0;
  BodyId selected_ = 0;
  int walkX_ = 0;
  int walkY_ = 0;
};

constexpr std::chrono::seconds kUndoTime{8};

/**
 * Keeps bodies that were put away for kUndoTime, to restore them: the last one first, as on the web
 * page.
 */
class UndoStack {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /** Keeps a body that was put away at `now`. */
  void push(Body body, Time now) {
    expire(now);
    entries_.push_back({std::move(body), now + kUndoTime});
  }

  /** Removes and returns the body that was put away last; none after kUndoTime. */
  std::optional<Body> pop(Time now) {
    expire(now);
    if (entries_.empty()) return std::nullopt;
    Body body = std::move(entries_.back().body);
    entries_.pop_back();
    return body;
  }

 private:
  struct Entry {
    Body body;
    Time expiry;
  };

  void expire(Time now) {
    while (!entries_.empty() && entries_.front().expiry <= now) entries_.pop_front();
  }

  std::deque<Entry> entries_;
};

/**
 * Returns a stranger's text that moves no cursor and reverses no words: control characters become
 * spaces, and those that set a direction are removed.
 */
std::string printable(std::string text);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_DESKTOP_H_
