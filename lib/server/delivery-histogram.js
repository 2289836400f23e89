/** What the pool counts by itself (native/pool/delivery_times.h), as a histogram of Prometheus. */

const NAME = 'sprites_delivery_seconds';
const HELP =
  'How long sprites waited: from the moment a throw was accepted to the answer that first carried the' +
  ' sprite. Who has a poll parked gets it at once (the lowest bucket); who is away waits for himself, up to' +
  ' --lease, after which it flies on';

/**
 * @param {() => {bounds: number[], counts: number[], sum: number}} times of the pool, in
 *     milliseconds: the upper bounds of its buckets, what each of them has and last what was longer
 * @returns {import('prom-client').Metric<'le'>} to be given to a registry
 */
export function createDeliveryHistogram(times) {
  function values() {
    const { bounds, counts, sum } = times();
    let upTo = 0;
    const buckets = counts.map((count, i) => {
      upTo += count;
      const le = i < bounds.length ? bounds[i] / 1000 : '+Inf';
      return { metricName: `${NAME}_bucket`, labels: { le }, value: upTo };
    });
    return [
      ...buckets,
      { metricName: `${NAME}_sum`, labels: {}, value: sum / 1000 },
      { metricName: `${NAME}_count`, labels: {}, value: upTo }
    ];
  }

  return {
    name: NAME,
    help: HELP,
    type: 'histogram',
    aggregator: 'sum',
    get: async () => ({
      name: NAME,
      help: HELP,
      type: 'histogram',
      aggregator: 'sum',
      values: values()
    }),
    reset() {}
  };
}
