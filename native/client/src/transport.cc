#include "transport.h"

#include <curl/curl.h>
#ifdef __linux__
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "json.h"
#include "sprites/client.h"

#if LIBCURL_VERSION_NUM < 0x074400
#error "libcurl 7.68 or later is needed: curl_multi_poll() and curl_multi_wakeup()"
#endif

namespace sprites {

namespace {

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

/** Initializes libcurl, once in a process. C++ guards a static's initialization against threads. */
void initCurl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) throw std::runtime_error("sprites: libcurl can't be initialized");
}

/** Returns a part of a URL, or an empty text. */
std::string partOf(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool hasUser(CURLU* url) {
  return !partOf(url, CURLUPART_USER).empty() || !partOf(url, CURLUPART_PASSWORD).empty();
}

void checkUrl(const std::string& server) {
  const std::unique_ptr<CURLU, UrlDeleter> url(curl_url());
  if (!url) throw std::bad_alloc();
  curl_url_set(url.get(), CURLUPART_URL, server.c_str(), 0);
  const std::string scheme = partOf(url.get(), CURLUPART_SCHEME);
  const bool web = scheme == "http" || scheme == "https";
  if (!web || hasUser(url.get()) || server.find_first_of("?#") != std::string::npos) {
    throw std::invalid_argument(
        "sprites: server is an http or https URL, such as http://127.0.0.1:8080, without a user, "
        "? or #");
  }
}

void checkOptions(const ConnectionOptions& options, size_t maxAnswerBytes) {
  checkUrl(options.server);
  if (maxAnswerBytes < 1024) {
    throw std::invalid_argument("sprites: maxAnswerBytes is at least 1024");
  }
  if (options.connectTimeout <= Millis(0) || options.connectTimeout > std::chrono::hours(24)) {
    throw std::invalid_argument("sprites: a timeout is over 0 up to a day");
  }
  for (const std::string& line : options.headers) {
    const size_t colon = line.find(':');
    if (colon == 0 || colon == std::string::npos || line.find_first_of("\r\n") != line.npos) {
      throw std::invalid_argument("sprites: a header is one line, such as \"Name: value\"");
    }
  }
}

/** Longest single wait for sockets, in milliseconds. On Windows (seen with Wine) one answer in some
 * thousand is not signaled: it is found at the end of a wait. */
#ifdef _WIN32
constexpr Millis::rep kMaxSingleWait = 1000;
#else
constexpr Millis::rep kMaxSingleWait = 60000;
#endif

/** Most 421 answers in a row that are followed; with the next one the place counts as forgotten. */
constexpr unsigned kMaxRedirects = 6;

/** Longest header line that is read, in bytes. */
constexpr size_t kMaxHeader = 2048;

constexpr char kMisdirected[] = "urn:sprites:misdirected";
constexpr char kUnknownClientBody[] = R"({"type":"urn:sprites:unknown-client"})";

/**
 * Returns the server in `location`, without a '/' at the end; empty if `location` is no http or
 * https URL of `path`. `secure`: the request used TLS, and `location` must do so, too.
 */
std::string serverFromLocation(const std::string& location, const std::string& path, bool secure) {
  const std::unique_ptr<CURLU, UrlDeleter> url(curl_url());
  if (!url) throw std::bad_alloc();
  if (curl_url_set(url.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK) return {};
  const std::string scheme = partOf(url.get(), CURLUPART_SCHEME);
  const std::string host = partOf(url.get(), CURLUPART_HOST);
  const std::string query = partOf(url.get(), CURLUPART_QUERY);
  const std::string target = partOf(url.get(), CURLUPART_PATH) + (query.empty() ? "" : "?" + query);
  const bool safe = scheme == "https" || (scheme == "http" && !secure);
  if (target != path || hasUser(url.get()) || host.empty() || !safe) return {};
  const std::string port = partOf(url.get(), CURLUPART_PORT);
  return scheme + "://" + host + (port.empty() ? "" : ":" + port);
}

/** Returns a path for a log: with the first four characters of an id, and the whole query. */
std::string shortenedPath(const std::string& path) {
  const size_t begin = path.find('/', 1);
  if (begin == std::string::npos) return path;
  const size_t end = (std::min)(path.find_first_of("/?", begin + 1), path.size());
  return end - begin <= 5 ? path : path.substr(0, begin + 5) + "..." + path.substr(end);
}

#ifdef __linux__

/** An epoll set of curl's sockets and of an eventfd for wake(), for a program with its own loop. */
class EventSet {
 public:
  EventSet()
      : epollFd_(epoll_create1(EPOLL_CLOEXEC)), wakeFd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = wakeFd_;
    if (epollFd_ >= 0 && wakeFd_ >= 0 && epoll_ctl(epollFd_, EPOLL_CTL_ADD, wakeFd_, &event) == 0)
      return;
    closeFds();
    throw std::runtime_error("sprites: no descriptor to be had for an event loop");
  }
  ~EventSet() { closeFds(); }
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;

  int fd() const { return epollFd_; }

  /** For any thread. */
  void wake() const {
    const uint64_t one = 1;
    if (write(wakeFd_, &one, sizeof one) < 0) return;  // the counter is full: it is readable
  }

  /** Adds a socket, edge-triggered: each change is signaled once. timeout() knows of work left. */
  void add(int socket) const {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.fd = socket;
    epoll_ctl(epollFd_, EPOLL_CTL_ADD, socket, &event);
  }

  void clear() const {
    uint64_t count = 0;
    if (read(wakeFd_, &count, sizeof count) < 0) count = 0;  // wake() was not called
    epoll_event events[64];
    epoll_wait(epollFd_, events, 64, 0);
  }

 private:
  void closeFds() const {
    if (wakeFd_ >= 0) ::close(wakeFd_);
    if (epollFd_ >= 0) ::close(epollFd_);
  }

  int epollFd_;
  int wakeFd_;
};

/**
 * Opens a socket for curl, and adds it to the event set, if there is one. SOCK_CLOEXEC: a program
 * that is started meanwhile would inherit the socket and hold the connection open.
 */
curl_socket_t openSocket(void* eventSet, curlsocktype /*purpose*/,
                         curl_sockaddr* address) noexcept {
  const int socket = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (socket < 0) return CURL_SOCKET_BAD;
  if (eventSet != nullptr) static_cast<const EventSet*>(eventSet)->add(socket);
  return socket;
}

#else

class EventSet {
 public:
  int fd() const { return -1; }
  void wake() const {}
  void clear() const {}
};

#endif

}  // namespace

