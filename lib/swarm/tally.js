import { performance } from 'node:perf_hooks';

import { thousandths } from '../report/words.js';
import { Histogram } from './histogram.js';

/** At most so many points of a series are kept, whatever the length of a run. */
const MOST_POINTS = 400;

/** The counters of native/swarm/core.h, as the ticks name them. */
const COUNTERS = [
  ...'connections closed joined rejoined left answers empty retries superseded sent'.split(' '),
  ...'resends accepted delivered queued duplicates refused unsettled received resent'.split(' '),
  ...'doubles unackedLosses foreign mangled badAnswers'.split(' '),
  ...'parked members pending behind over'.split(' ')
];
const round = (value) => Math.round(value * 100) / 100;

const NAMED = ['refusals', 'problems', 'connectErrors'];

/**
 * What all engines have told so far, added up: counters, histograms, and a series of points over
 * time for the report.
 */
export class Tally {
  #last = [];
  #interval = new Histogram();
  #stage = new Histogram();
  #started = performance.now();
  #point = null;
  #step;

  /** Times from throw to arrival, to its answer, and to arrival for the probe's sprites. */
  arrival = new Histogram();
  answer = new Histogram();
  probe = new Histogram();

  /** @type {Array<object>} points: see sample() */
  series = [];

  /** What there should be now, of clients or sprites a second, where that changes in stages. @type {?number} */
  asked = null;

  /** @param {number} seconds the run will take about */
  constructor(seconds) {
    this.#step = Math.max(0.25, seconds / MOST_POINTS);
  }

  /** @param {object} tick of one engine */
  add(tick) {
    this.#last[tick.process] = tick;
    this.arrival.add(tick.arrival);
    this.answer.add(tick.answer);
    this.probe.add(tick.probe);
    this.#interval.add(tick.arrival).add(tick.probe);
    this.#stage.add(tick.arrival);
  }

  /** How many engines have told anything. */
  get engines() {
    return this.#last.filter(Boolean).length;
  }

  /** @returns {Record<string, number>} the counters, over all engines */
  get counts() {
    const sums = Object.fromEntries(COUNTERS.map((name) => [name, 0]));
    for (const tick of this.#last) {
      for (const name of COUNTERS) sums[name] += tick?.[name] ?? 0;
    }
    return sums;
  }

