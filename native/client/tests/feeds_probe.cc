// A client of feeds under test, driven line by line: commands come on stdin, events go out on
// stdout as lines of JSON.
//
//   sprites_feeds_probe --server URL [--fd] [--cached] [--backoff MS] [--watch KEY]...
//                       [--follow KEY]... [--held CURSOR VALUE]... [--grant GRANT]...
//
//   --watch, --follow: watched from the start; --held: cursor and value for the next key;
//   --cached: FeedsOptions::cached; --grant: see probe_lines.h; each question for a grant prints
//   {"event":"grant"}
//
//   watch KEY       {"event":"change","key":KEY,"cursor":…,"value":…,"patch":…,"problem":…} follow
//   follow KEY      {"event":"change","key":KEY,"cursor":…,"items":[…],"gap":…,"problem":…} follow
//   close KEY       ends the first watch of that key
//   close-all       close()
//   try-now         tryNow()
//   quit            destroys the client and ends (so does the end of stdin)
#include <exception>
#include <functional>
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
  Probe(sprites::FeedsOptions options, probe::Grants* grants)
      : feeds(withStates(std::move(options)),
              grants->callback([this] { print(R"({"event":"grant"})"); })) {}

  void watch(const std::string& key, sprites::FeedHeld held) {
    const auto onChange = [this](const sprites::FeedChange& change) {
      const auto orNull = [](const std::string& text) { return text.empty() ? "null" : text; };
      print("{\"event\":\"change\",\"key\":" + quote(change.key) +
            ",\"cursor\":" + quote(change.cursor) + ",\"text\":" + quote(change.value) +
            ",\"patch\":" + orNull(change.patch) + ",\"problem\":" + quote(change.problem) + "}");
    };
    watches_.emplace(key, feeds.watch(key, onChange, std::move(held)));
  }

  void follow(const std::string& key, const std::string& after) {
    const auto onItems = [this](const sprites::LogNews& news) {
      std::string items;
      for (const std::string& item : news.items) items += (items.empty() ? "" : ",") + item;
      print("{\"event\":\"change\",\"key\":" + quote(news.key) +
            ",\"cursor\":" + quote(news.cursor) + ",\"items\":[" + items + "],\"gap\":" +
            (news.gap ? "true" : "false") + ",\"problem\":" + quote(news.problem) + "}");
    };
    watches_.emplace(key, feeds.follow(key, onItems, after));
  }

  /** Runs a command; returns false to end. */
  bool command(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    std::string key;
    words >> verb >> key;
    if (verb == "watch") {
      watch(key, {});
    } else if (verb == "follow") {
      follow(key, {});
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

  void run([[maybe_unused]] bool isPolled) {
    const auto runCommand = [this](const std::string& line) { return command(line); };
#ifdef __linux__
    if (isPolled) return probe::runPolled(&feeds, runCommand, [] {});
#endif
    probe::runThreaded(&feeds, runCommand);
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
    std::vector<std::function<void(Probe*)>> startActions;
    sprites::FeedHeld held;
    probe::Grants grants;
    bool isPolled = false;
    probe::Arguments arguments(argc, argv);
    arguments.runActions(
        {{"--fd", [&] { isPolled = true; }},
         {"--cached", [&] { options.cached = true; }},
         {"--server", [&] { options.server = arguments.value(); }},
         {"--backoff", [&] { options.maxBackoff = arguments.milliseconds(); }},
         {"--grant", [&] { grants.add(arguments.value()); }},
         {"--held",
          [&] {
            held.cursor = arguments.value();
            held.value = arguments.value();
          }},
         {"--watch",
          [&] {
            startActions.emplace_back([key = arguments.value(), held = std::exchange(held, {})](
                                          Probe* probe) { probe->watch(key, held); });
          }},
         {"--follow", [&] {
            startActions.emplace_back([key = arguments.value(), held = std::exchange(held, {})](
                                          Probe* probe) { probe->follow(key, held.cursor); });
          }}});
    Probe watcher(std::move(options), &grants);
    for (const auto& startAction : startActions) startAction(&watcher);
    watcher.run(isPolled);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
}
