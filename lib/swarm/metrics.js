import { once } from 'node:events';
import { createServer } from 'node:http';

import { Counter, createNativeHistogram, Gauge, Registry } from '../base/native-histogram.js';
import { UsageError } from '../base/option-help.js';
import { highestValueOf } from './histogram.js';

/**
 * Serves the figures of a running load to Prometheus, on this host only. Nothing is counted here: a scrape copies the
 * tally, from which the result is made too.
 */

/** The tally's counts that only grow, and their help. */
const COUNTERS = {
  sent: 'Sprites thrown: sent = accepted + refused + those whose throw is not answered',
  accepted: 'Sprites the server has accepted: accepted = delivered + queued + duplicates',
  delivered: 'Throws answered 202 delivered',
  queued: 'Throws answered 202 queued',
  duplicates: 'Throws answered 202 duplicate',
  refused: 'Throws refused',
  received: 'Sprites that came to clients of the swarm',
  mangled: 'Sprites that came in changed or by the wrong side',
  connections: 'Connections made',
  closed: 'Connections that broke',
  joined: 'Clients that joined',
  left: 'Clients that left',
  answers: 'Polls answered',
  behind: 'Open loop: sprites that were due and not thrown, told at the end of the throwing'
};

/** The tally's counts that rise and fall, and their help. */
const GAUGES = {
  parked: 'Clients with a poll parked',
  members: 'Clients with a place in the torus',
  pending: 'Throws that are not answered yet'
};

const MAX_CONNECTIONS = 16;

/** Upper bounds of the buckets, in seconds. */
const BUCKET_BOUNDS = [
  ...[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10]
];

/** @param {import('./histogram.js').Histogram} histogram @returns the buckets for createNativeHistogram() */
function bucketsOf(histogram) {
  const bucketCounts = new Array(BUCKET_BOUNDS.length + 1).fill(0);
  let sum = 0;
  for (const [bucket, count] of histogram.buckets()) {
    const seconds = highestValueOf(bucket) / 1e9;
    const index = BUCKET_BOUNDS.findIndex((bound) => seconds <= bound);
    bucketCounts[index < 0 ? BUCKET_BOUNDS.length : index] += count;
    sum += seconds * count;
  }
  return { bounds: BUCKET_BOUNDS, counts: bucketCounts, sum };
}

/**
 * @param {import('./tally.js').Tally} tally
 * @returns {Promise<string>} the metrics, in Prometheus' text format
 */
export function metricsOf(tally) {
  const registry = new Registry();
  const registers = [registry];
  const { counts } = tally;
  for (const [name, help] of Object.entries(COUNTERS)) {
    new Counter({ name: `sprites_swarm_${name}_total`, help, registers }).inc(counts[name]);
  }
  for (const [name, help] of Object.entries(GAUGES)) {
    new Gauge({ name: `sprites_swarm_${name}`, help, registers }).set(counts[name]);
  }
  if (tally.stageTarget !== null) {
    const help = 'What the stage asks for now: clients (park) or sprites a second (throw)';
    new Gauge({ name: 'sprites_swarm_asked', help, registers }).set(tally.stageTarget);
  }
  const refusals = new Counter({
    name: 'sprites_swarm_refusals_total',
    help: 'Throws refused, by problem',
    labelNames: ['problem'],
    registers
  });
  for (const [problem, count] of Object.entries(tally.countsByName.refusals)) {
    refusals.inc({ problem }, count);
  }
  for (const name of ['arrival', 'answer', 'probe']) {
    const help = `Seconds from throw to ${name === 'answer' ? 'answer' : 'arrival'}${name === 'probe' ? ", of the probe's sprites" : ''}`;
    registry.registerMetric(
      createNativeHistogram(`sprites_swarm_${name}_seconds`, help, () => bucketsOf(tally[name]))
    );
  }
  return registry.metrics();
}

/**
 * Serves /metrics on 127.0.0.1.
 *
 * @param {number} port 0: any free port
 * @param {() => ?import('./tally.js').Tally} getTally returns the tally; undefined before the run has begun
 * @returns {Promise<{port: number, close: () => void}>}
 * @throws {UsageError} when listening on the port fails
 */
export async function serveMetrics(port, getTally) {
  const server = createServer(async (request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') {
      response.writeHead(404).end('here is GET /metrics\n');
      return;
    }
    const tally = getTally();
    const text = tally ? await metricsOf(tally) : '';
    response.writeHead(200, { 'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE }).end(text);
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    const why = error.code === 'EADDRINUSE' ? 'it is taken' : error.code;
    throw new UsageError(`--prometheus ${port}: 127.0.0.1:${port} can't be listened at, ${why}`);
  }
  return {
    port: server.address().port,
    close() {
      server.close();
      server.closeAllConnections();
    }
  };
}
