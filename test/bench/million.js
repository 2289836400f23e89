/**
 * The measurement that test/bench/million starts, once that has checked the machine's limits: it starts the server
 * and the swarm, watches both from outside, and reports.
 *
 *     server up ─▶ look ─▶ swarm opens all ─▶ look, again and again ─▶ throws end ─▶ report
 *
 * A look is the server's resident size and the kernel's memory, from /proc; V8's heap can be measured only after a
 * garbage collection; so that is done twice: before the clients come, and when all are there.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, release, tmpdir, version } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { certificate } from '../support/certificate.js';
import { valuesOf } from '../support/documents.js';
import { verdictOf } from './figures.js';
import { portOf, spritesArgs } from './contenders.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const SWARM = join(HERE, '..', '..', 'bin', 'sprites-swarm');

/** Milliseconds between two looks, and between two lines that say how far it is. */
const LOOK = 1000;
const SAY = 10000;

/** Bytes of memory that a client takes with both its ends on this machine, at the least. */
const MEMORY_PER_CLIENT = 7000;

/** Share of the clients that has to be parked to count as all: some are always just being answered. */
const MOST_OF_ALL = 0.99;

/** How many slab caches get a line of their own. */
const CACHES = 6;

class UsageError extends Error {}

function readOptions() {
  const string = (value) => ({ type: 'string', default: value });
  let values;
  try {
    values = valuesOf({
      clients: string('1000000'),
      rate: string('10000'),
      time: string('60'),
      hold: string('120'),
      ramp: string('20000'),
      processes: { type: 'string' },
      'most-resident': { type: 'string' },
      tls: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false }
    });
  } catch (error) {
    throw new UsageError(error.message);
  }
  const number = (name, least) => {
    const value = Number(values[name]);
    if (!(value >= least)) throw new UsageError(`--${name} wants a number from ${least}`);
    return value;
  };
  return {
    clients: number('clients', 1),
    rate: number('rate', 1),
    time: number('time', 1),
    hold: number('hold', 5),
    ramp: number('ramp', 1),
    processes: values.processes,
    mostResident:
      values['most-resident'] === undefined ? undefined : number('most-resident', 1) * 1e6,
    tls: values.tls,
    json: values.json
  };
}

/** A file of /proc whose lines are `name: number unit`, as bytes or plain numbers. */
function table(file) {
  const pattern = /^([\w()]+):\s+(\d+)( kB)?$/gm;
  return Object.fromEntries(
    [...readFileSync(file, 'utf8').matchAll(pattern)].map(([, name, value, unit]) => [
      name,
      Number(value) * (unit ? 1024 : 1)
    ])
  );
}

/** Bytes of each slab cache, where this user may know them. */
function slabCaches() {
  let lines;
  try {
    lines = readFileSync('/proc/slabinfo', 'utf8').trim().split('\n').slice(2);
  } catch {
    return {};
  }
  return Object.fromEntries(
    lines.map((line) => {
      const fields = line.split(/\s+/);
      return [fields[0], Number(fields.at(-2)) * Number(fields[5]) * 4096];
    })
  );
}

/** The kernel's memory: all that is neither free nor a process's or a file's page. */
function kernelMemory() {
  const { MemTotal, MemFree, Active, Inactive, Unevictable, Slab } = table('/proc/meminfo');
  const [, pages] = /^TCP: .* mem (\d+)$/m.exec(readFileSync('/proc/net/sockstat', 'utf8'));
  return {
    total: MemTotal - MemFree - Active - Inactive - Unevictable,
    slab: Slab,
    buffers: Number(pages) * 4096,
    caches: slabCaches()
  };
}

function look(pid) {
  return { resident: table(`/proc/${pid}/smaps_rollup`).Rss, kernel: kernelMemory() };
}

/** Asks probe.js inside the server. */
async function ask(server) {
  const answer = once(server, 'message');
  server.send({ collect: true });
  return (await answer)[0];
}

function say(line) {
  process.stderr.write(`million: ${line}\n`);
}

