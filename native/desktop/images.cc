#include "images.h"

#include <SDL.h>
#include <SDL_image.h>
#include <sprites/sprite.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

namespace sprites::desktop {

namespace {

constexpr int kFirstSide = 192;  // pixels; larger than a sprite is shown anywhere
constexpr int kLeastSide = 8;
constexpr int kJpegQuality = 80;
constexpr std::streamoff kFileMost = 32 << 20;  // bytes; as on the web page

struct SurfaceEnd {
  void operator()(SDL_Surface* surface) const { SDL_FreeSurface(surface); }
};
using Surface = std::unique_ptr<SDL_Surface, SurfaceEnd>;

struct StreamEnd {
  void operator()(SDL_RWops* stream) const { SDL_FreeRW(stream); }
};
using Stream = std::unique_ptr<SDL_RWops, StreamEnd>;

std::optional<Image> imageOf(SDL_Surface* surface) {
  if (surface == nullptr) return std::nullopt;
  const Surface rgba(SDL_ConvertSurfaceFormat(surface, SDL_PIXELFORMAT_RGBA32, 0));
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

// A stream that appends to a std::string, which grows as it must. Into memory of a fixed size
// SDL_image drops what does not fit, finishes the file, and calls that a success.

std::string* fileOf(SDL_RWops* stream) {
  return static_cast<std::string*>(stream->hidden.unknown.data1);
}

Sint64 fileSize(SDL_RWops* stream) { return static_cast<Sint64>(fileOf(stream)->size()); }

/** Only tells where the end is: nothing is written anywhere else. */
Sint64 fileSeek(SDL_RWops* stream, Sint64 offset, int whence) {
  const Sint64 end = fileSize(stream);
  const bool atEnd = whence == RW_SEEK_SET ? offset == end : offset == 0;
  return atEnd ? end : SDL_SetError("this stream only appends");
}

size_t fileRead(SDL_RWops* /*stream*/, void* /*to*/, size_t /*size*/, size_t /*count*/) {
  return 0;
}

/** Called by C: nothing may be thrown out of it. Answers 0 when there is no memory. */
size_t fileWrite(SDL_RWops* stream, const void* from, size_t size, size_t count) noexcept {
  try {
    fileOf(stream)->append(static_cast<const char*>(from), size * count);
    return count;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

int fileClose(SDL_RWops* /*stream*/) { return 0; }

Stream appendTo(std::string* file) {
  Stream stream(SDL_AllocRW());
  if (!stream) return nullptr;
  stream->type = SDL_RWOPS_UNKNOWN;
  stream->size = fileSize;
  stream->seek = fileSeek;
  stream->read = fileRead;
  stream->write = fileWrite;
  stream->close = fileClose;
  stream->hidden.unknown.data1 = file;
  return stream;
}

/**
 * The image as a data URL of that type, or "" where that is longer than a sprite may carry, or is
 * not the image: what was encoded is decoded again before it is let out.
 */
std::string encode(Image image, PictureType type) {
  const Surface surface(SDL_CreateRGBSurfaceWithFormatFrom(
      image.pixels.data(), image.width, image.height, 32, image.width * 4, SDL_PIXELFORMAT_RGBA32));
  std::string file;
  const Stream stream = appendTo(&file);
  if (!surface || !stream) return "";
  const bool saved = type == PictureType::kPng
                         ? IMG_SavePNG_RW(surface.get(), stream.get(), 0) == 0
                         : IMG_SaveJPG_RW(surface.get(), stream.get(), 0, kJpegQuality) == 0;
  if (!saved || file.size() > kSpritePictureBytes) return "";
  std::string url = encodePicture(type, file);
  if (url.size() > kSpritePictureBytes) return "";
  const std::optional<Image> again = imageOfUrl(url);
  const bool same = again && again->width == image.width && again->height == image.height &&
                    (type != PictureType::kPng || again->pixels == image.pixels);
  return same ? url : "";
}

/** What SDL_image calls the decoder of a type. */
const char* decoderOf(PictureType type) {
  switch (type) {
    case PictureType::kPng:
      return "PNG";
    case PictureType::kJpeg:
      return "JPG";
    case PictureType::kWebp:
      return "WEBP";
    case PictureType::kGif:
      break;
  }
  return "GIF";
}

/** Why a file can't be opened as one that may be an image, or "". */
std::string unopened(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    const int code = errno;
    return "it can't be opened (" + std::generic_category().message(code) + ")";
  }
  const std::streamoff size = file.tellg();
  file.seekg(0);
  if (file.get() == std::char_traits<char>::eof()) {
    return size == 0 ? "the file is empty" : "it can't be read";
  }
  return size > kFileMost ? "the file is larger than 32 MB" : "";
}

}  // namespace

std::optional<std::string> pictureOfFile(const std::string& path, std::string* why) {
  *why = unopened(path);
  if (!why->empty()) return std::nullopt;
  const std::optional<Image> image = imageOf(Surface(IMG_Load(path.c_str())).get());
  if (!image) {
    // SDL says "Unsupported image format" or "Error reading the PNG file": of no use to a person.
    *why = "it is no image that can be read here (PNG, JPEG, WebP, GIF), or it is damaged";
    return std::nullopt;
  }
  const bool opaque = isOpaque(*image);
  for (int side = kFirstSide; side >= kLeastSide; side = side * 7 / 8) {
    const Image small = fitted(*image, side);
    std::string url = encode(small, PictureType::kPng);
    if (url.empty() && opaque) url = encode(small, PictureType::kJpeg);
    if (!url.empty()) return url;
  }
  *why = "it can't be made small enough to be thrown";
  return std::nullopt;
}

std::optional<Image> imageOfPicture(const Picture& picture) {
  SDL_RWops* memory =
      SDL_RWFromConstMem(picture.bytes.data(), static_cast<int>(picture.bytes.size()));
  if (memory == nullptr) return std::nullopt;
  const Surface surface(IMG_LoadTyped_RW(memory, 1, decoderOf(picture.type)));
  if (!surface || surface->w > static_cast<int>(picture.width) ||
      surface->h > static_cast<int>(picture.height)) {
    return std::nullopt;
  }
  return imageOf(surface.get());
}

std::optional<Image> imageOfUrl(const std::string& dataUrl) {
  const std::optional<Picture> picture = decodePicture(dataUrl);
  return picture ? imageOfPicture(*picture) : std::nullopt;
}

}  // namespace sprites::desktop
