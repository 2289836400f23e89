import { createServer } from 'node:net';

import t from 'tap';

import { metricsOf, serveMetrics } from '../../lib/swarm/metrics.js';
import { parse } from '../../lib/swarm/options.js';
import { createProgress } from '../../lib/swarm/progress.js';
import { contentOf } from '../../lib/report/report-body.js';
import { Run } from '../../lib/swarm/run.js';
import { StageLog, Stages } from '../../lib/swarm/stages.js';
import { Interruptions, Tally } from '../../lib/swarm/tally.js';
import { textOf } from '../../lib/swarm/text.js';
import { listening } from '../support/addresses.js';
import { startServer } from '../support/server.js';
import { bucketOf, goodRun, resultWith, start } from '../support/swarm.js';

/** Runs whose load changes, and their metrics for Prometheus. */

// The tests mostly wait.
t.jobs = 4;

const parsed = (line) => parse(line.split(' '));

t.test('between two targets it goes in a straight line', async (t) => {
  const { stages } = parsed('park 100 -s 10s:200 -s 5s:200 -s 0s:50 -s 5s:0');
  const targets = [0, 5, 10, 12, 14.9, 15, 17.5, 20, 99].map((at) => stages.targetAt(at));
  t.same(targets, [100, 150, 200, 200, 200, 50, 25, 0, 0]);
});

t.test('what each stage has reached is told by the clock of the engines', async (t) => {
  const stages = new Stages(
    0,
    [1, 0, 2].map((seconds, i) => ({ seconds, target: 10 * i })),
    { read: Number }
  );
  const tally = new Tally(3);
  const tick = (seconds, accepted, flights) =>
    tally.add({
      ...{ process: 0, at: seconds * 1e9, accepted, parked: 7 },
      ...{ arrival: flights.map((ms) => [bucketOf(ms * 1e6), 1]), answer: [], probe: [] }
    });
  tick(100, 50, [9]);
  const log = new StageLog(stages, tally);
  t.equal(log.advance(0.5), 0);
  tick(101.25, 60, [1, 2]);
  t.equal(log.advance(1), 10);
  tick(103.25, 160, [3]);
  t.equal(log.advance(3), 20);
  t.match(log.rows, [
    { seconds: 1, from: 0, target: 0, parked: 7, perSecond: 8, p50: 1, max: 2 },
    { seconds: 0, from: 0, target: 10, perSecond: null, p50: null },
    { seconds: 2, from: 10, target: 20, perSecond: 50, p50: 3, max: 3 }
  ]);
});

t.test('an interruption lasts until all but one in a hundred are back', async (t) => {
  const interruptions = new Interruptions(1000);
  const parked = { 1: 1000, 2: 995, 3: 400, 4: 0, 5: 900, 6.5: 990, 7: 985 };
  for (const at of Object.keys(parked).map(Number).sort()) interruptions.observe(at, parked[at]);
  t.same(interruptions.list, [
    { at: 3, lowest: 0, seconds: 3.5 },
    { at: 7, lowest: 985, seconds: null }
  ]);
});

t.test('clients that come or go by a stage interrupt nothing, those that break do', async (t) => {
  const interruptions = new Interruptions(100);
  const parkedCounts = [
    ...[
      [0, 100, 100],
      [1, 120, 200],
      [2, 180, 300],
      [3, 290, 300],
      [4, 250, 100],
      [4.5, 130, 20]
    ],
    ...[
      [5, 100, 60],
      [5.5, 20, 60],
      [7.6, 60, 60]
    ]
  ];
  for (const sample of parkedCounts) interruptions.observe(...sample);
  t.same(interruptions.list, []);
  interruptions.observe(8, 30, 80);
  interruptions.observe(9, 70, 80);
  t.same(interruptions.list, [{ at: 8, lowest: 30, seconds: 1 }]);
});

t.test('a rate goes through its stages, and what it owes is known to the sprite', async (t) => {
  const server = await startServer(t, { options: { 'throw-rate': 0 } });
  const line =
    'throw 20 --processes 2 --stage 800ms:400 --stage 400ms:400 --stage 0s:100 -s 400ms:0';
  const result = await goodRun(t, server.port, line);
  // 160, 160 and 20 sprites are due on any machine; those due in the last moment are not thrown.
  const due = result.account.sent + result.throwing.behind;
  t.ok(due >= 337 && due <= 340, `${due} of 340`);
  t.equal(result.account.missing, 0);
  t.match(result.throwing, { mode: 'open loop', rate: 400 });
  t.same(
    result.stages.map(({ from, target }) => [from, target]),
    [
      [0, 400],
      [400, 400],
      [400, 100],
      [100, 0]
    ]
  );
  t.ok(result.series.some(({ asked }) => asked > 0));
  t.match(
    textOf(result),
    /up to 400 a second asked.*\nstage 1 +0 to 400 in 0.8 s: [0-9]+ a second/
  );
  const { title, body, charts } = contentOf(result);
  t.equal(title, '20 clients, up to 400 sprites a second');
  t.match(body, /Stage by stage/);
  t.ok(charts.rates.series.some(({ name, dashed }) => name === 'asked' && dashed));
});

