import { statSync } from 'node:fs';

import { loadAddon } from '../base/addon.js';
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
  createNativeHistogram,
  Gauge,
  Registry
} from '../base/native-histogram.js';
import { countTable } from './counts.js';

/**
 * The metrics for Prometheus. This module counts nothing: the pool and the front door count, and a scrape copies one
 * snapshot of `/status`, so that the law `thrown = acked + waiting + lost` holds in every scrape. The cost of a scrape does
 * not grow with the number of clients.
 *
 * This module measures two things, as histograms: the delay of the event loop, from the lengths of its turns
 * (native/base/loop_delays.h), and the pauses of the garbage collector.
 */

/** Window of recent stalls, in milliseconds, and the number of its parts, which expire one by one. */
const RECENT_WINDOW = 60_000;
const RECENT_PARTS = 12;

/** Interval of the imagined requests whose delay is that of the event loop, in seconds. */
const IMAGINED_REQUEST_INTERVAL = 0.01;

/** Returns a name in snake case: timedOut → timed_out */
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** @param {{bounds: number[], counts: number[], sum: number}} times in milliseconds */
const inSeconds = ({ bounds, counts, sum }) => ({
  bounds: bounds.map((bound) => bound / 1000),
  counts,
  sum: sum / 1000
});

/** Sets a counter: prom-client can only reset and increment one. */
function setCounter(counter, labels, value) {
  counter.remove(labels);
  counter.inc(labels, value);
}

/** Sets a counter for each value of its label. */
function setCounters(counter, label, counts = {}) {
  for (const [name, count] of Object.entries(counts)) setCounter(counter, { [label]: name }, count);
}

/**
 * Returns the number of open files of this process without a listing, which takes seconds with a million clients. Linux 6.2
 * and later have the number as the size of the folder.
 *
 * @returns {number} 0 on older kernels
 */
function openFiles() {
  return statSync('/proc/self/fd').size;
}

/**
 * @typedef {object} Metrics
 * @property {string} contentType media type of the text
 * @property {() => Promise<string>} text returns all metrics in Prometheus' text format
 * @property {() => number} longestStallMs returns the longest turn of the event loop since the last
 *     `resetStalls`, in milliseconds
 * @property {() => number} recentStallMs returns the longest turn of the last minute, or since the last call
 *     where that is longer ago
 * @property {() => void} resetStalls resets `longestStallMs`, for example after a slow start
 * @property {() => void} close stops measuring
 */

/**
 * Keeps the longest turn of the event loop, and the longest of the last minute: old stalls say nothing about now. This uses
 * no timer: turns since the last call count as recent.
 */
function trackStalls(loop) {
  let longestEver = 0;
  let parts = []; // {began, longest}, the newest first

  function readLoop() {
    const { longest } = loop.read();
    loop.forgetLongest();
    longestEver = Math.max(longestEver, longest);
    const now = performance.now();
    if (parts.length === 0 || now - parts[0].began >= RECENT_WINDOW / RECENT_PARTS) {
      parts.unshift({ began: now, longest });
      parts = parts.filter(({ began }) => now - began < RECENT_WINDOW);
    } else parts[0].longest = Math.max(parts[0].longest, longest);
  }

  return {
    longest() {
      readLoop();
      return longestEver;
    },
    recent() {
      readLoop();
      return Math.max(...parts.map(({ longest }) => longest));
    },
    reset() {
      loop.forgetLongest();
      longestEver = 0;
      parts = [];
    }
  };
}

/** Registers the counts of the table. @returns {(now: object) => void} copies them from the live counts */
function registerCounts(gauge, counter) {
  const metrics = countTable
    .filter(({ kind }) => kind !== 'member')
    .map(({ name, kind, marks, help }) => {
      const metricName = `sprites_${marks.has('front') ? 'front_' : ''}${snake(name)}`;
      return [name, kind === 'gauge' ? gauge(metricName, help) : counter(metricName, help)];
    });
  return (now) => {
    for (const [name, metric] of metrics) {
      const value = now[name] ?? 0;
      if (metric instanceof Gauge) metric.set(value);
      else setCounter(metric, {}, value);
    }
  };
}

/**
 * @param {object} sources
 * @param {() => object} sources.status returns the live counts, as in /status; called once a scrape
 * @param {() => {bounds: number[], counts: number[], sum: number}} [sources.deliveryTimes] that of the pool
 * @param {number} [sources.mailboxMemory] --mailbox-memory, in bytes
 * @param {number} [sources.feedMemory] --feed-memory, in bytes
 * @param {() => number | undefined} [sources.certificateEnd] returns the end of the certificate,
 *     in seconds since 1970; undefined without TLS
 * @param {string} [sources.version] version of the program
 * @returns {Metrics}
 */
