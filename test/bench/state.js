/**
 * What a state of a million clients costs: how large a snapshot is, how long the loop stands still while snapshots are made,
 * and how long a start takes after a crash. `npm run bench:state`.
 *
 *     node test/bench/state.js [--clients 1000000] [--snapshots 6] [--json] [--strict]
 *
 *     join all ─▶ throw, a snapshot every few seconds: turns.c tells of each turn
 *              ─▶ again: a minute's throws, as fast as they go ─▶ SIGKILL ─▶ start
 *
 * Clients here have no connection of their own: none polls, and sprites wait in mailboxes. So no million of
 * open files is needed; and snapshots are larger than those of a server whose clients ack. The state lies in the folder for
 * temporary files: TMPDIR says on which disk.
 *
 * Exit status: 0, or with --strict 1 where a turn is longer than it is held to; 2 on a wrong option.
 */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { during, withTurns } from './contenders.js';
import { fail } from './figures.js';
import { statusAt } from './usage.js';
import { answerHelp, takeValues } from '../support/documents.js';
import { launch, SPRITES, UNBOUND } from '../support/launch.js';
import { until } from '../support/until.js';

answerHelp(import.meta.url);

/** Milliseconds that the longest turn is held to. */
const HELD_TURN = 10;

/** Throws a second, and seconds from one snapshot to the next. */
const RATE = 2000;
const EVERY = 5;

/** Connections that all requests go by, and requests under way on each. */
const CONNECTIONS = 16;
const DEPTH = 32;

/** Bytes of a sprite, without what tells it from others. */
const PADDING = 'x'.repeat(200);

const EDGES = ['left', 'right', 'up', 'down'];

/** Milliseconds between two looks at what is due. */
const STEP = 2;

/** Seconds everything may take before it counts as failed. */
const PATIENCE = 120;

/** No lease ends while it runs, and one address may do everything. */
const OPTIONS = {
  lease: 3600,
  drain: 0,
  'admin-port': 0,
  'throw-rate': 0,
  ...UNBOUND,
  'mailbox-memory': '1G'
};

