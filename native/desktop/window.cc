#include "window.h"

#include <SDL_shape.h>
#include <sprites/sprite.h>

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string_view>

#include "drawing.h"
#include "images.h"

namespace sprites::desktop {

namespace {

constexpr int kShadows = 5;
constexpr double kHeldLift = 14;
constexpr int kRingWidth = 8;   // pixels by which the ring exceeds the selected body
constexpr int kBadgeSide = 24;  // of the mark that shows the state
constexpr Uint8 kShapeAlphaLeast =
    100;                           // of 255: less opaque pixels are no part of the window's shape
constexpr Uint8 kVeilAlpha = 140;  // of 255: opacity of the veil behind a sprite that is open
constexpr char kTitle[] = "Sprites";

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + SDL_GetError());
}

/** Returns whether SDL found no screen, and would paint unseen without having been asked to. */
bool isWithoutScreen() {
  const char* requestedDriver = SDL_GetHint(SDL_HINT_VIDEODRIVER);
  const std::string_view driver = SDL_GetCurrentVideoDriver();
  const bool hasScreen = driver != "offscreen" && driver != "dummy" && driver != "evdev";
  return (requestedDriver == nullptr || *requestedDriver == '\0') && !hasScreen;
}

/** Returns the first screen, without panels. */
SDL_Rect usableScreen() {
  SDL_Rect screen{0, 0, 800, 600};
  SDL_GetDisplayUsableBounds(0, &screen);
  return screen;
}

/** Draws a soft ellipse: wide for a sprite on the ground, small for one high above it. */
Image drawShadow(int halfSide, int step) {
  Drawing shadow(2 * halfSide);
  const double spread = 0.86 - 0.1 * step;
  for (int i = 0; i < 10; i++) {
    const double share = (10 - i) / 10.0;
    shadow.fill(ellipse(50, 50, 48 * spread * share, 15 * spread * share), 0x140C32, 0.045);
  }
  return shadow.image();
}

/** Draws the ring around the selected body. */
Image drawRing(int halfSide) {
  const int side = 2 * halfSide + 2 * kRingWidth;
  Drawing ring(side);
  ring.stroke(circle(50, 50, 46), colors::kSelf, 288.0 / side, 0.8);
  return ring.image();
}

}  // namespace

int halfSideOf(const std::string& picture) {
  return isDrawnPicture(picture) ? kHalfSide : kImageHalfSide;
}

