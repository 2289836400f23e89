/**
 * Merges the engines' log-linear histograms (native/swarm/histogram.h). Values are nanoseconds; each doubling has
 * 1,024 buckets, so a percentile is right to three digits.
 */

const BUCKETS_PER_DOUBLING = 1024;

/**
 * @param {number} bucket
 * @returns {number} the largest value of the bucket
 */
export function highestValueOf(bucket) {
  if (bucket < 2 * BUCKETS_PER_DOUBLING) return bucket;
  const shift = Math.floor(bucket / BUCKETS_PER_DOUBLING) - 1;
  return ((bucket % BUCKETS_PER_DOUBLING) + BUCKETS_PER_DOUBLING + 1) * 2 ** shift - 1;
}

/** Counts by bucket, merged from any number of engines and intervals. */
export class Histogram {
  #counts = new Map();

  /** Values recorded. */
  count = 0;

  /**
   * @param {Array<[number, number]>} buckets pairs of bucket and count
   * @returns {this}
   */
  add(buckets) {
    for (const [bucket, count] of buckets) {
      this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + count);
      this.count += count;
    }
    return this;
  }

  /** @returns {Array<[number, number]>} pairs of bucket and count, smallest first */
  buckets() {
    return [...this.#counts].sort(([a], [b]) => a - b);
  }

  /**
   * @param {number[]} percents ascending, 0 to 100
   * @returns {Array<number | null>} for each percentile its value, in nanoseconds; null when nothing was
   *     recorded
   */
  percentiles(percents) {
    if (this.count === 0) return percents.map(() => null);
    const buckets = this.buckets();
    let index = 0;
    let below = buckets[0][1];
    return percents.map((percent) => {
      // The 99.9th percentile of a thousand values has rank 999, not 999.0000000000001.
      const rank = Math.max(1, Math.ceil((percent * this.count) / 100 - 1e-6));
      while (below < rank) below += buckets[++index][1];
      return highestValueOf(buckets[index][0]);
    });
  }

  /**
   * @returns {{count: number, p50: ?number, p90: ?number, p99: ?number, 'p99.9': ?number,
   *     max: ?number}} in milliseconds
   */
  summary() {
    const [p50, p90, p99, p999, max] = this.percentiles([50, 90, 99, 99.9, 100]).map((ns) =>
      ns === null ? null : round(ns / 1e6)
    );
    return { count: this.count, p50, p90, p99, 'p99.9': p999, max };
  }
}

/** Rounds to three digits, the precision of the histogram. */
function round(value) {
  return Number(value.toPrecision(3));
}
