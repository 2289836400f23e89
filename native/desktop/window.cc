#include "window.h"

#include <SDL_shape.h>
#include <sprites/sprite.h>

#include <cstring>
#include <iostream>
#include <stdexcept>

#include "canvas.h"
#include "images.h"
#include "stickers.h"

namespace sprites::desktop {

namespace {

constexpr int kDots = 32;       // pixels between the dots of the ground
constexpr int kBadgeSide = 24;  // of the mark that shows the state
constexpr Uint8 kCutoff = 100;  // of 255: less opaque than this is no part of the window's shape
constexpr char kTitle[] = "Sprites";

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + SDL_GetError());
}

Image imageOf(const Canvas& canvas) { return {canvas.side(), canvas.side(), canvas.pixels()}; }

uint32_t colorOf(State state) {
  switch (state) {
    case State::kOnline:
      return 0x16A79E;
    case State::kConnecting:
      return 0xFFC53D;
    case State::kOffline:
    case State::kLeft:
      break;
  }
  return 0x9A93A8;
}

}  // namespace

Window::Window(const Settings& settings) {
  // Without this a click that gives the window the keyboard would do nothing else.
  SDL_SetHint(SDL_HINT_MOUSE_FOCUS_CLICKTHROUGH, "1");
  SDL_SetHint(SDL_HINT_VIDEO_ALLOW_SCREENSAVER, "1");
  // The first picture would go through the graphics card, for which SDL makes the window anew, and
  // the new one has lost its shape.
  SDL_SetHint(SDL_HINT_FRAMEBUFFER_ACCELERATION, "0");
  if (SDL_Init(SDL_INIT_VIDEO) != 0) fail("no display");
  transparent_ = settings.transparent && openTransparent(settings);
  if (!transparent_) open(settings);
  if (!window_) {
    const std::string why = SDL_GetError();
    SDL_Quit();
    throw std::runtime_error("no window: " + why);
  }
  takeSize();

  Canvas ring(2 * kHalf + 16);
  ring.stroke(Path().circle({50, 50}, 46), rgb(0x7A5CFF, 0.8), 4);
  ring_ = surfaceOf(imageOf(ring));
  Canvas shadow(2 * kHalf);
  for (int i = 0; i < 6; i++) {
    shadow.fill(Path().ellipse({50, 80}, 40 - 4 * i, 14 - 2 * i), rgb(0x140C32, 0.06));
  }
  shadow_ = surfaceOf(imageOf(shadow));
}

Window::~Window() {
  // Surfaces and the window go before what made them.
  looks_.clear();
  badges_.clear();
  for (Surface* surface : {&frame_, &ring_, &shadow_}) surface->reset();
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
  SDL_Rect whole{0, 0, 800, 600};
  SDL_GetDisplayUsableBounds(0, &whole);
  if (settings.window) {
    whole.w = settings.window->width;
    whole.h = settings.window->height;
    whole.x = settings.window->x.value_or(whole.x);
    whole.y = settings.window->y.value_or(whole.y);
  }
  window_.reset(SDL_CreateShapedWindow(kTitle, 0, 0, static_cast<unsigned>(whole.w),
                                       static_cast<unsigned>(whole.h), SDL_WINDOW_ALWAYS_ON_TOP));
  if (!window_) {
    std::cerr << "sprites-desktop: a plain window, since this system has no transparent ones ("
              << SDL_GetError() << ")" << std::endl;
    return false;
  }
  SDL_SetWindowPosition(window_.get(), whole.x, whole.y);
  return true;
}

