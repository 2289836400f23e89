import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { dataOf } from '../../lib/report/page.js';
import { titleOf } from '../../lib/report/report-body.js';
import { judge } from '../../lib/swarm/bounds.js';
import { compare } from '../../lib/swarm/compare.js';
import { ReportFile } from '../../lib/swarm/report-file.js';
import { reportOf } from '../../lib/swarm/report.js';
import { startServer } from '../support/server.js';
import { reportFrom, resultWith, start, swarm } from '../support/swarm.js';

/** Returns a result with the figures that these tests need. */
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
  const comparison = compare(result(), result({ p99: 6, perSecond: 120 }));
  t.same(verdicts(comparison), { 'sprites a second': 'better', 'in flight, p99': 'worse' });
  t.match(comparison.rows[1], { a: 5, b: 6, words: ['5 ms', '6 ms'], change: 20 });
  const almostEqual = compare(result(), result({ p99: 5.01 }));
  t.same(verdicts(almostEqual), { 'sprites a second': 'same', 'in flight, p99': 'same' });
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
  t.equal(faults({ p99: null }, 1000), 1, 'what was not measured');
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
  const comparisonFile = join(dir, 'both.html');
  const compared = await start(t, ['compare', report, json, '--report', comparisonFile]).result();
  t.match(compared, { code: 0, out: /^in flight, p99 .* 3 times {2}worse$/m });
  t.match(compared.out, /^in flight, p50 .* the same$/m);
  const html = readFileSync(comparisonFile, 'utf8');
  t.match(html, /<span class="bad">3 times<small>worse<\/small><\/span>/);
  const charts = JSON.parse(/id="charts">(.*)<\/script>/.exec(html)[1]);
  t.same(Object.keys(charts).slice(0, 3), ['percentiles', 'rates', 'times']);
  t.equal(charts.percentiles.data.length, 3, 'both curves');
  const bounded = await start(t, ['compare', report, json, '--worse', 50, '--json']).result();
  t.equal(bounded.code, 3);
  t.match(JSON.parse(bounded.out).faults, [/^in flight, p99: .*, more than 50% worse$/]);
  t.equal((await start(t, ['compare', json, json, '--worse', 0]).result()).code, 0);
  const link = join(dir, 'link.html');
  symlinkSync(report, link);
  const before = readFileSync(report, 'utf8');
  t.match(await start(t, ['compare', report, json, '--report', link]).result(), {
    code: 2,
    out: '',
    err: /--report .*link\.html is one of the two/
  });
  t.equal(readFileSync(report, 'utf8'), before, 'it is not written over');
  const changed = (part) => JSON.stringify({ ...after, ...part });
  const unwrittenFile = join(dir, 'other.html');
  for (const [lack, text] of [
    ['target.host', changed({ target: { ...after.target, host: undefined } })],
    ['storm.track', changed({ storm: {} })],
    // Files of another program or an earlier version, and files that are no result.
    ['command', '{"latency":{"arrival":{}},"account":{},"curves":{}}'],
    ...['{', '<html></html>'].map((text) => ['command', text])
  ]) {
    writeFileSync(json, text);
    const refused = await start(t, ['compare', json, json, '--report', unwrittenFile]).result();
    t.match(refused, { code: 2, err: `b.json is no result of a run, it has no ${lack}: ` });
  }
  rmSync(json);
  const none = await start(t, ['compare', json, json, '--report', unwrittenFile]).result();
  t.match(none, { code: 2, err: /b\.json can't be read: / });
  t.notOk(existsSync(unwrittenFile));
});

const chartsIn = (html) =>
  JSON.parse(/<script type="application\/json" id="charts">(.*)<\/script>/.exec(html)[1]);

