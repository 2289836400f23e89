import { counts as table } from './counts.js';
import { quantile } from './admin-page/quantile.js';

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

/** To hundredths; null stays null. */
const rounded = (value) => value && Math.round(value * 100) / 100;

/**
 * What GET /status answers: the pool's live counts, the door's, and how the process fares.
 *
 * @param {object} parts
 * @param {() => object} parts.all the counts of every part
 * @param {ReturnType<import('./metrics.js').createMetrics>} parts.metrics
 * @param {() => {bounds: number[], counts: number[]}} parts.deliveryTimes the pool's
 * @returns {{whole: () => object, forAnybody: () => object}} the document, made anew at each call:
 *     the admin port's, and the front door's
 */
export function createStatus({ all, metrics, deliveryTimes }) {
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

  function forAnybody() {
    const counts = all();
    const shown = PUBLIC.map((name) => [name, counts[name]]);
    return { ...Object.fromEntries(shown), world: publicWorld(counts.world ?? null) };
  }

  function whole() {
    const { heapUsed, rss } = look();
    const times = deliveryTimes();
    return {
      ...all(),
      deliveryTimes: times,
      deliveryMsP50: rounded(quantile(times, 0.5)),
      deliveryMsP99: rounded(quantile(times, 0.99)),
      cpuSeconds: cpuSeconds(),
      uptime: Math.floor(process.uptime()),
      heapUsed,
      rss,
      longestStallMs: rounded(metrics.longestStallMs()),
      recentStallMs: rounded(metrics.recentStallMs())
    };
  }

  return { whole, forAnybody };
}