t.test('the number of clients goes through its stages, and all are told in the end', async (t) => {
  const server = await startServer(t);
  const line = 'park 3 --processes 2 -s 1200ms:91 -s 200ms:20 -s 0s:45';
  const result = await goodRun(t, server.port, line);
  t.match(result, { clients: 91, opened: { wanted: 3, clients: 3 }, interruptions: [] });
  t.equal(result.stages.at(-1).parked, 45);
  const { joined, left } = result.connections;
  t.ok(joined >= 45 + 20 && left === joined, `${left} of ${joined} have left`);
  t.match(await server.status(), { clients: 0, joined, left });
  t.match(textOf(result), /stage 3 +20 to 45 in 0 s: 45 parked/);
  t.equal(contentOf(result).title, 'Up to 91 clients parked');
});

t.test('fewer clients than the last stage asks for are a fault', async (t) => {
  const options = parsed('park 4 -s 1s:30');
  const faults = (parked, runMembers) => {
    const stages = [{ seconds: 1, from: 4, target: 30, parked }];
    return resultWith(options, { opened: { clients: 4, wanted: 4 }, stages }, runMembers).faults;
  };
  t.same(faults(10), ['10 of 30 clients were parked at the end of the stages']);
  t.same(faults(30), []);
  t.same(faults(10, { interrupted: true }), []);
});

/** Returns a scrape's samples by name, with their labels. */
const samples = (text) =>
  Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line && !line.startsWith('#'))
      .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))])
  );

t.test('a scrape has what the result has, at every moment', async (t) => {
  const server = await startServer(t, { options: { 'throw-rate': 1, 'throw-burst': 4 } });
  const options = parsed(`throw 20 --rate 300 --time 1 --port ${server.port}`);
  const run = new Run(options, await createProgress(true));
  const metrics = await serveMetrics(0, () => run.tally);
  t.teardown(() => metrics.close());
  const base = `http://127.0.0.1:${metrics.port}`;
  const scrape = async () => samples(await (await fetch(`${base}/metrics`)).text());
  t.same(await scrape(), {}, 'nothing before it has begun');
  t.equal((await fetch(`${base}/else`)).status, 404);
  const running = run.execute();
  const scrapes = [];
  let isOver = false;
  const finished = running.finally(() => (isOver = true));
  while (!isOver) scrapes.push(await scrape());
  const result = await finished;
  const named = (name) => `sprites_swarm_${name}`;
  let before = {};
  for (const now of scrapes.filter((one) => named('sent_total') in one)) {
    const get = (name) => now[named(`${name}_total`)];
    if (get('accepted') !== get('delivered') + get('queued') + get('duplicates'))
      t.fail('accepted');
    if (get('sent') < get('accepted') + get('refused')) t.fail('sent');
    if (now[named('answer_seconds_count')] !== get('accepted')) t.fail('each was timed');
    for (const [name, value] of Object.entries(before)) {
      if (/_total$|_count$|_bucket/.test(name) && now[name] < value) t.fail(`${name} fell`);
    }
    before = now;
  }
  // The tally no longer changes: this scrape has the figures of the result.
  const last = await scrape();
  const { account, connections, latency } = result;
  for (const name of ['sent', 'accepted', 'delivered', 'queued', 'refused', 'received']) {
    t.equal(last[named(`${name}_total`)], account[name], name);
  }
  t.equal(last[`${named('refusals_total')}{problem="too-many-throws"}`], account.refused);
  t.ok(account.refused > 0);
  t.equal(last[named('left_total')], connections.left);
  t.equal(last[named('arrival_seconds_count')], latency.arrival.count);
  t.equal(last[`${named('arrival_seconds_bucket')}{le="+Inf"}`], latency.arrival.count);
  t.ok(scrapes.some((one) => one[named('parked')] === 20));
});

t.test('what a stage asks for is among the figures', async (t) => {
  const tally = new Tally(1);
  t.notMatch(await metricsOf(tally), /sprites_swarm_asked/);
  tally.stageTarget = 12.5;
  t.match(await metricsOf(tally), /\nsprites_swarm_asked 12.5\n/);
});

t.test('a port that is taken is told before anything is opened', async (t) => {
  const port = await listening(t, createServer());
  const { code, err } = await start(t, `park 1 --port 1 --wait 0 --prometheus ${port}`).result();
  t.equal(code, 2);
  t.match(err, `--prometheus ${port}: 127.0.0.1:${port} can't be listened at, it is taken`);
});
