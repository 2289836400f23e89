import { performance } from 'node:perf_hooks';

import { roundedToMs } from '../report/words.js';
import { Histogram } from './histogram.js';

/** Most points of a series in a run of the expected length; a longer run has up to twice as many. */
const MAX_POINTS = 400;

/** The counters of native/swarm/core.h, as the ticks name them. */
const COUNTERS = [
  ...'connections closed joined rejoined left answers empty retries superseded sent'.split(' '),
  ...'resends accepted delivered queued duplicates refused unsettled received resent'.split(' '),
  ...'doubles unackedLosses foreign mangled badAnswers'.split(' '),
  ...'parked members pending behind over'.split(' ')
];
const round = (value) => Math.round(value * 100) / 100;

const NAMED_COUNTERS = ['refusals', 'problems', 'connectErrors'];

/**
 * Sums of all engines' ticks so far: counters, histograms, and a series of points over time for the report.
 */
export class Tally {
  #lastTicks = [];
  #intervalTimes = new Histogram();
  #stageTimes = new Histogram();
  #started = performance.now();
  #lastPoint = null;
  #pointInterval;

  /** Times from throw to arrival, from throw to answer, and from throw to arrival of the probe's sprites. */
  arrival = new Histogram();
  answer = new Histogram();
  probe = new Histogram();

  /** @type {Array<object>} points: see sample() */
  series = [];

  /** Target of the current stage now, in clients or sprites a second; null without stages. @type {?number} */
  stageTarget = null;

  /** @param {number} seconds expected length of the run */
  constructor(seconds) {
    this.#pointInterval = Math.max(0.25, seconds / MAX_POINTS);
  }

  /** @param {object} tick a tick of one engine */
  add(tick) {
    this.#lastTicks[tick.process] = tick;
    this.arrival.add(tick.arrival);
    this.answer.add(tick.answer);
    this.probe.add(tick.probe);
    this.#intervalTimes.add(tick.arrival).add(tick.probe);
    this.#stageTimes.add(tick.arrival);
  }

  /** Number of engines that have sent a tick. */
  get engines() {
    return this.#lastTicks.filter(Boolean).length;
  }

  /** @returns {Record<string, number>} the counters, over all engines */
  get counts() {
    const sums = Object.fromEntries(COUNTERS.map((name) => [name, 0]));
    for (const tick of this.#lastTicks) {
      for (const name of COUNTERS) sums[name] += tick?.[name] ?? 0;
    }
    return sums;
  }

