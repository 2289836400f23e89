#include "connections.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "answers.h"

namespace server {

Connections::Connections(uint32_t capacity, EventSet* events, AddressLimits* limits,
                         Closing closing, uint64_t now)
    : events_(events),
      limits_(limits),
      onClosing_(std::move(closing)),
      connections_(capacity),
      wheel_(capacity, now),
      now_(now) {}

// ---- Lifecycle ----------------------------------------------------------------------------------

Connection* Connections::open(int fd) {
  uint32_t index;
  if (freeConnection_ != 0) {
    index = freeConnection_ - 1;
    freeConnection_ = connections_[index].record;
  } else {
    index = used_++;
  }
  Connection& connection = connections_[index];
  connection.fd = fd;
  connection.state = ConnectionState::kReading;
  connection.interest = Interest::kRead;
  ++count_;
  const uint64_t key = EventSet::connectionKey(index, connection.generation);
  if (!events_->add(fd, key, EPOLLIN | EPOLLRDHUP)) {
    close(connection);
    return nullptr;
  }
  return &connection;
}

void Connections::beginClosing(Connection& connection) {
  connection.state = ConnectionState::kClosing;
  ++closing_;
}

void Connections::close(Connection& connection) {
  onClosing_(connection);
  if (connection.counted) limits_->close(connection.client);
  ::close(connection.fd);
  forget(connection);
}

int Connections::release(Connection& connection) {
  const int fd = connection.fd;
  events_->remove(fd);
  forget(connection);
  return fd;
}

/** Gives a connection's place and memory back. */
void Connections::forget(Connection& connection) {
  const uint32_t index = indexOf(connection);
  takeInput(connection);
  if (connection.state == ConnectionState::kClosing) --closing_;
  dropOutput(connection);
  wheel_.disarm(index);
  const uint32_t generation = connection.generation + 1;
  connection = Connection{};
  connection.generation = generation;
  connection.record = freeConnection_;
  freeConnection_ = index + 1;
  --count_;
}

/** Counts memory that is held for a connection; false, and not counted: its address has enough. */
bool Connections::hold(const Connection& connection, uint64_t bytes) {
  if (connection.counted && !limits_->hold(connection.client, bytes)) return false;
  heldBytes_ += bytes;
  return true;
}

void Connections::release(const Connection& connection, uint64_t bytes) {
  if (bytes == 0) return;
  if (connection.counted) limits_->release(connection.client, bytes);
  heldBytes_ -= bytes;
}

bool Connections::countOutput(Connection& connection) {
  if (hold(connection, connection.output->cost())) return true;
  delete std::exchange(connection.output, nullptr);
  return false;
}

void Connections::dropOutput(Connection& connection) {
  if (connection.output == nullptr) return;
  release(connection, connection.output->cost());
  delete std::exchange(connection.output, nullptr);
}

void Connections::closeAll() {
  forEach([this](Connection& connection) { close(connection); });
}

// ---- Input --------------------------------------------------------------------------------------

bool Connections::keepInput(Connection& connection, const char* data, size_t length,
                            size_t needed) {
  const size_t room = std::max(length, needed);
  if (!hold(connection, room)) return false;
  connection.input = static_cast<char*>(malloc(room));
  if (connection.input == nullptr) {
    release(connection, room);
    return false;
  }
  memcpy(connection.input, data, length);
  connection.inputLength = length;
  connection.needed = needed;
  watch(connection);
  return true;
}

Input Connections::takeInput(Connection& connection) {
  release(connection, std::max(connection.needed, connection.inputLength));
  connection.inputLength = connection.needed = 0;
  return Input(std::exchange(connection.input, nullptr));
}

// ---- What epoll watches for ---------------------------------------------------------------------

void Connections::watch(Connection& connection) {
  const bool enough = connection.needed == 0 && connection.inputLength >= kPipelinedBytes;
  if (connection.output != nullptr) return watchFor(connection, Interest::kWrite);
  // A connection that is reading goes on with its input in the next turn, even if its peer has
  // ended its half meanwhile.
  const bool goesOn = connection.state == ConnectionState::kReading;
  watchFor(connection, !enough ? Interest::kRead : goesOn ? Interest::kReset : Interest::kHangUp);
}

void Connections::watchFor(Connection& connection, Interest interest) {
  // By Interest; a reset is reported in any case. While an answer is being written the end of the
  // peer's half is not watched for: the peer may well be reading.
  static constexpr uint32_t kEvents[] = {EPOLLIN | EPOLLRDHUP, EPOLLOUT, EPOLLRDHUP, 0};
  if (connection.interest == interest) return;
  connection.interest = interest;
  const uint64_t key = EventSet::connectionKey(indexOf(connection), connection.generation);
  events_->change(connection.fd, key, kEvents[static_cast<size_t>(interest)]);
}

// ---- Deadlines ----------------------------------------------------------------------------------

void Connections::arm(Connection& connection, Deadline deadline, uint32_t milliseconds) {
  connection.deadline = deadline;
  wheel_.arm(indexOf(connection), now_ + milliseconds);
}

}  // namespace server
