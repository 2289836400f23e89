import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import t from 'tap';

import { contentOf } from '../../lib/report/report-body.js';
import { Account, Tally } from '../../lib/swarm/tally.js';
import { builtFile, ENGINE } from '../../lib/swarm/build.js';
import { Engine, FrameReader } from '../../lib/swarm/engine.js';
import { highestValueOf, Histogram } from '../../lib/swarm/histogram.js';
import { plan } from '../../lib/swarm/needs.js';
import { ServerWatch, useOf } from '../../lib/swarm/server-watch.js';
import { StatusReader } from '../../lib/swarm/status.js';
import { storm } from '../../lib/swarm/storm.js';
import { listening } from '../support/addresses.js';
import { childrenOf, temporary } from '../support/processes.js';
import { ROOT, startServer } from '../support/server.js';
import { bucketOf, goodRun, resultWith, start, swarm } from '../support/swarm.js';
import { startProxy } from '../support/proxies.js';
import { until } from '../support/until.js';

// The tests mostly wait.
t.jobs = 4;

const PAGE_BITS = 65536;

const sum = (counts) => Object.values(counts).reduce((all, one) => all + one, 0);

/** Checks that the figures of an account agree with each other and with the server's. */
function checkAccount(t, { account, server, latency, throwing }) {
  t.equal(account.accepted, account.delivered + account.queued + account.duplicates);
  t.equal(account.sent, account.accepted + account.refused + account.unanswered);
  t.equal(sum(account.refusals), account.refused);
  t.equal(account.received, account.accepted - account.missing + account.unconfirmed);
  const timed = latency.arrival.count + latency.probe.count;
  t.equal(timed, account.received + throwing.behind, 'each was timed once');
  t.ok(server.law.holds);
}

t.test('a percentile is the value that so many are not above', async (t) => {
  const histogram = new Histogram();
  for (let i = 1; i <= 1000; i++) histogram.add([[bucketOf(i), 1]]);
  t.same(histogram.percentiles([0, 50, 90, 99, 99.9, 100]), [1, 500, 900, 990, 999, 1000]);
  t.equal(histogram.count, 1000);
});

t.test('buckets are a thousandth of their value wide, and follow one another', async (t) => {
  for (let bucket = 0; bucket < 34000; bucket++) {
    const high = highestValueOf(bucket);
    if (bucketOf(high) !== bucket || bucketOf(high + 1) !== bucket + 1) t.fail(`bucket ${bucket}`);
    if (bucket > 0 && (high - highestValueOf(bucket - 1)) / high > 1 / 1024 && bucket > 2048) {
      t.fail(`bucket ${bucket} is too wide`);
    }
  }
  t.equal(highestValueOf(34000) > 3600e9, true, 'an hour fits');
});

function page(...bits) {
  const bytes = Buffer.alloc(PAGE_BITS / 8);
  for (const bit of bits) bytes[bit >> 3] |= 1 << (bit & 7);
  return bytes;
}

t.test('the account finds sprites that no client received, and that two did', async (t) => {
  const account = new Account();
  account.add({ set: 'accepted', of: 0, page: 0 }, page(0, 1, 2, 40000));
  account.add({ set: 'accepted', of: 1, page: 0 }, page(7));
  account.add({ set: 'received', of: 0, page: 0 }, page(0, 2));
  account.add({ set: 'received', of: 0, page: 0 }, page(1, 2));
  account.add({ set: 'received', of: 1, page: 0 }, page(7, 9));
  t.same(account.result(), { missing: 1, unconfirmed: 1, examples: ['0/40000'] });
  t.equal(account.doubles, 1, 'number 2 came to two engines');
});

t.test('a page without bytes is full', async (t) => {
  const account = new Account();
  account.add({ set: 'accepted', of: 0, page: 3 }, Buffer.alloc(0));
  t.same(account.result().missing, PAGE_BITS);
  t.equal(account.result().examples[0], `0/${3 * PAGE_BITS}`);
  account.add({ set: 'received', of: 0, page: 3 }, Buffer.alloc(0));
  t.same(account.result(), { missing: 0, unconfirmed: 0, examples: [] });
});

t.test('frames come out whole, however the pipe cuts them', async (t) => {
  const wire = Buffer.from(
    '{"type":"tick","bytes":0}\n{"type":"page","bytes":3}\na\nb' + '{"type":"z","bytes":0}\n'
  );
  for (let size = 1; size <= wire.length; size++) {
    const frames = [];
    const reader = new FrameReader(({ type }, bytes) => frames.push([type, bytes.toString()]));
    for (let at = 0; at < wire.length; at += size) reader.push(wire.subarray(at, at + size));
    t.same(
      frames,
      [
        ['tick', ''],
        ['page', 'a\nb'],
        ['z', '']
      ],
      `by ${size} bytes`
    );
  }
});

