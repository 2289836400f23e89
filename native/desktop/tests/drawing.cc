// Tests of the drawings: the ground, its words and its map, the names of sprites.
#include "../drawing.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string>

#include "../ground.h"
#include "../viewer.h"
#include "checks.h"

namespace {

using namespace sprites::desktop;
using sprites::Checks;
using sprites::Place;
using sprites::State;

struct Area {
  int left = 0, top = 0, right = INT_MAX, bottom = INT_MAX;
};

/** Counts the pixels of an area that have about that color. */
int countPixels(const Image& image, uint32_t color, const Area& area = {}) {
  int found = 0;
  for (int y = std::max(0, area.top); y < std::min(area.bottom, image.height); y++) {
    for (int x = std::max(0, area.left); x < std::min(area.right, image.width); x++) {
      const uint8_t* pixel = &image.pixels[static_cast<size_t>(y * image.width + x) * 4];
      bool same = true;
      for (size_t i = 0; i < 3; i++) {
        const int wanted = static_cast<int>(color >> (16 - 8 * i) & 255);
        same = same && std::abs(pixel[i] - wanted) <= 3;
      }
      found += same ? 1 : 0;
    }
  }
  return found;
}

View onlineView(uint64_t people) {
  View view;
  view.state = State::kOnline;
  view.stateText = "Throw something over an edge.";
  view.people = people;
  view.place = Place{2, 3, 5, 7};
  return view;
}

void checkGround(Checks& check) {
  constexpr int kWidth = 600;
  constexpr int kHeight = 440;
  const int desktopHeight = kHeight - footerHeight(kHeight);
  const Image open = drawGround(onlineView(1), kWidth, kHeight);
  check(std::all_of(open.pixels.begin(), open.pixels.end(),
                    [i = 0](uint8_t part) mutable { return i++ % 4 != 3 || part == 255; }),
        "the ground is opaque");
  check(countPixels(open, colors::kAcross, {0, 0, 4, kHeight}) > 4 * desktopHeight / 2,
        "a seam on the left");
  check(
      countPixels(open, colors::kAcross, {kWidth - 4, 0, kWidth, kHeight}) > 4 * desktopHeight / 2,
      "right");
  check(countPixels(open, colors::kAlong, {0, 0, kWidth, 4}) > 4 * kWidth / 2, "above");
  check(countPixels(open, colors::kAlong, {0, desktopHeight - 4, kWidth, desktopHeight}) >
            4 * kWidth / 2,
        "below");
  check(countPixels(open, colors::kSelf,
                    {kWidth - 170, desktopHeight - 170, kWidth, desktopHeight}) > 20,
        "this desktop on the map");
  check(countPixels(open, colors::kInk, {0, desktopHeight, kWidth, kHeight}) > 100,
        "the words are below it");
  check(countPixels(open, colors::kInk, {0, 120, kWidth, desktopHeight}) == 0,
        "and not where sprites are");

  View offlineView = onlineView(1);
  offlineView.state = State::kOffline;
  offlineView.place.reset();
  const Image closed = drawGround(offlineView, kWidth, kHeight);
  check(countPixels(closed, colors::kAcross, {0, 0, 5, kHeight}) == 0,
        "no seams without a way out");
  check(countPixels(closed, colors::kSoft, {0, 0, 5, kHeight}) >= 4 * (desktopHeight - 10),
        "but walls");
  check(countPixels(closed, colors::kSelf) == 0, "and no desktop on the map");

  const int one = countPixels(open, colors::kInk, {0, 0, kWidth, 120});
  const int many =
      countPixels(drawGround(onlineView(888), kWidth, kHeight), colors::kInk, {0, 0, kWidth, 120});
  check(one > 100 && many > 3 * one, "the number of people is drawn");
  View unknown = onlineView(1);
  unknown.people.reset();
  check(countPixels(drawGround(unknown, kWidth, kHeight), colors::kInk, {0, 50, kWidth, 120}) == 0,
        "or nothing where it is not known");
  const Image large = drawGround(onlineView(1000000), 300, 300);
  check(countPixels(large, colors::kInk, {0, 0, 20, 250}) == 0,
        "a long number stays in the window");
  for (const int side : {1, 20, 100}) {
    const size_t pixels = static_cast<size_t>(side) * static_cast<size_t>(side);
    check(drawGround(onlineView(7), side, side).pixels.size() == 4 * pixels, "a small one");
  }
  for (const Place place : {Place{0, 0, 1, 1}, Place{0, 0, 1, 2}, Place{1999, 7, 2000, 1000},
                            Place{0, 0, UINT32_MAX, UINT32_MAX}}) {
    View view = onlineView(3);
    view.place = place;
    check(countPixels(drawGround(view, kWidth, kHeight), colors::kSelf) > 20,
          "a torus of any size");
  }
  check(withThousands(7) == "7" && withThousands(1234) == "1,234" &&
            withThousands(1234567) == "1,234,567",
        "thousands apart");
  View other = onlineView(1);
  check(other == onlineView(1), "views are equal");
  other.place->row = 4;
  check(other != onlineView(1), "or not");
}

void checkViewer(Checks& check) {
  constexpr uint32_t kRed = 0xFF0000;
  Image photo{400, 300, {}};
  for (int i = 0; i < 400 * 300; i++) photo.pixels.insert(photo.pixels.end(), {255, 0, 0, 255});
  const Viewer viewer({photo, "Grandma", "From Ada"}, 1000, 800);
  check(countPixels(viewer.card(), kRed) > 700 * 500, "as large as the window lets it be");
  check(viewer.actionAt(1, 1) == Action::kClose, "beside it it is closed");
  check(viewer.actionAt(500, 300) == Action::kNone, "and on it nothing is done");
  std::string clicked;
  for (int x = 0, last = 0; x < viewer.card().width; x++) {
    const int y = viewer.top() + viewer.card().height - 30;
    const auto action = static_cast<int>(viewer.actionAt(viewer.left() + x, y));
    if (action != last && action != 0) clicked += std::to_string(action);
    last = action;
  }
  check(clicked == "123", "its buttons, each once: " + clicked);
  const Image dot{1, 1, {255, 0, 0, 255}};
  for (const int side : {1, 50, 300}) {
    const Viewer small({photo, std::string(200, 'W'), ""}, side, side);
    check(small.card().width > 0, "in a window of any size");
    check(Viewer({dot, "", ""}, side, side).card().height > 0, "an image of any size");
  }
}

void checkLabels(Checks& check) {
  const Image plain = drawLabel("Ada");
  check(plain.height == 20 && plain.width > 30 && plain.width < 80, "a short name");
  check(countPixels(plain, colors::kInk) > 5 && countPixels(plain, 0xFFFFFF) > 100,
        "dark on white");
  std::string huge;
  for (int i = 0; i < 40; i++) huge += "\xF0\x92\x8A\xAB";  // the widest letter there is
  for (const std::string& name :
       {std::string(40, 'W'), huge, std::string("a\nb\r\tc"), std::string("\0x", 2),
        std::string("\xE2\x80\xAE"
                    "abc"),
        std::string("Z\xCC\xB6\xCC\xB7\xCD\xA0\xCC\x88"),
        std::string("\xD9\x85\xD8\xB1\xD8\xAD\xD8\xA8\xD8\xA7"), std::string(" ")}) {
    const Image label = drawLabel(name);
    check(label.height == 20 && label.width <= 160 && label.width >= 17, "a label of any name");
  }
  check(drawLabel("a\nb\u009B").pixels == drawLabel("a b ").pixels,
        "what moves a cursor is a space");
  check(drawLabel("\u2067\u202Eab\u200F").pixels == drawLabel("ab").pixels,
        "what turns words around is left out");
  const Image toast = drawToast("something.png: it is no image that can be read here", 300);
  check(toast.width <= 300 && toast.height > 40, "words go on in the next line");
  check(countPixels(toast, colors::kInk) > 1000, "light on dark");
  check(drawToast("x", 1).width >= 1, "in no window at all");
}

}  // namespace

int main() {
  Checks check;
  checkGround(check);
  checkViewer(check);
  checkLabels(check);
  return check.printSummary();
}
