#include "sprite.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "../client/src/json.h"
#include "process.h"

namespace swarm {

namespace {

constexpr std::string_view kEdges[] = {"left", "right", "up", "down"};
constexpr std::string_view kPad = ",\"pad\":\"";

char* put(char* at, std::string_view text) {
  memcpy(at, text.data(), text.size());
  return at + text.size();
}

char* put(char* at, uint64_t number) { return std::to_chars(at, at + 20, number).ptr; }

/** Removes `-NUMBER` from the start of `text`. */
bool takeNumber(std::string_view* text, uint64_t* number) {
  if (text->empty() || text->front() != '-') return false;
  const char* end = text->data() + text->size();
  const auto [stop, code] = std::from_chars(text->data() + 1, end, *number);
  if (code != std::errc()) return false;
  text->remove_prefix(stop - text->data());
  return true;
}

bool readId(std::string_view id, std::string_view swarm, Sprite* sprite) {
  if (!id.starts_with(swarm)) return false;
  id.remove_prefix(swarm.size());
  uint64_t process, client;
  if (!takeNumber(&id, &process) || !takeNumber(&id, &client) ||
      !takeNumber(&id, &sprite->number) || std::max(process, client) > UINT32_MAX) {
    return false;
  }
  sprite->process = static_cast<uint32_t>(process);
  sprite->client = static_cast<uint32_t>(client);
  return id.empty();
}

}  // namespace

std::string_view edgeName(Edge edge) { return kEdges[static_cast<int>(edge)]; }

std::string_view oppositeName(std::string_view edge) {
  for (int i = 0; i < 4; i++) {
    if (edge == kEdges[i]) return kEdges[i ^ 1];
  }
  return {};
}

size_t writeSprite(const Sprite& sprite, std::string_view swarm, size_t size, char* to) {
  char* at = put(put(to, "{\"id\":\""), swarm);
  at = put(put(at, "-"), sprite.process);
  at = put(put(at, "-"), sprite.client);
  at = put(put(at, "-"), sprite.number);
  at = put(at, "\",\"picture\":\"ball\",\"at\":0.5,\"speed\":[1,0.2]");
  at = put(at, ",\"name\":\"swarm\",\"to\":\"");
  at = put(at, edgeName(sprite.edge));
  at = put(put(at, "\",\"t\":"), sprite.thrownAt);
  const size_t bare = at - to + 1;
  if (bare + kPad.size() + 1 <= size) {
    at = put(at, kPad);
    const size_t filling = size - bare - kPad.size() - 1;
    memset(at, 'x', filling);
    at = put(at + filling, "\"");
  }
  *at++ = '}';
  return at - to;
}

ParsedSprite readSprite(std::string_view text, std::string_view swarm) {
  ParsedSprite read;
  sprites::json::Members members(text);
  std::string_view name, value;
  bool hasTime = false;
  while (members.next(&name, &value)) {
    if (name == "id") {
      if (!readId(sprites::json::raw(value), swarm, &read.sprite)) return read;
      read.isOurs = true;
    } else if (name == "to") {
      read.to = sprites::json::raw(value);
    } else if (name == "t") {
      // Nanoseconds since a machine's start may exceed the exact range of a double.
      hasTime = readNumber(value, &read.sprite.thrownAt);
    }
  }
  read.isOurs = read.isOurs && members.ok() && hasTime && !read.to.empty();
  return read;
}

}  // namespace swarm
