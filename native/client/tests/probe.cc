// A client under test, driven line by line: commands come on stdin, events go out on stdout as
// lines of JSON.
//
//   sprites_probe --server URL [--fd] [--hold S] [--pending N] [--parallel N] [--patience MS]
//                 [--attempts N] [--answer-timeout MS] [--answer-bytes N] [--backoff MS]
//                 [--resume JSON] [--no-room TEXT] [--leave-inside] [--proxy URL] [--header LINE]
//                 [--log] [--grant GRANT]... [--ca FILE]
//
//   --leave-inside: leave() inside onSprite
//
//   throw TAG EDGE JSON   {"event":"result","tag":TAG,...} follows; "taken":false if not accepted
//   flood TAG COUNT EDGE JSON   COUNT throws from a second thread
//   bounce EDGE           from now on the callback throws each arriving sprite on
//   place, status         {"event":"place",...}, {"event":"status",...}
//   try-now               tryNow()
//   counts                {"event":"counts",...}
//   grant GRANT           adds a grant, see probe_lines.h; each question prints {"event":"grant"}
//   slow MS               each callback takes that long from now on
//   leave                 leave(); at its end {"event":"state","state":"left"}
//   close MS              close(); then {"event":"closed","left":true|false}
//   quit                  destroys the client and ends (so does the end of stdin)
#include <atomic>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "answers.h"
#include "json.h"
#include "probe_lines.h"
#include "sprites/client.h"

namespace {

using sprites::Millis;
using sprites::json::quote;

/** State that the callbacks and the commands share. */
struct Shared {
  probe::Grants grants;
  std::mutex output;
  std::atomic<long> callbackDelay{0};
  std::atomic<int> bounce{-1};
  std::string noRoom;       // onSprite returns false once for a sprite with this text
  unsigned long turns = 0;  // turns of the loop in runPolled()

