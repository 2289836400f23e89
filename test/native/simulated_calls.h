// Replacements for the system's calls; the linker redirects the server's calls to them: see
// simulate_LINK in the Makefile.
#ifndef TEST_NATIVE_SIMULATED_CALLS_H_
#define TEST_NATIVE_SIMULATED_CALLS_H_

#include <poll.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdarg>
#include <ctime>
#include <mutex>
#include <thread>

#include "simulated_disk.h"
#include "simulated_sockets.h"

namespace sim {

/**
 * Lets a server's thread wait for its event set, or for its wake-up. Returns whether something is
 * ready.
 */
inline bool waitUntilReady(int fd, uint64_t microseconds) {
  if (network->isReady(fd) || microseconds == 0 || machine->running == nullptr) return true;
  network->setSleeper(fd, machine->running);
  machine->running->wait(machine->now() + microseconds);
  network->setSleeper(fd, nullptr);
  return network->isReady(fd);
}

/**
 * Returns the time of day, in microseconds. It jumps an hour ahead, and back, every twenty seconds:
 * no hold and no lease may depend on it.
 */
inline uint64_t wallClock(uint64_t now) {
  const bool ahead = now / (20 * kSecond) % 2 == 1;
  return (ahead ? 1700003600 : 1700000000) * kSecond + now;
}

}  // namespace sim

// NOLINTBEGIN(bugprone-reserved-identifier,readability-*): the system's names and arguments
extern "C" {
int __real_close(int fd);
ssize_t __real_write(int fd, const void* bytes, size_t length);
void* __real_mmap(void* at, size_t length, int may, int how, int fd, off_t from);

// ---- Time and chance

int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  const uint64_t look = sim::machine->readClock();
  const uint64_t now = clock == CLOCK_REALTIME ? sim::wallClock(look) : look;
  time->tv_sec = static_cast<time_t>(now / sim::kSecond);
  time->tv_nsec = static_cast<long>(now % sim::kSecond * 1000);
  return 0;
}
time_t __wrap_time(time_t*) {
  return static_cast<time_t>(sim::wallClock(sim::machine->now()) / sim::kSecond);
}
int64_t __wrap__ZNSt6chrono3_V212system_clock3nowEv() {
  return static_cast<int64_t>(sim::wallClock(sim::machine->now())) * 1000;
}
ssize_t __wrap_getrandom(void* to, size_t length, unsigned) {
  for (size_t i = 0; i < length; ++i) {
    static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(sim::machine->below(256));
  }
  return static_cast<ssize_t>(length);
}
unsigned __wrap__ZNSt13random_device9_M_getvalEv(void*) {
  return static_cast<unsigned>(sim::machine->below(UINT32_MAX));
}
pid_t __wrap_getpid() { return 7; }

// ---- Threads

void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, sim::ThreadBody** body, void (*)()) {
  sim::Thread* const thread = sim::machine->startThread(std::exchange(*body, nullptr));
  static_assert(sizeof *self == sizeof(void*));
  memcpy(static_cast<void*>(self), &thread, sizeof(void*));
}
void __wrap__ZNSt6thread4joinEv(std::thread* self) {
  sim::Thread* thread;
  memcpy(&thread, static_cast<void*>(self), sizeof(void*));
  sim::machine->joinThread(thread);
  memset(static_cast<void*>(self), 0, sizeof *self);
}
int __wrap_pthread_setname_np(pthread_t thread, const char* name) {
  uint64_t number;
  sim::Thread* named;
  memcpy(&named, &thread, sizeof(void*));
  if (sscanf(name, "worker %" SCNu64, &number) == 1) named->setWorker(number);
  return 0;
}
int __wrap_setpriority(int, id_t, int) { return 0; }
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    std::condition_variable* self, std::unique_lock<std::mutex>* lock) {
  lock->unlock();
  sim::machine->running->condition = self;
  sim::machine->running->wait(sim::kNever);
  lock->lock();
}
void __wrap__ZNSt18condition_variable10notify_oneEv(std::condition_variable* self) {
  sim::machine->notify(self);
}

// ---- Sockets

