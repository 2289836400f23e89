// What the C++ reader says of sprites that others wrote, line by line:
//
//   stdin   {"id":"a","picture":"ball","at":0.5,"speed":[1,0]}      one JSON text a line
//   stdout  {"id":"a","picture":"ball","at":0.5,"speed":[1,0]}      written again, or
//           refused: why
//
// With --write it reads nothing and prints sprites that the library itself makes.
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

#include "sprites/sprite.h"

namespace {

void writeSome() {
  sprites::Sprite sprite;
  sprite.id = sprites::newSpriteId();
  sprite.picture = "rocket";
  std::cout << sprites::writeSprite(sprite) << '\n';
  sprite.at = 1;
  sprite.across = sprites::kSpriteSpeedMax;
  sprite.along = -sprites::kSpriteSpeedMax;
  sprite.by = "Ada";
  sprite.name = "Gro\xC3\x9F \"\\\t\xF0\x9F\x9A\x80";
  std::cout << sprites::writeSprite(sprite) << '\n';
  sprite.at = 1.0 / 3;
  sprite.across = 1e-9;
  sprite.along = -1e-9;
  constexpr char kGif[] =
      "GIF89a\x01\0\x01\0\0\0\0"                     // one pixel, no colors of its own
      ",\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0;";  // and its only frame
  sprite.picture =
      sprites::encodePicture(sprites::PictureType::kGif, std::string_view(kGif, sizeof(kGif) - 1));
  std::cout << sprites::writeSprite(sprite) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--write") == 0) {
    writeSome();
    return 0;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string why;
    const auto sprite = sprites::readSprite(line, &why);
    std::cout << (sprite ? sprites::writeSprite(*sprite) : "refused: " + why) << '\n';
  }
  return 0;
}
