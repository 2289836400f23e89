// The resource that calls of an object's JavaScript functions belong to, for async_hooks.
#ifndef SPRITES_CALLBACK_RESOURCE_H_
#define SPRITES_CALLBACK_RESOURCE_H_

#include <nan.h>

namespace server {

/**
 * A Nan::AsyncResource that is never destroyed: it has no memory of its own, and its destructor
 * calls Node. An object that JavaScript has let go of ends while V8 collects garbage; there may be
 * no context then, and Node crashes.
 */
class CallbackResource {
 public:
  explicit CallbackResource(const char* name) : resource_(name) {}
  ~CallbackResource() {}

  CallbackResource(const CallbackResource&) = delete;
  CallbackResource& operator=(const CallbackResource&) = delete;

  Nan::AsyncResource* get() { return &resource_; }

 private:
  // What is in a union is not destroyed with it.
  union {
    Nan::AsyncResource resource_;
  };
};

}  // namespace server

#endif  // SPRITES_CALLBACK_RESOURCE_H_