t.test('what a host must have is worked out before anything is opened', async (t) => {
  const host = { files: 20000, systemFiles: 1e7, ports: 28232, memory: 64e9 };
  const wanted = { clients: 50000, lanes: 64, ramp: 5000, address: '127.0.0.1' };
  const { engines, sources } = plan(wanted, host);
  t.equal(engines.length, 3);
  t.equal(
    engines.reduce((sum, { clients }) => sum + clients, 0),
    50000
  );
  t.same(
    engines.map(({ firstClient }) => firstClient),
    [0, 16667, 33334]
  );
  t.ok((sources * host.ports) / 2 >= 50064);
  const few = plan({ ...wanted, lanes: 4 }, host);
  t.same(
    few.engines.map(({ lanes }) => lanes),
    [2, 1, 1]
  );
  const million = plan({ ...wanted, clients: 1e6 }, { ...host, files: 3e6 });
  t.equal(million.engines.length, 1);
  t.ok(million.sources >= 1e6 / 8000);
  const away = { address: '192.0.2.1' };
  const sessions = { clients: 15000, lanes: 1 };
  t.equal(plan({ ...wanted, ...sessions }, { ...host, memory: 2e8 }).engines.length, 1);
  for (const [wantedChanges, hostChanges, message] of [
    [{ processes: 1 }, {}, /needs 50080 open files .* have 20000.*ulimit -n 50080.*--processes 3/],
    [away, {}, /ports: 50064 .*28232 ports.*sysctl -w net.ipv4.ip_local_port_range="1024 65535"/],
    [{ ...away, clients: 1e5 }, {}, /over 2 hosts/],
    [{}, { memory: 1e8 }, /memory: 50064 connections take/],
    [{ ...sessions, tls: true }, { memory: 2e8 }, /memory: 15001 connections/],
    [{}, { systemFiles: 1000 }, /sysctl -w fs.file-max=/],
    [{ clients: 2e6 }, { files: 1024 }, /files: each of 64 engines/]
  ]) {
    t.throws(() => plan({ ...wanted, ...wantedChanges }, { ...host, ...hostChanges }), { message });
  }
});

t.test('park opens its clients, holds them and leaves', async (t) => {
  const server = await startServer(t);
  t.match(await goodRun(t, server.port, 'park 300 --time 2 --processes 2'), {
    opened: { clients: 300, wanted: 300 },
    parkedByServer: 300,
    faults: [],
    interruptions: [],
    engines: { processes: 2 },
    connections: { joined: 300, left: 300, closed: 0 },
    server: { longestStallMs: null }
  });
  t.match(await server.status(), { clients: 0, parked: 0, joined: 300, left: 300 });
});

t.test('throw by the clock keeps its rate, and every sprite arrives', async (t) => {
  const server = await startServer(t);
  const result = await goodRun(t, server.port, 'throw 200 --rate 400 --time 2 --size 500');
  const due = result.account.sent + result.throwing.behind;
  // On a busy machine the two seconds may end a tenth of a second late.
  t.ok(due >= 790 && due <= 841, `${due} of 800`);
  t.match(result.account, { complete: true, missing: 0, repeated: 0, refused: 0, mangled: 0 });
  t.equal(result.server.after.thrown, result.account.accepted);
  t.equal(result.server.after.acked, result.account.accepted);
  checkAccount(t, result);
});

t.test(
  'it throws for as long as it was asked to, however late its engine hears of it',
  async (t) => {
    const server = await startServer(t);
    const program = `#!/bin/sh
      while read -r line && [ "$line" != quit ]; do
        case $line in throw*) sleep 2;; esac
        echo "$line"
      done | ${builtFile(ENGINE, 'swarm')} "$@"`;
    const engine = join(t.testdir({ engine: program }), 'engine');
    chmodSync(engine, 0o755);
    const env = { SPRITES_SWARM_ENGINE: engine };
    const args = 'throw 20 --rate 100 --time 1';
    const { account, throwing } = await goodRun(t, server.port, args, { env });
    t.ok(account.sent + throwing.behind >= 98, `${account.sent} of 100`);
  }
);

for (const throwers of [6, 1]) {
  t.test(`throw in a closed loop by ${throwers}, over two engines`, async (t) => {
    const server = await startServer(t, { options: { 'throw-rate': 0 } });
    const throwerIds = new Set();
    const proxy = await startProxy(t, server.port, ({ sprites }) => {
      for (const { sprite } of sprites) throwerIds.add(sprite.id.split('-', 3).join('-'));
    });
    const line = `throw 100 --throwers ${throwers} --time 3 --processes 2`;
    const result = await goodRun(t, proxy.port, line);
    t.equal(throwerIds.size, throwers);
    // Each thrower has thrown again; how often depends on the machine.
    t.ok(result.account.received > throwers, `${result.account.received} came`);
    t.equal(result.account.missing, 0);
    checkAccount(t, result);
  });
}

t.test('the probe has percentiles of its own', async (t) => {
  const server = await startServer(t);
  const result = await goodRun(t, server.port, 'latency 50 --rate 100 --time 2 --probe-rate 20');
  const { count } = result.latency.probe;
  t.ok(count + result.throwing.behind >= 30 && count <= 42, `${count} of 40`);
  t.equal(result.opened.wanted, 66);
  t.equal(result.throwing.rate, 120, 'its sprites are among those that were asked for');
  checkAccount(t, result);
});

t.test('a storm ends when the server counts everyone parked again', async (t) => {
  const server = await startServer(t);
  const result = await goodRun(t, server.port, 'storm 500');
  const { countedBy, seconds } = result.storm;
  t.equal(countedBy, 'server');
  t.ok(seconds[50] <= seconds[90] && seconds[90] <= seconds[99] && seconds[99] <= seconds[100]);
  t.match(await server.status(), { joined: 500 }, 'they came back to their old places');
  const { charts } = contentOf(result);
  for (const id of ['storm', 'parked']) {
    const [, parked] = charts[id].data;
    // The count may also fall to 0 at the end of the run, when all leave.
    const firstFull = parked.indexOf(500);
    t.ok(firstFull >= 0, `${id} comes from all`);
    const bottom = parked.indexOf(0, firstFull);
    t.ok(bottom > firstFull, `${id} goes down to 0`);
    t.equal(Math.max(...parked.slice(bottom)), 500, `${id} goes back to all`);
  }
});