async function startServer({ clients, hold, tls }) {
  const folder = mkdtempSync(join(tmpdir(), 'million-'));
  const by = tls ? { 'tls-port': 0, ...certificate(folder) } : {};
  const args = spritesArgs({ capacity: clients, hold, ...by });
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  const ports = await new Promise((resolve, reject) => {
    const found = {};
    server.once('exit', (code) => reject(new Error(`the server stopped at once, with ${code}`)));
    createInterface({ input: server.stdout }).on('line', (line) => {
      found.plain ??= portOf(line);
      found.tls ??= /https:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1];
      if (found.plain && (found.tls || !tls)) resolve(found);
    });
  });
  rmSync(folder, { recursive: true });
  const url = `http://127.0.0.1:${ports.plain}`;
  return { server, url, clientsUrl: tls ? `https://127.0.0.1:${ports.tls}` : url };
}

function startSwarm(url, { clients, rate, time, ramp, processes }) {
  const args = [
    SWARM,
    'throw',
    String(clients),
    '--url',
    url,
    ...(url.startsWith('https:') ? ['--insecure'] : []),
    '--rate',
    String(rate),
    '--time',
    String(time),
    '--ramp',
    String(ramp),
    '--drain',
    '60',
    '--wait',
    '60',
    '--stay',
    '--json',
    ...(processes ? ['--processes', processes] : [])
  ];
  const swarm = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  swarm.stderr.pipe(process.stderr, { end: false }); // A pipe: the swarm prints lines and no progress bar.
  const ended = Promise.all([text(swarm.stdout), once(swarm, 'close')]).then(([out, [code]]) => ({
    out,
    code
  }));
  return { swarm, ended };
}

/** The server's counts, or null where it is too busy to tell. */
async function status(url) {
  try {
    const response = await fetch(`${url}/status`, { signal: AbortSignal.timeout(LOOK * 5) });
    return await response.json();
  } catch {
    return null;
  }
}

/** Looks at the server until the swarm has ended; resolves with the last look at all clients. */
async function watch({ server, url }, { clients }, ended) {
  const seen = { full: null, fullFor: 0, heap: null, peak: 0 };
  let done = false;
  ended.finally(() => {
    done = true;
  });
  let said = 0;
  for (let since = 0; !done; await Promise.race([sleep(LOOK), ended])) {
    const counts = await status(url);
    if (!counts) continue;
    if (!since && Date.now() - said > SAY) {
      say(`${counts.clients} of ${clients} clients`);
      said = Date.now();
    }
    if (counts.parked < clients * MOST_OF_ALL || done) continue;
    since ||= Date.now();
    seen.full = { ...look(server.pid), counts };
    seen.fullFor = (Date.now() - since) / 1000;
    if (!seen.heap) {
      seen.heap = (await ask(server)).heapUsed;
      say(`all ${clients} are there`);
    }
  }
  seen.peak = table(`/proc/${server.pid}/status`).VmHWM;
  return seen;
}

/** What was seen, as figures. */
function figures(options, before, seen, swarm) {
  const { clients } = options;
  const { full } = seen;
  const growth = (name) => full.kernel[name] - before.kernel[name];
  const sockets = 2 * clients; // Both ends of a connection are here.
  const caches = Object.entries(full.kernel.caches)
    .map(([name, bytes]) => [name, (bytes - (before.kernel.caches[name] ?? 0)) / sockets])
    .sort(([, a], [, b]) => b - a)
    .slice(0, CACHES);
  return {
    clients,
    heldSeconds: seen.fullFor,
    server: {
      resident: full.resident,
      residentBefore: before.resident,
      peak: seen.peak,
      bytesPerClient: (full.resident - before.resident) / clients,
      heap: seen.heap,
      heapBefore: before.heap
    },
    kernel: {
      release: release(),
      version: version(),
      sockets,
      bytes: growth('total'),
      perSocket: growth('total') / sockets,
      slabPerSocket: growth('slab') / sockets,
      buffersPerSocket: growth('buffers') / sockets,
      caches: Object.fromEntries(caches)
    },
    status: full.counts,
    verdict: verdictOf(options, full.resident),
    swarm
  };
}

