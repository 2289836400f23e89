// The strict readers, for the tests and fuzzers that hold them to Node's: conversion alone. The
// server itself calls them from C++.
#include <array>
#include <string_view>

#include "addon.h"
#include "addon/convert.h"
#include "base/json_reader.h"
#include "http/http_reader.h"
#include "http/watch_reader.h"

namespace server {
namespace {

/** Whether the call's first argument has bytes, a Buffer or other view; throws when it has none. */
bool hasBytes(const Nan::FunctionCallbackInfo<Value>& info) {
  if (info.Length() > 0 && node::Buffer::HasInstance(info[0])) return true;
  Nan::ThrowTypeError("the first argument must be a Buffer or Uint8Array");
  return false;
}

Local<Value> stringOf(std::string_view text) {
  return Nan::New(text.data(), static_cast<int>(text.size())).ToLocalChecked();
}

Local<Value> numberOrNull(bool given, uint64_t value) {
  if (!given) return Nan::Null();
  return Nan::New(static_cast<double>(value));
}

/** A span's bytes, one character each, or null. */
Local<Value> spanOrNull(std::string_view bytes, const HeadSpan& span) {
  if (span.length == 0) return Nan::Null();
  return Nan::Encode(bytes.data() + span.offset, span.length, Nan::BINARY);
}

Local<Value> uuidOf(const Id& id) {
  char text[36];
  id.format(text);
  return stringOf({text, sizeof text});
}

Local<Object> requestObject(std::string_view bytes, const HotRequest& request) {
  constexpr std::array<const char*, 10> kRoutes = {"join",  "poll",  "throw",  "leave", "feed",
                                                   "feeds", "place", "status", "ready", "arena"};
  constexpr std::array<const char*, 4> kEdges = {"left", "right", "up", "down"};
  const bool isPoll = request.route == Route::kPoll;
  const bool isReady = request.route == Route::kReady;

  Local<Value> id = Nan::Null();
  const bool isFeed = request.route == Route::kFeed;
  const bool isPlace = request.route == Route::kPlace || request.route == Route::kStatus;
  const bool isInput = request.route == Route::kInput;
  const bool hasId = isPoll || isPlace || isInput || request.route == Route::kThrow ||
                     request.route == Route::kLeave;
  if (hasId) id = uuidOf(request.id);
  Local<Value> edge = Nan::Null();
  if (request.route == Route::kThrow) edge = stringOf(kEdges[static_cast<size_t>(request.edge)]);

  Local<Object> object = Nan::New<Object>();
  set(object, "route", stringOf(kRoutes[static_cast<size_t>(request.route)]));
  const bool isGet = isPoll || isFeed || isPlace || isReady;
  set(object, "method", stringOf(isGet ? "GET" : "POST"));
  set(object, "id", id);
  set(object, "edge", edge);
  set(object, "ack", numberOrNull(isPoll, request.ack));
  set(object, "hold", numberOrNull(request.hasHold, request.hold));
  set(object, "n", numberOrNull(request.hasNumber, request.number));
  if (isFeed) {
    set(object, "key", spanOrNull(bytes, request.key));
    set(object, "after", spanOrNull(bytes, request.after));
    set(object, "delta", Nan::New(request.delta));
    set(object, "gzip", Nan::New(request.gzip));
    set(object, "stream", Nan::New(request.stream));
  }
  if (isInput) set(object, "arena", spanOrNull(bytes, request.key));
  set(object, "path", spanOrNull(bytes, request.path));
  set(object, "headLength", Nan::New(request.headLength));
  set(object, "bodyLength", Nan::New(request.bodyLength));
  set(object, "forwardedFor", spanOrNull(bytes, request.forwardedFor));
  set(object, "forwarded", spanOrNull(bytes, request.forwarded));
  return object;
}

/** readHead(buffer): null when incomplete, false when it is not hot, or the request read. */
NAN_METHOD(readHeadMethod) {
  if (!hasBytes(info)) return;
  const std::string_view bytes = bytesOf(info[0]);
  HotRequest request;
  switch (readHead(bytes.data(), bytes.size(), &request)) {
    case Verdict::kIncomplete:
      info.GetReturnValue().SetNull();
      return;
    case Verdict::kNotHot:
      info.GetReturnValue().Set(false);
      return;
    case Verdict::kHot:
      info.GetReturnValue().Set(requestObject(bytes, request));
      return;
  }
}

/** isJsonObject(buffer[, depth]): whether the bytes are one JSON object nested no deeper. */
NAN_METHOD(isJsonObjectMethod) {
  if (!hasBytes(info)) return;
  const std::string_view bytes = bytesOf(info[0]);
  const unsigned depth = info.Length() > 1
                             ? Nan::To<uint32_t>(info[1]).FromMaybe(base::kSpriteDepth)
                             : base::kSpriteDepth;
  info.GetReturnValue().Set(base::isJsonObject(bytes.data(), bytes.size(), depth));
}

/** readWatch(buffer): false when it is not for the front door, or what the body asks for. */
NAN_METHOD(readWatchMethod) {
  if (!hasBytes(info)) return;
  WatchWish wish;
  if (!readWatch(bytesOf(info[0]), &wish)) {
    info.GetReturnValue().Set(false);
    return;
  }
  Local<v8::Array> keys = Nan::New<v8::Array>();
  Local<v8::Array> afters = Nan::New<v8::Array>();
  for (uint32_t i = 0; i < wish.count; ++i) {
    Nan::Set(keys, i, stringOf(wish.wanted[i].key)).Check();
    Nan::Set(afters, i, stringOf(wish.wanted[i].after)).Check();
  }
  Local<Object> object = Nan::New<Object>();
  set(object, "keys", keys);
  set(object, "afters", afters);
  set(object, "hold", numberOrNull(wish.hold != kNoFeedHold, wish.hold));
  set(object, "delta", Nan::New(wish.delta));
  info.GetReturnValue().Set(object);
}

}  // namespace

void initReaders(Local<Object> target) {
  Nan::SetMethod(target, "readHead", readHeadMethod);
  Nan::SetMethod(target, "isJsonObject", isJsonObjectMethod);
  Nan::SetMethod(target, "readWatch", readWatchMethod);
}

}  // namespace server
