/**
 * Restarts without loss, measured.
 *
 *     node test/bench/restart.js [--clients 10000] [--rate 2000] [--restarts 3] [--drain 2]
 *                                [--hold 120] [--workers 0]
 *                                                  a swarm throws while the server is restarted
 *     node test/bench/restart.js --idle 1000000    idle clients are saved and loaded, no sockets
 *
 * The first:
 *
 *     server up ─▶ swarm opens, throws ─▶ SIGTERM ─▶ drain, save, exit ─▶ load, listen ─▶ parked
 *                                            └───────────── three times ───────────────────┘
 *
 * The swarm keeps the account: a sprite that was thrown and not received is missing. The server's own counts go on over the
 * restarts, since they are in the state. Exit code 0 when
 * nothing is missing; 1 when something is; 2 when there was no run.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { readOptions } from '../../lib/operator/options.js';
import { Pool } from '../../lib/torus/pool.js';
import { launch } from '../support/launch.js';
import { answerHelp, takeNumbers } from '../support/documents.js';
import { until } from '../support/until.js';
import { MEASURED } from './contenders.js';
import { runSwarm } from './load.js';
import { statusAt } from './usage.js';

answerHelp(import.meta.url);

const SELF = fileURLToPath(import.meta.url);

/** Share of the clients that has to be parked to count as all: some are just being answered. */
const MOST_OF_ALL = 0.99;

/** Seconds the swarm throws before the first restart, between two, and after the last. */
const PAUSE = 4;

/** Seconds everything may take before it counts as failed. */
const PATIENCE = 120;

const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(2)} s`;
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
const say = (line) => process.stdout.write(`${line}\n`);

const readArguments = () =>
  takeNumbers(
    import.meta.url,
    {
      ...{ clients: [10000, 4], rate: [2000, 1], restarts: [3, 1], drain: [2], hold: [120, 5] },
      ...{ workers: [0], idle: [0] }
    },
    { save: { type: 'string', default: '' }, load: { type: 'string', default: '' } }
  );

// ---- A throwing swarm, and a server that is restarted -------------------------------------------

/** Starts the server; resolves when it listens. */
async function startServer(options) {
  const { child, ended, errors, listening } = launch(options);
  return { child, ended, errors, ...(await listening) };
}

async function look(port) {
  try {
    return await statusAt(port);
  } catch {
    return null; // it is down, or just going
  }
}

/** Looks at /status until `holds(status)`. */
async function untilStatus(port, holds, what) {
  let status;
  const seen = async () => {
    status = await look(port);
    return status !== null && holds(status) && status;
  };
  return until(seen, () => `${what} (${JSON.stringify(status)})`, PATIENCE);
}

/** Sends SIGTERM, waits for the end, starts the server again, and waits until nearly all clients are parked. */
async function restart(server, options, clients) {
  const before = performance.now();
  server.child.kill('SIGTERM');
  const [code] = await server.ended;
  if (code !== 0) throw new Error(`the server ended with ${code}: ${Buffer.concat(server.errors)}`);
  const down = performance.now();
  const bytes = statSync(options.state).size;
  const next = await startServer({ ...options, port: server.port });
  const up = performance.now();
  const { waiting } = (await look(next.port)) ?? {};
  await untilStatus(next.port, ({ parked }) => parked >= clients * MOST_OF_ALL, '99% parked again');
  const parked = performance.now();
  say(
    `  stopped and saved in ${seconds(down - before)} (${megabytes(bytes)}, ${waiting} sprites ` +
      `waiting), listening ${seconds(up - down)} later, 99% parked ${seconds(parked - up)} after ` +
      `that: ${seconds(parked - before)} in all`
  );
  return next;
}

async function throwing({ clients, rate, restarts, drain, hold, workers }, directory) {
  const options = {
    ...MEASURED,
    capacity: clients + 1000,
    hold,
    drain,
    state: join(directory, 'state'),
    'log-level': 'warn',
    ...(workers > 0 && { workers, 'transient-port': 0 })
  };
  let server = await startServer(options);
  if (workers > 0) options['transient-port'] = server.transientPort;
  // The swarm throws until it gets SIGINT; then it ends in order.
  const { child: swarm, result } = runSwarm(['throw', clients], {
    ...{ rate, time: 3600, port: server.port, drain: 20 },
    ...(workers > 0 && { 'transient-port': server.transientPort })
  });
  try {
    await untilStatus(server.port, ({ thrown }) => thrown > rate, 'the swarm throws');
    say(`${clients} clients throw ${rate} sprites a second.`);
    for (let i = 1; i <= restarts; i += 1) {
      await sleep(PAUSE * 1000);
      say(`Restart ${i}:`);
      server = await restart(server, options, clients);
    }
    await sleep(PAUSE * 1000);
    swarm.kill('SIGINT');
    return report(await result, await look(server.port));
  } finally {
    swarm.kill('SIGKILL');
    server.child.kill('SIGTERM');
    await Promise.allSettled([result, server.ended]);
  }
}

function report(result, status) {
  const { account, faults, remarks, connections, problems, refusals, connectErrors } = result;
  say(`The swarm's account: ${JSON.stringify(account)}`);
  say(`Its connections: ${JSON.stringify({ ...connections, problems, refusals, connectErrors })}`);
  for (const remark of remarks) say(`Remark: ${remark}`);
  for (const fault of faults) say(`FAULT: ${fault}`);
  const { thrown, acked, waiting, lost } = status;
  say(
    `The server, over all its lives: thrown ${thrown} = acked ${acked} + waiting ${waiting} ` +
      `+ lost ${lost}`
  );
  say(faults.length === 0 ? 'Nothing is missing.' : 'Something is wrong.');
  return faults.length === 0 ? 0 : 1;
}

