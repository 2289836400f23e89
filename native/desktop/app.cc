// The program: connects the client, the desktop and the window.
//
//   client's thread                                  main thread
//   onSprite, results, onState ─▶ inbox (mutex) ─▶ runInbox ──▶ Desktop ─▶ Window
//        ▲  waits while the inbox is full             │ step: over an edge
//        └──────────── Client::throwSprite ◀──────────┘
//
// A thrown sprite stays on this desktop, out of sight behind its edge, until the server has
// answered. If the server has accepted it, it is removed; else it comes back from the edge. A
// sprite with an unknown outcome (Outcome::kUnanswered, kForgotten) comes back, too: two copies are
// better than none.
#include <SDL.h>
#include <sprites/client.h>
#include <sprites/sprite.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "desktop.h"
#include "drawing.h"
#include "ground.h"
#include "images.h"
#include "options.h"
#include "window.h"

namespace sprites::desktop {

namespace {

constexpr size_t kMaxInbox = 200;  // most calls in the inbox: then arrivals wait
constexpr std::chrono::milliseconds kFrame{16};
constexpr int kIdleWait = 1000;  // ms; any event ends the wait
constexpr std::chrono::milliseconds kTrailTime{100};
constexpr std::chrono::milliseconds kStandstill{60};  // after it a released body has no speed
constexpr double kFlickSecondsLeast = 0.04;           // seconds of a flick, at least
constexpr double kHitMargin = 6;
constexpr std::chrono::seconds kSenderTime{8};   // that an arrival shows its sender
constexpr size_t kMaxPhotos = size_t{64} << 20;  // bytes of all photos on a desktop
constexpr std::chrono::seconds kCloseTime{6};
constexpr std::chrono::milliseconds kQueryInterval{2000};  // between two requests for the counts
constexpr std::chrono::milliseconds kMaxQueryInterval{30000};  // with many people
constexpr std::chrono::milliseconds kOfflineQueryInterval{6000};

const char* sideOf(Edge edge) {
  if (edge == Edge::kUp) return "upper";
  if (edge == Edge::kDown) return "lower";
  return toString(edge);
}

class App {
 public:
  /** Throws std::invalid_argument and std::runtime_error with one line for a person. */
  explicit App(const Settings& settings)
      : name_(settings.name),
        folder_(settings.folder),
        window_(settings),
        wakeEvent_(SDL_RegisterEvents(1)),
        desktop_(window_.width(), window_.height(),
                 [this](const Body& body, Edge edge) { throwOver(body, edge); }),
        client_(clientOptions(settings)) {
    for (const std::string& picture : settings.sprites) addDrawn(picture);
    for (const std::string& file : settings.files) addFile(file);
    if (desktop_.bodies().empty()) addDrawn(std::string(kDrawnPictures[SDL_GetTicks() % 6]));
    updateTitle();
  }

  ~App() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      isClosing_ = true;
    }
    inboxEmptied_.notify_all();
    client_.close(kCloseTime);
    if (unreadableCount_ + droppedCount_ > 0) {
      std::cerr << "sprites-desktop: " << unreadableCount_ << " sprites could not be read, for "
                << droppedCount_ << " there was no room" << std::endl;
    }
  }

