// What becomes of a request. Made from lib/http/outcomes.js by "npm run tables".
#ifndef SPRITES_OUTCOME_H_
#define SPRITES_OUTCOME_H_

#include <cstddef>
#include <cstdint>

namespace server {

/** What became of a request. The order is the order of `outcomes` in JavaScript. */
enum class Outcome : uint8_t {
  kOk,
  kDelivered,
  kQueued,
  kDuplicate,
  kUnknownClient,
  kTorusFull,
  kDraining,
  kAckAhead,
  kBadHold,
  kBadSprite,
  kSpriteTooLarge,
  kStaleNumber,
  kTooManyThrows,
  kNeighborBusy,
  kMailboxesFull,
  kTooManyJoins,
  kTooManyClients,
  kTooManySprites,
  kTooManyPolls,
  kStateUnwritable,
  kUnknownArena,
  kUnknownPlayer,
  kBadInput,
  kTooManyInputs,
  kArenaFull,
  kUnknownFeed,
  kTooManyWatchers,
  kTooManyFeeds,
  kFeedMemoryFull,
  kUpstreamFailed,
  kTooManyFetches,
  kNotALog,
  kGrantRequired,
  kBadGrant,
  kGrantExpired,
  kNotGranted,
  kMisdirected,
  kRestarting,
  kBadRequest,
  kHeadTooLarge,
  kExpectationFailed,
  kRequestTimeout,
  kTooManyConnections,
  kTooMuchHeld,
};
constexpr size_t kOutcomes = 44;

/** The same for people and problem documents, in this order. */
constexpr const char* kOutcomeNames[kOutcomes] = {
    "ok",
    "delivered",
    "queued",
    "duplicate",
    "unknown-client",
    "torus-full",
    "draining",
    "ack-ahead",
    "bad-hold",
    "bad-sprite",
    "sprite-too-large",
    "stale-number",
    "too-many-throws",
    "neighbor-busy",
    "mailboxes-full",
    "too-many-joins",
    "too-many-clients",
    "too-many-sprites",
    "too-many-polls",
    "state-unwritable",
    "unknown-arena",
    "unknown-player",
    "bad-input",
    "too-many-inputs",
    "arena-full",
    "unknown-feed",
    "too-many-watchers",
    "too-many-feeds",
    "feed-memory-full",
    "upstream-failed",
    "too-many-fetches",
    "not-a-log",
    "grant-required",
    "bad-grant",
    "grant-expired",
    "not-granted",
    "misdirected",
    "restarting",
    "bad-request",
    "head-too-large",
    "expectation-failed",
    "request-timeout",
    "too-many-connections",
    "too-much-held",
};

}  // namespace server

#endif  // SPRITES_OUTCOME_H_
