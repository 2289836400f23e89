// The watched feeds and their newest values. For the engine's thread only.
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

/** News for watches. Of a log: `items`, `gap`, and key, cursor and problem of `change`. */
struct FeedNews {
  std::vector<Feeds::WatchId> watches;
  FeedChange change;
  std::vector<std::string> items;
  bool gap = false;
  bool endsWatches = false;  // the watches end with these news
};

/** A value is watched, a log followed. */
enum class FeedKind : uint8_t { kValue, kLog };

class FeedTable {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /** The next poll: the cursors of the due feeds, and when the next other feed is due. */
  struct Poll {
    std::map<std::string, std::string> feeds;
    Time nextDue = Time::max();
  };

  /** @param backoff  returns the wait after so many failures in a row */
  explicit FeedTable(std::function<Millis(uint64_t failures)> backoff)
      : backoff_(std::move(backoff)) {}

  size_t size() const { return entries_.size(); }

  /** Adds a watch. @return whether it is the first watch of a feed that can be watched */
  bool add(Feeds::WatchId watch, const std::string& key, FeedKind kind, FeedHeld held);
  void remove(Feeds::WatchId watch);

  /** Returns whether an item is older than the last reported one. */
  bool isOlder(const FeedItem& item) const;

  /** Forgets all cursors: the next poll asks for every value whole. */
  void clearCursors();

  /** Ends the waits of the feeds with a problem. */
  void endProblemWaits();

  Poll nextPoll(Time now) const;

  /**
   * Stores an answer.
   *
   * @param sentCursors  the cursors that the poll had
   * @return whether the answer had news or a problem
   */
  bool storeAnswer(std::vector<FeedItem> items,
                   const std::map<std::string, std::string>& sentCursors, Time now);

  /** Returns the news since the last call, in order. */
  std::vector<FeedNews> drainNews() { return std::exchange(news_, {}); }

 private:
  struct Entry {
    FeedKind kind = FeedKind::kValue;
    std::string cursor;          // empty without a value
    std::string reportedCursor;  // the cursor that was reported last
    std::string endedCursor;     // the cursor when the feed last ended
    std::string value;
    bool gap = false;            // of a log: its cursor was forgotten
    std::string problem;         // as reported; empty: none
    uint64_t problemsInRow = 0;  // problems in a row
    Time due;                    // the earliest time to ask for it
    std::vector<Feeds::WatchId> watches;

    /** Returns the cursor to ask with. */
    std::string cursorToSend() const;

    /** Returns the problem of an item, or an empty text. */
    std::string problemOf(const FeedItem& item) const;
  };

  bool storeItem(const std::string& key, Entry* entry, FeedItem item);
  bool storeLogItems(const std::string& key, Entry* entry, const FeedItem& item);
  void storeProblem(const std::string& key, Entry* entry, const std::string& problem, Time now);
  void addNews(const Entry& entry, FeedNews news);

  std::function<Millis(uint64_t)> backoff_;
  std::map<std::string, Entry> entries_;
  std::vector<FeedNews> news_;
};

}  // namespace sprites

#endif  // SPRITES_CLIENT_FEED_TABLE_H_
