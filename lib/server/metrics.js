import { statSync } from 'node:fs';

import { loadAddon } from './addon.js';
import { createNativeHistogram } from './native-histogram.js';
import { LAGS, processMetrics } from './process-metrics.js';
import { Counter, Gauge, Registry } from './prometheus.js';

/**
 * What Prometheus sees. Nothing is counted here: the pool and the front door count, and a scrape
 * copies one look at `/status`, so that the law `thrown = acked + waiting + lost` holds in every
 * scrape too. The cost of a scrape does not grow with the number of clients.
 *
 * Two things are measured here, as histograms: the delay of the event loop, from the lengths of its
 * turns (native/base/loop_delays.h), and the pauses of the garbage collector.
 */

/** Milliseconds of which the recent stalls are told, and how many parts of them go one by one. */
const RECENT = 60_000;
const RECENT_PARTS = 12;

/** How often somebody would ask the event loop who is told its delay, in seconds. */
const ASKED_EVERY = 0.01;

/** Members of /status that only grow. */
const COUNTERS = {
  thrown:
    'Sprites accepted: thrown = acked + waiting + lost; in a world, thrown + crossed_in = acked + waiting +' +
    ' lost + crossed_out',
  acked: 'Sprites their receivers have acknowledged',
  lost: 'Sprites accepted that had nobody left to fly to',
  delivered: 'Throws answered 202 delivered: written to a parked poll at once',
  queued: 'Throws answered 202 queued: their receiver had no poll parked',
  duplicates: 'Throws answered 202 duplicate: repeated with the same n, and not delivered again',
  flown: 'Times a sprite flew on to the next neighbor because its receiver had left',
  crossedIn: 'Sprites that came from other servers of the world',
  crossedOut: 'Sprites that other servers of the world have taken',
  crossedInDoubt:
    'Sprites sent elsewhere since the server they were sent to has not said in time whether it has them: each may arrive twice',
  worldFeedsIn: 'Versions of feeds taken from other servers of the world',
  worldFeedsOut: 'Versions of feeds written for other servers of the world',
  worldFeedsOverruled:
    'Versions published while this server was cut off that a newer one of another server has replaced',
  worldFeedsRefused: 'Versions of other servers that this one could not take, each try counted',
  joined: 'Clients that joined',
  left: 'Clients that left by themselves',
  expired: 'Clients that came back too late: no poll was parked for --lease seconds',
  polls: 'Polls taken, those answered at once among them',
  pings: 'Polls answered with nothing when their hold ended',
  published: 'Versions of feeds taken, published or fetched',
  unchanged: 'Publications and fetches that changed nothing',
  deleted: 'Feeds deleted by publishers',
  feedPolls: 'Requests to watch feeds',
  feedPings: 'Those answered with nothing new when their hold ended',
  documents: 'Values that answers and events took to watchers',
  patches: 'Patches that they took instead',
  skipped: 'Versions that a watcher was too slow for',
  playersJoined: 'Players that joined an arena',
  playersLeft: 'Players that left by themselves',
  playersExpired: 'Players that sent no input for --lease seconds',
  inputs: 'Inputs of players taken: inputs = inputs_reduced + inputs_superseded + inputs_waiting',
  inputsReduced: 'Inputs that a reducer was given',
  inputsSuperseded: 'Inputs that a newer one of the same player, or his leaving, came before',
  inputsRepeated: 'Inputs that had come before, by their n, and changed nothing',
  reductions: 'Reductions of games begun (--arena)',
  gamesStopped: 'Games that were stopped because they failed',
  snapshots: 'Snapshots of the state made while the server runs (--state)',
  snapshotsFailed: 'Snapshots of the state that could not be made',
  fetches: 'Fetches from the upstream',
  fetchesUnchanged: 'Fetches that found nothing new',
  fetchesFailed: 'Fetches from the upstream that failed'
};