t.test('every connection cut: the clients come back, and nothing is lost or doubled', async (t) => {
  const server = await startServer(t);
  let answers = 0;
  const proxy = await startProxy(t, server.port, () => {
    if (++answers % 60 === 0) proxy.cut();
  });
  const result = await goodRun(t, proxy.port, 'throw 60 --rate 200 --time 3');
  t.ok(result.connections.closed >= 60);
  t.ok(result.connections.resends > 0 || result.account.resent > 0);
  t.match(result.account, { missing: 0, repeated: 0 });
  t.equal(result.connections.rejoined, 0);
});

t.test(
  'a sprite that is swallowed is missing, and no client that pauses is a stranger to blame',
  async (t) => {
    const server = await startServer(t);
    let swallowed;
    let paused;
    const proxy = await startProxy(t, server.port, (answer, path) => {
      if (answer.sprites.length === 0) return;
      const client = path.slice(0, 42);
      swallowed ??= { client, id: answer.sprites[0].sprite.id };
      if (client !== swallowed.client) paused ??= client;
      if (client === paused) {
        // This client gets no sprites, and comes back long after the end.
        answer.sprites = [];
        answer.retry = 600_000;
      }
      answer.sprites = answer.sprites.filter(({ sprite }) => sprite.id !== swallowed.id);
    });
    const args = 'throw 30 --rate 100 --time 3 --drain 1 --stay';
    const { code, result } = await swarm(t, proxy.port, args);
    t.equal(result.connections.retries, 1);
    t.equal(result.server.after.clients, 30, 'it has its place all the while');
    t.equal(result.account.landedElsewhere, 0);
    const [, engine, , number] = swallowed.id.split('-');
    t.ok(result.account.missingExamples.includes(`${engine}/${number}`));
    t.match(result.faults, [/sprites are missing/]);
    t.equal(code, 1);
  }
);

t.test('clients that stay away are an interruption, whoever is there beside them', async (t) => {
  const server = await startServer(t);
  const absentPolls = new Set();
  const proxy = await startProxy(t, server.port, (answer, path) => {
    if (answer.sprites.length === 0 || absentPolls.size > 5) return;
    absentPolls.add(path);
    answer.retry = 600_000;
  });
  const args = 'latency 12 --probes 8 --rate 100 --time 3 --drain 0 --stay';
  const { result } = await swarm(t, proxy.port, args);
  t.match(result.interruptions, [{ seconds: null }], 'six of the twenty do');
});

t.test('of two servers with one port it looks at that of the address', async (t) => {
  const port = await listening(t, createServer());
  const listen = `require('net').createServer().listen(${port}, '127.0.0.2', () => console.log('${'x'.repeat(300)}'))`;
  const child = spawn(process.execPath, ['--eval', listen], {
    stdio: ['ignore', 'pipe', 'inherit']
  });
  t.teardown(() => child.kill());
  await once(child.stdout, 'data');
  const watch = new ServerWatch({ address: '127.0.0.2', port }, { metrics: async () => null });
  t.match(watch.process, new RegExp(` ${child.pid}$`));
  t.teardown(() => watch.stop());
  await watch.start(() => 0);
  t.equal(watch.version, null, 'what it runs is its command line, too long for the name of a file');
  t.match(new ServerWatch({ address: '127.0.0.1', port }).process, ` ${process.pid}`);
});

t.test('of a process that has ended nothing is known, and its memory is not 0', async (t) => {
  const script = 'cat <&3 & echo $!; exec sleep 600';
  const stdio = ['ignore', 'pipe', 'inherit', 'pipe'];
  const parent = spawn('sh', ['-c', script], { stdio });
  t.teardown(() => parent.kill());
  const pid = Number(await once(parent.stdout, 'data'));
  const matches = (one, file, pattern) =>
    pattern.test(readFileSync(`/proc/${one}/${file}`, 'utf8'));
  // A shell would wait for the end of its child; this parent does not, so the child stays a zombie.
  await until(() => matches(parent.pid, 'comm', /^sleep$/m));
  t.ok(useOf(pid).memory > 0);
  parent.stdio[3].end();
  await until(() => matches(pid, 'status', /^State:\s+Z/m));
  t.equal(useOf(pid), null);
});

/** Returns the result of a run of 100 clients that missed 7 sprites, with `facts` about the server. */
function missingSeven(facts, runMembers = {}) {
  const status = { clients: 100, thrown: 1000, acked: 1000, waiting: 0, lost: 0 };
  const allFacts = {
    opened: { clients: 100, wanted: 100 },
    serverParked: 100,
    before: { ...status, clients: 0, thrown: 0, acked: 0 },
    ...{ drained: status, after: status, ownMembers: 100, ...facts }
  };
  const options = { command: 'throw', clients: 100, throwing: 'closed', throwers: 1, seed: 1 };
  const account = { missing: 7, unconfirmed: 0, examples: ['0/1'] };
  return resultWith(options, allFacts, { account, ...runMembers });
}

t.test('a storm that the server has not noticed has no times', async (t) => {
  const stormWith = async (parked) => {
    const counts = [...parked];
    return storm({
      options: { clients: 100, time: 5, spread: 0 },
      countedBy: 'server',
      parked: async () => (counts.length > 1 ? counts.shift() : counts[0]),
      ...{ clock: () => 0, send() {}, isOver: () => false, show() {}, notice: 50 }
    });
  };
  const none = { 50: null, 90: null, 99: null, 100: null };
  const unnoticedStorm = await stormWith([100]);
  t.match(unnoticedStorm, { seconds: none, ghosts: 100, dropNoticed: null });
  const { faults } = missingSeven({ storm: unnoticedStorm });
  t.match(faults[1], /^the server did not notice that all were gone, and counted 100 parked:/);
  t.equal(faults.length, 2);
  t.match(await stormWith([100, NaN]), { seconds: none, ghosts: 100 }, 'nothing is told');
  const noticedStorm = await stormWith([100, 0, 100]);
  t.notOk(noticedStorm.ghosts);
  t.type(noticedStorm.seconds[100], 'number');
});

