import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import t from 'tap';

import { openingComment } from '../support/documents.js';
import { childrenOf } from '../support/processes.js';
import { contenders } from './contenders.js';
import { spread, summarize, table, verdicts } from './figures.js';
import { closedLoops, Load } from './load.js';
import { ask } from './server-memory.js';

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url));
const RUN = pathOf('./run.js');

/**
 * Runs the benchmark for a moment, without the loader of the test runner; resolves with what it
 * printed and its exit status.
 */
async function bench(args, env = {}) {
  const short =
    '--rounds 1 --seconds 0.3 --clients 200 --throwers 8 --memory-clients 1000 --settle 1'.split(
      ' '
    );
  const command = ['-u', 'NODE_OPTIONS', process.execPath, RUN, ...short, ...args];
  try {
    return {
      code: 0,
      ...(await promisify(execFile)('env', command, { env: { ...process.env, ...env } }))
    };
  } catch ({ code, stdout, stderr }) {
    return { code, stdout, stderr };
  }
}

/** The cells of the table's row that starts with `title`. */
function row(stdout, title) {
  const line = stdout.split('\n').find((each) => each.startsWith(`| ${title}`));
  return line
    ?.split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}

const number = (cell) => Number(cell.replaceAll(',', '').split(' ')[0]);

t.test('a short run gives a row of sane figures for each contender', async (t) => {
  const { code, stdout, stderr } = await bench(['--only', 'node-http,epoll']);
  t.equal(code, 0, stderr);
  const node = row(stdout, 'node:http');
  const epoll = row(stdout, 'bare epoll');
  t.match(row(stdout, 'server'), ['server', 'sprites/s']);
  for (const [, rate, , cpu] of [node, epoll]) {
    t.ok(number(rate) > 10, `${rate} sprites/s`);
    t.ok(number(cpu) > 1 && number(cpu) < 10000, `${cpu} a sprite`);
  }
  t.equal(epoll[4], '1.00', 'epoll is its own measure');
  t.ok(number(node[4]) > 1, `node:http costs ${node[4]} times epoll`);
  t.ok(number(node[5]) > 1000, `a parked client of node:http has ${node[5]} bytes`);
  t.match(node[6], /^[\d.]+ → [\d.]+ MB$/);
  t.match(node[7], / ms$/);
  t.strictSame(epoll.slice(6), ['-', '-'], 'epoll has no heap and no event loop to tell of');
});

const noNchan = contenders.nchan.missing() ?? false;

t.test('of nginx with nchan every sprite is accounted for, too', { skip: noNchan }, async (t) => {
  const { code, stdout, stderr } = await bench(['--only', 'nchan', '--memory-clients', '0']);
  t.equal(code, 0, stderr);
  t.ok(number(row(stdout, 'nginx')[1]) > 10, stdout);
});

t.test('a run as JSON has the rounds and what they sum up to', async (t) => {
  const { code, stdout, stderr } = await bench('--json --only epoll --memory-clients 0'.split(' '));
  t.equal(code, 0, stderr);
  const { rounds, summary } = JSON.parse(stdout);
  const [round] = rounds.epoll;
  t.equal(round.received, round.sent);
  t.match(round, { missing: 0, repeated: 0, refused: 0 });
  t.ok(round.sprites > 0 && round.sprites <= round.received);
  t.equal(summary.epoll.rate.median, round.rate);
});

t.test('a contender that loses a sprite is found out', async (t) => {
  const { code, stdout, stderr } = await bench(['--only', 'epoll', '--memory-clients', '0'], {
    BENCH_LOSE_EVERY: '10'
  });
  t.equal(code, 1);
  t.equal(stdout, '');
  t.match(stderr, /epoll, round 1: of \d+ sprites [1-9]\d* missing\n/);
});

t.test('a contender that ends tells nothing more of itself', async (t) => {
  const { pids, probe, stop } = await contenders['node-http'].start(false);
  t.teardown(stop);
  probe.kill('SIGSTOP');
  const asked = ask({ probe });
  process.kill(pids[0], 'SIGKILL');
  await t.rejects(asked, /^the server has ended$/);
});

t.test('a load whose engine dies is an error', async (t) => {
  const server = await contenders.epoll.start(false);
  t.teardown(server.stop);
  const load = new Load([closedLoops({ port: server.port, clients: 5, throwers: 1 })]);
  await load.park();
  const isEngine = (pid) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'swarm\n';
  process.kill(childrenOf(process.pid).find(isEngine), 'SIGKILL');
  const throwing = load.throwAll(server, { warmup: 0, seconds: 0.1 });
  await t.rejects(throwing, /engine 0 was killed by SIGKILL/);
});