/** Members of /status that go up and down. */
const GAUGES = {
  clients: 'Clients with a place in the torus',
  parked: 'Polls parked now',
  waiting: 'Sprites in mailboxes and outboxes, not yet acknowledged',
  capacity: 'Clients there is room for',
  rows: 'Rows of the torus',
  columns: 'Columns of the torus',
  feeds: 'Feeds there are now',
  watching: 'Watchers of feeds, one of many feeds counted for each',
  arenas: 'Arenas there are (--arena)',
  players: 'Players in all arenas now',
  inputsWaiting: 'Inputs that no reducer was given yet',
  streams: 'Event streams open now',
  publishing: 'Publications under way',
  stateBlocked: "1 while the state can't be written: joins and throws are 503 (--state)",
  journalBytes: 'Bytes of the journal that is being written; a snapshot begins a new one',
  journalUnsynced: 'Bytes of it that are not known to be on the disk',
  journalUnsyncedSeconds: 'How long ago all that was written was on the disk',
  journalBacklog: "Bytes in memory because they can't be written",
  journalLongestWriteSeconds: 'The longest write of one turn since the start',
  worldMember: '1 while this server is one of its world (--world)',
  worldServers: 'Servers in the ring, as this one sees it; 1 while it is alone',
  worldSeams: 'Ends of rows that lead to another server',
  outboxSprites: 'Sprites that wait to be taken by another server of the world',
  outboxBytes: 'Memory of those',
  worldFeedsReachable:
    '1 while what is published goes to the feeds of the world; else it counts here alone',
  worldFeedsBehind: 'Feeds of which another server of the world has a newer version',
  worldFeedsUnshared: 'Feeds whose newest version the world does not have yet',
  feedMemory: 'Bytes of all feeds',
  feedHeld: 'Bytes of feeds that only answers under way hold',
  fetching: 'Fetches under way',
  fetchesWaiting: 'Feeds whose fetch waits for its turn'
};

/** The counts of connections and workers: those that go up and down … */
const FRONT_GAUGES = {
  connections: 'Connections of the main process now, by every way in',
  nodeConnections:
    "Those of them that Node's HTTP server holds, at some 18 kB each (--handed-over)",
  tlsConnections:
    "Connections by TLS, which Node's HTTPS servers hold, at some 43 kB each, in workers as well",
  workers: 'Workers that listen now (--workers)',
  workerConnections: 'Connections of all workers now, as of a second ago',
  heldBytes: 'Input and output in user space for connections of the native door, now',
  workerHeldBytes: 'The same of all workers, as of a second ago'
};

/** … and those that only grow. One that is in neither gets a text that says its name. */
const FRONT_COUNTERS = {
  accepted: 'Connections that the native doors have accepted',
  connectionsRefused:
    'Connections that were one too many, by a bound or the file limit: 503 or closed',
  handedOver: "Connections that the native doors handed over to Node's server, as too unusual",
  requests: 'Joins, polls, throws and leaves that the native doors have served themselves',
  timedOut: 'Requests that came too slowly: 408 (--head-time, --body-time)',
  slowReaders: 'Connections closed because nobody read the answer (--write-time)',
  outOfFiles: 'Times no file descriptor was left to accept a connection with (ulimit -n)',
  workerDeaths: 'Workers that have died, hung ones that were ended among them; each was replaced'
};

/** handedOver → handed_over */
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** @param {{bounds: number[], counts: number[], sum: number}} times in milliseconds */
const inSeconds = ({ bounds, counts, sum }) => ({
  bounds: bounds.map((bound) => bound / 1000),
  counts,
  sum: sum / 1000
});

/** A counter cannot be set, but it can be put back to nothing and moved up to a value. */
function setCounter(counter, labels, value) {
  counter.remove(labels);
  counter.inc(labels, value);
}

/**
 * Open files of this process without listing them: with a million clients a listing takes seconds.
 * Linux 6.2 and later give the number as the size of the folder.
 *
 * @returns {number} 0 where the kernel does not tell
 */
