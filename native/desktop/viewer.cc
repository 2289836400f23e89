#include "viewer.h"

#include <algorithm>

#include "drawing.h"

namespace sprites::desktop {

namespace {

constexpr int kMargin = 12;     // around the card
constexpr int kRim = 18;        // inside the card
constexpr int kTitleHigh = 30;  // pixels: height, as the next two
constexpr int kWordsHigh = 26;
constexpr int kButtonHigh = 34;
constexpr int kGap = 10;
constexpr double kMore = 3;  // largest scale of the image: more would show no more

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

Viewer::Viewer(const Opened& opened, int width, int height) {
  const Drawing probe(1, 1);
  const TextStyle label = bold(13);
  double across = 0;
  for (const auto& [action, text] : kButtons) {
    buttons_.push_back({action, across, probe.measure(text, label).width + 26.0});
    across += buttons_.back().width + kGap;
  }
  across -= kGap;

  const int rest = kTitleHigh + kWordsHigh + kButtonHigh + 2 * kRim + 2 * kGap;
  const double room = std::max(40, width - 2 * kMargin - 2 * kRim);
  const double down = std::max(40, height - 2 * kMargin - rest);
  const double scale = std::min({kMore, room / opened.image.width, down / opened.image.height});
  const double seenWidth = opened.image.width * scale;
  const double seenHeight = opened.image.height * scale;
  const int cardWidth = static_cast<int>(std::max({seenWidth, across, 200.0})) + 2 * kRim;
  const int cardHeight = static_cast<int>(seenHeight) + rest;

  Drawing drawing(cardWidth, cardHeight);
  drawing.color(colors::kCard);
  drawing.card(0, 0, cardWidth, cardHeight, 18);
  const double middle = cardWidth / 2.0;
  TextStyle title = bold(18);
  title.most = cardWidth - 2 * kRim;
  drawing.text(opened.title, title, middle, kRim - 6);
  double y = kRim + kTitleHigh;
  drawing.picture(opened.image, middle - seenWidth / 2, y, scale);
  y += seenHeight + kGap;
  TextStyle words;
  words.size = 14;
  words.color = colors::kSoft;
  words.most = title.most;
  drawing.text(opened.words, words, middle, y);
  buttonsTop_ = y + kWordsHigh;
  for (Button& button : buttons_) {
    button.x += middle - across / 2;
    drawing.color(colors::kInk);
    drawing.pill(button.x, buttonsTop_, button.width, kButtonHigh);
    drawing.color(colors::kCard);
    drawing.pill(button.x + 2, buttonsTop_ + 2, button.width - 4, kButtonHigh - 4);
  }
  for (size_t i = 0; i < buttons_.size(); i++) {
    drawing.text(kButtons[i].second, label, buttons_[i].x + buttons_[i].width / 2, buttonsTop_ + 8);
  }
  card_ = drawing.image();
  left_ = (width - cardWidth) / 2;
  top_ = std::max(0, (height - cardHeight) / 2);
}

Action Viewer::actionAt(int x, int y) const {
  const int onX = x - left_;
  const int onY = y - top_;
  if (onX < 0 || onY < 0 || onX >= card_.width || onY >= card_.height) return Action::kClose;
  if (onY < buttonsTop_ || onY >= buttonsTop_ + kButtonHigh) return Action::kNone;
  for (const Button& button : buttons_) {
    if (onX >= button.x && onX < button.x + button.width) return button.action;
  }
  return Action::kNone;
}

}  // namespace sprites::desktop
