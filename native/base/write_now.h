// Writing to a descriptor that somebody else reads, such as the log's, without ever waiting for it.
#ifndef SPRITES_WRITE_NOW_H_
#define SPRITES_WRITE_NOW_H_

#include <string_view>

namespace base {

/**
 * Writes as much of `bytes` to `fd` as it takes at once. The descriptor's own mode stays as it is:
 * other processes share it.
 *
 * Returns the number of bytes written, or -errno: -EAGAIN where nothing can be written without
 * waiting (a pipe, a socket or a terminal that nobody reads). A regular file is written to in any
 * case, since the kernel takes that into its cache.
 */
long writeNow(int fd, std::string_view bytes);

}  // namespace base

#endif  // SPRITES_WRITE_NOW_H_