struct Transport::Transfer {
  RequestId id = 0;
  std::string logLine;
  std::string path;
  bool isForPlace = false;
  uint64_t placeNumber = 0;      // of its place: see State
  unsigned redirects = 0;        // 421 answers that it has followed
  std::string knownPlaceServer;  // State::placeServer when it was sent
  std::string server;            // the server that it was sent to
  std::unique_ptr<CURL, EasyDeleter> easy;
  std::unique_ptr<curl_slist, ListDeleter> headers;
  std::string body;
  size_t bodyOffset = 0;
  bool isBodyRead = false;
  bool isResent = false;
  std::string answer;
  std::string location;
  std::string retryAfter;
  size_t maxAnswerBytes = 0;
  char error[CURL_ERROR_SIZE] = {0};

  void addHeader(const std::string& header) {
    curl_slist* list = curl_slist_append(headers.get(), header.c_str());
    if (list == nullptr) throw std::bad_alloc();
    static_cast<void>(headers.release());  // the list owns it now
    headers.reset(list);
  }

  // Callbacks of curl, which is written in C: they must not throw.
  static size_t onAnswer(char* data, size_t size, size_t count, void* self) noexcept {
    auto* transfer = static_cast<Transfer*>(self);
    const size_t length = size * count;
    if (transfer->answer.size() + length > transfer->maxAnswerBytes) return 0;
    try {
      transfer->answer.append(data, length);
    } catch (const std::bad_alloc&) {
      return 0;  // ends the request with CURLE_WRITE_ERROR
    }
    return length;
  }

  static size_t onHeader(char* data, size_t size, size_t count, void* self) noexcept {
    auto* transfer = static_cast<Transfer*>(self);
    const std::string_view line(data, size * count);
    const size_t colon = line.find(':');
    if (line.size() >= kMaxHeader || colon == line.npos) return line.size();
    std::string_view value = line.substr(colon + 1, line.find_last_not_of(" \t\r\n") - colon);
    value.remove_prefix((std::min)(value.find_first_not_of(" \t"), value.size()));
    const auto is = [line, colon](std::string_view name) {
      return name.size() == colon && curl_strnequal(line.data(), name.data(), colon) != 0;
    };
    try {
      if (is("location")) transfer->location = value;
      if (is("retry-after")) transfer->retryAfter = value;
    } catch (const std::bad_alloc&) {
      return 0;
    }
    return line.size();
  }

  static size_t onBody(char* buffer, size_t size, size_t count, void* self) noexcept {
    auto* transfer = static_cast<Transfer*>(self);
    transfer->isBodyRead = true;
    // In parentheses: with MSVC curl's header brings windows.h, and with it a macro named min.
    const size_t length = (std::min)(size * count, transfer->body.size() - transfer->bodyOffset);
    std::memcpy(buffer, transfer->body.data() + transfer->bodyOffset, length);
    transfer->bodyOffset += length;
    return length;
  }

