/**
 * The costs of a state of a million clients: the size of a snapshot, the longest stall of the event loop while
 * snapshots are made, and the time of a start after a crash. `npm run bench:state`.
 *
 *     node test/bench/state.js [--clients 1000000] [--snapshots 6] [--json] [--strict]
 *
 *     join all ─▶ throw, a snapshot every few seconds: probe.js measures the longest turn
 *              ─▶ restart: a minute's throws, as fast as possible ─▶ SIGKILL ─▶ start
 *
 * The clients have no connections of their own: they do not poll, and sprites wait in mailboxes. So a million open
 * files are not needed, but snapshots are larger than with clients that ack. The state is in the folder for temporary
 * files: TMPDIR sets its disk.
 *
 * Exit status: 0; 1 with --strict if a turn exceeds its bound; 2 for a wrong option.
 */
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { withStarted, startSprites } from './contenders.js';
import { fail, knownVerdicts, report, tableOf, tenth, describeMachine, whole } from './figures.js';
import { askProbe } from './usage.js';
import { answerHelp, takeValues } from '../support/documents.js';
import { atExit, temporary } from '../support/processes.js';
import { until } from '../support/until.js';

answerHelp(import.meta.url);

/** Bound of the longest turn, in milliseconds. */
const MAX_TURN_MS = 10;

/** Throws a second, and seconds between two snapshots. */
const RATE = 2000;
const SNAPSHOT_SECONDS = 5;

/** Connections of all requests, and requests under way on each. */
const CONNECTIONS = 16;
const PIPELINE_DEPTH = 32;

/** Padding of a sprite, beside its number. */
const PADDING = 'x'.repeat(200);

const EDGES = ['left', 'right', 'up', 'down'];

/** Interval between two batches of due throws, in milliseconds. */
const STEP_MS = 2;

/** Timeout of a wait, in seconds. */
const PATIENCE_SECONDS = 120;

/** Options of the server: no lease ends during the run. */
const OPTIONS = { lease: 3600, drain: 0, 'admin-port': 0, 'mailbox-memory': '1G' };

/** Starts a server whose stop() kills it. `milliseconds` is the time until it listens. */
async function startServer(options) {
  const startedAt = performance.now();
  const server = await startSprites({ ...OPTIONS, ...options });
  const milliseconds = performance.now() - startedAt;
  const stop = async () => {
    const ended = once(server.probe, 'close');
    server.probe.kill('SIGKILL');
    await ended;
  };
  return { ...server, milliseconds, stop };
}

async function connect(port) {
  const socket = net.connect(port, '127.0.0.1').setNoDelay(true);
  await once(socket, 'connect');
  return socket;
}

/** Sends `count` requests over CONNECTIONS connections, pipelined; `onAnswers(answers)` gets the answers' text. */
async function sendAll(port, count, requestOf, onAnswers = () => {}) {
  let sentCount = 0;
  const runConnection = async () => {
    const socket = await connect(port);
    let unanswered = 0;
    let partialAnswer = '';
    const sendMore = () => {
      let out = '';
      for (; unanswered < PIPELINE_DEPTH && sentCount < count; unanswered += 1, sentCount += 1)
        out += requestOf(sentCount);
      if (out !== '') socket.write(out);
      return unanswered > 0;
    };
    sendMore();
    for await (const chunk of socket) {
      partialAnswer += chunk.toString('latin1');
      // An answer ends with its JSON object, which has no nested objects here.
      const end = partialAnswer.lastIndexOf('}') + 1;
      const wholeAnswers = partialAnswer.slice(0, end);
      partialAnswer = partialAnswer.slice(end);
      const [errorAnswer] = /HTTP\/1\.1 [45][^]*?\}/.exec(wholeAnswers) ?? [];
      if (errorAnswer) throw new Error(errorAnswer);
      unanswered -= wholeAnswers.split('HTTP/1.1 20').length - 1;
      onAnswers(wholeAnswers);
      if (!sendMore()) return;
    }
    throw new Error('the server has closed a connection');
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, runConnection));
}

const JOIN = 'POST /join HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n';