  /** Runs until the window is closed. */
  void run() {
    client_.start();
    Clock::time_point last = Clock::now();
    toastEnd_ = last + kToastTime;  // earlier messages were not visible yet
    while (isRunning_) {
      SDL_Event event;
      if (!needsPaint_ && !desktop_.isMoving()) {
        if (SDL_WaitEventTimeout(&event, kIdleWait) != 0) onEvent(event);
        last = Clock::now();
      }
      while (SDL_PollEvent(&event) != 0) onEvent(event);
      runInbox();

      const Clock::time_point now = Clock::now();
      if (now >= nextQuery_) queryServer(now);
      if (isToastShown_ && now >= toastEnd_) {
        isToastShown_ = false;
        needsPaint_ = true;
        window_.setToast("");
      }
      while (!recentArrivals_.empty() && recentArrivals_.front().second <= now) {
        recentArrivals_.erase(recentArrivals_.begin());
        needsPaint_ = true;
      }
      const bool moved = desktop_.isMoving();
      desktop_.step(std::chrono::duration<double>(now - last).count());
      last = now;
      const Body* openedBody = desktop_.find(openedId_);
      if (openedId_ != 0 && (openedBody == nullptr || openedBody->flightEdge)) closeSprite();
      if (moved || needsPaint_) {
        needsPaint_ = false;
        updateTitle();
        view_.stateText = stateText();
        window_.setView(view_);
        window_.paint(desktop_, bodiesShowingSender());
        const auto spent = Clock::now() - now;
        if (spent < kFrame) {
          SDL_Delay(static_cast<Uint32>(
              std::chrono::duration_cast<std::chrono::milliseconds>(kFrame - spent).count()));
        }
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  /** Longest time that a message is shown; a button or a key ends it. */
  static constexpr std::chrono::seconds kToastTime{20};

  /** An earlier place of the held body, for the speed at its release. */
  struct TrailPoint {
    Clock::time_point at;
    double x;
    double y;
  };

  Options clientOptions(const Settings& settings) {
    Options options;
    options.server = settings.server;
    options.onSprite = [this](Edge edge, const std::string& json) { onSprite(edge, json); };
    options.onResume = [this](const std::optional<Resume>& place) {
      if (place && place->maxSprite > 0) maxSprite_ = place->maxSprite;
    };
    options.onState = [this](const StateChange& change) {
      post([this, change] { onState(change); });
    };
    return options;
  }

  // ---- the client's thread

  void onSprite(Edge edge, const std::string& json) {
    const std::optional<Sprite> sprite = readSprite(json);
    {
      // Backpressure: while this waits, the next poll waits, the mailbox fills up, and the server
      // tells the neighbors that this one is busy.
      std::unique_lock<std::mutex> lock(mutex_);
      inboxEmptied_.wait(lock, [this] { return isClosing_ || inbox_.size() < kMaxInbox; });
    }
    if (sprite) {
      post([this, edge, sprite = *sprite] { onArrival(edge, sprite, false); });
    } else {
      post([this] { unreadableCount_++; });
    }
  }

  /** Has the main thread run `task`. */
  void post(std::function<void()> task) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      inbox_.push_back(std::move(task));
    }
    SDL_Event event{};
    event.type = wakeEvent_;
    SDL_PushEvent(&event);  // if the queue is full, the main thread is awake
  }

  // ---- the main thread

  void runInbox() {
    std::vector<std::function<void()>> inbox;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::swap(inbox, inbox_);
    }
    inboxEmptied_.notify_all();
    for (const auto& take : inbox) take();
  }

  /** `wasPassedOn`: this desktop threw it on, and no neighbor accepted it. */
  void onArrival(Edge edge, Sprite sprite, bool wasPassedOn) {
    needsPaint_ = true;
    const size_t count = desktop_.bodies().size();
    if (count < kMaxBodies || (wasPassedOn && count < 2 * kMaxBodies)) {
      size_t photos = sprite.photo.size();
      for (const Body& body : desktop_.bodies()) photos += body.sprite.photo.size();
      if (photos > kMaxPhotos) sprite.photo.clear();
      const BodyId id = desktop_.enter(sprite, edge, halfSideOf(sprite.picture));
      if (!wasPassedOn) caughtCount_++;
      recentArrivals_.emplace_back(id, Clock::now() + kSenderTime);
      return;
    }
    // Full: the sprite flies on in its direction. If no neighbor accepts it, it stays, up to twice
    // kMaxBodies; a stranger that throws still more loses them.
    const bool thrown =
        !wasPassedOn &&
        client_.throwSprite(opposite(edge), writeSprite(sprite, maxSprite()),
                            [this, edge, sprite](const ThrowResult& result) {
                              if (result.taken()) return;
                              post([this, edge, sprite] { onArrival(edge, sprite, true); });
                            });
    if (!thrown) droppedCount_++;
  }

