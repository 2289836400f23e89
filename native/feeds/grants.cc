#include "grants.h"

namespace server {

namespace {

/** How long a token counts as no grant, in milliseconds. */
constexpr uint64_t kBadFor = 30000;

}  // namespace

void Grants::rememberBad(const TokenHash& token, uint64_t now) {
  badTokens_.resize(kMaxBad);
  badTokens_[Hash()(token) % kMaxBad] = {token, now + kBadFor};
}

bool Grants::isBad(const TokenHash& token, uint64_t now) const {
  if (badTokens_.empty()) return false;
  const BadToken& one = badTokens_[Hash()(token) % kMaxBad];
  return one.token == token && one.until > now;
}

uint32_t Grants::find(const TokenHash& token, uint64_t now) const {
  const auto found = byToken_.find(token);
  if (found == byToken_.end()) return kNone;
  return problemOf(found->second, now) == Outcome::kOk ? found->second : kNone;
}

uint64_t Grants::bytesOf(const Grant& grant) {
  // Its entries in the map and in the list are included.
  uint64_t sum = sizeof grant + 96 + grant.read.size();
  for (const std::string& part : grant.parts) sum += part.size();
  return sum;
}

uint32_t Grants::add(const GrantRights& rights, uint64_t now) {
  if (const uint32_t known = find(rights.token, now); known != kNone) return known;
  // Each new grant removes up to two ended ones, and as many as it needs room for.
  for (int i = 0; i < 2 && !idle_.empty(); ++i) {
    if (problemOf(idle_.front(), now) == Outcome::kOk) break;
    remove(idle_.front());
  }
  Grant grant = {.token = rights.token,
                 .end = now + rights.timeLeft,
                 .read = KeyPatterns(rights.read),
                 .parts = rights.parts,
                 .showsName = rights.present};
  const uint64_t bytes = bytesOf(grant);
  while (bytes_ + bytes > kMaxBytes || (free_.empty() && grants_.size() > kMaxGrants)) {
    if (idle_.empty()) return kNone;
    remove(idle_.front());
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
  grant.idlePosition = idle_.insert(idle_.end(), number);
  grants_[number] = std::move(grant);
  return number;
}

void Grants::remove(uint32_t number) {
  Grant& grant = grants_[number];
  bytes_ -= bytesOf(grant);
  idle_.erase(grant.idlePosition);
  const auto found = byToken_.find(grant.token);
  if (found != byToken_.end() && found->second == number) byToken_.erase(found);
  grant = {};
  free_.push_back(number);
}

void Grants::addWatcher(uint32_t number) {
  Grant& grant = grants_[number];
  if (grant.watchers++ == 0) idle_.erase(grant.idlePosition);
}

void Grants::removeWatcher(uint32_t number) {
  Grant& grant = grants_[number];
  if (--grant.watchers > 0) return;
  grant.idlePosition = idle_.insert(idle_.end(), number);
  if (grant.isEnded) remove(number);
}

bool Grants::endByPart(GrantPart part, std::string_view name) {
  bool watched = false;
  for (uint32_t number = 1; number < grants_.size(); ++number) {
    Grant& grant = grants_[number];
    if (grant.parts[static_cast<size_t>(part)] != name) continue;
    grant.isEnded = true;
    watched = watched || grant.watchers > 0;
    if (grant.watchers == 0) remove(number);
  }
  return watched;
}

}  // namespace server
