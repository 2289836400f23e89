// Converts image files to sprites' pictures and back, over SDL_image.
#ifndef SPRITES_DESKTOP_IMAGES_H_
#define SPRITES_DESKTOP_IMAGES_H_

#include <sprites/sprite.h>

#include <optional>
#include <string>

#include "image.h"

namespace sprites::desktop {

/** Assumed longest sprite, in bytes, until the server has told its limit. */
constexpr size_t kUsualSprite = 16384;

/** An image file as data URLs that fit a throw. */
struct Pictures {
  std::string picture;  ///< shown by every reader
  std::string photo;    ///< larger; empty if none fits, or if it would show no more
};

/**
 * Makes an image file small enough for a throw. A small image becomes a PNG with every pixel, if
 * that fits; others become WebP, or without libwebp JPEG (PNG if parts are transparent). Each data
 * URL is checked by decoding it.
 *
 * @param maxSprite longest sprite that the server accepts, in bytes
 * @param why set if the result is empty: the rest of a sentence that begins with the file's name
 */
std::optional<Pictures> picturesOfFile(const std::string& path, size_t maxSprite, std::string* why);

/**
 * Decodes the image of a picture from decodePicture() or decodePhoto(), with the decoder of its
 * type only. Returns std::nullopt without a picture, if its bytes can't be decoded, or if the image
 * is larger than the picture says: then the decoder read other bytes than those functions.
 */
std::optional<Image> imageOfPicture(const std::optional<Picture>& picture);

/** An image file of a sprite, in its original size. */
struct SpriteFile {
  std::string bytes;
  std::string ending;  ///< of the file's name: "webp", "png" and so on
};

/** Returns a sprite's largest image: its photo, its picture, or a drawing. */
Image imageOfSprite(const Sprite& sprite);

/** Returns the file to save a sprite as; std::nullopt if its picture is damaged. */
std::optional<SpriteFile> fileOfSprite(const Sprite& sprite);

/** Returns the file's name without folders and ending, cut to a valid name of a sprite. */
std::string spriteNameOf(const std::string& path);

/** Returns a file's name for the sprite, without ending: a stranger's text, safe in any folder. */
std::string fileNameOf(const Sprite& sprite);

/**
 * Writes a new file: `name`, or `name 2` and so on if that exists.
 *
 * @param path set to the file's path, also if it could not be written
 * @return the error, the rest of a sentence; "" on success
 */
std::string writeNewFile(const std::string& folder, const std::string& name, const SpriteFile& file,
                         std::string* path);

}  // namespace sprites::desktop

#endif  // SPRITES_DESKTOP_IMAGES_H_
