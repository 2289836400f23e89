// A lock that one process at a time holds, for as long as it lives: the kernel gives it back
// however the process ends (flock). The file it is on holds the process's number, for a person.
#ifndef SPRITES_FILE_LOCK_H_
#define SPRITES_FILE_LOCK_H_

#include <string>

namespace base {

/**
 * Takes the lock at `path`, whose file is made if need be; no link is followed. Children do not
 * inherit it. Returns the descriptor that holds it, or -errno: -EWOULDBLOCK when another process
 * has it.
 */
int takeFileLock(const std::string& path);

/** Whether the lock's file is still at `path`: where somebody has removed it, another may have it
 * too. */
bool holdsFileLock(int fd, const std::string& path);

/** Gives the lock back, and removes its file. */
void releaseFileLock(int fd, const std::string& path);

}  // namespace base

#endif  // SPRITES_FILE_LOCK_H_
