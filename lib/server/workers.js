import cluster from 'node:cluster';
import { lookup } from 'node:dns/promises';
import { closeSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { loadAddon } from './addon.js';
import { Heartbeats } from './heartbeats.js';
import { explained } from './port-errors.js';

/**
 * Starts the workers of the transient port, connects them with the pool, and starts them again when
 * they die. This runs in the main process.
 *
 *   worker 1 ─┐  requests, one buffer a turn
 *   worker 2 ─┼─▶ front door ─▶ pool           (native/relay/relay.h: none of it in JavaScript)
 *   worker N ─┘ ◀── outcomes
 */

const PROGRAM = fileURLToPath(new URL('worker.js', import.meta.url));

/** Milliseconds before a dead worker is started again: doubled with each quick death. */
const BACKOFF = { first: 50, most: 5000 };

/**
 * A worker that dies within so many milliseconds of listening has died quickly. One that is killed
 * every second has not: it needs a part of that second to start.
 */
const WELL = 500;

/** Counts that end with the worker. The others only grow, and are added up over all workers ever. */
const GAUGES = ['connections', 'heldBytes'];

/**
 * Adds counts up.
 *
 * @param {object[]} all numbers by name, and such objects by name
 * @returns {object} the sums, of every name that one of them has
 */
export function addUp(all) {
  const sums = {};
  for (const [name, value] of all.flatMap(Object.entries)) {
    sums[name] =
      typeof value === 'object' ? addUp([sums[name] ?? {}, value]) : (sums[name] ?? 0) + value;
  }
  return sums;
}

/** Milliseconds a worker has to end by itself. */
const PATIENCE = 5000;

/**
 * Takes the transient port, so that newcomers can be told of it before the workers are there. It is
 * held bound and never listened on: the workers share it, and nobody else may have it.
 *
 * @param {{workers: number, transientPort: number, host: string}} options
 * @returns {Promise<{port: number, close: () => void}>} port 0 without workers
 * @throws {Error} when it can't be had (EADDRINUSE …)
 */
export async function reserveTransientPort({ workers, transientPort, host }) {
  if (workers === 0) return { port: 0, close() {} };
  const reserve = async () => {
    const { address } = await lookup(host);
    return new (loadAddon().Reservation)(address, transientPort);
  };
  return explained(
    { host: 'host', port: 'transient-port' },
    { host, port: transientPort },
    reserve()
  );
}

function countersOf(counts = {}) {
  return Object.fromEntries(Object.entries(counts).filter(([name]) => !GAUGES.includes(name)));
}

/**
 * Starts the workers.
 *
 * @param {object} parts
 * @param {ReturnType<import('./door.js').createDoor>} parts.door the main process's
 * @param {object} parts.options see lib/server/options.js, with the transientPort that was reserved
 * @param {import('pino').Logger} parts.log
 * @returns {{ready: Promise<void>, status: () => object,
 *     counts: () => {doors: object, refused: object}, silent: () => number, stop: () => Promise<void>}} `ready` when all of
 *     them listen, rejected when one cannot; `status` is what they are now, `counts` what their
 *     doors have counted and what they have refused by themselves, the dead among them, as of a
 *     second ago; `silent` says how many of
 *     them do not answer; `stop` lets them answer what they have and ends them
 */
export function startWorkers({ door, options, log }) {
  let workerDeaths = 0;
  const living = new Set();
  /** Those who listen, and since when. @type {Map<object, number>} */
  const listening = new Map();
  /** What each of the living has last said, and all of the dead together. */
  const said = new Map();
  let ofTheDead = {};
  const heartbeats = new Heartbeats({
    missed: ({ process: { pid } }) => log.warn({ worker: pid }, 'a worker does not answer'),
    lost: (worker) => {
      log.error({ worker: worker.process.pid }, 'a worker hangs, and is ended');
      worker.process.kill('SIGKILL');
    }
  });
  let stopping = false;
  let begun;
  let failed;
  const ready = new Promise((resolve, reject) => {
    [begun, failed] = [resolve, reject];
  });
  // It may fail before anybody waits for it.
  ready.catch(() => {});

  // Each has its share of what there may be in all.
  const share = (most) => Math.ceil(most / options.workers);
  const environment = {
    SPRITES_WORKER: JSON.stringify({
      ...options,
      connections: share(options.connections),
      handedOver: share(options.handedOver)
    })
  };

  function fork() {
    const relay = door.addWorker();
    cluster.setupPrimary({
      exec: PROGRAM,
      args: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', relay]
    });
    try {
      return cluster.fork(environment);
    } finally {
      // The worker has a copy of the descriptor. With this one open its death would not be noticed.
      closeSync(relay);
    }
  }

  /** Starts a worker, and another one when it has ended: after `backoff` ms, if it died quickly. */
  function launch(backoff) {
    let worker;

    function gone(how) {
      if (worker !== undefined && !living.delete(worker)) return;
      const since = listening.get(worker);
      listening.delete(worker);
      heartbeats.forget(worker);
      ofTheDead = addUp([ofTheDead, countersOf(said.get(worker))]);
      said.delete(worker);
      if (stopping) return;
      workerDeaths += 1;
      if (how.code > 0 && since === undefined)
        failed(new Error('a worker could not start: see its words'));
      const wait = performance.now() - since >= WELL ? BACKOFF.first : backoff;
      log.warn({ ...how, wait }, 'a worker is gone; another one starts');
      setTimeout(() => {
        if (!stopping) launch(Math.min(wait * 2, BACKOFF.most));
      }, wait);
    }

    try {
      worker = fork();
    } catch (error) {
      // Mostly no file descriptor is left. The parked polls stay, and it is tried again.
      return gone({ err: error });
    }
    living.add(worker);
    heartbeats.expect(worker);
    worker.on('message', ({ ready: listens, counts: news }) => {
      // A worker that has ended is counted already: a late message is ignored.
      if (!living.has(worker)) return;
      heartbeats.heard(worker);
      if (news !== undefined) said.set(worker, news);
      if (listens) listening.set(worker, performance.now());
      if (listening.size === options.workers) begun();
    });
    worker.once('exit', (code, signal) => gone({ code, signal }));
    // A process that never was has no end; one that is just ending can't be told anything.
    worker.on('error', (error) => {
      if (worker.process.pid === undefined) gone({ err: error });
    });
    return undefined;
  }

  if (options.workers === 0) begun();
  for (let i = 0; i < options.workers; i += 1) launch(BACKOFF.first);

  function tellToStop(worker) {
    // A worker that does not listen yet has no requests, and does not read messages yet.
    if (!listening.has(worker)) worker.process.kill('SIGKILL');
    // A worker that is just ending has no channel any more.
    else if (worker.isConnected()) worker.send({ stop: true }, () => {});
  }

  async function stop() {
    stopping = true;
    heartbeats.close();
    const ends = [...living].map(
      (worker) =>
        new Promise((resolve) => {
          worker.once('exit', resolve);
        })
    );
    for (const worker of living) tellToStop(worker);
    const impatient = setTimeout(() => {
      for (const worker of living) worker.process.kill('SIGKILL');
    }, PATIENCE);
    await Promise.all(ends);
    clearTimeout(impatient);
  }

  function status() {
    const { connections = 0, heldBytes = 0 } = addUp([...said.values()]);
    return {
      workers: listening.size,
      workerDeaths,
      workerConnections: connections,
      workerHeldBytes: heldBytes
    };
  }

  function counts() {
    const { refused = {}, ...doors } = addUp([ofTheDead, ...[...said.values()].map(countersOf)]);
    return { doors, refused };
  }

  return { ready, status, counts, silent: () => heartbeats.silent, stop };
}
