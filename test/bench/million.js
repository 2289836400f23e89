/**
 * The measurement of test/bench/million, which starts it after a check of the machine's limits. It starts the server
 * and the swarm, samples both from outside, and reports.
 *
 *     server up ─▶ sample ─▶ swarm opens all ─▶ sample, repeatedly ─▶ throws end ─▶ report
 *
 * A sample is the server's resident size and the kernel's memory, from /proc. V8's heap can be measured only after a
 * garbage collection, so it is measured twice: before the clients come, and when all have come.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, release, tmpdir, version } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

import { certificate } from '../support/certificate.js';
import { takeValues } from '../support/documents.js';
import { ROOT } from '../support/launch.js';
import { start, startSprites } from './contenders.js';
import { tellHeld, tenth, verdictOf, whole } from './figures.js';
import { ask, residentBytes, table } from './usage.js';

/** Interval between two samples, and between two lines of progress, in milliseconds. */
const LOOK = 1000;
const SAY = 10000;

/** Least memory of a client with both ends of its connection on this machine, in bytes. */
const MEMORY_PER_CLIENT = 7000;

/** Share of parked clients that counts as all: some clients are always just being answered. */
const MOST_OF_ALL = 0.99;

/** Ends the program, for wrong options or a machine that is too small. */
function refuse(line) {
  say(line);
  process.exit(2);
}

function readOptions() {
  const { mostResident, ...options } = takeValues(import.meta.url, {
    ...{ clients: [1e6, 1], rate: [10000, 1], time: [60, 1], hold: [120, 5], ramp: [20000, 1] },
    // 0: not given.
    ...{ processes: [0], 'most-resident': [0], workers: [0], tls: false, json: false }
  });
  return { ...options, mostResident: mostResident > 0 ? mostResident * 1e6 : undefined };
}

/** Returns the kernel's memory: all memory that is neither free nor a page of a process or a file. */
function kernelMemory() {
  const { MemTotal, MemFree, Active, Inactive, Unevictable } = table('/proc/meminfo');
  return MemTotal - MemFree - Active - Inactive - Unevictable;
}

function look({ pids }) {
  return { resident: residentBytes(pids), kernel: kernelMemory() };
}

function say(line) {
  process.stderr.write(`million: ${line}\n`);
}