t.test('the report has the command line, the server, its CPU and memory', async (t) => {
  const server = await startServer(t);
  const args = ['throw', 50, '--rate', 100, '--time', 1, '--status-port', server.adminPort];
  // The admin port refuses other host names, so the swarm must use the address of --host.
  const file = await reportFrom(t, server, [...args, '--p99', '20s', '--host', '127.1']);
  const html = readFileSync(file, 'utf8');
  t.match(html, /Every sprite accounted for/);
  t.match(html, `sprites-swarm throw 50 --rate 100 --time 1`);
  t.match(html, /<dd>Sprites [0-9]+\.[0-9]+\.[0-9]+<\/dd>/);
  t.match(html, new RegExp(`By the kernel's account, of process \\S+ ${server.pid}`));
  t.match(html, /<b>[0-9.]+ MB<\/b><span>the server&#39;s memory/);
  t.match(html, /✓ kept<\/span> p99 /);
  t.notMatch(/<main>[^]*<\/main>/.exec(html)[0], /NaN|undefined|Infinity/);
  const { use, version, commandLine, server: serverAccount } = dataOf(html);
  t.type(serverAccount.longestStallMs, 'number');
  t.ok(serverAccount.law.holds);
  t.equal(use.by, 'kernel');
  t.match(commandLine, /--p99 20s/);
  t.match(version, /^[0-9]/);
  t.ok(use.memory > 20e6 && use.most >= use.memory && use.cores >= 0);
  t.same(Object.keys(chartsIn(html)), [
    ...['percentiles', 'rates', 'times', 'parked', 'cores', 'memory']
  ]);
});

t.test(
  "throwers keep to the server's Retry-After, and 'To know' says what bounds them",
  async (t) => {
    const server = await startServer(t, { options: { 'throw-rate': 5, 'throw-burst': 10 } });
    const file = await reportFrom(t, server, ['throw', 20, '--throwers', 2, '--time', 4]);
    const html = readFileSync(file, 'utf8');
    t.match(html, /<h2>To know<\/h2>[^]*--throw-rate bounds the [0-9]+ sprites a second, not what/);
    t.match(html, /sprites a second, as --throw-rate lets/);
    // One refusal after the burst, and another after the five throws that a second's wait allows.
    const { accepted, refusals } = dataOf(html).account;
    const refused = refusals['too-many-throws'];
    t.ok(refused >= 1 && refused <= accepted / 4, `${refused} refusals, ${accepted} accepted`);
  }
);

t.test('the report shows a fault as one, and trusts no text', async (t) => {
  const options = { command: 'park', args: ['park', '<i>'], clients: 10, throwing: 'none' };
  const facts = { opened: { clients: 9, wanted: 10, seconds: 1, perSecond: 9 } };
  const run = {
    ...resultWith({ ...options, host: '<b>', port: 1, transientPort: 1 }, facts),
    remarks: ['<script>'],
    problems: { 'torus-full': 3 },
    bounds: [{ holds: false, words: '</script>\u2028<script>' }]
  };
  t.equal(run.commandLine, "sprites-swarm park '<i>'");
  const some = { faults: [], bounds: [], account: { sent: 9, missing: 3, refusals: {} } };
  t.match(reportOf({ ...run, ...some }), /class="verdict good">No more missing than may be</);
  t.equal(titleOf({ command: 'latency', clients: 5 }), 'Quiet clients beside 5 clients');
  const html = reportOf(run);
  t.match(html, /class="verdict bad">One fault, One bound not kept/);
  t.match(html, /3 torus-full/);
  t.notMatch(html, /<b>:1|<i>'|<script><|<script>"/);
  t.equal(html.match(/<script/g).length, 3, 'its own');
  t.equal(
    dataOf(html).bounds[0].words,
    '</script>\u2028<script>',
    'the data come out as they went in'
  );
});

t.jobs = 3;

t.test('each bound holds up to itself, and none that is not known', async (t) => {
  const latency = { arrival: { p99: 5 }, probe: { p99: 7 } };
  const judgedBounds = (result, limits) =>
    judge({ latency, ...result }, limits).map(({ holds }) => holds);
  t.same(judgedBounds({ command: 'throw' }, { p99: 5 }), [true]);
  t.same(judgedBounds({ command: 'throw' }, { p99: 4.99 }), [false]);
  t.same(
    judgedBounds({ command: 'latency' }, { p99: 6 }),
    [false],
    "the probe's, where there is one"
  );
  t.same(judgedBounds({ command: 'throw' }, { p90: 5 }), [false], 'nothing was measured');
  t.same(judgedBounds({ throwing: { perSecond: 99 } }, { 'per-second': 100 }), [false]);
  t.same(judgedBounds({ throwing: { perSecond: 100 } }, { 'per-second': 100 }), [true]);
  t.same(judgedBounds({ storm: { seconds: { 100: 2 } } }, { back: 2000 }), [true]);
  t.same(judgedBounds({ storm: { seconds: { 100: null } } }, { back: 2000 }), [false]);
  t.same(judgedBounds({ account: { complete: false, missing: 0 } }, { missing: 0 }), [false]);
  t.same(judgedBounds({ server: { longestStallMs: null } }, { stall: 1000 }), [false]);
  t.same(judgedBounds({ use: null }, { cpu: 1000, memory: 1e12 }), [false, false]);
});

t.test('bounds set the exit code, and are told', async (t) => {
  const server = await startServer(t);
  const args = ['throw', 20, '--rate', 50, '--time', 0.5, '--missing', 0, '--refused', 0];
  const withinBounds = await swarm(t, server.port, [...args, '--p99', '20s', '--memory', '10G']);
  t.equal(withinBounds.code, 0, withinBounds.err);
  t.equal(withinBounds.result.bounds.length, 4);
  const exceeded = await swarm(t, server.port, [...args, '--p99', '1us']);
  t.equal(exceeded.code, 3);
  t.same(exceeded.result.faults, []);
  const quietArgs = [...args, '--port', server.port, '--p99', '1us', '--quiet'];
  const quiet = await start(t, quietArgs).result();
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

t.test('a report that is not written whole leaves the one before', async (t) => {
  const server = await startServer(t);
  const dir = t.testdir({ 'report.html': 'the one before' });
  const args = ['park', 5, '--time', 0.2, '--port', server.port, '--report', 'report.html'];
  const full = await start(t, args, { cwd: dir, bytes: 4096 }).result();
  t.match(full, { code: 2, err: /--report report\.html can't be written: EFBIG/ });
  t.equal(readFileSync(join(dir, 'report.html'), 'utf8'), 'the one before');
  t.strictSame(readdirSync(dir), ['report.html'], 'nothing else is left');
  symlinkSync('report.html', join(dir, 'link.html'));
  const link = await start(t, [...args.slice(0, -1), 'link.html'], { cwd: dir }).result();
  t.equal(link.code, 0, link.err);
  t.match(readFileSync(join(dir, 'report.html'), 'utf8'), 'All went well');
  t.strictSame(readdirSync(dir), ['link.html', 'report.html']);
});

t.test('a report whose file is removed meanwhile is there in the end, or none', async (t) => {
  const file = join(t.testdir(), 'report.html');
  for (const before of [undefined, 'the one before']) {
    if (before) writeFileSync(file, before);
    const report = new ReportFile(file);
    rmSync(file);
    report.write('the new one');
    report.close();
    t.equal(readFileSync(file, 'utf8'), 'the new one');
    rmSync(file);
  }
  const none = new ReportFile(file);
  rmSync(file);
  none.close();
  t.notOk(existsSync(file));
});
