#include "desktop.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sprites::desktop {

namespace {

constexpr double kFriction = 1.15;  // decay a second: at speed v a body slides almost v / kFriction
constexpr double kDrag = 45;        // further loss of speed a second: bodies stop and don't creep
constexpr double kEntrySpeedMargin = 70;  // speed beyond the loss by friction, to get over an edge
constexpr double kGravity = 2100;
constexpr double kJumpSpeed = 560;
constexpr double kWalkSpeed = 0.42;        // share of the shorter side, a second
constexpr double kWalkGrip = 14;           // how quickly a walker reaches its speed, a second
constexpr double kKeyThrowSpeed = 1.6;     // edge lengths a second, for a throw by key
constexpr double kEdgeReleaseSpeed = 0.6;  // edge lengths a second, at least, released at an edge
constexpr double kFlickSpeed = 0.8;      // edge lengths a second, down: a faster release is a throw
constexpr double kEdgeReach = 0.5;       // share of `halfSide`: a middle so near is at the edge
constexpr double kBounce = 0.62;         // share of the speed that is left after a wall
constexpr double kWallSpeedLeast = 120;  // least speed off a wall
constexpr double kReturnSpeed = 0.35;  // share of the side, a second: least speed of a refused body
constexpr double kPeekAfter = 0.7;  // seconds without an answer until the body peeks over the edge
constexpr double kLongestStep = 0.05;

bool isSideEdge(Edge edge) { return edge == Edge::kLeft || edge == Edge::kRight; }

/** Returns 1 if the way in by this edge raises x or y, else -1. */
double inwardSign(Edge edge) { return edge == Edge::kLeft || edge == Edge::kUp ? 1 : -1; }

/** Returns the place nearest to `place` with a body fully visible; the middle without room. */
double clampVisible(double place, double halfSide, double side) {
  return std::clamp(place, std::min(halfSide, side / 2), std::max(side - halfSide, side / 2));
}

}  // namespace

Desktop::Desktop(double width, double height, OnLeave onLeave)
    : width_(width), height_(height), onLeave_(std::move(onLeave)) {}

void Desktop::resize(double width, double height) {
  for (Body& body : bodies_) {
    body.x *= width / width_;
    body.y *= height / height_;
  }
  width_ = width;
  height_ = height;
}

BodyId Desktop::add(const Sprite& sprite, double x, double y, double halfSide) {
  Body body;
  body.id = ++lastId_;
  body.sprite = sprite;
  body.x = clampVisible(x, halfSide, width_);
  body.y = clampVisible(y, halfSide, height_);
  body.halfSide = halfSide;
  bodies_.push_back(std::move(body));
  return lastId_;
}

BodyId Desktop::enter(const Sprite& sprite, Edge edge, double halfSide) {
  const bool isSide = isSideEdge(edge);
  const double length = isSide ? width_ : height_;
  const double border = inwardSign(edge) > 0 ? 0 : length;
  // A sprite that is too slow to get over the edge gets more speed.
  const double across = inwardSign(edge) * std::max(sprite.across * length,
                                                    kFriction * halfSide * 1.5 + kEntrySpeedMargin);
  const double along = sprite.along * (isSide ? height_ : width_);
  const BodyId id = add(sprite, 0, 0, halfSide);
  Body& body = bodies_.back();
  body.x = isSide ? border : sprite.at * width_;
  body.y = isSide ? sprite.at * height_ : border;
  body.vx = isSide ? across : along;
  body.vy = isSide ? along : across;
  return id;
}

Sprite Desktop::spriteToThrow(const Body& body, Edge edge) const {
  const double x = body.vx / width_;
  const double y = body.vy / height_;
  Sprite sprite = body.sprite;
  sprite.at = std::clamp(isSideEdge(edge) ? body.y / height_ : body.x / width_, 0.0, 1.0);
  sprite.across = std::min(std::abs(isSideEdge(edge) ? x : y), kSpriteSpeedMax);
  sprite.along = std::clamp(isSideEdge(edge) ? y : x, -kSpriteSpeedMax, kSpriteSpeedMax);
  return sprite;
}

const Body* Desktop::find(BodyId id) const {
  const auto found = std::find_if(bodies_.begin(), bodies_.end(),
                                  [id](const Body& body) { return body.id == id; });
  return found == bodies_.end() ? nullptr : &*found;
}

Body* Desktop::findMutable(BodyId id) { return const_cast<Body*>(find(id)); }

void Desktop::setPictures(BodyId id, const std::string& picture, const std::string& photo) {
  Body* body = this->findMutable(id);
  if (body == nullptr) return;
  body->sprite.picture = picture;
  body->sprite.photo = photo;
}