  /** Rewinds the body: curl resends a request from its start when a kept connection is dead. */
  static int onRewind(void* self, curl_off_t offset, int origin) noexcept {
    auto* transfer = static_cast<Transfer*>(self);
    if (origin != SEEK_SET || offset < 0 || static_cast<size_t>(offset) > transfer->body.size()) {
      return CURL_SEEKFUNC_CANTSEEK;
    }
    transfer->isResent |= transfer->bodyOffset > 0;
    transfer->bodyOffset = static_cast<size_t>(offset);
    return CURL_SEEKFUNC_OK;
  }
};

struct Transport::State {
  ConnectionOptions options;  // no '/' at the end of its server
  size_t maxAnswerBytes = 0;
  std::unique_ptr<EventSet> eventSet;                // outlives curl's sockets
  std::atomic<const EventSet*> wakeTarget{nullptr};  // `eventSet`, for any thread
  std::unique_ptr<CURLM, MultiDeleter> multi;
  std::map<RequestId, std::unique_ptr<Transfer>> transfers;
  RequestId lastId = 0;
  std::atomic<bool> wakeRequested{false};  // wake() was called, and no wait() has seen it
  std::string placeServer;                 // the server with the place, if it is another one
  unsigned redirects = 0;                  // 421 answers in a row that were followed
  uint64_t placeNumber = 0;                // counts places

  ~State() {
    for (auto& [id, transfer] : transfers)
      curl_multi_remove_handle(multi.get(), transfer->easy.get());
  }

  /** Sends a request to `server` from its beginning. */
  void send(Transfer* transfer, const std::string& server) const {
    transfer->server = server;
    transfer->knownPlaceServer = placeServer;
    transfer->answer.clear();
    transfer->location.clear();
    transfer->retryAfter.clear();
    transfer->bodyOffset = 0;
    transfer->isBodyRead = transfer->isResent = false;
    curl_easy_setopt(transfer->easy.get(), CURLOPT_URL, (server + transfer->path).c_str());
    if (curl_multi_add_handle(multi.get(), transfer->easy.get()) != CURLM_OK)
      throw std::bad_alloc();
  }

  /** Returns the server at which to repeat a request of the place, or an empty text. */
  std::string redirectTarget(const Transfer& transfer, CURLcode code) {
    if (!transfer.isForPlace || transfer.placeNumber != placeNumber) return {};
    long status = 0;
    curl_easy_getinfo(transfer.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    const std::string& answer = transfer.answer;
    const bool isSpritesAnswer =
        status == 204 || (status < 300 ? json::value(answer).has_value()
                                       : answer.find("urn:sprites:") != answer.npos);
    if (code != CURLE_OK || !isSpritesAnswer) {
      if (transfer.server == placeServer) placeServer.clear();
      return {};
    }
    if (status < 400) redirects = 0;
    if (status != 421 || answer.find(kMisdirected) == answer.npos) return {};
    const bool secure = curl_strnequal(transfer.server.c_str(), "https:", 6) != 0;
    return serverFromLocation(transfer.location, transfer.path, secure);
  }

  /** Repeats a request at the server `target`; false after too many redirects. */
  bool followRedirect(Transfer* transfer, const std::string& target) {
    // Of several requests to the same server only the first counts as a redirect.
    if (transfer->knownPlaceServer == placeServer) {
      redirects++;
      placeServer = target;
    }
    if ((std::max)(redirects, ++transfer->redirects) > kMaxRedirects) return false;
    curl_multi_remove_handle(multi.get(), transfer->easy.get());
    send(transfer, target);
    return true;
  }

  Reply reply(Transfer* transfer, CURLcode code) const {
    CURL* easy = transfer->easy.get();
    Reply reply;
    reply.id = transfer->id;
    reply.isTimedOut = code == CURLE_OPERATION_TIMEDOUT;
    reply.isTooLong = code == CURLE_WRITE_ERROR;
    reply.logLine = transfer->logLine;
    reply.maybeSent = transfer->isBodyRead;
    reply.isResent = transfer->isResent;
    if (code != CURLE_OK) {
      reply.error = reply.isTooLong              ? "the server's answer is too long"
                    : transfer->error[0] != '\0' ? transfer->error
                                                 : curl_easy_strerror(code);
      return reply;
    }
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    reply.status = static_cast<int>(status);
    // curl's own parser reads 600 from "600 s", and dates by this machine's clock.
    const bool asksToWait = status == 429 || status == 503;
    const uint64_t seconds = asksToWait ? json::count(transfer->retryAfter).value_or(0) : 0;
    reply.retryAfter = std::chrono::seconds((std::min)(seconds, uint64_t{3600}));
    reply.body = std::move(transfer->answer);
    return reply;
  }
};

Transport::Transport(ConnectionOptions options, size_t maxAnswerBytes)
    : state_(std::make_unique<State>()) {
  initCurl();
  while (!options.server.empty() && options.server.back() == '/') options.server.pop_back();
  checkOptions(options, maxAnswerBytes);
  state_->options = std::move(options);
  state_->maxAnswerBytes = maxAnswerBytes;
  state_->multi.reset(curl_multi_init());
  // Without free descriptors curl returns a handle that can't be woken.
  if (!state_->multi || curl_multi_wakeup(state_->multi.get()) != CURLM_OK)
    throw std::runtime_error("sprites: libcurl gives no multi handle");
}

Transport::~Transport() = default;

RequestId Transport::start(const Request& request, const std::string& header) {
  auto transfer = std::make_unique<Transfer>();
  transfer->easy.reset(curl_easy_init());
  CURL* easy = transfer->easy.get();
  if (easy == nullptr) throw std::bad_alloc();
  transfer->id = ++state_->lastId;
  transfer->maxAnswerBytes = state_->maxAnswerBytes;
  transfer->logLine =
      (request.method == Method::kPost ? "POST " : "GET ") + shortenedPath(request.path);

  transfer->path = request.path;
  transfer->isForPlace = request.isForPlace;
  transfer->placeNumber = state_->placeNumber;
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  // Each request has its own connection; HTTP/2 would put them all on one.
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Without this, ending a request would wait for its name lookup, which takes half a minute.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
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
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);  // else the system's are trusted, too
  }
  if (state_->options.proxy) {
    curl_easy_setopt(easy, CURLOPT_PROXY, state_->options.proxy->c_str());
  }
