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
#ifndef SPRITES_DESKTOP_APP_H_
#define SPRITES_DESKTOP_APP_H_

#include <SDL.h>
#include <sprites/client.h>
#include <sprites/sprite.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "desktop.h"
#include "ground.h"
#include "options.h"
#include "window.h"

namespace sprites::desktop {

class App {
 public:
  /** Throws std::invalid_argument and std::runtime_error with one line for a person. */
  explicit App(const Settings& settings);
  ~App();

  /** Runs until the window is closed. */
  void run();

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

  Options clientOptions(const Settings& settings);
  void onSprite(Edge edge, const std::string& json);
  void post(std::function<void()> task);
  void runInbox();
  void onArrival(Edge edge, Sprite sprite, bool wasPassedOn);
  void onResult(BodyId id, Edge edge, const ThrowResult& result);
  void onStatus(const Status& status);
  void onPlace(const Place& place);
  void onState(const StateChange& change);
  void queryServer(Clock::time_point now);
  void showToast(const std::string& message, std::chrono::seconds time = kToastTime);
  std::string stateText() const;
  std::string neighborName(Edge edge) const;
  void throwOver(const Body& body, Edge edge);
  void onEvent(const SDL_Event& event);
  void onKey(const SDL_KeyboardEvent& key);
  void onPress(const SDL_MouseButtonEvent& button);
  void openSprite(BodyId id);
  void closeSprite();
  void perform(Action action);
  void saveSprite();
  std::vector<BodyId> bodiesShowingSender() const;
  void onMove(double x, double y);
  void onRelease();
  void putAway(BodyId id);
  void undo();
  void addDrawn(const std::string& picture);
  void addFile(const std::string& path);
  void resizePhotos();
  size_t maxSprite() const;
  BodyId addAtFreePlace(const Sprite& sprite);
  void updateTitle();

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

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_APP_H_
