/**
 * A server with workers and a load on it, as they are measured: which core runs what, and the CPU time of each thread.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import { launch, SPRITES } from '../support/launch.js';
import { canPin, MEASURED, onCore } from './contenders.js';
import { runSwarm } from './load.js';
import { cpuOf, cpuSeconds, statusAt, threadsOf } from './usage.js';

/** The core of the main thread, and that of everything else, where each has its own. */
const CORES = { main: 0, rest: 1 };

/** Seconds the swarm may take for what is not throwing: opening, draining, leaving. */
const AROUND = 60;

/** Whether processes can be kept on a core. */
export const pins = canPin();

/** Keeps the workers on the core of everything but the main thread. */
function pin(pid) {
  if (!pins) return;
  for (const thread of threadsOf(pid)) {
    const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8');
    if (name.startsWith('worker'))
      execFileSync('taskset', ['-p', '-c', String(CORES.rest), String(thread)]);
  }
}

/**
 * Starts a server.
 *
 * @param {number} workers
 * @param {{pinned?: boolean, collects?: string, options?: Record<string, string | number>}} [how]
 *     `pinned`: the main thread has a core, and workers and load the other; `collects`: a module
 *     to import first
 */
export async function startServer(workers, { pinned = true, collects, options = {} } = {}) {
  const [node, ...program] = SPRITES;
  const given = collects ? ['--expose-gc', '--import', collects] : [];
  const server = launch(
    { ...MEASURED, drain: 0, workers, 'log-level': 'warn', 'admin-port': 0, ...options },
    { command: [...onCore(pinned ? CORES.main : null), node, ...given, ...program] }
  );
  server.child.stderr.pipe(process.stderr, { end: false });
  const { port, adminPort } = await server.listening;
  const { pid } = server.child;
  if (pinned) pin(pid);
  return {
    pid,
    port,
    pinned,
    status: () => statusAt(adminPort),
    /** Seconds of a processor: the main thread's, and those of all threads together. */
    cpu: () => ({ main: cpuOf(pid), all: cpuSeconds([pid]) }),
    async stop() {
      server.child.kill('SIGTERM');
      const [code] = await server.ended;
      if (code !== 0) throw new Error(`the server ended with ${code}`);
    }
  };
}

/**
 * Starts the swarm against a server; `result` is its account.
 *
 * @param {Awaited<ReturnType<typeof startServer>>} server
 * @param {{clients: number, throwers?: number, rate?: number, seconds: number, processes?: number | 'auto'}} load
 *     with a `rate` by the clock; else so many throwers in closed loops, for all clients in turn
 */
export function startSwarm(server, { clients, throwers = 32, rate, seconds, processes = 1 }) {
  const words = ['throw', clients, '--quiet', ...(rate > 0 ? [] : ['--every-client'])];
  const options = {
    ...{ throwers, time: seconds, host: '127.0.0.1', port: server.port },
    ...(processes !== 'auto' && { processes }),
    ...(rate > 0 && { rate })
  };
  const { child, result } = runSwarm(words, options, server.pinned ? CORES.rest : null);
  // A swarm that hangs must not hang the measurement.
  const patience = setTimeout(() => child.kill('SIGKILL'), (seconds + AROUND) * 1000);
  child.once('close', () => clearTimeout(patience));
  return { result, pid: child.pid };
}

/** Waits until the load is there. */
export async function untilThrown(server) {
  for (let looks = 0; looks < AROUND * 10; looks += 1) {
    if ((await server.status()).thrown > 0) return;
    await pause(100);
  }
  throw new Error('nothing is thrown');
}
