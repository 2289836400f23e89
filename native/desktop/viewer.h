// Shows one sprite large, with its sender and with buttons.
#ifndef SPRITES_DESKTOP_VIEWER_H_
#define SPRITES_DESKTOP_VIEWER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "image.h"

namespace sprites::desktop {

/** What is shown of a sprite that is open. */
struct OpenedSprite {
  Image image;
  std::string title;
  std::string caption;
};

/** The action of a click on an open sprite. */
enum class Action : uint8_t { kNone, kSave, kPutAway, kClose };

/** The card of an open sprite, in the middle of a window, and its buttons. */
class Viewer {
 public:
  /** Draws the card as large as the window allows. */
  Viewer(const OpenedSprite& opened, int width, int height);

  /** The card, and its upper left corner in the window. */
  const Image& card() const { return card_; }
  int left() const { return left_; }
  int top() const { return top_; }

  /** Returns the action of a click in the window; a click beside the card closes it. */
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
