#include "images.h"

#include <SDL.h>
#include <SDL_image.h>
#ifdef SPRITES_WEBP
#include <webp/encode.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "desktop.h"
#include "picture.h"

namespace sprites::desktop {

namespace {

constexpr size_t kMaxOtherBytes = 1024;  // most bytes of a sprite beside its picture and its photo
constexpr int kLeastSide = 8;
constexpr int kTries = 1000;      // most names to try for a new file
constexpr int kGoodQuality = 85;  // quality of an image that fits in its size
constexpr int kFairQuality = 60;  // quality of one that is too long: more pixels are worth more
constexpr double kShrinkExponent = 0.4;     // of the length's excess, for the next side to try
constexpr double kNearEnough = 1.08;        // precision of the largest side that fits, as a ratio
constexpr int kDrawnSide = 512;             // pixels a side of a drawn sprite, large
constexpr uintmax_t kMaxFile = 32 << 20;    // bytes; as on the web page
constexpr uint64_t kMaxPixels = 120000000;  // of a file: a gigabyte while it is made smaller
constexpr size_t kMaxScans = 100;           // of a JPEG; usual files have ten

using Surface = std::unique_ptr<SDL_Surface, Deleter<SDL_FreeSurface>>;
using Stream = std::unique_ptr<SDL_RWops, Deleter<SDL_RWclose>>;

std::optional<Image> imageOfSurface(Surface surface) {
  if (!surface) return std::nullopt;
  const Surface rgba(SDL_ConvertSurfaceFormat(surface.get(), SDL_PIXELFORMAT_RGBA32, 0));
  surface.reset();
  if (!rgba || rgba->w < 1 || rgba->h < 1) return std::nullopt;
  Image image{rgba->w, rgba->h, {}};
  const auto row = static_cast<size_t>(rgba->w) * 4;
  image.pixels.resize(row * static_cast<size_t>(rgba->h));
  for (int y = 0; y < rgba->h; y++) {
    std::memcpy(&image.pixels[row * static_cast<size_t>(y)],
                static_cast<const char*>(rgba->pixels) + static_cast<ptrdiff_t>(y) * rgba->pitch,
                row);
  }
  return image;
}

/** Returns an image file of that type, or "" if it can't be made. */
std::string encodedFile(Image image, PictureType type, int quality) {
#ifdef SPRITES_WEBP
  if (type == PictureType::kWebp) {
    uint8_t* bytes = nullptr;
    const size_t size = WebPEncodeRGBA(image.pixels.data(), image.width, image.height,
                                       image.width * 4, static_cast<float>(quality), &bytes);
    std::string file;
    if (bytes != nullptr) file.assign(reinterpret_cast<const char*>(bytes), size);
    WebPFree(bytes);
    return file;
  }
#endif
  const Surface surface(SDL_CreateRGBSurfaceWithFormatFrom(
      image.pixels.data(), image.width, image.height, 32, image.width * 4, SDL_PIXELFORMAT_RGBA32));
  // Longer than any file of so many pixels: SDL_image silently drops bytes that do not fit.
  std::string file(2 * image.pixels.size() + 65536, '\0');
  const Stream stream(SDL_RWFromMem(file.data(), static_cast<int>(file.size())));
  if (!surface || !stream) return "";
  const bool saved = type == PictureType::kPng
                         ? IMG_SavePNG_RW(surface.get(), stream.get(), 0) == 0
                         : IMG_SaveJPG_RW(surface.get(), stream.get(), 0, quality) == 0;
  file.resize(saved ? static_cast<size_t>(SDL_RWtell(stream.get())) : 0);
  return file;
}

/** An image to throw, and its type. */
struct TypedImage {
  Image image;
  PictureType type;
};

/** Returns whether a data URL can be decoded, and a PNG of full size has the image's pixels. */
bool isDecodable(const std::string& url, const TypedImage& typed) {
  const std::optional<Image> decoded = imageOfPicture(decodePhoto(url));
  if (!decoded) return false;
  return typed.type != PictureType::kPng || decoded->width != typed.image.width ||
         decoded->pixels == typed.image.pixels;
}

/** Returns a data URL of the image, its longer side at most `side` pixels. */
std::string encode(const TypedImage& typed, int side, int quality) {
  return encodePicture(typed.type, encodedFile(fitted(typed.image, side), typed.type, quality));
}

/** Returns the largest data URL of at most `maxBytes`; "" if none fits. As on the web page. */
std::string largestFitting(const TypedImage& typed, size_t maxBytes) {
  const int fullSide = std::max(typed.image.width, typed.image.height);
  std::string url = encode(typed, fullSide, kGoodQuality);
  if (url.size() <= maxBytes) return url;
  std::string fittingUrl;
  double fittingSide = 0;          // the longer side of `fittingUrl`
  double tooLargeSide = fullSide;  // a side that does not fit, or the image's own
  for (int side = fullSide; side >= kLeastSide;) {
    url = encode(typed, side, kFairQuality);
    const double smallerSide =
        side * std::min(1 / kNearEnough,
                        std::pow(static_cast<double>(maxBytes) / static_cast<double>(url.size()),
                                 kShrinkExponent));
    if (url.size() <= maxBytes) {
      fittingUrl = std::move(url);
      fittingSide = side;
    } else {
      tooLargeSide = side;
    }
    side =
        static_cast<int>(fittingUrl.empty() ? smallerSide : std::sqrt(fittingSide * tooLargeSide));
    if (!fittingUrl.empty() && side < fittingSide * std::sqrt(kNearEnough)) break;
  }
  return fittingUrl;
}

/** Returns the types to try, the best first; a JPEG has no transparent parts. */
std::vector<PictureType> typesFor(bool opaque) {
  std::vector<PictureType> types;
#ifdef SPRITES_WEBP
  types.push_back(PictureType::kWebp);
#endif
  types.push_back(opaque ? PictureType::kJpeg : PictureType::kPng);
  return types;
}

/** Returns a readable data URL of at most `maxBytes` bytes and `side` pixels a side, or "". */
std::string pictureOf(const Image& image, int side, size_t maxBytes) {
  TypedImage typed{fitted(image, side), PictureType::kPng};
  // A small image with few colors keeps every pixel.
  if (std::max(image.width, image.height) <= static_cast<int>(kPictureSide)) {
    std::string url = encode(typed, side, kGoodQuality);
    if (url.size() <= maxBytes && isDecodable(url, typed)) return url;
  }
  for (const PictureType type : typesFor(isOpaque(typed.image))) {
    typed.type = type;
    std::string url = largestFitting(typed, maxBytes);
    if (isDecodable(url, typed)) return url;
  }
  return "";
}

/** By type: SDL_image's name for the decoder, and a file's ending. */
constexpr const char* kDecoders[] = {"PNG", "JPG", "WEBP", "GIF"};
constexpr const char* kEndings[] = {"png", "jpg", "webp", "gif"};

constexpr char kHugeReason[] = "it has more than 120 million pixels";

bool isHuge(uint64_t width, uint64_t height) { return width * height > kMaxPixels; }

/** Returns whether the file's own size is huge: its decoder would allocate all of it. */
bool isHuge(std::string_view file) {
  for (const PictureType type :
       {PictureType::kPng, PictureType::kJpeg, PictureType::kWebp, PictureType::kGif}) {
    const auto size = pictureSize(type, file);
    if (size && isHuge(size->first, size->second)) return true;
  }
  return false;
}

/** Returns whether a JPEG has more scans than any camera makes: each costs a decoder a pass over
 * the whole image. */
bool hasManyScans(const Picture& picture) {
  constexpr std::string_view kScan = "\xFF\xDA";
  if (picture.type != PictureType::kJpeg) return false;
  size_t scans = 0;
  for (size_t at = 0; (at = picture.bytes.find(kScan, at)) != std::string::npos; at++) scans++;
  return scans > kMaxScans;
}

/** Returns why a file can't be read as an image (unreadable, empty, too large), or "". */
std::string readError(const std::string& path) {
  std::error_code code;
  const uintmax_t size = std::filesystem::file_size(path, code);
  std::ifstream file;
  if (!code) file.open(path, std::ios::binary);  // not a pipe: opening one would block
  if (!code && !file) code.assign(errno, std::generic_category());
  if (code) return "it can't be opened (" + code.message() + ")";
  if (size == 0) return "the file is empty";
  if (size > kMaxFile) return "the file is larger than 32 MB";
  std::string bytes(static_cast<size_t>(size), '\0');
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size))) return "it can't be read";
  return isHuge(bytes) ? kHugeReason : "";
}

}  // namespace