export function createMetrics({
  status,
  deliveryTimes = () => ({ bounds: [], counts: [0], sum: 0 }),
  mailboxMemory = 0,
  feedMemory = 0,
  certificateEnd = () => undefined,
  version = 'unknown'
}) {
  const register = new Registry();
  const registers = [register];
  const gauge = (name, help, labelNames = []) => new Gauge({ name, help, labelNames, registers });
  const counter = (name, help, labelNames = []) =>
    new Counter({ name: `${name}_total`, help, labelNames, registers });
  const histogram = (...parts) => register.registerMetric(createNativeHistogram(...parts));
  const processRegistry = processMetrics();
  const copyCounts = registerCounts(gauge, counter);
  gauge(
    'sprites_mailbox_bytes_limit',
    'What sprites_mailbox_bytes may be (--mailbox-memory): at it, every throw is 503'
  ).set(mailboxMemory);
  gauge(
    'sprites_feed_memory_limit',
    'What sprites_feed_memory may be (--feed-memory): at it, publications are 503'
  ).set(feedMemory);
  // With a label: without TLS the metric then has no value, instead of 1970.
  const certificate = gauge(
    'sprites_tls_certificate_end_seconds',
    'When the certificate in use ends (--tls-cert), in seconds since 1970',
    ['port']
  );
  const lostReasons = counter('sprites_lost_reasons', 'Sprites lost, by the reason', ['reason']);
  const refused = counter('sprites_refused', 'Requests answered with a problem, by its name', [
    'problem'
  ]);
  const openFds = gauge('process_open_fds', 'Number of open file descriptors.');
  gauge('sprites_build_info', 'Which program this is: always 1', ['version', 'node']).set(
    { version, node: process.version },
    1
  );
  const stall = gauge('sprites_event_loop_longest_stall_seconds', 'Longest turn of the event loop');
  const loop = new (loadAddon().LoopDelays)();
  const stalls = trackStalls(loop);
  histogram(
    'sprites_event_loop_delay_seconds',
    'How late the event loop was, measured every 10 ms',
    () => loop.read()
  );
  histogram(
    'sprites_delivery_seconds',
    'How long sprites waited, from accepting the throw to the first answer with the sprite. A parked poll' +
      ' gets its sprite at once (the lowest bucket); a client that is away gets it later, or after --lease the' +
      ' sprite flies on',
    () => inSeconds(deliveryTimes())
  );
  const copyLags = registerLags(gauge, loop);

  return {
    contentType: register.contentType,
    async text() {
      const now = status();
      copyCounts(now);
      setCounters(lostReasons, 'reason', now.lostReasons);
      setCounters(refused, 'problem', now.refused);
      const end = certificateEnd();
      if (end !== undefined) certificate.set({ port: 'tls' }, end);
      openFds.set(openFiles());
      stall.set(stalls.longest());
      copyLags();
      return (await processRegistry.metrics()) + (await register.metrics());
    },
    longestStallMs: () => stalls.longest() * 1000,
    recentStallMs: () => stalls.recent() * 1000,
    resetStalls: () => stalls.reset(),
    close() {
      loop.close();
      register.clear();
    }
  };
}

/** Pauses of the garbage collector, in seconds. */
const GC_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1];

/**
 * The gauges of the event loop's delays since the last scrape, under prom-client's names
 * (nodejs_eventloop_lag_min_seconds …). This module computes them itself: prom-client uses a timer that wakes an idle process
 * a hundred times a second.
 */
const LAG_HELP = {
  min: 'The minimum recorded event loop delay.',
  max: 'The maximum recorded event loop delay.',
  mean: 'The mean of the recorded event loop delays.',
  stddev: 'The standard deviation of the recorded event loop delays.',
  p50: 'The 50th percentile of the recorded event loop delays.',
  p90: 'The 90th percentile of the recorded event loop delays.',
  p99: 'The 99th percentile of the recorded event loop delays.'
};

/** Registers these gauges. @returns {() => void} sets them from the delays since the last call */
function registerLags(gauge, loop) {
  const gauges = Object.entries(LAG_HELP).map(([name, help]) => [
    name,
    gauge(`nodejs_eventloop_lag_${name}_seconds`, help)
  ]);
  return () => {
    const { count, ...interval } = loop.takeInterval();
    for (const [name, lag] of count > 0 ? gauges : []) {
      // Node's own measure includes the interval as well.
      lag.set(interval[name] + (name === 'stddev' ? 0 : IMAGINED_REQUEST_INTERVAL));
    }
  };
}

/** An interval that practically never ends, in milliseconds. */
const UNREACHED_INTERVAL = 2 ** 30;

/**
 * The collectors of prom-client in use. Not used are the one that lists /proc/self/fd, which stalls for seconds with a
 * million descriptors, and those that list JavaScript's handles; a parked poll is not such a handle.
 */
const COLLECTORS = [
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

/** Counts the processor time of this process, as prom-client does; its own file would load OpenTelemetry's API. */
function collectProcessorTime(register) {
  const registers = [register];
  const counter = (name, help, more) =>
    new Counter({ name: `process_cpu_${name}seconds_total`, help, registers, ...more });
  let last = process.cpuUsage();
  // The first of these counters is collected first, and sets all of them.
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
 * Returns the metrics of the process, shared by all its servers. They are measured from the first call until the end of the
 * process: the measurement of the garbage collector can't be stopped.
 *
 * @returns {Registry}
 */
function processMetrics() {
  if (register !== undefined) return register;
  register = new Registry();
  const collectorOptions = {
    gcDurationBuckets: GC_BUCKETS,
    eventLoopMonitoringPrecision: UNREACHED_INTERVAL
  };
  for (const collect of COLLECTORS) collect(register, collectorOptions);
  for (const name of Object.keys(LAG_HELP)) {
    register.removeSingleMetric(`nodejs_eventloop_lag_${name}_seconds`);
  }
  return register;
}