  void onResult(BodyId id, Edge edge, const ThrowResult& result) {
    needsPaint_ = true;
    switch (result.outcome) {
      case Outcome::kDelivered:
      case Outcome::kQueued:
      case Outcome::kDuplicate:
        thrownCount_++;
        desktop_.remove(id);
        return;
      case Outcome::kBusy:
        showToast(result.problem.empty() || result.problem == "urn:sprites:neighbor-busy"
                      ? "The " + neighborName(edge) + " has no room: it came back."
                      : "Too much at once: it came back. Try again in a moment.");
        break;
      case Outcome::kOffline:
        showToast("It could not be thrown now: it came back.");
        break;
      case Outcome::kRefused:
        showToast(result.problem == "urn:sprites:sprite-too-large"
                      ? "That one is too large for this server: it came back."
                      : "The server does not take that one: it came back.");
        break;
      case Outcome::kUnanswered:
      case Outcome::kForgotten:
        showToast("It is unknown whether it arrived: it came back.");
        break;
    }
    desktop_.bounceBack(id);
  }

  void onStatus(const Status& status) {
    // The counts may be from before this desktop's join.
    view_.people = std::max<uint64_t>(status.clients, view_.state == State::kOnline ? 1 : 0);
    needsPaint_ = true;
  }

  void onPlace(const Place& place) {
    if (view_.state == State::kOnline) view_.place = place;
    needsPaint_ = true;
  }

  void onState(const StateChange& change) {
    if (change.state == State::kOnline) resizePhotos();
    view_.state = change.state;
    reason_ = change.reason;
    desktop_.setEdgesOpen(change.state == State::kOnline);
    if (change.state != State::kOnline) view_.place.reset();
    nextQuery_ = Clock::now();
    needsPaint_ = true;
  }

  /** Asks for the counts and the place; the more people there are, the less often. */
  void queryServer(Clock::time_point now) {
    const bool online = view_.state == State::kOnline;
    const double crowd = std::sqrt(static_cast<double>(view_.people.value_or(0)) / 300);
    const auto interval = std::min(
        kMaxQueryInterval,
        std::chrono::milliseconds(
            std::llround(static_cast<double>(kQueryInterval.count()) * std::max(1.0, crowd))));
    nextQuery_ = now + (online ? interval : kOfflineQueryInterval);
    window_.fillScreen();  // SDL does not report every change
    client_.status([this](const std::optional<Status>& status) {
      if (status) post([this, status = *status] { onStatus(status); });
    });
    if (!online) return;
    client_.place([this](const std::optional<Place>& place) {
      if (place) post([this, place] { onPlace(*place); });
    });
  }

  /** Shows a message for a time. */
  void showToast(const std::string& message, std::chrono::seconds time = kToastTime) {
    window_.setToast(message);
    isToastShown_ = true;
    toastEnd_ = Clock::now() + time;
    needsPaint_ = true;
  }

  std::string stateText() const {
    if (isOverFooter_) return "Let go here to put it away.";
    switch (view_.state) {
      case State::kOnline:
        if (view_.people == uint64_t{1}) {
          return "Only you, right now: what you throw over one edge comes back by the other.";
        }
        // Until the first throw or arrival: what to do. Then the counts.
        return thrownCount_ + caughtCount_ == 0
                   ? "Throw something over an edge."
                   : "You threw " + withThousands(thrownCount_) + ", and " +
                         withThousands(caughtCount_) + " came in.";
      case State::kSuperseded:
        return "Another program has taken over this place. Joining anew...";
      case State::kJoining:
        return "Joining...";
      case State::kOffline:
        return "No contact: trying again. Until then the edges are walls. (" + reason_ + ")";
      case State::kLeft:
        break;
    }
    return "You have left the torus.";
  }

