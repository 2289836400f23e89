import { version } from '../base/version.js';
import { createMetrics } from './metrics.js';
import { createStatus } from './status.js';

/**
 * The live counts of a server, of which /status and Prometheus' metrics are made: each part counts for itself, here
 * they come together.
 */

/**
 * Adds counts up.
 *
 * @param {object[]} all numbers by name, and such objects by name
 * @returns {object} the sums, of every name that one of them has
 */
export function addUp(all) {
  const sums = {};
  for (const [name, value] of all.flatMap(Object.entries)) {
    sums[name] =
      typeof value === 'object' ? addUp([sums[name] ?? {}, value]) : (sums[name] ?? 0) + value;
  }
  return sums;
}

/**
 * @param {object} parts each with its counts
 * @param {object} parts.options mailboxMemory, feedMemory
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {{status: () => object}} parts.feeds
 * @param {import('../arena/arena.js').Arena} parts.arena
 * @param {{figures: () => object}} parts.state
 * @param {{figures: () => object}} parts.world
 * @returns {{metrics: import('./metrics.js').Metrics, whole: () => object, forAnybody: () => object,
 *     connect: (front: object) => void, close: () => void}} `whole` is the admin port's /status, `forAnybody` the other;
 *     `connect` adds what has connections as soon as it is there: `door`, `workers`, `tls`
 */
export function openLive({ options, pool, feeds, arena, state, world }) {
  /** What has connections; metrics may be asked for before. */
  let front = null;

  function status() {
    const own = pool.status();
    const { refused: ofArena, ...played } = arena.status();
    const refused = addUp([own.refused, ofArena, front?.workers.counts().refused ?? {}]);
    // Those of the workers' feeds, where the native door has workers.
    const theirs = front?.door.feedStatus?.() ?? {};
    const kept = { ...played, ...state.figures(), ...world.figures() };
    return { ...own, ...addUp([feeds.status(), theirs]), ...kept, refused };
  }

  function counts() {
    if (front === null) return {};
    const { door, workers } = front;
    const { connections, tlsConnections, heldBytes, ...counters } = door.status();
    return {
      connections,
      tlsConnections: tlsConnections + workers.tlsConnections(),
      heldBytes,
      ...addUp([counters, workers.counts().doors]),
      ...workers.status()
    };
  }

  const deliveryTimes = () => pool.deliveryTimes();
  const metrics = createMetrics({
    ...{ status, door: counts, deliveryTimes },
    mailboxMemory: options.mailboxMemory,
    feedMemory: options.feedMemory,
    certificateEnd: () => front?.tls?.certificateEnd(),
    version: version()
  });
  return {
    metrics,
    ...createStatus({ status, metrics, counts, deliveryTimes }),
    connect: (more) => {
      front = { ...front, ...more };
    },
    close: () => metrics.close()
  };
}
