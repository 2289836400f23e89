// A place as it is told to clients.
#ifndef SPRITES_PLACE_TEXT_H_
#define SPRITES_PLACE_TEXT_H_

#include <cstdio>
#include <string_view>

#include "torus.h"

namespace server {

/** The JSON text of a place. */
class PlaceText {
 public:
  explicit PlaceText(const Place& place)
      : length_(snprintf(text_, sizeof text_, R"({"row":%u,"column":%u,"rows":%u,"columns":%u})",
                         place.row, place.column, place.rows, place.columns)) {}

  std::string_view view() const { return {text_, static_cast<size_t>(length_)}; }

 private:
  char text_[128];
  int length_;
};

}  // namespace server

#endif  // SPRITES_PLACE_TEXT_H_
