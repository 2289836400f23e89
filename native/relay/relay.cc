#include "relay.h"

#include <cstddef>
#include <utility>

namespace server {

void RelayHandler::add(const RelayFrame& frame, std::string_view text) {
  outgoing().append(reinterpret_cast<const char*>(&frame), sizeof frame);
  outgoing().append(text);
}

void RelayHandler::receive(std::string_view bytes) {
  replies_.feed(bytes, [this](std::string_view all) {
    size_t taken = 0;
    for (; all.size() - taken >= sizeof(RelayReply); taken += sizeof(RelayReply)) {
      RelayReply reply;
      memcpy(&reply, all.data() + taken, sizeof reply);
      const bool ofScript = reply.ticket.connection == kScriptConnection;
      const auto outcome =
          reply.settled == Settled::kHolds ? std::optional(reply.outcome) : std::nullopt;
      (ofScript ? toScript_ : toDoor_)(reply.ticket, outcome, reply.id);
    }
    return taken;
  });
}

std::optional<Outcome> RelayHandler::join(Ticket ticket, const Address& address, Id*) {
  add({.length = 0,
       .ticket = ticket,
       .route = Route::kJoin,
       .edge = {},
       .unused = 0,
       .number = kNoNumber,
       .address = address,
       .id = {}},
      {});
  return std::nullopt;
}

std::optional<Outcome> RelayHandler::leave(Ticket ticket, const Id& id) {
  add({.length = 0,
       .ticket = ticket,
       .route = Route::kLeave,
       .edge = {},
       .unused = 0,
       .number = kNoNumber,
       .address = {},
       .id = id},
      {});
  return std::nullopt;
}

std::optional<Outcome> RelayHandler::throwSprite(Ticket ticket, const HotRequest& request,
                                                 std::string_view text) {
  return throwSprite(ticket, request.id, request.edge,
                     request.hasNumber ? request.number : kNoNumber, text);
}

std::optional<Outcome> RelayHandler::throwSprite(Ticket ticket, const Id& id, Edge edge,
                                                 uint64_t number, std::string_view text) {
  // Checked here: the main process does not check it again.
  const Outcome check = checkSprite(text, maxSprite_);
  if (check != Outcome::kOk) return refuse(check);
  add({.length = static_cast<uint32_t>(text.size()),
       .ticket = ticket,
       .route = Route::kThrow,
       .edge = edge,
       .unused = 0,
       .number = number,
       .address = {},
       .id = id},
      text);
  return std::nullopt;
}

void RelayServer::receive(std::string_view bytes) {
  frames_.feed(bytes, [this](std::string_view all) {
    size_t taken = 0;
    while (all.size() - taken >= sizeof(RelayFrame)) {
      RelayFrame frame;
      memcpy(&frame, all.data() + taken, sizeof frame);
      if (all.size() - taken - sizeof frame < frame.length) break;
      const RelayReply reply = serve(frame, all.substr(taken + sizeof frame, frame.length));
      outgoing().append(reinterpret_cast<const char*>(&reply), sizeof reply);
      decided_ += sizeof reply;
      taken += sizeof frame + frame.length;
    }
    return taken;
  });
}

void RelayServer::settle(Settled settled) {
  const size_t decided = std::exchange(decided_, 0);
  if (settled == Settled::kHolds) return;
  for (size_t at = outgoing().size() - decided; at < outgoing().size(); at += sizeof(RelayReply)) {
    outgoing()[at + offsetof(RelayReply, settled)] = static_cast<char>(settled);
  }
}

RelayReply RelayServer::serve(const RelayFrame& frame, std::string_view text) {
  RelayReply reply = {.ticket = frame.ticket,
                      .outcome = Outcome::kOk,
                      .settled = Settled::kHolds,
                      .unused = {},
                      .id = {}};
  switch (frame.route) {
    case Route::kJoin:
      reply.outcome = pool_->join(frame.address, clock_(), &reply.id);
      break;
    case Route::kThrow:
      reply.outcome = pool_->throwChecked(frame.id, frame.edge, frame.number, text, clock_());
      break;
    case Route::kLeave:
      reply.outcome = pool_->leave(frame.id);
      break;
    case Route::kPoll:  // these never cross: they are served where the pool is
    case Route::kFeed:
    case Route::kFeeds:
    case Route::kPlace:
    case Route::kReady:
      reply.outcome = Outcome::kUnknownClient;
      break;
  }
  return reply;
}

}  // namespace server