  void print(const std::string& line) {
    const std::lock_guard<std::mutex> lock(output);
    std::cout << line << std::endl;
  }
};

std::string resultLine(const std::string& tag, const sprites::ThrowResult& result) {
  return "{\"event\":\"result\",\"taken\":true,\"tag\":" + quote(tag) +
         ",\"outcome\":" + quote(sprites::toString(result.outcome)) +
         ",\"yours\":" + (result.yours() ? "true" : "false") +
         ",\"retry\":" + std::to_string(result.retry.count()) +
         ",\"problem\":" + quote(result.problem) + ",\"detail\":" + quote(result.detail) + "}";
}

void throwOne(sprites::Client* client, Shared* shared, const std::string& tag, sprites::Edge edge,
              const std::string& json) {
  const bool isAccepted =
      client->throwSprite(edge, json, [shared, tag](const sprites::ThrowResult& result) {
        std::this_thread::sleep_for(Millis(shared->callbackDelay));
        shared->print(resultLine(tag, result));
      });
  if (!isAccepted)
    shared->print("{\"event\":\"result\",\"taken\":false,\"tag\":" + quote(tag) + "}");
}

std::string countsLine(const sprites::Counts& counts, unsigned long turns) {
  const std::map<std::string, uint64_t> all = {
      {"received", counts.received}, {"repeats", counts.repeats},   {"thrown", counts.thrown},
      {"unknown", counts.unknown},   {"resent", counts.resent},     {"joins", counts.joins},
      {"polls", counts.polls},       {"failures", counts.failures}, {"turns", turns}};
  std::string line = "{\"event\":\"counts\"";
  for (const auto& [name, value] : all) line += "," + quote(name) + ":" + std::to_string(value);
  return line + "}";
}

/** Runs a command; returns false to end. */
bool command(const std::string& line, sprites::Client* client, Shared* shared) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "throw" || verb == "flood") {
    std::string tag;
    std::string edge;
    std::string json;
    unsigned count = 1;
    words >> tag;
    if (verb == "flood") words >> count;
    words >> edge >> std::ws;
    std::getline(words, json);
    const sprites::Edge thrownEdge = sprites::readEdge(edge).value_or(sprites::Edge::kLeft);
    if (verb == "throw") {
      throwOne(client, shared, tag, thrownEdge, json);
    } else {
      std::thread([&] {
        for (unsigned i = 0; i < count; i++) {
          throwOne(client, shared, tag + std::to_string(i), thrownEdge, json);
        }
      }).join();
    }
  } else if (verb == "bounce") {
    std::string edge;
    words >> edge;
    shared->bounce = static_cast<int>(sprites::readEdge(edge).value_or(sprites::Edge::kLeft));
  } else if (verb == "counts") {
    shared->print(countsLine(client->counts(), shared->turns));
  } else if (verb == "place") {
    client->place([shared](const std::optional<sprites::Place>& place) {
      const auto numbers = [&place] {
        return std::to_string(place->row) + "," + std::to_string(place->column) + "," +
               std::to_string(place->rows) + "," + std::to_string(place->columns);
      };
      shared->print("{\"event\":\"place\",\"place\":" + (place ? "[" + numbers() + "]" : "null") +
                    "}");
    });
  } else if (verb == "status") {
    client->status([shared](const std::optional<sprites::Status>& status) {
      shared->print("{\"event\":\"status\",\"clients\":" +
                    (status ? std::to_string(status->clients) : "null") +
                    ",\"status\":" + (status ? status->json : "null") + "}");
    });
  } else if (verb == "try-now") {
    client->tryNow();
  } else if (verb == "grant") {
    std::string grant;
    words >> grant;
    shared->grants.add(grant);
  } else if (verb == "slow") {
    long wait = 0;
    words >> wait;
    shared->callbackDelay = wait;
  } else if (verb == "leave") {
    client->leave();
  } else if (verb == "close") {
    long patience = 0;
    words >> patience;
    const bool left = client->close(Millis(patience));
    shared->print(std::string("{\"event\":\"closed\",\"left\":") + (left ? "true" : "false") + "}");
  }
  return verb != "quit";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Shared shared;
    sprites::Options options;
    [[maybe_unused]] bool isPolled = false;
    bool leavesInside = false;
    probe::Arguments arguments(argc, argv);
    const std::map<std::string, std::function<void()>> actions = {
        {"--fd", [&] { isPolled = true; }},
        {"--log",
         [&] {
           options.onLog = [&shared](const std::string& line) {
             shared.print("{\"event\":\"log\",\"line\":" + quote(line) + "}");
           };
         }},
        {"--server", [&] { options.server = arguments.value(); }},
        {"--grant", [&] { shared.grants.add(arguments.value()); }},
        {"--resume", [&] { options.resume = sprites::readResume(arguments.value()); }},
        {"--no-room", [&] { shared.noRoom = arguments.value(); }},
        {"--leave-inside", [&] { leavesInside = true; }},
        {"--ca", [&] { options.caFile = arguments.value(); }},
        {"--proxy", [&] { options.proxy = arguments.value(); }},
        {"--header", [&] { options.headers.push_back(arguments.value()); }},
        {"--hold", [&] { options.hold = arguments.number(); }},
        {"--pending", [&] { options.maxPendingThrows = arguments.number(); }},
        {"--parallel", [&] { options.maxParallelThrows = arguments.number(); }},
        {"--patience", [&] { options.throwPatience = arguments.milliseconds(); }},
        {"--attempts", [&] { options.throwAttempts = arguments.number(); }},
        {"--answer-timeout", [&] { options.answerTimeout = arguments.milliseconds(); }},
        {"--answer-bytes", [&] { options.maxAnswerBytes = arguments.number(); }},
        {"--backoff", [&] { options.maxBackoff = arguments.milliseconds(); }}};
    arguments.runActions(actions);
    std::optional<sprites::Client> client;
    options.onState = [&shared](const sprites::StateChange& change) {
      shared.print("{\"event\":\"state\",\"state\":" + quote(sprites::toString(change.state)) +
                   ",\"newPlace\":" + (change.newPlace ? "true" : "false") +
                   ",\"why\":" + quote(change.why) + ",\"reason\":" + quote(change.reason) +
                   ",\"retry\":" + std::to_string(change.retry.count()) + "}");
    };
    options.onResume = [&shared](const std::optional<sprites::Resume>& resume) {
      shared.print("{\"event\":\"resume\",\"resume\":" +
                   (resume ? sprites::writeResume(*resume) : "null") + "}");
    };
    options.onSprite = [&](sprites::Edge edge, const std::string& json) {
      if (!shared.noRoom.empty() && json.find(shared.noRoom) != std::string::npos) {
        shared.noRoom.clear();
        return false;
      }
      std::this_thread::sleep_for(Millis(shared.callbackDelay));
      shared.print("{\"event\":\"sprite\",\"edge\":" + quote(sprites::toString(edge)) +
                   ",\"sprite\":" + json + "}");
      if (leavesInside) client->leave();
      const int bounce = shared.bounce;
      if (bounce >= 0) {
        throwOne(&*client, &shared, "bounced", static_cast<sprites::Edge>(bounce), json);
      }
      return true;
    };
    const auto grant = shared.grants.callback([&] { shared.print(R"({"event":"grant"})"); });
    client.emplace(options, grant);
    const auto runCommand = [&](const std::string& line) {
      return command(line, &*client, &shared);
    };
#ifdef __linux__
    if (isPolled) {
      probe::runPolled(&*client, runCommand, [&shared] { shared.turns++; });
      return 0;
    }
#endif
    probe::runThreaded(&*client, runCommand);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 2;
  }
}
