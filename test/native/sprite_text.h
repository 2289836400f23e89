// The sprite of the benches of native code.
#ifndef SPRITES_TEST_SPRITE_TEXT_H_
#define SPRITES_TEST_SPRITE_TEXT_H_

#include <string>

/** A sprite of about 200 bytes, as desktops throw it. */
inline const std::string kSprite =
    R"({"kind":"ball","id":"b7f3","x":0.4375,"y":12.5,"vx":-310.25,"vy":42,"spin":0.5,)"
    R"("color":"#e63946","radius":24,"label":"thrown by the handler at the window","trail":[1,2,3],)"
    R"("born":1732147200,"bounces":3})";

#endif  // SPRITES_TEST_SPRITE_TEXT_H_
