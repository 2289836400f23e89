import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { Scene, stopwatch } from '../faults/scene.js';
import { Rig } from '../faults/world-rig.js';
import { answerHelp, takeOptions } from '../support/documents.js';
import { RecordingClient, Load } from '../support/feed-load.js';
import { tokenFile } from '../support/feeds.js';
import { startServer } from '../support/server.js';

/**
 * Records histories of real runs under faults. porcupine, a checker of linearizability (main.go), judges them:
 *
 * - feeds of a world of three servers, one of which is killed and one stopped for a moment: each feed is a register
 * - a log and the mailboxes of two clients, at a server with two workers that is killed three times: each is a list
 *
 * Then porcupine must find each of the faults that are planted in these histories.
 *
 *   node test/histories/run.js [--keep FOLDER]
 *
 * Takes half a minute. Needs Go: Debian's package golang-go.
 */

answerHelp(import.meta.url);
const { keep } = takeOptions(import.meta.url, { keep: { type: 'string', default: '' } });

const HERE = new URL('.', import.meta.url).pathname;

/** Environment with Go on its path: Debian's, or that of Go's own installer. */
const GO = { ...process.env, PATH: `${process.env.PATH}:/usr/local/go/bin` };

function build(folder) {
  const judge = join(folder, 'judge');
  const { status, stderr, error } = spawnSync('go', ['build', '-o', judge, '.'], {
    cwd: HERE,
    env: GO,
    encoding: 'utf8'
  });
  assert.ok(!error, `Go is needed, on Debian golang-go: ${error?.message}`);
  assert.equal(status, 0, stderr);
  return judge;
}

// ---- Feeds of a world

async function playWorld(scene) {
  const rig = await Rig.start(scene, { states: true, feeds: ['one', 'two/three'] });
  const [a, b] = rig.membersNamed(['a', 'b']);
  await pause(1500);
  await b.kill();
  await pause(1000);
  await b.startAgain();
  await rig.untilRing(['a', 'b', 'c']);
  a.signal('SIGSTOP');
  await pause(1000);
  a.signal('SIGCONT');
  await pause(1500);
  const seen = await rig.feeds.settle('the world');
  return { seen, history: toRegisters(rig.feeds.history) };
}

/**
 * Returns a history as operations on registers. A publication without an answer counts if a client has seen its value;
 * otherwise it is left out. When a publication is answered, its server has the version: that is a get, too.
 */
function toRegisters(history) {
  const cursors = new Map(
    history.filter(({ cursor }) => cursor).map((one) => [valueKey(one), one])
  );
  return history.flatMap((one) => {
    if (one.known) {
      const answered = { ...one, version: versionOf(one.cursor) };
      return one.op !== 'get' && one.ok ? [answered, { ...answered, op: 'get' }] : [answered];
    }
    const found = cursors.get(valueKey(one));
    return found ? [{ ...one, ok: true, return: Infinity, version: versionOf(found.cursor) }] : [];
  });
}

const valueKey = ({ key, value }) => `${key} ${value}`;
const versionOf = (cursor) => Number(cursor?.slice(cursor.lastIndexOf('-') + 1) ?? 0);

// ---- A log and mailboxes

async function playLists(scene) {
  const folder = await scene.folder();
  const options = {
    ...{ workers: 2, state: join(folder, 'state'), sync: 'never', drain: 1, hold: 5 },
    ...{ 'publish-token-file': tokenFile(scene), 'log-items': 100_000, 'throw-rate': 0 }
  };
  const start = () => startServer(scene, { options });
  const current = { server: await start() };
  const portOf = () => current.server.port;
  const load = new Load();
  scene.teardown(() => load.close());
  for (const n of [1, 2, 3]) load.add(portOf, appender(n));
  for (const n of [1, 2, 3, 4]) load.add(portOf, logReader(n > 1));
  const [one, two] = [await current.server.join(), await current.server.join()];
  for (const [thrower, receiver] of [
    [one, two],
    [two, one]
  ]) {
    const key = `the mailbox of ${receiver === one ? 'one' : 'two'}`;
    load.add(portOf, poller(receiver, key));
    load.add(portOf, throwerOf(thrower, key));
  }
  load.go();
  for (let ends = 0; ends < 3; ends += 1) {
    await pause(2000);
    await current.server.kill();
    current.server = await start();
  }
  await pause(1000);
  await load.quiet();
  const last = logReader(false);
  const asker = new RecordingClient(portOf);
  load.history.push({ client: 0, ...(await last(asker)) });
  asker.close();
  return { seen: `${load.history.length} entries`, history: toLists(load.history) };
}

const LOG = { model: 'list', key: 'a log' };

function appender(n) {
  let itemCount = 0;
  return async (asker) => {
    const item = `${n}.${++itemCount}`;
    const { status, body, ...times } = await asker.ask('POST', '/feed/log', JSON.stringify(item));
    const known = status === 200 || status === 201;
    const version = known ? versionOf(body.cursor) : 0;
    return { ...times, ...LOG, op: 'append', items: [item], known, version };
  };
}

