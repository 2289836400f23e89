import { Membership } from '../../lib/world/membership.js';
import { Conflict, WorldError } from '../../lib/world/world-error.js';

/**
 * A world without sockets and without waiting: a clock that jumps from event to event, the key-value store of a broker
 * that takes its time and can be away, and processes that can be cut off from it, stopped and killed.
 */

/** Time that passes only when `run` lets it. */
export class VirtualTime {
  #now = 0;
  /** Events by their time, in whole milliseconds. */
  #events = new Map();
  /** The times there are, the next one last. */
  #times = [];

  now = () => this.#now;

  after = (ms, then) => {
    const time = Math.max(Math.ceil(this.#now + ms), Math.ceil(this.#now));
    let list = this.#events.get(time);
    if (!list) {
      list = [];
      this.#events.set(time, list);
      const later = this.#times.findLastIndex((other) => other > time);
      this.#times.splice(later + 1, 0, time);
    }
    const event = { then };
    list.push(event);
    return () => (event.then = undefined);
  };

  /** @returns {Promise<void>} */
  pause = (ms) => new Promise((then) => this.after(ms, then));

  /**
   * Lets time pass.
   *
   * @param {number} ms
   * @param {() => boolean} [holds] ends earlier when it does
   */
  async run(ms, holds = () => false) {
    const end = this.#now + ms;
    await settled();
    while (!holds() && this.#times.at(-1) <= end) {
      const time = this.#times.pop();
      this.#now = Math.max(this.#now, time);
      const list = this.#events.get(time);
      this.#events.delete(time);
      for (const { then } of list) then?.();
      await settled();
    }
    if (!holds()) this.#now = end;
  }
}

/** Until all wait for time again. */
const settled = () => new Promise(setImmediate);

/** A store that takes its time, is away, or hangs: then what it is asked waits until it starts again. */
export class PlayedStore {
  away = false;
  hangs = false;
  #held = [];

  stop() {
    this.away = true;
  }

  hang() {
    this.hangs = true;
  }

  /** @returns {boolean} whether it was away */
  start() {
    const wasAway = this.away;
    this.away = this.hangs = false;
    for (const request of this.#held.splice(0)) request();
    return wasAway;
  }

  /**
   * Asks it: there and back.
   *
   * @param {() => unknown} what
   * @param {object} by
   * @param {() => boolean} by.reaches whether there is a way
   * @param {(then: () => void) => void} by.hears what is done with an answer that has come
   * @param {(then: () => void) => void} by.late when there is none
   */
  ask(what, { reaches, hears, late }) {
    return new Promise((resolve, reject) => {
      late(() => reject(new WorldError('unreachable', 'no answer')));
      const answer = (settle, value) =>
        this.time.after(this.delay(), () => {
          if (reaches()) hears(() => settle(value));
        });
      const request = () => {
        if (!reaches()) return;
        try {
          answer(resolve, what());
        } catch (error) {
          answer(reject, error);
        }
      };
      this.time.after(this.delay(), () => (this.hangs ? this.#held.push(request) : request()));
    });
  }
}

/** A broker with one bucket. */
export class VirtualBroker extends PlayedStore {
  /**
   * @param {object} how
   * @param {VirtualTime} how.time
   * @param {() => number} [how.delay] milliseconds of one way
   * @param {() => number | undefined} [how.echo] after which news are told once more, if at all, milliseconds
   * @param {number} [how.patience] after which a request has failed, milliseconds
   */
  constructor({ time, delay = () => 1, echo = () => {}, patience = 1000 }) {
    super();
    Object.assign(this, { time, delay, echo, patience });
    this.entries = new Map();
    this.revision = 0;
    this.processes = new Set();
    this.counts = { asked: 0, writes: 0, conflicts: 0, told: 0 };
  }

  /** The broker is killed; with `forgets` its store is empty when it is back. */
  stop({ forgets = false } = {}) {
    super.stop();
    if (!forgets) return;
    this.entries.clear();
    this.revision = 0;
  }

  start() {
    if (super.start()) for (const process of this.processes) process.missed();
  }

  write(name, entry, revision) {
    const before = this.entries.get(name)?.revision ?? 0;
    if (before !== revision) {
      this.counts.conflicts++;
      throw new Conflict();
    }
    this.revision++;
    this.counts.writes++;
    const what = { entry: structuredClone(entry), revision: this.revision };
    this.entries.set(name, what);
    const tell = () => {
      for (const process of this.processes) if (process.hear(name, what)) this.counts.told++;
    };
    this.time.after(this.delay(), tell);
    const again = this.echo();
    if (again !== undefined) this.time.after(again, tell);
    return this.revision;
  }
}

/** A server's process, as far as a membership needs one: its clock, and its end of the store. */
export class VirtualProcess {
  #broker;
  /** What would have run while it was stopped. */
  #waiting = [];
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
    this.clock = { now: time.now, after: (ms, then) => time.after(ms, () => this.#do(then)) };
  }

  /** SIGKILL. */
  kill() {
    this.#broker.processes.delete(this);
    this.#do = () => {};
  }

  /** SIGSTOP. */
  stop() {
    this.isStopped = true;
  }

  /** SIGCONT: everything that has come meanwhile is there at once. */
  continue() {
    this.isStopped = false;
    for (const then of this.#waiting.splice(0)) this.#do(then);
  }

  cut() {
    this.isCut = true;
  }

  mend() {
    this.isCut = false;
    this.missed();
  }

  #reaches() {
    return !this.isCut && !this.#broker.away;
  }

  #do = (then) => {
    if (this.isStopped) this.#waiting.push(then);
    else then();
  };

  missed() {
    if (!this.isCut) this.#do(() => this.#watcher?.missed());
  }

  hear(name, what) {
    if (!this.#reaches() || !this.#watcher) return false;
    this.#do(() => this.#watcher?.seen(name, what));
    return true;
  }

  /** @type {import('../../lib/world/membership.js').Store} */
  store = {
    watch: (watcher) => (this.#watcher = watcher),
    open: async () => {
      if (!this.#reaches()) throw new WorldError('unreachable', 'no broker');
    },
    all: () => this.#ask(() => new Map(this.#broker.entries)),
    get: (name) =>
      this.#ask(() => this.#broker.entries.get(name) ?? { entry: undefined, revision: 0 }),
    put: (name, entry, revision) => this.#ask(() => this.#broker.write(name, entry, revision)),
    close: async () => {
      this.#watcher = undefined;
      this.#broker.processes.delete(this);
    }
  };

  #ask(what) {
    this.#broker.counts.asked++;
    return this.#broker.ask(what, {
      reaches: () => this.#reaches(),
      hears: (then) => this.#do(then),
      late: (then) => this.clock.after(this.#broker.patience, then)
    });
  }
}

/**
 * What a world of many servers comes to, worked out and simulated: no sockets. Ring and membership are the server's own
 * (lib/world); only time, the broker and the sprites are played.
 */

/** What a message costs on the wire besides its payload, bytes: subject, headers, lengths; and an entry, as JSON. */
const MESSAGE = 100;
const ENTRY = 300;

/**
 * @param {number} clients of one server
 * @returns {number} rows of its torus when it is full: slots are opened in shells, a column and a row in turn
 *     (native/torus/torus.h)
 */
export const rowsOf = (clients) => Math.round(Math.sqrt(clients));

/** @returns {number} of all throws, each over one of four edges, the share that leads to another server */
export const shareThatCrosses = (clients) => (2 * rowsOf(clients)) / (4 * clients);

/** @returns {string} a server's; ids of s0233 and of s0700 would begin alike */
export const nameOf = (at) => `n${String(at).padStart(4, '0')}`;

/** @returns {string} where a row's end leads from a server, which need not have the row; itself where no other one has */
export const leadsTo = (ring, side, name, row) => ring.seams(name, row + 1)[side].at(-1).peer;

/**
 * Messages that NATS takes and gives in a second.
 *
 * @param {object} world
 * @param {number} world.servers
 * @param {number} world.clients of each
 * @param {number} world.throws a second at each server
 * @param {number} world.lease seconds
 * @returns {{crossing: number, sprites: number, members: number, bytes: number}} sprites that cross; messages in and out
 *     for them, each acknowledged by a message of its own; messages in and out for membership; bytes out for membership
 */
export function messages({ servers, clients, throws, lease }) {
  const crossing = servers * throws * shareThatCrosses(clients);
  const renewals = (servers * 4) / lease;
  return {
    crossing,
    sprites: 2 * 2 * crossing,
    members: renewals * (2 + servers),
    bytes: renewals * servers * (ENTRY + MESSAGE)
  };
}

/** A log that says nothing. */
export const silent = { info() {}, warn() {}, error() {}, debug() {} };

/**
 * How long a ring takes to be whole again after servers were killed at once.
 *
 * @param {object} how
 * @param {number} how.servers
 * @param {number} how.losses
 * @param {number} how.lease milliseconds
 * @param {import('../fuzz/random.js').Random} how.random
 * @param {boolean} [how.neighbors] whether the lost ones are side by side in the ring
 * @returns {Promise<{healed: number, conflicts: number, asked: number}>} milliseconds until every server has the ring of
 *     those that are left; writes that came too late; requests to the broker meanwhile
 */
export async function healingOf({ servers, losses, lease, random, neighbors = false }) {
  const time = new VirtualTime();
  // Most ways take a millisecond or some; one in fifty takes long.
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
    // They do not start in step, and so do not renew in step.
    time.after(random.below(lease), () => membership.start());
    return { process, membership };
  });
  await until(time, wholeOf(all), 10 * lease);
  await time.run(lease / 2 + random.below(lease / 2));
  const first = random.below(servers);
  const order = all.map((_, at) => at);
  if (!neighbors) order.sort(() => random.below(2) - 0.5);
  const lost = new Set(Array.from({ length: losses }, (_, i) => all[order[(first + i) % servers]]));
  const before = { ...broker.counts };
  for (const { process } of lost) process.kill();
  const left = all.filter((one) => !lost.has(one));
  const healed = await until(time, wholeOf(left), 5 * lease);
  const { conflicts, asked } = broker.counts;
  for (const { process } of left) process.kill();
  return { healed, conflicts: conflicts - before.conflicts, asked: asked - before.asked };
}

/**
 * Whether each of these has all of them in its ring. One that was behind at the last look is looked at first: to look at a
 * thousand rings takes longer than to play a second of them.
 */
function wholeOf(list) {
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

/** Looks every 50 ms of the played time. */
async function until(time, holds, most) {
  const began = time.now();
  while (!holds()) {
    if (time.now() - began > most) throw new Error(`not within ${most} ms`);
    await time.run(50);
  }
  return time.now() - began;
}
