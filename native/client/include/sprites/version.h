// The version of these headers, which CMake reads from here. version() returns the library's.
#ifndef SPRITES_VERSION_H_
#define SPRITES_VERSION_H_

#define SPRITES_VERSION_MAJOR 0
#define SPRITES_VERSION_MINOR 1
#define SPRITES_VERSION_PATCH 0
#define SPRITES_VERSION "0.1.0"

/** A number for comparisons: #if SPRITES_VERSION_NUMBER >= SPRITES_VERSION_AT(0, 2, 0) */
#define SPRITES_VERSION_AT(major, minor, patch) (((major)*1000 + (minor)) * 1000 + (patch))
#define SPRITES_VERSION_NUMBER \
  SPRITES_VERSION_AT(SPRITES_VERSION_MAJOR, SPRITES_VERSION_MINOR, SPRITES_VERSION_PATCH)

#endif  // SPRITES_VERSION_H_
