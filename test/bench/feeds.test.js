import { once } from 'node:events';

import t from 'tap';

import { Histogram } from '../../lib/swarm/histogram.js';
import { startLoad } from './contenders.js';
import { buildWatchers, feedContenders, TOKEN } from './feed-contenders.js';
import { CELLS, figuresOf, table, verdicts } from './feed-figures.js';

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
        token: TOKEN
      },
      program
    );
    t.teardown(() => load.stop());
    await load.go();
    const result = await load.next('result');
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

const result = (more = {}) => ({
  ...{ seconds: 2, published: 2, unpublished: 0, documents: 200, skipped: 0, missing: 0 },
  ...{ repeated: 0, cpu: 0.002, loadCpu: 0.001, residentBefore: 1e7, residentPeak: 2e7 },
  ...{ socketsBefore: 5e6, socketsPeak: 4e6, latest: 1500, lateness: [[1000, 200]] },
  ...more
});

t.test('figures', async (t) => {
  const row = figuresOf(result(), 3);
  t.match(row, { rate: 100, cpu: 10, growth: 1e7, sockets: 0, max: 1.5, stall: 3 });
  t.equal(row.p99, 1e-3);
  const none = figuresOf(result({ documents: 0, lateness: [] }));
  t.match(none, { cpu: null, p50: null, max: null });
});

t.test('what holds, and what does not', async (t) => {
  const [cell] = CELLS.filter(({ ws }) => ws === 0.5);
  const ws = figuresOf(result({ cpu: 0.0041 }));
  const good = verdicts(cell, { 'sprites-poll': figuresOf(result(), 3), ws });
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
    const list = verdicts(cell, { 'sprites-poll': figuresOf(figures, stall), ws });
    const [broken, ...others] = list.filter(({ holds }) => !holds);
    t.match(broken.figure, what);
    t.equal(others.length, 0);
  }
  const failed = { 'sprites-poll': { failed: 'it ended' }, ws };
  t.match(verdicts(cell, failed), [{ holds: false, value: 'it ended' }]);
  t.match(
    table(failed, (name) => name),
    /\| sprites-poll \| it ended \|/
  );
});
