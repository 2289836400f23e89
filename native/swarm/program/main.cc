// The swarm's engine: thousands of clients of the wire contract in one process, on plain epoll. It
// is started by bin/sprites-swarm, which sends commands to its stdin and adds up the reports on its
// stdout. For a server with TLS the same engine runs inside Node, and uses Node's OpenSSL:
// native/swarm/tls/swarm_tls.cc.
//
// Costs: one epoll_pwait2 for up to 256 events; a sprite is a send and a recv at its thrower and a
// recv and a send at its receiver; no allocation from throw to ack. Rejected: a thread per core,
// since the server under test shares the machine, and a process per core does the same without a
// lock; io_uring, which many hosts forbid.

#include "swarm/engine.h"

int main(int argc, char** argv) { return swarm::run(argc, argv, {}); }
