import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';

import { createMetrics } from '../../lib/operator/metrics.js';
import { certificate } from '../support/certificate.js';
import { request } from '../support/http.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';

const COUNTS = {
  ...{ clients: 7, parked: 5, capacity: 100, rows: 3, columns: 3 },
  ...{ thrown: 12, acked: 8, waiting: 3, lost: 1, lostReasons: { alone: 1 } },
  ...{ delivered: 10, queued: 2, duplicates: 4, flown: 6, mailboxBytes: 321 },
  ...{ joined: 9, left: 1, expired: 1, polls: 40, pings: 2 },
  refused: { 'bad-sprite': 3, 'neighbor-busy': 2 }
};

/** Parses Prometheus' text format: 'name{labels}' → number. */
function parse(text) {
  const samples = new Map();
  for (const line of text.split('\n')) {
    const match = /^([a-z0-9_]+(?:\{[^}]*\})?) (\S+)$/.exec(line);
    if (match) samples.set(match[1], Number(match[2]));
  }
  return samples;
}

/** Returns the metrics of a server's admin port. */
const scrape = async ({ adminPort }) =>
  (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();

function metricsOf(t, status) {
  const metrics = createMetrics({ status, version: '1.2.3' });
  t.teardown(() => metrics.close());
  return metrics;
}

/** Runs the text of a module in this checkout. */
const runModule = (text, ...flags) =>
  spawnSync(process.execPath, [...flags, '--input-type=module', '--eval', text], {
    ...{ cwd: ROOT, encoding: 'utf8', timeout: 120_000 }
  });

/** Blocks the event loop. */
function blockLoop(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

t.test('a scrape copies one look at the status, and the next one another', async (t) => {
  let looks = 0;
  const front = { connections: 8, accepted: 11, handled: 2, note: 'no number' };
  const status = { ...COUNTS, ...front };
  const metrics = metricsOf(t, () => {
    looks++;
    return status;
  });
  const text = await metrics.text();
  const samples = parse(text);
  t.equal(looks, 1);
  const counters =
    'thrown acked lost delivered queued duplicates flown joined left expired polls pings';
  for (const name of counters.split(' ')) {
    t.equal(samples.get(`sprites_${name}_total`), COUNTS[name], name);
  }
  for (const name of ['clients', 'parked', 'waiting', 'capacity', 'rows', 'columns']) {
    t.equal(samples.get(`sprites_${name}`), COUNTS[name], name);
  }
  t.equal(samples.get('sprites_mailbox_bytes'), 321);
  t.equal(samples.get('sprites_lost_reasons_total{reason="alone"}'), 1);
  t.equal(samples.get('sprites_refused_total{problem="neighbor-busy"}'), 2);
  // Metrics of the front door have names of their own.
  t.equal(samples.get('sprites_front_connections'), 8);
  t.equal(samples.get('sprites_front_accepted_total'), 11);
  t.equal(samples.get('sprites_front_handled_total'), 2);
  t.notMatch(text, 'note');
  t.match(text, '# TYPE sprites_front_connections gauge');
  t.match(text, '# TYPE sprites_front_handled_total counter');

  Object.assign(status, { thrown: 20, parked: 2, refused: { 'bad-sprite': 4 } });
  const next = parse(await metrics.text());
  t.equal(next.get('sprites_thrown_total'), 20, 'set, not added up');
  t.equal(next.get('sprites_parked'), 2);
  t.equal(next.get('sprites_refused_total{problem="bad-sprite"}'), 4);
});

t.test('tells of the process, without listing its descriptors', async (t) => {
  const metrics = metricsOf(t, () => ({}));
  const text = await metrics.text();
  const samples = parse(text);
  t.ok(samples.get('process_resident_memory_bytes') > 1e6);
  t.ok(samples.get('process_cpu_seconds_total') > 0);
  t.ok(samples.get('process_max_fds') > 0);
  t.type(samples.get('process_open_fds'), 'number');
  t.match(text, `sprites_build_info{version="1.2.3",node="${process.version}"} 1`);
  t.notMatch(text, /^sprites_tls_certificate_end_seconds/m, 'none without TLS');
  const program = `
    import fs from 'node:fs';
    import { syncBuiltinESMExports } from 'node:module';
    const listed = [];
    for (const name of ['readdirSync', 'readdir', 'opendirSync', 'opendir']) {
      fs[name] = (path) => { listed.push(path); throw new Error('listed ' + path); };
    }
    syncBuiltinESMExports();
    const { createMetrics } = await import('./lib/operator/metrics.js');
    const metrics = createMetrics({ status: () => ({}) });
    await metrics.text();
    console.log(JSON.stringify(listed));`;
  // It ends by itself: measuring keeps no process alive.
  const { stdout, stderr, status } = runModule(program);
  t.strictSame([stdout.trim(), status], ['[]', 0], stderr);
});

t.test('a stall of the event loop is seen, in the histogram and as the longest', async (t) => {
  const metrics = metricsOf(t, () => ({}));
  await until(() => metrics.longestStallMs() > 0);
  metrics.resetStalls();
  blockLoop(120);
  await until(() => metrics.longestStallMs() >= 100);
  t.ok(metrics.longestStallMs() >= 100, `${metrics.longestStallMs()} ms`);
  const samples = parse(await metrics.text());
  const bucket = (le) => samples.get(`sprites_event_loop_delay_seconds_bucket{le="${le}"}`);
  t.ok(bucket('+Inf') - bucket('0.1') >= 1, 'one sample above 100 ms');
  t.ok(bucket('+Inf') >= bucket('0.01'), 'cumulative');
  t.equal(bucket('+Inf'), samples.get('sprites_event_loop_delay_seconds_count'));
  t.ok(samples.get('sprites_event_loop_longest_stall_seconds') >= 0.1);
  t.ok(metrics.recentStallMs() >= 100);
  const { now } = performance;
  t.teardown(() => Object.assign(performance, { now }));
  performance.now = () => now.call(performance) + 70_000;
  t.ok(metrics.recentStallMs() < 100, 'it was more than a minute ago');
  t.ok(metrics.longestStallMs() >= 100, 'and stays the longest');
  metrics.resetStalls();
  t.equal(metrics.longestStallMs() < 100, true, 'forgotten');
});

t.test(
  'a loop that sleeps in the door is late by one of its turns, not by all of them',
  async (t) => {
    const server = await startServer(t);
    const sockets = Array.from({ length: 8 }, () => connect(server.port, '127.0.0.1'));
    t.teardown(() => sockets.forEach((socket) => socket.destroy()));
    const leave = request('POST', '/leave/01234567-89ab-4cde-8f01-23456789abcd');
    const times = 500;
    const ask = async (socket) => {
      socket.write(Buffer.concat(Array(times).fill(leave)));
      for (let text = ''; text.split('\r\n\r\n').length <= times;) {
        text += (await once(socket, 'data'))[0].toString('latin1');
      }
    };
    const acts = { busy: () => Promise.all(sockets.map(ask)), idle: () => sleep(20) };
    for (const [name, act] of Object.entries(acts)) {
      // On a busy machine the measurement is repeated.
      const isInTime = async () => {
        await scrape(server);
        for (const end = performance.now() + 250; performance.now() < end;) await act();
        return parse(await scrape(server)).get('nodejs_eventloop_lag_p99_seconds') < 0.04;
      };
      await until(isInTime, name);
    }
  }
);

t.test("delays since the last scrape have prom-client's names", async (t) => {
  const metrics = metricsOf(t, () => ({}));
  const lag = async () => {
    const samples = parse(await metrics.text());
    return (name) => samples.get(`nodejs_eventloop_lag_${name}_seconds`);
  };
  blockLoop(120);
  await until(() => metrics.longestStallMs() >= 100);
  const lagOf = await lag();
  t.ok(lagOf('max') >= 0.11 && lagOf('max') < 60, lagOf('max'));
  for (const name of ['min', 'mean', 'p50', 'p90', 'p99']) {
    // Includes the 10 ms between two samples.
    t.ok(lagOf(name) >= 0.01 && lagOf(name) <= lagOf('max'), `${name} ${lagOf(name)}`);
  }
  t.ok(lagOf('stddev') >= 0);
  t.type(parse(await metrics.text()).get('nodejs_eventloop_lag_seconds'), 'number');
});

t.test('pauses of the garbage collector are a histogram', async (t) => {
  const program = `
    import { createMetrics } from './lib/operator/metrics.js';
    const metrics = createMetrics({ status: () => ({}) });
    let text = '';
    for (let i = 0; i < 200 && !text.includes('_count{kind="major"}'); i++) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 10));
      text = await metrics.text();
    }
    console.log(text);
    metrics.close();`;
  const { stdout, stderr, status } = runModule(program, '--expose-gc');
  t.equal(status, 0, stderr);
  t.match(stdout, /nodejs_gc_duration_seconds_bucket\{le="\+Inf",kind="major"\} [1-9]/);
  t.match(stdout, '# TYPE nodejs_gc_duration_seconds histogram');
});

t.test('a start does not load what only exemplars need', async (t) => {
  const program = `
    import { createRequire } from 'node:module';
    import './server.js';
    console.log(Object.keys(createRequire(import.meta.url).cache).join());
    process.exit();`;
  const { stdout, stderr } = runModule(program);
  t.match(stdout, 'prom-client', stderr);
  t.notMatch(stdout, 'opentelemetry');
});

t.test('promtool finds nothing to mend', async (t) => {
  const metrics = metricsOf(t, () => ({ ...COUNTS, accepted: 3, connections: 1 }));
  const { error, status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: await metrics.text(),
    encoding: 'utf8'
  });
  if (error?.code === 'ENOENT') {
    t.skip('promtool is not installed (Debian: prometheus)');
    return;
  }
  t.equal(status, 0, stdout + stderr);
});

t.test('every metric of ours says what it counts, and by what option it is bounded', async (t) => {
  const tls = certificate(t.testdir());
  const options = { 'mailbox-memory': '2M', 'tls-port': 0, ...tls };
  const server = await startServer(t, { options });
  const text = await scrape(server);
  await server.stop();
  const helps = [...text.matchAll(/^# HELP (sprites_\w+) (.*)$/gm)];
  t.ok(helps.length > 30);
  for (const [, name, help] of helps) {
    t.notMatch(help, /front door's|at the doors/, name);
    t.ok(help.split(' ').length >= 3, `${name}: ${help}`);
  }
  t.match(text, '\nsprites_mailbox_bytes_limit 2097152\n');
  const { validTo } = new X509Certificate(readFileSync(tls['tls-cert']));
  const [, end] = /^sprites_tls_certificate_end_seconds\S* (.*)$/m.exec(text);
  t.equal(Number(end), Date.parse(validTo) / 1000, 'when its certificate ends');
});
