// Grants of a simulation: the book of signed grants and of revocations, and the part of JavaScript,
// which verifies grants that the server's table does not know.
//
//   visitor ─ request ─▶ server ─ unknown ─▶ Admission: verifies, late ─▶ watches, or refuses
//                           └──── known ───▶ served
//   operator ─ revoke ─▶ Admission ─▶ note ─▶ journal ─▶ confirmed
//
// The book knows from when on the server may refuse a grant, and from when on it must.
#ifndef TEST_NATIVE_SIMULATED_GRANTS_H_
#define TEST_NATIVE_SIMULATED_GRANTS_H_

#include <openssl/evp.h>

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/front.h"
#include "simulated_machine.h"

namespace sim {

/** Most microseconds that JavaScript takes to verify a grant. */
constexpr uint64_t kMaxVerifyTime = 3 * kSecond;

/** The feeds that require a grant. */
inline const std::vector<std::string> kPrivate = {"secret/*"};

struct SignedGrant {
  std::string token, sub, jti;
  std::string read;  // one pattern
  bool present;
  bool forged;   // signed by a foreign key
  uint64_t end;  // expiry, in microseconds

  bool reads(std::string_view key) const {
    const std::string_view watchedKey = server::presenceSubjectOf(key);
    return server::KeyPatterns({read}).covers(watchedKey.empty() ? key : watchedKey);
  }
};

class GrantBook {
 public:
  const SignedGrant* sign(SignedGrant grant) {
    const std::string number = std::to_string(grants_.size());
    grant.jti = "j" + number;
    grant.token = "aa." + number + (grant.forged ? ".bad" : ".good");
    grants_.push_back(std::move(grant));
    numbers_[grants_.back().token] = grants_.size() - 1;
    return &grants_.back();
  }

  const SignedGrant* find(const std::string& token) const {
    const auto found = numbers_.find(token);
    return found == numbers_.end() ? nullptr : &grants_[found->second];
  }

  /** Returns one of the newest grants; nullptr: there is none. */
  const SignedGrant* randomGrant() const {
    if (grants_.empty()) return nullptr;
    const size_t newest = std::min<size_t>(grants_.size(), 12);
    return &grants_[grants_.size() - 1 - machine->below(newest)];
  }

  /** Record a revocation's request, and its confirmation. */
  void beginRevocation(const std::string& what) {
    revoked_.emplace(what, Revocation{machine->now(), kNever});
  }
  void confirmRevocation(const std::string& what) {
    uint64_t& held = revoked_.at(what).held;
    held = std::min(held, machine->now());
  }

  /** Returns from when on the grant may be refused as revoked. */
  uint64_t revocationStart(const SignedGrant& grant) const {
    return earliest(grant, &Revocation::begun);
  }

  /** Returns from when on the grant must be refused. */
  uint64_t endOfGrant(const SignedGrant& grant) const {
    return std::min(grant.end, earliest(grant, &Revocation::held));
  }

  bool isRevoked(const std::string& sub) const { return revoked_.contains("sub/" + sub); }

  /** Returns from when on no watcher may have this name. */
  uint64_t endOfName(const std::string& sub) const {
    const auto found = revoked_.find("sub/" + sub);
    return found == revoked_.end() ? kNever : found->second.held;
  }

 private:
  struct Revocation {
    uint64_t begun, held;
  };

  uint64_t earliest(const SignedGrant& grant, uint64_t Revocation::*member) const {
    uint64_t sum = kNever;
    for (const std::string& what : {"sub/" + grant.sub, "jti/" + grant.jti}) {
      const auto found = revoked_.find(what);
      if (found != revoked_.end()) sum = std::min(sum, found->second.*member);
    }
    return sum;
  }

  std::deque<SignedGrant> grants_;
  std::map<std::string, size_t> numbers_;
  std::map<std::string, Revocation> revoked_;
};
inline GrantBook* book = nullptr;

/** Stands in for lib/grants/open.js and lib/grants/revocations.js in one life of the server. */
class Admission {
 public:
  /** `schedule(n)` schedules a call of `act` after n microseconds. */
  Admission(server::Turn* turn, server::Front* front, std::function<void(uint64_t)> schedule)
      : turn_(turn), front_(front), schedule_(std::move(schedule)) {
    for (const auto& [name, bytes] : turn_->notes()) {
      if (name.starts_with(kNote)) revoked_[name.substr(kNote.size())] = true;
    }
  }

