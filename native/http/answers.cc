#include "answers.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

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

/** Pieces of a message that go to the kernel at once; a longer one goes on with the next. */
constexpr size_t kPieces = 128;

/** The same with what is left of a message. */
ssize_t give(int fd, const base::Message& message, uint64_t sent) {
  iovec pieces[kPieces];
  size_t count = 0;
  message.rest(sent, [&](const char* data, size_t length) {
    pieces[count++] = {const_cast<char*>(data), length};
    return count < kPieces;
  });
  msghdr header = {};
  header.msg_iov = pieces;
  header.msg_iovlen = count;
  const ssize_t taken = sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  return taken < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : taken;
}

}  // namespace

bool Answers::send(Connection& connection, std::string_view bytes) {
  const ssize_t taken = give(connection.fd, bytes.data(), bytes.size());
  if (taken < 0) {
    connections_->close(connection);
    return false;
  }
  if (static_cast<size_t>(taken) == bytes.size()) return sent(connection);
  const base::Ref<base::Bytes> rest = base::Bytes::copyOf(bytes.substr(taken), nullptr);
  const base::Piece piece = {rest.get(), 0, rest->length()};
  keepOutput(connection, base::Message::of(&piece, 1), 0, false);
  return false;
}

bool Answers::send(Connection& connection, base::Ref<base::Message> message) {
  const ssize_t taken = give(connection.fd, *message, 0);
  if (taken < 0) {
    connections_->close(connection);
    return false;
  }
  if (static_cast<uint64_t>(taken) == message->length()) return sent(connection);
  keepOutput(connection, std::move(message), taken, true);
  return false;
}

/** All of an answer is with the kernel: true. */
bool Answers::sent(Connection& connection) {
  connections_->watch(connection);
  if (connection.state == ConnectionState::kStreaming) {
    connections_->disarm(connection);
  } else {
    connections_->arm(connection, Deadline::kIdle, idleTime_);
  }
  return true;
}

/** Keeps what the kernel has not taken. */
void Answers::keepOutput(Connection& connection, base::Ref<base::Message> message, uint64_t sent,
                         bool shared) {
  auto* output = new Output;
  output->message = std::move(message);
  output->sent = sent;
  output->shared = shared;
  output->connection = connections_->indexOf(connection);
  if (shared) output->join(&slow_);
  connection.output = output;
  if (!connections_->countOutput(connection)) return connections_->close(connection);
  connections_->watch(connection);
  connections_->arm(connection, Deadline::kWrite, writeTime_);
}

bool Answers::flush(Connection& connection) {
  Output* const output = connection.output;
  if (output == nullptr) return false;
  const ssize_t taken = give(connection.fd, *output->message, output->sent);
  if (taken < 0) {
    connections_->close(connection);
    return false;
  }
  output->sent += taken;
  if (output->sent < output->message->length()) {
    if (taken > 0) connections_->arm(connection, Deadline::kWrite, writeTime_);
    return false;
  }
  connections_->dropOutput(connection);
  if (connection.state == ConnectionState::kClosing) {
    connections_->watch(connection);
    endOurHalf(connection);
    return false;
  }
  return sent(connection);
}

bool Answers::closeSlowest() {
  if (slow_.newer == &slow_) return false;
  const auto* output = static_cast<Output*>(slow_.newer);
  connections_->close((*connections_)[output->connection]);
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
