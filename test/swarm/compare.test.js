import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { compare } from '../../lib/swarm/compare.js';
import { parse } from '../../lib/swarm/options.js';
import { startServer } from '../support/server.js';
import { start } from '../support/swarm.js';

/** A result with the figures that matter here. */
function result({ p99 = 5, perSecond = 100, missing = 0, clients = 10 } = {}) {
  return {
    command: 'throw',
    clients,
    target: { host: 'a', port: 1 },
    engines: { processes: 1 },
    throwing: { mode: 'open loop', rate: 100, throwers: 4, size: 256, perSecond },
    latency: { arrival: { p99 }, probe: {} },
    account: { missing, refused: 0 },
    connections: { closed: 0 },
    faults: missing > 0 ? ['a sprite is missing'] : []
  };
}

const verdicts = ({ rows }) => Object.fromEntries(rows.map(({ name, verdict }) => [name, verdict]));

t.test('what is better and what is worse depends on the figure', async (t) => {
  const more = compare(result(), result({ p99: 6, perSecond: 120 }));
  t.same(verdicts(more), { 'sprites a second': 'better', 'in flight, p99': 'worse' });
  t.match(more.rows[1], { a: 5, b: 6, words: ['5 ms', '6 ms'], change: 20 });
  const none = compare(result(), result({ p99: 5.01 }));
  t.same(verdicts(none), { 'sprites a second': 'same', 'in flight, p99': 'same' });
  t.same(verdicts(compare(result(), result({ missing: 1 })))['sprites missing'], 'worse');
});

t.test('--worse is a bound on the figures of many, and on what is missing', async (t) => {
  const faults = (after, worse) => compare(result(), result(after), worse).faults.length;
  t.equal(faults({ p99: 6 }, 20), 0);
  t.equal(faults({ p99: 6 }, 19), 1);
  t.equal(faults({ p99: 6 }), 0, 'where none is asked for');
  t.equal(faults({ p99: 1, perSecond: 1000 }, 0), 0, 'better by any much');
  t.equal(faults({ perSecond: 70 }, 20), 1);
  t.equal(faults({ missing: 1 }, 1000), 1);
});

t.test('it says where two loads are compared instead of two servers', async (t) => {
  const { remarks } = compare(result(), result({ clients: 20, missing: 1 }));
  t.match(remarks, ['clients differs: 10 in A, 20 in B', 'B has a fault: a sprite is missing']);
  t.equal(compare(result(), result()).remarks.length, 1);
});

t.test('two files, a report and a JSON, are read and compared', async (t) => {
  const server = await startServer(t);
  const dir = t.testdir();
  const report = join(dir, 'a.html');
  const json = join(dir, 'b.json');
  const run = ['throw', 20, '--rate', 100, '--time', 0.5, '--port', server.port];
  const { code, out } = await start(t, [...run, '--json', '--report', report]).result();
  t.equal(code, 0);
  const after = JSON.parse(out);
  after.latency.arrival.p99 *= 3;
  writeFileSync(json, JSON.stringify(after));
  const both = join(dir, 'both.html');
  const told = await start(t, ['compare', report, json, '--report', both]).result();
  t.match(told, { code: 0, out: /^in flight, p99 .* 3 times {2}worse$/m });
  t.match(told.out, /^in flight, p50 .* the same$/m);
  const html = readFileSync(both, 'utf8');
  t.match(html, /<td class="number bad">3 times<small>worse<\/small>/);
  const charts = JSON.parse(/id="charts">(.*)<\/script>/.exec(html)[1]);
  t.same(Object.keys(charts).slice(0, 3), ['percentiles', 'rates', 'times']);
  t.equal(charts.percentiles.data.length, 3, 'both curves');
  const bounded = await start(t, ['compare', report, json, '--worse', 50, '--json']).result();
  t.equal(bounded.code, 3);
  t.match(JSON.parse(bounded.out).faults, [/^in flight, p99: .*, more than 50% worse$/]);
  t.equal((await start(t, ['compare', json, json, '--worse', 0]).result()).code, 0);
});

t.test('what is no result is told', async (t) => {
  const dir = t.testdir({ 'a.html': '<html></html>', 'b.json': '{"latency":{}}', 'c.json': '{' });
  for (const name of ['a.html', 'b.json', 'c.json', 'none']) {
    const file = join(dir, name);
    const { code, err } = await start(t, ['compare', file, file]).result();
    t.equal(code, 2, name);
    t.match(err, name === 'none' ? /can't be read/ : /is no result of a run/);
  }
  t.throws(() => parse(['compare', 'a']), /compare A B: two files/);
  t.throws(() => parse(['compare', 'a', 'b', '--rate', '5']), /--rate is not of compare/);
  t.throws(() => parse(['park', '5', '--worse', '5']), /--worse is of compare/);
});
