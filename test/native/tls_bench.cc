// What TLS costs the server (native/http/tls.h): the memory of an idle session, and the CPU of an
// exchange and of a handshake. The clients are another process.
//
//   node -e "process.dlopen({exports: {}}, 'tls_bench.node')"     by Node's own OpenSSL
//
// An exchange is a request of 300 bytes and an answer of 200 over TCP on loopback. Times are those
// of the server's thread alone, by its CPU clock.
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/tls.h"
#include "tls_client.h"

namespace {

using namespace server;
using namespace server::test;

constexpr size_t kRequest = 300;
constexpr size_t kAnswer = 200;
/** Handshakes under way at once. */
constexpr int kWave = 64;
constexpr int kRounds = 5;

uint64_t cpu() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

long resident() {
  FILE* file = fopen("/proc/self/statm", "r");
  long size = 0;
  long pages = 0;
  EXPECT(file != nullptr && fscanf(file, "%ld %ld", &size, &pages) == 2);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

Pair unixPair() {
  int ends[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

void wait(int fd, short events) {
  pollfd one = {fd, events, 0};
  poll(&one, 1, -1);
}

/** Runs `clients` as another process, which has the clients' ends of the pairs alone. */
template <class Clients>
pid_t fork(std::vector<Pair>* pairs, Clients&& clients) {
  fflush(stdout);
  const pid_t child = ::fork();
  EXPECT(child >= 0);
  for (Pair& pair : *pairs) close(child == 0 ? pair.server : pair.client);
  if (child > 0) return child;
  clients();
  _exit(0);
}

template <class Run>
void inFork(Run&& run) {
  fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    run();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT(status == 0);
}

void closeAll(const std::vector<Pair>& pairs, pid_t child) {
  for (const Pair& pair : pairs) close(pair.server);
  waitpid(child, nullptr, 0);
}

SSL_CTX* clientContext(int version, const char* groups) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_min_proto_version(context, version);
  SSL_CTX_set_max_proto_version(context, version);
  if (groups != nullptr) SSL_CTX_set1_groups_list(context, groups);
  return context;
}

/** The handshake, a request, and its answer, by blocking sockets, `kWave` connections abreast. */
void exchangeOnce(const std::vector<Pair>& pairs, SSL_CTX* context) {
  const std::string request(kRequest, 'r');
  for (size_t from = 0; from < pairs.size(); from += kWave) {
    std::vector<SSL*> wave;
    for (size_t i = from; i < std::min(pairs.size(), from + kWave); ++i) {
      SSL* ssl = SSL_new(context);
      SSL_set_fd(ssl, pairs[i].client);
      SSL_set_connect_state(ssl);
      fcntl(pairs[i].client, F_SETFL, O_NONBLOCK);
      SSL_do_handshake(ssl);
      wave.push_back(ssl);
    }
    for (SSL* ssl : wave) {
      while (SSL_do_handshake(ssl) != 1) wait(SSL_get_fd(ssl), POLLIN);
      EXPECT(SSL_write(ssl, request.data(), static_cast<int>(request.size())) > 0);
    }
    for (SSL* ssl : wave) {
      char answer[kAnswer];
      size_t all = 0;
      while (all < kAnswer) {
        const int got = SSL_read(ssl, answer, sizeof answer);
        if (got > 0) {
          all += static_cast<size_t>(got);
        } else {
          wait(SSL_get_fd(ssl), POLLIN);
        }
      }
    }
  }
}

/** The same at the server. */
void serveOnce(TlsContext* context, const std::vector<Pair>& pairs,
               std::vector<std::unique_ptr<TlsSession>>* sessions) {
  const std::string answer(kAnswer, 'a');
  for (size_t from = 0; from < pairs.size(); from += kWave) {
    const size_t to = std::min(pairs.size(), from + kWave);
    for (size_t i = from; i < to; ++i) sessions->emplace_back(context->open(pairs[i].server));
    std::vector<size_t> read(to - from, 0);
    for (size_t left = to - from; left > 0;) {
      for (size_t i = from; i < to; ++i) {
        TlsSession* session = (*sessions)[i].get();
        if (read[i - from] >= kRequest) continue;
        const TlsSession::Handshake state = session->handshake();
        EXPECT(state != TlsSession::Handshake::kFailed);
        char request[2 * kRequest];
        if (state != TlsSession::Handshake::kDone) continue;
        const ssize_t got = session->receive(request, sizeof request);
        if (got <= 0) continue;
        read[i - from] += static_cast<size_t>(got);
        if (read[i - from] < kRequest) continue;
        EXPECT(session->send(answer.data(), answer.size()) == static_cast<ssize_t>(kAnswer));
        --left;
      }
    }
  }
}

void memory(TlsContext* context, const char* name, SSL_CTX* client, int count) {
  std::vector<Pair> pairs;
  pairs.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) pairs.push_back(unixPair());
  const pid_t child = fork(&pairs, [&] {
    exchangeOnce(pairs, client);
    pause();
  });
  std::vector<std::unique_ptr<TlsSession>> sessions;
  sessions.reserve(pairs.size());
  // What the first sessions load, and the heap's room for a wave, are no session's.
  const std::vector<Pair> first(pairs.begin(), pairs.begin() + 2 * kWave);
  const std::vector<Pair> rest(pairs.begin() + 2 * kWave, pairs.end());
  serveOnce(context, first, &sessions);
  std::vector<std::unique_ptr<TlsSession>> more;
  more.reserve(rest.size());
  const size_t used = mallinfo2().uordblks;
  const long before = resident();
  serveOnce(context, rest, &more);
  const size_t grown = mallinfo2().uordblks - used;
  const long pages = resident() - before;
  malloc_trim(0);
  const long trimmed = resident() - before;
  printf("%-28s %6zu sessions: %6zu bytes of heap each, %6ld resident, %6ld trimmed\n", name,
         rest.size(), grown / rest.size(), pages / static_cast<long>(rest.size()),
         trimmed / static_cast<long>(rest.size()));
  kill(child, SIGKILL);
  closeAll(pairs, child);
}

/** One connection, its session or none, that answers requests. */
class Exchange {
 public:
  Exchange(int fd, TlsSession* session) : fd_(fd), session_(session) {}

  /** Reads a whole request and answers it; what waiting costs is in both kinds. */
  void one() const {
    size_t all = 0;
    while (all < kRequest) {
      if (session_ == nullptr || !session_->pending()) wait(fd_, POLLIN);
      char request[4096];
      const ssize_t got = session_ == nullptr ? recv(fd_, request, sizeof request, MSG_DONTWAIT)
                                              : session_->receive(request, sizeof request);
      if (got > 0) all += static_cast<size_t>(got);
      EXPECT(got > 0 || errno == EAGAIN);
    }
    const std::string_view answer(kText, kAnswer);
    const ssize_t sent =
        session_ == nullptr ? ::send(fd_, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                            : session_->send(answer.data(), answer.size());
    EXPECT(sent == static_cast<ssize_t>(kAnswer));
  }

  /** Nanoseconds of CPU each, the median of `kRounds`. */
  uint64_t median() const {
    constexpr int kCount = 4000;
    std::vector<uint64_t> rounds;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t before = cpu();
      for (int i = 0; i < kCount; ++i) one();
      rounds.push_back((cpu() - before) / kCount);
    }
    std::sort(rounds.begin(), rounds.end());
    return rounds[kRounds / 2];
  }

 private:
  static constexpr char kText[kAnswer] = {'a'};

  int fd_;
  TlsSession* session_;
};

/** Sends requests, one after the answer of the other, until the connection ends. */
void askForEver(int fd, SSL* ssl) {
  const std::string request(kRequest, 'r');
  char answer[4096];
  for (;;) {
    const auto length = static_cast<int>(request.size());
    const ssize_t sent = ssl == nullptr ? ::send(fd, request.data(), request.size(), MSG_NOSIGNAL)
                                        : SSL_write(ssl, request.data(), length);
    if (sent <= 0) return;
    for (size_t all = 0; all < kAnswer;) {
      const ssize_t got = ssl == nullptr ? recv(fd, answer, sizeof answer, 0)
                                         : SSL_read(ssl, answer, sizeof answer);
      if (got <= 0) return;
      all += static_cast<size_t>(got);
    }
  }
}

void finish(TlsSession* session, int fd) {
  for (;;) {
    const TlsSession::Handshake state = session->handshake();
    EXPECT(state != TlsSession::Handshake::kFailed);
    if (state == TlsSession::Handshake::kDone) return;
    wait(fd, state == TlsSession::Handshake::kReads ? POLLIN : POLLOUT);
  }
}

/** What an exchange costs by TLS (`context`), or without (nullptr). */
uint64_t exchanges(TlsContext* context, const char* name, SSL_CTX* client, uint64_t plain) {
  std::vector<Pair> pairs = {tcpPair()};
  const pid_t child = fork(&pairs, [&] {
    SSL* ssl = context == nullptr ? nullptr : SSL_new(client);
    if (ssl != nullptr) {
      SSL_set_fd(ssl, pairs[0].client);
      EXPECT(SSL_connect(ssl) == 1);
    }
    askForEver(pairs[0].client, ssl);
  });
  std::unique_ptr<TlsSession> session;
  if (context != nullptr) {
    session.reset(context->open(pairs[0].server));
    finish(session.get(), pairs[0].server);
  }
  const uint64_t each = Exchange(pairs[0].server, session.get()).median();
  printf("%-28s exchange: %6.1f us of CPU", name, static_cast<double>(each) / 1000);
  if (plain > 0) {
    printf(", %.1f more than plain", static_cast<double>(each - plain) / 1000);
  }
  printf("\n");
  session.reset();
  closeAll(pairs, child);
  return each;
}

enum class Kind { kFull, kResumed };

void handshakes(TlsContext* context, const char* name, SSL_CTX* client, Kind kind) {
  constexpr int kCount = 600;
  std::vector<Pair> pairs;
  pairs.reserve(kCount);
  for (int i = 0; i < kCount; ++i) pairs.push_back(tcpPair());
  const pid_t child = fork(&pairs, [&] {
    static SSL_SESSION* ticket = nullptr;
    SSL_CTX_set_session_cache_mode(client, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(client, [](SSL*, SSL_SESSION* fresh) {
      SSL_SESSION_free(ticket);
      ticket = fresh;
      return 1;
    });
    for (const Pair& pair : pairs) {
      SSL* ssl = SSL_new(client);
      SSL_set_fd(ssl, pair.client);
      if (kind == Kind::kResumed && ticket != nullptr) SSL_set_session(ssl, ticket);
      EXPECT(SSL_connect(ssl) == 1);
      // Takes the answer, and the ticket before it.
      char answer;
      EXPECT(SSL_read(ssl, &answer, 1) == 1);
      SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
      SSL_free(ssl);
    }
  });
  std::vector<uint64_t> costs;
  for (const Pair& pair : pairs) {
    wait(pair.server, POLLIN);
    const uint64_t before = cpu();
    const std::unique_ptr<TlsSession> session(context->open(pair.server));
    finish(session.get(), pair.server);
    EXPECT(&pair == pairs.data() || session->resumed() == (kind == Kind::kResumed));
    costs.push_back(cpu() - before);
    EXPECT(session->send("x", 1) == 1);
  }
  std::nth_element(costs.begin(), costs.begin() + kCount / 2, costs.end());
  const uint64_t each = costs[kCount / 2];
  printf("%-28s handshake: %6.0f us of CPU, %6.0f a second\n", name,
         static_cast<double>(each) / 1000, 1e9 / static_cast<double>(each));
  closeAll(pairs, child);
}

void run() {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  printf("%s\n", OpenSSL_version(OPENSSL_VERSION));
  const Credentials ecdsa = makeCredentials(KeyKind::kEcdsa);
  const Credentials rsa = makeCredentials(KeyKind::kRsa);
  TlsContext context;
  EXPECT(context.take(ecdsa.certificate, ecdsa.key).empty());
  context.rollTicketKeys(static_cast<uint64_t>(time(nullptr)));
  struct {
    const char* name;
    int version;
    const char* groups;
  } const clients[] = {{"TLS 1.3, X25519", TLS1_3_VERSION, "X25519"},
                       {"TLS 1.3, P-256", TLS1_3_VERSION, "P-256"},
                       {"TLS 1.2, X25519", TLS1_2_VERSION, "X25519:P-256"}};
  for (const int sessions : {1000, 5000}) {
    for (const auto& one : clients) {
      inFork([&] { memory(&context, one.name, clientContext(one.version, one.groups), sessions); });
    }
  }
  const uint64_t plain = exchanges(nullptr, "plain", nullptr, 0);
  for (const auto& one : clients) {
    exchanges(&context, one.name, clientContext(one.version, one.groups), plain);
  }
  for (const auto& one : clients) {
    const std::string name = one.name;
    const auto client = [&] { return clientContext(one.version, one.groups); };
    handshakes(&context, (name + ", ECDSA").c_str(), client(), Kind::kFull);
    handshakes(&context, (name + ", resumed").c_str(), client(), Kind::kResumed);
    TlsContext other;
    EXPECT(other.take(rsa.certificate, rsa.key).empty());
    other.rollTicketKeys(static_cast<uint64_t>(time(nullptr)));
    handshakes(&other, (name + ", RSA").c_str(), client(), Kind::kFull);
  }
}

}  // namespace

extern "C" void* napi_register_module_v1(void* /*env*/, void* exports) {
  run();
  return exports;
}
