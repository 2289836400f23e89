/**
 * What GET /status answers: the pool's live counts, the door's, and how the process fares.
 *
 * @param {object} parts
 * @param {() => object} parts.status the pool's
 * @param {ReturnType<import('./metrics.js').createMetrics>} parts.metrics
 * @param {() => object} parts.counts the counts of connections and workers
 * @returns {() => object} the document, made anew at each call
 */
export function createStatus({ status, metrics, counts }) {
  let memory = process.memoryUsage();

  /** The newest value there is: with no file descriptor left the kernel can't be asked. */
  function look() {
    try {
      memory = process.memoryUsage();
    } catch (error) {
      if (error.code !== 'EMFILE' && error.code !== 'ENFILE') throw error;
    }
    return memory;
  }

  return () => {
    const { heapUsed, rss } = look();
    return {
      ...status(),
      ...counts(),
      uptime: Math.floor(process.uptime()),
      heapUsed,
      rss,
      longestStallMs: Math.round(metrics.longestStallMs() * 100) / 100
    };
  };
}