  std::string neighborName(Edge edge) const {
    return view_.people == uint64_t{1} ? "other edge" : std::string(sideOf(edge)) + " neighbor";
  }

  void throwOver(const Body& body, Edge edge) {
    const BodyId id = body.id;
    Sprite sprite = desktop_.spriteToThrow(body, edge);
    sprite.by = name_;  // the thrower, not the sender who threw it here
    const bool taken = client_.throwSprite(
        edge, writeSprite(sprite, maxSprite()), [this, id, edge](const ThrowResult& result) {
          post([this, id, edge, result] { onResult(id, edge, result); });
        });
    if (!taken) desktop_.bounceBack(id);
  }

  void onEvent(const SDL_Event& event) {
    switch (event.type) {
      case SDL_QUIT:
        isRunning_ = false;
        break;
      case SDL_WINDOWEVENT:
        if (event.window.event == SDL_WINDOWEVENT_SIZE_CHANGED) {
          window_.updateSize();
          desktop_.resize(window_.width(), window_.height());
        } else if (event.window.event == SDL_WINDOWEVENT_FOCUS_LOST) {
          desktop_.walk(0, 0);
        } else if (event.window.event == SDL_WINDOWEVENT_LEAVE) {
          hoveredId_ = 0;
        }
        needsPaint_ = true;
        break;
      case SDL_DROPFILE:
        addFile(event.drop.file);
        [[fallthrough]];
      case SDL_DROPTEXT:
        SDL_free(event.drop.file);
        break;
      case SDL_KEYDOWN:
        toastEnd_ = Clock::now();
        onKey(event.key);
        break;
      case SDL_KEYUP:
        onKey(event.key);
        break;
      case SDL_MOUSEBUTTONDOWN:
        toastEnd_ = Clock::now();
        if (event.button.button == SDL_BUTTON_LEFT) onPress(event.button);
        break;
      case SDL_MOUSEMOTION:
        onMove(event.motion.x, event.motion.y);
        break;
      case SDL_MOUSEBUTTONUP:
        if (event.button.button == SDL_BUTTON_LEFT) onRelease();
        break;
      default:
        break;
    }
  }

  void onKey(const SDL_KeyboardEvent& key) {
    const SDL_Keycode code = key.keysym.sym;
    const bool shift = (key.keysym.mod & KMOD_SHIFT) != 0;
    // From the event, not from the keys' current state: a slow frame sees both press and release.
    const int x = (code == SDLK_RIGHT ? 1 : 0) - (code == SDLK_LEFT ? 1 : 0);
    const int y = (code == SDLK_DOWN ? 1 : 0) - (code == SDLK_UP ? 1 : 0);
    if (openedId_ != 0) {
      if (key.type != SDL_KEYDOWN || key.repeat != 0) return;
      if (code == SDLK_ESCAPE || code == SDLK_RETURN || code == SDLK_KP_ENTER)
        perform(Action::kClose);
      if (code == SDLK_s) perform(Action::kSave);
      if (code == SDLK_DELETE || code == SDLK_BACKSPACE) perform(Action::kPutAway);
      return;
    }
    if (key.type == SDL_KEYDOWN && key.repeat == 0) {
      if (x != 0 || y != 0 || code == SDLK_SPACE) desktop_.selectByStep(0);
      if (shift) desktop_.throwSelected(x, y);
      if (code == SDLK_SPACE) desktop_.jump();
      if (code == SDLK_n) desktop_.selectByStep(1);
      if (code == SDLK_p) desktop_.selectByStep(-1);
      if (code == SDLK_DELETE || code == SDLK_BACKSPACE) putAway(desktop_.selected());
      if (code == SDLK_RETURN || code == SDLK_KP_ENTER) {
        desktop_.selectByStep(0);
        openSprite(desktop_.selected());
      }
      if (code == SDLK_z && (key.keysym.mod & KMOD_CTRL) != 0) undo();
      if (code >= SDLK_1 && code <= SDLK_6) {
        addDrawn(std::string(kDrawnPictures[static_cast<size_t>(code - SDLK_1)]));
      }
      if (code == SDLK_ESCAPE && window_.isTransparent()) isRunning_ = false;
    }
    const Uint8* down = SDL_GetKeyboardState(nullptr);
    desktop_.walk(shift ? 0 : down[SDL_SCANCODE_RIGHT] - down[SDL_SCANCODE_LEFT],
                  shift ? 0 : down[SDL_SCANCODE_DOWN] - down[SDL_SCANCODE_UP]);
    needsPaint_ = true;
  }