t.test('what a server took that began anew is not known, and no less than nothing', async (t) => {
  const sampleAt = (at, cpu) => ({ at, cpu, memory: 1e6 });
  const points = [sampleAt(0, 9), sampleAt(1, 2)];
  const watch = { source: 'metrics', process: null, points, peakMemory: 1e6, version: null };
  const useBetween = (before, after) =>
    missingSeven({ use: { before, after }, throwing: { thrown: 10 } }, { watch }).use;
  t.match(useBetween(...points), { cores: null, cpuSeconds: null, perSpriteMs: null });
  t.match(useBetween(sampleAt(0, 1), sampleAt(1, 2)), {
    cores: 1,
    cpuSeconds: 1,
    perSpriteMs: 100
  });
});

for (const command of ['park 20', 'throw 20 --rate 20']) {
  t.test(`${command}: a server that goes away for good is a fault`, async (t) => {
    const server = await startServer(t);
    const args = `${command} --time 5 --drain 0 --stay --port ${server.port} --json`;
    const child = start(t, args);
    await child.says(/^opening: 20 of 20/m);
    server.child.kill('SIGKILL');
    const { code, out } = await child.result();
    t.equal(code, 1);
    t.match(
      JSON.parse(out).faults.join(),
      /clients were down to 0 parked, and not back by the end/
    );
  });
}

t.test('clients that get no answer to their leave are a fault', async (t) => {
  const seenThrows = new Set();
  const port = await startStranger(t, ({ url, socket }, body, response) => {
    // Polls are parked, leaves get no answer, and a throw is cut off and then refused.
    if (/^.(poll|leave)/.test(url)) return undefined;
    if (!url.startsWith('/throw')) return response.end('{}');
    if (!seenThrows.has(url)) return socket.destroy(void seenThrows.add(url));
    response.statusCode = 400;
    return response.end('{}');
  });
  const { code, result } = await swarm(t, port, 'throw 5 --rate 20 --time 1 --drain 0');
  t.equal(code, 1);
  t.same(result.faults, ['5 clients could not leave: no answer said that they have']);
  const { sent, unanswered, refusals } = result.account;
  t.same([sent, refusals], [unanswered, {}], 'none is told as unanswered and as refused');
});

t.test('what a server that stalls keeps from being thrown counts in the times', async (t) => {
  const port = await startStranger(t, (request, body, response) => {
    if (!/^.(poll|throw)/.test(request.url)) response.end('{}');
  });
  const line = 'throw 5 --rate 200 --throwers 2 --time 1 --drain 0 --stay --p50 1ms';
  const { code, result } = await swarm(t, port, line);
  t.equal(code, 3, result.faults.join());
  t.ok(result.throwing.behind > 100);
  t.equal(result.latency.arrival.count, result.throwing.behind);
});

t.test('what is missing is excused by strangers alone, and only by a law that holds', async (t) => {
  const status = { clients: 101, thrown: 1000, acked: 1000, waiting: 0, lost: 0 };
  const missing = { missing: 7, landedElsewhere: 0 };
  const excusedMissing = { missing: 0, landedElsewhere: 7 };
  t.match(missingSeven({}), { account: missing, faults: [/^7 sprites are missing/] });
  t.match(missingSeven({ ownMembers: 101 }).account, missing, 'one of them left meanwhile');
  t.match(missingSeven({ drained: status }), { account: excusedMissing, faults: { length: 0 } });
  t.match(missingSeven({ drained: { ...status, acked: 995, lost: 5 } }), {
    account: { missing: 5, landedElsewhere: 2 },
    faults: [/^5 sprites are missing/]
  });
  t.match(missingSeven({ drained: { ...status, acked: 900 } }).account, missing);
  const crossed = (crossedOut) => ({
    ...status,
    clients: 100,
    acked: 1000 - crossedOut,
    crossedOut
  });
  t.match(missingSeven({ drained: crossed(7) }), {
    account: excusedMissing,
    faults: { length: 0 }
  });
  t.match(missingSeven({ drained: crossed(4) }).account, { missing: 3, landedElsewhere: 4 });
  const tally = new Tally(10);
  tally.add({ process: 0, accepted: 1001, arrival: [], answer: [], probe: [] });
  const afterRestart = missingSeven({ drained: status }, { tally });
  t.match(afterRestart, { account: missing, faults: [/^7 sprites are missing/] }, 'it began anew');
  t.match(missingSeven({ drained: null }).account, missing);
  const early = missingSeven({ serverParked: 50 }, { interrupted: true });
  t.equal(early.faults.length, 1, 'a signal came before all were seen parked');
});

t.test('a sprite that comes twice is an error, not so an answer that comes again', async (t) => {
  const server = await startServer(t);
  let first;
  let repeats = 0;
  const proxy = await startProxy(t, server.port, (answer, path) => {
    const client = path.slice(0, 42);
    const [entry] = answer.sprites;
    if (!entry) return;
    if (first && client !== first.client && repeats === 0) {
      repeats++;
      entry.sprite = first.sprite;
    }
    first ??= { client, sprite: entry.sprite };
    answer.sprites.push(entry);
  });
  const args = 'throw 10 --rate 50 --time 3 --drain 8';
  const { code, result } = await swarm(t, proxy.port, args);
  t.equal(code, 1);
  t.equal(repeats, 1);
  t.equal(result.account.repeated, 1);
  t.equal(result.account.missing, 1, 'the one whose place it took');
  t.ok(result.account.resent > 10);
});

