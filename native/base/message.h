// Bytes that are written to many readers, counted by reference, and messages made of them.
//
//   Bytes     [ references │ length │ bytes … ]           a value, its compressed form, the patches
//   Message   [ references │ piece │ piece │ piece ]      head, value, end
//                              └ bytes 0 to 312 of some Bytes
//
// A message is complete when it is made, and does not change. A slow reader holds one reference and
// the number of bytes sent: no reader has a copy. Bytes only grow at their end (Bytes::append, for
// the patches of a feed), beyond the pieces of any message.
//
// A Ledger sums the living bytes, so that its owner can limit them.
//
// Threads: references to Bytes are counted atomically, and any thread may hold and read the pieces
// it was given. Only the thread that made Bytes appends, and asks for their length. A Message
// belongs to one thread.
//
// A long message for many readers also has its bytes in a file (memory_file.h), from which the
// kernel sends them. A short one is copied once into one piece for its further readers
// (inOnePiece).
//
// Cost: 24 bytes for Bytes, 32 for a message and 16 for a piece; 16 bytes more for each slow
// reader. Rejected: std::shared_ptr (two pointers for each reference), a buffer with the HTTP head
// in front of the value (event streams and polls for several feeds have other heads, and would need
// copies of the value).
#ifndef SPRITES_MESSAGE_H_
#define SPRITES_MESSAGE_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "memory_file.h"

namespace base {

/** The sum of living bytes; its owner outlives them. */
struct Ledger {
  std::atomic<uint64_t> bytes{0};
};

/** A reference that its destructor releases; T has hold() and release(). */
template <typename T>
class Ref {
 public:
  Ref() = default;
  /** Takes the ownership of a reference. */
  explicit Ref(T* held) : held_(held) {}
  Ref(const Ref& other) : held_(other.held_) {
    if (held_ != nullptr) held_->hold();
  }
  Ref(Ref&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  ~Ref() { reset(); }  // NOLINT(clang-analyzer-unix.Malloc)
  Ref& operator=(Ref other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }

  // The analyzer does not follow the count of references, and takes the last for a leak.
  void reset() {
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
    if (held_ != nullptr) std::exchange(held_, nullptr)->release();
  }  // NOLINT(clang-analyzer-unix.Malloc)
  T* get() const { return held_; }
  T* operator->() const { return held_; }
  T& operator*() const { return *held_; }
  explicit operator bool() const { return held_ != nullptr; }

 private:
  T* held_ = nullptr;
};

/** Bytes in one block, which can grow up to its room. */
class Bytes {
 public:
  /**
   * Creates empty Bytes with room for `room` bytes. Throws std::bad_alloc. `ledger` may be nullptr.
   */
  static Ref<Bytes> make(uint32_t room, Ledger* ledger) {
    void* memory = malloc(sizeof(Bytes) + room);
    if (memory == nullptr) throw std::bad_alloc();
    if (ledger != nullptr) ledger->bytes += sizeof(Bytes) + room;
    return Ref<Bytes>(new (memory) Bytes(room, ledger));
  }

  static Ref<Bytes> copyOf(std::string_view text, Ledger* ledger) {
    Ref<Bytes> bytes = make(static_cast<uint32_t>(text.size()), ledger);
    bytes->append(text);
    return bytes;
  }

  // Counting references is possible in const Bytes.
  void hold() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    // The reads of other threads are done before the memory is freed.
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  uint32_t length() const { return length_; }
  uint32_t freeBytes() const { return capacity_ - length_; }
  uint64_t cost() const { return sizeof(Bytes) + capacity_; }
  Ledger* ledger() const { return ledger_; }
  std::string_view text() const { return {data(), length_}; }

  /** Appends `text`; there must be room. */
  void append(std::string_view text) {
    if (text.empty()) return;  // its data may be nullptr
    memcpy(reinterpret_cast<char*>(this + 1) + length_, text.data(), text.size());
    length_ += static_cast<uint32_t>(text.size());
  }

 private:
  Bytes(uint32_t room, Ledger* ledger) : capacity_(room), ledger_(ledger) {}

  void destroy() const {
    if (ledger_ != nullptr) ledger_->bytes -= cost();
    this->~Bytes();
    free(const_cast<Bytes*>(this));
  }

  mutable std::atomic<uint32_t> references_{1};
  uint32_t length_ = 0;
  uint32_t capacity_;
  Ledger* ledger_;
};

/** A part of some Bytes. */
struct Piece {
  const Bytes* bytes;
  uint32_t begin;
  uint32_t end;

  uint32_t length() const { return end - begin; }
  const char* data() const { return bytes->data() + begin; }
};

/** An answer, or an event, as it is written to the kernel. */
class Message {
 public:
  /** Creates a message, which holds each of the pieces. No piece is empty. */
  static Ref<Message> fromPieces(const Piece* pieces, uint32_t count) {
    void* memory = malloc(sizeof(Message) + count * sizeof(Piece));
    if (memory == nullptr) throw std::bad_alloc();
    auto* message = new (memory) Message(count);
    memcpy(message->data(), pieces, count * sizeof(Piece));
    for (uint32_t i = 0; i < count; ++i) {
      pieces[i].bytes->hold();
      message->length_ += pieces[i].length();
    }
    return Ref<Message>(message);
  }

  void hold() { ++references_; }
  void release() {
    if (--references_ > 0) return;
    for (uint32_t i = 0; i < count_; ++i) data()[i].bytes->release();
    this->~Message();
    free(this);
  }

  /**
   * Returns a copy in one piece, which the kernel accepts 0.4 µs faster. It counts in the first
   * ledger of the pieces.
   */
  Ref<Message> inOnePiece() const {
    Ledger* ledger = nullptr;
    for (uint32_t i = 0; ledger == nullptr && i < count_; ++i) ledger = piece(i).bytes->ledger();
    const Ref<Bytes> all = Bytes::make(static_cast<uint32_t>(length_), ledger);
    forEachPieceAfter(0, [&all](const char* bytes, size_t length) {
      all->append({bytes, length});
      return true;
    });
    const Piece one = {all.get(), 0, all->length()};
    return fromPieces(&one, 1);
  }

  /** Copies the bytes into a file, if that is possible. */
  void makeFile() {
    if (!file_.open(length_)) return;
    forEachPieceAfter(
        0, [this](const char* bytes, size_t length) { return file_.write(bytes, length); });
  }

  /** The descriptor of the file; -1: none. */
  int file() const { return file_.fd(); }

  uint64_t length() const { return length_; }
  uint32_t count() const { return count_; }
  const Piece& piece(uint32_t index) const { return const_cast<Message*>(this)->data()[index]; }

  /**
   * Calls `visit(data, length)` for each piece after the first `sent` bytes, until it returns
   * false.
   */
  template <typename Take>
  void forEachPieceAfter(uint64_t sent, Take&& visit) const {
    for (uint32_t i = 0; i < count_; ++i) {
      const Piece& one = piece(i);
      if (sent >= one.length()) {
        sent -= one.length();
        continue;
      }
      if (!visit(one.data() + sent, static_cast<size_t>(one.length() - sent))) return;
      sent = 0;
    }
  }

 private:
  explicit Message(uint32_t count) : count_(count) {}
  Piece* data() { return reinterpret_cast<Piece*>(this + 1); }

  uint32_t references_ = 1;
  uint32_t count_;
  uint64_t length_ = 0;
  MemoryFile file_;
};

}  // namespace base

#endif  // SPRITES_MESSAGE_H_