function openFiles() {
  return statSync('/proc/self/fd').size;
}

/**
 * @typedef {object} Metrics
 * @property {string} contentType of the text
 * @property {() => Promise<string>} text everything in Prometheus' text format
 * @property {() => number} longestStallMs the longest turn of the event loop since the last
 *     `forgetStalls`, in milliseconds
 * @property {() => number} recentStallMs the longest of the last minute, or since it was last asked for
 *     where that is longer
 * @property {() => void} forgetStalls starts `longestStallMs` anew, as after a slow start
 * @property {() => void} close stops measuring
 */

/**
 * The longest turn of the loop ever, and of the last minute: what was long ago says nothing of now. No timer wakes the
 * loop for it: what has come since it was last asked for counts as of now.
 */
function keepStalls(loop) {
  let ever = 0;
  let parts = []; // {began, longest}, the newest first

  function look() {
    const { longest } = loop.read();
    loop.forgetLongest();
    ever = Math.max(ever, longest);
    const now = performance.now();
    if (parts.length === 0 || now - parts[0].began >= RECENT / RECENT_PARTS) {
      parts.unshift({ began: now, longest });
      parts = parts.filter(({ began }) => now - began < RECENT);
    } else parts[0].longest = Math.max(parts[0].longest, longest);
  }

  return {
    longest() {
      look();
      return ever;
    },
    recent() {
      look();
      return Math.max(...parts.map(({ longest }) => longest));
    },
    forget() {
      loop.forgetLongest();
      ever = 0;
      parts = [];
    }
  };
}

/**
 * @param {object} sources
 * @param {() => object} sources.status the live counts, as in /status; asked once a scrape
 * @param {() => Record<string, number>} [sources.door] the front door's counters
 * @param {() => {bounds: number[], counts: number[], sum: number}} [sources.deliveryTimes] the pool's
 * @param {number} [sources.mailboxMemory] bytes, of --mailbox-memory
 * @param {number} [sources.feedMemory] bytes, of --feed-memory
 * @param {() => number | undefined} [sources.certificateEnd] when the certificate in use ends, in
 *     seconds since 1970; undefined without TLS
 * @param {string} [sources.version] of the program
 * @returns {Metrics}
 */
