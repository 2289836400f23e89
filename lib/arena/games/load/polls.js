import { Client, EDGES } from '../../client/client.js';
import { batchOf, KEPT, OF_A_BATCH, SETTLED, through } from './batches.js';

/**
 * A phone's part of the load: a few clients of the torus, whose sprites are counted by batches, as on machines
 * (native/swarm/account.h). Times are from a throw to its answer: a phone's sprite mostly lands on another machine,
 * with another clock. No DOM.
 *
 * A browser opens six connections to a server: one for the feeds, one for inputs, one for throws. Three are left for
 * polls, for all tabs of the browser together.
 */

/** Most polls of one phone. */
const MOST_POLLS = 3;

/** Most throws without an answer at once, so that throws don't pile up behind a slow answer. */
const MOST_THROWS = 2;

/** Most times in one report. */
const TIMES = 256;

const idOf = (name, number, sprite) => `${name}-${number}-0-${sprite}`;

/** Returns a percentile of times; -1 without times. */
function percentile(times, percent) {
  if (times.length === 0) return -1;
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length, Math.ceil((sorted.length * percent) / 100)) - 1];
}

export class Polls {
  #server;
  #name;
  #number;
  #clients = [];
  #rows = new Map();
  #older = [0, 0, 0];
  #batch = 0;
  #sprites = 0;
  #turn = 0;
  #underWay = 0;
  #timer;
  #rate = 0;
  #times = [];
  #accepted = 0;
  #counted = 0;
  #since = performance.now();
  #refused = 0;
  #broken = 0;
  #seen = new Set();

  /**
   * @param {object} parts
   * @param {string} parts.base URL of the server
   * @param {string} parts.name the swarm's name: only clients with this name count its sprites
   * @param {number} parts.number of this player
   * @param {() => string} [parts.grant] returns the grant of the page's link
   */
  constructor({ name, number, ...server }) {
    this.#server = server;
    this.#name = name;
    this.#number = number;
  }

  /** @param {{polls: number, throws: number, batch: number}} load the wanted load from now on */
  steer({ polls, throws, batch }) {
    this.#batch = Math.max(this.#batch, batch);
    const wanted = Math.min(polls, MOST_POLLS);
    while (this.#clients.length < wanted) this.#open();
    while (this.#clients.length > wanted) this.#clients.pop().leave();
    if (throws === this.#rate) return;
    this.#rate = throws;
    clearInterval(this.#timer);
    if (throws > 0) this.#timer = setInterval(() => this.#throw(), 1000 / throws);
  }

  #open() {
    const client = new Client({
      ...this.#server,
      onSprite: (sprite) => this.#take(sprite),
      onState: (state) => {
        if (state === 'offline') this.#broken += 1;
      }
    });
    this.#clients.push(client);
    client.start();
  }

  #row(batch) {
    let row = this.#rows.get(batch);
    if (row !== undefined) return row;
    row = [batch, 0, 0];
    this.#rows.set(batch, row);
    for (const [number, [, accepted, received]] of this.#rows) {
      if (number > this.#batch - KEPT) continue;
      this.#older = [0, this.#older[1] + accepted, this.#older[2] + received];
      this.#rows.delete(number);
    }
    return row;
  }

  #take({ id }) {
    const [, name, number] = /^(.+)-\d+-\d+-(\d+)$/.exec(id ?? '') ?? [];
    const batch = batchOf(Number(number), this.#batch);
    if (name !== this.#name || batch === undefined || this.#seen.has(id)) return;
    if (this.#seen.size >= 4096) this.#seen.clear();
    this.#seen.add(id);
    this.#row(batch)[2] += 1;
  }

  async #throw() {
    const ready = this.#clients.filter(({ state }) => state === 'online');
    if (this.#batch === 0 || ready.length === 0 || this.#underWay >= MOST_THROWS) return;
    this.#turn += 1;
    const client = ready[this.#turn % ready.length];
    const edge = EDGES[Math.floor(Math.random() * EDGES.length)];
    const batch = this.#batch;
    this.#sprites += 1;
    const id = idOf(this.#name, this.#number, batch * OF_A_BATCH + (this.#sprites % OF_A_BATCH));
    const began = performance.now();
    const sprite = { id, picture: 'ball', at: 0.5, speed: [1, 0.2], name: 'phone', to: edge };
    this.#underWay += 1;
    const { thrown } = await client.throw(
      edge,
      { ...sprite, t: Math.round(began * 1e6) },
      { patience: 0 }
    );
    this.#underWay -= 1;
    if (thrown !== true) this.#refused += 1;
    else this.#settle(batch, performance.now() - began);
  }

  #settle(batch, time) {
    this.#row(batch)[1] += 1;
    this.#accepted += 1;
    if (this.#times.length < TIMES) this.#times.push(time);
  }

  /** @returns {object} the game's inputs; times and rates since the last report */
  report() {
    const now = performance.now();
    const perSecond = ((this.#accepted - this.#counted) * 1000) / Math.max(1, now - this.#since);
    [this.#since, this.#counted] = [now, this.#accepted];
    const times = this.#times;
    this.#times = [];
    const parked = this.#clients.filter(({ state }) => state === 'online').length;
    return {
      connections: parked,
      members: this.#clients.filter(({ id }) => id !== null).length,
      batch: this.#batch,
      ...through([this.#older, ...this.#rows.values()], this.#batch - SETTLED),
      perSecond,
      p50: percentile(times, 50),
      p99: percentile(times, 99),
      refused: this.#refused,
      broken: this.#broken,
      stall: 0
    };
  }

  /** @returns {{accepted: number, received: number}} all accepted throws, and all received sprites */
  get sums() {
    return through([this.#older, ...this.#rows.values()], Infinity);
  }

  /** Stops the throws, and removes the clients. */
  stop() {
    clearInterval(this.#timer);
    for (const client of this.#clients.splice(0)) client.leave();
  }

  /** @returns {string[]} the URLs to POST when the page goes away, so that its clients leave */
  get leaveUrls() {
    return this.#clients.map(({ leaveUrl }) => leaveUrl).filter(Boolean);
  }
}