  /** Longest stall of an engine since throwing began, in ms. */
  get lateness() {
    return Math.max(0, ...this.#lastTicks.map((tick) => tick?.lateness ?? 0)) / 1e6;
  }

  /** @returns {Record<string, Record<string, number>>} refusals, problems, connectErrors by name */
  get countsByName() {
    const sums = Object.fromEntries(NAMED_COUNTERS.map((name) => [name, {}]));
    for (const tick of this.#lastTicks) {
      for (const name of NAMED_COUNTERS) {
        for (const [key, count] of Object.entries(tick?.[name] ?? {})) {
          sums[name][key] = (sums[name][key] ?? 0) + count;
        }
      }
    }
    return sums;
  }

  /** @returns {object} the times from throw to arrival since the last call: see Histogram.summary() */
  takeStageSummary() {
    const summary = this.#stageTimes.summary();
    this.#stageTimes = new Histogram();
    return summary;
  }

  /** Seconds since the run began. */
  get seconds() {
    return (performance.now() - this.#started) / 1000;
  }

  /**
   * Adds a point to the series when its interval has passed: `at` in seconds, parked clients, sprites accepted
   * and received a second, and median, p99 and maximum of the times from throw to arrival in ms.
   */
  sample() {
    const at = this.seconds;
    const counts = this.counts;
    // Rates are by the engines' clock, since the parent reads ticks with a delay.
    const counted = this.countedAt;
    const before = this.#lastPoint ?? { at: 0, counted, accepted: 0, received: 0 };
    if (at - before.at < this.#pointInterval) return;
    const elapsed = counted - before.counted;
    const rate = (name) => (elapsed > 0 ? (counts[name] - before[name]) / elapsed : 0);
    const { p50, p99, max } = this.#intervalTimes.summary();
    this.series.push({
      at: roundedToMs(at),
      parked: counts.parked,
      ...(this.stageTarget !== null && { asked: round(this.stageTarget) }),
      accepted: Math.round(rate('accepted')),
      received: Math.round(rate('received')),
      p50,
      p99,
      max
    });
    this.#lastPoint = { at, counted, accepted: counts.accepted, received: counts.received };
    this.#intervalTimes = new Histogram();
    if (this.series.length > 2 * MAX_POINTS) this.#thin();
  }

  /** @returns {number} mean time of the engines' last ticks, in seconds of their clock */
  get countedAt() {
    return this.#lastTicks.reduce((sum, { at }) => sum + at / 1e9, 0) / (this.engines || 1);
  }

  /** Drops every second point of a series that is too long, since the run is longer than expected. */
  #thin() {
    this.#pointInterval *= 2;
    this.series = this.series.filter((_, i) => i % 2 === 1);
  }
}

/** Clients have this time to arrive or leave after the wanted number changes, in seconds. */
const TRANSITION_SECONDS = 2;

/**
 * Interruptions: times at which fewer clients were parked than wanted, and how long until 99% were back.
 */
export class Interruptions {
  #usualWanted;
  #peak; // most clients parked at a time, bounded by the number wanted since
  #recentlyWanted = [];
  #current = null;

  /** @type {Array<{at: number, lowest: number, seconds: ?number}>} null: not back by the end */
  list = [];

  /** @param {number} clients number of clients that should be parked */
  constructor(clients) {
    this.#usualWanted = clients;
    this.#peak = clients;
  }

  /**
   * @param {number} at seconds
   * @param {number} parked
   * @param {number} [wanted] number of clients wanted now, where it changes. Clients that are still arriving or
   *     leaving are no interruption
   */
  observe(at, parked, wanted = this.#usualWanted) {
    this.#recentlyWanted = this.#recentlyWanted.filter(
      (sample) => sample.at > at - TRANSITION_SECONDS
    );
    this.#recentlyWanted.push({ at, wanted });
    const leastWanted = Math.min(...this.#recentlyWanted.map((sample) => sample.wanted));
    this.#peak = Math.min(Math.max(this.#peak, parked), leastWanted);
    const isBack = parked >= this.#peak * 0.99;
    if (!this.#current && !isBack) {
      this.#current = { at: round(at), lowest: parked, seconds: null };
      this.list.push(this.#current);
    }
    if (!this.#current) return;
    this.#current.lowest = Math.min(this.#current.lowest, parked);
    if (isBack) {
      this.#current.seconds = round(at - this.#current.at);
      this.#current = null;
    }
  }
}

/**
 * Merges the engines' bitmaps: which sprites were accepted, and which were received by any engine
 * (native/swarm/account.h has a drawing). A page has 65,536 bits; a page of ones is sent without its bytes.
 */

const PAGE_BITS = 65536;
const PAGE_BYTES = PAGE_BITS / 8;
const FULL_PAGE = new Uint32Array(PAGE_BYTES / 4).fill(0xffffffff);
const EMPTY_PAGE = new Uint32Array(PAGE_BYTES / 4);

/** Most missing sprites that are named in the result. */
const MAX_EXAMPLES = 5;

function countOnes(word) {
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
   * @param {number} header.of number of the engine that threw these sprites
   * @param {number} header.page
   * @param {Buffer} bytes the page; empty when every bit is set
   */
  add({ set, of: engine, page }, bytes) {
    const words =
      bytes.length === 0
        ? FULL_PAGE
        : new Uint32Array(Uint8Array.prototype.slice.call(bytes, 0, PAGE_BYTES).buffer);
    const pages = set === 'accepted' ? this.#accepted : this.#received;
    const key = `${engine}/${page}`;
    const knownWords = pages.get(key);
    if (!knownWords) {
      pages.set(key, words);
      return;
    }
    pages.set(
      key,
      knownWords.map((word, i) => {
        if (set === 'received') this.doubles += countOnes(word & words[i]);
        return word | words[i];
      })
    );
  }

  /**
   * @returns {{missing: number, unconfirmed: number, examples: string[]}} `missing`: sprites accepted and not
   *     received; `unconfirmed`: sprites received though no answer accepted them; `examples`: the first missing
   *     sprites as `engine/number`
   */
  result() {
    const result = { missing: 0, unconfirmed: 0, examples: [] };
    for (const key of new Set([...this.#accepted.keys(), ...this.#received.keys()])) {
      const accepted = this.#accepted.get(key) ?? EMPTY_PAGE;
      const received = this.#received.get(key) ?? EMPTY_PAGE;
      for (let i = 0; i < accepted.length; i++) {
        const missing = accepted[i] & ~received[i];
        result.unconfirmed += countOnes(received[i] & ~accepted[i]);
        if (missing === 0) continue;
        result.missing += countOnes(missing);
        this.#addExamples(key, i, missing, result.examples);
      }
    }
    return result;
  }

  #addExamples(key, index, word, examples) {
    const [engine, page] = key.split('/').map(Number);
    for (let bit = 0; bit < 32 && examples.length < MAX_EXAMPLES; bit++) {
      if ((word >>> bit) & 1) examples.push(`${engine}/${page * PAGE_BITS + index * 32 + bit}`);
    }
  }
}
