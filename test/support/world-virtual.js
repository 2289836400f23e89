import { Membership } from '../../lib/world/membership.js';
import { Conflict, WorldError } from '../../lib/world/world-error.js';
import { VirtualTime } from './virtual-time.js';

/**
 * A simulated world without sockets or waiting, in virtual time: a broker's key-value store that is slow or away, and
 * processes that can be cut off, stopped and killed.
 */

/** A store that is slow, away, or hangs. While it hangs, requests wait until it starts again. */
export class SimulatedStore {
  isAway = false;
  isHanging = false;
  #heldRequests = [];

  stop() {
    this.isAway = true;
  }

  hang() {
    this.isHanging = true;
  }

  /** Restarts the store. @returns {boolean} whether it was away */
  start() {
    const wasAway = this.isAway;
    this.isAway = this.isHanging = false;
    for (const request of this.#heldRequests.splice(0)) request();
    return wasAway;
  }

  /**
   * Sends a request to the store and its answer back.
   *
   * @param {() => unknown} execute executes the request
   * @param {object} by
   * @param {() => boolean} by.isReachable whether the store can be reached
   * @param {(callback: () => void) => void} by.deliver calls `callback` when the process receives an answer
   * @param {(callback: () => void) => void} by.onTimeout calls `callback` at the request's timeout
   */
  request(execute, { isReachable, deliver, onTimeout }) {
    return new Promise((resolve, reject) => {
      onTimeout(() => reject(new WorldError('unreachable', 'no answer')));
      const answer = (settle, value) =>
        this.time.after(this.delay(), () => {
          if (isReachable()) deliver(() => settle(value));
        });
      const send = () => {
        if (!isReachable()) return;
        try {
          answer(resolve, execute());
        } catch (error) {
          answer(reject, error);
        }
      };
      this.time.after(this.delay(), () =>
        this.isHanging ? this.#heldRequests.push(send) : send()
      );
    });
  }
}

/** A simulated broker with one bucket. */
export class VirtualBroker extends SimulatedStore {
  /**
   * @param {object} how
   * @param {VirtualTime} how.time
   * @param {() => number} [how.delay] milliseconds one way
   * @param {() => number | undefined} [how.echo] delay of a second delivery of news, in milliseconds; undefined: none
   * @param {number} [how.timeout] timeout of a request, in milliseconds
   */
  constructor({ time, delay = () => 1, echo = () => {}, timeout = 1000 }) {
    super();
    Object.assign(this, { time, delay, echo, timeout });
    this.entries = new Map();
    this.revision = 0;
    this.processes = new Set();
    this.counts = { requests: 0, writes: 0, conflicts: 0, deliveries: 0 };
  }

  /** Kills the broker. With `forgets` it comes back with an empty store. */
  stop({ forgets = false } = {}) {
    super.stop();
    if (!forgets) return;
    this.entries.clear();
    this.revision = 0;
  }

  start() {
    if (super.start()) for (const process of this.processes) process.reportMissed();
  }

  write(name, entry, revision) {
    const before = this.entries.get(name)?.revision ?? 0;
    if (before !== revision) {
      this.counts.conflicts++;
      throw new Conflict();
    }
    this.revision++;
    this.counts.writes++;
    const stored = { entry: structuredClone(entry), revision: this.revision };
    this.entries.set(name, stored);
    const publish = () => {
      for (const process of this.processes)
        if (process.receive(name, stored)) this.counts.deliveries++;
    };
    this.time.after(this.delay(), publish);
    const echoDelay = this.echo();
    if (echoDelay !== undefined) this.time.after(echoDelay, publish);
    return this.revision;
  }
}

/** A server's simulated process, as a membership needs it: a clock, and a connection to the store. */
export class VirtualProcess {
  #broker;
  /** Callbacks that were due while the process was stopped. */
  #heldCallbacks = [];
  /** Whether it is stopped. */
  isStopped = false;
  #watcher;

  /** Whether the way to the broker is cut. */
  isCut = false;

  /** @param {VirtualBroker} broker */
  constructor(broker) {
    this.#broker = broker;
    broker.processes.add(this);
    const { time } = broker;
    this.clock = {
      now: time.now,
      after: (ms, callback) => time.after(ms, () => this.#runOrHold(callback))
    };
  }

  /** Simulates SIGKILL. */
  kill() {
    this.#broker.processes.delete(this);
    this.#runOrHold = () => {};
  }

  /** Simulates SIGSTOP. */
  stop() {
    this.isStopped = true;
  }

  /** Simulates SIGCONT: everything that came meanwhile runs at once. */
  continue() {
    this.isStopped = false;
    for (const callback of this.#heldCallbacks.splice(0)) this.#runOrHold(callback);
  }

  cutOff() {
    this.isCut = true;
  }

  reconnect() {
    this.isCut = false;
    this.reportMissed();
  }

  #canReachBroker() {
    return !this.isCut && !this.#broker.isAway;
  }

  #runOrHold = (callback) => {
    if (this.isStopped) this.#heldCallbacks.push(callback);
    else callback();
  };

  reportMissed() {
    if (!this.isCut) this.#runOrHold(() => this.#watcher?.onMissed());
  }