  /** The longest that an engine was kept from its work since throwing began, in ms. */
  get lateness() {
    return Math.max(0, ...this.#last.map((tick) => tick?.lateness ?? 0)) / 1e6;
  }

  /** @returns {Record<string, Record<string, number>>} refusals, problems, connectErrors by name */
  get named() {
    const sums = Object.fromEntries(NAMED.map((name) => [name, {}]));
    for (const tick of this.#last) {
      for (const name of NAMED) {
        for (const [key, count] of Object.entries(tick?.[name] ?? {})) {
          sums[name][key] = (sums[name][key] ?? 0) + count;
        }
      }
    }
    return sums;
  }

  /** @returns {object} the times from throw to arrival since this was last asked: see Histogram.summary() */
  takeStage() {
    const summary = this.#stage.summary();
    this.#stage = new Histogram();
    return summary;
  }

  /** Seconds since the run began. */
  get seconds() {
    return (performance.now() - this.#started) / 1000;
  }

  /**
   * Closes a point of the series when its time has come: `at` in seconds, clients parked, sprites
   * accepted and received a second, and of those received the median, p99 and maximum in ms.
   */
  sample() {
    const at = this.seconds;
    const counts = this.counts;
    // Rates go by the engines' clock: the ticks do not come at the parent's convenience.
    const counted = this.countedAt;
    const before = this.#point ?? { at: 0, counted, accepted: 0, received: 0 };
    if (at - before.at < this.#step) return;
    const passed = counted - before.counted;
    const rate = (name) => (passed > 0 ? (counts[name] - before[name]) / passed : 0);
    const { p50, p99, max } = this.#interval.summary();
    this.series.push({
      at: thousandths(at),
      parked: counts.parked,
      ...(this.asked !== null && { asked: round(this.asked) }),
      accepted: Math.round(rate('accepted')),
      received: Math.round(rate('received')),
      p50,
      p99,
      max
    });
    this.#point = { at, counted, accepted: counts.accepted, received: counts.received };
    this.#interval = new Histogram();
    if (this.series.length > 2 * MOST_POINTS) this.#thin();
  }

  /** @returns {number} seconds of the engines' clock, to which they have counted on average */
  get countedAt() {
    return this.#last.reduce((sum, { at }) => sum + at / 1e9, 0) / (this.engines || 1);
  }

  /** Halves a series that a run longer than planned has made too long. */
  #thin() {
    this.#step *= 2;
    this.series = this.series.filter((_, i) => i % 2 === 1);
  }
}

/** Seconds in which a client that is one too many has gone. */
const ON_THEIR_WAY = 2;

/**
 * Times at which fewer clients were parked than should be, and how long until all but one in a
 * hundred were back.
 */
export class Interruptions {
  #all;
  #peak; // of those parked that were still wanted since
  #wanted = [];
  #now = null;

  /** @type {Array<{at: number, lowest: number, seconds: ?number}>} null: not back by the end */
  list = [];

  /** @param {number} clients that should be parked */
  constructor(clients) {
    this.#all = clients;
    this.#peak = clients;
  }

  /**
   * @param {number} at seconds
   * @param {number} parked
   * @param {number} [wanted] where their number changes. Those that are still on their way, in or out, are no
   *     interruption
   */
  see(at, parked, wanted = this.#all) {
    this.#wanted = this.#wanted.filter((look) => look.at > at - ON_THEIR_WAY);
    this.#wanted.push({ at, wanted });
    const least = Math.min(...this.#wanted.map((look) => look.wanted));
    this.#peak = Math.min(Math.max(this.#peak, parked), least);
    const back = parked >= this.#peak * 0.99;
    if (!this.#now && !back) {
      this.#now = { at: round(at), lowest: parked, seconds: null };
      this.list.push(this.#now);
    }
    if (!this.#now) return;
    this.#now.lowest = Math.min(this.#now.lowest, parked);
    if (back) {
      this.#now.seconds = round(at - this.#now.at);
      this.#now = null;
    }
  }
}

/**
 * Puts the engines' bitmaps together: which sprites were accepted, and which were received by any
 * engine (native/swarm/account.h draws it). Pages of 65,536 bits; a page of ones travels without
 * its bytes.
 */

const PAGE_BITS = 65536;
const PAGE_BYTES = PAGE_BITS / 8;
const FULL = new Uint32Array(PAGE_BYTES / 4).fill(0xffffffff);
const NONE = new Uint32Array(PAGE_BYTES / 4);

/** How many missing sprites are named. */
const EXAMPLES = 5;

function ones(word) {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

export class Account {
  #accepted = new Map();
  #received = new Map();

  /** Sprites that two engines received. */
  doubles = 0;

  /**
   * @param {object} header a frame of type `page`
   * @param {'accepted' | 'received'} header.set
   * @param {number} header.of the engine that threw these sprites
   * @param {number} header.page
   * @param {Buffer} bytes the page; empty when every bit is set
   */
  add({ set, of, page }, bytes) {
    const words =
      bytes.length === 0
        ? FULL
        : new Uint32Array(Uint8Array.prototype.slice.call(bytes, 0, PAGE_BYTES).buffer);
    const pages = set === 'accepted' ? this.#accepted : this.#received;
    const key = `${of}/${page}`;
    const before = pages.get(key);
    if (!before) {
      pages.set(key, words);
      return;
    }
    pages.set(
      key,
      before.map((word, i) => {
        if (set === 'received') this.doubles += ones(word & words[i]);
        return word | words[i];
      })
    );
  }

  /**
   * @returns {{missing: number, unconfirmed: number, examples: string[]}} `missing`: accepted and
   *     not received; `unconfirmed`: received though no answer said so; `examples`: the first
   *     missing ones as `engine/number`
   */
  result() {
    const result = { missing: 0, unconfirmed: 0, examples: [] };
    for (const key of new Set([...this.#accepted.keys(), ...this.#received.keys()])) {
      const accepted = this.#accepted.get(key) ?? NONE;
      const received = this.#received.get(key) ?? NONE;
      for (let i = 0; i < accepted.length; i++) {
        const missing = accepted[i] & ~received[i];
        result.unconfirmed += ones(received[i] & ~accepted[i]);
        if (missing === 0) continue;
        result.missing += ones(missing);
        this.#name(key, i, missing, result.examples);
      }
    }
    return result;
  }

  #name(key, index, word, examples) {
    const [engine, page] = key.split('/').map(Number);
    for (let bit = 0; bit < 32 && examples.length < EXAMPLES; bit++) {
      if ((word >>> bit) & 1) examples.push(`${engine}/${page * PAGE_BITS + index * 32 + bit}`);
    }
  }
}
