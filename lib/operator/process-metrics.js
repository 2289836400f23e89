import {
  collectEventLoopLag,
  collectGarbageCollector,
  collectHeapSize,
  collectHeapSpaces,
  collectMemory,
  collectMostDescriptors,
  collectStartTime,
  collectVersion,
  Counter,
  Registry
} from '../base/native-histogram.js';

/** Pauses of the garbage collector, in seconds. */
const GC_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1];

/**
 * What is told of the event loop's delays since the last scrape, by prom-client's names
 * (nodejs_eventloop_lag_min_seconds …). The figures are lib/operator/metrics.js' own: prom-client's
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

/**
 * What is collected. Left out is what lists /proc/self/fd, which stands still for seconds at a million
 * descriptors, and what lists JavaScript's own handles to count them; a parked poll is none.
 */
const COLLECTED = [
  collectProcessorTime,
  collectStartTime,
  collectMemory,
  collectMostDescriptors,
  collectEventLoopLag,
  collectHeapSize,
  collectHeapSpaces,
  collectVersion,
  collectGarbageCollector
];

/** Counts the processor time of this process, as prom-client does, whose file for it loads OpenTelemetry's API. */
function collectProcessorTime(register) {
  const registers = [register];
  const counter = (name, help, more) =>
    new Counter({ name: `process_cpu_${name}seconds_total`, help, registers, ...more });
  let last = process.cpuUsage();
  // The first is collected first, and sets all of them.
  const ofUser = counter('user_', 'Total user CPU time spent in seconds.', {
    collect() {
      const now = process.cpuUsage();
      const [user, system] = [now.user - last.user, now.system - last.system];
      last = now;
      ofUser.inc(user / 1e6);
      ofSystem.inc(system / 1e6);
      all.inc((user + system) / 1e6);
    }
  });
  const ofSystem = counter('system_', 'Total system CPU time spent in seconds.');
  const all = counter('', 'Total user and system CPU time spent in seconds.');
}

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
  const how = { gcDurationBuckets: GC_BUCKETS, eventLoopMonitoringPrecision: HARDLY_EVER };
  for (const collect of COLLECTED) collect(register, how);
  for (const name of Object.keys(LAGS)) {
    register.removeSingleMetric(`nodejs_eventloop_lag_${name}_seconds`);
  }
  return register;
}