const whole = (value) => Math.round(value).toLocaleString('en-US');
const megabytes = (bytes) =>
  `${(bytes / 1e6).toLocaleString('en-US', { maximumFractionDigits: 1 })} MB`;

function report({ clients, heldSeconds, server, kernel, verdict, swarm }) {
  const { account, opened, latency, throwing } = swarm;
  const caches = Object.entries(kernel.caches)
    .map(([name, bytes]) => `${name} ${whole(bytes)}`)
    .join(', ');
  const rows = [
    [
      'clients',
      `${whole(clients)} on one server process, opened in ${whole(opened.seconds)} s, ` +
        `held for ${whole(heldSeconds)} s`
    ],
    [
      'server resident size',
      `${megabytes(server.resident)} (${megabytes(server.residentBefore)} ` +
        `without clients: ${whole(server.bytesPerClient)} bytes a client; peak ${megabytes(server.peak)})`
    ],
    [
      'V8 heap in use',
      `${megabytes(server.heap)} (${megabytes(server.heapBefore)} without clients)`
    ],
    [
      'kernel memory',
      `${megabytes(kernel.bytes)} for ${whole(kernel.sockets)} sockets, both ends of ` +
        `each connection: ${whole(kernel.perSocket)} bytes a socket`
    ],
    ['  of it slab', `${whole(kernel.slabPerSocket)} bytes a socket${caches ? `: ${caches}` : ''}`],
    ['  of it data', `${whole(kernel.buffersPerSocket)} bytes a socket`],
    [
      'sprites thrown',
      `${whole(account.accepted)} in ${whole(throwing.seconds)} s, ` +
        `${whole(account.refused)} refused`
    ],
    [
      'sprites delivered',
      `${whole(account.received)}, ${latency.arrival.p50} ms after the throw at ` +
        `the median, ${latency.arrival.p99} ms at p99`
    ],
    ['missing', whole(account.missing)],
    ['repeated', whole(account.repeated)],
    [
      'kernel',
      `Linux ${kernel.release}, ${kernel.version}; ${availableParallelism()} CPU; ` +
        `Node ${process.version}`
    ]
  ];
  const lines = rows.map(([name, value]) => `${name.padEnd(22)}${value}`);
  if (verdict.counts) {
    lines.push(
      `${verdict.holds ? 'holds' : 'DOES NOT HOLD'}: server resident size at most ` +
        megabytes(verdict.most)
    );
  }
  return lines.join('\n');
}

function checkMemory({ clients }) {
  const wanted = clients * MEMORY_PER_CLIENT;
  const available = table('/proc/meminfo').MemAvailable;
  if (available < wanted) {
    throw new UsageError(
      `${whole(clients)} clients and their server take some ${megabytes(wanted)}, ` +
        `and ${megabytes(available)} are available: take a larger machine, or fewer --clients`
    );
  }
}

async function main() {
  const options = readOptions();
  checkMemory(options);
  const running = await startServer(options);
  const { server, clientsUrl } = running;
  let swarm;
  process.once('exit', () => {
    server.kill('SIGKILL');
    swarm?.swarm.kill('SIGTERM');
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));
  const { heapUsed } = await ask(server);
  const before = { ...look(server.pid), heap: heapUsed };
  swarm = startSwarm(clientsUrl, options);
  const seen = await watch(running, options, swarm.ended);
  const { out, code } = await swarm.ended;
  if (!out.trim()) throw new Error(`the swarm ended with ${code} and no result`);
  const result = JSON.parse(out);
  for (const fault of result.faults) say(fault);
  if (!seen.full) throw new Error('at no time were all clients there');
  const all = figures(options, before, seen, result);
  console.log(options.json ? JSON.stringify(all, null, 2) : report(all));
  const { counts, holds } = all.verdict;
  const ofVerdict = counts && !holds ? 1 : 0;
  process.exit((code ?? 1) || ofVerdict); // A swarm that was killed has no code.
}

main().catch((error) => {
  say(error.message);
  process.exit(error instanceof UsageError ? 2 : 1);
});