async function joinAll(port, count) {
  const ids = [];
  await sendAll(
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
  const startedAt = performance.now();
  let thrown = 0;
  for (let elapsed = 0; elapsed < seconds; elapsed = (performance.now() - startedAt) / 1000) {
    for (; thrown < elapsed * RATE; thrown += 1) {
      sockets[thrown % CONNECTIONS].write(throwOf(ids, thrown));
    }
    await pause(STEP_MS);
  }
  for (const socket of sockets) socket.destroy();
}

/** Returns the length of the journals beside a state, in bytes. */
function journalBytes(folder) {
  const names = readdirSync(folder).filter((name) => name.includes('.journal-'));
  return names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

/**
 * @returns {Promise<object>} `stall` and `work`: the longest turn in milliseconds, by the wall clock and of CPU;
 *     `snapshots` made meanwhile; `snapshotBytes`; `journalBytes` of a minute's work; the start after it, in
 *     milliseconds: `listening` for the whole, `reading` for its part that reads the state
 */
async function measure({ clients, snapshots: wantedSnapshots }) {
  const folder = temporary(atExit);
  const state = join(folder, 'state');
  const options = { state, capacity: clients + 1000, 'journal-bytes': '1G' };
  const withServer = async (every, work) =>
    withStarted(await startServer({ ...options, 'snapshot-every': every }), work);
  const { ids, ...turns } = await withServer(SNAPSHOT_SECONDS, async (server) => {
    const ids = await joinAll(server.port, clients);
    // Waits for the first snapshot: the work that the joins left behind is then done, too.
    await until(async () => (await server.status()).snapshots > 0, 'a snapshot', PATIENCE_SECONDS);
    const before = await server.status();
    await askProbe(server);
    await throwFor(server.port, ids, wantedSnapshots * SNAPSHOT_SECONDS);
    const { longestStall: stall, longestWork: work } = await askProbe(server);
    const snapshots = (await server.status()).snapshots - before.snapshots;
    return { ids, stall, work, snapshots };
  });
  const [thrown, snapshotBytes] = await withServer(3600, async (server) => {
    const { size } = statSync(state);
    await sendAll(server.port, RATE * 60, (i) => throwOf(ids, i));
    return [(await server.status()).thrown, size];
  });
  const bytes = journalBytes(folder);
  const startTimes = await withServer(3600, async ({ status, errors, milliseconds }) => {
    const stateLine = Buffer.concat(errors)
      .toString()
      .split('\n')
      .find((line) => line.includes('state taken'));
    const after = await status();
    if (after.thrown !== thrown || after.clients !== clients) throw new Error('something is lost');
    const { milliseconds: reading } = JSON.parse(stateLine);
    return { listening: milliseconds, reading };
  });
  return { ...turns, snapshotBytes, journalBytes: bytes, ...startTimes };
}

const megabytes = (bytes) => `${tenth.format(bytes / 1e6)} MB`;
const ms = (milliseconds) => `${tenth.format(milliseconds)} ms`;

const COLUMNS = {
  snapshots: ({ snapshots }) => snapshots,
  'bytes of one': ({ snapshotBytes }) => megabytes(snapshotBytes),
  'longest turn (CPU)': ({ stall, work }) => `${ms(stall)} (${ms(work)})`,
  "a minute's journal": (row) => megabytes(row.journalBytes),
  'a start behind it (reading)': ({ listening, reading }) => `${ms(listening)} (${ms(reading)})`
};

const { json, strict, ...values } = takeValues(import.meta.url, {
  ...{ clients: [1000000, 1], snapshots: [6, 1], json: false, strict: false }
});
const figures = await measure(values).catch(fail);
report(
  { json, strict },
  {
    table: tableOf(COLUMNS, [figures]),
    about: `${whole.format(values.clients)} clients, ${RATE} throws a second; ${describeMachine(false)}`,
    held: knownVerdicts([
      [`no turn above ${MAX_TURN_MS} ms`, figures.stall, ms, figures.stall <= MAX_TURN_MS]
    ]),
    ...figures
  }
);