// ---- Idle clients by the million, in a process of their own each time ---------------------------

/** Runs in the first child process: clients join, and their state is saved. */
function saveIdle(count, path) {
  const pool = new Pool({ ...readOptions([]), capacity: count, lease: 3600 });
  const begun = performance.now();
  for (let i = 0; i < count; i += 1) {
    if (pool.join().outcome !== 'ok') throw new Error(`the join ${i} was refused`);
  }
  const joined = performance.now();
  const { bytes } = pool.save(path, Number.MAX_SAFE_INTEGER);
  const saved = performance.now();
  pool.close();
  say(JSON.stringify({ bytes, joining: joined - begun, saving: saved - joined }));
}

/** Runs in the second child process: the state is loaded into a new pool. */
function loadIdle(count, path) {
  const pool = new Pool({ ...readOptions([]), capacity: count, lease: 3600 });
  const before = process.memoryUsage.rss();
  const begun = performance.now();
  const { clients } = pool.load(path, Number.MAX_SAFE_INTEGER);
  const loading = performance.now() - begun;
  const resident = process.memoryUsage.rss() - before;
  pool.close();
  say(JSON.stringify({ clients, loading, resident }));
}

async function inChild(args) {
  const child = spawn(process.execPath, [SELF, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [told, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  if (code !== 0) throw new Error(`a process ended with ${code}`);
  return JSON.parse(told);
}

async function idle(count, directory) {
  const path = join(directory, 'state');
  const saved = await inChild(['--idle', String(count), '--save', path]);
  say(
    `${count} idle clients joined in ${seconds(saved.joining)}, and were saved in ` +
      `${seconds(saved.saving)}, with fsync: ${megabytes(saved.bytes)}`
  );
  const loaded = await inChild(['--idle', String(count), '--load', path]);
  say(`Loaded in ${seconds(loaded.loading)}, ${megabytes(loaded.resident)} of memory`);
  return loaded.clients === count ? 0 : 1;
}

// -------------------------------------------------------------------------------------------------

async function main() {
  const options = readArguments();
  if (options.save !== '') return saveIdle(options.idle, options.save);
  if (options.load !== '') return loadIdle(options.idle, options.load);
  const directory = mkdtempSync(join(tmpdir(), 'sprites-restart-'));
  try {
    return options.idle > 0
      ? await idle(options.idle, directory)
      : await throwing(options, directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`restart: ${error.stack}\n`);
  process.exitCode = 2;
}
