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
import { availableParallelism, release, version } from 'node:os';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

import { certificate } from '../support/certificate.js';
import { takeValues } from '../support/documents.js';
import { ROOT } from '../support/launch.js';
import { atExit, temporary } from '../support/processes.js';
import { start, startSprites } from './contenders.js';
import { printVerdicts, tenth, residentVerdict, whole } from './figures.js';
import { askProbe, residentBytes, readValues } from './usage.js';

/** Interval between two samples, and between two lines of progress, in milliseconds. */
const SAMPLE_MS = 1000;
const PROGRESS_MS = 10000;

/** Least memory of a client with both ends of its connection on this machine, in bytes. */
const MEMORY_PER_CLIENT = 7000;

/** Share of parked clients that counts as all: some clients are always just being answered. */
const SHARE_OF_ALL = 0.99;

/** Ends the program, for wrong options or a machine that is too small. */
function exitRefused(line) {
  printLine(line);
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
  const { MemTotal, MemFree, Active, Inactive, Unevictable } = readValues('/proc/meminfo');
  return MemTotal - MemFree - Active - Inactive - Unevictable;
}

function takeSample({ pids }) {
  return { resident: residentBytes(pids), kernel: kernelMemory() };
}

function printLine(line) {
  process.stderr.write(`million: ${line}\n`);
}

async function startServer({ clients, hold, workers, tls }) {
  const tlsOptions = tls ? { 'tls-port': 0, ...certificate(temporary(atExit)) } : {};
  const server = await startSprites({ capacity: clients, hold, workers, ...tlsOptions });
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${server.tlsPort ?? server.port}`;
  return { ...server, url };
}

/** @returns {Promise<object>} the swarm's output with --json, and its exit code */
async function runSwarm(url, { clients, rate, time, ramp, processes }) {
  const args = ['throw', clients, '--stay', '--json', '--url', url, '--drain', 60, '--wait', 60];
  if (url.startsWith('https:')) args.push('--insecure');
  if (processes > 0) args.push('--processes', processes);
  args.push('--rate', rate, '--time', time, '--ramp', ramp);
  const command = [process.execPath, `${ROOT}bin/sprites-swarm`, ...args];
  const child = start(null, command, { stdio: ['ignore', 'pipe', 'pipe'] });
  // Through a pipe the swarm prints lines and no progress bar.
  child.stderr.pipe(process.stderr, { end: false });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (out.trim() === '') throw new Error(`the swarm ended with ${code} and no result`);
  return { code, ...JSON.parse(out) };
}

/** Samples the server until the swarm has ended; resolves with the last sample of all clients. */
async function sampleUntilEnd(server, { clients }, ended) {
  const samples = { full: null, fullFor: 0, heap: null, peak: 0 };
  let hasEnded = false;
  const setEnded = () => {
    hasEnded = true;
  };
  ended.then(setEnded, setEnded);
  let printedAt = 0;
  for (let fullSince = 0; !hasEnded; await Promise.race([sleep(SAMPLE_MS), ended])) {
    // The server may be too busy to answer.
    const counts = await server.status().catch(() => null);
    if (!counts) continue;
    if (!fullSince && Date.now() - printedAt > PROGRESS_MS) {
      printLine(`${counts.clients} of ${clients} clients`);
      printedAt = Date.now();
    }
    if (counts.parked < clients * SHARE_OF_ALL || hasEnded) continue;
    fullSince ||= Date.now();
    samples.full = { ...takeSample(server), counts };
    samples.fullFor = (Date.now() - fullSince) / 1000;
    if (!samples.heap) {
      samples.heap = (await askProbe(server, { collect: true })).heapUsed;
      printLine(`all ${clients} are there`);
    }
  }
  samples.peak = readValues(`/proc/${server.pids[0]}/status`).VmHWM;
  return samples;
}

/** Computes the figures of the samples. */
function figures(options, before, samples, swarm) {
  const { clients } = options;
  const { full } = samples;
  const bytes = full.kernel - before.kernel;
  const sockets = 2 * clients; // Both ends of each connection are on this machine.
  return {
    clients,
    heldSeconds: samples.fullFor,
    server: {
      resident: full.resident,
      residentBefore: before.resident,
      peak: samples.peak,
      bytesPerClient: (full.resident - before.resident) / clients,
      heap: samples.heap,
      heapBefore: before.heap
    },
    kernel: { release: release(), version: version(), sockets, bytes, perSocket: bytes / sockets },
    status: full.counts,
    verdict: residentVerdict(options, full.resident),
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
function printReport(report, { json }) {
  if (json) return console.log(JSON.stringify(report, null, 2));
  for (const [title, words] of Object.entries(linesOf(report)))
    console.log(`${title.padEnd(22)}${words}`);
  const { counts, holds, most, resident } = report.verdict;
  const figure = `server resident size at most ${megabytes(most)}`;
  printVerdicts({}, counts ? [{ figure, holds, value: megabytes(resident) }] : []);
}

function checkMemory({ clients }) {
  const neededBytes = clients * MEMORY_PER_CLIENT;
  const available = readValues('/proc/meminfo').MemAvailable;
  if (available < neededBytes) {
    exitRefused(
      `${whole.format(clients)} clients and their server take some ${megabytes(neededBytes)}, ` +
        `and ${megabytes(available)} are available: take a larger machine, or fewer --clients`
    );
  }
}

async function main() {
  const options = readOptions();
  checkMemory(options);
  const server = await startServer(options);
  const { heapUsed } = await askProbe(server, { collect: true });
  const before = { ...takeSample(server), heap: heapUsed };
  const swarm = runSwarm(server.url, options);
  const samples = await sampleUntilEnd(server, options, swarm);
  const { code, ...result } = await swarm;
  for (const fault of result.faults) printLine(fault);
  if (!samples.full) throw new Error('at no time were all clients there');
  const report = figures(options, before, samples, result);
  printReport(report, options);
  const { counts, holds } = report.verdict;
  const verdictCode = counts && !holds ? 1 : 0;
  process.exit((code ?? 1) || verdictCode); // A swarm that was killed has no code.
}

main().catch((error) => {
  printLine(error.message);
  process.exit(1);
});
