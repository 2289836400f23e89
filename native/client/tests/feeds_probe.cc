// A client of feeds under test, driven line by line: commands come on stdin, events go out on
// stdout as lines of JSON.
//
//   sprites_feeds_probe --server URL [--fd] [--whole] [--backoff MS] [--watch KEY]...
//                       [--held CURSOR VALUE]...
//
//   --watch: before it starts; --held: what was held of the key that is watched next; --whole: no
//   patches
//
//   watch KEY       {"event":"change","key":KEY,"cursor":…,"value":…,"patch":…,"problem":…} follow
//   close KEY       ends the first watch of that key
//   close-all       close()
//   try-now         tryNow()
//   quit            destroys the client and ends (so does the end of stdin)
#ifdef __linux__
#include <poll.h>
#include <unistd.h>
#endif

#include <chrono>
#include <cstdlib>
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

  void runThreaded() {
    feeds.start();
    std::string line;
    while (std::getline(std::cin, line) && command(line)) {
    }
  }

#ifdef __linux__
  /** A loop of another kind: poll(2) on stdin and on the client's descriptor. */
  void runPolled() {
    pollfd waits[2] = {{feeds.fd(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    std::string text;
    for (bool ended = false; !ended;) {
      poll(waits, 2, static_cast<int>(feeds.timeout().count()));
      feeds.perform(std::chrono::milliseconds(0));
      if (waits[1].revents == 0) continue;
      char bytes[4096];
      const ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
      ended = length <= 0;
      if (length > 0) text.append(bytes, static_cast<size_t>(length));
      for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
        if (!command(text.substr(0, end))) ended = true;
        text.erase(0, end + 1);
      }
    }
  }
#endif

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
    for (int i = 1; i < argc; i++) {
      const std::string name = argv[i];
      if (name == "--fd") {
        polled = true;
        continue;
      }
      if (name == "--whole") {
        options.patches = false;
        continue;
      }
      if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
      const std::string value = argv[++i];
      if (name == "--server") options.server = value;
      if (name == "--backoff") {
        options.maxBackoff = std::chrono::milliseconds(std::strtoul(value.c_str(), nullptr, 10));
      }
      if (name == "--held" && i + 1 < argc) held = {value, argv[++i]};
      if (name == "--watch") watches.emplace_back(value, std::exchange(held, {}));
    }
    Probe probe(std::move(options));
    for (auto& [key, kept] : watches) probe.watch(key, std::move(kept));
#ifdef __linux__
    if (polled) {
      probe.runPolled();
      return 0;
    }
#endif
    probe.runThreaded();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
}
