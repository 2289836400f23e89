/**
 * What GET /status answers: the pool's live counts, the door's, and how the process fares.
 *
 * @param {object} parts
 * @param {import('./pool.js').Pool} parts.pool
 * @param {import('node:perf_hooks').IntervalHistogram} parts.delay of the event loop
 * @param {() => {status: () => object}} parts.door whoever owns the connections
 * @returns {() => object} the document, made anew at each call
 */
export function createStatus({ pool, delay, door }) {
  return () => {
    const { heapUsed, rss } = process.memoryUsage();
    return {
      ...pool.status(),
      ...door().status(),
      uptime: Math.floor(process.uptime()),
      heapUsed,
      rss,
      longestStallMs: Math.round(delay.max / 1e4) / 100
    };
  };
}
