/*
 * The limit: a server with only the system calls that the work needs.
 *
 * One thread, one epoll, two reads and two sends a sprite. It trusts every byte: a request is one
 * read, its id has a fixed place, nothing is checked, nothing expires, acks are ignored, and a
 * neighbor is found by arithmetic. It serves the benchmark's load alone and must never be exposed
 * to strangers. A server with checks can only come near it.
 *
 *   throw ──▶ read ──▶ neighbor parked? ─yes─▶ send its poll's answer ──▶ send 202
 *                            └──no──▶ append to its mailbox (sent with its next poll)
 *
 * BENCH_LOSE_EVERY=k in the environment loses every k-th sprite and still answers 202, so that a
 * test can check that the load notices.
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

enum { kEvents = 512, kRequestBytes = 64 * 1024, kBacklog = 65535 };

/* The place of an id in a request line, and of the number at its end. */
static const char kIdFormat[] = "00000000-0000-4000-8000-%012x";
enum { kIdLength = 36, kPollId = 10, kThrowId = 12, kNumberDigits = 12 };

struct client {
  int fd;         /* connection of the parked poll; -1: none is parked */
  unsigned seq;   /* seq of the client's last sprite */
  char *mailbox;  /* waiting sprites, as JSON, separated by commas */
  size_t waiting; /* length of the mailbox, in bytes */
};

static struct client *clients;
static unsigned count, capacity;
static unsigned long thrown, loseEvery;

static void must(int ok, const char *what) {
  if (ok) return;
  perror(what);
  exit(1);
}

static void sendAll(int fd, const char *data, size_t length) {
  /* Ignores a connection closed by the other end: its EPOLLIN follows. */
  if (send(fd, data, length, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET) {
    must(0, "send");
  }
}

static void answer(int fd, const char *status, const char *body, size_t length) {
  static char out[kRequestBytes * 2];
  int head = snprintf(out, sizeof out,
                      "HTTP/1.1 %s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
                      "Content-Length: %zu\r\n\r\n",
                      status, length);
  memcpy(out + head, body, length);
  sendAll(fd, out, (size_t)head + length);
}

static void answerPoll(struct client *client, const char *sprites, size_t length) {
  static char body[kRequestBytes + 128];
  int size = snprintf(body, sizeof body, "{\"seq\":%u,\"sprites\":[%.*s]}", client->seq,
                      (int)length, sprites);
  int fd = client->fd;
  client->fd = -1;
  answer(fd, "200 OK", body, (size_t)size);
}

static void deliver(struct client *client, const char *from, const char *sprite, size_t length) {
  static char item[kRequestBytes];
  int size = snprintf(item, sizeof item, "{\"seq\":%u,\"from\":\"%s\",\"sprite\":%.*s}",
                      ++client->seq, from, (int)length, sprite);
  if (client->fd >= 0) {
    answerPoll(client, item, (size_t)size);
    return;
  }
  client->mailbox = realloc(client->mailbox, client->waiting + (size_t)size + 1);
  must(client->mailbox != NULL, "realloc");
  if (client->waiting) client->mailbox[client->waiting++] = ',';
  memcpy(client->mailbox + client->waiting, item, (size_t)size);
  client->waiting += (size_t)size;
}

static struct client *neighbor(unsigned number, char edge, const char **from) {
  unsigned columns = 64 < count ? 64 : 1;
  unsigned step = edge == 'l'   ? count - 1
                  : edge == 'r' ? 1
                  : edge == 'u' ? count - columns
                                : columns;
  *from = edge == 'l' ? "right" : edge == 'r' ? "left" : edge == 'u' ? "down" : "up";
  return &clients[(number + step) % count];
}

static unsigned clientNumberIn(const char *id) {
  unsigned number = 0;
  for (const char *digit = id + kIdLength - kNumberDigits; digit < id + kIdLength; digit++) {
    number = number * 16 + (unsigned)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);
  }
  return number;
}

static void join(int fd) {
  char body[160];
  if (count == capacity) {
    capacity = capacity ? capacity * 2 : 1024;
    clients = realloc(clients, capacity * sizeof *clients);
    must(clients != NULL, "realloc");
  }
  clients[count] = (struct client){.fd = -1};
  int size = snprintf(body, sizeof body, "{\"id\":\"");
  size += snprintf(body + size, sizeof body - (size_t)size, kIdFormat, count++);
  size += snprintf(body + size, sizeof body - (size_t)size,
                   "\",\"hold\":120,\"lease\":30,\"maxSprite\":16384}");
  answer(fd, "201 Created", body, (size_t)size);
}

static void serve(int fd, char *request, size_t length) {
  static const char delivered[] = "{\"state\":\"delivered\"}", queued[] = "{\"state\":\"queued\"}";
  if (request[0] == 'G') {
    struct client *client = &clients[clientNumberIn(request + kPollId)];
    client->fd = fd;
    if (client->waiting) {
      size_t waiting = client->waiting;
      client->waiting = 0;
      answerPoll(client, client->mailbox, waiting);
    }
  } else if (request[6] == 't') {
    const char *from;
    char *body = memmem(request, length, "\r\n\r\n", 4);
    must(body != NULL, "a request in pieces");
    body += 4;
    struct client *receiver =
        neighbor(clientNumberIn(request + kThrowId), request[kThrowId + kIdLength + 1], &from);
    int isParked = receiver->fd >= 0;
    if (loseEvery == 0 || ++thrown % loseEvery != 0) {
      deliver(receiver, from, body, length - (size_t)(body - request));
    }
    if (isParked) {
      answer(fd, "202 Accepted", delivered, sizeof delivered - 1);
    } else {
      answer(fd, "202 Accepted", queued, sizeof queued - 1);
    }
  } else if (request[6] == 'j') {
    join(fd);
  } else {
    answer(fd, "204 No Content", "", 0);
  }
}

static int listenOn(unsigned short port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  socklen_t size = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "socket");
  must(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
  must(listen(fd, kBacklog) == 0 && getsockname(fd, (struct sockaddr *)&address, &size) == 0,
       "listen");
  printf("http://127.0.0.1:%u\n", ntohs(address.sin_port));
  fflush(stdout);
  return fd;
}

static void acceptAll(int epollSet, int listener) {
  int fd, on = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    must(epoll_ctl(epollSet, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
  }
  must(errno == EAGAIN || errno == ECONNABORTED, "accept");
}

int main(int argc, char **argv) {
  static struct epoll_event events[kEvents];
  static char request[kRequestBytes];
  struct rlimit files;
  const char *lose = getenv("BENCH_LOSE_EVERY");
  if (lose) loseEvery = strtoul(lose, NULL, 10);
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  int epollSet = epoll_create1(0);
  int listener = listenOn((unsigned short)(argc > 1 ? atoi(argv[1]) : 0));
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  must(epoll_ctl(epollSet, EPOLL_CTL_ADD, listener, &event) == 0, "epoll_ctl");
  for (;;) {
    int ready = epoll_wait(epollSet, events, kEvents, -1);
    for (int i = 0; i < ready; i++) {
      int fd = events[i].data.fd;
      if (fd == listener) {
        acceptAll(epollSet, listener);
        continue;
      }
      ssize_t length = recv(fd, request, sizeof request - 1, 0);
      if (length > 0) {
        request[length] = 0;
        serve(fd, request, (size_t)length);
      } else if (length == 0 || errno != EAGAIN) {
        close(fd); /* The load closes all its clients at the end. */
      }
    }
  }
}
