// Sources as a JavaScript object, for the connections that Node serves. Conversion only.
#include <uv.h>

#include "convert.h"
#include "sources.h"
#include "wraps.h"

namespace sprites {

namespace {

using v8::Local;
using v8::Object;
using v8::Value;

/** An address that can't be read counts as one and the same. */
Address addressOf(Local<Value> text) {
  Address address;
  Address::read(textOf(text), &address);
  return address;
}

}  // namespace

class SourcesObject : public Nan::ObjectWrap {
 public:
  static void init(Local<Object> target) {
    defineClass(target, "Sources", create,
                {
                    {"open", open},
                    {"close", close},
                    {"join", join},
                    {"size", size},
                });
    Nan::SetMethod(target, "forwardedAddress", forwarded);
  }

 private:
  friend Sources* sourcesOf(Local<Value> sources);

  explicit SourcesObject(const SourcesOptions& options) : sources_(options) {}

  // new Sources({connections, joinRate, joinBurst})
  static void create(const Nan::FunctionCallbackInfo<Value>& info) {
    auto* object = new SourcesObject({.connections = uint32In(info[0], "connections"),
                                      .joinRate = uint32In(info[0], "joinRate"),
                                      .joinBurst = uint32In(info[0], "joinBurst")});
    object->Wrap(info.This());
    info.GetReturnValue().Set(info.This());
  }

  // open(address) → whether one more connection may be
  static void open(const Nan::FunctionCallbackInfo<Value>& info) {
    info.GetReturnValue().Set(unwrap<SourcesObject>(info)->sources_.open(addressOf(info[0])));
  }

  // close(address)
  static void close(const Nan::FunctionCallbackInfo<Value>& info) {
    unwrap<SourcesObject>(info)->sources_.close(addressOf(info[0]));
  }

  // join(address) → whether a client may join
  static void join(const Nan::FunctionCallbackInfo<Value>& info) {
    const uint64_t now = uv_hrtime() / 1000000;
    info.GetReturnValue().Set(unwrap<SourcesObject>(info)->sources_.join(addressOf(info[0]), now));
  }

  // size() → addresses something is counted of
  static void size(const Nan::FunctionCallbackInfo<Value>& info) {
    Sources& sources = unwrap<SourcesObject>(info)->sources_;
    sources.tick(uv_hrtime() / 1000000);
    info.GetReturnValue().Set(static_cast<double>(sources.size()));
  }

  // forwardedAddress(X-Forwarded-For, Forwarded) → the client's address, or null
  static void forwarded(const Nan::FunctionCallbackInfo<Value>& info) {
    Address address;
    if (forwardedAddress(textOf(info[0]), textOf(info[1]), &address)) {
      info.GetReturnValue().Set(Nan::New(address.text()).ToLocalChecked());
    } else {
      info.GetReturnValue().SetNull();
    }
  }

  Sources sources_;
};

Sources* sourcesOf(Local<Value> sources) {
  return &Nan::ObjectWrap::Unwrap<SourcesObject>(sources.As<Object>())->sources_;
}

void initSources(Local<Object> target) { SourcesObject::init(target); }

}  // namespace sprites
