import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import t from 'tap';

import { openingComment } from '../support/documents.js';
import { childrenOf } from '../support/processes.js';
import { contenders } from './contenders.js';
import { spread, summarize, table, residentVerdict, verdicts } from './figures.js';
import { closedLoops, Load } from './load.js';
import { askProbe } from './usage.js';

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url));

const MILLION = pathOf('./million');
const OWN_KERNEL = pathOf('./own-kernel');

/** Runs a command without the test runner's loader, also in the Node processes that it starts. */
async function run(command, env = {}) {
  const options = { env: { ...process.env, ...env } };
  try {
    return {
      code: 0,
      ...(await promisify(execFile)('env', ['-u', 'NODE_OPTIONS', ...command], options))
    };
  } catch ({ code, stdout, stderr }) {
    return { code, stdout, stderr };
  }
}

const SHORT =
  '--rounds 1 --seconds 0.3 --clients 200 --throwers 8 --memory-clients 1000 --settle 1';

/** Runs the benchmark briefly. */
const bench = (args, env) =>
  run([process.execPath, pathOf('./run.js'), ...SHORT.split(' '), ...args], env);

/** Returns the cells of the table's row that starts with `title`. */
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
  const answer = askProbe({ probe });
  process.kill(pids[0], 'SIGKILL');
  await t.rejects(answer, /^the server has ended$/);
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
    const refused = await run([process.execPath, pathOf(name), '--only', 'tea']);
    t.match(refused, { code: 2, stderr: /no contender "tea": there are (poll|full), / }, name);
  }
});

t.test('every program here tells its options', async (t) => {
  const { code, stdout } = await bench(['--help']);
  t.equal(code, 0);
  for (const option of ['only', 'rounds', 'memory-clients', 'strict']) {
    t.match(stdout, `[--${option}`, `--${option}`);
  }
  for (const name of ['cache', 'feeds', 'feeds-memory', 'state', 'torus', 'workers']) {
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
  const brokenBounds = (sprites) =>
    verdicts(run(sprites), 18000)
      .filter(({ holds }) => !holds)
      .map(({ figure }) => figure.split(' ').slice(0, 3).join(' '));
  t.equal(verdicts(run({}), 18000).length, 5);
  t.strictSame(brokenBounds({}), []);
  t.strictSame(brokenBounds({ cpuPerSprite: 21 }), ['CPU per sprite']);
  t.strictSame(brokenBounds({ cpuPerSprite: 25 }), ['CPU per sprite', 'CPU per sprite']);
  t.strictSame(brokenBounds({ rate: 39999 }), ['at least 4']);
  t.strictSame(brokenBounds({ bytesPerClient: 513 }), ['at most 512']);
  t.strictSame(brokenBounds({ 'p99.9': 5.1 }), ['p99.9 of sprites']);
  t.strictSame(brokenBounds({ heapAfter: 5e6 + 8 * 18000 }), ['V8 heap unchanged']);
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

/** Returns a benchmark's output with --json. */
async function jsonOf(file, ...args) {
  const { stdout } = await run([
    process.execPath,
    pathOf(file),
    '--json',
    ...args,
    '--rounds',
    '1'
  ]);
  return JSON.parse(stdout);
}

t.test('how late sprites and documents are', async (t) => {
  const short = ['--seconds', '3', '--warmup', '0', '--clients', '100', '--rate', '500'];
  const { rounds } = await jsonOf('./run.js', ...short, '--only', 'sprites,epoll');
  for (const name of ['sprites', 'epoll']) {
    const [late] = rounds[name];
    t.ok(late.count > 100 && late.p50 > 0 && late.p50 <= late['p99.9'], name);
  }
  const { took } = await jsonOf('./last-watcher.js', '--watchers', '2000');
  t.strictSame(Object.keys(took), ['0', '2']);
  for (const all of Object.values(took)) t.ok(all.length === 4 && Math.min(...all) > 0, `${all}`);
});

/** test/bench/million, with few clients. */

t.test('where the file limit is too low it says so at once, with the ways out', async (t) => {
  const limited = ['bash', '-c', 'ulimit -n 5000 && exec "$0" --clients 10000', MILLION];
  const { code, stdout, stderr } = await run(limited);
  t.equal(code, 2);
  t.equal(stdout, '');
  t.match(stderr, /may open 5000 files, and the server needs 12000/);
  t.match(stderr, /^ {2}sysctl -p \S+deploy\/sysctl\.conf$/m);
  t.match(stderr, /ulimit -n 12000 && /);
  t.match(stderr, /million --own-kernel --clients 10000$/m);
});

t.test('where memory is too little it says so at once', async (t) => {
  const { code, stderr } = await run(['node', `${MILLION}.js`, '--clients', '900000000']);
  t.equal(code, 2);
  t.match(stderr, /900,000,000 clients and their server take some 6,300,000.0 MB/);
});

t.test('a wrong option is named', async (t) => {
  t.match(await run([MILLION, '--clients', 'many']), { code: 2, stderr: /--clients/ });
  t.match(await run([MILLION, '--clients', '10', '--speed', '9']), { code: 2, stderr: /--speed/ });
  const size = ['--clients', '10', '--time', '1', '--most-resident', '10M'];
  t.match(await run([MILLION, ...size]), { code: 2, stderr: /--most-resident/ });
  t.match(await run([OWN_KERNEL, '--speed', '9', 'true']), { code: 2, stderr: /--speed/ });
  t.match(await run([OWN_KERNEL]), { code: 2, stderr: /which command\?/ });
});

t.test('the same run with few clients holds them, throws, and reports', async (t) => {
  const runOptions = ['--clients', '200', '--rate', '200', '--time', '4'];
  const [asJson, asText] = await Promise.all([
    run([MILLION, ...runOptions, '--json']),
    run([MILLION, ...runOptions, '--most-resident', '10'])
  ]);
  t.equal(asJson.code, 0, asJson.stderr);
  const { server, kernel, status, swarm, verdict } = JSON.parse(asJson.stdout);
  t.equal(status.clients, 200);
  t.match(swarm.account, { missing: 0, repeated: 0 });
  t.equal(swarm.account.received, swarm.account.accepted);
  t.ok(swarm.account.received > 0);
  t.ok(server.resident > 1e7 && server.peak >= server.resident);
  t.ok(server.heap > 1e6 && server.heap < 1e8);
  t.equal(kernel.sockets, 400, 'both ends of each connection are here');
  t.same(verdict, { resident: server.resident, most: 600e6, holds: true, counts: false });
  // Too much memory of the server is an error, and the only one.
  t.match(asText, {
    code: 1,
    stdout: /^missing +0$[^]*^DOES NOT HOLD: server resident size at most 10.0 MB: /m
  });
});

t.test('from a million clients on the verdict counts', async (t) => {
  t.same(residentVerdict({ clients: 1e6 }, 600e6), {
    resident: 600e6,
    most: 600e6,
    holds: true,
    counts: true
  });
  t.match(residentVerdict({ clients: 1e6 }, 600e6 + 1), { holds: false, counts: true });
  t.match(residentVerdict({ clients: 1e6 - 1 }, 600e6 + 1), { holds: false, counts: false });
  t.match(residentVerdict({ clients: 2, mostResident: 5e6 }, 5e6 + 1), {
    holds: false,
    counts: true
  });
});
