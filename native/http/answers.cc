#include "answers.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace server {

namespace {

/** Milliseconds for a client to read a last answer and close. */
constexpr uint32_t kLingerTime = 1000;

/** Most connections that wait for this at the same time; further ones are closed at once. */
constexpr uint32_t kMaxLingering = 256;

/** Bytes of a refused request that are dropped before its connection is closed. */
constexpr size_t kUnreadBytes = 65536;

}  // namespace

bool Answers::send(Connection& connection, std::string_view bytes) {
  const ssize_t accepted = connections_->send(connection, bytes.data(), bytes.size());
  if (accepted < 0) {
    connections_->close(connection);
    return false;
  }
  if (static_cast<size_t>(accepted) == bytes.size()) return afterSending(connection);
  const base::Ref<base::Bytes> rest = base::Bytes::copyOf(bytes.substr(accepted), nullptr);
  const base::Piece piece = {rest.get(), 0, rest->length()};
  storeOutput(connection, base::Message::fromPieces(&piece, 1), 0, false);
  return false;
}

bool Answers::sendInterim(Connection& connection, std::string_view bytes) {
  const ssize_t accepted = connections_->send(connection, bytes.data(), bytes.size());
  if (accepted == static_cast<ssize_t>(bytes.size())) return true;
  connections_->close(connection);
  return false;
}

bool Answers::send(Connection& connection, base::Ref<base::Message> message) {
  const ssize_t accepted = connections_->send(connection, *message, 0);
  if (accepted < 0) {
    connections_->close(connection);
    return false;
  }
  if (static_cast<uint64_t>(accepted) == message->length()) return afterSending(connection);
  storeOutput(connection, std::move(message), accepted, true);
  return false;
}

/**
 * Continues after the kernel has accepted all of an answer. Returns true, unless it was the last
 * one.
 */
bool Answers::afterSending(Connection& connection) {
  const bool isLastAnswer =
      connection.closesAfterAnswer && connection.state == ConnectionState::kReading;
  if (isLastAnswer) connections_->beginClosing(connection);
  if (connection.state == ConnectionState::kClosing) {
    endOurHalf(connection);
    return false;
  }
  if (connection.state == ConnectionState::kStreaming) {
    connections_->disarm(connection);
  } else {
    connections_->arm(connection, Deadline::kIdle, idleTime_);
  }
  connections_->updateInterest(connection);
  return true;
}

/** Keeps the bytes that the kernel has not accepted. */
void Answers::storeOutput(Connection& connection, base::Ref<base::Message> message, uint64_t sent,
                          bool isShared) {
  auto* output = new Output;
  output->message = std::move(message);
  output->sent = sent;
  output->isShared = isShared;
  output->slowSince = static_cast<uint32_t>(EventSet::now() / 1000) & 0x7fffffff;
  output->connection = connections_->indexOf(connection);
  if (isShared) output->linkAsNewest(&slowReaders_);
  connection.output = output;
  if (!connections_->countOutput(connection)) return connections_->close(connection);
  connections_->updateInterest(connection);
  connections_->arm(connection, Deadline::kWrite, writeTime_);
}

bool Answers::flush(Connection& connection) {
  Output* const output = connection.output;
  if (output == nullptr) return false;
  const ssize_t accepted = connections_->send(connection, *output->message, output->sent);
  if (accepted < 0) {
    connections_->close(connection);
    return false;
  }
  output->sent += accepted;
  if (output->sent < output->message->length()) {
    if (accepted > 0) connections_->arm(connection, Deadline::kWrite, writeTime_);
    return false;
  }
  connections_->discardOutput(connection);
  return afterSending(connection);
}

uint64_t Answers::slowestSince() const {
  if (slowReaders_.newer == &slowReaders_) return UINT64_MAX;
  constexpr uint64_t kBits = (uint64_t{1} << 31) - 1;
  const uint64_t now = EventSet::now() / 1000;
  return now - ((now - static_cast<Output*>(slowReaders_.newer)->slowSince) & kBits);
}

bool Answers::closeSlowest() {
  if (slowReaders_.newer == &slowReaders_) return false;
  const auto* output = static_cast<Output*>(slowReaders_.newer);
  connections_->close((*connections_)[output->connection]);
  return true;
}

void Answers::sendLast(Connection& connection, std::string_view bytes) {
  const Ticket ticket = connections_->ticketOf(connection);
  connections_->beginClosing(connection);
  send(connection, bytes);
  if (connections_->find(ticket) != nullptr && connections_->closingCount() > kMaxLingering) {
    connections_->close(connection);
  }
}

/** Ends the server's half; further input of the client is read and dropped. */
void Answers::endOurHalf(Connection& connection) {
  if (connections_->closingCount() > kMaxLingering) return connections_->close(connection);
  connections_->detachInput(connection);
  connections_->updateInterest(connection);
  connections_->endOurHalf(connection);
  connections_->arm(connection, Deadline::kIdle, kLingerTime);
}

void Answers::sendAndClose(int fd, std::string_view bytes) {
  // Without unread bytes, close sends no reset. With MSG_TRUNC, TCP drops the bytes it reads
  // (tcp(7)).
  (void)!recv(fd, nullptr, kUnreadBytes, MSG_DONTWAIT | MSG_TRUNC);
  (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  shutdown(fd, SHUT_WR);
  ::close(fd);
}

}  // namespace server
