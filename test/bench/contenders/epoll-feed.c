/*
 * The limit of feeds: a server that sends one document to many with only the needed system calls.
 *
 * One thread, one epoll; a document costs one send a watcher, and with long polls one read. It
 * trusts every byte: a request is one read, except a published body; nothing is parsed, compared or
 * checked, and nothing expires. It serves the benchmark's load alone and must never be exposed to
 * strangers.
 *
 *   PUT /feed/bench           answers {"cursor":"1-n"}, and sends the document to all watchers
 *   GET /feed/bench?after=…   parks, or answers the newest document at once; with
 *                             Accept: text/event-stream sends an event for each document
 *
 * A watcher that can't take a whole document holds a reference to it, and then gets the newest.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kEvents = 512, kRequest = 2 << 20, kListen = 65535, kConnections = 65536 };

enum kind { kAsking, kParked, kStream, kPublisher };

/* A document as its bytes on the wire: an answer and an event. */
struct document {
  unsigned references;
  unsigned version;
  size_t length[2]; /* lengths of the answer and of the event */
  char *bytes[2];
};

struct connection {
  enum kind kind;
  unsigned seen;            /* the version that it has, or that is being sent */
  struct document *sending; /* a document that is not sent completely */
  size_t sent;
};

static struct connection connections[kConnections];
static int highest, set;
static struct document *newest;
static unsigned version;
static char *body;
static size_t bodyLength, bodyWanted;

static void must(int ok, const char *what) {
  if (ok) return;
  perror(what);
  exit(1);
}

static void release(struct document *document) {
  if (document == NULL || --document->references > 0) return;
  free(document->bytes[0]);
  free(document->bytes[1]);
  free(document);
}

static void watch(int fd, unsigned events) {
  struct epoll_event event = {.events = events, .data = {.fd = fd}};
  epoll_ctl(set, EPOLL_CTL_MOD, fd, &event);
}

/* Sends the rest of a connection's document. */
static void go(int fd, int rearm) {
  struct connection *one = &connections[fd];
  int as = one->kind == kStream;
  struct document *document = one->sending;
  ssize_t taken = send(fd, document->bytes[as] + one->sent, document->length[as] - one->sent,
                       MSG_NOSIGNAL | MSG_DONTWAIT);
  if (taken < 0) {
    if (errno == EAGAIN) watch(fd, EPOLLOUT);
    return;
  }
  one->sent += (size_t)taken;
  if (one->sent < document->length[as]) {
    watch(fd, EPOLLOUT);
    return;
  }
  one->sending = NULL;
  release(document);
  if (!as) one->kind = kAsking;
  if (rearm) watch(fd, EPOLLIN);
}

static void give(int fd) {
  struct connection *one = &connections[fd];
  one->sending = newest;
  ++newest->references;
  one->sent = 0;
  one->seen = newest->version;
  go(fd, 0);
}

static struct document *made(const char *value, size_t length) {
  struct document *document = malloc(sizeof *document);
  document->references = 1;
  document->version = ++version;
  for (int as = 0; as < 2; ++as) {
    char text[256], item[128];
    int begin =
        snprintf(item, sizeof item, "{\"feed\":\"bench\",\"cursor\":\"1-%u\",\"value\":", version);
    size_t all = (size_t)begin + length + 1;
    int head = as == 0 ? snprintf(text, sizeof text,
                                  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                  "Cache-Control: no-store\r\nContent-Length: %zu\r\n\r\n%s",
                                  all, item)
                       : snprintf(text, sizeof text, "%zx\r\nid: 1-%u\ndata: %s",
                                  all + 2 + (size_t)snprintf(NULL, 0, "id: 1-%u\ndata: ", version),
                                  version, item);
    document->bytes[as] = malloc((size_t)head + length + 8);
    memcpy(document->bytes[as], text, (size_t)head);
    memcpy(document->bytes[as] + head, value, length);
    memcpy(document->bytes[as] + head + length, "}\n\n\r\n", 6);
    document->length[as] = (size_t)head + length + (as == 0 ? 1 : 5);
  }
  return document;
}

static void publish(int fd) {
  release(newest);
  newest = made(body, bodyLength);
  char text[128];
  int length = snprintf(text, sizeof text,
                        "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n{\"cursor\":\"1-%u\"}",
                        (int)snprintf(NULL, 0, "{\"cursor\":\"1-%u\"}", version), version);
  (void)!send(fd, text, (size_t)length, MSG_NOSIGNAL);
  for (int to = 0; to <= highest; ++to) {
    struct connection *one = &connections[to];
    if (one->kind != kAsking && one->kind != kPublisher && one->sending == NULL) give(to);
  }
}

static void request(int fd, const char *data, size_t length) {
  struct connection *one = &connections[fd];
  if (one->kind == kPublisher && bodyWanted > 0) {
    memcpy(body + bodyLength, data, length);
    bodyLength += length;
  } else if (memcmp(data, "PUT", 3) == 0) {
    one->kind = kPublisher;
    const char *end = memmem(data, length, "\r\n\r\n", 4);
    const char *wanted = strcasestr(data, "content-length: ");
    must(end != NULL && wanted != NULL, "a head in one read");
    bodyWanted = strtoul(wanted + 16, NULL, 10);
    bodyLength = length - (size_t)(end + 4 - data);
    memcpy(body, end + 4, bodyLength);
  } else {
    one->seen = 0;
    const char *after = memmem(data, length, "after=1-", 8);
    if (after != NULL) one->seen = (unsigned)strtoul(after + 8, NULL, 10);
    one->kind = kParked;
    if (memmem(data, length, "event-stream", 12) != NULL) {
      static const char head[] =
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
          "Transfer-Encoding: chunked\r\n\r\n";
      one->kind = kStream;
      (void)!send(fd, head, sizeof head - 1, MSG_NOSIGNAL);
    }
    if (newest != NULL && one->seen != newest->version) give(fd);
    return;
  }
  if (bodyLength < bodyWanted) return;
  bodyWanted = 0;
  publish(fd);
}

static void close_(int fd) {
  release(connections[fd].sending);
  memset(&connections[fd], 0, sizeof connections[fd]);
  close(fd);
}

int main(void) {
  static char in[kRequest];
  struct rlimit files = {0};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  body = malloc(kRequest);
  int on = 1;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  must(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
  must(listen(listener, kListen) == 0, "listen");
  must(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
  printf("http://127.0.0.1:%d\n", ntohs(address.sin_port));
  fflush(stdout);
  set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = listener}};
  epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    struct epoll_event events[kEvents];
    int count = epoll_wait(set, events, kEvents, -1);
    for (int i = 0; i < count; ++i) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
          must(fd < kConnections, "descriptors");
          setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          memset(&connections[fd], 0, sizeof connections[fd]);
          if (fd > highest) highest = fd;
          event = (struct epoll_event){.events = EPOLLIN, .data = {.fd = fd}};
          epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
        }
        continue;
      }
      if ((events[i].events & EPOLLOUT) != 0) {
        go(fd, 1);
        struct connection *one = &connections[fd];
        /* A stream gets the newest document if it missed one meanwhile. */
        if (one->kind == kStream && one->sending == NULL && one->seen != newest->version) give(fd);
        continue;
      }
      ssize_t got = read(fd, in, sizeof in - 1);
      if (got <= 0) {
        if (got == 0 || errno != EAGAIN) close_(fd);
        continue;
      }
      in[got] = 0;
      request(fd, in, (size_t)got);
    }
  }
}
