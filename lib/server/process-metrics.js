import { Registry, collectDefaultMetrics } from 'prom-client';

/** Pauses of the garbage collector, in seconds. */
const GC_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1];

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
  collectDefaultMetrics({ register, gcDurationBuckets: GC_BUCKETS });
  // It lists /proc/self/fd, which stands still for seconds at a million descriptors.
  register.removeSingleMetric('process_open_fds');
  // They list JavaScript's own handles to count them; a parked poll is none.
  for (const what of ['handles', 'resources', 'requests']) {
    register.removeSingleMetric(`nodejs_active_${what}`);
    register.removeSingleMetric(`nodejs_active_${what}_total`);
  }
  return register;
}
