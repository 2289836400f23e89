import cluster from 'node:cluster';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { loadAddon } from './addon.js';

/**
 * The workers of the transient port, seen from the main process: started, fed from the pool,
 * started again when they die.
 *
 *   worker 1 ─┐  frames, one buffer a turn
 *   worker 2 ─┼─▶ RelayServer ─▶ pool          (native/relay.h)
 *   worker N ─┘ ◀── replies
 */

const PROGRAM = fileURLToPath(new URL('worker.js', import.meta.url));

/** Where the pipe is in a worker's stdio, behind stdin, stdout, stderr and Node's own channel. */
const PIPE = 4;

/** Milliseconds before a dead worker is started again: doubled with each quick death. */
const BACKOFF = { first: 50, most: 5000 };

/** A worker that has lived this long (ms) did not die of its start. */
const SETTLED = 10000;

/** Milliseconds a worker has to end by itself. */
const PATIENCE = 5000;

/**
 * Starts the workers.
 *
 * @param {object} parts
 * @param {import('./pool.js').Pool} parts.pool
 * @param {import('./sources.js').Sources} parts.sources
 * @param {object} parts.options see lib/config.js: workers, transientPort, host …
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<{port: number, status: () => object, stop: () => Promise<void>}>} the transient
 *     port (0 without workers); `stop` lets the workers answer what they have and ends them
 */
export async function startWorkers({ pool, sources, options, log }) {
  const counts = { workers: 0, workerDeaths: 0 };
  if (options.workers === 0) return { port: 0, status: () => counts, stop: async () => {} };

  const addon = loadAddon();
  // Held bound, never listened on: the workers share the port, and nobody else may take it.
  const { address } = await lookup(options.host);
  const reservation = new addon.Reservation(address, options.transientPort);
  const { port } = reservation;
  const settings = { ...options, transientPort: port };
  const living = new Set();
  let stopping = false;

  cluster.setupPrimary({
    exec: PROGRAM, args: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe']
  });

  function launch(backoff) {
    const born = Date.now();
    const worker = cluster.fork({ SPRITES_WORKER: JSON.stringify(settings) });
    const pipe = worker.process.stdio[PIPE];
    const relay = new addon.RelayServer(pool.native, sources.native);
    living.add(worker);
    pipe.on('data', (frames) => {
      const replies = relay.serve(frames);
      if (replies !== undefined) pipe.write(replies);
    });
    // A worker that dies takes its pipe with it: its clients repeat what was not answered.
    pipe.on('error', (error) => log.debug({ err: error }, 'worker pipe'));
    worker.once('message', () => { counts.workers += 1; });
    worker.once('exit', (code, signal) => {
      living.delete(worker);
      counts.workers = Math.min(counts.workers, living.size);
      if (stopping) return;
      counts.workerDeaths += 1;
      const wait = Date.now() - born > SETTLED ? BACKOFF.first : backoff;
      log.warn({ code, signal, wait }, 'a worker died; another one starts');
      setTimeout(() => {
        if (!stopping) launch(Math.min(wait * 2, BACKOFF.most));
      }, wait);
    });
    return worker;
  }

  const first = Array.from({ length: options.workers }, () => launch(BACKOFF.first));
  await Promise.all(first.map((worker) => once(worker, 'message')));

  async function stop() {
    stopping = true;
    const ends = [...living].map((worker) => once(worker, 'exit'));
    for (const worker of living) worker.send({ stop: true });
    const impatient = setTimeout(() => {
      for (const worker of living) worker.process.kill('SIGKILL');
    }, PATIENCE);
    await Promise.all(ends);
    clearTimeout(impatient);
    reservation.close();
  }

  return { port, status: () => counts, stop };
}