int __wrap_epoll_create1(int) { return sim::network->open(); }
int __wrap_eventfd(unsigned, int) { return sim::network->open(); }
int __wrap_timerfd_create(int, int) { return sim::network->open(); }
int __wrap_timerfd_settime(int fd, int, const itimerspec* time, itimerspec*) {
  const timespec& in = time->it_value;
  sim::network->setTimer(fd, static_cast<uint64_t>(in.tv_sec * 1000000 + in.tv_nsec / 1000));
  return 0;
}
int __wrap_epoll_ctl(int set, int operation, int fd, epoll_event* event) {
  return sim::network->control(set, operation, fd, event);
}
int __wrap_epoll_wait(int set, epoll_event* events, int most, int milliseconds) {
  if (!sim::waitUntilReady(set, static_cast<uint64_t>(milliseconds) * 1000)) return 0;
  return sim::network->takeEvents(set, events, most);
}
int __wrap_ppoll(pollfd* polled, nfds_t, const timespec* time, const sigset_t*) {
  const auto micros = static_cast<uint64_t>(time->tv_sec * 1000000 + time->tv_nsec / 1000);
  return sim::waitUntilReady(polled->fd, micros) ? 1 : 0;
}
int __wrap_poll(pollfd* polled, nfds_t, int milliseconds) {
  return sim::waitUntilReady(polled->fd, static_cast<uint64_t>(milliseconds) * 1000) ? 1 : 0;
}
int __wrap_socket(int, int, int) { return sim::network->open(); }
int __wrap_setsockopt(int, int, int, const void*, socklen_t) { return 0; }
int __wrap_bind(int fd, const sockaddr* name, socklen_t) {
  sim::network->bind(fd, ntohs(reinterpret_cast<const sockaddr_in*>(name)->sin_port));
  return 0;
}
int __wrap_listen(int fd, int) { return sim::network->listen(fd); }
int __wrap_getsockname(int fd, sockaddr* name, socklen_t*) {
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  own.sin_port = htons(sim::network->port(fd));
  memcpy(name, &own, sizeof own);
  return 0;
}
int __wrap_accept4(int fd, sockaddr* name, socklen_t*, int) {
  return sim::network->accept(fd, name);
}
ssize_t __wrap_recv(int fd, void* to, size_t room, int how) {
  return sim::network->recv(fd, static_cast<char*>(to), room, (how & MSG_TRUNC) != 0);
}
ssize_t __wrap_send(int fd, const void* bytes, size_t length, int) {
  return sim::network->send(fd, static_cast<const char*>(bytes), length);
}
ssize_t __wrap_sendmsg(int fd, const msghdr* message, int) {
  ssize_t sum = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) {
    const iovec& piece = message->msg_iov[i];
    if (piece.iov_len == 0) continue;
    const ssize_t sent =
        sim::network->send(fd, static_cast<const char*>(piece.iov_base), piece.iov_len);
    if (sent < 0) return sum > 0 ? sum : -1;
    sum += sent;
    if (static_cast<size_t>(sent) < piece.iov_len) break;
  }
  return sum;
}
// A real descriptor could equal a simulated one: it fails, so that messages are copied.
int __wrap_memfd_create(const char*, unsigned) { return -1; }
int __wrap_shutdown(int fd, int) { return sim::network->shutdown(fd); }

// ---- Files, and calls for files and sockets

int __wrap_close(int fd) {
  if (sim::Disk::owns(fd)) return sim::disk->close(fd);
  return sim::Network::owns(fd) ? sim::network->close(fd) : __real_close(fd);
}
ssize_t __wrap_write(int fd, const void* bytes, size_t length) {
  if (sim::Disk::owns(fd)) return sim::disk->write(fd, static_cast<const char*>(bytes), length);
  if (!sim::Network::owns(fd)) return __real_write(fd, bytes, length);
  sim::network->addCount(fd, 1);
  return static_cast<ssize_t>(length);
}
ssize_t __wrap_read(int fd, void* to, size_t room) {
  if (sim::Disk::owns(fd)) return sim::disk->read(fd, static_cast<char*>(to), room);
  const uint64_t count = sim::network->takeCount(fd);
  memcpy(to, &count, sizeof count);
  return sizeof count;
}
int __wrap_open(const char* path, int flags, ...) { return sim::disk->open(path, flags); }
ssize_t __wrap_pwrite(int fd, const void* bytes, size_t length, off_t at) {
  return sim::disk->write(fd, static_cast<const char*>(bytes), length, static_cast<size_t>(at));
}
int __wrap_fsync(int fd) { return sim::disk->sync(fd); }
int __wrap_fdatasync(int fd) { return sim::disk->sync(fd); }
int __wrap_sync_file_range(int, off_t, off_t, unsigned) { return 0; }
int __wrap_fallocate(int, int, off_t, off_t) { return sim::disk->allocate(); }
int __wrap_truncate(const char* path, off_t length) {
  return sim::disk->truncate(path, static_cast<size_t>(length));
}
int __wrap_rename(const char* from, const char* to) { return sim::disk->rename(from, to, true); }
int __wrap_unlink(const char* path) { return sim::disk->unlink(path); }
int __wrap_fstat(int fd, struct stat* info) { return sim::disk->stat(fd, info); }
int __wrap_stat(const char* path, struct stat* info) { return sim::disk->stat(path, info); }
int __wrap_lstat(const char* path, struct stat* info) { return sim::disk->stat(path, info); }
int __wrap_fcntl(int fd, int, ...) { return sim::disk->duplicate(fd); }
void* __wrap_mmap(void* at, size_t length, int may, int how, int fd, off_t from) {
  if (sim::Disk::owns(fd)) return sim::disk->map(fd, length);
  return __real_mmap(at, length, may, how, fd, from);
}
long __wrap_syscall(long number, ...) {
  if (number != SYS_renameat2) return 7;
  va_list more;
  va_start(more, number);
  (void)va_arg(more, int);
  const char* const from = va_arg(more, const char*);
  (void)va_arg(more, int);
  const char* const to = va_arg(more, const char*);
  va_end(more);
  return sim::disk->rename(from, to, false);
}

/** Position in the folder's list of names. */
struct SimulatedFolder {
  size_t place;
  dirent entry;
};
DIR* __wrap_opendir(const char*) {
  if (sim::machine->isDead) return errno = EIO, nullptr;
  return reinterpret_cast<DIR*>(new SimulatedFolder());
}
dirent* __wrap_readdir(DIR* folder) {
  auto* const self = reinterpret_cast<SimulatedFolder*>(folder);
  const std::string name = sim::disk->nameAt(self->place++);
  snprintf(self->entry.d_name, sizeof self->entry.d_name, "%s", name.c_str());
  return name.empty() ? nullptr : &self->entry;
}
int __wrap_closedir(DIR* folder) {
  delete reinterpret_cast<SimulatedFolder*>(folder);
  return 0;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-*)

#endif  // TEST_NATIVE_SIMULATED_CALLS_H_