  /** Accepts a request to read a feed, to answer it later; false: it is another request. */
  bool accept(server::Caller caller, const server::ScriptRequest& question) {
    const std::string target(question.head.target);
    if (question.head.method != "GET" || !target.starts_with("/feed/")) return false;
    const size_t query = std::min(target.find('?'), target.size());
    const std::string parameters = "&" + target.substr(std::min(query + 1, target.size()));
    Verification job = {.caller = caller,
                        .key = target.substr(6, query - 6),
                        .after = valueIn(parameters, "&after="),
                        .token = valueIn(parameters, "&grant="),
                        .hold = valueIn(parameters, "&hold="),
                        .stream = question.head.lastValue("accept") == "text/event-stream",
                        .from = question.client,
                        .receivedAt = machine->now()};
    const std::string_view field = question.head.lastValue("authorization");
    if (field.starts_with("Bearer ")) job.token = field.substr(7);
    if (job.stream) job.after = question.head.lastValue("last-event-id");
    // A busy core, or a slow key.
    const uint64_t takes = machine->below(machine->below(4) == 0 ? kMaxVerifyTime : kMillisecond);
    verifications_.emplace(machine->now() + takes, std::move(job));
    schedule_(takes);
    return true;
  }

  /** Answers the requests whose verification is done. */
  void act() {
    while (!verifications_.empty() && verifications_.begin()->first <= machine->now()) {
      admit(verifications_.extract(verifications_.begin()).mapped());
    }
  }

  /** Revokes. Calls `onConfirmed` when the journal has the revocation; never if that is unknown. */
  void revoke(server::GrantPart part, const std::string& name, std::function<void()> onConfirmed) {
    const std::string what = (part == server::GrantPart::kSub ? "sub/" : "jti/") + name;
    revoked_[what] = true;
    const bool isNoted = turn_->note(kNote + what, "1");
    const server::TurnEnd end = turn_->endOutsideFront();
    front_->endGrants(part, name);
    if (!isNoted || end == server::TurnEnd::kDrop) return;
    if (end == server::TurnEnd::kSend) return onConfirmed();
    confirmations_.push_back(std::move(onConfirmed));
  }

  /** Ends the wait for a turn. */
  void onTurnEnd(server::TurnEnd end) {
    for (const auto& confirm : std::exchange(confirmations_, {})) {
      if (end == server::TurnEnd::kSend) confirm();
    }
  }

 private:
  inline static const std::string kNote = "revoked/";

  struct Verification {
    server::Caller caller;
    std::string key, after, token, hold;
    bool stream;
    server::Address from;
    uint64_t receivedAt;
  };

  static std::string valueIn(const std::string& text, std::string_view behind) {
    const size_t at = text.find(behind);
    if (at == text.npos) return {};
    const size_t begin = at + behind.size();
    return text.substr(begin, text.find('&', begin) - begin);
  }

  /** Judges the expiry at the time when verification began, and revocation when it is done. */
  const char* problemOf(const SignedGrant* grant, const Verification& job) const {
    if (job.token.empty()) return "grant-required";
    if (grant == nullptr || grant->forged) return "bad-grant";
    if (grant->end <= job.receivedAt) return "grant-expired";
    const bool revoked =
        revoked_.contains("sub/" + grant->sub) || revoked_.contains("jti/" + grant->jti);
    return revoked ? "bad-grant" : nullptr;
  }

  void admit(const Verification& job) {
    const SignedGrant* const grant = book->find(job.token);
    const char* problem = problemOf(grant, job);
    const bool isOpen = !server::KeyPatterns(kPrivate).covers(job.key) &&
                        !server::KeyPatterns(kPrivate).covers(server::presenceSubjectOf(job.key));
    const bool holds = problem == nullptr;
    if (isOpen) problem = nullptr;
    if (holds && !isOpen && !grant->reads(job.key)) problem = "not-granted";
    if (problem != nullptr) {
      return front_->respond(job.caller, std::string("HTTP/1.1 400 ") + problem + "\r\n",
                             "Content-Length: 0\r\n\r\n", {});
    }
    server::GrantRights rights;
    server::WatchOptions how = {.stream = job.stream, .address = job.from};
    if (!job.hold.empty()) how.hold = static_cast<uint32_t>(std::stoul(job.hold));
    if (holds) {
      unsigned length = 0;
      EVP_Digest(job.token.data(), job.token.size(), rights.token.data(), &length, EVP_sha256(),
                 nullptr);
      const uint64_t now = machine->now();
      rights.timeLeft = (grant->end > now ? grant->end - now : 0) / kMillisecond;
      rights.read = {grant->read};
      rights.parts = {grant->jti, grant->sub, "key"};
      rights.present = grant->present;
      how.verifiedGrant = &rights;
    }
    const server::FeedRequest wanted = {job.key, job.after};
    front_->watch(job.caller, &wanted, 1, how);
  }

  server::Turn* const turn_;
  server::Front* const front_;
  const std::function<void(uint64_t)> schedule_;
  std::map<std::string, bool> revoked_;
  std::multimap<uint64_t, Verification> verifications_;  // by the time when verification ends
  std::vector<std::function<void()>> confirmations_;
};

}  // namespace sim

#endif  // TEST_NATIVE_SIMULATED_GRANTS_H_
