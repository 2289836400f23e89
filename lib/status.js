/**
 * What GET /status answers: the pool's live counts and how the process fares.
 *
 * @param {import('./pool.js').Pool} pool
 * @param {import('node:perf_hooks').IntervalHistogram} delay of the event loop
 * @returns {() => object} the document, made anew at each call
 */
export function createStatus(pool, delay) {
  return () => {
    const { heapUsed, rss } = process.memoryUsage();
    return {
      ...pool.status(),
      uptime: Math.floor(process.uptime()),
      heapUsed,
      rss,
      longestStallMs: Math.round(delay.max / 1e4) / 100
    };
  };
}