Window::Window(const Settings& settings) {
  // Without this, a click that gives the window the keyboard would do nothing else.
  SDL_SetHint(SDL_HINT_MOUSE_FOCUS_CLICKTHROUGH, "1");
  SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
  // For the first picture SDL would use the graphics card and make the window again, without its
  // shape.
  SDL_SetHint(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0");
  if (SDL_Init(SDL_INIT_VIDEO) != 0) fail("no display");
  if (isWithoutScreen()) {
    SDL_Quit();
    throw std::runtime_error(
        "no display: set DISPLAY or WAYLAND_DISPLAY to one that can be reached from here");
  }
  transparent_ = settings.transparent && openTransparent(settings);
  if (!transparent_) open(settings);
  if (!window_) {
    const std::string why = SDL_GetError();
    SDL_Quit();
    throw std::runtime_error("no window: " + why);
  }
  updateSize();
}

Window::~Window() {
  // Surfaces and the window are destroyed before SDL ends.
  cachedSurfaces_.clear();
  for (Surface* surface : {&frame_, &ground_, &badge_, &toast_, &card_}) surface->reset();
  window_.reset();
  SDL_Quit();
}

void Window::open(const Settings& settings) {
  const Area area = settings.window.value_or(Area{800, 600, {}, {}});
  window_.reset(SDL_CreateWindow(kTitle, area.x.value_or(SDL_WINDOWPOS_CENTERED),
                                 area.y.value_or(SDL_WINDOWPOS_CENTERED), area.width, area.height,
                                 SDL_WINDOW_RESIZABLE));
}

bool Window::openTransparent(const Settings& settings) {
  SDL_Rect screen = usableScreen();
  if (settings.window) {
    screen.w = settings.window->width;
    screen.h = settings.window->height;
    screen.x = settings.window->x.value_or(screen.x);
    screen.y = settings.window->y.value_or(screen.y);
  }
  window_.reset(SDL_CreateShapedWindow(kTitle, 0, 0, static_cast<unsigned>(screen.w),
                                       static_cast<unsigned>(screen.h), SDL_WINDOW_ALWAYS_ON_TOP));
  if (!window_) {
    std::cerr << "sprites-desktop: a plain window, since this system has no transparent ones ("
              << SDL_GetError() << ")" << std::endl;
    return false;
  }
  SDL_SetWindowPosition(window_.get(), screen.x, screen.y);
  if (!settings.window) screen_ = screen;
  return true;
}

void Window::fillScreen() {
  const SDL_Rect screen = usableScreen();
  if (!screen_ || SDL_RectEquals(&*screen_, &screen)) return;
  screen_ = screen;
  SDL_SetWindowSize(window_.get(), screen.w, screen.h);
  SDL_SetWindowPosition(window_.get(), screen.x, screen.y);
}

int Window::height() const { return transparent_ ? height_ : height_ - footerHeight(height_); }

bool Window::isFooter(double x, double y) const {
  return x >= 0 && x < width_ && y >= height() && y < height_;
}

void Window::updateSize() {
  SDL_GetWindowSize(window_.get(), &width_, &height_);
  frame_.reset(SDL_CreateRGBSurfaceWithFormat(0, width_, height_, 32, SDL_PIXELFORMAT_ARGB8888));
  if (!frame_) fail("no memory for the picture");
  ground_.reset();
  toast_.reset();
  card_.reset();
}

void Window::setView(const View& view) {
  if (view == view_) return;
  view_ = view;
  ground_.reset();
  badge_.reset();
}

void Window::setToast(const std::string& message) {
  if (message == toastText_) return;
  toastText_ = message;
  toast_.reset();
}

void Window::setOpened(std::optional<OpenedSprite> opened) {
  opened_ = std::move(opened);
  viewer_.reset();
  card_.reset();
}

Action Window::actionAt(int x, int y) const {
  return viewer_ ? viewer_->actionAt(x, y) : Action::kNone;
}

void Window::setTitle(const std::string& title) {
  if (title == title_) return;
  title_ = title;
  SDL_SetWindowTitle(window_.get(), title.c_str());
}

void Window::takeFocus() {
  SDL_RaiseWindow(window_.get());
  SDL_SetWindowInputFocus(window_.get());
}

Window::Surface Window::surfaceOf(Image image) const {
  const Surface surface(SDL_CreateRGBSurfaceWithFormatFrom(
      image.pixels.data(), image.width, image.height, 32, image.width * 4, SDL_PIXELFORMAT_RGBA32));
  if (!surface) fail("no memory for a picture");
  // The frame's own format, so that painting is copying.
  Surface converted(SDL_ConvertSurfaceFormat(surface.get(), SDL_PIXELFORMAT_ARGB8888, 0));
  if (!converted) fail("no memory for a picture");
  SDL_SetSurfaceBlendMode(converted.get(), SDL_BLENDMODE_BLEND);
  return converted;
}

template <typename Make>
SDL_Surface* Window::cachedSurface(const std::string& key, Make make) {
  CachedSurface& entry = cachedSurfaces_[key];
  entry.isUsed = true;
  if (!entry.surface) entry.surface = surfaceOf(make());
  return entry.surface.get();
}

SDL_Surface* Window::stickerSurface(const std::string& picture) {
  return cachedSurface(picture, [&picture] {
    const int side = 2 * halfSideOf(picture);
    const std::optional<Image> image = imageOfPicture(decodePicture(picture));
    // A torn photograph stands for an image that is damaged further in than readSprite() looks.
    return image ? imageSticker(*image, side) : drawSticker(picture, side);
  });
}

void Window::paintGround() {
  SDL_Surface* frame = frame_.get();
  if (!transparent_) {
    if (!ground_) {
      ground_ = surfaceOf(drawGround(view_, width_, height_));
      SDL_SetSurfaceBlendMode(ground_.get(), SDL_BLENDMODE_NONE);
    }
    SDL_BlitSurface(ground_.get(), nullptr, frame, nullptr);
    return;
  }
  // White, so that the half-covered pixels at the stickers' white rims do not turn gray.
  SDL_FillRect(frame, nullptr, SDL_MapRGBA(frame->format, 255, 255, 255, 0));
  if (!badge_) {
    Drawing badge(kBadgeSide);
    badge.fill(circle(50, 50, 46), 0xFFFFFF);
    badge.fill(circle(50, 50, 30), colorOf(view_.state));
    badge_ = surfaceOf(badge.image());
  }
  SDL_Rect place{8, 8, kBadgeSide, kBadgeSide};
  SDL_BlitSurface(badge_.get(), nullptr, frame, &place);
}

/** Paints a body without its labels. Returns its place. */
SDL_Rect Window::paintBody(const Body& body, bool selected) {
  const double lift = body.isHeld ? kHeldLift : body.z;
  const auto halfSide = static_cast<int>(body.halfSide);
  const std::string size = ":" + std::to_string(halfSide);
  const int x = static_cast<int>(body.x - body.halfSide);
  const int y = static_cast<int>(body.y - body.halfSide);
  SDL_Rect ground{x, y + static_cast<int>(body.halfSide * 0.72), 0, 0};
  const SDL_Rect place{x, y - static_cast<int>(lift), 2 * halfSide, 2 * halfSide};
  if (!transparent_) {  // without a ground there is no shadow
    const auto step = static_cast<int>(std::clamp(lift / 30, 0.0, kShadows - 1.0));
    SDL_Surface* shadow = cachedSurface("shadow" + size + ":" + std::to_string(step),
                                        [halfSide, step] { return drawShadow(halfSide, step); });
    SDL_BlitSurface(shadow, nullptr, frame_.get(), &ground);
  }
  if (selected) {
    SDL_Rect ringPlace{place.x - kRingWidth, place.y - kRingWidth, 0, 0};
    SDL_Surface* ring = cachedSurface("ring" + size, [halfSide] { return drawRing(halfSide); });
    SDL_BlitSurface(ring, nullptr, frame_.get(), &ringPlace);
  }
  SDL_Rect at = place;
  SDL_BlitSurface(stickerSurface(body.sprite.picture), nullptr, frame_.get(), &at);
  return place;
}

/** Paints the name and the sender below a body, or above it without room, within the desktop. */
void Window::paintLabels(const Body& body, const SDL_Rect& place, bool showsSender) {
  const std::string& name = body.sprite.name;
  const std::string& by = body.sprite.by;
  std::vector<SDL_Surface*> labels;
  if (!name.empty())
    labels.push_back(cachedSurface("name:" + name, [&name] { return drawLabel(name); }));
  if (showsSender && !by.empty()) {
    labels.push_back(cachedSurface(
        "by:" + by, [&by] { return drawLabel("from " + by, colors::kInk, colors::kCard); }));
  }
  int labelsHeight = 0;
  for (const SDL_Surface* label : labels) labelsHeight += label->h;
  int y = place.y + place.h;
  if (y + labelsHeight > height()) y = place.y - labelsHeight;
  for (SDL_Surface* label : labels) {
    const int x = static_cast<int>(body.x) - label->w / 2;
    SDL_Rect at{std::max(0, std::min(x, width_ - label->w)), y, 0, 0};
    SDL_BlitSurface(label, nullptr, frame_.get(), &at);
    y += label->h;
  }
}

void Window::paintViewer() {
  if (!opened_) return;
  if (!card_) {
    viewer_.emplace(*opened_, width_, height_);
    card_ = surfaceOf(viewer_->card());
  }
  if (!transparent_) {  // dims everything behind the card
    Surface veil(SDL_CreateRGBSurfaceWithFormat(0, width_, height_, 32, SDL_PIXELFORMAT_ARGB8888));
    if (!veil) fail("no memory for a picture");
    SDL_FillRect(veil.get(), nullptr, SDL_MapRGBA(veil->format, 0x17, 0x13, 0x2B, kVeilAlpha));
    SDL_SetSurfaceBlendMode(veil.get(), SDL_BLENDMODE_BLEND);
    SDL_BlitSurface(veil.get(), nullptr, frame_.get(), nullptr);
  }
  SDL_Rect at{viewer_->left(), viewer_->top(), 0, 0};
  SDL_BlitSurface(card_.get(), nullptr, frame_.get(), &at);
}

void Window::paintToast() {
  if (toastText_.empty()) return;
  if (!toast_) toast_ = surfaceOf(drawToast(toastText_, width_ - 40));
  SDL_Rect place{(width_ - toast_->w) / 2, height() * 5 / 8 - toast_->h / 2, 0, 0};
  SDL_BlitSurface(toast_.get(), nullptr, frame_.get(), &place);
}

void Window::paint(const Desktop& desktop, const std::vector<BodyId>& showingSender) {
  for (auto& [key, entry] : cachedSurfaces_) entry.isUsed = false;
  paintGround();
  const SDL_Rect plane{0, 0, width_, height()};
  SDL_SetClipRect(frame_.get(), &plane);
  for (const Body& body : desktop.bodies()) {
    const bool showsSender =
        std::find(showingSender.begin(), showingSender.end(), body.id) != showingSender.end();
    paintLabels(body, paintBody(body, body.id == desktop.selected()), showsSender);
  }
  SDL_SetClipRect(frame_.get(), nullptr);
  paintViewer();
  paintToast();
  for (auto each = cachedSurfaces_.begin(); each != cachedSurfaces_.end();) {
    each = each->second.isUsed ? std::next(each) : cachedSurfaces_.erase(each);
  }
  show();
}

void Window::show() {
  if (transparent_) {
    SDL_WindowShapeMode mode;
    mode.mode = ShapeModeBinarizeAlpha;
    mode.parameters.binarizationCutoff = kShapeAlphaLeast;
    SDL_SetWindowShape(window_.get(), frame_.get(), &mode);
  }
  SDL_Surface* screen = SDL_GetWindowSurface(window_.get());
  if (screen == nullptr) return;  // the window is being resized: the next frame will show
  SDL_SetSurfaceBlendMode(frame_.get(), SDL_BLENDMODE_NONE);
  SDL_BlitSurface(frame_.get(), nullptr, screen, nullptr);
  SDL_UpdateWindowSurface(window_.get());
}

}  // namespace sprites::desktop
