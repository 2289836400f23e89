#include "sprites/sprite.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "json.h"
#include "picture.h"

namespace sprites {

namespace {

bool isIdChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

/** Code points in UTF-8 text that isUtf8() has passed. */
size_t codePoints(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool isWithin(double value, double least, double most) {
  return std::isfinite(value) && value >= least && value <= most;
}

/** What is wrong with a sprite, or null. The one list of the format's bounds. */
const char* fault(const Sprite& sprite) {
  if (sprite.id.empty() || sprite.id.size() > kSpriteIdChars ||
      !std::all_of(sprite.id.begin(), sprite.id.end(), isIdChar)) {
    return "id is not 1 to 64 of A-Z a-z 0-9 _ -";
  }
  if (!isDrawnPicture(sprite.picture)) {
    if (sprite.picture.size() > kSpritePictureBytes) return "picture is too long";
    if (!splitDataUrl(sprite.picture)) {
      return "picture is neither a drawn one nor a data URL of png, jpeg, webp or gif";
    }
    if (!decodePicture(sprite.picture)) {
      return "picture is by its first bytes no image of its type with 1 to 512 pixels a side";
    }
  }
  if (!isWithin(sprite.at, 0, 1)) return "at is not 0 to 1";
  if (!isWithin(sprite.across, 0, kSpriteSpeedMax)) return "speed across is not 0 to 20";
  if (!isWithin(sprite.along, -kSpriteSpeedMax, kSpriteSpeedMax)) {
    return "speed along is not -20 to 20";
  }
  if (!isSpriteName(sprite.name)) return "name is not UTF-8 of at most 40 characters";
  if (!isSpriteName(sprite.by)) return "by is not UTF-8 of at most 40 characters";
  if (!sprite.photo.empty() && !decodePhoto(sprite.photo)) {
    return "photo is no data URL of png, jpeg, webp or gif with 1 to 2048 pixels a side";
  }
  return nullptr;
}

/** Six places at most, with a point whatever the locale says. */
std::string writeNumber(double value) {
  const long long millionths = std::llround(value * 1e6);
  const auto size = static_cast<unsigned long long>(millionths < 0 ? -millionths : millionths);
  std::string out = (millionths < 0 ? "-" : "") + std::to_string(size / 1000000);
  std::string rest = std::to_string(size % 1000000);
  rest.insert(0, 6 - rest.size(), '0');
  rest.erase(rest.find_last_not_of('0') + 1);
  return rest.empty() ? out : out + "." + rest;
}

/** The member of that name, where it is a text; else null. */
std::string* textMember(const std::string& name, Sprite* sprite) {
  return name == "id"        ? &sprite->id
         : name == "picture" ? &sprite->picture
         : name == "name"    ? &sprite->name
         : name == "by"      ? &sprite->by
         : name == "photo"   ? &sprite->photo
                             : nullptr;
}

/** Reads into `sprite` what `value` says of the member `name`; answers what is wrong, or null. */
const char* readMember(const std::string& name, std::string_view value, Sprite* sprite) {
  if (std::string* member = textMember(name, sprite)) {
    std::optional<std::string> text = json::string(value);
    if (!text) return "id, picture, name, by or photo is no string";
    if (name == "photo" && text->empty()) return "photo is empty";
    *member = std::move(*text);
  } else if (name == "at") {
    const std::optional<double> at = json::number(value);
    if (!at) return "at is no number";
    sprite->at = *at;
  } else if (name == "speed") {
    std::vector<double> speed;
    const bool numbers = json::elements(value, [&speed](std::string_view element) {
      const std::optional<double> number = json::number(element);
      if (number) speed.push_back(*number);
      return number && speed.size() <= 2;
    });
    if (!numbers || speed.size() != 2) return "speed is not two numbers";
    sprite->across = speed[0];
    sprite->along = speed[1];
  }
  return nullptr;
}

}  // namespace

bool isSpriteName(std::string_view name) {
  return json::isUtf8(name) && codePoints(name) <= kSpriteNameChars;
}

bool isDrawnPicture(std::string_view picture) {
  return std::find(kDrawnPictures.begin(), kDrawnPictures.end(), picture) != kDrawnPictures.end();
}

std::optional<Sprite> readSprite(std::string_view json, std::string* why) {
  const auto refuse = [why](const char* reason) {
    if (why != nullptr) *why = reason;
    return std::nullopt;
  };
  const std::optional<std::string_view> value = json::value(json);
  if (!value || !json::isUtf8(json) || value->front() != '{') return refuse("not one JSON object");

  // Of a member given twice the last one counts, as in JSON.parse: so first collect, then judge.
  std::map<std::string, std::string_view> known;
  json::members(*value, [&known](const std::string& name, std::string_view slice) {
    for (const char* wanted : {"id", "picture", "at", "speed", "name", "by", "photo"}) {
      if (name == wanted) known[name] = slice;
    }
    return true;
  });
  for (const char* needed : {"id", "picture", "at", "speed"}) {
    if (known.count(needed) == 0) return refuse("id, picture, at or speed is missing");
  }
  Sprite sprite;
  for (const auto& [name, slice] : known) {
    const char* wrong = readMember(name, slice, &sprite);
    if (wrong != nullptr) return refuse(wrong);
  }
  const char* wrong = fault(sprite);
  if (wrong != nullptr) return refuse(wrong);
  return sprite;
}

std::string writeSprite(const Sprite& sprite, size_t most) {
  const char* wrong = fault(sprite);
  if (wrong != nullptr) throw std::invalid_argument(std::string("sprite: ") + wrong);
  std::string out = "{\"id\":" + json::quote(sprite.id) +
                    ",\"picture\":" + json::quote(sprite.picture) +
                    ",\"at\":" + writeNumber(sprite.at) + ",\"speed\":[" +
                    writeNumber(sprite.across) + "," + writeNumber(sprite.along) + "]";
  if (!sprite.name.empty()) out += ",\"name\":" + json::quote(sprite.name);
  if (!sprite.by.empty()) out += ",\"by\":" + json::quote(sprite.by);
  const std::string photo = sprite.photo.empty() ? "" : ",\"photo\":" + json::quote(sprite.photo);
  if (out.size() + photo.size() + 1 <= most) out += photo;
  return out + "}";
}

std::string newSpriteId() {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  std::random_device random;
  std::string id;
  for (int i = 0; i < 22; i++) id.push_back(kAlphabet[random() & 63]);
  return id;
}

}  // namespace sprites
