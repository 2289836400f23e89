#include "world_frames.h"

#include "base/json_reader.h"
#include "mailbox.h"

namespace server {

namespace {

template <typename Number>
void appendNumber(std::string* to, Number number) {
  for (size_t i = 0; i < sizeof number; ++i) {
    to->push_back(static_cast<char>(static_cast<uint64_t>(number) >> (8 * i)));
  }
}

/** Reads a number and removes it from the front; there must be enough bytes. */
template <typename Number>
Number readNumber(std::string_view* from) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    number |= uint64_t{static_cast<uint8_t>((*from)[i])} << (8 * i);
  }
  from->remove_prefix(sizeof(Number));
  return static_cast<Number>(number);
}

constexpr size_t kRefusalAt = 7;
constexpr size_t kCountAt = 64;
constexpr size_t kLengthAt = 68;

/** In place of a refusal: the answer is wanted at once. */
constexpr uint8_t kAnswerWanted = 1;

/** Overwrites 4 bytes. */
void overwriteAt(std::string* in, size_t at, uint32_t number) {
  for (size_t i = 0; i < sizeof number; ++i) (*in)[at + i] = static_cast<char>(number >> (8 * i));
}

bool isSide(uint8_t edge) { return edge <= static_cast<uint8_t>(Edge::kRight); }

bool isCrosser(std::string_view* body) {
  if (body->size() < kCrosserHead) return false;
  const auto length = readNumber<uint32_t>(body);
  readNumber<uint32_t>(body);
  const auto from = readNumber<uint8_t>(body);
  const auto exitEdge = readNumber<uint8_t>(body);
  const auto round = readNumber<uint8_t>(body);
  const bool hasZeroPadding = readNumber<uint8_t>(body) == 0;
  readNumber<uint16_t>(body);
  if (readNumber<uint16_t>(body) != 0 || !hasZeroPadding) return false;
  if (from > 3 || !isSide(exitEdge) || round > 1) return false;
  if (length > kLongestSprite || length > body->size()) return false;
  // The text goes to browsers, so it is checked as a thrown one is.
  if (length > 0 && !base::isJsonObject(body->data(), length)) return false;
  body->remove_prefix(length);
  return true;
}

bool isEnd(std::string_view* body) {
  if (body->size() < kEndBytes) return false;
  readNumber<uint32_t>(body);
  const auto exitEdge = readNumber<uint8_t>(body);
  const auto busy = readNumber<uint8_t>(body);
  return isSide(exitEdge) && busy <= 1 && readNumber<uint16_t>(body) == 0;
}

}  // namespace

FrameWriter::FrameWriter(const FrameHead& head, std::string* to) : to_(to), start_(to->size()) {
  to->append(kFrameMagic);
  appendNumber(to, kFrameVersion);
  appendNumber(to, static_cast<uint8_t>(head.kind));
  appendNumber(to, head.answerWanted ? kAnswerWanted : static_cast<uint8_t>(head.refusal));
  for (const uint64_t number :
       {head.life, head.peerLife, head.serial, head.number, head.base, head.fence, head.memory}) {
    appendNumber(to, number);
  }
  appendNumber(to, uint64_t{0});
}

void FrameWriter::add(const CrosserHead& head, std::string_view text) {
  appendNumber(to_, head.length);
  appendNumber(to_, head.row);
  appendNumber(to_, static_cast<uint8_t>(head.from));
  appendNumber(to_, static_cast<uint8_t>(head.exitEdge));
  appendNumber(to_, head.round);
  appendNumber(to_, uint8_t{0});
  appendNumber(to_, head.hops);
  appendNumber(to_, uint16_t{0});
  to_->append(text);
  ++count_;
}

void FrameWriter::add(const RowEnd& end) {
  appendNumber(to_, end.row);
  appendNumber(to_, static_cast<uint8_t>(end.exitEdge));
  appendNumber(to_, static_cast<uint8_t>(end.busy));
  appendNumber(to_, uint16_t{0});
  ++count_;
}

void FrameWriter::wantAnswer() { (*to_)[start_ + kRefusalAt] = static_cast<char>(kAnswerWanted); }

void FrameWriter::finish() {
  overwriteAt(to_, start_ + kCountAt, count_);
  overwriteAt(to_, start_ + kLengthAt, static_cast<uint32_t>(bytes() - kFrameHead));
}

