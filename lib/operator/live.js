import { addUp } from '../base/add-up.js';
import { version } from '../base/version.js';
import { quantile } from './admin-page/quantile.js';
import { counts as table } from './counts.js';
import { createMetrics } from './metrics.js';

/**
 * The live counts of a server, of which /status and Prometheus' metrics are made: each part counts for itself, here
 * they come together.
 */

/** What every client may know: how many clients, sprites, connections and feeds there are. */
const PUBLIC = table
  .filter(({ name, marks }) => !marks.has('operators') && name !== 'world')
  .map(({ name }) => name);

/** Servers of the ring, and seams by each side, in the public status: for a picture that is enough. */
const SHOWN = 64;

/**
 * What every client may know of the world: the servers of the ring, the nearest named first, and where rows go on.
 *
 * @param {object | null} world as lib/world/world.js has it
 */
export function publicWorld(world) {
  if (world === null) return null;
  const { name, state, clients, servers, seams } = world;
  const own = servers.findIndex((one) => one.name === name);
  // Around this one, in the ring's order.
  const begin = Math.max(0, Math.min(own - SHOWN / 2, servers.length - SHOWN));
  const shown = servers.slice(begin, begin + SHOWN);
  const few = (side) => seams[side].slice(0, SHOWN);
  return {
    ...{ name, state, clients },
    servers: shown.map(({ name: its, rows }) => ({ name: its, rows })),
    seams: { left: few('left'), right: few('right') }
  };
}

/** Seconds of processor time that this process has used. */
function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** @returns {() => NodeJS.MemoryUsage} the newest there is: with no file descriptor left the kernel can't be asked */
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

/** To hundredths; null stays null. */
const rounded = (value) => value && Math.round(value * 100) / 100;

/**
 * @param {object} parts each with its counts
 * @param {object} parts.options mailboxMemory, feedMemory
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {{status: () => object}} parts.feeds
 * @param {import('../arena/arena.js').Arena} parts.arena
 * @param {{figures: () => object}} parts.state
 * @param {{figures: () => object}} parts.world
 * @returns {{metrics: import('./metrics.js').Metrics, whole: () => object, forAnybody: () => object,
 *     connect: (front: object) => void, close: () => void}} `whole` is the admin port's /status, `forAnybody` the other,
 *     made anew at each call; `connect` adds what has connections as soon as it is there: `door`, `tls`
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

  const memory = memoryOfProcess();
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
    forAnybody() {
      const counts = all();
      const shown = PUBLIC.map((name) => [name, counts[name]]);
      return { ...Object.fromEntries(shown), world: publicWorld(counts.world ?? null) };
    },
    whole() {
      const { heapUsed, rss } = memory();
      const times = deliveryTimes();
      return {
        ...all(),
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
    connect: (parts) => {
      front = parts;
    },
    close: () => metrics.close()
  };
}
