// What is written to many readers: bytes that are counted by reference, and messages made of them.
//
//   Bytes     [ references │ length │ bytes … ]           a value, its compressed form, the patches
//   Message   [ references │ piece │ piece │ piece ]      head, value, end
//                              └ from 0 to 312 of some Bytes
//
// A message is whole when it is made and does not change. A reader that can't take all of it holds
// one reference and how much it has taken: no reader has a copy. Bytes only grow at their end
// (Bytes::append, for the patches of a feed), beyond what any message names.
//
// A Ledger adds up what is alive, so that its owner can bound it.
//
// Threads: references to Bytes are counted atomically, and any thread may hold and read
// what it was given a piece of; the thread that made them alone appends, and asks for their length.
// A Message is one thread's.
//
// A long message for many has its bytes in a file as well (memory_file.h), from which the kernel
// sends them. A short one is copied once for all its further readers (inOnePiece).
//
// Cost: 24 bytes for Bytes, 32 for a message and 16 a piece; a reader that is slow has 16 bytes
// more. Rejected: std::shared_ptr (two pointers a reference), a buffer with the HTTP
// head in front of the value (an event stream and a poll for many feeds have other heads, and would
// need copies of the value).
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

/** Bytes that are alive; its owner outlives them. */
struct Ledger {
  std::atomic<uint64_t> bytes{0};
};

/** A reference that is given back; T has hold() and release(). */
template <typename T>
class Ref {
 public:
  Ref() = default;
  /** Takes over a reference. */
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

/** A run of bytes. */
class Bytes {
 public:
  /** Empty, with room for `room` bytes; throws std::bad_alloc. `ledger` may be nullptr. */
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

  // References are counted in what is otherwise not changed.
  void hold() const { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    // What others have read of it has been read before it is freed.
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) end();
  }

  const char* data() const { return reinterpret_cast<const char*>(this + 1); }
  uint32_t length() const { return length_; }
  uint32_t room() const { return room_ - length_; }
  uint64_t cost() const { return sizeof(Bytes) + room_; }
  Ledger* ledger() const { return ledger_; }
  std::string_view text() const { return {data(), length_}; }

  /** Adds at the end; there must be room. */
  void append(std::string_view text) {
    if (text.empty()) return;  // and perhaps nowhere
    memcpy(reinterpret_cast<char*>(this + 1) + length_, text.data(), text.size());
    length_ += static_cast<uint32_t>(text.size());
  }

 private:
  Bytes(uint32_t room, Ledger* ledger) : room_(room), ledger_(ledger) {}

  void end() const {
    if (ledger_ != nullptr) ledger_->bytes -= cost();
    this->~Bytes();
    free(const_cast<Bytes*>(this));
  }

  mutable std::atomic<uint32_t> references_{1};
  uint32_t length_ = 0;
  uint32_t room_;
  Ledger* ledger_;
};

/** Some of the bytes of a Bytes. */
struct Piece {
  const Bytes* bytes;
  uint32_t begin;
  uint32_t end;

  uint32_t length() const { return end - begin; }
  const char* data() const { return bytes->data() + begin; }
};

/** An answer, or an event, as it goes to the kernel. */
class Message {
 public:
  /** Holds each of the pieces, of which none is empty. */
  static Ref<Message> of(const Piece* pieces, uint32_t count) {
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

  /** The same in one piece, which the kernel takes in 0.4 µs less; on the account of the first that
   * is on any. */
  Ref<Message> inOnePiece() const {
    Ledger* ledger = nullptr;
    for (uint32_t i = 0; ledger == nullptr && i < count_; ++i) ledger = piece(i).bytes->ledger();
    const Ref<Bytes> all = Bytes::make(static_cast<uint32_t>(length_), ledger);
    rest(0, [&all](const char* bytes, size_t length) {
      all->append({bytes, length});
      return true;
    });
    const Piece one = {all.get(), 0, all->length()};
    return of(&one, 1);
  }

  /** Puts its bytes into a file, where that may be. */
  void makeFile() {
    if (!file_.open(length_)) return;
    rest(0, [this](const char* bytes, size_t length) { return file_.write(bytes, length); });
  }

  /** That file; -1: there is none. */
  int file() const { return file_.fd(); }

  uint64_t length() const { return length_; }
  uint32_t count() const { return count_; }
  const Piece& piece(uint32_t index) const { return const_cast<Message*>(this)->data()[index]; }

  /**
   * Calls `take(data, length)` for what is left after the first `sent` bytes, piece by piece, until
   * it returns false.
   */
  template <typename Take>
  void rest(uint64_t sent, Take&& take) const {
    for (uint32_t i = 0; i < count_; ++i) {
      const Piece& one = piece(i);
      if (sent >= one.length()) {
        sent -= one.length();
        continue;
      }
      if (!take(one.data() + sent, static_cast<size_t>(one.length() - sent))) return;
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
