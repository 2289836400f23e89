#include "images.h"

#include <SDL.h>
#include <SDL_image.h>
#include <sprites/sprite.h>

#include <cstring>
#include <memory>
#include <utility>

namespace sprites::desktop {

namespace {

constexpr int kFirstSide = 192;  // pixels; larger than a sprite is shown anywhere
constexpr int kLeastSide = 8;
constexpr int kJpegQuality = 80;

struct SurfaceEnd {
  void operator()(SDL_Surface* surface) const { SDL_FreeSurface(surface); }
};
using Surface = std::unique_ptr<SDL_Surface, SurfaceEnd>;

Surface toRgba(Surface surface) {
  if (!surface) return nullptr;
  return Surface(SDL_ConvertSurfaceFormat(surface.get(), SDL_PIXELFORMAT_RGBA32, 0));
}

std::optional<Image> imageOf(Surface surface) {
  const Surface rgba = toRgba(std::move(surface));
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

/** The image as a file of that type, or "" where it is longer than fits a throw. */
std::string encode(Image image, PictureType type) {
  const Surface surface(SDL_CreateRGBSurfaceWithFormatFrom(
      image.pixels.data(), image.width, image.height, 32, image.width * 4, SDL_PIXELFORMAT_RGBA32));
  std::string file(kSpritePictureBytes, '\0');
  SDL_RWops* memory = SDL_RWFromMem(file.data(), static_cast<int>(file.size()));
  if (!surface || memory == nullptr) return "";
  const bool saved = type == PictureType::kPng
                         ? IMG_SavePNG_RW(surface.get(), memory, 0) == 0
                         : IMG_SaveJPG_RW(surface.get(), memory, 0, kJpegQuality) == 0;
  const Sint64 length = SDL_RWtell(memory);
  SDL_RWclose(memory);
  // A file that ran into the end of the memory is not to be told from one that just fits.
  if (!saved || length <= 0 || length >= static_cast<Sint64>(file.size())) return "";
  file.resize(static_cast<size_t>(length));
  const std::string url = encodePicture(type, file);
  return url.size() <= kSpritePictureBytes ? url : "";
}

}  // namespace

std::optional<std::string> pictureOfFile(const std::string& path, std::string* why) {
  const std::optional<Image> image = imageOf(Surface(IMG_Load(path.c_str())));
  if (!image) {
    *why = path + ": " + IMG_GetError();
    return std::nullopt;
  }
  const bool opaque = isOpaque(*image);
  for (int side = kFirstSide; side >= kLeastSide; side = side * 7 / 8) {
    const Image small = fitted(*image, side);
    std::string url = encode(small, PictureType::kPng);
    if (url.empty() && opaque) url = encode(small, PictureType::kJpeg);
    if (!url.empty()) return url;
  }
  *why = path + ": can't be made small enough to be thrown";
  return std::nullopt;
}

std::optional<Image> imageOfPicture(const std::string& dataUrl) {
  std::optional<Picture> picture = decodePicture(dataUrl);
  if (!picture) return std::nullopt;
  const char* type = "";
  switch (picture->type) {
    case PictureType::kPng:
      type = "PNG";
      break;
    case PictureType::kJpeg:
      type = "JPG";
      break;
    case PictureType::kWebp:
      type = "WEBP";
      break;
    case PictureType::kGif:
      type = "GIF";
      break;
  }
  SDL_RWops* memory =
      SDL_RWFromConstMem(picture->bytes.data(), static_cast<int>(picture->bytes.size()));
  if (memory == nullptr) return std::nullopt;
  return imageOf(Surface(IMG_LoadTyped_RW(memory, 1, type)));
}

}  // namespace sprites::desktop
