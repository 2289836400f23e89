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
  /** The times there are, a heap. */
  #times = [];

  now = () => this.#now;

  after = (ms, then) => {
    const time = Math.max(Math.ceil(this.#now + ms), Math.ceil(this.#now));
    let list = this.#events.get(time);
    if (!list) {
      list = [];
      this.#events.set(time, list);
      push(this.#times, time);
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
    while (!holds() && this.#times.length > 0 && this.#times[0] <= end) {
      const time = pop(this.#times);
      this.#now = Math.max(this.#now, time);
      const list = this.#events.get(time);
      this.#events.delete(time);
      for (const { then } of list) then?.();
      await settled();
    }
    if (!holds()) this.#now = end;
  }
}

/** Until everybody waits for time again. */
const settled = () => new Promise(setImmediate);

function push(heap, value) {
  let at = heap.push(value) - 1;
  while (at > 0) {
    const above = (at - 1) >> 1;
    if (heap[above] <= heap[at]) return;
    [heap[above], heap[at]] = [heap[at], heap[above]];
    at = above;
  }
}

function pop(heap) {
  const top = heap[0];
  const last = heap.pop();
  if (heap.length > 0) {
    heap[0] = last;
    for (let at = 0; ;) {
      let least = at;
      for (const below of [2 * at + 1, 2 * at + 2]) {
        if (below < heap.length && heap[below] < heap[least]) least = below;
      }
      if (least === at) break;
      [heap[at], heap[least]] = [heap[least], heap[at]];
      at = least;
    }
  }
  return top;
}

/** A broker with one bucket. */
export class VirtualBroker {
  /**
   * @param {object} how
   * @param {VirtualTime} how.time
   * @param {() => number} [how.delay] milliseconds of one way
   * @param {() => number | undefined} [how.echo] after which news are told once more, if at all, milliseconds
   * @param {number} [how.patience] after which a request has failed, milliseconds
   */
  constructor({ time, delay = () => 1, echo = () => {}, patience = 1000 }) {
    this.time = time;
    this.delay = delay;
    this.echo = echo;
    this.patience = patience;
    this.entries = new Map();
    this.revision = 0;
    this.processes = new Set();
    this.counts = { asked: 0, writes: 0, conflicts: 0, told: 0 };
    this.away = false;
    this.hangs = false;
    this.held = [];
  }

  /** The broker is killed; with `forgets` its store is empty when it is back. */
  stop({ forgets = false } = {}) {
    this.away = true;
    if (!forgets) return;
    this.entries.clear();
    this.revision = 0;
  }

  /** It hangs: what it is asked waits until it starts again. */
  hang() {
    this.hangs = true;
  }

  start() {
    const wasAway = this.away;
    this.away = false;
    if (wasAway) for (const process of this.processes) process.missed();
    this.hangs = false;
    for (const request of this.held.splice(0)) request();
  }

  /** Takes a request, as soon as it can. */
  take(request) {
    if (this.hangs) this.held.push(request);
    else request();
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

  /** There and back; an answer that can't come is none. */
  #ask(what) {
    const { time, delay, patience, counts } = this.#broker;
    counts.asked++;
    return new Promise((resolve, reject) => {
      const answer = (settle, value) => {
        time.after(delay(), () => {
          if (this.#reaches()) this.#do(() => settle(value));
        });
      };
      this.clock.after(patience, () => reject(new WorldError('unreachable', 'no answer')));
      const request = () => {
        if (!this.#reaches()) return;
        try {
          answer(resolve, what());
        } catch (error) {
          answer(reject, error);
        }
      };
      time.after(delay(), () => this.#broker.take(request));
    });
  }
}
