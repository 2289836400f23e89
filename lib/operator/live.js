import { addUp } from '../base/add-up.js';
import { version } from '../base/version.js';
import { createMetrics } from './metrics.js';
import { createStatus } from './status.js';

/**
 * The live counts of a server, of which /status and Prometheus' metrics are made: each part counts for itself, here
 * they come together.
 */

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
 *     `connect` adds what has connections as soon as it is there: `door`, `tls`
 */
export function openLive({ options, pool, feeds, arena, state, world }) {
  /** What has connections; metrics may be asked for before. */
  let front = { door: { counts: () => ({ door: {}, feeds: {}, refused: {} }) } };

  function all() {
    const { door, feeds: watched, refused: before } = front.door.counts();
    const own = pool.status();
    const { refused: ofArena, ...played } = arena.status();
    const refused = addUp([own.refused, ofArena, before]);
    const kept = [played, state.figures(), world.figures()];
    const { workers } = options;
    // By spreading, V8 takes fifty times as long, and every stranger may ask.
    return Object.assign(own, addUp([feeds.status(), watched]), ...kept, door, {
      refused,
      workers
    });
  }

  const deliveryTimes = () => pool.deliveryTimes();
  const metrics = createMetrics({
    ...{ status: all, deliveryTimes },
    mailboxMemory: options.mailboxMemory,
    feedMemory: options.feedMemory,
    certificateEnd: () => front.tls?.certificateEnd(),
    version: version()
  });
  return {
    metrics,
    ...createStatus({ all, metrics, deliveryTimes }),
    connect: (parts) => {
      front = parts;
    },
    close: () => metrics.close()
  };
}
