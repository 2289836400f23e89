// The program: the client, the desktop and the window, and what flows between them.
//
//   client's thread                                  main thread
//   onSprite, results, onState ─▶ inbox (mutex) ─▶ takeInbox ─▶ Desktop ─▶ Window
//        ▲  waits while the inbox is full             │ step: over an edge
//        └──────────── Client::throwSprite ◀──────────┘
//
// A sprite that was thrown stays on this desktop, out of sight behind its edge, until the server
// has answered: taken, it is gone; anything else, it comes back from the edge. What no neighbor can
// answer for (Outcome::kUnanswered, kForgotten) comes back, too: twice a sprite is better than
// none.
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

  /** How long words stay, or until a button or a key is pressed. */
  static constexpr std::chrono::seconds kToast{20};

  /** Where the pointer was, for the speed with which it lets go. */
  struct Trail {
    Clock::time_point at;
    double x;
    double y;
  };

  Options clientOptions(const Settings& settings);
  void onSprite(Edge edge, const std::string& json);
  void tell(std::function<void()> news);
  void takeInbox();
  void onArrival(Edge edge, Sprite sprite, bool passed);
  void onResult(BodyId id, Edge edge, const ThrowResult& result);
  void onStatus(const Status& status);
  void onPlace(const Place& place);
  void onState(const StateChange& change);
  void look(Clock::time_point now);
  void say(const std::string& words, std::chrono::seconds time = kToast);
  std::string words() const;
  std::string neighbor(Edge edge) const;
  void leaveBy(const Body& body, Edge edge);
  void onEvent(const SDL_Event& event);
  void onKey(const SDL_KeyboardEvent& key);
  void onPress(const SDL_MouseButtonEvent& button);
  void open(BodyId id);
  void close();
  void act(Action action);
  void save();
  std::vector<BodyId> telling() const;
  void onMove(double x, double y);
  void onRelease();
  void putAway(BodyId id);
  void undo();
  void addDrawn(const std::string& picture);
  void addFile(const std::string& path);
  void sizePhotos();
  size_t maxSprite() const;
  BodyId addAtFreePlace(const Sprite& sprite);
  void retitle();

  const std::string name_;            // this desktop's
  const std::string folder_;          // where what is saved goes
  std::atomic<size_t> maxSprite_{0};  // bytes that the server takes; 0: not known yet
  std::mutex mutex_;
  std::condition_variable taken_;
  std::vector<std::function<void()>> inbox_;  // under mutex_: what the client's thread has to tell
  bool closing_ = false;                      // under mutex_

  Window window_;
  const uint32_t wakeEvent_;
  Desktop desktop_;
  Undos undos_;
  View view_;
  std::string reason_;          // why there is no contact, one line
  Clock::time_point nextLook_;  // at the counts and the place
  Clock::time_point toastEnd_;  // when the words of say() go
  bool toasting_ = false;
  bool running_ = true;
  bool changed_ = true;  // there is something to paint
  BodyId held_ = 0;
  BodyId over_ = 0;    // the pointer is
  BodyId opened_ = 0;  // seen large
  uint64_t thrown_ = 0;
  uint64_t caught_ = 0;
  std::vector<std::pair<BodyId, Clock::time_point>> news_;  // came in; when the sender is hidden
  std::vector<std::pair<BodyId, std::string>> unsized_;     // files, made small for any server
  double gripX_ = 0;  // from the held one's middle to the pointer
  double gripY_ = 0;
  std::pair<double, double> home_;  // of the held one, before it was taken
  bool dropping_ = false;           // it is held over the words below the desktop
  std::deque<Trail> trail_;
  unsigned unreadable_ = 0;
  unsigned dropped_ = 0;
  unsigned added_ = 0;
  Client client_;  // the last: its thread ends before anything it uses
};

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_APP_H_
