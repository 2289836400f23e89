#include "wraps.h"

namespace sprites {

void initReaders(v8::Local<v8::Object> /*target*/) {}

}  // namespace sprites
