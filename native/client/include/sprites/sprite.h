// The sprite itself: the one format that web pages, desktops and load generators share.
//
// On the wire a sprite is one JSON object. The server lets any JSON object through, and strangers
// write them: readSprite() checks, and a sprite that it returns is safe to show. A sprite has:
//
//   {
//     "id":      "k3J_9-x",              1 to 64 of A-Z a-z 0-9 _ -
//     "picture": "rocket",               ball star ghost rocket fish flower, or
//                                        data:image/png|jpeg|webp|gif;base64,...  (<= 12000 bytes),
//                                        its first bytes of that type, 1 to 512 pixels a side
//     "at":      0.25,                   place on the edge: 0 is its top or left end, 1 the other
//     "speed":   [1.5, -0.2],            [across, along] in edge lengths a second, each |v| <= 20
//     "name":    "Ada's",                optional, up to 40 characters
//     "by":      "Ada",                  optional, up to 40 characters: the thrower's name
//     "photo":   "data:image/webp..."    optional, the picture enlarged: such a data URL (<=
//     1000000
//                                        bytes), 1 to 2048 pixels a side
//   }
//
// `across` is the speed in the direction of flight and never negative: out of the thrower's edge,
// into the receiver's. `along` is positive down (left and right edges) or right (upper and lower
// edges). Readers ignore other members.
//
// Threads: everything here is a pure function of its arguments and may be called from any thread.
#ifndef SPRITES_SPRITE_H_
#define SPRITES_SPRITE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sprites {

/** Names of the pictures that every reader can draw by itself. */
inline constexpr std::array<std::string_view, 6> kDrawnPictures = {"ball",   "star", "ghost",
                                                                   "rocket", "fish", "flower"};

constexpr size_t kSpriteIdChars = 64;          ///< longest id
constexpr size_t kSpriteNameChars = 40;        ///< longest name, in Unicode code points
constexpr size_t kSpritePictureBytes = 12000;  ///< longest data URL of a picture
constexpr size_t kSpritePhotoBytes = 1000000;  ///< longest data URL of a photo
constexpr double kSpriteSpeedMax = 20.0;  ///< highest speed, in edge lengths a second, each way

/** A sprite. The defaults are not a valid sprite: it needs an id and a picture. */
struct Sprite {
  std::string id;       ///< unique among all sprites; chosen by the sprite's maker
  std::string picture;  ///< one of kDrawnPictures, or a data URL
  double at = 0.5;      ///< 0..1: place along the edge as a share of the edge's length
  double across = 0;    ///< 0..20: edge lengths a second in the direction of flight
  double along = 0;     ///< -20..20: edge lengths a second down or to the right
  std::string name;     ///< UTF-8; empty: none
  std::string by;       ///< the name of the desktop that threw it, UTF-8; empty: none
  std::string photo;    ///< a data URL: the picture enlarged; empty: none
};

/**
 * Reads a sprite.
 *
 * @param json  JSON text in UTF-8, as onSprite gets it. May be any bytes.
 * @param why   if not null and the result is empty: set to the error, one line for a log. It never
 *              repeats bytes of the input.
 * @return the sprite, or std::nullopt when a member is missing, of the wrong type or out of its
 *         bounds. A faulty sprite is never repaired.
 * Throws nothing but std::bad_alloc. O(length).
 */
std::optional<Sprite> readSprite(std::string_view json, std::string* why = nullptr);

/**
 * Writes a sprite as JSON in UTF-8, in one line; numbers are rounded to six places.
 *
 * @param most  longest JSON, in bytes: the photo is left out where it would be longer
 * @throws std::invalid_argument when readSprite() would refuse it, saying why.
 */
std::string writeSprite(const Sprite& sprite, size_t most = SIZE_MAX);

/** Returns a new id for a sprite: 22 random characters, 128 bits from std::random_device. */
std::string newSpriteId();

/** Returns whether a sprite or a desktop may have that name: UTF-8, up to kSpriteNameChars. */
bool isSpriteName(std::string_view name);

/** Returns whether `picture` is one of kDrawnPictures. */
bool isDrawnPicture(std::string_view picture);

/** Image formats that a sprite's picture may have. */
enum class PictureType : uint8_t { kPng, kJpeg, kWebp, kGif };

/** A picture or a photo, decoded from its data URL. */
struct Picture {
  PictureType type = PictureType::kPng;
  std::string bytes;    ///< the image file
  unsigned width = 0;   ///< pixels; of a GIF: for its screen and all of its frames
  unsigned height = 0;  ///< pixels, as `width`
};

constexpr unsigned kPictureSide = 512;  ///< most pixels a side for decodePicture()
constexpr unsigned kPhotoSide = 2048;   ///< most pixels a side for decodePhoto()

/**
 * Decodes the picture of a data URL, and checks the file's first bytes. Returns std::nullopt for a
 * file of another type than the URL names, without a readable size or with more than kPictureSide
 * pixels a side. An image decoder then needs at most 4 * width * height bytes for a frame, so nine
 * thousand bytes can't make it allocate gigabytes. A sprite from readSprite() passes this check;
 * its file may still be damaged further in, which only an image decoder detects.
 */
std::optional<Picture> decodePicture(std::string_view dataUrl);

/** Decodes a photo as decodePicture() does a picture: up to kSpritePhotoBytes and kPhotoSide. */
std::optional<Picture> decodePhoto(std::string_view dataUrl);

/** Returns the data URL of an image file. It may be longer than kSpritePictureBytes. */
std::string encodePicture(PictureType type, std::string_view bytes);

}  // namespace sprites

#endif  // SPRITES_SPRITE_H_