std::optional<Pictures> picturesOfFile(const std::string& path, size_t maxSprite,
                                       std::string* why) {
  *why = readError(path);
  if (!why->empty()) return std::nullopt;
  Surface surface(IMG_Load(path.c_str()));
  if (surface && isHuge(static_cast<uint64_t>(surface->w), static_cast<uint64_t>(surface->h))) {
    *why = kHugeReason;
    return std::nullopt;
  }
  const std::optional<Image> image = imageOfSurface(std::move(surface));
  if (!image) {
    // SDL's own errors ("Unsupported image format", "Error reading the PNG file") help nobody.
    *why = "it is no image that can be read here (PNG, JPEG, WebP, GIF), or it is damaged";
    return std::nullopt;
  }
  const Image large = fitted(*image, kPhotoSide);
  const size_t maxBytes = std::max(maxSprite, kMaxOtherBytes) - kMaxOtherBytes;
  Pictures pictures;
  pictures.picture = pictureOf(large, kPictureSide, std::min(maxBytes, kSpritePictureBytes));
  if (pictures.picture.empty()) {
    *why = "it can't be made small enough to be thrown";
    return std::nullopt;
  }
  const size_t photoRoom = std::min(maxBytes - pictures.picture.size(), kSpritePhotoBytes);
  const std::optional<Picture> shown = decodePicture(pictures.picture);
  const bool isFullSize = shown && static_cast<int>(shown->width) == image->width;
  if (!isFullSize && photoRoom > kSpritePictureBytes)
    pictures.photo = pictureOf(large, kPhotoSide, photoRoom);
  return pictures;
}

