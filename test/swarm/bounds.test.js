import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { judge } from '../../lib/swarm/bounds.js';
import { parse } from '../../lib/swarm/options.js';
import { startServer } from '../support/server.js';
import { start, swarm } from '../support/swarm.js';

t.jobs = 3;

t.test('a bound is read with its unit, and only where there is such a figure', async (t) => {
  const bounded = (...args) => parse(['throw', '10', ...args]);
  t.match(bounded('--p99', '5ms', '--max', '1.5s', '--p50', '800us', '--memory', '1.5G'), {
    p99: 5,
    max: 1500,
    p50: 0.8,
    memory: 1.5e9
  });
  t.match(bounded('--p99.9', '20ms', '--missing', '0'), { 'p99.9': 20, missing: 0 });
  for (const bad of ['5', 'ms', '-5ms', '5 ms', '5h']) {
    t.throws(
      () => bounded(`--p99=${bad}`),
      /--p99 .*: must be a time with its unit, as 800us/,
      bad
    );
  }
  t.throws(() => bounded('--missing', '1.5'), /--missing 1\.5: must be a whole number/);
  t.throws(() => parse(['park', '5', '--p99', '5ms']), /--p99: this park throws nothing/);
  t.throws(() => bounded('--back', '5s'), /--back: this throw is no storm/);
  t.equal(parse(['storm', '5', '--back', '5s']).back, 5000);
});

t.test('each bound holds up to itself, and none that is not known', async (t) => {
  const latency = { arrival: { p99: 5 }, probe: { p99: 7 } };
  const held = (result, asked) => judge({ latency, ...result }, asked).map(({ holds }) => holds);
  t.same(held({ command: 'throw' }, { p99: 5 }), [true]);
  t.same(held({ command: 'throw' }, { p99: 4.99 }), [false]);
  t.same(held({ command: 'latency' }, { p99: 6 }), [false], "the probe's, where there is one");
  t.same(held({ command: 'throw' }, { p90: 5 }), [false], 'nothing was measured');
  t.same(held({ throwing: { perSecond: 99 } }, { 'per-second': 100 }), [false]);
  t.same(held({ throwing: { perSecond: 100 } }, { 'per-second': 100 }), [true]);
  t.same(held({ storm: { seconds: { 100: 2 } } }, { back: 2000 }), [true]);
  t.same(held({ storm: { seconds: { 100: null } } }, { back: 2000 }), [false]);
  t.same(held({ account: { complete: false, missing: 0 } }, { missing: 0 }), [false]);
  t.same(held({ server: { longestStallMs: null } }, { stall: 1000 }), [false]);
  t.same(held({ use: null }, { cpu: 1000, memory: 1e12 }), [false, false]);
});

t.test('bounds set the exit code, and are told', async (t) => {
  const server = await startServer(t);
  const args = ['throw', 20, '--rate', 50, '--time', 0.5, '--missing', 0, '--refused', 0];
  const kept = await swarm(t, server.port, [...args, '--p99', '20s', '--memory', '10G']);
  t.equal(kept.code, 0, kept.err);
  t.equal(kept.result.bounds.length, 4);
  const passed = await swarm(t, server.port, [...args, '--p99', '1us']);
  t.equal(passed.code, 3);
  t.same(passed.result.faults, []);
  const quiet = await start(t, [
    ...args,
    '--port',
    server.port,
    '--p99',
    '1us',
    '--quiet'
  ]).result();
  t.match(quiet, { code: 3, out: '', err: /NOT KEPT: p99 .*, at most 1 µs asked/ });
});

t.test('a report that cannot be written is told before the run', async (t) => {
  const server = await startServer(t);
  const file = join(t.testdir(), 'no-such-folder', 'report.html');
  const args = ['park', 5, '--time', 0.2, '--port', server.port];
  const { code, out, err } = await start(t, [...args, '--report', file]).result();
  t.equal(code, 2);
  t.match(err, /--report .*report\.html can't be written: ENOENT/);
  t.equal(out, '');
  t.equal((await server.status()).joined, 0, 'no client was opened');
  t.equal((await start(t, [...args, '--report', t.testdir()]).result()).code, 2, 'a folder');
});

t.test('a run that does not begin leaves a report as it was, or none', async (t) => {
  const dir = t.testdir();
  const file = join(dir, 'report.html');
  const args = ['park', 5, '--port', 1, '--wait', 0, '--report', file];
  t.equal((await start(t, args).result()).code, 2);
  t.notOk(existsSync(file));
  writeFileSync(file, 'the one before');
  t.equal((await start(t, args).result()).code, 2);
  t.equal(readFileSync(file, 'utf8'), 'the one before');
});