function logReader(isWatching) {
  let after;
  return async (asker) => {
    const query = after === undefined ? '' : `?after=${after}&hold=5`;
    const { status, body, ...times } = await asker.ask('GET', `/feed/log${query}`);
    if (status !== 200 || !body.items) return undefined;
    const entry = { ...times, ...LOG, op: 'read', known: true, after: versionOf(after) };
    assert.notEqual(body.gap, true);
    if (isWatching) after = body.cursor;
    return { ...entry, version: versionOf(body.cursor), items: body.items, paced: !isWatching };
  };
}

function poller(id, key) {
  let ack = 0;
  return async (asker) => {
    const { status, body, ...times } = await asker.ask('GET', `/poll/${id}?ack=${ack}&hold=5`);
    if (status !== 200 || body.superseded) return undefined;
    const items = body.sprites.map(({ sprite }) => sprite.key);
    const entry = { ...times, model: 'list', key, op: 'read', known: true, after: ack, items };
    ack += items.length;
    return { ...entry, version: ack, paced: false };
  };
}

/** Returns a function that throws a sprite. It retries with the same number until the throw is accepted. */
function throwerOf(id, key) {
  let number = 0;
  return async (asker) => {
    number += 1;
    const sprite = `${number}`;
    const path = `/throw/${id}/right?n=${number}`;
    const first = await asker.ask('POST', path, JSON.stringify({ key: sprite }));
    let last = first;
    while (last.status !== 202) {
      await pause(50);
      last = await asker.ask('POST', path, JSON.stringify({ key: sprite }));
    }
    const times = { call: first.call, return: last.return };
    return { ...times, model: 'list', key, op: 'append', known: true, items: [sprite], version: 0 };
  };
}

/** Returns a history as operations on lists. An append without an answer counts if a client has read its item. */
function toLists(history) {
  const read = new Set(history.filter(({ op }) => op === 'read').flatMap(({ items }) => items));
  return history
    .filter(({ known, items }) => known || read.has(items[0]))
    .map((one) => (one.known ? one : { ...one, return: Infinity }));
}

// ---- The judge

const nanoseconds = (ms) => (ms === Infinity ? Number.MAX_SAFE_INTEGER : Math.round(ms * 1e6));

/** @returns {{isSound: boolean, output: string}} */
function judge(program, file, history) {
  const lines = history.map((one) =>
    JSON.stringify({ ...one, call: nanoseconds(one.call), return: nanoseconds(one.return) })
  );
  writeFileSync(file, `${lines.join('\n')}\n`);
  const { status, stdout, stderr } = spawnSync(program, [file], { encoding: 'utf8' });
  assert.ok(status === 0 || status === 1, `${stdout}${stderr}`);
  return { isSound: status === 0, output: stdout.trim() };
}

/** Faults to plant in a history, each in the last operation that fits. */
const plantedFaults = {
  'a server goes back to an older version': (one) => ({
    find: one.op === 'get' && one.version > 2,
    as: { version: 1 }
  }),
  'two publications are the same version': (one) => ({
    find: one.op === 'put' && one.version > 2,
    as: { version: one.version - 1 }
  }),
  'a patch is applied to what is not the newest': (one) => ({
    find: one.op === 'swap' && one.ok,
    as: { expect: 'what never was' }
  }),
  'an item is not there': (one) => ({
    find: one.op === 'read' && one.key === 'a log' && one.items.length > 1,
    as: { items: one.items?.slice(1), version: one.version - 1 }
  }),
  'two items come in the other order': (one) => ({
    find: one.op === 'read' && one.key === 'a log' && one.items.length > 1,
    as: { items: one.items?.toReversed() }
  }),
  'a sprite comes twice': (one) => ({
    find: one.op === 'read' && one.key.startsWith('the mailbox') && one.items.length > 0,
    as: { items: [...(one.items ?? []), ...(one.items ?? [])], version: one.version + 1 }
  })
};

function plantFault(history, fault) {
  const at = history.findLastIndex((one) => fault(one).find);
  assert.ok(at >= 0, 'there is something to put it into');
  return history.with(at, { ...history[at], ...fault(history[at]).as });
}

const scene = new Scene({ short: true });
const elapsed = stopwatch();
let failures = 0;
const print = (line) => process.stdout.write(`${line}\n`);

try {
  const folder = keep || (await scene.folder());
  mkdirSync(folder, { recursive: true });
  const program = build(await scene.folder());
  const played = await Promise.all([playWorld(scene), playLists(scene)]);
  for (const { seen } of played) print(seen);
  const history = played.flatMap((one) => one.history);
  const { isSound, output } = judge(program, join(folder, 'history'), history);
  print(output);
  if (!isSound) failures += 1;
  for (const [what, fault] of Object.entries(plantedFaults)) {
    const found = !judge(program, join(folder, 'planted'), plantFault(history, fault)).isSound;
    print(`${found ? 'found' : 'NOT FOUND'}: ${what}`);
    if (!found) failures += 1;
  }
} finally {
  await scene.end();
}
print(`${failures === 0 ? 'all is as it should be' : `${failures} FAILED`}, in ${elapsed()} s`);
process.exitCode = failures === 0 ? 0 : 1;