  receive(name, stored) {
    if (!this.#canReachBroker() || !this.#watcher) return false;
    this.#runOrHold(() => this.#watcher?.onEntry(name, stored));
    return true;
  }

  /** @type {import('../../lib/world/membership.js').Store} */
  store = {
    watch: (watcher) => (this.#watcher = watcher),
    open: async () => {
      if (!this.#canReachBroker()) throw new WorldError('unreachable', 'no broker');
    },
    readAll: () => this.#request(() => new Map(this.#broker.entries)),
    get: (name) =>
      this.#request(() => this.#broker.entries.get(name) ?? { entry: undefined, revision: 0 }),
    put: (name, entry, revision) => this.#request(() => this.#broker.write(name, entry, revision)),
    close: async () => {
      this.#watcher = undefined;
      this.#broker.processes.delete(this);
    }
  };

  #request(execute) {
    this.#broker.counts.requests++;
    return this.#broker.request(execute, {
      isReachable: () => this.#canReachBroker(),
      deliver: (callback) => this.#runOrHold(callback),
      onTimeout: (callback) => this.clock.after(this.#broker.timeout, callback)
    });
  }
}

/**
 * Calculates and simulates the costs of a world of many servers, without sockets. Ring and membership are the server's
 * code (lib/world); time, the broker and the sprites are simulated.
 */

/** Overhead of a message on the wire (subject, headers, lengths), and size of an entry as JSON, in bytes. */
const MESSAGE_OVERHEAD = 100;
const ENTRY_BYTES = 300;

/**
 * @param {number} clients clients of one server
 * @returns {number} the rows of its full torus: slots are opened in shells, a column and a row in turn
 *     (native/torus/torus.h)
 */
export const rowsOf = (clients) => Math.round(Math.sqrt(clients));

/** @returns {number} the share of throws, over random edges, that lead to another server */
export const shareThatCrosses = (clients) => (2 * rowsOf(clients)) / (4 * clients);

/** @returns {string} a server's name. The prefix is n: the ids of s0233 and of s0700 would begin alike */
export const nameOf = (at) => `n${String(at).padStart(4, '0')}`;

/** @returns {string} the server to which a row leads from `name`, which need not have it; `name` if no other has it */
export const leadsTo = (ring, side, name, row) => ring.seams(name, row + 1)[side].at(-1).peer;

/**
 * Returns the messages that NATS receives and delivers in a second.
 *
 * @param {object} world
 * @param {number} world.servers
 * @param {number} world.clients clients of each server
 * @param {number} world.throws a second at each server
 * @param {number} world.lease seconds
 * @returns {{crossing: number, sprites: number, members: number, bytes: number}} `crossing`: sprites that cross;
 *     `sprites`: messages in and out for them, each acknowledged by its own message; `members`, `bytes`: messages in
 *     and out, and bytes out, for membership
 */
export function messages({ servers, clients, throws, lease }) {
  const crossing = servers * throws * shareThatCrosses(clients);
  const renewals = (servers * 4) / lease;
  return {
    crossing,
    sprites: 2 * 2 * crossing,
    members: renewals * (2 + servers),
    bytes: renewals * servers * (ENTRY_BYTES + MESSAGE_OVERHEAD)
  };
}

/** A log that drops everything. */
export const silent = { info() {}, warn() {}, error() {}, debug() {} };

/**
 * Returns how long a ring takes to heal after servers were killed at the same time.
 *
 * @param {object} how
 * @param {number} how.servers
 * @param {number} how.losses
 * @param {number} how.lease milliseconds
 * @param {import('../fuzz/random.js').Random} how.random
 * @param {boolean} [how.neighbors] whether the killed servers are neighbors in the ring
 * @returns {Promise<{healed: number, conflicts: number, asked: number}>} `healed`: milliseconds until
 *     every remaining server has the ring of the remaining servers; `conflicts`: failed writes; `asked`: requests to
 *     the broker
 */
export async function healingOf({ servers, losses, lease, random, neighbors = false }) {
  const time = new VirtualTime(1);
  // Most delays are a few milliseconds; one in fifty is long.
  const delay = () => (random.below(50) === 0 ? 20 + random.below(80) : 0.5 + random.below(4));
  const broker = new VirtualBroker({ time, delay });
  const all = Array.from({ length: servers }, (_, at) => {
    const process = new VirtualProcess(broker);
    const membership = new Membership({
      name: nameOf(at),
      lease,
      store: process.store,
      clock: process.clock,
      describe: () => ({ rows: 1000 }),
      log: silent
    });
    // The servers start, and so renew, at different times.
    time.after(random.below(lease), () => membership.start());
    return { process, membership };
  });
  await until(time, makeIsWhole(all), 10 * lease);
  await time.run(lease / 2 + random.below(lease / 2));
  const first = random.below(servers);
  const order = all.map((_, at) => at);
  if (!neighbors) order.sort(() => random.below(2) - 0.5);
  const lost = new Set(Array.from({ length: losses }, (_, i) => all[order[(first + i) % servers]]));
  const before = { ...broker.counts };
  for (const { process } of lost) process.kill();
  const remaining = all.filter((one) => !lost.has(one));
  const healingTime = await until(time, makeIsWhole(remaining), 5 * lease);
  const { conflicts, requests } = broker.counts;
  for (const { process } of remaining) process.kill();
  return {
    healed: healingTime,
    conflicts: conflicts - before.conflicts,
    asked: requests - before.requests
  };
}

/**
 * Returns a function: whether each server has all of these in its ring. It first checks the server that was behind at
 * the last call: checking a thousand rings takes longer than simulating a second of them.
 */
function makeIsWhole(list) {
  let first = 0;
  return () => {
    const behind = list.findIndex((_, i) => {
      const { membership } = list[(first + i) % list.length];
      return membership.view().ring.size !== list.length;
    });
    if (behind >= 0) first = (first + behind) % list.length;
    return behind < 0;
  };
}

/** Polls every 50 ms of virtual time until `holds`. */
async function until(time, holds, maxMs) {
  const began = time.now();
  while (!holds()) {
    if (time.now() - began > maxMs) throw new Error(`not within ${maxMs} ms`);
    await time.run(50);
  }
  return time.now() - began;
}
