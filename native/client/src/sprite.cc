#include "sprites/sprite.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "json.h"
#include "picture.h"

namespace sprites {

namespace {

using Size = std::pair<unsigned, unsigned>;

constexpr std::pair<PictureType, std::string_view> kPrefixes[] = {
    {PictureType::kPng, "data:image/png;base64,"},
    {PictureType::kJpeg, "data:image/jpeg;base64,"},
    {PictureType::kWebp, "data:image/webp;base64,"},
    {PictureType::kGif, "data:image/gif;base64,"},
};

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The file's bytes as unsigned numbers; a byte past the end reads as 0. */
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  unsigned at(size_t i) const {
    return i < bytes_.size() ? static_cast<unsigned char>(bytes_[i]) : 0U;
  }
  unsigned little16(size_t i) const { return at(i) | at(i + 1) << 8; }
  unsigned little24(size_t i) const { return little16(i) | at(i + 2) << 16; }
  unsigned big16(size_t i) const { return at(i) << 8 | at(i + 1); }
  unsigned big32(size_t i) const { return big16(i) << 16 | big16(i + 2); }
  bool has(size_t i, std::string_view text) const {
    return i <= bytes_.size() && bytes_.substr(i, text.size()) == text;
  }
  size_t size() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

std::optional<Size> pngSize(const Bytes& file) {
  if (!file.has(0, "\x89PNG\r\n\x1a\n") || !file.has(12, "IHDR") || file.size() < 24) return {};
  return Size{file.big32(16), file.big32(20)};
}

/**
 * Returns whether a JPEG's marker begins a segment with a length that may come before the frame:
 * DHT, DAC, DQT, DRI, APP0 to APP15, COM. A marker without a length (00, 01, D0 to D8) is refused:
 * a decoder continues right behind it, so that bytes read here as a length could hide the frame
 * that the decoder finds.
 */
bool isSegmentBeforeFrame(unsigned marker) {
  return marker == 0xC4 || marker == 0xCC || marker == 0xDB || marker == 0xDD ||
         (marker >= 0xE0 && marker <= 0xEF) || marker == 0xFE;
}

std::optional<Size> jpegSize(const Bytes& file) {
  if (!file.has(0, "\xFF\xD8\xFF")) return {};
  size_t at = 2;
  while (at + 2 < file.size() && file.at(at) == 0xFF) {
    const unsigned marker = file.at(at + 1);
    if (marker == 0xFF) {  // a fill byte
      at++;
      continue;
    }
    const bool isFrame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (isFrame && at + 9 > file.size()) return {};
    if (isFrame) return Size{file.big16(at + 7), file.big16(at + 5)};
    const unsigned length = file.big16(at + 2);
    if (!isSegmentBeforeFrame(marker) || length < 2) return {};
    at += 2 + length;
  }
  return {};
}

std::optional<Size> webpSize(const Bytes& file) {
  if (!file.has(0, "RIFF") || !file.has(8, "WEBP") || file.size() < 30) return {};
  if (file.has(12, "VP8X")) return Size{file.little24(24) + 1, file.little24(27) + 1};
  if (file.has(12, "VP8 ")) return Size{file.little16(26) & 0x3FFF, file.little16(28) & 0x3FFF};
  if (file.has(12, "VP8L") && file.at(20) == 0x2F) {
    const unsigned bits = file.little24(21) | file.at(24) << 24;
    return Size{(bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1};
  }
  return {};
}

/** Returns the end of a GIF's sub-blocks at `at`; beyond the file's size if they are cut off. */
size_t skipBlocks(const Bytes& file, size_t at) {
  while (at < file.size() && file.at(at) != 0) at += 1 + file.at(at);
  return at + 1;
}

size_t colorTableBytes(unsigned flags) {
  return (flags & 0x80) != 0 ? size_t{3} << ((flags & 7) + 1) : 0;
}

/**
 * Returns the size that the screen and all frames at their places need. A decoder allocates each
 * frame by the frame's own size, so every frame is checked.
 */
std::optional<Size> gifSize(const Bytes& file) {
  if (!file.has(0, "GIF87a") && !file.has(0, "GIF89a")) return {};
  Size size{file.little16(6), file.little16(8)};
  bool hasFrame = false;
  size_t at = 13 + colorTableBytes(file.at(10));
  while (at < file.size()) {
    if (file.at(at) == 0x21) {  // extension
      at = skipBlocks(file, at + 2);
    } else if (file.at(at) == 0x2C) {  // frame
      hasFrame = true;
      size.first = std::max(size.first, file.little16(at + 1) + file.little16(at + 5));
      size.second = std::max(size.second, file.little16(at + 3) + file.little16(at + 7));
      at = skipBlocks(file, at + 11 + colorTableBytes(file.at(at + 9)));
    } else {
      break;  // the end, or bytes at which decoders stop
    }
    if (at > file.size()) return {};
  }
  if (!hasFrame) return {};
  return size;
}

/** Returns a picture's type and base64 text from its data URL; std::nullopt for other text. */
std::optional<std::pair<PictureType, std::string_view>> splitDataUrl(std::string_view url) {
  for (const auto& [type, prefix] : kPrefixes) {
    if (url.substr(0, prefix.size()) != prefix) continue;
    const std::string_view text = url.substr(prefix.size());
    const size_t end = std::min(text.find('='), text.size());
    if (end == 0 || text.size() - end > 2 || text.size() % 4 != 0) return std::nullopt;
    if (text.substr(0, end).find_first_not_of(kAlphabet) != text.npos) return std::nullopt;
    if (text.substr(end).find_first_not_of('=') != text.npos) return std::nullopt;
    return std::pair{type, text};
  }
  return std::nullopt;
}

std::optional<Picture> decode(std::string_view dataUrl, size_t maxBytes, unsigned maxSide) {
  if (dataUrl.size() > maxBytes) return std::nullopt;
  const auto split = splitDataUrl(dataUrl);
  if (!split) return std::nullopt;
  std::optional<std::string> bytes = decodeBase64(split->second);
  if (!bytes) return std::nullopt;
  const std::optional<Size> size = pictureSize(split->first, *bytes);
  if (!size || size->first == 0 || size->second == 0) return std::nullopt;
  if (size->first > maxSide || size->second > maxSide) return std::nullopt;
  Picture picture;
  picture.type = split->first;
  picture.bytes = std::move(*bytes);
  picture.width = size->first;
  picture.height = size->second;
  return picture;
}

}  // namespace

std::optional<std::string> decodeBase64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  unsigned bitCount = 0;
  for (const char c : text) {
    const size_t value = kAlphabet.find(c);
    if (value == kAlphabet.npos) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    bitCount += 6;
    if (bitCount < 8) continue;
    bitCount -= 8;
    out.push_back(static_cast<char>((bits >> bitCount) & 0xFF));
  }
  return out;
}

std::optional<Size> pictureSize(PictureType type, std::string_view bytes) {
  const Bytes file(bytes);
  switch (type) {
    case PictureType::kPng:
      return pngSize(file);
    case PictureType::kJpeg:
      return jpegSize(file);
    case PictureType::kWebp:
      return webpSize(file);
    case PictureType::kGif:
      return gifSize(file);
  }
  return {};
}

std::optional<Picture> decodePicture(std::string_view dataUrl) {
  return decode(dataUrl, kSpritePictureBytes, kPictureSide);
}

std::optional<Picture> decodePhoto(std::string_view dataUrl) {
  return decode(dataUrl, kSpritePhotoBytes, kPhotoSide);
}

std::string encodePicture(PictureType type, std::string_view bytes) {
  std::string out;
  for (const auto& [known, prefix] : kPrefixes) {
    if (known == type) out = prefix;
  }
  const Bytes file(bytes);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const unsigned triple = file.at(at) << 16 | file.at(at + 1) << 8 | file.at(at + 2);
    const size_t remaining = bytes.size() - at;
    out.push_back(kAlphabet[triple >> 18 & 63]);
    out.push_back(kAlphabet[triple >> 12 & 63]);
    out.push_back(remaining > 1 ? kAlphabet[triple >> 6 & 63] : '=');
    out.push_back(remaining > 2 ? kAlphabet[triple & 63] : '=');
  }
  return out;
}

