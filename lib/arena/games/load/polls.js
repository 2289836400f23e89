import { Client, EDGES } from '../../client/client.js';
import {
  batchOf,
  SEPARATE_BATCHES,
  NUMBERS_PER_BATCH,
  SETTLED_AFTER,
  sumThrough
} from './batches.js';

/**
 * A phone's part of the load: a few clients of the torus, whose sprites are counted by batches, as on machines
 * (native/swarm/account.h). Times are from a throw to its answer: a phone's sprite mostly lands on another machine,
 * with another clock. No DOM.
 *
 * A browser opens six connections to a server: one for the feeds, one for inputs, one for throws. Three are left for
 * polls, for all tabs of the browser together.
 */

/** Most polls of one phone. */
const MAX_POLLS = 3;

/** Most throws without an answer at once, so that throws don't pile up behind a slow answer. */
const MAX_THROWS = 2;

/** Most times in one report. */
const MAX_TIMES = 256;

const spriteId = (name, number, sprite) => `${name}-${number}-0-${sprite}`;

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
  #olderSums = [0, 0, 0];
  #batch = 0;
  #sprites = 0;
  #throwTurn = 0;
  #unansweredThrows = 0;
  #timer;
  #rate = 0;
  #times = [];
  #accepted = 0;
  #reportedAccepted = 0;
  #reportedAt = performance.now();
  #refused = 0;
  #disconnects = 0;
  #receivedIds = new Set();

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
    const wantedPolls = Math.min(polls, MAX_POLLS);
    while (this.#clients.length < wantedPolls) this.#addClient();
    while (this.#clients.length > wantedPolls) this.#clients.pop().leave();
    if (throws === this.#rate) return;
    this.#rate = throws;
    clearInterval(this.#timer);
    if (throws > 0) this.#timer = setInterval(() => this.#throw(), 1000 / throws);
  }

  #addClient() {
    const client = new Client({
      ...this.#server,
      onSprite: (sprite) => this.#countReceived(sprite),
      onState: (state) => {
        if (state === 'offline') this.#disconnects += 1;
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
      if (number > this.#batch - SEPARATE_BATCHES) continue;
      this.#olderSums = [0, this.#olderSums[1] + accepted, this.#olderSums[2] + received];
      this.#rows.delete(number);
    }
    return row;
  }

  #countReceived({ id }) {
    const [, name, number] = /^(.+)-\d+-\d+-(\d+)$/.exec(id ?? '') ?? [];
    const batch = batchOf(Number(number), this.#batch);
    if (name !== this.#name || batch === undefined || this.#receivedIds.has(id)) return;
    if (this.#receivedIds.size >= 4096) this.#receivedIds.clear();
    this.#receivedIds.add(id);
    this.#row(batch)[2] += 1;
  }

  async #throw() {
    const ready = this.#clients.filter(({ state }) => state === 'online');
    if (this.#batch === 0 || ready.length === 0 || this.#unansweredThrows >= MAX_THROWS) return;
    this.#throwTurn += 1;
    const client = ready[this.#throwTurn % ready.length];
    const edge = EDGES[Math.floor(Math.random() * EDGES.length)];
    const batch = this.#batch;
    this.#sprites += 1;
    const id = spriteId(
      this.#name,
      this.#number,
      batch * NUMBERS_PER_BATCH + (this.#sprites % NUMBERS_PER_BATCH)
    );
    const thrownAt = performance.now();
    const sprite = { id, picture: 'ball', at: 0.5, speed: [1, 0.2], name: 'phone', to: edge };
    this.#unansweredThrows += 1;
    const { thrown } = await client.throw(
      edge,
      { ...sprite, t: Math.round(thrownAt * 1e6) },
      { patience: 0 }
    );
    this.#unansweredThrows -= 1;
    if (thrown !== true) this.#refused += 1;
    else this.#countAccepted(batch, performance.now() - thrownAt);
  }

  #countAccepted(batch, time) {
    this.#row(batch)[1] += 1;
    this.#accepted += 1;
    if (this.#times.length < MAX_TIMES) this.#times.push(time);
  }

  /** @returns {object} the game's inputs; times and rates since the last report */
  report() {
    const now = performance.now();
    const perSecond =
      ((this.#accepted - this.#reportedAccepted) * 1000) / Math.max(1, now - this.#reportedAt);
    [this.#reportedAt, this.#reportedAccepted] = [now, this.#accepted];
    const times = this.#times;
    this.#times = [];
    const parked = this.#clients.filter(({ state }) => state === 'online').length;
    return {
      connections: parked,
      members: this.#clients.filter(({ id }) => id !== null).length,
      batch: this.#batch,
      ...sumThrough([this.#olderSums, ...this.#rows.values()], this.#batch - SETTLED_AFTER),
      perSecond,
      p50: percentile(times, 50),
      p99: percentile(times, 99),
      refused: this.#refused,
      broken: this.#disconnects,
      stall: 0
    };
  }

  /** @returns {{accepted: number, received: number}} all accepted throws, and all received sprites */
  get sums() {
    return sumThrough([this.#olderSums, ...this.#rows.values()], Infinity);
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