namespace {

/** Reads the bytes that stay the same in every version. */
FrameRefusal readStart(std::string_view* frame, FrameHead* head) {
  constexpr size_t kStart = 8;
  if (frame->size() < kStart || !frame->starts_with(kFrameMagic)) return FrameRefusal::kMalformed;
  frame->remove_prefix(kFrameMagic.size());
  const auto version = readNumber<uint16_t>(frame);
  const auto kind = readNumber<uint8_t>(frame);
  const auto refusal = readNumber<uint8_t>(frame);
  if (kind != static_cast<uint8_t>(FrameKind::kSprites) &&
      kind != static_cast<uint8_t>(FrameKind::kAck)) {
    return FrameRefusal::kMalformed;
  }
  head->kind = FrameKind{kind};
  if (version != kFrameVersion) return FrameRefusal::kVersion;
  if (head->kind == FrameKind::kSprites) {
    head->answerWanted = refusal == kAnswerWanted;
    return refusal > kAnswerWanted ? FrameRefusal::kMalformed : FrameRefusal::kNone;
  }
  if (refusal >= kRefusals) return FrameRefusal::kMalformed;
  head->refusal = FrameRefusal{refusal};
  return FrameRefusal::kNone;
}

/** Reads the first frame of the rest of a message, and removes it from there. */
FrameRefusal readFrame(std::string_view* message, FrameHead* head, std::string_view* body) {
  *head = {};
  const bool hasHead = message->size() >= kFrameHead;
  const FrameRefusal start = readStart(message, head);
  if (start != FrameRefusal::kNone) return start;
  if (!hasHead) return FrameRefusal::kMalformed;
  for (uint64_t* number : {&head->life, &head->peerLife, &head->serial, &head->number, &head->base,
                           &head->fence, &head->memory}) {
    *number = readNumber<uint64_t>(message);
    if (*number >= kMaxFrameNumber) return FrameRefusal::kMalformed;
  }
  head->count = readNumber<uint32_t>(message);
  const auto length = readNumber<uint32_t>(message);
  if (length > message->size() || head->count > kMaxInFrame) return FrameRefusal::kMalformed;
  const bool isNumbered = head->kind == FrameKind::kSprites;
  if (isNumbered && head->number + head->count > kMaxFrameNumber) return FrameRefusal::kMalformed;
  std::string_view frame = message->substr(0, length);
  message->remove_prefix(length);
  *body = frame;
  for (uint32_t i = 0; i < head->count; ++i) {
    const bool isValid = head->kind == FrameKind::kAck ? isEnd(&frame) : isCrosser(&frame);
    if (!isValid) return FrameRefusal::kMalformed;
  }
  return frame.empty() ? FrameRefusal::kNone : FrameRefusal::kMalformed;
}

}  // namespace

FrameRefusal readMessage(std::string_view message, Frames* frames) {
  frames->count = 0;
  do {
    auto& [head, body] = frames->at[frames->count];
    const FrameRefusal refusal = readFrame(&message, &head, &body);
    if (refusal != FrameRefusal::kNone)
      return frames->count > 0 ? FrameRefusal::kMalformed : refusal;
    ++frames->count;
  } while (!message.empty() && frames->count < kMaxFrames);
  if (!message.empty()) return FrameRefusal::kMalformed;
  const FrameHead& first = frames->at[0].head;
  const bool isAckWithSprites = first.kind == FrameKind::kAck &&
                                first.refusal == FrameRefusal::kNone &&
                                frames->at[1].head.kind == FrameKind::kSprites;
  return frames->count == 1 || isAckWithSprites ? FrameRefusal::kNone : FrameRefusal::kMalformed;
}

CrosserHead readCrosser(std::string_view* body, std::string_view* text) {
  CrosserHead head;
  head.length = readNumber<uint32_t>(body);
  head.row = readNumber<uint32_t>(body);
  head.from = Edge{readNumber<uint8_t>(body)};
  head.exitEdge = Edge{readNumber<uint8_t>(body)};
  head.round = readNumber<uint8_t>(body);
  readNumber<uint8_t>(body);
  head.hops = readNumber<uint16_t>(body);
  readNumber<uint16_t>(body);
  *text = body->substr(0, head.length);
  body->remove_prefix(head.length);
  return head;
}

RowEnd readEnd(std::string_view* body) {
  const auto row = readNumber<uint32_t>(body);
  const auto exitEdge = readNumber<uint8_t>(body);
  const auto busy = readNumber<uint8_t>(body);
  readNumber<uint16_t>(body);
  return {row, Edge{exitEdge}, busy != 0};
}

}  // namespace server