/** Starts a server; gives it when it listens, with how many milliseconds that took. */
async function startServer(options, turns) {
  const preload = turns ? [withTurns(), `TURNS=${turns}`] : [];
  const begun = performance.now();
  const server = launch(options, { command: [...preload, ...SPRITES] });
  const stop = async () => {
    server.child.kill('SIGKILL');
    await server.ended;
  };
  try {
    const ports = await server.listening;
    const milliseconds = performance.now() - begun;
    const status = () => statusAt(ports.adminPort);
    return { ...ports, milliseconds, status, errors: server.errors, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function connect(port) {
  const socket = net.connect(port, '127.0.0.1').setNoDelay(true);
  await once(socket, 'connect');
  return socket;
}

/** Sends `count` requests over some connections, a few ahead on each; `see(answers)` has their text. */
async function askAll(port, count, requestOf, see = () => {}) {
  let asked = 0;
  const one = async () => {
    const socket = await connect(port);
    let open = 0;
    let rest = '';
    const ask = () => {
      let out = '';
      for (; open < DEPTH && asked < count; open += 1, asked += 1) out += requestOf(asked);
      if (out !== '') socket.write(out);
      return open > 0;
    };
    ask();
    for await (const chunk of socket) {
      rest += chunk.toString('latin1');
      // An answer ends with its JSON object; here none has another object inside it.
      const end = rest.lastIndexOf('}') + 1;
      const whole = rest.slice(0, end);
      rest = rest.slice(end);
      const [bad] = /HTTP\/1\.1 [45][^]*?\}/.exec(whole) ?? [];
      if (bad) throw new Error(bad);
      open -= whole.split('HTTP/1.1 20').length - 1;
      see(whole);
      if (!ask()) return;
    }
    throw new Error('the server has closed a connection');
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
}

const JOIN = 'POST /join HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';

async function joinAll(port, count) {
  const ids = [];
  await askAll(
    port,
    count,
    () => JOIN,
    (answers) => {
      for (const [, id] of answers.matchAll(/"id":"([^"]+)"/g)) ids.push(id);
    }
  );
  return ids;
}

function throwOf(ids, i) {
  const id = ids[Math.floor(Math.random() * ids.length)];
  const body = `{"n":${i},"padding":"${PADDING}"}`;
  return (
    `POST /throw/${id}/${EDGES[i % EDGES.length]} HTTP/1.1\r\nHost: x\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  );
}

/** Throws by the clock for some seconds. */
async function throwFor(port, ids, seconds) {
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => connect(port)));
  for (const socket of sockets) socket.resume();
  const begun = performance.now();
  let thrown = 0;
  for (let passed = 0; passed < seconds; passed = (performance.now() - begun) / 1000) {
    for (; thrown < passed * RATE; thrown += 1) {
      sockets[thrown % CONNECTIONS].write(throwOf(ids, thrown));
    }
    await pause(STEP);
  }
  for (const socket of sockets) socket.destroy();
}

/** The turns that turns.c has written since a time. */
function turnsIn(file, since) {
  return readFileSync(file, 'latin1')
    .trim()
    .split('\n')
    .map((line) => line.split(' ').map(Number))
    .filter(([at]) => at >= since)
    .map(([, took, own, waited]) => ({ took, own, waited, asleep: took - own - waited }));
}

const NO_TURN = { took: 0, own: 0, waited: 0, asleep: 0 };
const most = (turns, of) => turns.reduce((a, b) => (of(b) > of(a) ? b : a), NO_TURN);

/** Milliseconds of the clock that turns.c reads. */
const now = () => Number(process.hrtime.bigint()) / 1e6;

/** Bytes of the journals beside a state. */
function journalBytes(folder) {
  const names = readdirSync(folder).filter((name) => name.includes('.journal-'));
  return names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

/**
 * @returns {Promise<object>} turns in milliseconds, each {took, own, waited, asleep}: `longest` on the
 *     clock, `dearest` by its own CPU, `slow` how many took more than HELD_TURN; `snapshots` made
 *     meanwhile; `snapshotBytes`; and `start`: `journalBytes` of a minute's work, `listening` and, of
 *     that, `reading` the state, in milliseconds
 */
async function measure({ clients, snapshots: wanted }) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-state-'));
  const state = join(folder, 'state');
  const file = join(folder, 'turns');
  const options = { ...OPTIONS, state, capacity: clients + 1000, 'journal-bytes': '1G' };
  const withServer = async (every, turns, work) =>
    during(await startServer({ ...options, 'snapshot-every': every }, turns), work);
  try {
    const { ids, turns, snapshots } = await withServer(EVERY, file, async (server) => {
      const ids = await joinAll(server.port, clients);
      // By then the work that joining leaves behind is done, and the first snapshot is made.
      await until(async () => (await server.status()).snapshots > 0, 'a snapshot', PATIENCE);
      const before = await server.status();
      const since = now();
      await throwFor(server.port, ids, wanted * EVERY);
      const turns = turnsIn(file, since);
      return { ids, turns, snapshots: (await server.status()).snapshots - before.snapshots };
    });
    const [thrown, snapshotBytes] = await withServer(3600, null, async (server) => {
      const { size } = statSync(state);
      await askAll(server.port, RATE * 60, (i) => throwOf(ids, i));
      return [(await server.status()).thrown, size];
    });
    const bytes = journalBytes(folder);
    const start = await withServer(3600, null, async ({ status, errors, milliseconds }) => {
      const taken = Buffer.concat(errors)
        .toString()
        .split('\n')
        .find((line) => line.includes('state taken'));
      const after = await status();
      if (after.thrown !== thrown || after.clients !== clients)
        throw new Error('something is lost');
      const { milliseconds: reading } = JSON.parse(taken);
      return { journalBytes: bytes, listening: milliseconds, reading };
    });
    return {
      longest: most(turns, ({ took }) => took),
      dearest: most(turns, ({ own }) => own),
      slow: turns.filter(({ took }) => took > HELD_TURN).length,
      ...{ snapshots, snapshotBytes, start }
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function show(clients, { longest, dearest, slow, snapshots, snapshotBytes, start }) {
  const turn = ({ took, own, waited, asleep }) =>
    `${took.toFixed(1)} ms on the clock: ${own.toFixed(1)} of its own CPU, ready and waiting for ` +
    `a processor ${waited.toFixed(1)}, asleep ${asleep.toFixed(1)}`;
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  const seconds = (milliseconds) => `${(milliseconds / 1000).toFixed(2)} s`;
  return [
    `${clients} clients, ${RATE} throws a second, ${snapshots} snapshots of ` +
      `${megabytes(snapshotBytes)}:`,
    `- longest turn ${turn(longest)}`,
    `- most CPU in a turn: ${turn(dearest)}`,
    `- turns above ${HELD_TURN} ms: ${slow}`,
    `- a start after a crash, with a minute's journal (${megabytes(start.journalBytes)}): listens ` +
      `after ${seconds(start.listening)}, of that ${seconds(start.reading)} for the state`
  ].join('\n');
}

const { json, strict, ...values } = takeValues(import.meta.url, {
  ...{ clients: [1000000, 1], snapshots: [6, 1], json: false, strict: false }
});
const seen = await measure(values).catch(fail);
console.log(json ? JSON.stringify({ held: HELD_TURN, ...seen }) : show(values.clients, seen));
if (strict && seen.longest.took > HELD_TURN) process.exitCode = 1;
