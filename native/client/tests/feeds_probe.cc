// A client of feeds under test, driven line by line: commands come on stdin, events go out on
// stdout as lines of JSON.
//
//   sprites_feeds_probe --server URL [--fd] [--whole] [--cached] [--backoff MS] [--watch KEY]...
//                       [--held CURSOR VALUE]...
//
//   --watch: before it starts; --held: what was held of the key that is watched next; --whole: no
//   patches; --cached: FeedsOptions::cached
//
//   watch KEY       {"event":"change","key":KEY,"cursor":…,"value":…,"patch":…,"problem":…} follow
//   close KEY       ends the first watch of that key
//   close-all       close()
//   try-now         tryNow()
//   quit            destroys the client and ends (so does the end of stdin)
#include <exception>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "json.h"
#include "probe_lines.h"
#include "sprites/feeds.h"

namespace {

using sprites::json::quote;

class Probe {
 public:
  explicit Probe(sprites::FeedsOptions options) : feeds(withStates(std::move(options))) {}

  void watch(const std::string& key, sprites::FeedHeld held) {
    const auto onChange = [this](const sprites::FeedChange& change) {
      const auto orNull = [](const std::string& text) { return text.empty() ? "null" : text; };
      print("{\"event\":\"change\",\"key\":" + quote(change.key) +
            ",\"cursor\":" + quote(change.cursor) + ",\"text\":" + quote(change.value) +
            ",\"patch\":" + orNull(change.patch) + ",\"problem\":" + quote(change.problem) + "}");
    };
    watches_.emplace(key, feeds.watch(key, onChange, std::move(held)));
  }

  /** One command; false to end. */
  bool command(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    std::string key;
    words >> verb >> key;
    if (verb == "watch") {
      watch(key, {});
    } else if (verb == "close") {
      const auto found = watches_.find(key);
      if (found == watches_.end()) throw std::invalid_argument("no watch of " + key);
      feeds.unwatch(found->second);
      watches_.erase(found);
    } else if (verb == "close-all") {
      feeds.close();
      watches_.clear();
    } else if (verb == "try-now") {
      feeds.tryNow();
    }
    return verb != "quit";
  }

  void run([[maybe_unused]] bool polled) {
    const auto obey = [this](const std::string& line) { return command(line); };
#ifdef __linux__
    if (polled) return probe::runPolled(&feeds, obey, [] {});
#endif
    probe::runThreaded(&feeds, obey);
  }

 private:
  void print(const std::string& line) {
    const std::lock_guard<std::mutex> lock(output_);
    std::cout << line << std::endl;
  }

  sprites::FeedsOptions withStates(sprites::FeedsOptions options) {
    options.onState = [this](const sprites::FeedsStateChange& change) {
      print("{\"event\":\"state\",\"state\":" + quote(sprites::toString(change.state)) +
            ",\"why\":" + quote(change.why) + "}");
    };
    return options;
  }

  std::mutex output_;
  std::multimap<std::string, sprites::Feeds::WatchId> watches_;
  sprites::Feeds feeds;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    sprites::FeedsOptions options;
    options.patches = true;
    std::vector<std::pair<std::string, sprites::FeedHeld>> watches;
    sprites::FeedHeld held;
    bool polled = false;
    probe::Arguments arguments(argc, argv);
    for (std::string name; arguments.next(&name);) {
      if (name == "--fd") {
        polled = true;
      } else if (name == "--whole") {
        options.patches = false;
      } else if (name == "--cached") {
        options.cached = true;
      } else if (name == "--server") {
        options.server = arguments.value();
      } else if (name == "--backoff") {
        options.maxBackoff = arguments.milliseconds();
      } else if (name == "--held") {
        held.cursor = arguments.value();
        held.value = arguments.value();
      } else if (name == "--watch") {
        watches.emplace_back(arguments.value(), std::exchange(held, {}));
      } else {
        arguments.refuse();
      }
    }
    Probe watcher(std::move(options));
    for (auto& [key, kept] : watches) watcher.watch(key, std::move(kept));
    watcher.run(polled);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
}
