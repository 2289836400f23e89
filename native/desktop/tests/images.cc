// Tests of images in files and in sprites: SDL_image is needed, a window is not.
//
//   desktop_images FOLDER     image files are written there
#include "../images.h"

#include <SDL.h>
#include <SDL_image.h>
#include <sprites/sprite.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>

#include "../image.h"
#include "checks.h"

namespace {

using namespace sprites::desktop;
using sprites::Checks;

/**
 * Returns an image like a photograph: gradients with softer or harder noise. With `fadesOut` its
 * rim fades out.
 */
Image photograph(unsigned seed, int width, int height, bool fadesOut) {
  std::mt19937 random(seed);
  const int noise = 4 + static_cast<int>(seed * 19 % 120);
  std::uniform_int_distribution<int> grain(-noise, noise);
  Image image{width, height, {}};
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++) {
      const double right = static_cast<double>(x) / width;
      const double down = static_cast<double>(y) / height;
      const double wave = 40 * std::sin(right * (3 + seed)) * std::cos(down * (2 + seed % 5));
      const auto byte = [&](double value) {
        return static_cast<uint8_t>(std::clamp(value + wave + grain(random), 0.0, 255.0));
      };
      image.pixels.push_back(byte(60 + 150 * right));
      image.pixels.push_back(byte(200 - 120 * down));
      image.pixels.push_back(byte(90 + 80 * (right + down) / 2));
      const double rim = std::min(std::min(right, 1 - right), std::min(down, 1 - down));
      image.pixels.push_back(fadesOut ? static_cast<uint8_t>(std::min(255.0, rim * 2000)) : 255);
    }
  }
  return image;
}

/** Writes an image as a PNG or JPEG file with SDL_image. */
bool save(Image image, const std::string& path) {
  SDL_Surface* surface = SDL_CreateRGBSurfaceWithFormatFrom(
      image.pixels.data(), image.width, image.height, 32, image.width * 4, SDL_PIXELFORMAT_RGBA32);
  const bool png = path.substr(path.size() - 3) == "png";
  const int saved =
      png ? IMG_SavePNG(surface, path.c_str()) : IMG_SaveJPG(surface, path.c_str(), 95);
  SDL_FreeSurface(surface);
  return saved == 0;
}

/** Returns the mean visible difference of two images of one size. */
double meanDifference(const Image& first, const Image& second) {
  double sum = 0;
  for (size_t i = 0; i < first.pixels.size(); i += 4) {
    for (size_t j = 0; j < 3; j++) {
      const double a = first.pixels[i + j] * first.pixels[i + 3] / 255.0;
      const double b = second.pixels[i + j] * second.pixels[i + 3] / 255.0;
      sum += std::abs(a - b);
    }
  }
  return sum / (static_cast<double>(first.pixels.size()) / 4 * 3);
}

#ifdef SPRITES_WEBP
constexpr char kOpaqueType[] = "webp";
constexpr char kTransparentType[] = "webp";
#else
constexpr char kOpaqueType[] = "jpeg";
constexpr char kTransparentType[] = "png";
#endif

/** Reads a file's image with SDL_image. */
Image imageOfFile(const std::string& path) {
  SDL_Surface* loaded = IMG_Load(path.c_str());
  SDL_Surface* rgba = SDL_ConvertSurfaceFormat(loaded, SDL_PIXELFORMAT_RGBA32, 0);
  Image file{rgba->w, rgba->h, {}};
  for (int y = 0; y < rgba->h; y++) {
    const auto* row = static_cast<const uint8_t*>(rgba->pixels) + y * rgba->pitch;
    file.pixels.insert(file.pixels.end(), row, row + rgba->w * 4);
  }
  SDL_FreeSurface(rgba);
  SDL_FreeSurface(loaded);
  return file;
}

/** Checks that an image is at least that large, and looks like the file. */
void checkImage(Checks& check, const Image& file, const Image& image, int minSide,
                const std::string& what) {
  check(std::max(image.width, image.height) >= minSide,
        "no smaller than it must be: " + what + ", " + std::to_string(image.width));
  const double difference = meanDifference(resized(file, image.width, image.height), image);
  check(difference < 25,
        "it looks like the file: " + what + ", off by " + std::to_string(difference));
}

/** Checks that a file becomes a picture of that type with at least that side. */
void checkFile(Checks& check, const std::string& path, int minSide, const std::string& type) {
  std::string why;
  const auto pictures = picturesOfFile(path, kUsualSprite, &why);
  check(pictures.has_value(), "a picture of " + path + ": " + why);
  if (!pictures) return;
  const std::string& url = pictures->picture;
  check(pictures->photo.empty(), "a usual server has no room for more: " + path);
  check(url.size() <= sprites::kSpritePictureBytes, "it fits a throw: " + path);
  check(url.find("data:image/" + type) == 0, "it is a " + type + ": " + path + url.substr(0, 20));
  const auto image = imageOfPicture(sprites::decodePicture(url));
  check(image.has_value(), "what would be thrown can be decoded: " + path);
  if (image) checkImage(check, imageOfFile(path), *image, minSide, path);
}

