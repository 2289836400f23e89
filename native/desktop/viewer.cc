#include "viewer.h"

#include <algorithm>

#include "drawing.h"

namespace sprites::desktop {

namespace {

constexpr int kMargin = 12;       // around the card
constexpr int kPadding = 18;      // inside the card
constexpr int kTitleHeight = 30;  // pixels: height, as the next two
constexpr int kCaptionHeight = 26;
constexpr int kButtonHeight = 34;
constexpr int kGap = 10;
constexpr double kMaxScale = 3;  // largest scale of the image: more would show no more

const std::pair<Action, const char*> kButtons[] = {{Action::kSave, "Save (s)"},
                                                   {Action::kPutAway, "Put away (Delete)"},
                                                   {Action::kClose, "Close (Esc)"}};

TextStyle bold(double size) {
  TextStyle style;
  style.size = size;
  style.bold = true;
  return style;
}

}  // namespace

Viewer::Viewer(const OpenedSprite& opened, int width, int height) {
  const Drawing probe(1, 1);
  const TextStyle label = bold(13);
  double buttonsWidth = 0;
  for (const auto& [action, text] : kButtons) {
    buttons_.push_back({action, buttonsWidth, probe.measure(text, label).width + 26.0});
    buttonsWidth += buttons_.back().width + kGap;
  }
  buttonsWidth -= kGap;

  const int otherHeight = kTitleHeight + kCaptionHeight + kButtonHeight + 2 * kPadding + 2 * kGap;
  const double imageWidthMost = std::max(40, width - 2 * kMargin - 2 * kPadding);
  const double imageHeightMost = std::max(40, height - 2 * kMargin - otherHeight);
  const double scale = std::min(
      {kMaxScale, imageWidthMost / opened.image.width, imageHeightMost / opened.image.height});
  const double imageWidth = opened.image.width * scale;
  const double imageHeight = opened.image.height * scale;
  const int cardWidth =
      static_cast<int>(std::max({imageWidth, buttonsWidth, 200.0})) + 2 * kPadding;
  const int cardHeight = static_cast<int>(imageHeight) + otherHeight;

  Drawing drawing(cardWidth, cardHeight);
  drawing.setColor(colors::kCard);
  drawing.fillCard(0, 0, cardWidth, cardHeight, 18);
  const double middle = cardWidth / 2.0;
  TextStyle title = bold(18);
  title.maxWidth = cardWidth - 2 * kPadding;
  drawing.drawText(opened.title, title, middle, kPadding - 6);
  double y = kPadding + kTitleHeight;
  drawing.drawImage(opened.image, middle - imageWidth / 2, y, scale);
  y += imageHeight + kGap;
  TextStyle caption;
  caption.size = 14;
  caption.color = colors::kSoft;
  caption.maxWidth = title.maxWidth;
  drawing.drawText(opened.caption, caption, middle, y);
  buttonsTop_ = y + kCaptionHeight;
  for (Button& button : buttons_) {
    button.x += middle - buttonsWidth / 2;
    drawing.setColor(colors::kInk);
    drawing.fillPill(button.x, buttonsTop_, button.width, kButtonHeight);
    drawing.setColor(colors::kCard);
    drawing.fillPill(button.x + 2, buttonsTop_ + 2, button.width - 4, kButtonHeight - 4);
  }
  for (size_t i = 0; i < buttons_.size(); i++) {
    drawing.drawText(kButtons[i].second, label, buttons_[i].x + buttons_[i].width / 2,
                     buttonsTop_ + 8);
  }
  card_ = drawing.image();
  left_ = (width - cardWidth) / 2;
  top_ = std::max(0, (height - cardHeight) / 2);
}

Action Viewer::actionAt(int x, int y) const {
  const int cardX = x - left_;
  const int cardY = y - top_;
  if (cardX < 0 || cardY < 0 || cardX >= card_.width || cardY >= card_.height)
    return Action::kClose;
  if (cardY < buttonsTop_ || cardY >= buttonsTop_ + kButtonHeight) return Action::kNone;
  for (const Button& button : buttons_) {
    if (cardX >= button.x && cardX < button.x + button.width) return button.action;
  }
  return Action::kNone;
}

}  // namespace sprites::desktop
