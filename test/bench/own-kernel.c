/*
 * Preloaded into User-Mode Linux by own-kernel: lets kernels before 6.13 run on processors with
 * more register state than these kernels know (AMX: 11,008 bytes; they have room for some 2,700).
 *
 * The host accepts only a whole set of a process's registers. It refuses a shorter set, and the
 * new kernel dies with its first process. So a shorter set is padded here with zeros, which the
 * unknown registers hold: the header of the set marks them as unused.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { kMax = 64 * 1024 };

typedef long (*ptrace_call)(int request, pid_t pid, void *address, void *data);

long ptrace(enum __ptrace_request request, ...) {
  static ptrace_call realPtrace;
  static char padded[kMax]; /* There is one CPU, so no other thread is here. */
  static size_t hostSize;   /* length of the host's set */
  va_list rest;
  va_start(rest, request);
  pid_t pid = va_arg(rest, pid_t);
  void *address = va_arg(rest, void *);
  void *data = va_arg(rest, void *);
  va_end(rest);
  if (!realPtrace) realPtrace = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");
  if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE) {
    struct iovec *callerSet = data;
    struct iovec paddedSet = {.iov_base = padded, .iov_len = sizeof padded};
    if (!hostSize)
      hostSize =
          realPtrace(PTRACE_GETREGSET, pid, address, &paddedSet) == 0 ? paddedSet.iov_len : 1;
    if (callerSet->iov_len < hostSize) {
      paddedSet.iov_len = hostSize;
      memset(padded, 0, hostSize);
      memcpy(padded, callerSet->iov_base, callerSet->iov_len);
      return realPtrace(request, pid, address, &paddedSet);
    }
  }
  return realPtrace(request, pid, address, data);
}
