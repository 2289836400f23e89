import { addUp } from '../base/add-up.js';
import { version } from '../base/version.js';
import { quantile } from './admin-page/quantile.js';
import { countTable } from './counts.js';
import { createMetrics } from './metrics.js';

/**
 * The live counts of a server, for /status and Prometheus' metrics. Each part of the server has its own counts; this module
 * joins them.
 */

/** Counts in the public /status: those of clients, sprites, connections and feeds. */
const PUBLIC_COUNTS = countTable
  .filter(({ name, marks }) => !marks.has('operators') && name !== 'world')
  .map(({ name }) => name);

/** Most servers of the ring, and most seams of each side, in the public /status: enough for a picture. */
const MAX_PUBLIC_ITEMS = 64;

/**
 * Returns the world in the public /status: the servers of the ring, the nearest first, and the seams.
 *
 * @param {object | null} world that of World#figures
 */
export function publicWorld(world) {
  if (world === null) return null;
  const { name, state, clients, servers, seams } = world;
  const ownIndex = servers.findIndex((one) => one.name === name);
  // The servers around this one, in the order of the ring.
  const first = Math.max(
    0,
    Math.min(ownIndex - MAX_PUBLIC_ITEMS / 2, servers.length - MAX_PUBLIC_ITEMS)
  );
  const nearestServers = servers.slice(first, first + MAX_PUBLIC_ITEMS);
  const firstSeams = (side) => seams[side].slice(0, MAX_PUBLIC_ITEMS);
  return {
    ...{ name, state, clients },
    servers: nearestServers.map(({ name: serverName, rows }) => ({ name: serverName, rows })),
    seams: { left: firstSeams('left'), right: firstSeams('right') }
  };
}

/** Returns the processor time of this process, in seconds. */
function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** @returns {() => NodeJS.MemoryUsage} returns the newest known value: without a free descriptor the kernel can't be asked */
function memoryOfProcess() {
  let memory = process.memoryUsage();
  return () => {
    try {
      memory = process.memoryUsage();
    } catch (error) {
      if (error.code !== 'EMFILE' && error.code !== 'ENFILE') throw error;
    }
    return memory;
  };
}

/** Rounds to hundredths; null stays null. */
const rounded = (value) => value && Math.round(value * 100) / 100;

/**
 * @param {object} parts the parts with counts
 * @param {object} parts.options mailboxMemory, feedMemory
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {{status: () => object}} parts.feeds
 * @param {import('../arena/arena.js').Arena} parts.arena
 * @param {{figures: () => object}} parts.state
 * @param {{figures: () => object}} parts.world
 * @returns {{metrics: import('./metrics.js').Metrics, fullStatus: () => object, publicStatus: () => object,
 *     attachFront: (front: object) => void, close: () => void}} `fullStatus` returns the admin port's /status, `publicStatus` the
 *     public one; `attachFront` adds the parts with connections once they exist: `door`, `tls`
 */
export function openLiveCounts({ options, pool, feeds, arena, state, world }) {
  /** The parts with connections; metrics may be requested before these exist. */
  let front = { door: { counts: () => ({ door: {}, feeds: {}, refused: {} }) } };

  function allCounts() {
    const { door, feeds: workerFeeds, refused } = front.door.counts();
    const poolCounts = pool.status();
    const partCounts = [arena.status(), state.figures(), world.figures()];
    const { workers } = options;
    // A spread takes V8 fifty times as long, and every stranger may request this.
    return Object.assign(poolCounts, addUp([feeds.status(), workerFeeds]), ...partCounts, door, {
      refused,
      workers
    });
  }

  const memory = memoryOfProcess();
  const deliveryTimes = () => pool.deliveryTimes();
  const metrics = createMetrics({
    ...{ status: allCounts, deliveryTimes },
    mailboxMemory: options.mailboxMemory,
    feedMemory: options.feedMemory,
    certificateEnd: () => front.tls?.certificateEnd(),
    version: version()
  });
  return {
    metrics,
    publicStatus() {
      const counts = allCounts();
      const shown = PUBLIC_COUNTS.map((name) => [name, counts[name]]);
      return { ...Object.fromEntries(shown), world: publicWorld(counts.world ?? null) };
    },
    fullStatus() {
      const { heapUsed, rss } = memory();
      const times = deliveryTimes();
      return {
        ...allCounts(),
        deliveryTimes: times,
        deliveryMsP50: rounded(quantile(times, 0.5)),
        deliveryMsP99: rounded(quantile(times, 0.99)),
        cpuSeconds: cpuSeconds(),
        uptime: Math.floor(process.uptime()),
        ...{ heapUsed, rss },
        longestStallMs: rounded(metrics.longestStallMs()),
        recentStallMs: rounded(metrics.recentStallMs())
      };
    },
    attachFront: (connectedParts) => {
      front = connectedParts;
    },
    close: () => metrics.close()
  };
}
