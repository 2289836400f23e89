#include "options.h"

#include <algorithm>
#include <string_view>

#include "process.h"

namespace swarm {

namespace {

Setter throwingMode(Throwing* target) {
  return [target](std::string_view value) {
    *target = value == "rate"     ? Throwing::kOpenLoop
              : value == "closed" ? Throwing::kClosedLoop
                                  : Throwing::kNone;
    return value == "rate" || value == "closed" || value == "none";
  };
}

/** @return the setter of `seconds:rate,seconds:rate` */
Setter stages(std::vector<Stage>* target) {
  return [target](std::string_view text) {
    while (!text.empty()) {
      const std::string_view one = text.substr(0, text.find(','));
      text.remove_prefix(std::min(text.size(), one.size() + 1));
      const size_t colon = one.find(':');
      Stage stage{};
      if (colon == std::string_view::npos || !readNumber(one.substr(0, colon), &stage.seconds) ||
          !readNumber(one.substr(colon + 1), &stage.rate)) {
        return false;
      }
      target->push_back(stage);
    }
    return true;
  };
}

}  // namespace

bool readOptions(int argc, char** argv, Options* options, std::string* error) {
  const Setters setters = {
      {"address", text(&options->address)},
      {"host", text(&options->host)},
      {"server-name", text(&options->serverName)},
      {"port", number(&options->port)},
      {"transient-port", number(&options->transientPort)},
      {"swarm", text(&options->swarm)},
      {"process", number(&options->process)},
      {"probe-process", number(&options->probeProcess)},
      {"apart", flag(&options->apart)},
      {"clients", number(&options->clients)},
      {"first-client", number(&options->firstClient)},
      {"sources", number(&options->sources)},
      {"lanes", number(&options->lanes)},
      {"throwing", throwingMode(&options->throwing)},
      {"every-client", flag(&options->everyClient)},
      {"rate", number(&options->rate)},
      {"stages", stages(&options->stages)},
      {"phase", number(&options->phase)},
      {"batched", flag(&options->batched)},
      {"size", number(&options->size)},
      {"ramp", number(&options->ramp)},
      {"in-flight", number(&options->inFlight)},
      {"hold", number(&options->hold)},
      {"held", number(&options->heldLimit)},
      {"nchan", flag(&options->nchan)},
      {"tick", number(&options->tick)},
      {"limit", number(&options->limit)},
      {"seed", number(&options->seed)},
  };
  if (!readArguments(argc, argv, setters, error)) return false;
  if (options->clients == 0 || options->lanes == 0 || options->tick == 0 || options->port == 0) {
    *error = "clients, lanes, tick and port must be above 0";
    return false;
  }
  if (options->transientPort == 0) options->transientPort = options->port;
  return true;
}

}  // namespace swarm