void Desktop::remove(BodyId id) {
  bodies_.erase(std::remove_if(bodies_.begin(), bodies_.end(),
                               [id](const Body& body) { return body.id == id; }),
                bodies_.end());
  if (selected_ == id) selected_ = 0;
}

void Desktop::bounceBack(BodyId id) {
  Body* body = this->findMutable(id);
  if (body == nullptr || !body->flightEdge) return;
  const Edge edge = *body->flightEdge;
  body->flightEdge.reset();
  const double side = isSideEdge(edge) ? width_ : height_;
  double& place = isSideEdge(edge) ? body->x : body->y;
  double& speed = isSideEdge(edge) ? body->vx : body->vy;
  place = std::clamp(place, -body->halfSide, side + body->halfSide);
  speed = inwardSign(edge) * std::max(std::abs(speed) * kBounce, side * kReturnSpeed);
}

BodyId Desktop::hitTest(double x, double y, double margin) const {
  for (auto body = bodies_.rbegin(); body != bodies_.rend(); ++body) {
    const double reach = body->halfSide + margin;
    if (!body->flightEdge && std::abs(x - body->x) <= reach &&
        std::abs(y - (body->y - body->z)) <= reach) {
      return body->id;
    }
  }
  return 0;
}

void Desktop::select(BodyId id) {
  const auto found = std::find_if(bodies_.begin(), bodies_.end(),
                                  [id](const Body& body) { return body.id == id; });
  selected_ = found == bodies_.end() ? 0 : id;
  if (selected_ != 0) std::rotate(found, found + 1, bodies_.end());
}

void Desktop::walk(int x, int y) {
  walkX_ = x;
  walkY_ = y;
}

void Desktop::jump() {
  Body* body = this->findMutable(selected_);
  if (body != nullptr && body->z <= 0 && !body->flightEdge) body->vz = kJumpSpeed;
}

void Desktop::selectByStep(int step) {
  // By id: that order stays, whatever lies on top.
  std::vector<BodyId> ids;
  for (const Body& body : bodies_) {
    if (!body.flightEdge) ids.push_back(body.id);
  }
  if (ids.empty()) return;
  const Body* now = find(selected_);
  if (now == nullptr || now->flightEdge) {
    select(ids.back());
    return;
  }
  if (step == 0) return;
  std::sort(ids.begin(), ids.end());
  const auto at = static_cast<size_t>(std::find(ids.begin(), ids.end(), selected_) - ids.begin());
  select(ids[(at + (step > 0 ? 1 : ids.size() - 1)) % ids.size()]);
}

void Desktop::throwSelected(int x, int y) {
  Body* body = this->findMutable(selected_);
  if (body == nullptr || body->isHeld || body->flightEdge) return;
  // In the air nothing slows a body: it would fly through the neighbor's desktop and on.
  body->z = body->vz = 0;
  if (x != 0) body->vx = x * kKeyThrowSpeed * width_;
  if (y != 0) body->vy = y * kKeyThrowSpeed * height_;
}

bool Desktop::putAway(BodyId id) {
  const Body* body = find(id);
  if (body == nullptr || body->flightEdge) return false;
  remove(id);
  return true;
}

void Desktop::hold(BodyId id) {
  Body* body = this->findMutable(id);
  if (body == nullptr || body->flightEdge) return;
  body->isHeld = true;
  body->vx = body->vy = body->z = body->vz = 0;
}

void Desktop::drag(BodyId id, double x, double y) {
  Body* body = this->findMutable(id);
  if (body == nullptr || !body->isHeld) return;
  body->x = std::clamp(x, 0.0, width_);
  body->y = std::clamp(y, 0.0, height_);
}

void Desktop::release(BodyId id, double vx, double vy) {
  Body* body = this->findMutable(id);
  if (body == nullptr || !body->isHeld) return;
  body->isHeld = false;
  const auto clampedSpeed = [body](double place, double speed, double side) {
    const double most = kSpriteSpeedMax * side;
    const double least = kEdgeReleaseSpeed * side;
    const double reach = kEdgeReach * body->halfSide;
    if (place <= reach && speed <= 0) return std::clamp(speed, -most, -least);
    if (place >= side - reach && speed >= 0) return std::clamp(speed, least, most);
    return std::clamp(speed, -most, most);
  };
  body->vx = clampedSpeed(body->x, vx, width_);
  body->vy = clampedSpeed(body->y, vy, height_);
}

bool Desktop::isDrop(double vy) const { return vy < kFlickSpeed * height_; }

