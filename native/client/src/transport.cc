#include "transport.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include "sprites/client.h"

#if LIBCURL_VERSION_NUM < 0x074400
#error "libcurl 7.68 or later is needed: curl_multi_poll() and curl_multi_wakeup()"
#endif

namespace sprites {

namespace {

struct EasyEnd {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiEnd {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListEnd {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct UrlEnd {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

/** Once in a process; a static's initialization is guarded against two threads. */
void initCurl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) throw std::runtime_error("sprites: libcurl can't be initialized");
}

void checkUrl(const std::string& server) {
  const std::unique_ptr<CURLU, UrlEnd> url(curl_url());
  if (!url) throw std::bad_alloc();
  char* scheme = nullptr;
  const bool good = curl_url_set(url.get(), CURLUPART_URL, server.c_str(), 0) == CURLUE_OK &&
                    curl_url_get(url.get(), CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK;
  const bool web = good && (std::strcmp(scheme, "http") == 0 || std::strcmp(scheme, "https") == 0);
  curl_free(scheme);
  if (!web || server.find_first_of("?#") != std::string::npos) {
    throw std::invalid_argument("sprites: the server is to be an http or https URL");
  }
}

/** Failures that come before a single byte of a request is on its way. */
bool isBeforeSending(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
         code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR ||
         code == CURLE_PEER_FAILED_VERIFICATION;
}

}  // namespace

struct Transport::Transfer {
  RequestId id = 0;
  std::unique_ptr<CURL, EasyEnd> easy;
  std::unique_ptr<curl_slist, ListEnd> headers;
  std::string body;
  size_t bodyAt = 0;
  bool bodyAsked = false;
  std::string answer;
  size_t maxAnswer = 0;
  char error[CURL_ERROR_SIZE] = {0};

  // The four below are called by curl, a C program: nothing may be thrown out of them.
  static size_t onAnswer(char* data, size_t size, size_t count, void* self) noexcept {
    auto* transfer = static_cast<Transfer*>(self);
    const size_t length = size * count;
    if (transfer->answer.size() + length > transfer->maxAnswer) return 0;
    try {
      transfer->answer.append(data, length);
    } catch (const std::bad_alloc&) {
      return 0;  // ends the request with CURLE_WRITE_ERROR
    }
    return length;
  }

  static size_t onBody(char* buffer, size_t size, size_t count, void* self) noexcept {
    auto* transfer = static_cast<Transfer*>(self);
    transfer->bodyAsked = true;
    // In parentheses: with MSVC curl's header brings windows.h, and with it a macro named min.
    const size_t length = (std::min)(size * count, transfer->body.size() - transfer->bodyAt);
    std::memcpy(buffer, transfer->body.data() + transfer->bodyAt, length);
    transfer->bodyAt += length;
    return length;
  }

  /** Curl resends a request from its start when a kept connection turns out dead. */
  static int onRewind(void* self, curl_off_t offset, int origin) noexcept {
    auto* transfer = static_cast<Transfer*>(self);
    if (origin != SEEK_SET || offset < 0 || static_cast<size_t>(offset) > transfer->body.size()) {
      return CURL_SEEKFUNC_CANTSEEK;
    }
    transfer->bodyAt = static_cast<size_t>(offset);
    return CURL_SEEKFUNC_OK;
  }
};

struct Transport::State {
  TransportOptions options;
  std::unique_ptr<CURLM, MultiEnd> multi;
  std::map<RequestId, std::unique_ptr<Transfer>> transfers;
  RequestId lastId = 0;

  ~State() {
    for (auto& [id, transfer] : transfers)
      curl_multi_remove_handle(multi.get(), transfer->easy.get());
  }

