#include "json.h"

namespace sprites {

bool isJsonObject(const char* /*text*/, size_t /*length*/, unsigned /*depth*/) { return true; }

}  // namespace sprites
