import { fork as startProcess } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { closeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { loadAddon } from '../base/addon.js';
import { addUp } from '../operator/live.js';
import { Heartbeats } from './heartbeats.js';
import { BACKLOG, keepIdle } from '../http/door.js';
import { explained } from '../base/port-errors.js';

/**
 * Starts the workers, which hold the connections of the main port, of the TLS port and of the transient
 * port where there are such; connects them with the pool, and starts them again when they die. This runs in the
 * main process.
 *
 *   port ─┬─ socket 1 ─▶ worker 1 ─┐  what is asked, one buffer a turn
 *         ├─ socket 2 ─▶ worker 2 ─┼─▶ front door ─▶ pool   (native/relay/relay.h: no JavaScript)
 *         └─ socket N ─▶ worker N ─┘ ◀── what is said
 *
 * Each worker has a listening socket of its own, over which the kernel spreads the newcomers evenly
 * (SO_REUSEPORT, socket(7)). The main process has all of them open as well and never accepts: so who
 * waits in the socket of a worker that dies waits for the next worker there, and is not reset.
 * Rejected: one socket for all (who is quickest to wake takes nearly everybody, for as long as they
 * stay).
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
const GAUGES = ['connections', 'tlsConnections', 'heldBytes'];

/** How often it is looked whether the workers have answered, in milliseconds. */
const LOOK = 50;

/** Milliseconds a worker has to end by itself. */
const PATIENCE = 5000;

/**
 * Takes a port for the workers to share, so that it is known before they are there, and nobody else
 * has it.
 *
 * @param {{workers: number, host: string}} options
 * @param {string} option the name of the option that says the port
 * @param {number | string} port 0 takes a free one; 'none'
 * @returns {Promise<{port: number, descriptors: number[], listen: Function, close: Function}>} one
 *     socket a worker, which stay open until `close`; `listen` has newcomers wait in them; port 0
 *     and none of them where there are no workers, or no port is wanted
 * @throws {Error} when it can't be had (EADDRINUSE …)
 */
async function reservePort({ workers, host, hold }, option, port) {
  if (workers === 0 || port === 'none') {
    return { port: 0, descriptors: [], listen() {}, close() {} };
  }
  const explain = (result) => explained({ host: 'host', port: option }, { host, port }, result);
  const reserve = async () => {
    const { address } = await lookup(host);
    return new (loadAddon().Reservation)(address, port, workers);
  };
  const reservation = await explain(reserve());
  return {
    port: reservation.port,
    descriptors: reservation.descriptors,
    listen: () => explain((async () => reservation.listen(BACKLOG, keepIdle({ hold })))()),
    close: () => reservation.close()
  };
}

/**
 * Takes all ports that workers share.
 *
 * @param {object} options port, transientPort, tlsPort, tlsCert
 * @returns {Promise<{main: object, transient: object, tls: object, listen: () => Promise<void>, stopListening: () => void,
 *     close: () => void}>} each as reservePort's
 * @throws {Error} when one can't be had; none is kept then
 */
export async function reservePorts(options) {
  const taken = [];
  const close = () => taken.forEach((one) => one.close());
  const { port, transientPort, tlsCert, tlsPort } = options;
  const wanted = [
    ['port', port],
    ['transient-port', transientPort],
    ['tls-port', tlsCert === 'none' ? 'none' : tlsPort]
  ];
  try {
    for (const [option, number] of wanted) taken.push(await reservePort(options, option, number));
  } catch (error) {
    close();
    throw error;
  }
  const [main, transient, tls] = taken;
  return {
    ...{ main, transient, tls, close, stopListening: close, closeIdle() {} },
    async listen() {
      for (const one of taken) await one.listen();
    }
  };
}

function countersOf(counts = {}) {
  return Object.fromEntries(Object.entries(counts).filter(([name]) => !GAUGES.includes(name)));
}

/**
 * Starts the workers.
 *
 * @param {object} parts
 * @param {ReturnType<import('../http/door.js').createDoor>} parts.door the main process's
 * @param {object} parts.options see lib/operator/options.js, with the transientPort that was reserved
 * @param {Record<string, (...rest: unknown[]) => unknown>} parts.asked what workers may ask for, by name
 * @param {Awaited<ReturnType<typeof reservePorts>>} parts.ports whose sockets they share, one a worker of each
 * @param {import('pino').Logger} parts.log
 * @returns {{ready: Promise<void>, accept: (identity?: object) => void, drain: (window: number) => Promise<void>,
 *     reload: (identity?: object) => void, renewGames: (names: string[]) => void,
 *     locate: (directory: import('../world/directory.js').Directory) => void, status: () => object,
 *     counts: () => {doors: object, refused: object}, silent: () => number, tlsConnections: () => number, stop: () => Promise<void>}} `ready` when all of
 *     them are there, rejected when one cannot start; `accept` has them take newcomers from then on, by TLS
 *     with that certificate and key (`reload`: with other ones),
 *     `locate` tells them where the clients of other servers belong,
 *     `drain` no more, and answers who watches feeds there within so many milliseconds; `status` is what they are now, `counts` what their
 *     doors have counted and what they have refused by themselves, the dead among them, as of a
 *     second ago; `silent` says how many of
 *     them do not answer; `stop` lets them answer what they have and ends them
 */
export function startWorkers({ door, asked, options, ports, log }) {
  const [sockets, transientSockets, tlsSockets] = [ports.main, ports.transient, ports.tls].map(
    ({ descriptors }) => descriptors
  );
  let workerDeaths = 0;
  const living = new Set();
  /** Those who listen, and since when. @type {Map<object, number>} */
  const listening = new Map();
  /** What each of the living has last said, and all of the dead together. */
  const said = new Map();
  let ofTheDead = {};
  const heartbeats = new Heartbeats({
    missed: ({ pid }) => log.warn({ worker: pid }, 'a worker does not answer'),
    lost: (worker) => {
      log.error({ worker: worker.pid }, 'a worker hangs, and is ended');
      worker.kill('SIGKILL');
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
    ...process.env,
    SPRITES_WORKER: JSON.stringify({
      ...options,
      connections: share(options.connections),
      addressHeld: share(options.addressHeld),
      feedWatchers: share(options.feedWatchers),
      // Those of all workers are counted here, together.
      addressConnections: 0
    })
  };
  let accepting = false;
  /** Certificate and key, where there is TLS. */
  let identity = null;
  /** Where the clients of other servers of a world belong. @type {[number, string][]} */
  let elsewhere = [];
  /** Those in which somebody still watches feeds, while the server ends. */
  const undrained = new Set();

  /** Starts the worker of the socket of that number. */
  function fork(number) {
    const relays = [sockets, transientSockets]
      .filter(({ length }) => length > 0)
      .map((some) => ({ relay: door.addWorker(share(options.connections)), socket: some[number] }));
    try {
      return startProcess(PROGRAM, [], {
        env: environment,
        // Values of feeds are bytes.
        serialization: 'advanced',
        stdio: [
          ...['ignore', 'inherit', 'inherit', 'ipc'],
          ...relays.flatMap(({ relay, socket }) => [relay, socket]),
          ...tlsSockets.slice(number, number + 1)
        ]
      });
    } finally {
      // The worker has copies of the descriptors. With these open its death would not be noticed.
      for (const { relay } of relays) closeSync(relay);
    }
  }

  /** Says something to a worker; one that is just ending has no channel any more. */
  function tell(worker, message) {
    if (worker.connected) worker.send(message, () => {});
  }

  /** Starts a worker, and another one when it has ended: after `backoff` ms, if it died quickly. */
  function launch(number, backoff) {
    let worker;

    function gone(how) {
      if (worker !== undefined && !living.delete(worker)) return;
      const since = listening.get(worker);
      listening.delete(worker);
      heartbeats.forget(worker);
      undrained.delete(worker);
      ofTheDead = addUp([ofTheDead, countersOf(said.get(worker))]);
      said.delete(worker);
      if (stopping) return;
      workerDeaths += 1;
      if (how.code > 0 && since === undefined)
        failed(new Error('a worker could not start: see its words'));
      const wait = performance.now() - since >= WELL ? BACKOFF.first : backoff;
      log.warn({ ...how, wait }, 'a worker is gone; another one starts');
      setTimeout(() => {
        if (!stopping) launch(number, Math.min(wait * 2, BACKOFF.most));
      }, wait);
    }

    try {
      worker = fork(number);
    } catch (error) {
      // Mostly no file descriptor is left. The parked polls stay, and it is tried again.
      return gone({ err: error });
    }
    living.add(worker);
    heartbeats.expect(worker);
    worker.on('message', ({ ready: listens, counts: news, drained, ask, what, rest }) => {
      // A worker that has ended is counted already: a late message is ignored.
      if (!living.has(worker)) return;
      heartbeats.heard(worker);
      if (news !== undefined) said.set(worker, news);
      if (drained) undrained.delete(worker);
      if (ask !== undefined) answer(worker, ask, asked[what](...rest));
      if (listens) {
        listening.set(worker, performance.now());
        tell(worker, { elsewhere });
        if (accepting) tell(worker, { accept: identity });
      }
      if (listening.size === options.workers) begun();
    });
    worker.once('exit', (code, signal) => gone({ code, signal }));
    // A process that never was has no end; one that is just ending can't be told anything.
    worker.on('error', (error) => {
      if (worker.pid === undefined) gone({ err: error });
    });
    return undefined;
  }

  if (options.workers === 0) begun();
  for (let i = 0; i < options.workers; i += 1) launch(i, BACKOFF.first);

  function tellToStop(worker) {
    // A worker that does not listen yet has no requests, and does not read messages yet.
    if (!listening.has(worker)) worker.kill('SIGKILL');
    else tell(worker, { stop: true });
  }

  function accept(tlsIdentity = null) {
    accepting = true;
    identity = tlsIdentity;
    for (const worker of listening.keys()) tell(worker, { accept: identity });
  }

  async function answer(worker, number, result) {
    tell(worker, { answered: [number, await result] });
  }

  async function drain(window) {
    accepting = false;
    for (const worker of listening.keys()) {
      undrained.add(worker);
      tell(worker, { drain: window });
    }
    const end = performance.now() + window + PATIENCE;
    while (undrained.size > 0 && performance.now() < end) await pause(LOOK);
  }

  function reload(tlsIdentity = null) {
    identity = tlsIdentity;
    for (const worker of listening.keys()) tell(worker, { reload: identity });
  }

  function renewGames(names) {
    for (const worker of listening.keys()) tell(worker, { renewGames: names });
  }

  function locate({ entries }) {
    elsewhere = entries;
    for (const worker of listening.keys()) tell(worker, { elsewhere });
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
      for (const worker of living) worker.kill('SIGKILL');
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

  /** What each worker that listens has last said. */
  function each() {
    return [...listening.keys()].map((worker) => {
      const { connections = 0, requests = 0, heldBytes = 0 } = said.get(worker) ?? {};
      return { pid: worker.pid, connections, requests, heldBytes };
    });
  }

  function counts() {
    const { refused = {}, ...doors } = addUp([ofTheDead, ...[...said.values()].map(countersOf)]);
    return { doors, refused };
  }

  const silent = () => heartbeats.silent;
  const tlsConnections = () => addUp([...said.values()]).tlsConnections ?? 0;
  return {
    ...{ ready, accept, drain, reload, renewGames, locate, stop },
    ...{ status, each, counts, silent, tlsConnections }
  };
}
