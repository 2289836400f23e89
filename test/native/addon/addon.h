// Functions by which each *_wrap.cc adds its exports to the tests' addon.
#ifndef SPRITES_TEST_ADDON_H_
#define SPRITES_TEST_ADDON_H_

#include <nan.h>

namespace server {

void initTorus(v8::Local<v8::Object> target);
void initReaders(v8::Local<v8::Object> target);

}  // namespace server

#endif  // SPRITES_TEST_ADDON_H_
