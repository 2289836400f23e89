/**
 * What native code counts by itself (native/torus/delivery_times.h, native/base/loop_delays.h), as a
 * histogram of Prometheus.
 *
 * @param {string} name
 * @param {string} help
 * @param {() => {bounds: number[], counts: number[], sum: number}} read the upper bounds of its
 *     buckets, what each of them has and last what was longer, and the sum; in seconds
 * @returns {import('prom-client').Metric<'le'>} to be given to a registry
 */
export function createNativeHistogram(name, help, read) {
  function values() {
    const { bounds, counts, sum } = read();
    let upTo = 0;
    const buckets = counts.map((count, i) => {
      upTo += count;
      const le = i < bounds.length ? bounds[i] : '+Inf';
      return { metricName: `${name}_bucket`, labels: { le }, value: upTo };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: {}, value: sum },
      { metricName: `${name}_count`, labels: {}, value: upTo }
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
