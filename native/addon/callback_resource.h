// The async_hooks resource for calls of an object's JavaScript functions.
#ifndef SPRITES_CALLBACK_RESOURCE_H_
#define SPRITES_CALLBACK_RESOURCE_H_

#include <nan.h>

namespace server {

/**
 * A Nan::AsyncResource that is never destroyed: it has no memory of its own, and its destructor
 * calls Node. An object that JavaScript no longer references is destroyed while V8 collects
 * garbage. There may be no context then, and Node would crash.
 */
class CallbackResource {
 public:
  explicit CallbackResource(const char* name) : resource_(name) {}
  ~CallbackResource() {}

  CallbackResource(const CallbackResource&) = delete;
  CallbackResource& operator=(const CallbackResource&) = delete;

  Nan::AsyncResource* get() { return &resource_; }

 private:
  // A member of a union is not destroyed with it.
  union {
    Nan::AsyncResource resource_;
  };
};

}  // namespace server

#endif  // SPRITES_CALLBACK_RESOURCE_H_
