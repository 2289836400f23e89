// The backlogs: sprites that fly to a client whose mailbox has no room for them yet.
//
//   leaver's mailbox ─▶ neighbor's mailbox   [ thrown │ thrown │ flown │ flown │ … room for throws
//   ]
//                           ▲ as it acks
//                       its backlog          [ flown │ flown │ flown │ … ]
//
// What flies on takes at most a share of a mailbox, so that the neighbors' throws still get in. The
// rest waits here, oldest first, and moves up when the client acks. None is lost: the server has
// answered for all of them. Their number is bounded where they are thrown, by the bound on all
// mailboxes' memory and by each source address's share of it.
//
// Few clients ever have one, so it lies beside the records: a list for each who has.
#ifndef SPRITES_BACKLOG_H_
#define SPRITES_BACKLOG_H_

#include <cstdint>
#include <unordered_map>

#include "mailbox.h"

namespace server {

class Backlogs {
 public:
  Backlogs() = default;
  ~Backlogs() {
    while (!lists_.empty()) Sprite::free(pop(lists_.begin()->first));
  }
  Backlogs(const Backlogs&) = delete;
  Backlogs& operator=(const Backlogs&) = delete;

  /** Takes `sprite`, and owns it until it is popped. */
  void push(uint32_t record, Sprite* sprite) {
    List& list = lists_[record];
    sprite->next = nullptr;
    (list.last == nullptr ? list.first : list.last->next) = sprite;
    list.last = sprite;
    ++list.length;
  }

  /** The oldest sprite, or nullptr. */
  Sprite* front(uint32_t record) const {
    const auto found = lists_.find(record);
    return found == lists_.end() ? nullptr : found->second.first;
  }

  /** Gives back the oldest sprite, now the caller's; there must be one. */
  Sprite* pop(uint32_t record) {
    const auto found = lists_.find(record);
    Sprite* sprite = found->second.first;
    found->second.first = sprite->next;
    --found->second.length;
    if (sprite->next == nullptr) lists_.erase(found);
    return sprite;
  }

  uint32_t length(uint32_t record) const {
    const auto found = lists_.find(record);
    return found == lists_.end() ? 0 : found->second.length;
  }

 private:
  struct List {
    Sprite* first = nullptr;
    Sprite* last = nullptr;
    uint32_t length = 0;
  };

  std::unordered_map<uint32_t, List> lists_;
};

}  // namespace server

#endif  // SPRITES_BACKLOG_H_