t.test('a sprite that comes in changed is an error', async (t) => {
  const server = await startServer(t);
  let changes = 0;
  const proxy = await startProxy(t, server.port, ({ sprites: [entry] }) => {
    if (!entry || changes > 1) return;
    if (changes++ === 0) entry.sprite.pad = '';
    else entry.from = entry.from === 'left' ? 'up' : 'left';
  });
  const { code, result } = await swarm(t, proxy.port, 'throw 30 --rate 100 --time 3');
  t.equal(code, 1);
  t.ok(result.account.mangled === 2, `${result.account.mangled} of ${changes}`);
});

t.test("sprites that land at others' clients are not missing", async (t) => {
  const server = await startServer(t);
  await goodRun(t, server.port, 'park 40 --time 0.2 --stay');
  const result = await goodRun(t, server.port, 'throw 40 --rate 100 --time 3 --drain 0.5');
  t.ok(result.account.landedElsewhere > 0);
  t.equal(result.account.missing, 0);
});

for (const name of ['SIGINT', 'SIGHUP']) {
  t.test(`${name} stops it with the account so far`, async (t) => {
    const server = await startServer(t);
    const child = start(t, `throw 50 --rate 100 --time 600 --port ${server.port} --json`);
    await untilThrown(server);
    // A terminal sends the signal to all processes of the group.
    for (const pid of [...childrenOf(child.pid), child.pid]) process.kill(pid, name);
    const { code, out } = await child.result();
    const result = JSON.parse(out);
    t.equal(code, 0, result.faults.join());
    t.ok(result.interrupted);
    t.ok(result.account.received >= 20);
    t.match(await server.status(), { clients: 0, waiting: 0 });
  });
}

const untilThrown = (server) => server.until(({ thrown }) => thrown >= 20);

t.test('a second signal ends it at once', async (t) => {
  const server = await startServer(t);
  const child = start(t, `throw 50 --rate 100 --time 600 --drain 600 --port ${server.port} --json`);
  await untilThrown(server);
  server.child.kill('SIGSTOP');
  child.kill('SIGTERM');
  await child.says(/^throwing: /m);
  child.kill('SIGTERM');
  const { code, out } = await child.result();
  server.child.kill('SIGCONT');
  t.equal(code, 1);
  t.notOk(JSON.parse(out).account.complete);
});

t.test('an engine that dies ends the run, by name', async (t) => {
  const server = await startServer(t);
  const child = start(t, `park 20 --time 600 --processes 2 --port ${server.port} --json`);
  await server.until(({ parked }) => parked === 20);
  process.kill(childrenOf(child.pid)[1], 'SIGKILL');
  const { code, out } = await child.result();
  t.equal(code, 1);
  t.match(JSON.parse(out).faults[0], /engine 1 was killed by SIGKILL/);
});

t.test('an engine that does not start is told once', async (t) => {
  const server = await startServer(t);
  const env = { SPRITES_SWARM_ENGINE: join(t.testdir(), 'none') };
  const { code, result } = await swarm(t, server.port, 'park 5 --time 0.1', { env });
  t.equal(code, 1);
  t.equal(result.faults.filter((fault) => fault.startsWith('engine 0')).length, 1);
});

t.test('too few files for one process: it takes more processes', async (t) => {
  const server = await startServer(t);
  const result = await goodRun(t, server.port, 'park 400 --time 0.2', { files: 200 });
  t.ok(result.engines.processes >= 3);
  t.equal(result.parkedByServer, 400);
});

/**
 * Starts one engine, as lib/swarm does.
 *
 * @returns {{pid: number, send: (line: string) => void,
 *     until: (done: (tick: object) => boolean) => Promise<object>}} `until` resolves with the first
 *     tick for which `done` is true, and rejects when the engine ends before
 */
function startEngine(t, options) {
  let onTick = () => {};
  let last;
  const engine = new Engine(options, { tick: (tick) => onTick(tick), died() {} });
  t.teardown(() => engine.kill());
  const until = (done) =>
    new Promise((resolve, reject) => {
      onTick = (tick) => {
        last = tick;
        if (done(tick)) resolve(tick);
      };
      engine.ended.then(() => reject(new Error(`ended too early, at ${JSON.stringify(last)}`)));
    });
  return { pid: engine.pid, send: (line) => engine.send(line), until };
}

/**
 * Starts a foreign server, which answers every join with an id.
 *
 * @param {(request: object, body: string, response: object) => void} answer answers all other requests
 * @param {string} [hold] hold of its clients
 * @returns {Promise<number>} port of the server
 */
async function startStranger(t, answer, hold = '120') {
  let ids = 0;
  const server = createServer(async (request, response) => {
    const body = await text(request);
    if (request.url !== '/join') return answer(request, body, response);
    ids += 1;
    response.statusCode = 201;
    return response.end(`{"id":"c${ids}","hold":${hold}}`);
  });
  return listening(t, server);
}

t.test('a hold that no clock can count is as good as the longest', async (t) => {
  // 5/4 of this hold plus 30 s are some 2^54 s; in nanoseconds, cut to 64 bits, a microsecond.
  const port = await startStranger(t, () => {}, '3515373882033917');
  const engine = startEngine(t, { port, clients: 3, tick: 50 });
  engine.send('open');
  const { at } = await engine.until(({ parked }) => parked === 3);
  const later = await engine.until((tick) => tick.at > at + 5e8);
  t.match(later, { parked: 3, problems: {}, connections: 3 });
  engine.send('quit');
});