void Desktop::step(double seconds) {
  const double time = std::clamp(seconds, 0.0, kLongestStep);
  // By id: onLeave_ may remove the body at once.
  std::vector<BodyId> ids;
  ids.reserve(bodies_.size());
  for (const Body& body : bodies_) ids.push_back(body.id);
  for (const BodyId id : ids) {
    Body* body = this->findMutable(id);
    if (body == nullptr || body->isHeld) continue;
    if (body->flightEdge) {
      fly(body, time);
    } else {
      slide(body, time);
    }
  }
}

void Desktop::slide(Body* body, double time) {
  if (body->id == selected_ && (walkX_ != 0 || walkY_ != 0)) {
    const double speed = kWalkSpeed * std::min(width_, height_);
    const double grip = 1 - std::exp(-kWalkGrip * time);
    body->vx += (walkX_ * speed - body->vx) * grip;
    body->vy += (walkY_ * speed - body->vy) * grip;
  } else if (body->z <= 0) {
    const double decay = std::exp(-kFriction * time);
    const double speed = std::hypot(body->vx, body->vy) * decay;
    const double share = speed > kDrag * time ? decay * (1 - kDrag * time / speed) : 0;
    body->vx *= share;
    body->vy *= share;
  }
  if (body->z > 0 || body->vz > 0) {
    body->vz -= kGravity * time;
    body->z += body->vz * time;
    if (body->z <= 0) body->z = body->vz = 0;
  }
  body->x += body->vx * time;
  body->y += body->vy * time;
  if (edgesOpen_) {
    crossEdge(body);
  } else {
    bounceOffWalls(body);
  }
}

void Desktop::crossEdge(Body* body) {
  if (body->x < 0 && body->vx < 0) {
    body->flightEdge = Edge::kLeft;
  } else if (body->x > width_ && body->vx > 0) {
    body->flightEdge = Edge::kRight;
  } else if (body->y < 0 && body->vy < 0) {
    body->flightEdge = Edge::kUp;
  } else if (body->y > height_ && body->vy > 0) {
    body->flightEdge = Edge::kDown;
  } else {
    return;
  }
  body->flightTime = 0;
  const Body leaving = *body;
  onLeave_(leaving, *leaving.flightEdge);
}

/** Bounces a body off a wall; a body that stands in a wall is pushed inside. */
void Desktop::bounceOffWalls(Body* body) {
  const auto bounce = [body](double* place, double* speed, double side) {
    if (*place < body->halfSide && *speed <= 0) {
      *speed = std::max(-*speed * kBounce, kWallSpeedLeast);
    } else if (*place > side - body->halfSide && *speed >= 0) {
      *speed = -std::max(*speed * kBounce, kWallSpeedLeast);
    }
    *place = std::clamp(*place, 0.0, side);
  };
  bounce(&body->x, &body->vx, width_);
  bounce(&body->y, &body->vy, height_);
}

/** Keeps a body out of sight behind its edge; if the answer is late, it peeks over the edge. */
void Desktop::fly(Body* body, double time) {
  body->flightTime += time;
  const bool isLate = body->flightTime > kPeekAfter;
  const double beyond = body->halfSide * (isLate ? 0.3 : 1.4);
  const bool isSide = isSideEdge(*body->flightEdge);
  double& across = isSide ? body->x : body->y;
  double& along = isSide ? body->y : body->x;
  const double side = isSide ? width_ : height_;
  across = std::clamp(across + (isSide ? body->vx : body->vy) * time, -beyond, side + beyond);
  if (!isLate) along += (isSide ? body->vy : body->vx) * time;
  along = std::clamp(along, 0.0, isSide ? height_ : width_);
  body->z = std::max(0.0, body->z - 200 * time);
}

bool Desktop::isMoving() const {
  if (selected_ != 0 && (walkX_ != 0 || walkY_ != 0)) return true;
  return std::any_of(bodies_.begin(), bodies_.end(), [](const Body& body) {
    return body.isHeld || body.flightEdge || std::abs(body.vx) > 0 || std::abs(body.vy) > 0 ||
           body.z > 0 || body.vz > 0;
  });
}

std::string printable(std::string text) {
  for (const char* turn : {"\u061C", "\u200E", "\u200F", "\u202A", "\u202B", "\u202C", "\u202D",
                           "\u202E", "\u2066", "\u2067", "\u2068", "\u2069"}) {
    for (size_t at = 0; (at = text.find(turn, at)) != text.npos;) text.erase(at, std::strlen(turn));
  }
  for (size_t at = 0; at < text.size(); at++) {
    const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(at) < 0x20 || byte(at) == 0x7F) text[at] = ' ';
    // U+0080 to U+009F
    if (byte(at) == 0xC2 && at + 1 < text.size() && byte(at + 1) < 0xA0) text.replace(at, 2, " ");
  }
  return text;
}

}  // namespace sprites::desktop
