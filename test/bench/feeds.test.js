import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { promisify } from 'node:util';

import t from 'tap';

import { Histogram } from '../../lib/swarm/histogram.js';
import { buildWatchers, feedContenders, startLoad, TOKEN, withTurns } from './contenders.js';
import { CELLS, figuresOf, table, together, verdicts } from './feed-figures.js';

/**
 * The benchmark of feeds: its load generator against each contender that is here, and what is made
 * of its figures.
 */

const program = buildWatchers();
const CONNECTIONS = 40;
const PUBLICATIONS = 12;
const STALLED = 4;

/** One of each kind: a body with a length, chunks, frames, and what nginx makes of an event stream. */
const ways = [
  { name: 'sprites-poll', patch: 0 },
  { name: 'sprites-poll-grant', patch: 0 },
  { name: 'sprites-stream', patch: 200 },
  { name: 'ws', patch: 0 },
  { name: 'sse', patch: 0 },
  { name: 'nchan-stream', patch: 0 }
].map(({ name, patch }) => {
  const contender = feedContenders[name];
  return { contender, protocol: patch > 0 ? contender.patches : contender.protocol, patch };
});

for (const { contender, protocol, patch } of ways) {
  t.test(`${protocol}: every document is counted once, whole`, async (t) => {
    const why = contender.missing();
    if (why !== null) return t.skip(why);
    const server = await contender.start(false);
    t.teardown(() => server.stop());
    const load = startLoad(
      server,
      false,
      {
        protocol,
        patch,
        connections: CONNECTIONS,
        // Frames and chunks with each kind of length.
        bytes: 70000,
        every: 0.05,
        seconds: PUBLICATIONS * 0.05,
        warmup: 2,
        stalled: STALLED / CONNECTIONS,
        token: contender.token?.() ?? TOKEN
      },
      program
    );
    t.teardown(() => load.stop());
    const result = await load.measure();
    t.equal(await load.ended, 0);
    const { published, documents, skipped, missing, repeated, stalled, unpublished } = result;
    const readers = CONNECTIONS - STALLED;
    t.equal(published + unpublished, PUBLICATIONS);
    t.equal(stalled, STALLED);
    t.strictSame({ missing, repeated }, { missing: 0, repeated: 0 });
    t.equal(documents + skipped, readers * published, 'seen, or replaced by a newer one');
    t.equal(new Histogram().add(result.lateness).count, documents);
    const least = documents * (patch > 0 ? 100 : 69900);
    t.ok(result.bytes >= least, `${result.bytes} bytes of at least ${least}`);
    t.ok(result.cpu > 0 && result.residentPeak >= result.residentBefore);
  });
}

t.test('a server that goes away is told of, and ends the load', async (t) => {
  const server = await feedContenders.sse.start(false);
  const load = startLoad(server, false, { protocol: 'sse', connections: 5 }, program);
  t.teardown(() => load.stop());
  await load.next('open');
  const ended = once(load.child, 'exit');
  await server.stop();
  await t.rejects(load.next('result'), /ended/);
  t.strictSame((await ended)[0], 1);
});

