#include "wraps.h"

namespace sprites {

void initPool(v8::Local<v8::Object> /*target*/) {}

}  // namespace sprites
