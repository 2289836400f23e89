// The strict readers, for the tests and fuzzers that compare them with Node's. This file only
// converts; the server itself calls the readers from C++.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "addon.h"
#include "addon/convert.h"
#include "base/json_reader.h"
#include "http/chunks.h"
#include "http/http_reader.h"
#include "http/request_reader.h"
#include "http/watch_reader.h"

namespace server {
namespace {

Local<Value> stringOf(std::string_view text) {
  return Nan::New(text.data(), static_cast<int>(text.size())).ToLocalChecked();
}

Local<Value> numberOrNull(bool given, uint64_t value) {
  if (!given) return Nan::Null();
  return Nan::New(static_cast<double>(value));
}

/** Returns a span's bytes, one character each; null: the span is empty. */
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
                                                   "feeds", "place", "status", "fixed", "arena"};
  constexpr std::array<const char*, 4> kEdges = {"left", "right", "up", "down"};
  const bool isPoll = request.route == Route::kPoll;
  const bool isFixed = request.route == Route::kFixed;

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
  const bool isList = request.route == Route::kFeeds && request.key.length > 0;
  const bool isGet = isPoll || isFeed || isList || isPlace || isFixed;
  set(object, "method", stringOf(isGet ? "GET" : "POST"));
  set(object, "id", id);
  set(object, "edge", edge);
  set(object, "ack", numberOrNull(isPoll, request.ack));
  set(object, "hold", numberOrNull(request.hasHold, request.hold));
  set(object, "n", numberOrNull(request.hasNumber, request.number));
  if (isFeed || isList) {
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

/** readHead(buffer): null: incomplete; false: not hot; otherwise the request. */
NAN_METHOD(readHeadMethod) {
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

/** Reads a body in two pieces, cut at `cut`. `*length`: its length in `bytes`. */
ChunkDecoder::State readBody(const RequestHead& head, std::string_view bytes, size_t cut,
                             std::string* body, size_t* length) {
  constexpr size_t kMaxBody = 1 << 20;
  if (head.framing != Framing::kChunked) {
    if (head.bodyLength > bytes.size()) return ChunkDecoder::State::kIncomplete;
    *length = head.bodyLength;
    *body = bytes.substr(0, *length);
    return ChunkDecoder::State::kWhole;
  }
  ChunkDecoder chunks;
  std::string_view left = bytes.substr(0, cut);
  ChunkDecoder::State state = chunks.decode(&left, kMaxBody, body);
  if (state == ChunkDecoder::State::kIncomplete) {
    left = bytes.substr(std::min(cut, bytes.size()));
    state = chunks.decode(&left, kMaxBody, body);
    *length = bytes.size() - left.size();
  } else {
    *length = std::min(cut, bytes.size()) - left.size();
  }
  return state;
}

/**
 * readRequest(buffer, cut): null: incomplete; a number: the status of the refusal; otherwise the
 * request: {method, target, fields: [name, value, …], body, stays, end}. `cut`: where a chunked
 * body is split into two pieces.
 */
NAN_METHOD(readRequestMethod) {
  constexpr size_t kHeadBytes = 16384;
  const std::string_view bytes = bytesOf(info[0]);
  RequestHead head;
  const ReadResult reading = readRequest(bytes, kHeadBytes, &head);
  if (reading == ReadResult::kIncomplete) return info.GetReturnValue().SetNull();
  if (reading != ReadResult::kComplete) {
    return info.GetReturnValue().Set(reading == ReadResult::kBad        ? 400
                                     : reading == ReadResult::kTooLarge ? 431
                                                                        : 417);
  }
  std::string body;
  size_t length = 0;
  const auto cut = Nan::To<uint32_t>(info[1]).FromMaybe(0);
  switch (readBody(head, bytes.substr(head.headLength), cut, &body, &length)) {
    case ChunkDecoder::State::kIncomplete:
      return info.GetReturnValue().SetNull();
    case ChunkDecoder::State::kWhole:
      break;
    case ChunkDecoder::State::kBad:
      return info.GetReturnValue().Set(400);
    case ChunkDecoder::State::kTooLong:
      return info.GetReturnValue().Set(413);
  }
  const auto latin1 = [](std::string_view text) {
    return Nan::Encode(text.data(), text.size(), Nan::BINARY);
  };
  Local<v8::Array> fields = Nan::New<v8::Array>();
  for (const Field& field : head.fields) {
    Nan::Set(fields, fields->Length(), latin1(field.name)).Check();
    Nan::Set(fields, fields->Length(), latin1(field.value)).Check();
  }
  Local<Object> object = Nan::New<Object>();
  set(object, "method", latin1(head.method));
  set(object, "target", latin1(head.target));
  set(object, "fields", fields);
  set(object, "body", latin1(body));
  set(object, "stays", Nan::New(head.keepsAlive));
  set(object, "end", Nan::New(static_cast<double>(head.headLength + length)));
  info.GetReturnValue().Set(object);
}

/** isJsonObject(buffer[, depth]): whether the bytes are one JSON object, nested at most `depth`
 * deep.
 */
NAN_METHOD(isJsonObjectMethod) {
  const std::string_view bytes = bytesOf(info[0]);
  const unsigned depth = info.Length() > 1
                             ? Nan::To<uint32_t>(info[1]).FromMaybe(base::kSpriteDepth)
                             : base::kSpriteDepth;
  info.GetReturnValue().Set(base::isJsonObject(bytes.data(), bytes.size(), depth));
}

/**
 * readWatch(buffer, isList): the watch that a body of POST /feeds, or with `isList` a list of GET
 * /feeds, asks for; false: the front door does not read it.
 */
NAN_METHOD(readWatchMethod) {
  WatchRequest watch;
  const bool isList = Nan::To<bool>(info[1]).FromJust();
  if (!(isList ? readWatchList : readWatch)(bytesOf(info[0]), &watch)) {
    info.GetReturnValue().Set(false);
    return;
  }
  Local<v8::Array> keys = Nan::New<v8::Array>();
  Local<v8::Array> afters = Nan::New<v8::Array>();
  for (uint32_t i = 0; i < watch.count; ++i) {
    Nan::Set(keys, i, stringOf(watch.wanted[i].key)).Check();
    Nan::Set(afters, i, stringOf(watch.wanted[i].after)).Check();
  }
  Local<Object> object = Nan::New<Object>();
  set(object, "keys", keys);
  set(object, "afters", afters);
  set(object, "hold", numberOrNull(watch.hold != kNoFeedHold, watch.hold));
  set(object, "delta", Nan::New(watch.delta));
  info.GetReturnValue().Set(object);
}

}  // namespace

void initReaders(Local<Object> target) {
  Nan::SetMethod(target, "readHead", readHeadMethod);
  Nan::SetMethod(target, "readRequest", readRequestMethod);
  Nan::SetMethod(target, "isJsonObject", isJsonObjectMethod);
  Nan::SetMethod(target, "readWatch", readWatchMethod);
}

}  // namespace server
