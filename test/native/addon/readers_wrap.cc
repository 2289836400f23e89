// The strict readers, for the tests and fuzzers that compare them with Node's. This file only
// converts; the server itself calls the readers from C++.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "addon/convert.h"
#include "base/json_reader.h"
#include "http/http_reader.h"
#include "http/request_reader.h"
#include "http/watch_reader.h"

namespace server {
namespace {

Local<Value> numberOrNull(bool given, uint64_t value) {
  if (!given) return Nan::Null();
  return valueOf(value);
}

/** One character for each byte. */
Local<Value> latin1Of(std::string_view bytes) {
  return Nan::Encode(bytes.data(), bytes.size(), Nan::BINARY);
}

/** Returns a span's bytes; null: the span is empty. */
Local<Value> spanOrNull(std::string_view bytes, const HeadSpan& span) {
  if (span.length == 0) return Nan::Null();
  return latin1Of(bytes.substr(span.offset, span.length));
}

Local<Value> uuidOf(const Id& id) {
  char text[36];
  id.format(text);
  return valueOf(std::string_view(text, sizeof text));
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
  if (request.route == Route::kThrow) edge = valueOf(kEdges[static_cast<size_t>(request.edge)]);

  const bool isList = request.route == Route::kFeeds && request.key.length > 0;
  const bool isGet = isPoll || isFeed || isList || isPlace || isFixed;
  Local<Object> object = makeObject({
      {"route", kRoutes[static_cast<size_t>(request.route)]},
      {"method", isGet ? "GET" : "POST"},
      {"id", id},
      {"edge", edge},
      {"ack", numberOrNull(isPoll, request.ack)},
      {"hold", numberOrNull(request.hasHold, request.hold)},
      {"n", numberOrNull(request.hasNumber, request.number)},
      {"path", spanOrNull(bytes, request.path)},
      {"headLength", request.headLength},
      {"bodyLength", request.bodyLength},
      {"forwardedFor", spanOrNull(bytes, request.forwardedFor)},
      {"forwarded", spanOrNull(bytes, request.forwarded)},
  });
  if (isFeed || isList) {
    set(object, "key", spanOrNull(bytes, request.key));
    set(object, "after", spanOrNull(bytes, request.after));
    set(object, "delta", request.delta);
    set(object, "gzip", request.gzip);
    set(object, "stream", request.stream);
  }
  if (isInput) set(object, "arena", spanOrNull(bytes, request.key));
  return object;
}

/** readHead(buffer): null: incomplete; false: not hot; otherwise the request. */
NAN_METHOD(readHeadMethod) {
  const std::string_view bytes = bytesOf(info[0]);
  HotRequest request;
  switch (readHead(bytes.data(), bytes.size(), &request)) {
    case Verdict::kIncomplete:
      return info.GetReturnValue().SetNull();
    case Verdict::kNotHot:
      return info.GetReturnValue().Set(false);
    case Verdict::kHot:
      return info.GetReturnValue().Set(requestObject(bytes, request));
  }
}

/** Reads a body in two pieces, cut at `cut`. `*length`: its length in `bytes`. */
ChunkDecoder::State readBody(const RequestHead& head, std::string_view bytes, size_t cut,
                             std::string* body, size_t* length) {
  constexpr size_t kMaxBody = 1 << 21;  // more than the size of a chunk that has five digits
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
  std::vector<Local<Value>> fields;
  for (const Field& field : head.fields) {
    fields.push_back(latin1Of(field.name));
    fields.push_back(latin1Of(field.value));
  }
  info.GetReturnValue().Set(makeObject({
      {"method", latin1Of(head.method)},
      {"target", latin1Of(head.target)},
      {"fields", fields},
      {"body", latin1Of(body)},
      {"stays", head.keepsAlive},
      {"end", head.headLength + length},
  }));
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
    return info.GetReturnValue().Set(false);
  }
  const std::span<const FeedRequest> wanted(watch.wanted, watch.count);
  info.GetReturnValue().Set(makeObject({
      {"keys", listOf(wanted, [](const FeedRequest& one) { return one.key; })},
      {"afters", listOf(wanted, [](const FeedRequest& one) { return one.after; })},
      {"hold", numberOrNull(watch.hold != kNoFeedHold, watch.hold)},
      {"delta", watch.delta},
  }));
}

}  // namespace

void initReaders(Local<Object> target) {
  Nan::SetMethod(target, "readHead", readHeadMethod);
  Nan::SetMethod(target, "readRequest", readRequestMethod);
  Nan::SetMethod(target, "isJsonObject", isJsonObjectMethod);
  Nan::SetMethod(target, "readWatch", readWatchMethod);
}

}  // namespace server
