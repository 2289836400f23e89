// The feeds that are watched, and what is held of each. For the engine's thread.
#ifndef SPRITES_CLIENT_FEED_TABLE_H_
#define SPRITES_CLIENT_FEED_TABLE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "answers.h"
#include "sprites/feeds.h"

namespace sprites {

/** What watches are to be told: of a log the items, and of `change` what is no value's alone. */
struct FeedNews {
  std::vector<Feeds::WatchId> watches;
  FeedChange change;
  std::vector<std::string> items;
  bool gap = false;
  bool ends = false;  // the watches
};

/** A value is watched, a log followed. */
enum class FeedKind : uint8_t { kValue, kLog };

class FeedTable {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /** What to ask for: the cursors held of what is due, and when the next of the others is. */
  struct Poll {
    std::map<std::string, std::string> feeds;
    Time next = Time::max();
  };

  /** @param backoff  the wait after so many failures in a row */
  explicit FeedTable(std::function<Millis(uint64_t failures)> backoff)
      : backoff_(std::move(backoff)) {}

  size_t size() const { return entries_.size(); }

  /** @return whether it is the first watch of a feed that can be watched */
  bool add(Feeds::WatchId watch, const std::string& key, FeedKind kind, FeedHeld held);
  void remove(Feeds::WatchId watch);

  /** Whether an item is older than what was told last. */
  bool isOlder(const FeedItem& item) const;

  /** Asks for every value whole, and at once. */
  void forgetCursors();

  /** Feeds with a problem need not wait any longer. */
  void hurry();

  Poll nextPoll(Time now) const;

  /**
   * Takes an answer.
   *
   * @param asked  the cursors it was asked with
   * @return whether there was anything in it
   */
  bool take(std::vector<FeedItem> items, const std::map<std::string, std::string>& asked, Time now);

  /** What there is to tell, in order; it is told once. */
  std::vector<FeedNews> news() { return std::exchange(news_, {}); }

 private:
  struct Entry {
    FeedKind kind = FeedKind::kValue;
    std::string cursor;  // empty without a value
    std::string newest;  // the cursor of what was told last
    std::string ended;   // the cursor held when the feed ended last
    std::string value;
    bool gap = false;     // of a log: its cursor was forgotten
    std::string problem;  // as it was told
    uint64_t misses = 0;  // problems in a row
    Time due;             // not to be asked for before
    std::vector<Feeds::WatchId> watches;

    /** The cursor to ask with. */
    std::string asked() const;

    /** What is wrong with an item, if anything is. */
    std::string problemOf(const FeedItem& item) const;
  };

  bool takeNews(const std::string& key, Entry* entry, FeedItem item);
  bool takeItems(const std::string& key, Entry* entry, const FeedItem& item);
  void takeProblem(const std::string& key, Entry* entry, const std::string& problem, Time now);
  void tell(const Entry& entry, FeedNews news);

  std::function<Millis(uint64_t)> backoff_;
  std::map<std::string, Entry> entries_;
  std::vector<FeedNews> news_;
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_FEED_TABLE_H_
