import { createRequire } from 'node:module';

/**
 * Makes a Prometheus histogram from native counts (native/torus/delivery_times.h, native/base/loop_delays.h).
 *
 * @param {string} name
 * @param {string} help
 * @param {() => {bounds: number[], counts: number[], sum: number}} read returns the upper bounds of the
 *     buckets, the count of each bucket and last the count above all bounds, and the sum; in seconds
 * @returns {import('prom-client').Metric<'le'>} for a registry
 */
export function createNativeHistogram(name, help, read) {
  function values() {
    const { bounds, counts, sum } = read();
    let cumulative = 0;
    const buckets = counts.map((count, i) => {
      cumulative += count;
      const le = i < bounds.length ? bounds[i] : '+Inf';
      return { metricName: `${name}_bucket`, labels: { le }, value: cumulative };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: {}, value: sum },
      { metricName: `${name}_count`, labels: {}, value: cumulative }
    ];
  }

  return {
    name,
    help,
    type: 'histogram',
    aggregator: 'sum',
    get: async () => ({ name, help, type: 'histogram', aggregator: 'sum', values: values() }),
    reset() {}
  };
}

/**
 * The parts of prom-client that are used here, each from its own file. Its index would load all others as well, and
 * OpenTelemetry's API for exemplars that are not used here, at each start.
 */

// Each `import` of a file in CommonJS costs ten times as much as its `require`.
const require = createRequire(import.meta.url);
const part = (name) => require(`prom-client/lib/${name}.js`);

export const Counter = part('counter');
export const Gauge = part('gauge');
export const Registry = part('registry');

export const collectEventLoopLag = part('metrics/eventLoopLag');
export const collectGarbageCollector = part('metrics/gc');
export const collectHeapSize = part('metrics/heapSizeAndUsed');
export const collectHeapSpaces = part('metrics/heapSpacesSizeAndUsed');
export const collectMemory = part('metrics/osMemoryHeap');
export const collectMostDescriptors = part('metrics/processMaxFileDescriptors');
export const collectStartTime = part('metrics/processStartTime');
export const collectVersion = part('metrics/version');