  Reply reply(Transfer* transfer, CURLcode code) const {
    CURL* easy = transfer->easy.get();
    Reply reply;
    reply.id = transfer->id;
    reply.answered = code == CURLE_OK;
    reply.sent = transfer->body.empty() ? !isBeforeSending(code) : transfer->bodyAsked;
    if (code != CURLE_OK) {
      const bool tooLong = code == CURLE_WRITE_ERROR;
      reply.error = tooLong                      ? "the server's answer is too long"
                    : transfer->error[0] != '\0' ? transfer->error
                                                 : curl_easy_strerror(code);
    }
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    reply.status = static_cast<int>(status);
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    reply.retryAfter = std::chrono::seconds(std::clamp<curl_off_t>(seconds, 0, 3600));
    reply.body = std::move(transfer->answer);
    return reply;
  }
};

Transport::Transport(TransportOptions options) : state_(std::make_unique<State>()) {
  initCurl();
  while (!options.server.empty() && options.server.back() == '/') options.server.pop_back();
  checkUrl(options.server);
  state_->options = std::move(options);
  state_->multi.reset(curl_multi_init());
  if (!state_->multi) throw std::runtime_error("sprites: libcurl gives no multi handle");
}

Transport::~Transport() = default;

RequestId Transport::start(const Request& request) {
  auto transfer = std::make_unique<Transfer>();
  transfer->easy.reset(curl_easy_init());
  CURL* easy = transfer->easy.get();
  if (easy == nullptr) throw std::bad_alloc();
  transfer->id = ++state_->lastId;
  transfer->maxAnswer = state_->options.maxAnswerBytes;

  const std::string url = state_->options.server + request.path;
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  // A poll is a request of its own on a connection of its own; HTTP/2 would put them all on one.
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(state_->options.connectTimeout.count()));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
  // A parked poll is silent for minutes: let the system find out that the other side is gone.
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 20L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, (std::string("sprites/") + version()).c_str());
  if (!state_->options.caFile.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, state_->options.caFile.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::onAnswer);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
  if (request.method == Method::kPost) {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    if (request.body.empty()) {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
    } else {
      transfer->body = request.body;
      curl_easy_setopt(easy, CURLOPT_READFUNCTION, &Transfer::onBody);
      curl_easy_setopt(easy, CURLOPT_READDATA, transfer.get());
      curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &Transfer::onRewind);
      curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer.get());
    }
    curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
    if (list == nullptr) throw std::bad_alloc();
    transfer->headers.reset(list);
    // No "Expect: 100-continue": it costs a round trip, and a sprite is small.
    if (curl_slist_append(list, "Expect:") == nullptr) throw std::bad_alloc();
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
  }
  const RequestId id = transfer->id;
  auto& kept = state_->transfers[id];
  kept = std::move(transfer);
  if (curl_multi_add_handle(state_->multi.get(), easy) != CURLM_OK) {
    state_->transfers.erase(id);
    throw std::bad_alloc();
  }
  return id;
}

void Transport::cancel(RequestId id) {
  const auto found = state_->transfers.find(id);
  if (found == state_->transfers.end()) return;
  curl_multi_remove_handle(state_->multi.get(), found->second->easy.get());
  state_->transfers.erase(found);
}

std::vector<Reply> Transport::takeReplies() {
  std::vector<Reply> replies;
  int running = 0;
  curl_multi_perform(state_->multi.get(), &running);
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(state_->multi.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto found = std::find_if(
        state_->transfers.begin(), state_->transfers.end(),
        [&](const auto& each) { return each.second->easy.get() == message->easy_handle; });
    if (found == state_->transfers.end()) continue;
    const CURLcode code = message->data.result;  // the message dies with the handle's removal
    replies.push_back(state_->reply(found->second.get(), code));
    cancel(found->first);
  }
  return replies;
}

void Transport::wait(Millis timeout) {
  const auto capped = static_cast<int>(std::clamp<Millis::rep>(timeout.count(), 0, 60000));
  curl_multi_poll(state_->multi.get(), nullptr, 0, capped, nullptr);
}

void Transport::wake() { curl_multi_wakeup(state_->multi.get()); }

}  // namespace sprites