std::optional<Image> imageOfPicture(const std::optional<Picture>& picture) {
  if (!picture || hasManyScans(*picture)) return std::nullopt;
  SDL_RWops* memory =
      SDL_RWFromConstMem(picture->bytes.data(), static_cast<int>(picture->bytes.size()));
  if (memory == nullptr) return std::nullopt;
  Surface surface(IMG_LoadTyped_RW(memory, 1, kDecoders[static_cast<size_t>(picture->type)]));
  if (!surface || surface->w > static_cast<int>(picture->width) ||
      surface->h > static_cast<int>(picture->height)) {
    return std::nullopt;
  }
  return imageOfSurface(std::move(surface));
}

namespace {

std::optional<Picture> pictureOfSprite(const Sprite& sprite) {
  if (isDrawnPicture(sprite.picture)) return std::nullopt;
  return sprite.photo.empty() ? decodePicture(sprite.picture) : decodePhoto(sprite.photo);
}

}  // namespace

Image imageOfSprite(const Sprite& sprite) {
  std::optional<Image> image = imageOfPicture(pictureOfSprite(sprite));
  return image ? std::move(*image) : drawSticker(sprite.picture, kDrawnSide);
}

std::optional<SpriteFile> fileOfSprite(const Sprite& sprite) {
  if (isDrawnPicture(sprite.picture)) {
    return SpriteFile{encodedFile(imageOfSprite(sprite), PictureType::kPng, kGoodQuality), "png"};
  }
  std::optional<Picture> picture = pictureOfSprite(sprite);
  if (!imageOfPicture(picture)) return std::nullopt;
  return SpriteFile{std::move(picture->bytes), kEndings[static_cast<size_t>(picture->type)]};
}

std::string spriteNameOf(const std::string& path) {
  std::string name = path.substr(path.find_last_of("/\\") + 1);
  name = name.substr(0, name.find_last_of('.'));
  while (!isSpriteName(name)) name.pop_back();  // too long, or cut within a character
  return name;
}

std::string fileNameOf(const Sprite& sprite) {
  std::string name = printable(sprite.name);
  for (char& c : name) {
    if (std::string_view("\"*/:<>?\\|").find(c) != std::string_view::npos) c = ' ';
  }
  // No hidden file, and no folder above.
  name.erase(0, name.find_first_not_of(" ."));
  name.erase(name.find_last_not_of(" .") + 1);
  if (!name.empty()) return name;
  return isDrawnPicture(sprite.picture) ? sprite.picture : "picture";
}

std::string writeNewFile(const std::string& folder, const std::string& name, const SpriteFile& file,
                         std::string* path) {
  struct Close {
    void operator()(std::FILE* open) const { std::fclose(open); }
  };
  std::unique_ptr<std::FILE, Close> out;
  for (int i = 1; i <= kTries && !out; i++) {
    *path = folder;
    path->append("/").append(name);
    if (i > 1) *path += " " + std::to_string(i);
    *path += "." + file.ending;
    out.reset(std::fopen(path->c_str(), "wbx"));
    if (!out && errno != EEXIST) break;
  }
  const bool written =
      out && std::fwrite(file.bytes.data(), 1, file.bytes.size(), out.get()) == file.bytes.size();
  const bool opened = out != nullptr;
  const bool closed = opened && std::fclose(out.release()) == 0;
  if (written && closed) return "";
  const std::string why = std::generic_category().message(errno);
  if (opened) std::remove(path->c_str());  // the incomplete file
  return "it can't be written (" + why + ")";
}

}  // namespace sprites::desktop
