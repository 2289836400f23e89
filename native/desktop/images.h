// Image files to sprites' pictures and back, over SDL_image.
#ifndef SPRITES_DESKTOP_IMAGES_H_
#define SPRITES_DESKTOP_IMAGES_H_

#include <sprites/sprite.h>

#include <optional>
#include <string>

#include "image.h"

namespace sprites::desktop {

/** What a server takes that has not said so yet, in bytes. */
constexpr size_t kUsualSprite = 16384;

/** An image file as data URLs that fit a throw. */
struct Pictures {
  std::string picture;  ///< that every reader shows
  std::string photo;    ///< larger; empty where the server has no room for one that shows more
};

/**
 * Makes an image file as much smaller as it must be: as WebP; without libwebp as PNG where that
 * keeps every pixel or where it has see-through parts, else as JPEG. Each data URL was decoded
 * again before it is answered.
 *
 * @param maxSprite bytes that the server takes
 * @param why where the answer is empty: the rest of a sentence that begins with the file's name
 */
std::optional<Pictures> picturesOfFile(const std::string& path, size_t maxSprite, std::string* why);

/**
 * The image in a picture that decodePicture() or decodePhoto() let pass; nothing where they did
 * not, or its bytes can't be decoded. Only the decoder its type names is asked. An image larger
 * than the picture says is nothing, too: then the decoder has read something else than they have.
 */
std::optional<Image> imageOfPicture(const std::optional<Picture>& picture);

/** A file of a sprite: what it shows, as large as it came. */
struct SpriteFile {
  std::string bytes;
  std::string ending;  ///< of its name: "webp", "png" and so on
};

/** What a sprite shows, large: its photo, its picture, or what is drawn of it. */
Image imageOfSprite(const Sprite& sprite);

/** The file that a sprite may be saved as; nothing where its picture is damaged. */
std::optional<SpriteFile> fileOfSprite(const Sprite& sprite);

/** The file's name without folders and ending, as far as it may name a sprite. */
std::string nameOf(const std::string& path);

/** What a file of the sprite is called, without ending: a stranger's text, and safe in any folder.
 */
std::string fileNameOf(const Sprite& sprite);

/**
 * Writes a file that was not there: `name`, or else `name 2` and so on.
 *
 * @param path what was written, or could not be
 * @return why not, the rest of a sentence; "" where it was written
 */
std::string writeNew(const std::string& folder, const std::string& name, const SpriteFile& file,
                     std::string* path);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_IMAGES_H_