t.test('a server that wants to be asked in two hours is not asked meanwhile', async (t) => {
  const port = await startStranger(t, (request, body, response) => {
    response.statusCode = 503;
    response.setHeader('Retry-After', '7200').end();
  });
  const engine = startEngine(t, { port, clients: 1, tick: 50 });
  engine.send('open');
  const { at } = await engine.until(({ problems }) => problems['poll 503']);
  t.match(await engine.until((tick) => tick.at > at + 17e8), { problems: { 'poll 503': 1 } });
  engine.send('quit');
});

t.test('a client that its poll has told of its leave joins anew, and stays', async (t) => {
  let parked;
  let leave;
  const port = await startStranger(t, (request, body, response) => {
    if (request.url.startsWith('/poll')) parked = response;
    else leave = response;
  });
  const engine = startEngine(t, { port, clients: 1, tick: 50 });
  engine.send('clients 1');
  await engine.until((tick) => tick.parked === 1);
  engine.send('clients 0');
  await until(() => leave);
  parked.statusCode = 404;
  parked.end('{"type":"urn:sprites:unknown-client"}');
  await engine.until(({ members }) => members === 0);
  engine.send('clients 1');
  const { at } = await engine.until((tick) => tick.parked === 1);
  leave.statusCode = 204;
  leave.end();
  t.match(await engine.until((tick) => tick.at > at + 2e8), { members: 1, parked: 1, left: 1 });
  engine.send('quit');
});

for (const [when, status, body, unackedLosses] of [
  ['before its ack: the sprite may come again', 404, '{"type":"urn:sprites:unknown-client"}', 1],
  ['after its ack: the sprite may not', 200, '{"seq":1,"sprites":[]}', 0]
]) {
  t.test(`a client leaves ${when}`, async (t) => {
    let sprite;
    const parked = [];
    let hasAnsweredLeave = false;
    const sendSprite = (response) =>
      response.end(`{"seq":1,"sprites":[{"seq":1,"from":"left","sprite":${sprite}}]}`);
    const port = await startStranger(t, (request, thrown, response) => {
      if (request.url.startsWith('/poll/c1')) return parked.push(response);
      if (request.url.startsWith('/poll/c2?ack=0')) return sendSprite(response);
      if (request.url.startsWith('/poll')) return undefined;
      if (request.url === '/leave/c1') {
        response.on('finish', () => (hasAnsweredLeave = true));
        response.statusCode = 204;
        return response.end();
      }
      sprite ??= thrown; // on a busy machine another is thrown before the engine reads that it is to stop
      response.statusCode = 202;
      return response.end('{"state":"queued"}');
    });
    const options = { port, clients: 1, lanes: 1, throwing: 'rate', rate: 20, tick: 50 };
    const engine = startEngine(t, options);
    engine.send('clients 1');
    await engine.until((tick) => tick.parked === 1);
    engine.send('throw 60000');
    await until(() => sprite !== undefined);
    engine.send('stop');
    sendSprite(parked[0]);
    await until(() => parked.length === 2);
    engine.send('clients 0');
    await until(() => hasAnsweredLeave);
    parked[1].statusCode = status;
    parked[1].end(body);
    t.match(await engine.until(({ members }) => members === 0), { unackedLosses, left: 1 });
    engine.send('clients 1');
    t.match(await engine.until(({ doubles }) => doubles === 1), { unackedLosses });
    engine.send('quit');
  });
}

t.test('what an engine keeps of what a server sends is bounded', async (t) => {
  let firstSprite;
  const port = await startStranger(t, (request, body, response) => {
    if (request.url.startsWith('/throw')) {
      firstSprite ??= JSON.parse(body);
      response.statusCode = 202;
      return response.end('{"state":"delivered"}');
    }
    // Polls are parked until there is a sprite to copy.
    if (firstSprite === undefined) return undefined;
    if (request.url.startsWith('/poll/c1?ack=0')) {
      // Each sprite needs a page of the account of its own, 8 KB.
      const sprites = Array.from({ length: 1000 }, (_, n) => {
        const id = firstSprite.id.replace(/[0-9]+$/, 65536 * n);
        return { seq: n + 1, from: 'up', sprite: { ...firstSprite, id } };
      });
      return response.end(JSON.stringify({ seq: 1000, sprites }));
    }
    if (request.url.startsWith('/poll/c1?')) return undefined;
    response.writeHead(200, { 'Content-Length': 2 ** 24 });
    return response.write(Buffer.alloc(300_000, ' '));
  });
  const options = { port, clients: 11, lanes: 1, throwing: 'rate', rate: 20, tick: 50 };
  const engine = startEngine(t, { ...options, held: 1e6 });
  engine.send('open');
  await engine.until(({ parked }) => parked === 11);
  engine.send('throw 60000');
  await until(() => firstSprite !== undefined);
  engine.send('drop');
  engine.send('back 0');
  // A million bytes have room for 122 pages, and for the pieces of three answers of ten.
  const full = await engine.until(({ foreign, badAnswers }) => foreign > 0 && badAnswers >= 7);
  t.equal(full.foreign, 1000 - 121, 'one page is of what was accepted');
  engine.send('quit');
});

