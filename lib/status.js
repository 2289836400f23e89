/**
 * What GET /status answers: the pool's live counts, the door's, and how the process fares.
 *
 * @param {object} parts
 * @param {import('./pool.js').Pool} parts.pool
 * @param {import('node:perf_hooks').IntervalHistogram} parts.delay of the event loop
 * @param {() => {status: () => object}} parts.door whoever owns the connections
 * @param {() => number} parts.held connections that Node's server holds
 * @returns {() => object} the document, made anew at each call
 */
export function createStatus({ pool, delay, door, held }) {
  return () => {
    const { heapUsed, rss } = process.memoryUsage();
    return {
      ...pool.status(),
      ...withHeld(door().status(), held()),
      uptime: Math.floor(process.uptime()),
      heapUsed,
      rss,
      longestStallMs: Math.round(delay.max / 1e4) / 100
    };
  };
}

/** `connections` are all there are, `nodeConnections` those among them that Node's server holds. */
function withHeld({ connections = 0, ...rest }, held) {
  return { connections: connections + held, nodeConnections: held, ...rest };
}