  void onPress(const SDL_MouseButtonEvent& button) {
    needsPaint_ = true;
    if (window_.isTransparent()) window_.takeFocus();
    if (openedId_ != 0) return perform(window_.actionAt(button.x, button.y));
    const BodyId id =
        window_.isFooter(button.x, button.y) ? 0 : desktop_.hitTest(button.x, button.y, kHitMargin);
    desktop_.select(id);
    if (id == 0) return;
    if (button.clicks == 2) return openSprite(id);
    const Body* body = desktop_.find(id);
    heldId_ = id;
    gripX_ = button.x - body->x;
    gripY_ = button.y - body->y;
    heldFrom_ = {body->x, body->y};
    desktop_.hold(id);
    trail_.clear();
    trail_.push_back({Clock::now(), body->x, body->y});
    SDL_CaptureMouse(SDL_TRUE);  // a quick drag ends outside the window
  }

  /** Shows a sprite large, unless it flies: then it may be the neighbor's already. */
  void openSprite(BodyId id) {
    const Body* body = desktop_.find(id);
    if (body == nullptr || body->flightEdge) return;
    const Sprite& sprite = body->sprite;
    const std::string kind = isDrawnPicture(sprite.picture) ? sprite.picture : "picture";
    const bool hasSender = !sprite.by.empty() && sprite.by != name_;
    OpenedSprite opened{imageOfSprite(sprite), sprite.name.empty() ? "A " + kind : sprite.name,
                        hasSender ? "From " + sprite.by : ""};
    if (kind == "picture") {
      if (hasSender) opened.caption += " \u00B7 ";
      opened.caption +=
          std::to_string(opened.image.width) + " \u00D7 " + std::to_string(opened.image.height);
    }
    window_.setOpened(std::move(opened));
    openedId_ = id;
    desktop_.walk(0, 0);
    needsPaint_ = true;
  }

  void closeSprite() {
    window_.setOpened(std::nullopt);
    openedId_ = 0;
    needsPaint_ = true;
  }

  void perform(Action action) {
    const BodyId id = openedId_;
    if (action == Action::kSave) saveSprite();
    if (action == Action::kPutAway || action == Action::kClose) closeSprite();
    if (action == Action::kPutAway) putAway(id);
  }

  /** Saves the open sprite as a file with the sprite's name; never overwrites a file. */
  void saveSprite() {
    const Body* body = desktop_.find(openedId_);
    if (body == nullptr) return;
    const std::optional<SpriteFile> file = fileOfSprite(body->sprite);
    if (!file) return showToast("It is damaged: there is nothing to be saved.");
    std::string path;
    const std::string why = writeNewFile(folder_, fileNameOf(body->sprite), *file, &path);
    if (why.empty()) return showToast("Saved as " + path);
    std::cerr << "sprites-desktop: " << path << ": " << why << std::endl;
    showToast(path + ": " + why + ".");
  }

  /** Returns the bodies that show their senders: new arrivals, and those under the pointer, held or
   * selected. */
  std::vector<BodyId> bodiesShowingSender() const {
    std::vector<BodyId> ids{hoveredId_, heldId_, desktop_.selected()};
    for (const auto& [id, end] : recentArrivals_) ids.push_back(id);
    const auto isOwn = [this](BodyId id) {
      const Body* body = desktop_.find(id);
      return body == nullptr || body->sprite.by == name_;
    };
    ids.erase(std::remove_if(ids.begin(), ids.end(), isOwn), ids.end());
    return ids;
  }

