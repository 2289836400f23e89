// What the kernel knows of the server's processes, and of all sockets.
#ifndef SPRITES_BENCH_MEASURE_H_
#define SPRITES_BENCH_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace watchers {

/** Reads the processes of `text`, numbers with commas between them. @return false on anything else
 */
bool readPids(const std::string& text, std::vector<int>* pids);

/** Seconds of CPU that processes have taken, user and system, all threads. */
double cpuSeconds(const std::vector<int>& pids);

/** The same of this process. */
double ownCpuSeconds();

/** Bytes of memory that processes have resident. */
uint64_t residentBytes(const std::vector<int>& pids);

/** Bytes of kernel memory for all TCP sockets of this host, both ends of each connection. */
uint64_t socketBytes();

}  // namespace watchers

#endif  // SPRITES_BENCH_MEASURE_H_