void checkPhotographs(Checks& check, const std::string& folder) {
  for (unsigned seed = 1; seed <= 13; seed += 3) {
    const std::string name = folder + "/photo" + std::to_string(seed);
    const int width = 240 + static_cast<int>(seed * 37 % 400);
    const int height = 240 + static_cast<int>(seed * 53 % 300);
    const Image opaque = photograph(seed, width, height, false);
    check(save(opaque, name + ".png") && save(opaque, name + ".jpg"), "written: " + name);
    checkFile(check, name + ".png", 60, kOpaqueType);
    checkFile(check, name + ".jpg", 60, kOpaqueType);
    check(save(photograph(seed, width, height, true), name + "-clear.png"), "written: " + name);
    checkFile(check, name + "-clear.png", 30, kTransparentType);
  }
}

/** Checks photos as large as servers accept them, and the files made of them. */
void checkPhotos(Checks& check, const std::string& folder) {
  const std::string path = folder + "/Grandma.jpg";
  check(save(photograph(1, 1600, 1200, false), path), "written: " + path);
  std::string why;
  size_t last = 0;
  for (const size_t most : {size_t{4096}, size_t{16384}, size_t{65536}, size_t{1048576}}) {
    const auto pictures = picturesOfFile(path, most, &why);
    check(pictures.has_value(), "for " + std::to_string(most) + ": " + why);
    if (!pictures) continue;
    sprites::Sprite sprite;
    sprite.id = std::string(sprites::kSpriteIdChars, 'i');
    sprite.name = sprite.by = std::string(sprites::kSpriteNameChars, '\1');
    sprite.picture = pictures->picture;
    sprite.photo = pictures->photo;
    check(sprites::writeSprite(sprite).size() <= most, "it fits " + std::to_string(most));
    check(sprite.photo.empty() == (most <= 16384), "a photo where there is room");
    const Image image = imageOfSprite(sprite);
    const auto side = static_cast<size_t>(std::max(image.width, image.height));
    check(side >= last, "the more room the larger: " + std::to_string(side));
    last = side;
    checkImage(check, imageOfFile(path), image, 40, path + std::to_string(most));
    const auto file = fileOfSprite(sprite);
    const std::string& url = sprite.photo.empty() ? sprite.picture : sprite.photo;
    check(file && file->bytes == sprites::decodePhoto(url)->bytes, "it is saved as it came");
  }
  check(last == 1600, "with much room every pixel");

  Image dots{40, 30, {}};
  for (int i = 0; i < 40 * 30; i++) {
    for (int part = 0; part < 4; part++)
      dots.pixels.push_back(i % 7 == 0 || part == 3 ? uint8_t{255} : uint8_t{0});
  }
  check(save(dots, folder + "/dots.png"), "written");
  const auto exact = picturesOfFile(folder + "/dots.png", 65536, &why);
  check(exact && imageOfPicture(sprites::decodePicture(exact->picture))->pixels == dots.pixels &&
            exact->photo.empty(),
        "what is small keeps every pixel");

  sprites::Sprite drawn;
  drawn.picture = "rocket";
  check(imageOfSprite(drawn).width > 256 && fileOfSprite(drawn)->ending == "png", "a drawn one");
  drawn.picture = "data:image/png;base64,AAAA";
  check(imageOfSprite(drawn).width > 256 && !fileOfSprite(drawn), "a torn one has no file");
}

void checkNames(Checks& check, const std::string& folder) {
  check(spriteNameOf("/a/b.c/Gro\xC3\x9F.tar.gz") == "Gro\xC3\x9F.tar", "a file's name");
  check(spriteNameOf(std::string(50, 'x')).size() == 40, "as far as it may be one");
  sprites::Sprite sprite;
  sprite.picture = "ghost";
  for (const auto& [name, file] : {std::pair<std::string, std::string>{"Boo", "Boo"},
                                   {"", "ghost"},
                                   {"../../etc/passwd", "etc passwd"},
                                   {".hidden", "hidden"},
                                   {" . ", "ghost"},
                                   {"a:b\nc", "a b c"},
                                   {"\u202Egpj\u009B2J", "gpj 2J"}}) {
    sprite.name = name;
    check(fileNameOf(sprite) == file, "a file of " + name + ": " + fileNameOf(sprite));
  }
  std::string path;
  for (const char* wanted : {"/x.png", "/x 2.png", "/x 3.png"}) {
    const std::string why = writeNewFile(folder, "x", {"bytes", "png"}, &path);
    check(why.empty() && path == folder + wanted, "nothing is written over: " + path);
  }
  check(writeNewFile(folder + "/nowhere", "x", {"bytes", "png"}, &path).find("No such file") !=
            std::string::npos,
        "where there is no such folder it says so");
}

