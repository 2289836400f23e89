/**
 * What GET /status answers: the pool's live counts, the door's, and how the process fares.
 *
 * @param {object} parts
 * @param {import('./pool.js').Pool} parts.pool
 * @param {ReturnType<import('./metrics.js').createMetrics>} parts.metrics
 * @param {() => object} parts.counts the counts of connections and workers
 * @returns {() => object} the document, made anew at each call
 */
export function createStatus({ pool, metrics, counts }) {
  return () => {
    const { heapUsed, rss } = process.memoryUsage();
    return {
      ...pool.status(),
      ...counts(),
      uptime: Math.floor(process.uptime()),
      heapUsed,
      rss,
      longestStallMs: Math.round(metrics.longestStallMs() * 100) / 100
    };
  };
}
