#include "connections.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "answers.h"

namespace server {

namespace {

/** Most pieces of a message in one system call; a longer message takes several. */
constexpr size_t kMaxPieces = 128;

/** Most bytes that are encrypted together: a record. */
constexpr size_t kRecordBytes = 16384;

/** Bytes that OpenSSL holds for an incomplete record. */
constexpr uint64_t kPartialRecordBytes = 17408;

ssize_t zeroIfWouldBlock(ssize_t accepted) {
  return accepted < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : accepted;
}

}  // namespace

Connections::Connections(uint32_t capacity, EventSet* events, AddressLimits* limits,
                         std::atomic<uint32_t>* openInAll, CloseCallback beforeClose, uint64_t now)
    : events_(events),
      limits_(limits),
      openInAll_(openInAll),
      beforeClose_(std::move(beforeClose)),
      connections_(capacity),
      sessions_(capacity),
      wheel_(capacity, now),
      now_(now) {}

// ---- Lifecycle ----------------------------------------------------------------------------------

Connection* Connections::open(int fd, TlsContext* tls) {
  uint32_t index;
  if (firstFree_ != 0) {
    index = firstFree_ - 1;
    firstFree_ = connections_[index].record;
  } else {
    index = usedPlaces_++;
  }
  Connection& connection = connections_[index];
  connection.fd = fd;
  connection.state = ConnectionState::kReading;
  connection.interest = Interest::kRead;
  ++count_;
  ++*openInAll_;
  if (tls != nullptr) {
    sessions_[index].session = tls->open(fd);
    connection.isTls = sessions_[index].session != nullptr;
    connection.state = ConnectionState::kHandshaking;
    if (connection.isTls) ++tlsCount_;
  }
  const uint64_t key = EventSet::connectionKey(index, connection.generation);
  if ((tls != nullptr && !connection.isTls) || !events_->add(fd, key, EPOLLIN)) {
    close(connection);
    return nullptr;
  }
  return &connection;
}

void Connections::beginClosing(Connection& connection) {
  connection.state = ConnectionState::kClosing;
  ++closingCount_;
}

void Connections::close(Connection& connection) {
  beforeClose_(connection);
  if (connection.partialRecordCounted) releaseMemory(connection, kPartialRecordBytes);
  if (connection.isCounted) limits_->removeConnection(connection.clientAddress);
  if (connection.isTls) {
    const uint32_t index = indexOf(connection);
    // Without a close_notify a client may take the end of its idle connection for an attack.
    sessions_[index].session->endOurHalf();
    delete std::exchange(sessions_[index].session, nullptr);
    --tlsCount_;
  }
  ::close(connection.fd);
  freePlace(connection);
}

/** Frees a connection's place and memory. */
void Connections::freePlace(Connection& connection) {
  const uint32_t index = indexOf(connection);
  detachInput(connection);
  if (connection.state == ConnectionState::kClosing) --closingCount_;
  discardOutput(connection);
  wheel_.disarm(index);
  const uint32_t generation = connection.generation + 1;
  connection = Connection{};
  connection.generation = generation;
  connection.record = firstFree_;
  firstFree_ = index + 1;
  --count_;
  --*openInAll_;
}

bool Connections::reserveMemory(const Connection& connection, uint64_t bytes) {
  if (connection.isCounted && !limits_->addHeldBytes(connection.clientAddress, bytes)) return false;
  heldBytes_ += bytes;
  return true;
}

void Connections::releaseMemory(const Connection& connection, uint64_t bytes) {
  if (bytes == 0) return;
  if (connection.isCounted) limits_->removeHeldBytes(connection.clientAddress, bytes);
  heldBytes_ -= bytes;
}

bool Connections::countOutput(Connection& connection) {
  if (reserveMemory(connection, connection.output->cost())) return true;
  delete std::exchange(connection.output, nullptr);
  return false;
}

void Connections::discardOutput(Connection& connection) {
  if (connection.output == nullptr) return;
  releaseMemory(connection, connection.output->cost());
  delete std::exchange(connection.output, nullptr);
}

void Connections::closeAll() {
  forEach([this](Connection& connection) { close(connection); });
}

// ---- Bytes, with or without TLS -----------------------------------------------------------------

ssize_t Connections::receive(const Connection& connection, char* to, size_t room) {
  return connection.isTls ? session(connection).receive(to, room)
                          : recv(connection.fd, to, room, 0);
}

ssize_t Connections::send(const Connection& connection, const char* bytes, size_t length) {
  if (!connection.isTls) {
    return zeroIfWouldBlock(::send(connection.fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  size_t accepted = 0;
  while (accepted < length) {
    const size_t partLength = std::min(length - accepted, kRecordBytes);
    const ssize_t sent = session(connection).send(bytes + accepted, partLength);
    if (sent < 0) return sent;
    if (sent == 0) break;
    accepted += sent;
  }
  return static_cast<ssize_t>(accepted);
}

ssize_t Connections::send(const Connection& connection, const base::Message& message,
                          uint64_t sent) {
  if (sent > 0 || connection.isTls || message.length() < SendCosts::kLongMessage) {
    return sendRest(connection, message, sent);
  }
  const SendMethod method = message.file() >= 0 ? SendMethod::kFile : SendMethod::kCopy;
  const uint64_t began = EventSet::now();
  const ssize_t accepted = sendRest(connection, message, 0);
  const bool isWhole = accepted == static_cast<ssize_t>(message.length());
  if (isWhole) costs_.addMeasurement(method, EventSet::now() - began, message.length());
  return accepted;
}

ssize_t Connections::sendRest(const Connection& connection, const base::Message& message,
                              uint64_t sent) {
  // sendfile raises SIGPIPE when the client is gone; Node ignores it.
  if (!connection.isTls && message.file() >= 0) {
    auto from = static_cast<off_t>(sent);
    return zeroIfWouldBlock(
        sendfile(connection.fd, message.file(), &from, message.length() - sent));
  }
  if (!connection.isTls) {
    iovec pieces[kMaxPieces];
    size_t count = 0;
    message.forEachPieceAfter(sent, [&](const char* data, size_t length) {
      pieces[count++] = {const_cast<char*>(data), length};
      return count < kMaxPieces;
    });
    if (count == 1) {
      return send(connection, static_cast<const char*>(pieces[0].iov_base), pieces[0].iov_len);
    }
    msghdr header = {};
    header.msg_iov = pieces;
    header.msg_iovlen = count;
    return zeroIfWouldBlock(sendmsg(connection.fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  // The pieces are joined, so that small ones do not become records of their own. The same offset
  // always yields the same bytes, which TlsSession::send requires.
  char record[kRecordBytes];
  ssize_t accepted = 0;
  for (;;) {
    size_t length = 0;
    message.forEachPieceAfter(sent + accepted, [&](const char* data, size_t size) {
      const size_t fits = std::min(size, kRecordBytes - length);
      memcpy(record + length, data, fits);
      length += fits;
      return length < kRecordBytes;
    });
    const ssize_t more = length == 0 ? 0 : session(connection).send(record, length);
    if (more < 0) return more;
    accepted += more;
    if (more == 0 || static_cast<size_t>(more) < length) return accepted;
  }
}

bool Connections::countPartialRecord(Connection& connection) {
  if (!connection.isTls) return true;
  const bool isPartial = session(connection).isMidRecord();
  if (isPartial == connection.partialRecordCounted) return true;
  if (isPartial && !reserveMemory(connection, kPartialRecordBytes)) return false;
  if (!isPartial) releaseMemory(connection, kPartialRecordBytes);
  connection.partialRecordCounted = isPartial;
  return true;
}

void Connections::endOurHalf(const Connection& connection) {
  if (connection.isTls) session(connection).endOurHalf();
  shutdown(connection.fd, SHUT_WR);
}

// ---- Input --------------------------------------------------------------------------------------

bool Connections::storeInput(Connection& connection, const char* data, size_t length,
                             size_t requestLength) {
  const size_t room = std::max(length, requestLength);
  if (!reserveMemory(connection, room)) return false;
  connection.input = static_cast<char*>(malloc(room));
  if (connection.input == nullptr) {
    releaseMemory(connection, room);
    return false;
  }
  memcpy(connection.input, data, length);
  connection.inputLength = length;
  connection.requestLength = requestLength;
  updateInterest(connection);
  return true;
}

Input Connections::detachInput(Connection& connection) {
  releaseMemory(connection, std::max(connection.requestLength, connection.inputLength));
  connection.inputLength = connection.requestLength = 0;
  return Input(std::exchange(connection.input, nullptr));
}

// ---- What epoll watches for ---------------------------------------------------------------------

void Connections::updateInterest(Connection& connection) {
  // A head that arrives has its own bounds of time and bytes.
  const bool isReadingHead = connection.state == ConnectionState::kReading &&
                             connection.deadline == Deadline::kHead &&
                             !connection.hasDecidedAnswer && !connection.willResume;
  const bool hasEnough = connection.requestLength == 0 && !isReadingHead &&
                         connection.inputLength >= kMaxPipelinedBytes;
  if (connection.output != nullptr) return setInterest(connection, Interest::kWrite);
  // A reading connection goes on with its input in the next turn, even if its client has ended its
  // half meanwhile.
  const bool mayResume = connection.state == ConnectionState::kReading;
  setInterest(connection, !hasEnough  ? Interest::kRead
                          : mayResume ? Interest::kReset
                                      : Interest::kHangUp);
}

void Connections::setInterest(Connection& connection, Interest interest) {
  // Indexed by Interest; epoll always reports a reset. While an answer is being written the end of
  // the client's half is ignored: the client may still read.
  static constexpr uint32_t kEvents[] = {EPOLLIN, EPOLLOUT, EPOLLRDHUP, 0};
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
