// The strict readers, for the tests and fuzzers that hold them to Node's: conversion alone. The
// server itself calls them from C++.
#include <array>
#include <string>

#include "http.h"
#include "json.h"
#include "wraps.h"

namespace sprites {
namespace {

using v8::Local;
using v8::Object;
using v8::Value;

struct Bytes {
  const char* data;
  size_t length;
};

/** The bytes of the call's first argument, a Buffer or other view; throws when it is none. */
bool bytesOf(const Nan::FunctionCallbackInfo<Value>& info, Bytes* out) {
  if (info.Length() < 1 || !node::Buffer::HasInstance(info[0])) {
    Nan::ThrowTypeError("the first argument must be a Buffer or Uint8Array");
    return false;
  }
  *out = {node::Buffer::Data(info[0]), node::Buffer::Length(info[0])};
  return true;
}

void set(Local<Object> object, const char* name, Local<Value> value) {
  Nan::Set(object, Nan::New(name).ToLocalChecked(), value).Check();
}

Local<Value> textOf(const std::string& text) { return Nan::New(text).ToLocalChecked(); }

Local<Value> numberOrNull(bool given, uint64_t value) {
  if (!given) return Nan::Null();
  return Nan::New(static_cast<double>(value));
}

/** A span's bytes, one character each, or null. */
Local<Value> spanOrNull(const Bytes& bytes, const HeadSpan& span) {
  if (span.length == 0) return Nan::Null();
  return Nan::Encode(bytes.data + span.offset, span.length, Nan::BINARY);
}

Local<Value> uuidOf(const uint8_t (&id)[16]) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < sizeof id; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[id[i] >> 4];
    text += kDigits[id[i] & 0xf];
  }
  return textOf(text);
}

Local<Object> requestObject(const Bytes& bytes, const HotRequest& request) {
  constexpr std::array<const char*, 4> kRoutes = {"join", "poll", "throw", "leave"};
  constexpr std::array<const char*, 4> kEdges = {"left", "right", "up", "down"};
  const bool isPoll = request.route == Route::kPoll;

  Local<Value> id = Nan::Null();
  if (request.route != Route::kJoin) id = uuidOf(request.id);
  Local<Value> edge = Nan::Null();
  if (request.route == Route::kThrow) edge = textOf(kEdges[static_cast<size_t>(request.edge)]);

  Local<Object> object = Nan::New<Object>();
  set(object, "route", textOf(kRoutes[static_cast<size_t>(request.route)]));
  set(object, "method", textOf(isPoll ? "GET" : "POST"));
  set(object, "id", id);
  set(object, "edge", edge);
  set(object, "ack", numberOrNull(isPoll, request.ack));
  set(object, "hold", numberOrNull(request.hasHold, request.hold));
  set(object, "n", numberOrNull(request.hasNumber, request.number));
  set(object, "headLength", Nan::New(request.headLength));
  set(object, "bodyLength", Nan::New(request.bodyLength));
  set(object, "forwardedFor", spanOrNull(bytes, request.forwardedFor));
  set(object, "forwarded", spanOrNull(bytes, request.forwarded));
  return object;
}

/** readHead(buffer): null when incomplete, false when handed over, or the request read. */
NAN_METHOD(readHeadMethod) {
  Bytes bytes;
  if (!bytesOf(info, &bytes)) return;
  HotRequest request;
  switch (readHead(bytes.data, bytes.length, &request)) {
    case Verdict::kIncomplete:
      info.GetReturnValue().SetNull();
      return;
    case Verdict::kHandOver:
      info.GetReturnValue().Set(false);
      return;
    case Verdict::kHot:
      info.GetReturnValue().Set(requestObject(bytes, request));
      return;
  }
}

/** isJsonObject(buffer[, depth]): whether the bytes are one JSON object nested no deeper. */
NAN_METHOD(isJsonObjectMethod) {
  Bytes bytes;
  if (!bytesOf(info, &bytes)) return;
  const unsigned depth =
      info.Length() > 1 ? Nan::To<uint32_t>(info[1]).FromMaybe(kSpriteDepth) : kSpriteDepth;
  info.GetReturnValue().Set(isJsonObject(bytes.data, bytes.length, depth));
}

}  // namespace

void initReaders(Local<Object> target) {
  Nan::SetMethod(target, "readHead", readHeadMethod);
  Nan::SetMethod(target, "isJsonObject", isJsonObjectMethod);
}

}  // namespace sprites