#ifdef __linux__
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &openSocket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, state_->eventSet.get());
#endif
  for (const std::string& line : state_->options.headers) transfer->addHeader(line);
  if (!header.empty()) transfer->addHeader(header);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Transfer::onAnswer);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Transfer::onHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer.get());
  if (request.method == Method::kPost) {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    transfer->body = request.body;
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, &Transfer::onBody);
    curl_easy_setopt(easy, CURLOPT_READDATA, transfer.get());
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &Transfer::onRewind);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer.get());
    transfer->addHeader("Content-Type: application/json");
    // No "Expect: 100-continue": it costs a round trip, and a sprite is small.
    transfer->addHeader("Expect:");
  }
  if (transfer->headers) curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers.get());
  const RequestId id = transfer->id;
  const bool usesPlaceServer = request.isForPlace && !state_->placeServer.empty();
  state_->send(transfer.get(), usesPlaceServer ? state_->placeServer : state_->options.server);
  state_->transfers[id] = std::move(transfer);
  return id;
}

void Transport::resetPlaceServer() {
  state_->placeServer.clear();
  state_->redirects = 0;
  state_->placeNumber++;
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
    const CURLcode code = message->data.result;  // removing the handle ends the message
    Transfer* const transfer = found->second.get();
    const std::string target = state_->redirectTarget(*transfer, code);
    if (target.empty()) {
      replies.push_back(state_->reply(transfer, code));
    } else if (state_->followRedirect(transfer, target)) {
      continue;
    } else {
      Reply reply = state_->reply(transfer, code);
      reply.status = 404;
      reply.body = kUnknownClientBody;
      replies.push_back(std::move(reply));
      resetPlaceServer();
    }
    cancel(found->first);
  }
  return replies;
}

void Transport::wait(Millis timeout) {
  if (state_->wakeRequested.exchange(false)) timeout = Millis(0);
  const auto capped = static_cast<int>(std::clamp<Millis::rep>(timeout.count(), 0, kMaxSingleWait));
  curl_multi_poll(state_->multi.get(), nullptr, 0, capped, nullptr);
}

void Transport::wake() {
  state_->wakeRequested = true;
  curl_multi_wakeup(state_->multi.get());
  if (const EventSet* wakeTarget = state_->wakeTarget) wakeTarget->wake();
}

int Transport::fd() {
  if (!state_->eventSet) state_->eventSet = std::make_unique<EventSet>();
  state_->wakeTarget = state_->eventSet.get();
  return state_->eventSet->fd();
}

void Transport::clearFd() {
  if (state_->eventSet) state_->eventSet->clear();
}

Millis Transport::timeout() {
  // curl_multi_poll() swallows a wake-up that wait() would need; wait() has it from
  // `wakeRequested`. fd() signals a socket's change once: if curl has work left, it must go on at
  // once.
  int ready = 0;
  curl_multi_poll(state_->multi.get(), nullptr, 0, 0, &ready);
  if (ready > 0) return Millis(0);
  long wait = -1;
  curl_multi_timeout(state_->multi.get(), &wait);
  return wait < 0 ? Millis(60000) : Millis((std::min)(wait, 60000L));
}

}  // namespace sprites