t.test('whatever a stranger says of itself, what is taken of it are figures', async (t) => {
  const figures =
    '"thrown":"1","acked":{},"waiting":null,"lost":-1,"clients":"9","longestStallMs":[]';
  const badStatus = `{${figures},"parked":1e999,"\\u001b]0;x":1,"__proto__":{"parked":1},"rows":"\u009b2J"}`;
  let status;
  const port = await startStranger(t, (request, body, response) => {
    if (request.url === '/status') return status(response);
    // Polls are parked; all other requests get 404.
    if (request.url.startsWith('/poll')) return undefined;
    response.statusCode = 404;
    return response.end();
  });
  const reader = new StatusReader({ address: '127.0.0.1', host: '127.0.0.1', port });
  t.teardown(() => reader.close());
  for (const [statusText, expected] of [
    ...['null', '[]', '7', '<html>', '', '"x"'].map((body) => [body, null]),
    [badStatus, { rows: '\u009b2J' }],
    ['{"parked":7,"uptime":"x"}', { parked: 7, uptime: 'x' }]
  ]) {
    status = (response) => response.end(statusText);
    t.strictSame(await reader.read(), expected, statusText);
  }
  status = (response) => response.end(badStatus);
  const run = start(t, `throw 2 --rate 5 --time 0.3 --drain 0 --port ${port}`);
  const { code, err, out } = await run.result();
  t.equal(code, 0, err);
  t.notMatch(out, /NaN|undefined|\[object|the server's law/);
  const hasControlCodes = ['\u001b', '\u009b'].some((one) => out.includes(one));
  t.notOk(hasControlCodes, 'nothing that steers a terminal');

  status = (response) => response.end('x'.repeat(2 ** 21));
  await t.rejects(reader.read());
  let timer;
  status = (response) => {
    response.write('{');
    timer = setInterval(() => response.write(' '), 100);
  };
  await t.rejects(reader.read(), 'one that drips has no end');
  clearInterval(timer);
});

t.test('a kept connection that ends in the moment of a question is no answer', async (t) => {
  const usedSockets = new Set();
  const port = await startStranger(t, ({ socket }, body, response) => {
    // Like a server that closes an idle connection.
    if (usedSockets.has(socket)) return socket.destroy();
    usedSockets.add(socket);
    return response.end('{"parked":7}');
  });
  const reader = new StatusReader({ address: '127.0.0.1', host: '127.0.0.1', port });
  t.teardown(() => reader.close());
  for (let i = 1; i <= 3; i += 1) {
    t.strictSame(await reader.read(), { parked: 7 });
    t.equal(usedSockets.size, i);
  }
});

t.test('a first answer that comes after --wait is none', async (t) => {
  const port = await startStranger(t, (request, body, response) => {
    const timer = setTimeout(() => response.end('{}'), 5000);
    response.on('close', () => clearTimeout(timer));
  });
  const outcome = await start(t, `park 5 --wait 0 --port ${port}`).result();
  t.match(outcome, { code: 2, out: '', err: /^sprites-swarm: nothing answers at .* in time/ });
});

t.test('a signal while the server has not answered ends it, and leaves no report', async (t) => {
  let requests = 0;
  const port = await startStranger(t, () => {
    requests += 1;
  });
  const report = join(t.testdir(), 'report.html');
  const child = start(t, `park 5 --wait 600 --port ${port} --report ${report}`);
  await until(() => requests > 0);
  child.kill('SIGTERM');
  t.match(await child.result(), { code: null, signal: 'SIGTERM', out: '' });
  t.notOk(existsSync(report));
});

t.test('a signal while an engine starts ends it', async (t) => {
  const server = await startServer(t);
  // This engine does not ignore signals, like a Node that is still starting. A terminal signals all processes.
  const engine = join(t.testdir({ engine: '#!/bin/sh\nexec cat >/dev/null\n' }), 'engine');
  chmodSync(engine, 0o755);
  const env = { SPRITES_SWARM_ENGINE: engine };
  const child = start(t, `park 5 --json --port ${server.port}`, { env });
  const [pid] = await until(() => childrenOf(child.pid).length > 0 && childrenOf(child.pid));
  for (const one of [pid, child.pid]) process.kill(one, 'SIGINT');
  t.match(await child.result(), { code: null, signal: 'SIGINT', out: '' });
});

t.test('a signal between two phases ends the next one as well', async (t) => {
  let statusRequests = 0;
  let child;
  const port = await startStranger(t, (request, body, response) => {
    if (request.url.startsWith('/poll')) return undefined;
    response.statusCode = request.url === '/status' ? 200 : 404;
    statusRequests += request.url === '/status' ? 1 : 0;
    // All clients are opened, but the server counts none as parked.
    if (statusRequests === 2) child.kill('SIGINT');
    return response.end('{"parked":0}');
  });
  child = start(t, `throw 5 --rate 20 --time 2 --json --port ${port}`);
  const { code, out } = await child.result();
  t.equal(code, 0);
  t.match(JSON.parse(out), { interrupted: true, account: { sent: 0 } });
});

t.test('a server that does not say how many are parked has not said that none is', async (t) => {
  const parked = new Set();
  let dropped;
  let skippedCounts;
  const port = await startStranger(t, (request, body, response) => {
    if (request.url.startsWith('/poll')) {
      parked.add(response);
      if (dropped) skippedCounts ??= dropped.length;
      response.on('close', () => {
        parked.delete(response);
        dropped ??= [null, 5, 5];
      });
      return undefined;
    }
    const reported = dropped?.length > 0 ? dropped.shift() : parked.size;
    response.statusCode = request.url === '/status' && reported !== null ? 200 : 404;
    return response.end(`{"parked":${reported}}`);
  });
  await goodRun(t, port, 'storm 5 --stay');
  t.equal(skippedCounts, 0, 'it was asked until none was parked, before they came back');
});

t.test('where it can say nothing the run goes on, and the exit code tells of it', async (t) => {
  const server = await startServer(t);
  const report = join(t.testdir(), 'report.html');
  const run = `park 5 --time 0.2 --port ${server.port} --report ${report}`;
  const inShell = (where, args) => {
    const words = [process.execPath, join(ROOT, 'bin/sprites-swarm'), ...args.split(' ')];
    const child = spawn('env', ['-u', 'NODE_OPTIONS', 'sh', '-c', `"$0" "$@" ${where}`, ...words], {
      stdio: ['ignore', 'ignore', 'pipe']
    });
    return Promise.all([once(child, 'close'), text(child.stderr)]);
  };
  t.strictSame(await inShell('>/dev/full 2>/dev/full', run), [[2, null], '']);
  t.match(readFileSync(report, 'utf8'), 'All went well');
  t.strictSame(await inShell('2>/dev/full', run), [[0, null], '']);
  t.strictSame(await inShell('>/dev/full', '--help'), [[2, null], '']);
});

function setFiles(pid, files) {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${files}:`]);
}

t.test('lanes without files try again by their backoff, and come up when there are', async (t) => {
  const server = await startServer(t, { options: { 'throw-rate': 0 } });
  const lanes = 8;
  const engine = startEngine(t, {
    port: server.port,
    clients: 5,
    lanes,
    throwing: 'rate',
    rate: 200,
    // Below the timeout of an answer, 30 s: a lane that waits for this timeout is too late.
    limit: 25,
    tick: 50
  });
  engine.send('open');
  await engine.until(({ parked }) => parked === 5);
  setFiles(engine.pid, 4);
  engine.send('throw 60000');
  const failed = ({ connectErrors }) => connectErrors['Too many open files'] ?? 0;
  const starved = await engine.until((tick) => failed(tick) >= lanes * 4);
  t.ok(failed(starved) < lanes * 8, `${failed(starved)} tries: with pauses in between`);
  t.match(starved, { connections: 5, accepted: 0, pending: lanes });
  setFiles(engine.pid, 1000);
  const up = await engine.until(({ connections }) => connections === 5 + lanes);
  await engine.until(({ accepted }) => accepted >= up.accepted + lanes);
  engine.send('quit');
});

t.test('where no server is, it says so', async (t) => {
  const { code, err } = await start(t, 'park 5 --port 1 --wait 0').result();
  t.equal(code, 2);
  t.match(err, /nothing answers at 127\.0\.0\.1:1 \(ECONNREFUSED\)/);
  const server = await startServer(t);
  const admin = `park 5 --port ${server.port} --status-port 1 --wait 0`;
  const closed = await start(t, admin).result();
  t.match(closed, {
    code: 2,
    err: /nothing answers at 127\.0\.0\.1:1 .*: bin\/sprites --admin-port 1\n/
  });
  const unknown = await start(t, 'park 5 --host no-such-host.invalid').result();
  t.equal(unknown.code, 2);
  t.match(unknown.err, /no address for "no-such-host.invalid"/);
});

t.test('the engine is built when it is first wanted', async (t) => {
  const tree = temporary(t);
  for (const file of ['package.json', 'lib/swarm', 'lib/base']) {
    cpSync(join(ROOT, file), join(tree, file), { recursive: true });
  }
  for (const source of ENGINE.sources) {
    mkdirSync(join(tree, source), { recursive: true });
    writeFileSync(join(tree, source, 'one.cc'), '');
  }
  const home = join(tree, ENGINE.home);
  const log = join(tree, 'builds');
  // A stub of node-gyp, which fails if the tree has a file `fails`.
  mkdirSync(join(tree, 'node_modules/node-gyp/bin'), { recursive: true });
  writeFileSync(
    join(tree, 'node_modules/node-gyp/bin/node-gyp.js'),
    `const { appendFileSync, existsSync, mkdirSync } = require('node:fs');
    appendFileSync('${log}', process.argv.slice(2).join(' ') + '\\n');
    mkdirSync('${home}/build', { recursive: true });
    process.exit(existsSync('${tree}/fails') ? 1 : 0);`
  );
  const builds = () => (existsSync(log) ? readFileSync(log, 'utf8').match(/^rebuild -C /gm) : []);
  const build = async (more = {}) => {
    const child = spawn(process.execPath, [join(tree, 'lib/swarm/build.js')], {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: '/',
      ...more
    });
    let output = '';
    child.stdout.on('data', (text) => (output += text));
    child.stderr.on('data', (text) => (output += text));
    const [code] = await once(child, 'close');
    return { code, said: output };
  };

  writeFileSync(join(tree, 'fails'), '');
  t.match(await build(), {
    code: 1,
    said: /^building .*\nCommand failed.*\n.*is not built: see above\n$/
  });
  rmSync(join(tree, 'fails'));

  t.equal(builds().length, 1);
  const outcomes = await Promise.all([build(), build()]);
  t.match(outcomes, [{ code: 0 }, { code: 0 }]);
  t.equal(builds().length, 2, 'two that want it at once build it once');
  t.same(await build(), { code: 0, said: '' }, 'nothing is said when it is there');
  t.equal(builds().length, 2);

  const source = join(home, 'one.cc');
  utimesSync(source, Date.now() / 1000 + 60, Date.now() / 1000 + 60);
  t.match(await build(), { code: 0, said: /^building / }, 'again when a source is newer');
  t.equal(builds().length, 3);

  // Root may write anywhere, so the program runs as the user nobody, which may read this folder.
  const asNobody = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {};
  chmodSync(tree, 0o755);
  chmodSync(home, 0o555);
  t.match(await build(asNobody), {
    code: 1,
    said: /cannot be written to: run "npm run build:swarm" as its owner\n$/
  });
  chmodSync(home, 0o755);
  t.equal(builds().length, 3);
});