t.test('what was due before the measuring is not counted, late or not', async (t) => {
  const held = [];
  let published = 0;
  let isMeasured = false;
  const end = (response) => response.writeHead(204).end();
  const publish = (response) => {
    published += 1;
    if (published === 1 || isMeasured) end(response);
    else held.push(response);
  };
  // Of its documents no watcher hears.
  const server = createServer((request, response) => {
    if (request.method === 'POST') request.resume().on('end', () => publish(response));
    else response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(':\n\n');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => server.close().closeAllConnections());
  const work = { protocol: 'sse', connections: 3, warmup: 10, 'warmup-every': 0.01 };
  const { port } = server.address();
  const how = { ...work, every: 0.05, seconds: 0.1 };
  const load = startLoad({ port, pids: [process.pid] }, false, how, program);
  t.teardown(() => load.stop());
  const measured = await load.measure(async () => {
    isMeasured = true;
    held.forEach(end);
  });
  t.equal(held.length, 8, 'of ten two were left out');
  t.match(measured, { published: 2, unpublished: 0, missing: 3 * 2 });
});

const result = (more = {}) => ({
  ...{ seconds: 2, published: 2, unpublished: 0, documents: 200, skipped: 0, missing: 0 },
  ...{ repeated: 0, cpu: 0.002, loadCpu: 0.001, residentBefore: 1e7, residentPeak: 2e7 },
  ...{ socketsBefore: 5e6, socketsPeak: 4e6, latest: 1500, lateness: [[1000, 200]] },
  ...more
});

t.test('figures', async (t) => {
  const row = figuresOf(result(), { longestStall: 3, longestWork: 2 });
  t.match(row, { rate: 100, cpu: 10, growth: 1e7, sockets: 0, max: 1.5, stall: 3, work: 2 });
  t.equal(row.p99, 1e-3);
  const none = figuresOf(result({ documents: 0, lateness: [] }));
  t.match(none, { cpu: null, p50: null, max: null });
});

t.test('several rounds', async (t) => {
  const rounds = [0.006, 0.002, 0.004].map((cpu, i) =>
    figuresOf(result({ cpu, latest: 1000 * (i + 1) }), { longestStall: 9 - i })
  );
  t.match(together(rounds), { cpu: 20, max: 3, stall: 9 });
  t.match(together([rounds[0], { failed: 'it ended' }]), { failed: 'it ended' });
});

t.test('the longest turn of a loop, and what of it was its own work', async (t) => {
  const program = `
    import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
    import { loadTestAddon } from '${new URL('../support/addon.js', import.meta.url)}';
    const { takeTurns } = loadTestAddon();
    const turnOf = async (act) => {
      await sleep(1);
      takeTurns();
      act();
      // The turn is over, and another has begun: timers alone may all run in a turn that was late, immediates do not.
      for (let i = 0; i < 2; i += 1) {
        await immediate();
        await sleep(1);
      }
      return takeTurns();
    };
    const cpu = () => Object.values(process.cpuUsage()).reduce((sum, each) => sum + each, 0);
    const worked = async (tries) => {
      // That of all threads is known here: where another has worked meanwhile, it is tried again.
      const turn = await turnOf(() => {
        const end = cpu() + 60000;
        while (cpu() < end);
      });
      return turn.cpu >= 20 || tries === 0 ? turn : worked(tries - 1);
    };
    const wait = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
    console.log(JSON.stringify([await worked(10), await turnOf(wait), await turnOf(() => {})]));`;
  const command = [
    '-u',
    'NODE_OPTIONS',
    withTurns(),
    process.execPath,
    '--input-type=module',
    '--eval',
    program
  ];
  const { stdout } = await promisify(execFile)('env', command);
  const [worked, waited, slept] = JSON.parse(stdout);
  t.ok(worked.wall >= worked.cpu - 1 && worked.cpu >= 20, `it worked for ${worked.cpu} ms`);
  t.ok(waited.wall >= 59, `it waited for ${waited.wall} ms`);
  t.ok(waited.cpu < waited.wall - 20, `which was no work: ${waited.cpu} ms`);
  t.ok(slept.cpu < 59);
});

t.test('what holds, and what does not', async (t) => {
  const [cell] = CELLS.filter(({ ws }) => ws === 0.5);
  const ws = figuresOf(result({ cpu: 0.0041 }));
  const good = verdicts(cell, { 'sprites-poll': figuresOf(result(), { longestStall: 3 }), ws });
  t.equal(good.length, 5);
  t.ok(good.every(({ holds }) => holds));
  const bad = {
    'CPU a document': [result({ cpu: 0.003 }), 3],
    'resident size': [result({ residentPeak: 9e7 }), 3],
    'later than 2 s': [result({ latest: 2000001 }), 3],
    'misses what is newest': [result({ missing: 1 }), 3],
    stall: [result(), 11]
  };
  for (const [what, [figures, stall]] of Object.entries(bad)) {
    const list = verdicts(cell, {
      'sprites-poll': figuresOf(figures, { longestStall: stall }),
      ws
    });
    const [broken, ...others] = list.filter(({ holds }) => !holds);
    t.match(broken.figure, what);
    t.equal(others.length, 0);
  }
  for (const [cpu, holds] of [
    [0.0022, true],
    [0.0023, false]
  ]) {
    const rows = {
      'sprites-poll': figuresOf(result()),
      'sprites-poll-grant': figuresOf(result({ cpu }))
    };
    const isOfGrant = ({ figure }) => figure.includes('without a grant');
    t.match(verdicts(cell, rows).filter(isOfGrant), [{ holds }]);
  }
  const failed = { 'sprites-poll': { failed: 'it ended' }, ws };
  t.match(verdicts(cell, failed), [{ holds: false, value: 'it ended' }]);
  t.match(
    table(failed, (name) => name),
    /\| sprites-poll \| it ended \|/
  );
});