export function createMetrics({
  status,
  door = () => ({}),
  deliveryTimes = () => ({ bounds: [], counts: [0], sum: 0 }),
  mailboxMemory = 0,
  feedMemory = 0,
  certificateEnd = () => undefined,
  version = 'unknown'
}) {
  const register = new Registry();
  const registers = [register];

  const ofProcess = processMetrics();

  const counters = Object.entries(COUNTERS).map(([name, help]) => [
    name,
    new Counter({ name: `sprites_${snake(name)}_total`, help, registers })
  ]);
  const gauges = Object.entries(GAUGES).map(([name, help]) => [
    name,
    new Gauge({ name: `sprites_${snake(name)}`, help, registers })
  ]);
  const mailboxBytes = new Gauge({
    name: 'sprites_mailbox_bytes',
    help: 'Memory of all sprites in mailboxes now, in bytes',
    registers
  });
  new Gauge({
    name: 'sprites_mailbox_bytes_limit',
    help: 'What sprites_mailbox_bytes may be (--mailbox-memory): at it, every throw is 503',
    registers
  }).set(mailboxMemory);
  new Gauge({
    name: 'sprites_feed_memory_limit',
    help: 'What sprites_feed_memory may be (--feed-memory): at it, publications are 503',
    registers
  }).set(feedMemory);
  // With a label, so that without TLS there is no value at all, and no 1970.
  const certificate = new Gauge({
    name: 'sprites_tls_certificate_end_seconds',
    help: 'When the certificate in use ends (--tls-cert), in seconds since 1970',
    labelNames: ['port'],
    registers
  });
  const lostReasons = new Counter({
    name: 'sprites_lost_reasons_total',
    help: 'Sprites lost, by the reason',
    labelNames: ['reason'],
    registers
  });
  const refused = new Counter({
    name: 'sprites_refused_total',
    help: 'Requests answered with a problem, by its name',
    labelNames: ['problem'],
    registers
  });
  const openFds = new Gauge({
    name: 'process_open_fds',
    help: 'Number of open file descriptors.',
    registers
  });
  new Gauge({
    name: 'sprites_build_info',
    help: 'Which program this is: always 1',
    labelNames: ['version', 'node'],
    registers
  }).set({ version, node: process.version }, 1);
  const stall = new Gauge({
    name: 'sprites_event_loop_longest_stall_seconds',
    help: 'Longest turn of the event loop since it was last forgotten',
    registers
  });
  const loop = new (loadAddon().LoopDelays)();
  const stalls = keepStalls(loop);
  const histogram = (name, help, read) =>
    register.registerMetric(createNativeHistogram(name, help, read));
  histogram(
    'sprites_event_loop_delay_seconds',
    'How late the event loop was, for one who asks every 10 ms',
    () => loop.read()
  );
  histogram(
    'sprites_delivery_seconds',
    'How long sprites waited: from the moment a throw was accepted to the answer that first carried the' +
      ' sprite. Who has a poll parked gets it at once (the lowest bucket); who is away waits for himself, up to' +
      ' --lease, after which it flies on',
    () => inSeconds(deliveryTimes())
  );
  const lags = Object.entries(LAGS).map(([name, help]) => [
    name,
    new Gauge({ name: `nodejs_eventloop_lag_${name}_seconds`, help, registers })
  ]);
  /** The front door's, made as they are first seen. @type {Map<string, Counter | Gauge>} */
  const fronts = new Map();

  /** @returns {Counter | Gauge} */
  function frontMetric(name) {
    let metric = fronts.get(name);
    if (!metric) {
      const help = FRONT_GAUGES[name] ?? FRONT_COUNTERS[name] ?? `Count of ${name} at the doors`;
      metric =
        name in FRONT_GAUGES
          ? new Gauge({ name: `sprites_front_${snake(name)}`, help, registers })
          : new Counter({ name: `sprites_front_${snake(name)}_total`, help, registers });
      fronts.set(name, metric);
    }
    return metric;
  }

  function copyStatus() {
    const now = status();
    for (const [name, counter] of counters) setCounter(counter, {}, now[name] ?? 0);
    for (const [name, gauge] of gauges) gauge.set(now[name] ?? 0);
    mailboxBytes.set(now.mailboxBytes ?? 0);
    for (const [reason, value] of Object.entries(now.lostReasons ?? {})) {
      setCounter(lostReasons, { reason }, value);
    }
    for (const [problem, value] of Object.entries(now.refused ?? {})) {
      setCounter(refused, { problem }, value);
    }
    for (const [name, value] of Object.entries(door())) {
      if (typeof value !== 'number') continue;
      const metric = frontMetric(name);
      if (metric instanceof Gauge) metric.set(value);
      else setCounter(metric, {}, value);
    }
    const end = certificateEnd();
    if (end !== undefined) certificate.set({ port: 'tls' }, end);
    openFds.set(openFiles());
    stall.set(stalls.longest());
    const { count, ...interval } = loop.takeInterval();
    for (const [name, gauge] of count > 0 ? lags : []) {
      // As Node's own measure has it: with the time between two questions.
      gauge.set(interval[name] + (name === 'stddev' ? 0 : ASKED_EVERY));
    }
  }

  return {
    contentType: register.contentType,
    async text() {
      copyStatus();
      return (await ofProcess.metrics()) + (await register.metrics());
    },
    longestStallMs: () => stalls.longest() * 1000,
    recentStallMs: () => stalls.recent() * 1000,
    forgetStalls: () => stalls.forget(),
    close() {
      loop.close();
      register.clear();
    }
  };
}
