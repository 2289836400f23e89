// The desktop as a plane on which sprites slide, walk, hop and leave: numbers only, no SDL.
//
//        0 ───────── x ───────▶ width        A body leaves when its middle crosses an edge, and
//      0 ┌─────────────────────┐              enters with its middle on the edge; so it is seen
//        │            ○──▶     │              whole, half here and half there.
//      y │   ◐ resting         ◑ flying: its throw is not yet answered
//        ▼                     │
// height └─────────────────────┘              Where there is no way out (offline) edges are walls.
//
// Lengths are pixels, times seconds. It moves by the same rules and numbers as the desktop of the
// web page, so that a sprite feels the same on both sides of an edge.
//
// Bodies are in a vector, the last one on top, and are named by a number of their own: the answer
// to a throw comes later and from another thread, when a pointer might be none any more. With the
// few hundred that a desktop holds, looking one up is a walk over them.
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
  double x = 0;  // its middle
  double y = 0;
  double vx = 0;  // a second
  double vy = 0;
  double z = 0;  // above the desktop, while it hops
  double vz = 0;
  double half = 0;             // half its side
  bool held = false;           // by the pointer
  std::optional<Edge> flight;  // the edge over which it flies, its throw not answered
  double flightTime = 0;       // seconds since it crossed that edge
};

/** Most sprites on one desktop: what comes in above that flies on, see App. */
constexpr size_t kMostBodies = 400;

class Desktop {
 public:
  /** Called inside step() when a body's middle has crossed an open edge: it flies from then on. */
  using OnLeave = std::function<void(const Body& body, Edge edge)>;

  Desktop(double width, double height, OnLeave onLeave);

  double width() const { return width_; }
  double height() const { return height_; }

  /** Takes a new size; everything keeps its place as a share of it. */
  void resize(double width, double height);

  /** Whether sprites may leave; else the edges are walls. */
  void setOpen(bool open) { open_ = open; }

  /** Puts a sprite on the desktop, at rest, and so that it is seen whole. */
  BodyId add(const Sprite& sprite, double x, double y, double half);

  /** Lets a sprite in by an edge: at the height at which it left the other desktop, as fast. */
  BodyId enter(const Sprite& sprite, Edge edge, double half);

  /** The body's sprite as it is to be thrown over an edge: place and speed are the body's. */
  Sprite crossing(const Body& body, Edge edge) const;

  /** Gives a body other pictures of the same. */
  void setPictures(BodyId id, const std::string& picture, const std::string& photo);

  /** Takes a body off: it was thrown, or put away. An id that is no more is ignored. */
  void remove(BodyId id);

  /** Lets a body that could not leave come back from its edge. */
  void back(BodyId id);

  /** The topmost body at a point, or 0; a point as far as `near` beside it counts. */
  BodyId hit(double x, double y, double near) const;

  /** Selects a body (0: none) and puts it on top. */
  void select(BodyId id);
  BodyId selected() const { return selected_; }

  /** Where the selected one walks: -1, 0 or 1 along each axis. */
  void walk(int x, int y);

  /** Lets the selected one hop, if it stands on the ground. */
  void jump();

  /** Selects the next one (step 1), the one before (-1), or one at all where none is (0). */
  void choose(int step);

  /** Throws the selected one that way: -1, 0 or 1 along each axis. */
  void hurl(int x, int y);

  /** Takes off a body that is here; false for one that flies: it may be the neighbor's already. */
  bool putAway(BodyId id);

  /**
   * Takes a body in the hand, moves it there, and lets it go with a speed. One that is let go at an
   * edge flies over it, however slow the hand was.
   */
  void hold(BodyId id);
  void drag(BodyId id, double x, double y);
  void release(BodyId id, double vx, double vy);

  /** Whether one that is let go below the desktop is put down there; a quicker one is thrown. */
  bool isDrop(double vy) const;

  /** Lets time pass; long times are cut, so that a desktop that slept does not jump. */
  void step(double seconds);

  /** Whether anything is on its way, or in the hand. */
  bool isMoving() const;

  const std::vector<Body>& bodies() const { return bodies_; }
  const Body* find(BodyId id) const;

 private:
  Body* body(BodyId id);
  void slide(Body* body, double time);
  void cross(Body* body);
  void wall(Body* body);
  void fly(Body* body, double time);

  double width_;
  double height_;
  OnLeave onLeave_;
  bool open_ = false;
  std::vector<Body> bodies_;
  BodyId lastId_ = 0;
  BodyId selected_ = 0;
  int walkX_ = 0;
  int walkY_ = 0;
};

constexpr std::chrono::seconds kUndoTime{8};

/**
 * What was put away, for kUndoTime, in which it can be had back: as on the web page, the last one
 * first.
 */
class Undos {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /** `body` was put away at `now`. */
  void keep(Body body, Time now) {
    forget(now);
    kept_.push_back({std::move(body), now + kUndoTime});
  }

  /** The one that was put away last, which is kept no more; none when that is too long ago. */
  std::optional<Body> take(Time now) {
    forget(now);
    if (kept_.empty()) return std::nullopt;
    Body body = std::move(kept_.back().body);
    kept_.pop_back();
    return body;
  }

 private:
  struct Kept {
    Body body;
    Time end;
  };

  void forget(Time now) {
    while (!kept_.empty() && kept_.front().end <= now) kept_.pop_front();
  }

  std::deque<Kept> kept_;
};

/**
 * A stranger's text as one that moves no cursor and turns no words around: control characters
 * become spaces, those that set a direction go.
 */
std::string printable(std::string text);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_DESKTOP_H_
