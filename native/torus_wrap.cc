#include "wraps.h"

namespace sprites {

void initTorus(v8::Local<v8::Object> /*target*/) {}

}  // namespace sprites
