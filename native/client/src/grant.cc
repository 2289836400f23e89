#include "grant.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string_view>

#include "json.h"
#include "picture.h"

namespace sprites {

namespace {

/** Seconds before its end at which a grant is replaced, but at most a quarter of its life. */
constexpr double kRenewAhead = 30;

/** Returns the end of a JWT, in seconds since 1970; infinite if the token has none. */
double expiryOf(std::string_view token) {
  double end = std::numeric_limits<double>::infinity();
  const size_t begin = std::min(token.find('.'), token.size() - 1) + 1;
  std::string claims(token.substr(begin, token.find('.', begin) - begin));
  std::replace(claims.begin(), claims.end(), '-', '+');
  std::replace(claims.begin(), claims.end(), '_', '/');
  const std::optional<std::string> text = decodeBase64(claims);
  const auto value = text ? json::value(*text) : std::nullopt;
  if (!value) return end;  // malformed: the server will refuse it
  json::members(*value, [&end](const std::string& name, std::string_view slice) {
    if (name == "exp") end = json::number(slice).value_or(end);
    return true;
  });
  return end;
}

/** Returns the token without white space around it; std::nullopt if no header can have it. */
std::optional<std::string> trimmed(const std::string& token) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = token.find_first_not_of(kSpace);
  if (begin == std::string::npos) return std::string();
  std::string text = token.substr(begin, token.find_last_not_of(kSpace) + 1 - begin);
  const bool good =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
  return good ? std::optional<std::string>(std::move(text)) : std::nullopt;
}

}  // namespace

std::optional<std::string> Grant::header() {
  if (!callback_) return std::string();
  const std::chrono::duration<double> time = std::chrono::system_clock::now().time_since_epoch();
  const double now = time.count();
  if (token_.empty() || now >= renewAt_) {
    // An exception out of a callback ends the program: see client.h.
    const auto callProgram = [this]() noexcept { return callback_(); };
    std::optional<std::string> token = callProgram();
    if (token) token = trimmed(*token);
    if (!token) return std::nullopt;
    token_ = std::move(*token);
    wasAccepted_ = false;
    const double end = token_.empty() ? now : expiryOf(token_);
    renewAt_ = end - std::min(kRenewAhead, (end - now) / 4);
  }
  return token_.empty() ? std::string() : "Authorization: Bearer " + token_;
}

bool Grant::dropIfRefused(const Problem& problem) {
  const bool ended = isProblem(problem, "grant-expired") || isProblem(problem, "bad-grant");
  if (!callback_ || !ended) return false;
  token_.clear();
  return wasAccepted_;
}

}  // namespace sprites