async function startServer({ clients, hold, workers, tls }) {
  const folder = mkdtempSync(join(tmpdir(), 'million-'));
  const by = tls ? { 'tls-port': 0, ...certificate(folder) } : {};
  const server = await startSprites({ capacity: clients, hold, workers, ...by });
  rmSync(folder, { recursive: true });
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${server.tlsPort ?? server.port}`;
  return { ...server, url };
}

/** @returns {Promise<object>} the swarm's output with --json, and its exit code */
async function runSwarm(url, { clients, rate, time, ramp, processes }) {
  const words = ['throw', clients, '--stay', '--json', '--url', url, '--drain', 60, '--wait', 60];
  if (url.startsWith('https:')) words.push('--insecure');
  if (processes > 0) words.push('--processes', processes);
  words.push('--rate', rate, '--time', time, '--ramp', ramp);
  const command = [process.execPath, `${ROOT}bin/sprites-swarm`, ...words];
  const child = start(null, command, { stdio: ['ignore', 'pipe', 'pipe'] });
  // Through a pipe the swarm prints lines and no progress bar.
  child.stderr.pipe(process.stderr, { end: false });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (out.trim() === '') throw new Error(`the swarm ended with ${code} and no result`);
  return { code, ...JSON.parse(out) };
}

/** Samples the server until the swarm has ended; resolves with the last sample of all clients. */
async function watch(server, { clients }, ended) {
  const seen = { full: null, fullFor: 0, heap: null, peak: 0 };
  let done = false;
  const over = () => {
    done = true;
  };
  ended.then(over, over);
  let said = 0;
  for (let since = 0; !done; await Promise.race([sleep(LOOK), ended])) {
    // The server may be too busy to answer.
    const counts = await server.status().catch(() => null);
    if (!counts) continue;
    if (!since && Date.now() - said > SAY) {
      say(`${counts.clients} of ${clients} clients`);
      said = Date.now();
    }
    if (counts.parked < clients * MOST_OF_ALL || done) continue;
    since ||= Date.now();
    seen.full = { ...look(server), counts };
    seen.fullFor = (Date.now() - since) / 1000;
    if (!seen.heap) {
      seen.heap = (await ask(server, { collect: true })).heapUsed;
      say(`all ${clients} are there`);
    }
  }
  seen.peak = table(`/proc/${server.pids[0]}/status`).VmHWM;
  return seen;
}

/** Computes the figures of the samples. */
function figures(options, before, seen, swarm) {
  const { clients } = options;
  const { full } = seen;
  const bytes = full.kernel - before.kernel;
  const sockets = 2 * clients; // Both ends of each connection are on this machine.
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
    kernel: { release: release(), version: version(), sockets, bytes, perSocket: bytes / sockets },
    status: full.counts,
    verdict: verdictOf(options, full.resident),
    swarm
  };
}

const megabytes = (bytes) => `${tenth.format(bytes / 1e6)} MB`;

/** Returns the lines of the report, by their titles. */
const linesOf = ({ clients, heldSeconds, server, kernel, swarm }) => ({
  clients:
    `${whole.format(clients)} on one server process, opened in ${whole.format(swarm.opened.seconds)} s, ` +
    `held for ${whole.format(heldSeconds)} s`,
  'server resident size':
    `${megabytes(server.resident)} (${megabytes(server.residentBefore)} without clients: ` +
    `${whole.format(server.bytesPerClient)} bytes a client; peak ${megabytes(server.peak)})`,
  'V8 heap in use': `${megabytes(server.heap)} (${megabytes(server.heapBefore)} without clients)`,
  'kernel memory':
    `${megabytes(kernel.bytes)} for ${whole.format(kernel.sockets)} sockets, both ends of each connection: ` +
    `${whole.format(kernel.perSocket)} bytes a socket`,
  'sprites thrown':
    `${whole.format(swarm.account.accepted)} in ${whole.format(swarm.throwing.seconds)} s, ` +
    `${whole.format(swarm.account.refused)} refused`,
  'sprites delivered':
    `${whole.format(swarm.account.received)}, ${swarm.latency.arrival.p50} ms after the throw at the median, ` +
    `${swarm.latency.arrival.p99} ms at p99`,
  missing: whole.format(swarm.account.missing),
  repeated: whole.format(swarm.account.repeated),
  kernel: `Linux ${kernel.release}, ${kernel.version}; ${availableParallelism()} CPU; Node ${process.version}`
});

/** Prints the report, and whether the server's memory is within its bound, if it has one. */
function tell(all, { json }) {
  if (json) return console.log(JSON.stringify(all, null, 2));
  for (const [of, words] of Object.entries(linesOf(all))) console.log(`${of.padEnd(22)}${words}`);
  const { counts, holds, most, resident } = all.verdict;
  const figure = `server resident size at most ${megabytes(most)}`;
  tellHeld({}, counts ? [{ figure, holds, value: megabytes(resident) }] : []);
}

function checkMemory({ clients }) {
  const wanted = clients * MEMORY_PER_CLIENT;
  const available = table('/proc/meminfo').MemAvailable;
  if (available < wanted) {
    refuse(
      `${whole.format(clients)} clients and their server take some ${megabytes(wanted)}, ` +
        `and ${megabytes(available)} are available: take a larger machine, or fewer --clients`
    );
  }
}

async function main() {
  const options = readOptions();
  checkMemory(options);
  const server = await startServer(options);
  const { heapUsed } = await ask(server, { collect: true });
  const before = { ...look(server), heap: heapUsed };
  const swarm = runSwarm(server.url, options);
  const seen = await watch(server, options, swarm);
  const { code, ...result } = await swarm;
  for (const fault of result.faults) say(fault);
  if (!seen.full) throw new Error('at no time were all clients there');
  const all = figures(options, before, seen, result);
  tell(all, options);
  const { counts, holds } = all.verdict;
  const ofVerdict = counts && !holds ? 1 : 0;
  process.exit((code ?? 1) || ofVerdict); // A swarm that was killed has no code.
}

main().catch((error) => {
  say(error.message);
  process.exit(1);
});
