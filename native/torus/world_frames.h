// The format of messages from one server of a world to another. A message is one frame, or two: an
// ack that refuses nothing, and after it sprites that go the same way.
//
//   ┌──────┬─────────────────────────────┐        ┌──────┬───────────────────┐
//   │ head │ sprite: head, text │ sprite …│  ──▶   │ head │ end │ end │ …     │
//   └──────┴─────────────────────────────┘        └──────┴───────────────────┘
//    kSprites                                      kAck, back to the sender
//
// All numbers are little-endian, whatever the machine; nothing is aligned.
//
//   head, 72 bytes                                     sprite, 16 bytes and its text
//    0  magic "SPRW"                                    0  u32 length of the text; 0: a question
//    4  u16 version                                     4  u32 row
//    6  u8  kind                                        8  u8  the edge it enters its desktop by
//    7  u8  of an ack: why the frame is refused;        9  u8  the edge it has crossed: 0 left,
//           else 1: an answer is wanted at once                1 right
//    8  u64 life of the sender
//   16  u64 life of the receiver, 0: not known         10  u8  round of the ring: see Crosser
//   24  u64 serial of the frame; of an ack: of the     11  u8  0
//           frame that it answers                      12  u16 hops it has left in this round
//   32  u64 number of the first sprite; of an ack:     14  u16 0
//           of the last one that is taken
//   40  u64 the oldest number that is not acked        end, 8 bytes: where a row begins or ends
//   48  u64 fence: frames of a lower serial are void    0  u32 row
//   56  u64 memory of the sender                        4  u8  the edge that leads there: 0 or 1
//   64  u32 how many sprites, or ends                   5  u8  1: its mailbox is full
//   68  u32 bytes behind the head                       6  u16 0
//
// The first eight bytes stay the same in every version. So a frame of another version is recognized
// and refused as such, and no ack is answered by an ack.
//
// A life is one process under its server's name: a number that grows from one process to the next.
// A memory is the number of the state that outlives processes: processes that continue one state
// share it, and any other process has its own. Sprites from one memory to one memory are numbered.
// They are taken in that order, each once. A question has no number: its sender asks about the end
// of that row.
//
// Rejected: the machine's own structures (two machines may differ), a checksum (TCP has one, and
// each text is read as JSON), names in the frame (its NATS subject has them).
#ifndef SPRITES_WORLD_FRAMES_H_
#define SPRITES_WORLD_FRAMES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "torus.h"

namespace server {

constexpr std::string_view kFrameMagic = "SPRW";
constexpr uint16_t kFrameVersion = 2;

/** Bytes of a frame's head, of a sprite's head and of an end. */
constexpr size_t kFrameHead = 72;
constexpr size_t kCrosserHead = 16;
constexpr size_t kEndBytes = 8;

/** Most sprites, or ends, in one frame. */
constexpr uint32_t kMaxInFrame = 1024;

/** Most frames in one message. */
constexpr size_t kMaxFrames = 2;

/** Bound of the numbers in a frame's head: sprites' numbers and lives are below it. */
constexpr uint64_t kMaxFrameNumber = uint64_t{1} << 62;

enum class FrameKind : uint8_t { kSprites = 1, kAck = 2 };

/** Why a frame is refused. The order is the order of `refusals` in JavaScript. */
enum class FrameRefusal : uint8_t {
  kNone,
  kVersion,    // the frame has another version
  kOlderLife,  // a newer process has the sender's name
  kOtherLife,  // the frame is for another process than this one
  kNotInRing,  // sender and receiver are not in one ring
  kFull,       // the receiver has no memory left for sprites
  kMalformed,  // the frame makes no sense
};
constexpr size_t kRefusals = 7;
constexpr const char* kRefusalNames[kRefusals] = {
    "none", "other-version", "older-epoch", "other-epoch", "not-in-ring", "full", "malformed"};

/** The sender of a frame: its process, and the state that the process continues. */
struct Identity {
  uint64_t life = 0;    // larger than that of an earlier process of that name
  uint64_t memory = 0;  // shared with the earlier process whose state it continues
};

struct FrameHead {
  FrameKind kind = FrameKind::kSprites;
  FrameRefusal refusal = FrameRefusal::kNone;
  bool answerWanted = false;  // of sprites: whether their sender wants the answer at once
  uint64_t life = 0;
  uint64_t peerLife = 0;
  uint64_t serial = 0;
  uint64_t number = 0;
  uint64_t base = 0;
  uint64_t fence = 0;
  uint64_t memory = 0;
  uint32_t count = 0;
};

/** The head of one sprite that crosses. */
struct CrosserHead {
  uint32_t length = 0;
  uint32_t row = 0;
  Edge from = Edge::kLeft;
  Edge exitEdge = Edge::kLeft;
  uint8_t round = 0;
  uint16_t hops = 0;
};

/** The state of the node on which sprites land that cross over `exitEdge` in a row. */
struct RowEnd {
  uint32_t row;
  Edge exitEdge;
  bool busy;
};

/** Appends one frame to a string. */
class FrameWriter {
 public:
  FrameWriter(const FrameHead& head, std::string* to);

  /** Adds a sprite; `text` has the length that `head` says. */
  void add(const CrosserHead& head, std::string_view text);
  void add(const RowEnd& end);

  uint32_t count() const { return count_; }
  size_t bytes() const { return to_->size() - start_; }

  /** Asks for the answer at once. */
  void wantAnswer();

  /** Fills in the count and the length. */
  void finish();

 private:
  std::string* const to_;
  const size_t start_;
  uint32_t count_ = 0;
};

/** A frame that was read. */
struct Frame {
  FrameHead head;
  std::string_view body;
};

/** The frames of one message. */
struct Frames {
  Frame at[kMaxFrames];
  size_t count = 0;
};

/**
 * Reads a message. Returns kNone when all frames are read and every record in their bodies is whole
 * and valid; kVersion, with only the kind in the head of the first frame; or kMalformed.
 */
FrameRefusal readMessage(std::string_view message, Frames* frames);

/** Removes the first sprite, or end, from the body of a frame that readMessage has accepted. */
CrosserHead readCrosser(std::string_view* body, std::string_view* text);
RowEnd readEnd(std::string_view* body);

}  // namespace server

#endif  // SPRITES_WORLD_FRAMES_H_
