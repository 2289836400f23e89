// Tests that need no window: how sprites move, how they are drawn, the command line.
//
// Prints one line for each check that fails and ends with their number (at most 100).
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "../desktop.h"
#include "../drawing.h"
#include "../image.h"
#include "../options.h"
#include "checks.h"

namespace {

using namespace sprites::desktop;
using sprites::Checks;
using sprites::Edge;
using sprites::Sprite;

bool isNear(double a, double b, double tolerance = 1e-6) { return std::abs(a - b) <= tolerance; }

Sprite ball(double across = 0, double along = 0, double at = 0.5) {
  Sprite sprite;
  sprite.id = "a";
  sprite.picture = "ball";
  sprite.at = at;
  sprite.across = across;
  sprite.along = along;
  return sprite;
}

/** A desktop of 1000 by 500 that stores the sprites that left it. */
struct Scene {
  struct Departure {
    BodyId id;
    Edge edge;
    Sprite sprite;
  };
  std::vector<Departure> departures;
  Desktop desktop{1000, 500, [this](const Body& body, Edge edge) {
                    departures.push_back({body.id, edge, desktop.spriteToThrow(body, edge)});
                  }};

  void run(double seconds) {
    const int frames = static_cast<int>(seconds * 60);
    for (int frame = 0; frame < frames; frame++) desktop.step(1.0 / 60);
  }
  BodyId push(double x, double y, double vx, double vy) {
    const BodyId id = desktop.add(ball(), x, y, 36);
    desktop.hold(id);
    desktop.release(id, vx, vy);
    return id;
  }
  const Body& body(BodyId id) const { return *desktop.find(id); }
};

void checkSliding(Checks& check) {
  Scene scene;
  const BodyId id = scene.push(200, 250, 230, 0);
  check(scene.desktop.isMoving(), "what was pushed moves");
  scene.run(10);
  // The distance of v' = -1.15 v - 45 from 230 to rest.
  check(isNear(scene.body(id).x,
               200 + 230 / 1.15 - 45 / (1.15 * 1.15) * std::log(1 + 1.15 * 230 / 45), 5),
        "it slides as far as friction and drag let it");
  check(isNear(scene.body(id).y, 250), "and straight");
  check(!scene.desktop.isMoving(), "and comes to rest");
  scene.desktop.step(1e9);
  check(std::isfinite(scene.body(id).x), "a desktop that slept for years");
}

void checkLeaving(Checks& check) {
  const struct {
    double vx, vy;
    Edge edge;
  } directions[] = {{-900, 40, Edge::kLeft},
                    {900, 40, Edge::kRight},
                    {80, -450, Edge::kUp},
                    {80, 450, Edge::kDown}};
  for (const auto& direction : directions) {
    const std::string name = sprites::toString(direction.edge);
    Scene scene;
    scene.desktop.setEdgesOpen(true);
    const BodyId id = scene.push(500, 250, direction.vx, direction.vy);
    scene.run(2);
    check(scene.departures.size() == 1 && scene.departures[0].edge == direction.edge,
          "it leaves once: " + name);
    if (scene.departures.size() != 1) continue;
    const Sprite& thrown = scene.departures[0].sprite;
    check(thrown.across > 0.2 && thrown.across < 0.5, "with its speed: " + name);
    check(thrown.at > 0.5 && thrown.at < 0.6, "at its height: " + name);
    check(isNear(thrown.along *
                     (direction.vx * direction.vx > direction.vy * direction.vy ? 500 : 1000),
                 direction.vx * direction.vx > direction.vy * direction.vy ? scene.body(id).vy
                                                                           : scene.body(id).vx,
                 1),
          "with its speed along the edge: " + name);
    check(scene.body(id).flightEdge == direction.edge,
          "it is out of sight until there is an answer: " + name);
    check(scene.desktop.hitTest(scene.body(id).x, scene.body(id).y, 50) == 0,
          "and can't be caught");

    scene.desktop.bounceBack(id);
    const Body& back = scene.body(id);
    const bool inward = (direction.edge == Edge::kLeft && back.vx > 0) ||
                        (direction.edge == Edge::kRight && back.vx < 0) ||
                        (direction.edge == Edge::kUp && back.vy > 0) ||
                        (direction.edge == Edge::kDown && back.vy < 0);
    check(inward && !back.flightEdge, "refused, it bounces back: " + name);
    scene.run(5);
    check(scene.departures.size() == 1, "and stays: " + name);
    check(scene.body(id).x >= 0 && scene.body(id).x <= 1000 && scene.body(id).y >= 0 &&
              scene.body(id).y <= 500,
          "within the window: " + name);
    scene.desktop.remove(id);
    check(scene.desktop.bodies().empty() && scene.desktop.find(id) == nullptr, "gone: " + name);
    scene.desktop.bounceBack(id);
    scene.desktop.remove(id);
  }
}

void checkWalls(Checks& check) {
  Scene scene;
  const BodyId id = scene.push(500, 250, 5000, 3000);
  for (int i = 0; i < 600; i++) {
    scene.desktop.step(1.0 / 60);
    const Body& body = scene.body(id);
    if (body.x < 0 || body.x > 1000 || body.y < 0 || body.y > 500) check(false, "within walls");
  }
  check(scene.departures.empty(), "offline nothing leaves");
  check(!scene.desktop.isMoving(), "and comes to rest");
}

void checkEntering(Checks& check) {
  Scene scene;
  const BodyId right = scene.desktop.enter(ball(1.5, -0.2, 0.25), Edge::kRight, 36);
  check(isNear(scene.body(right).x, 1000) && isNear(scene.body(right).y, 125), "where it left");
  check(isNear(scene.body(right).vx, -1500) && isNear(scene.body(right).vy, -100), "as fast");
  const BodyId up = scene.desktop.enter(ball(2, 0.5, 0.75), Edge::kUp, 36);
  check(isNear(scene.body(up).x, 750) && isNear(scene.body(up).y, 0), "from above");
  check(isNear(scene.body(up).vx, 500) && isNear(scene.body(up).vy, 1000), "downwards");
  Scene slow;
  slow.desktop.setEdgesOpen(true);
  const BodyId slowId = slow.desktop.enter(ball(0, 0), Edge::kLeft, 36);
  slow.run(10);
  check(slow.body(slowId).x > 36, "one without speed is helped in");
  check(slow.departures.empty(), "and stays");

  // A sprite enters the next desktop as it left, whatever the desktops' sizes.
  Scene from;
  from.desktop.setEdgesOpen(true);
  from.push(900, 100, 3000, 200);
  from.run(0.2);
  Desktop to(400, 400, [](const Body&, Edge) {});
  const BodyId id = to.enter(from.departures.at(0).sprite, Edge::kLeft, 36);
  const Body* body = to.find(id);
  check(isNear(body->vx / 400, from.departures[0].sprite.across), "speed in edge lengths");
  check(isNear(body->y / 400, from.departures[0].sprite.at), "height as a share");
}

void checkHand(Checks& check) {
  Scene scene;
  const BodyId under = scene.desktop.add(ball(), 100, 100, 36);
  const BodyId over = scene.desktop.add(ball(), 110, 100, 36);
  check(scene.desktop.hitTest(105, 100, 0) == over, "the topmost one is hit");
  scene.desktop.select(under);
  check(scene.desktop.hitTest(105, 100, 0) == under, "the selected one is on top");
  check(scene.desktop.hitTest(105, 300, 5) == 0, "nothing there");
  scene.desktop.hold(under);
  scene.desktop.drag(under, -50, 900);
  check(isNear(scene.body(under).x, 0) && isNear(scene.body(under).y, 500),
        "a hand stays in the window");
  scene.run(1);
  check(isNear(scene.body(under).y, 500), "what is held does not move by itself");
  scene.desktop.release(under, 1e9, -1e9);
  check(scene.body(under).vx <= 20 * 1000 && scene.body(under).vy >= -20 * 500,
        "a hand's speed is cut");
  scene.desktop.remove(under);
  check(scene.desktop.selected() == 0, "what is gone is not selected");
}

void checkWalking(Checks& check) {
  Scene scene;
  const BodyId id = scene.desktop.add(ball(), 500, 250, 36);
  scene.desktop.walk(1, 0);
  scene.run(0.5);
  check(isNear(scene.body(id).x, 500), "only the selected one walks");
  scene.desktop.select(id);
  scene.run(0.5);
  const double x = scene.body(id).x;
  check(x > 560 && x < 640 && isNear(scene.body(id).y, 250), "it walks to the right");
  scene.desktop.walk(0, 0);
  scene.run(5);
  check(!scene.desktop.isMoving(), "and stops");
  scene.desktop.jump();
  scene.run(0.1);
  const double height = scene.body(id).z;
  check(height > 20, "it hops");
  scene.desktop.jump();
  scene.run(1);
  check(isNear(scene.body(id).z, 0), "and lands");
  scene.desktop.setEdgesOpen(true);
  scene.desktop.walk(-1, 0);
  scene.run(20);
  check(scene.departures.size() == 1 && scene.departures[0].edge == Edge::kLeft,
        "and walks off the desktop");
}

void checkPlaces(Checks& check) {
  Scene scene;
  const auto isAt = [&scene](BodyId id, double x, double y) {
    return isNear(scene.body(id).x, x) && isNear(scene.body(id).y, y);
  };
  check(isAt(scene.desktop.add(ball(), 5, 490, 36), 36, 464), "what is put down is seen whole");
  scene.desktop.resize(60, 40);
  check(isAt(scene.desktop.add(ball(), 500, -3, 36), 30, 20), "or in the middle of a small window");
}

void checkUndos(Checks& check) {
  using namespace std::chrono_literals;
  UndoStack undos;
  const UndoStack::Time start{};
  Body body;
  for (const auto& [id, at] : {std::pair{1, 0s}, {2, 2s}, {3, 4s}}) {
    body.id = static_cast<BodyId>(id);
    undos.push(body, start + at);
  }
  check(undos.pop(start + 5s).value_or(Body{}).id == 3, "the last one first");
  check(undos.pop(start + 9s).value_or(Body{}).id == 2, "then the one before");
  check(!undos.pop(start + 9s), "not what was put away too long ago");
  undos.push(body, start + 10s);
  check(!undos.pop(start + 10s + kUndoTime), "and then none");
  undos.push(body, start);
  body.id = 4;
  undos.push(body, start + kUndoTime);
  check(undos.pop(start).value_or(Body{}).id == 4 && !undos.pop(start),
        "and none is kept that can't be had back");
}

void checkKeys(Checks& check) {
  Scene scene;
  Desktop& desktop = scene.desktop;
  desktop.selectByStep(1);
  check(desktop.selected() == 0, "no desktop to select");
  const BodyId one = desktop.add(ball(), 100, 100, 36);
  const BodyId two = desktop.add(ball(), 200, 100, 36);
  const BodyId three = desktop.add(ball(), 300, 100, 36);
  desktop.selectByStep(0);
  check(desktop.selected() == three, "where none is selected, the topmost");
  desktop.selectByStep(0);
  check(desktop.selected() == three, "and it stays");
  std::vector<BodyId> order;
  for (int i = 0; i < 6; i++) {
    desktop.selectByStep(1);
    order.push_back(desktop.selected());
  }
  check(order == std::vector<BodyId>{one, two, three, one, two, three}, "next goes around");
  desktop.selectByStep(-1);
  check(desktop.selected() == two, "the one before");

  desktop.setEdgesOpen(true);
  desktop.jump();
  scene.run(0.1);
  desktop.throwSelected(1, 0);
  check(isNear(scene.body(two).vx, 1600) && isNear(scene.body(two).z, 0),
        "thrown from where it hops");
  scene.run(1);
  check(scene.departures.size() == 1 && scene.departures[0].id == two &&
            scene.departures[0].edge == Edge::kRight,
        "thrown by key");
  desktop.throwSelected(-1, 0);
  check(scene.body(two).vx > 0, "what flies can't be thrown again");
  check(!desktop.putAway(two) && desktop.find(two) != nullptr, "nor put away");
  desktop.selectByStep(1);
  check(desktop.selected() != two, "nor selected");
  check(desktop.putAway(one) && desktop.find(one) == nullptr, "put away");
  check(!desktop.putAway(one), "once");
  desktop.hold(three);
  desktop.select(three);
  desktop.throwSelected(0, 1);
  check(isNear(scene.body(three).vy, 0), "what is held is not thrown by key");
}

void checkLettingGo(Checks& check) {
  const struct {
    double x, y;
    Edge edge;
  } places[] = {{-9, 250, Edge::kLeft}, {15, 250, Edge::kLeft},  {1009, 250, Edge::kRight},
                {500, -9, Edge::kUp},   {500, 999, Edge::kDown}, {500, 490, Edge::kDown}};
  for (const auto& [x, y, edge] : places) {
    const std::string name = sprites::toString(edge);
    Scene scene;
    scene.desktop.setEdgesOpen(true);
    const BodyId id = scene.desktop.add(ball(), 500, 250, 36);
    scene.desktop.hold(id);
    scene.desktop.drag(id, x, y);
    scene.desktop.release(id, 0, 0);
    scene.run(1);
    check(scene.departures.size() == 1 && scene.departures[0].edge == edge,
          "let go at an edge: " + name);
  }
  Scene scene;
  scene.desktop.setEdgesOpen(true);
  const BodyId id = scene.desktop.add(ball(), 500, 250, 36);
  scene.desktop.hold(id);
  scene.desktop.drag(id, 40, 250);
  scene.desktop.release(id, 0, 0);
  scene.run(1);
  check(scene.departures.empty() && isNear(scene.body(id).x, 40), "let go beside an edge it rests");
  scene.desktop.hold(id);
  scene.desktop.drag(id, 0, 250);
  scene.desktop.release(id, 800, 0);
  scene.run(0.3);
  check(scene.departures.empty() && scene.body(id).x > 100, "thrown inwards it goes inwards");
  check(scene.desktop.isDrop(0) && scene.desktop.isDrop(-9000) && scene.desktop.isDrop(390),
        "below the desktop a slow hand puts down");
  check(!scene.desktop.isDrop(410), "and a quick one throws");
}

void checkResize(Checks& check) {
  Scene scene;
  const BodyId id = scene.desktop.add(ball(), 250, 250, 36);
  scene.desktop.resize(400, 1000);
  check(isNear(scene.body(id).x, 100) && isNear(scene.body(id).y, 500),
        "everything keeps its share");
}

/** Returns the share of pixels that are at least half opaque. */
double opaqueShare(const Image& image) {
  const std::vector<uint8_t>& pixels = image.pixels;
  double count = 0;
  for (size_t i = 3; i < pixels.size(); i += 4) count += pixels[i] >= 128 ? 1 : 0;
  return count / (static_cast<double>(pixels.size()) / 4);
}

void checkDrawing(Checks& check) {
  Drawing square(40);
  square.fill(svgPath("M25 25 H75 V75 H25Z"), 0xFF0000);
  check(isNear(opaqueShare(square.image()), 0.25), "a square's area");
  const std::vector<uint8_t> pixels = square.image().pixels;
  const size_t middle = (20 * 40 + 20) * 4;
  check(pixels[middle] == 255 && pixels[middle + 1] == 0 && pixels[middle + 3] == 255, "red");
  check(pixels[3] == 0, "nothing beside it");
  Drawing line(100);
  line.stroke(svgPath("M20 50 L80 50"), 0, 10);
  check(isNear(opaqueShare(line.image()), 0.06 + 0.00785, 0.005), "a line with round ends");
  Drawing clipped(100);
  clipped.clip(svgPath("M0 0 H50 V100 H0Z"));
  clipped.fill(ellipse(50, 50, 48, 20, kTurn / 4), 0);
  check(isNear(opaqueShare(clipped.image()), 0.1508, 0.005), "half an ellipse, turned");
  Drawing curve(100);
  curve.fill(svgPath("M0 100 Q50 0 100 100Z"), 0);
  check(isNear(opaqueShare(curve.image()), 1.0 / 3, 0.01), "a parabola's area");
  for (const std::string_view name : sprites::kDrawnPictures) {
    const double share = opaqueShare(drawSticker(name, 72));
    check(share > 0.3 && share < 0.9, "a sticker: " + std::string(name));
  }
  check(opaqueShare(drawSticker("nothing known", 72)) > 0.2, "a torn photograph");
}

void checkImages(Checks& check) {
  Image image{2, 2, {255, 0, 0, 255, 0, 0, 255, 255, 9, 9, 9, 0, 9, 9, 9, 0}};
  const Image one = resized(image, 1, 1);
  check(one.pixels[0] == 128 && one.pixels[1] == 0 && one.pixels[2] == 128 && one.pixels[3] == 128,
        "a mean weighed by opacity");
  check(!isOpaque(image) && isOpaque(Image{1, 1, {1, 2, 3, 255}}), "opacity");
  Image wide{400, 100, std::vector<uint8_t>(400 * 100 * 4, 255)};
  check(fitted(wide, 192).width == 192 && fitted(wide, 192).height == 48, "fitted");
  check(fitted(image, 192).width == 2, "never larger");
  const Image line{1000, 1, std::vector<uint8_t>(4000, 255)};
  check(fitted(line, 50).height == 1, "never nothing");
  check(imageSticker(line, 72).pixels.size() == 72 * 72 * 4, "a sticker of a line");
}

void checkCommandLine(Checks& check) {
  const Settings settings = readSettings({"--server", "http://x:1", "--window=300x200-5+7", "a.png",
                                          "--sprite", "fish", "--transparent", "--", "--b.png"});
  check(settings.server == "http://x:1" && settings.transparent, "options");
  check(settings.window && settings.window->width == 300 && *settings.window->x == -5 &&
            *settings.window->y == 7,
        "a window");
  check(settings.files == std::vector<std::string>{"a.png", "--b.png"}, "files");
  check(settings.sprites == std::vector<std::string>{"fish"}, "a drawn one");
  check(!readSettings({"--window", "300x200"}).window->x, "a window without a place");
  const std::vector<std::vector<std::string>> wrong = {{"--window", "3x2"},
                                                       {"--window", "300"},
                                                       {"--window", "300x200+1"},
                                                       {"--window", "300x200+1+2x"},
                                                       {"--window", "300x200 +1+2"},
                                                       {"--window", "999999x200"},
                                                       {"--window"},
                                                       {"--server", "--transparent"},
                                                       {"--transparent=no"},
                                                       {"--sprite", "cat"},
                                                       {"--nothing"}};
  for (const auto& line : wrong) {
    bool refused = false;
    try {
      readSettings(line);
    } catch (const std::invalid_argument&) {
      refused = true;
    }
    check(refused, "refused: " + line.back());
  }
}

}  // namespace

int main() {
  Checks check;
  checkSliding(check);
  checkLeaving(check);
  checkWalls(check);
  checkEntering(check);
  checkHand(check);
  checkWalking(check);
  checkKeys(check);
  checkPlaces(check);
  checkUndos(check);
  checkLettingGo(check);
  checkResize(check);
  checkDrawing(check);
  checkImages(check);
  checkCommandLine(check);
  return check.printSummary();
}
