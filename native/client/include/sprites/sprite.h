// The sprite itself: the one format that web pages, desktops and load generators share.
//
// On the wire a sprite is one JSON object. The server lets any JSON object through, so whatever
// comes in was written by a stranger: readSprite() is the one gate, and what it lets pass is safe
// to show. It has:
//
//   {
//     "id":      "k3J_9-x",              1 to 64 of A-Z a-z 0-9 _ -
//     "picture": "rocket",               ball star ghost rocket fish flower, or
//                                        data:image/png|jpeg|webp|gif;base64,...  (<= 12000 bytes),
//                                        by its first bytes of that type, 1 to 512 pixels a side
//     "at":      0.25,                   where on the edge: 0 is its top or left end, 1 the other
//     "speed":   [1.5, -0.2],            [across, along] in edge lengths a second, each |v| <= 20
//     "name":    "Ada's",                optional, up to 40 characters
//     "by":      "Ada",                  optional, likewise: the name of the desktop that threw it
//     "photo":   "data:image/webp..."    optional: what the picture shows, larger: likewise a data
//                                        URL (<= 1000000 bytes), 1 to 2048 pixels a side
//   }
//
// `across` is the speed in the direction of flight and never negative: out of the thrower's edge,
// into the receiver's. `along` is positive down (left and right edges) or right (upper and lower
// edges). Members a reader does not know are ignored.
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

/** The pictures every reader can draw by itself. */
inline constexpr std::array<std::string_view, 6> kDrawnPictures = {"ball",   "star", "ghost",
                                                                   "rocket", "fish", "flower"};

constexpr size_t kSpriteIdChars = 64;          ///< longest id
constexpr size_t kSpriteNameChars = 40;        ///< longest name, in Unicode code points
constexpr size_t kSpritePictureBytes = 12000;  ///< longest data URL of a picture
constexpr size_t kSpritePhotoBytes = 1000000;  ///< and of a photo
constexpr double kSpriteSpeedMax = 20.0;       ///< fastest, in edge lengths a second, either way

/** A sprite as read or to be written. The defaults are no valid sprite: it needs id and picture. */
struct Sprite {
  std::string id;       ///< its own name among all sprites; chosen by its maker
  std::string picture;  ///< one of kDrawnPictures, or a data URL
  double at = 0.5;      ///< 0..1: place along the edge as a share of the edge's length
  double across = 0;    ///< 0..20: edge lengths a second in the direction of flight
  double along = 0;     ///< -20..20: edge lengths a second down or to the right
  std::string name;     ///< UTF-8; empty when it has none
  std::string by;       ///< the name of the desktop that threw it, UTF-8; empty when it has none
  std::string photo;    ///< a data URL: what the picture shows, larger; empty when it has none
};

/**
 * Reads a sprite.
 *
 * @param json  JSON text in UTF-8, as onSprite hands it over. Any bytes may be given.
 * @param why   if not null and the answer is empty: one line for a log on what is wrong. It never
 *              repeats bytes of the input.
 * @return the sprite, or nothing when anything in it is missing, of the wrong type or out of its
 *         bounds. Never a mended sprite: what is not right is refused whole.
 * Throws nothing but std::bad_alloc. O(length).
 */
std::optional<Sprite> readSprite(std::string_view json, std::string* why = nullptr);

/**
 * Writes a sprite as JSON in UTF-8, in one line; numbers are rounded to six places.
 *
 * @param most  bytes: where there would be more, its photo stays out
 * @throws std::invalid_argument when readSprite() would refuse it, saying why.
 */
std::string writeSprite(const Sprite& sprite, size_t most = SIZE_MAX);

/** A new id for a sprite: 22 random characters, 128 bits from std::random_device. */
std::string newSpriteId();

/** Whether a sprite may have that name, or a desktop: UTF-8, at most kSpriteNameChars of it. */
bool isSpriteName(std::string_view name);

/** Whether `picture` is one of kDrawnPictures. */
bool isDrawnPicture(std::string_view picture);

/** The picture types a sprite may carry. */
enum class PictureType : uint8_t { kPng, kJpeg, kWebp, kGif };

/** A picture or a photo, taken out of its data URL. */
struct Picture {
  PictureType type = PictureType::kPng;
  std::string bytes;    ///< the image file
  unsigned width = 0;   ///< pixels; for a GIF what its screen and all of its frames need
  unsigned height = 0;  ///< pixels, likewise
};

constexpr unsigned kPictureSide = 512;  ///< most pixels a side that decodePicture() lets pass
constexpr unsigned kPhotoSide = 2048;   ///< and decodePhoto()

/**
 * Takes a picture out of a data URL, and holds it against its own first bytes: a file that is not
 * of the type the URL names, has no readable size or is more than kPictureSide pixels a side gives
 * nothing. A decoder given the bytes needs no more than 4 * width * height bytes for a frame, so
 * nine thousand bytes can't ask it for gigabytes. What readSprite() let pass gives a picture; the
 * file may still be damaged further in, which only a decoder sees.
 */
std::optional<Picture> decodePicture(std::string_view dataUrl);

/** The same for a photo: up to kSpritePhotoBytes and kPhotoSide. */
std::optional<Picture> decodePhoto(std::string_view dataUrl);

/** The data URL of an image file. It may be longer than kSpritePictureBytes: look before use. */
std::string encodePicture(PictureType type, std::string_view bytes);

}  // namespace sprites

#endif  // SPRITES_SPRITE_H_
