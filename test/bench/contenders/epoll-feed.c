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

enum { kEvents = 512, kRequestBytes = 2 << 20, kBacklog = 65535, kConnections = 65536 };

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
static int highestFd, epollSet;
static struct document *newest;
static unsigned version;
static char *body;
static size_t bodyLength, bodyExpected;

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
  epoll_ctl(epollSet, EPOLL_CTL_MOD, fd, &event);
}

/* Sends the rest of a connection's document. */
static void sendRest(int fd, int rearm) {
  struct connection *connection = &connections[fd];
  int form = connection->kind == kStream;
  struct document *document = connection->sending;
  ssize_t sent = send(fd, document->bytes[form] + connection->sent,
                      document->length[form] - connection->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno == EAGAIN) watch(fd, EPOLLOUT);
    return;
  }
  connection->sent += (size_t)sent;
  if (connection->sent < document->length[form]) {
    watch(fd, EPOLLOUT);
    return;
  }
  connection->sending = NULL;
  release(document);
  if (!form) connection->kind = kAsking;
  if (rearm) watch(fd, EPOLLIN);
}

static void startSending(int fd) {
  struct connection *connection = &connections[fd];
  connection->sending = newest;
  ++newest->references;
  connection->sent = 0;
  connection->seen = newest->version;
  sendRest(fd, 0);
}

static struct document *makeDocument(const char *value, size_t length) {
  struct document *document = malloc(sizeof *document);
  document->references = 1;
  document->version = ++version;
  for (int form = 0; form < 2; ++form) {
    char text[256], item[128];
    int begin =
        snprintf(item, sizeof item, "{\"feed\":\"bench\",\"cursor\":\"1-%u\",\"value\":", version);
    size_t all = (size_t)begin + length + 1;
    int head = form == 0
                   ? snprintf(text, sizeof text,
                              "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                              "Cache-Control: no-store\r\nContent-Length: %zu\r\n\r\n%s",
                              all, item)
                   : snprintf(text, sizeof text, "%zx\r\nid: 1-%u\ndata: %s",
                              all + 2 + (size_t)snprintf(NULL, 0, "id: 1-%u\ndata: ", version),
                              version, item);
    document->bytes[form] = malloc((size_t)head + length + 8);
    memcpy(document->bytes[form], text, (size_t)head);
    memcpy(document->bytes[form] + head, value, length);
    memcpy(document->bytes[form] + head + length, "}\n\n\r\n", 6);
    document->length[form] = (size_t)head + length + (form == 0 ? 1 : 5);
  }
  return document;
}

static void publish(int fd) {
  release(newest);
  newest = makeDocument(body, bodyLength);
  char text[128];
  int length = snprintf(text, sizeof text,
                        "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n{\"cursor\":\"1-%u\"}",
                        (int)snprintf(NULL, 0, "{\"cursor\":\"1-%u\"}", version), version);
  (void)!send(fd, text, (size_t)length, MSG_NOSIGNAL);
  for (int to = 0; to <= highestFd; ++to) {
    struct connection *connection = &connections[to];
    if (connection->kind != kAsking && connection->kind != kPublisher &&
        connection->sending == NULL)
      startSending(to);
  }
}

static void request(int fd, const char *data, size_t length) {
  struct connection *connection = &connections[fd];
  if (connection->kind == kPublisher && bodyExpected > 0) {
    memcpy(body + bodyLength, data, length);
    bodyLength += length;
  } else if (memcmp(data, "PUT", 3) == 0) {
    connection->kind = kPublisher;
    const char *end = memmem(data, length, "\r\n\r\n", 4);
    const char *lengthHeader = strcasestr(data, "content-length: ");
    must(end != NULL && lengthHeader != NULL, "a head in one read");
    bodyExpected = strtoul(lengthHeader + 16, NULL, 10);
    bodyLength = length - (size_t)(end + 4 - data);
    memcpy(body, end + 4, bodyLength);
  } else {
    connection->seen = 0;
    const char *after = memmem(data, length, "after=1-", 8);
    if (after != NULL) connection->seen = (unsigned)strtoul(after + 8, NULL, 10);
    connection->kind = kParked;
    if (memmem(data, length, "event-stream", 12) != NULL) {
      static const char head[] =
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
          "Transfer-Encoding: chunked\r\n\r\n";
      connection->kind = kStream;
      (void)!send(fd, head, sizeof head - 1, MSG_NOSIGNAL);
    }
    if (newest != NULL && connection->seen != newest->version) startSending(fd);
    return;
  }
  if (bodyLength < bodyExpected) return;
  bodyExpected = 0;
  publish(fd);
}

static void closeConnection(int fd) {
  release(connections[fd].sending);
  memset(&connections[fd], 0, sizeof connections[fd]);
  close(fd);
}

int main(void) {
  static char input[kRequestBytes];
  struct rlimit files = {0};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  body = malloc(kRequestBytes);
  int on = 1;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  must(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
  must(listen(listener, kBacklog) == 0, "listen");
  must(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
  printf("http://127.0.0.1:%d\n", ntohs(address.sin_port));
  fflush(stdout);
  epollSet = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = listener}};
  epoll_ctl(epollSet, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    struct epoll_event events[kEvents];
    int count = epoll_wait(epollSet, events, kEvents, -1);
    for (int i = 0; i < count; ++i) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
          must(fd < kConnections, "descriptors");
          setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          memset(&connections[fd], 0, sizeof connections[fd]);
          if (fd > highestFd) highestFd = fd;
          event = (struct epoll_event){.events = EPOLLIN, .data = {.fd = fd}};
          epoll_ctl(epollSet, EPOLL_CTL_ADD, fd, &event);
        }
        continue;
      }
      if ((events[i].events & EPOLLOUT) != 0) {
        sendRest(fd, 1);
        struct connection *connection = &connections[fd];
        /* A stream gets the newest document if it missed one meanwhile. */
        if (connection->kind == kStream && connection->sending == NULL &&
            connection->seen != newest->version)
          startSending(fd);
        continue;
      }
      ssize_t bytesRead = read(fd, input, sizeof input - 1);
      if (bytesRead <= 0) {
        if (bytesRead == 0 || errno != EAGAIN) closeConnection(fd);
        continue;
      }
      input[bytesRead] = 0;
      request(fd, input, (size_t)bytesRead);
    }
  }
}