t.test('a wrong option is answered with the right ones', async (t) => {
  t.match(await bench(['--only', 'apache']), { code: 2, stderr: /no contender "apache": .*epoll/ });
  t.match(await bench(['--rounds', '0']), { code: 2, stderr: /--rounds is 1 to 100/ });
  t.match(await bench(['--fast']), { code: 2, stderr: /--fast.*\n.*--help/ });
  for (const name of ['./feeds-memory.js', './workers.js']) {
    const args = ['-u', 'NODE_OPTIONS', process.execPath, pathOf(name), '--only', 'tea'];
    const refused = { code: 2, stderr: /no contender "tea": there are (poll|full), / };
    await t.rejects(promisify(execFile)('env', args), refused, name);
  }
});

t.test('every program here tells its options', async (t) => {
  const { code, stdout } = await bench(['--help']);
  t.equal(code, 0);
  for (const option of ['only', 'rounds', 'memory-clients', 'strict']) {
    t.match(stdout, `[--${option}`, `--${option}`);
  }
  for (const name of ['cache', 'feeds', 'feeds-memory', 'state', 'tls', 'torus', 'workers']) {
    const manual = openingComment(new URL(`${name}.js`, import.meta.url));
    t.match(manual, `node test/bench/${name}.js`, `${name}.js`);
  }
});

t.test('medians are in the middle', async (t) => {
  t.strictSame(spread([3, 1, 20]), { median: 3, min: 1, max: 20 });
  t.strictSame(spread([4, 1, 2, 9]), { median: 3, min: 1, max: 9 });
});

t.test('sprites is held to its figures, one by one', async (t) => {
  const run = (sprites) =>
    summarize({
      sprites: [
        {
          rate: 40000,
          cpuPerSprite: 20,
          bytesPerClient: 400,
          heapBefore: 5e6,
          heapAfter: 5e6,
          ...sprites
        }
      ],
      epoll: [{ rate: 50000, cpuPerSprite: 16 }],
      'node-http': [{ rate: 10000, cpuPerSprite: 100 }],
      nchan: [{ rate: 30000, cpuPerSprite: 25 }]
    });
  const fallen = (sprites) =>
    verdicts(run(sprites), 18000)
      .filter(({ holds }) => !holds)
      .map(({ figure }) => figure.split(' ').slice(0, 3).join(' '));
  t.equal(verdicts(run({}), 18000).length, 5);
  t.strictSame(fallen({}), []);
  t.strictSame(fallen({ cpuPerSprite: 21 }), ['CPU per sprite']);
  t.strictSame(fallen({ cpuPerSprite: 25 }), ['CPU per sprite', 'CPU per sprite']);
  t.strictSame(fallen({ rate: 39999 }), ['at least 4']);
  t.strictSame(fallen({ bytesPerClient: 513 }), ['at most 512']);
  t.strictSame(fallen({ heapAfter: 5e6 + 8 * 18000 }), ['V8 heap unchanged']);
  t.match(row(table(run({}), { sprites: 'sprites' }, 18000), 'sprites'), [
    'sprites',
    '40,000',
    '4.0',
    '20.0 µs',
    '1.25',
    '400',
    '5.0 → 5.0 MB',
    '-'
  ]);
});

/** What a benchmark prints with --json. */
async function jsonOf(file, ...args) {
  const command = ['-u', 'NODE_OPTIONS', process.execPath, pathOf(file), '--json', ...args];
  const { stdout } = await promisify(execFile)('env', [...command, '--rounds', '1']);
  return JSON.parse(stdout);
}

t.test('how late sprites and documents are', async (t) => {
  const short = ['--seconds', '1', '--warmup', '0', '--clients', '100', '--rate', '500'];
  const { rounds } = await jsonOf('./late.js', ...short);
  for (const name of ['sprites', 'epoll']) {
    const [late] = rounds[name];
    t.ok(late.count > 100 && late.p50 > 0 && late.p50 <= late['p99.9'], name);
  }
  const { took } = await jsonOf('./last-watcher.js', '--watchers', '2000');
  t.strictSame(Object.keys(took), ['0', '2']);
  for (const all of Object.values(took)) t.ok(all.length === 4 && Math.min(...all) > 0, `${all}`);
});