  void onMove(double x, double y) {
    if (heldId_ == 0) {
      const BodyId hovered = openedId_ == 0 ? desktop_.hitTest(x, y, 0) : 0;
      needsPaint_ = needsPaint_ || hovered != hoveredId_;
      hoveredId_ = hovered;
      return;
    }
    const Clock::time_point now = Clock::now();
    trail_.push_back({now, x - gripX_, y - gripY_});
    while (trail_.size() > 2 && now - trail_.front().at > kTrailTime) trail_.pop_front();
    desktop_.drag(heldId_, x - gripX_, y - gripY_);
    isOverFooter_ = window_.isFooter(x, y);
    needsPaint_ = true;
  }

  void onRelease() {
    if (heldId_ == 0) return;
    SDL_CaptureMouse(SDL_FALSE);
    const TrailPoint& first = trail_.front();
    const TrailPoint& last = trail_.back();
    // On a busy machine all events of a flick may arrive at once: kFlickSecondsLeast bounds its
    // speed.
    const double seconds =
        std::max(kFlickSecondsLeast, std::chrono::duration<double>(last.at - first.at).count());
    const bool stoodStill = Clock::now() - last.at > kStandstill;
    const double vx = stoodStill ? 0 : (last.x - first.x) / seconds;
    const double vy = stoodStill ? 0 : (last.y - first.y) / seconds;
    if (isOverFooter_ && desktop_.isDrop(vy)) {
      desktop_.drag(heldId_, heldFrom_.first, heldFrom_.second);  // where undo() restores it
      putAway(heldId_);
    } else {
      desktop_.release(heldId_, vx, vy);
    }
    heldId_ = 0;
    isOverFooter_ = false;
    needsPaint_ = true;
  }

  void putAway(BodyId id) {
    const Body* found = desktop_.find(id);
    if (found == nullptr) return;
    Body body = *found;
    if (!desktop_.putAway(id)) return;
    undos_.push(std::move(body), Clock::now());
    showToast("Put away. Ctrl+Z has it back.", kUndoTime);
  }

  /** Restores the body that was put away last, at its place and at rest. */
  void undo() {
    if (desktop_.bodies().size() >= kMaxBodies) return showToast("This desktop is full.");
    const std::optional<Body> body = undos_.pop(Clock::now());
    if (!body) return;
    desktop_.select(desktop_.add(body->sprite, body->x, body->y, body->halfSide));
    needsPaint_ = true;
  }

  void addDrawn(const std::string& picture) {
    Sprite sprite;
    sprite.id = newSpriteId();
    sprite.picture = picture;
    desktop_.select(addAtFreePlace(sprite));
  }

  void addFile(const std::string& path) {
    std::string why;
    const std::optional<Pictures> pictures = picturesOfFile(path, maxSprite(), &why);
    if (!pictures) {
      std::cerr << "sprites-desktop: " << path << ": " << why << std::endl;
      showToast(path.substr(path.find_last_of("/\\") + 1) + ": " + why + ".");
      return;
    }
    Sprite sprite;
    sprite.id = newSpriteId();
    sprite.picture = pictures->picture;
    sprite.photo = pictures->photo;
    sprite.name = spriteNameOf(path);
    const BodyId id = addAtFreePlace(sprite);
    if (maxSprite_ == 0) filesToResize_.emplace_back(id, path);
    desktop_.select(id);
  }

  /** Makes the pictures again that were sized before the server's limit was known. */
  void resizePhotos() {
    const auto files = std::exchange(filesToResize_, {});
    if (maxSprite_ == kUsualSprite) return;
    for (const auto& [id, path] : files) {
      const Body* body = desktop_.find(id);
      if (body == nullptr || body->flightEdge) continue;
      std::string why;
      const std::optional<Pictures> pictures = picturesOfFile(path, maxSprite(), &why);
      if (pictures) desktop_.setPictures(id, pictures->picture, pictures->photo);
    }
  }