void Window::takeSize() {
  SDL_GetWindowSize(window_.get(), &width_, &height_);
  frame_.reset(SDL_CreateRGBSurfaceWithFormat(0, width_, height_, 32, SDL_PIXELFORMAT_ARGB8888));
  if (!frame_) fail("no memory for the picture");
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

Window::Surface Window::surfaceOf(const Image& image) const {
  Surface surface(
      SDL_CreateRGBSurfaceWithFormat(0, image.width, image.height, 32, SDL_PIXELFORMAT_RGBA32));
  if (!surface) fail("no memory for a picture");
  const auto row = static_cast<size_t>(image.width) * 4;
  for (int y = 0; y < image.height; y++) {
    std::memcpy(static_cast<char*>(surface->pixels) + static_cast<ptrdiff_t>(y) * surface->pitch,
                &image.pixels[row * static_cast<size_t>(y)], row);
  }
  // The frame's own format, so that painting is copying.
  Surface same(SDL_ConvertSurfaceFormat(surface.get(), SDL_PIXELFORMAT_ARGB8888, 0));
  if (!same) fail("no memory for a picture");
  SDL_SetSurfaceBlendMode(same.get(), SDL_BLENDMODE_BLEND);
  return same;
}

SDL_Surface* Window::look(const std::string& picture) {
  Look& look = looks_[picture];
  look.used = true;
  if (!look.surface) {
    std::optional<Image> image;
    if (!isDrawnPicture(picture)) image = imageOfUrl(picture);
    // An image that is damaged further in than a reader looks is shown as a torn one.
    look.surface = surfaceOf(image ? imageSticker(*image, 2 * kHalf)
                                   : imageOf(drawSticker(picture, 2 * kHalf)));
  }
  return look.surface.get();
}

void Window::paintGround() {
  SDL_Surface* frame = frame_.get();
  if (transparent_) {
    // White, so that the half-covered pixels at the stickers' white rims do not turn gray.
    SDL_FillRect(frame, nullptr, SDL_MapRGBA(frame->format, 255, 255, 255, 0));
    return;
  }
  SDL_FillRect(frame, nullptr, SDL_MapRGBA(frame->format, 0xFB, 0xF3, 0xE4, 255));
  const Uint32 dot = SDL_MapRGBA(frame->format, 0xE6, 0xD8, 0xBD, 255);
  for (int y = kDots / 2; y < height_; y += kDots) {
    for (int x = kDots / 2; x < width_; x += kDots) {
      const SDL_Rect place{x, y, 2, 2};
      SDL_FillRect(frame, &place, dot);
    }
  }
}

void Window::paintBadge(State state) {
  Surface& badge = badges_[state];
  if (!badge) {
    Canvas canvas(kBadgeSide);
    canvas.fill(Path().circle({50, 50}, 46), rgb(0xFFFFFF));
    canvas.fill(Path().circle({50, 50}, 30), rgb(colorOf(state)));
    badge = surfaceOf(imageOf(canvas));
  }
  SDL_Rect place{8, 8, kBadgeSide, kBadgeSide};
  SDL_BlitSurface(badge.get(), nullptr, frame_.get(), &place);
}

void Window::paint(const Desktop& desktop, State state) {
  for (auto& [picture, look] : looks_) look.used = false;
  paintGround();
  paintBadge(state);
  for (const Body& body : desktop.bodies()) {
    const int x = static_cast<int>(body.x - body.half);
    const int y = static_cast<int>(body.y - body.half);
    SDL_Rect ground{x, y, 0, 0};
    SDL_Rect place{x, y - static_cast<int>(body.z), 0, 0};
    if (body.z > 0) SDL_BlitSurface(shadow_.get(), nullptr, frame_.get(), &ground);
    if (body.id == desktop.selected()) {
      SDL_Rect around{place.x - 8, place.y - 8, 0, 0};
      SDL_BlitSurface(ring_.get(), nullptr, frame_.get(), &around);
    }
    SDL_BlitSurface(look(body.sprite.picture), nullptr, frame_.get(), &place);
  }
  for (auto each = looks_.begin(); each != looks_.end();) {
    each = each->second.used ? std::next(each) : looks_.erase(each);
  }
  show();
}

void Window::show() {
  if (transparent_) {
    SDL_WindowShapeMode mode;
    mode.mode = ShapeModeBinarizeAlpha;
    mode.parameters.binarizationCutoff = kCutoff;
    SDL_SetWindowShape(window_.get(), frame_.get(), &mode);
  }
  SDL_Surface* screen = SDL_GetWindowSurface(window_.get());
  if (screen == nullptr) return;  // the window is being resized: the next frame gets it
  SDL_SetSurfaceBlendMode(frame_.get(), SDL_BLENDMODE_NONE);
  SDL_BlitSurface(frame_.get(), nullptr, screen, nullptr);
  SDL_UpdateWindowSurface(window_.get());
}

}  // namespace sprites::desktop
