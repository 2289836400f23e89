#include "answers.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace server {

namespace {

/** Milliseconds a peer may take to read a last answer and close. */
constexpr uint32_t kLinger = 1000;

/** Connections that may take it at the same time; further ones are closed at once. */
constexpr uint32_t kLingerers = 256;

/** Bytes of a refused request that are thrown away before its connection is closed. */
constexpr size_t kUnreadBytes = 65536;

/** Gives bytes to the kernel. Returns how many it took, or -1 when the connection is lost. */
ssize_t give(int fd, const char* bytes, size_t length) {
  const ssize_t sent = ::send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

}  // namespace

bool Answers::send(Connection& connection, std::string_view bytes) {
  const ssize_t sent = give(connection.fd, bytes.data(), bytes.size());
  if (sent < 0) {
    connections_->close(connection);
    return false;
  }
  if (static_cast<size_t>(sent) < bytes.size()) {
    bytes.remove_prefix(sent);
    keepOutput(connection, bytes);
    return false;
  }
  connections_->watch(connection);
  connections_->arm(connection, Deadline::kIdle, idleTime_);
  return true;
}

/** Keeps what the kernel has not taken; without memory for it the connection is closed. */
void Answers::keepOutput(Connection& connection, std::string_view bytes) {
  auto* output = static_cast<Output*>(malloc(sizeof(Output) + bytes.size()));
  if (output == nullptr) return connections_->close(connection);
  *output = {static_cast<uint32_t>(bytes.size()), 0};
  memcpy(output->bytes(), bytes.data(), bytes.size());
  connection.output = output;
  connections_->holdBytes(output->length);
  connections_->watch(connection);
  connections_->arm(connection, Deadline::kWrite, writeTime_);
}

bool Answers::flush(Connection& connection) {
  Output* const output = connection.output;
  if (output == nullptr) return false;
  const ssize_t sent =
      give(connection.fd, output->bytes() + output->sent, output->length - output->sent);
  if (sent < 0) {
    connections_->close(connection);
    return false;
  }
  output->sent += sent;
  if (output->sent < output->length) {
    if (sent > 0) connections_->arm(connection, Deadline::kWrite, writeTime_);
    return false;
  }
  connections_->holdBytes(-int64_t{output->length});
  free(output);
  connection.output = nullptr;
  connections_->watch(connection);
  if (connection.state == ConnectionState::kClosing) {
    endOurHalf(connection);
    return false;
  }
  connections_->arm(connection, Deadline::kIdle, idleTime_);
  return true;
}

void Answers::sendLast(Connection& connection, std::string_view bytes) {
  const Ticket ticket = connections_->ticketOf(connection);
  connections_->beginClosing(connection);
  const bool whole = send(connection, bytes);
  if (connections_->find(ticket) == nullptr) return;
  if (connections_->closing() > kLingerers) return connections_->close(connection);
  if (whole) endOurHalf(connection);
}

/** Tells the peer that nothing more will come. */
void Answers::endOurHalf(Connection& connection) {
  shutdown(connection.fd, SHUT_WR);
  connections_->arm(connection, Deadline::kIdle, kLinger);
}

void Answers::sendAndClose(int fd, std::string_view bytes) {
  // With nothing unread the close is no reset. TCP throws away what is read with MSG_TRUNC
  // (tcp(7)).
  (void)!recv(fd, nullptr, kUnreadBytes, MSG_DONTWAIT | MSG_TRUNC);
  (void)!give(fd, bytes.data(), bytes.size());
  shutdown(fd, SHUT_WR);
  ::close(fd);
}

}  // namespace server
