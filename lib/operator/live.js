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
  let front = null;

  /** What connections and their doors have counted. */
  const ofDoor = () => front?.door.counts() ?? { door: {}, feeds: {}, refused: {} };

  function status({ feeds: watched, refused: before } = ofDoor()) {
    const own = pool.status();
    const { refused: ofArena, ...played } = arena.status();
    const refused = addUp([own.refused, ofArena, before]);
    const kept = [played, state.figures(), world.figures()];
    // By spreading, V8 takes fifty times as long, and every stranger may ask.
    return Object.assign(own, addUp([feeds.status(), watched]), ...kept, { refused });
  }

  const counts = ({ door } = ofDoor()) =>
    front === null ? {} : { ...door, workers: options.workers };

  /** Both; the door is asked once. */
  function all() {
    const now = ofDoor();
    return Object.assign(status(now), counts(now));
  }

  const deliveryTimes = () => pool.deliveryTimes();
  const metrics = createMetrics({
    ...{ status: () => status(), door: () => counts(), deliveryTimes },
    mailboxMemory: options.mailboxMemory,
    feedMemory: options.feedMemory,
    certificateEnd: () => front?.tls?.certificateEnd(),
    version: version()
  });
  return {
    metrics,
    ...createStatus({ all, metrics, deliveryTimes }),
    connect: (more) => {
      front = { ...front, ...more };
    },
    close: () => metrics.close()
  };
}
