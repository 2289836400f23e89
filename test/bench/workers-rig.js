/**
 * A server with workers and a load on it, as they are measured: who runs where, what each thread takes.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { canPin, plainArgs } from './contenders.js';
import { cpuOf, cpuSeconds, threadsOf } from './usage.js';

const SWARM = fileURLToPath(new URL('../../bin/sprites-swarm', import.meta.url));

/** The core of the main thread, and that of everything else, where each has its own. */
const CORES = { main: 0, rest: 1 };

/** Seconds the swarm may take for what is not throwing: opening, draining, leaving. */
const AROUND = 60;

/** Whether processes can be kept on a core. */
export const pins = canPin();

/** What a program prints, line by line, and its end. */
function run(core, args) {
  const command = [process.execPath, ...args];
  if (pins && core !== undefined) command.unshift('taskset', '-c', String(core));
  const child = spawn(command[0], command.slice(1), {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc']
  });
  const lines = [];
  let woken = () => {};
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    woken();
  });
  const ended = once(child, 'close').then(([code]) => {
    woken();
    return code;
  });
  return {
    child,
    lines,
    ended,
    /** @returns {Promise<string>} the first line that matches */
    async line(pattern) {
      for (;;) {
        const found = lines.find((line) => pattern.test(line));
        if (found !== undefined) return found;
        if (child.exitCode !== null) throw new Error('it has ended');
        await new Promise((resolve) => {
          woken = resolve;
        });
      }
    }
  };
}

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
  const server = run(pinned ? CORES.main : undefined, [
    ...(collects ? ['--expose-gc', '--import', collects] : []),
    ...plainArgs({ drain: 0, workers, 'log-level': 'warn', 'admin-port': 0, ...options })
  ]);
  await server.line(/room for/);
  const [port, adminPort] = ['Sprites ', 'Metrics '].map((begin) =>
    Number(/:(\d+)\//.exec(server.lines.find((line) => line.startsWith(begin)) ?? '')?.[1])
  );
  const { pid } = server.child;
  if (pinned) pin(pid);
  return {
    pid,
    port,
    pinned,
    async status() {
      return (await fetch(`http://127.0.0.1:${adminPort}/status`)).json();
    },
    /** Seconds of a processor: the main thread's, and those of all threads together. */
    cpu: () => ({ main: cpuOf(pid), all: cpuSeconds([pid]) }),
    async stop() {
      server.child.kill('SIGTERM');
      const code = await server.ended;
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
  const options = {
    throwers,
    time: seconds,
    host: '127.0.0.1',
    port: server.port,
    ...(processes !== 'auto' && { processes }),
    ...(rate > 0 && { rate })
  };
  const swarm = run(
    server.pinned ? CORES.rest : undefined,
    [
      ...[SWARM, 'throw', clients, '--json', '--quiet'],
      ...(rate > 0 ? [] : ['--every-client']),
      ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
    ].map(String)
  );
  // A swarm that hangs must not hang the measurement.
  const patience = setTimeout(() => swarm.child.kill('SIGKILL'), (seconds + AROUND) * 1000);
  const result = swarm.ended.then((code) => {
    clearTimeout(patience);
    if (swarm.lines.length === 0) throw new Error(`the swarm ended with ${code} and no result`);
    return JSON.parse(swarm.lines.join('\n'));
  });
  result.catch(() => {});
  return { result, pid: swarm.child.pid };
}

/** Waits until the load is there. */
export async function untilThrown(server) {
  for (let looks = 0; looks < AROUND * 10; looks += 1) {
    if ((await server.status()).thrown > 0) return;
    await pause(100);
  }
  throw new Error('nothing is thrown');
}
