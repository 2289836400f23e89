import { Registry, collectDefaultMetrics } from 'prom-client';

/** Pauses of the garbage collector, in seconds. */
const GC_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1];

/**
 * What is told of the event loop's delays since the last scrape, by prom-client's names
 * (nodejs_eventloop_lag_min_seconds …). The figures are lib/server/metrics.js' own: prom-client's
 * come from a timer that wakes an idle process a hundred times a second.
 */
export const LAGS = {
  min: 'The minimum recorded event loop delay.',
  max: 'The maximum recorded event loop delay.',
  mean: 'The mean of the recorded event loop delays.',
  stddev: 'The standard deviation of the recorded event loop delays.',
  p50: 'The 50th percentile of the recorded event loop delays.',
  p90: 'The 90th percentile of the recorded event loop delays.',
  p99: 'The 99th percentile of the recorded event loop delays.'
};

/** Milliseconds: as good as never. */
const HARDLY_EVER = 2 ** 30;

let register;

/**
 * What is measured of the process, however many servers are in it. It is measured from the first call
 * on for as long as the process lives: who measures the garbage collector can't be told to end.
 *
 * @returns {Registry}
 */
export function processMetrics() {
  if (register !== undefined) return register;
  register = new Registry();
  collectDefaultMetrics({
    register,
    gcDurationBuckets: GC_BUCKETS,
    eventLoopMonitoringPrecision: HARDLY_EVER
  });
  for (const name of Object.keys(LAGS)) {
    register.removeSingleMetric(`nodejs_eventloop_lag_${name}_seconds`);
  }
  // It lists /proc/self/fd, which stands still for seconds at a million descriptors.
  register.removeSingleMetric('process_open_fds');
  // They list JavaScript's own handles to count them; a parked poll is none.
  for (const what of ['handles', 'resources', 'requests']) {
    register.removeSingleMetric(`nodejs_active_${what}`);
    register.removeSingleMetric(`nodejs_active_${what}_total`);
  }
  return register;
}
