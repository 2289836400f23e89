// How clients take their leave: all of them at the end, or as many as are too many.
#include <algorithm>

#include "clients.h"

namespace swarm {

void Clients::aim(uint32_t count) {
  opening_ = true;
  aim_ = std::min(count, size());
  while (opened_ > aim_) dismiss(--opened_);
}

/** One that has nothing at the server is closed at once; one that is joining has to be waited for.
 */
void Clients::dismiss(uint32_t index) {
  Client& client = clients_[index];
  if (client.idLength == 0 && client.state != kJoining && client.state != kJoinQueued) {
    left(index);
    enter(index, kUnopened);
  } else if (!client.leaving) {
    client.leaving = true;
    leavers_.push_back(index);
  }
}

void Clients::leave() {
  opening_ = false;
  leaving_ = true;
}

bool Clients::nextLeaver(uint32_t* index) {
  for (size_t looks = leavers_.size(); looks > 0; looks--) {
    *index = leavers_.front();
    leavers_.pop_front();
    if (!clients_[*index].leaving) continue;
    if (clients_[*index].idLength > 0) return true;
    const State state = clients_[*index].state;
    if (state == kJoining || state == kJoinQueued) {
      leavers_.push_back(*index);
    } else {
      left(*index);
    }
  }
  while (leaving_ && leaver_ < clients_.size()) {
    const uint32_t i = leaver_++;
    if (clients_[i].idLength > 0 && clients_[i].state != kLeft) {
      *index = i;
      return true;
    }
    left(i);
  }
  return false;
}

void Clients::left(uint32_t index) {
  if (clients_[index].state == kLeft) return;
  disconnect(index);
  core_->wheel.disarm(index);
  if (clients_[index].idLength > 0) core_->count.left++;
  dropId(&clients_[index]);
  // At the end none comes again.
  enter(index, clients_[index].leaving && !leaving_ ? kUnopened : kLeft);
  clients_[index].leaving = false;
}

}  // namespace swarm