  size_t maxSprite() const {
    const size_t serverLimit = maxSprite_;
    return serverLimit > 0 ? serverLimit : kUsualSprite;
  }

  /** Adds a sprite: they lie side by side around the middle, ten in a row. */
  BodyId addAtFreePlace(const Sprite& sprite) {
    needsPaint_ = true;
    const unsigned row = addedCount_ / 10 % 5;
    const unsigned column = addedCount_ % 10;
    addedCount_++;
    const unsigned pair = (column + 1) / 2;
    const double halfSide = halfSideOf(sprite.picture);
    const double offset = (column % 2 == 0 ? 1.0 : -1.0) * pair * 2.2 * halfSide;
    return desktop_.add(sprite, desktop_.width() / 2 + offset,
                        desktop_.height() / 2 + row * 2.2 * halfSide, halfSide);
  }

  void updateTitle() {
    std::string title = std::string("Sprites - ") + toString(view_.state);
    const Body* body = desktop_.find(desktop_.selected());
    if (body != nullptr) {
      const auto& [name, by] = std::tie(body->sprite.name, body->sprite.by);
      if (!name.empty() || !by.empty()) title += " -";
      if (!name.empty()) title += " " + printable(name);
      if (!by.empty()) title += " from " + printable(by);
    }
    window_.setTitle(title);
  }

  const std::string name_;            // this desktop's
  const std::string folder_;          // for saved pictures
  std::atomic<size_t> maxSprite_{0};  // the server's limit, in bytes; 0: not known yet
  std::mutex mutex_;
  std::condition_variable inboxEmptied_;
  std::vector<std::function<void()>> inbox_;  // under mutex_: calls from the client's thread
  bool isClosing_ = false;                    // under mutex_

  Window window_;
  const uint32_t wakeEvent_;
  Desktop desktop_;
  UndoStack undos_;
  View view_;
  std::string reason_;           // why there is no contact, one line
  Clock::time_point nextQuery_;  // for the counts and the place
  Clock::time_point toastEnd_;   // when the message of showToast() ends
  bool isToastShown_ = false;
  bool isRunning_ = true;
  bool needsPaint_ = true;  // the window is to be painted
  BodyId heldId_ = 0;
  BodyId hoveredId_ = 0;  // under the pointer
  BodyId openedId_ = 0;   // shown large
  uint64_t thrownCount_ = 0;
  uint64_t caughtCount_ = 0;
  // Arrivals, each with the time until which it shows its sender.
  std::vector<std::pair<BodyId, Clock::time_point>> recentArrivals_;
  // Files that are sized for any server, each by its body.
  std::vector<std::pair<BodyId, std::string>> filesToResize_;
  double gripX_ = 0;  // from the held body's middle to the pointer
  double gripY_ = 0;
  std::pair<double, double> heldFrom_;  // of the held body, before it was held
  bool isOverFooter_ = false;           // the held body is over the footer
  std::deque<TrailPoint> trail_;
  unsigned unreadableCount_ = 0;
  unsigned droppedCount_ = 0;
  unsigned addedCount_ = 0;
  Client client_;  // the last member: its thread ends before the others do
};
}  // namespace

}  // namespace sprites::desktop

// sprites-desktop: see --help.
int main(int argc, char** argv) {
  using namespace sprites::desktop;
  try {
    const Settings settings = readSettings(std::vector<std::string>(argv + 1, argv + argc));
    if (settings.help) {
      std::cout << helpText();
    } else if (settings.version) {
      std::cout << sprites::version() << std::endl;
    } else {
      App(settings).run();
    }
    return 0;
  } catch (const std::invalid_argument& error) {
    std::cerr << "sprites-desktop: " << error.what() << std::endl;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "sprites-desktop: " << error.what() << std::endl;
    return 1;
  }
}