/** Checks that files without an image are refused with a message that names the fault. */
void checkWords(Checks& check, const std::string& folder) {
  const auto checkRefusal = [&](const std::string& name, const std::string& word) {
    std::string why;
    const auto pictures = picturesOfFile(folder + "/" + name, kUsualSprite, &why);
    check(!pictures && why.find(word) != std::string::npos, name + ": " + why);
  };
  std::ofstream(folder + "/empty.png").close();
  std::ofstream(folder + "/text.png") << "no image";
  check(save(photograph(1, 300, 300, false), folder + "/cut.png"), "written");
  std::ifstream whole(folder + "/cut.png", std::ios::binary);
  std::string bytes(2000, '\0');
  whole.read(bytes.data(), 2000);
  std::ofstream(folder + "/half.png", std::ios::binary) << bytes;
  std::ofstream large(folder + "/large.png", std::ios::binary);
  large.seekp(33 << 20);
  large.put('x');
  large.close();
  checkRefusal("nowhere.png", "No such file");
  checkRefusal("empty.png", "empty");
  checkRefusal("text.png", "no image");
  checkRefusal("half.png", "damaged");
  checkRefusal("large.png", "32 MB");
  std::ofstream(folder + "/huge.png", std::ios::binary)
      << std::string("\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR\0\0\x40\0\0\0\x40\0", 24);
  checkRefusal("huge.png", "120 million pixels");
  checkRefusal("", "directory");
  check(mkfifo((folder + "/pipe").c_str(), 0600) == 0, "made");
  checkRefusal("pipe", "can't be opened");
}

/** Returns a JPEG of 2048 by 2048 pixels with so many scans of 18 bytes: a decoder passes over the
 * whole image for each. */
std::string jpegOfScans(int scans) {
  std::string file("\xFF\xD8\xFF\xC2\0\x0B\x08\x08\0\x08\0\x01\x01\x11\0", 15);
  file += std::string("\xFF\xDB\0\x43\0", 5) + std::string(64, '\1');
  file += std::string("\xFF\xC4\0\x14\x10\x01", 6) + std::string(15, '\0') + "\xE0";
  // Each scan has the code for "32,767 blocks have nothing more" three times.
  for (int i = 0; i < scans; i++) {
    file += std::string("\xFF\xDA\0\x08\x01\x01\0\x01\x3F\0\x7F\xFE\xFF\0\xFD\xFF\0\xF8", 18);
  }
  return file + "\xFF\xD9";
}

void checkScans(Checks& check) {
  for (const auto& [scans, good] : {std::pair{20, true}, {300, false}}) {
    const std::string url = encodePicture(sprites::PictureType::kJpeg, jpegOfScans(scans));
    const auto photo = sprites::decodePhoto(url);
    check(photo && imageOfPicture(photo).has_value() == good, std::to_string(scans) + " scans");
  }
}

/** Checks that a decoder's image must have the size that the first bytes gave. */
void checkSizes(Checks& check, const std::string& folder) {
  for (const auto& [name, type] : {std::pair{"size.png", sprites::PictureType::kPng},
                                   std::pair{"size.jpg", sprites::PictureType::kJpeg}}) {
    const std::string path = folder + "/" + name;
    check(save(photograph(1, 60, 40, false), path), "written: " + path);
    std::ifstream file(path, std::ios::binary);
    sprites::Picture picture;
    picture.type = type;
    picture.bytes.assign(std::istreambuf_iterator<char>(file), {});
    picture.width = 60;
    picture.height = 40;
    check(imageOfPicture(picture).has_value(), "as large as it says: " + path);
    picture.width = 59;
    check(!imageOfPicture(picture), "wider than it says: " + path);
    picture.width = 60;
    picture.height = 39;
    check(!imageOfPicture(picture), "higher than it says: " + path);
    picture.height = 40;
    picture.bytes.resize(20);
    check(!imageOfPicture(picture), "cut off: " + path);
  }
  check(!imageOfPicture(std::nullopt), "no image at all");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: desktop_images FOLDER" << std::endl;
    return 101;
  }
  Checks check;
  checkPhotographs(check, argv[1]);
  checkPhotos(check, argv[1]);
  checkNames(check, argv[1]);
  checkWords(check, argv[1]);
  checkSizes(check, argv[1]);
  checkScans(check);
  return check.printSummary();
}
