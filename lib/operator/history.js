import { countsBetween, quantile } from './admin-page/quantile.js';

/**
 * The last hour of the values that the admin port's page plots, also from before the page was opened.
 *
 * Costs one look at the live counts in ten seconds, and some 60 kB. Rejected: a history in the page (the page knows nothing
 * of the time before it was opened); a history in a file (Prometheus has one).
 */

/** Interval of samples, in milliseconds, and number of samples: an hour. */
const SAMPLE_INTERVAL = 10_000;
const MAX_SAMPLES = 360;

/** Counters whose growth per second is kept; several counters under one name are added up. */
const RATES = {
  throws: ['thrown'],
  inputs: ['inputs'],
  documents: ['documents', 'patches'],
  fetchesFailed: ['fetchesFailed'],
  cpu: ['cpuSeconds']
};

const GAUGES = ['clients', 'watching', 'players', 'rss', 'heapUsed', 'feedMemory', 'mailboxBytes'];

const sumOf = (all, names) => names.reduce((sum, name) => sum + (all[name] ?? 0), 0);

/**
 * @typedef {object} Sample
 * @property {number} at seconds since 1970
 * @property {number | null} p99 99th percentile of the waits of sprites since the last sample, in milliseconds
 * @property {number | null} refused per second, like `throws`, `inputs`, `documents`, `fetchesFailed` and `cpu`; null in
 *     the first sample
 */

export class History {
  #status;
  #timer;
  #lastStatus;
  #lastSampleTime = 0;
  /** @type {Sample[]} */
  samples = [];

  /** @param {() => object} status returns all live counts */
  constructor(status) {
    this.#status = status;
    this.takeSample();
    this.#timer = setInterval(() => this.takeSample(), SAMPLE_INTERVAL).unref();
  }

  /** Takes a sample. */
  takeSample() {
    const status = this.#status();
    const lastStatus = this.#lastStatus;
    const sampleTime = performance.now();
    const seconds = (sampleTime - this.#lastSampleTime) / 1000;
    const rate = (sum) =>
      lastStatus === undefined ? null : (sum(status) - sum(lastStatus)) / seconds;
    const refusedOf = ({ refused = {} }) => sumOf(refused, Object.keys(refused));
    const sample = { at: Math.round(Date.now() / 1000), refused: rate(refusedOf), p99: null };
    for (const name of GAUGES) sample[name] = status[name] ?? 0;
    for (const [name, counters] of Object.entries(RATES)) {
      sample[name] = rate((all) => sumOf(all, counters));
    }
    if (lastStatus !== undefined) {
      sample.p99 = quantile(countsBetween(lastStatus.deliveryTimes, status.deliveryTimes), 0.99);
    }
    this.samples.push(sample);
    if (this.samples.length > MAX_SAMPLES) this.samples.shift();
    this.#lastStatus = status;
    this.#lastSampleTime = sampleTime;
  }

  close() {
    clearInterval(this.#timer);
  }
}
