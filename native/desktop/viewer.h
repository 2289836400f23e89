// One sprite, large: what it shows, its sender, and what can be done with it.
#ifndef SPRITES_DESKTOP_VIEWER_H_
#define SPRITES_DESKTOP_VIEWER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "image.h"

namespace sprites::desktop {

/** What is seen of a sprite that is open. */
struct Opened {
  Image image;
  std::string title;
  std::string words;
};

/** What a click on it asks for. */
enum class Action : uint8_t { kNone, kSave, kPutAway, kClose };

/** A card with it, in the middle of a window, and where its buttons are. */
class Viewer {
 public:
  /** Draws the card as large as the window lets it be. */
  Viewer(const Opened& opened, int width, int height);

  /** The card, and where its left upper corner is in the window. */
  const Image& card() const { return card_; }
  int left() const { return left_; }
  int top() const { return top_; }

  /** What a click at a point of the window asks for; beside the card it closes it. */
  Action actionAt(int x, int y) const;

 private:
  struct Button {
    Action action;
    double x, width;  // on the card
  };

  Image card_;
  int left_ = 0;
  int top_ = 0;
  double buttonsTop_ = 0;
  std::vector<Button> buttons_;
};

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_VIEWER_H_
