#include "grants.h"

#include <utility>

namespace server {

namespace {

/** How long a token counts as no grant, in milliseconds. */
constexpr uint64_t kBadFor = 30000;

}  // namespace

void Grants::refuse(const TokenHash& token, uint64_t now) {
  bad_.resize(kMostBad);
  bad_[Hash()(token) % kMostBad] = {token, now + kBadFor};
}

bool Grants::isBad(const TokenHash& token, uint64_t now) const {
  if (bad_.empty()) return false;
  const Bad& one = bad_[Hash()(token) % kMostBad];
  return one.token == token && one.until > now;
}

uint32_t Grants::find(const TokenHash& token, uint64_t now) const {
  const auto found = byToken_.find(token);
  if (found == byToken_.end()) return kNone;
  return over(found->second, now) == Outcome::kOk ? found->second : kNone;
}

uint64_t Grants::bytesOf(const Grant& grant) {
  // Its entries in the map and in the list are included.
  uint64_t sum = sizeof grant + 96 + grant.read.size();
  for (const std::string& part : grant.parts) sum += part.size();
  return sum;
}

uint32_t Grants::take(const GrantRights& rights, uint64_t now) {
  if (const uint32_t known = find(rights.token, now); known != kNone) return known;
  // Each new grant removes up to two ended ones, and as many as it needs room for.
  for (int i = 0; i < 2 && !idle_.empty(); ++i) {
    if (over(idle_.front(), now) == Outcome::kOk) break;
    forget(idle_.front());
  }
  Grant grant = {.token = rights.token,
                 .end = now + rights.left,
                 .read = KeyPatterns(rights.read),
                 .parts = rights.parts,
                 .present = rights.present};
  const uint64_t bytes = bytesOf(grant);
  while (bytes_ + bytes > kMostBytes || (free_.empty() && grants_.size() > kMost)) {
    if (idle_.empty()) return kNone;
    forget(idle_.front());
  }
  uint32_t number;
  if (free_.empty()) {
    number = static_cast<uint32_t>(grants_.size());
    grants_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  bytes_ += bytes;
  // An ended grant of this token may still have watchers: it is not found any more.
  byToken_[grant.token] = number;
  grant.idle = idle_.insert(idle_.end(), number);
  grants_[number] = std::move(grant);
  return number;
}

void Grants::forget(uint32_t number) {
  Grant& grant = grants_[number];
  bytes_ -= bytesOf(grant);
  idle_.erase(grant.idle);
  const auto found = byToken_.find(grant.token);
  if (found != byToken_.end() && found->second == number) byToken_.erase(found);
  grant = {};
  free_.push_back(number);
}

void Grants::watched(uint32_t number) {
  Grant& grant = grants_[number];
  if (grant.watchers++ == 0) idle_.erase(grant.idle);
}

void Grants::unwatched(uint32_t number) {
  Grant& grant = grants_[number];
  if (--grant.watchers > 0) return;
  grant.idle = idle_.insert(idle_.end(), number);
  if (grant.ended) forget(number);
}

bool Grants::end(GrantPart part, std::string_view name) {
  bool watched = false;
  for (uint32_t number = 1; number < grants_.size(); ++number) {
    Grant& grant = grants_[number];
    if (grant.parts[static_cast<size_t>(part)] != name) continue;
    grant.ended = true;
    watched = watched || grant.watchers > 0;
    if (grant.watchers == 0) forget(number);
  }
  return watched;
}

}  // namespace server