namespace {

bool isIdChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

/** Counts the code points of valid UTF-8. */
size_t codePoints(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool isWithin(double value, double least, double most) {
  return std::isfinite(value) && value >= least && value <= most;
}

/** Returns the error in a sprite, or null. The only list of the format's bounds. */
const char* faultOf(const Sprite& sprite) {
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

/** Writes a number with at most six places, and with a point in every locale. */
std::string writeNumber(double value) {
  const long long millionths = std::llround(value * 1e6);
  const auto magnitude = static_cast<unsigned long long>(millionths < 0 ? -millionths : millionths);
  std::string out = (millionths < 0 ? "-" : "") + std::to_string(magnitude / 1000000);
  std::string fraction = std::to_string(magnitude % 1000000);
  fraction.insert(0, 6 - fraction.size(), '0');
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return fraction.empty() ? out : out + "." + fraction;
}

/** Returns the member with that name if it is text; else null. */
std::string* textMember(const std::string& name, Sprite* sprite) {
  return name == "id"        ? &sprite->id
         : name == "picture" ? &sprite->picture
         : name == "name"    ? &sprite->name
         : name == "by"      ? &sprite->by
         : name == "photo"   ? &sprite->photo
                             : nullptr;
}

/** Reads the member `name` into `sprite`; returns the error, or null. */
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

  // Of a repeated member the last one counts, as in JSON.parse: so first collect, then check.
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
    const char* fault = readMember(name, slice, &sprite);
    if (fault != nullptr) return refuse(fault);
  }
  const char* fault = faultOf(sprite);
  if (fault != nullptr) return refuse(fault);
  return sprite;
}

std::string writeSprite(const Sprite& sprite, size_t most) {
  const char* fault = faultOf(sprite);
  if (fault != nullptr) throw std::invalid_argument(std::string("sprite: ") + fault);
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
  static constexpr char kLetters[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  std::random_device random;
  std::string id;
  for (int i = 0; i < 22; i++) id.push_back(kLetters[random() & 63]);
  return id;
}

}  // namespace sprites
