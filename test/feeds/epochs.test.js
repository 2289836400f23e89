import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { Epochs } from '../../lib/feeds/epochs.js';
import { Feeds } from '../../lib/feeds/feeds.js';
import { openFeedState } from '../../lib/feeds/state.js';
import { get, parkGet, put, remove, TOKEN } from '../support/feeds.js';
import { DOORS, startServer } from '../support/server.js';

/** What a crash leaves of the feeds: lib/feeds/epochs.js. */

const silent = { info() {}, warn() {}, error() {} };
const NONE = new Uint8Array(0);
const mark = (version, digest = `d${version}`) => ({ epoch: 7, version, digest });

/** A run after one that has left a journal, for those who do not care which. */
const RUNS = { run: 7, runBefore: 7 };

/** Opens a file of epochs as a start does; gives it and what it has said. */
function open(path, { boot = 'one', most = 100, runs = RUNS } = {}) {
  const said = [];
  const tell = (level) => (fields, message) => said.push(`${level}: ${message ?? fields}`);
  const log = { info: tell('info'), warn: tell('warn'), error: tell('error') };
  const epochs = new Epochs({ path, most, runs, log, boot });
  epochs.read();
  return { epochs, said };
}

const versionOf = (epochs, key) => epochs.lost(key)?.version;

t.test('what was noted is known after a crash, the newest of each feed', async (t) => {
  const path = join(t.testdir(), 'epochs');
  const { epochs: one } = open(path);
  one.begin();
  t.notOk(readdirSync(t.testdirName).length, 'nothing to say, no file');
  for (const version of [1, 2, 3]) t.ok(one.note('a/b', mark(version)));
  t.ok(one.note('c', mark(9)));
  const { epochs: two, said } = open(path);
  t.match(two.lost('a/b'), { epoch: 7, version: 3, digest: 'd3', cursor: 'e7-3' });
  t.equal(versionOf(two, 'c'), 9);
  t.equal(two.lost('d'), undefined);
  t.strictSame(said, ['info: epochs of feeds taken']);
  // The next run goes on in a file of its own, with those that nobody has published yet.
  two.begin();
  t.ok(two.note('a/b', mark(4)));
  t.equal(two.lost('a/b'), undefined, 'it is not lost any more');
  const { epochs: three } = open(path);
  t.strictSame([versionOf(three, 'a/b'), versionOf(three, 'c')], [4, 9]);
  three.end();
  t.strictSame(readdirSync(t.testdirName), [], 'an end in order leaves none');
  t.notOk(three.note('a/b', mark(5)), 'and nothing is published after it');
});

t.test('a file cut off anywhere says what was announced, or nothing', async (t) => {
  const path = join(t.testdir(), 'epochs');
  const { epochs } = open(path);
  const versions = [1, 2, 3, 4];
  const ends = versions.map((version) => {
    epochs.note('a', mark(version));
    return readFileSync(path).length;
  });
  const whole = readFileSync(path);
  for (let length = 0; length <= whole.length; length += 1) {
    writeFileSync(path, whole.subarray(0, length));
    const announced = ends.filter((end) => end <= length).length;
    const found = versionOf(open(path).epochs, 'a');
    t.ok(found === (announced || undefined), `${length} bytes: ${found}`);
  }
});

t.test('a file with a byte damaged says nothing, and that is said', async (t) => {
  const path = join(t.testdir(), 'epochs');
  const { epochs } = open(path);
  for (const version of [1, 2]) epochs.note('a', mark(version));
  const whole = readFileSync(path);
  for (let at = 0; at < whole.length; at += 1) {
    const bytes = Buffer.from(whole);
    bytes[at] ^= 1 << (at % 8);
    writeFileSync(path, bytes);
    const { epochs: next, said } = open(path);
    const found = versionOf(next, 'a');
    // A line feed that is none makes the last line one that was being written, or two lines one.
    const last = at === whole.length - 1;
    t.equal(found, last ? 1 : undefined, `byte ${at}`);
    t.equal(said.length, 1);
  }
  writeFileSync(path, 'sprites-epochs 3 one\n{"of":"a later version"}\n');
  t.equal(versionOf(open(path).epochs, 'a'), undefined);
});

t.test('nor does the file of another boot: lines may be missing', async (t) => {
  const path = join(t.testdir(), 'epochs');
  open(path).epochs.note('a', mark(1));
  const { epochs, said } = open(path, { boot: 'two' });
  t.equal(epochs.lost('a'), undefined);
  t.match(said, [/machine was restarted/]);
  t.equal(open(path, { boot: '' }).epochs.lost('a'), undefined, 'nor where the boot is not told');
});

t.test('nor does an older file that somebody has put back', async (t) => {
  const folder = t.testdir();
  const path = join(folder, 'epochs');
  const backup = join(folder, 'backup');
  const start = (runBefore, run) => open(path, { runs: { runBefore, run } });
  const first = start(0, 1).epochs;
  first.note('a', mark(1));
  copyFileSync(path, backup);
  first.note('a', mark(2));
  // Put back after the crash of the same run: a file of its own, so it is known as a copy.
  renameSync(path, `${path}.newest`);
  copyFileSync(backup, path);
  const copied = start(1, 2);
  t.equal(copied.epochs.lost('a'), undefined);
  t.match(copied.said, [/not used/]);
  rmSync(path);
  renameSync(`${path}.newest`, path);
  const second = start(1, 2).epochs;
  t.equal(versionOf(second, 'a'), 2, 'moved there and back it is the same');
  second.begin();
  second.note('a', mark(3));
  // After the crash of a later one: whatever the file system says.
  copyFileSync(backup, path);
  const older = start(2, 3);
  t.equal(older.epochs.lost('a'), undefined);
  t.match(older.said, [/not used/]);
  t.equal(start(0, 3).epochs.lost('a'), undefined, 'nor where no journal tells the run');
});

t.test('it is written anew before it has grown too large, and has a bound', async (t) => {
  const path = join(t.testdir(), 'epochs');
  const { epochs } = open(path, { most: 3 });
  let largest = 0;
  for (let version = 1; version <= 30_000; version += 1) {
    epochs.note('a', mark(version));
    if (version % 1000 === 0) largest = Math.max(largest, readFileSync(path).length);
  }
  t.ok(largest < 1.2 * 2 ** 20, `${largest} bytes`);
  for (let i = 0; i < 50; i += 1) epochs.note(`k${i}`, mark(1));
  const { epochs: next } = open(path, { most: 3 });
  t.equal([...Array(50).keys()].filter((i) => next.lost(`k${i}`)).length <= 3, true);
});

t.test('where it can not be written on it goes, and comes back', async (t) => {
  const folder = t.testdir({ state: {} });
  const path = join(folder, 'state', 'epochs');
  const { epochs, said } = open(path);
  epochs.note('a', mark(1));
  rmSync(join(folder, 'state'), { recursive: true });
  // The next one is written to a file that is no more; only a new file shows it.
  const gone = open(path);
  t.ok(gone.epochs.note('a', mark(2)), 'nothing is left to be wrong');
  t.match(gone.said, [/can't be written/]);
  t.ok(gone.epochs.note('a', mark(3)));
  t.equal(gone.said.length, 1, 'said once');
  t.strictSame(said, []);
  mkdirSync(join(folder, 'state'));
});

t.test('a file that can neither be written nor removed stops publishing', async (t) => {
  const path = join(t.testdir({ epochs: { something: '' } }), 'epochs');
  // A folder in its place: that holds for root as well.
  const { epochs, said } = open(path);
  t.notOk(epochs.note('a', mark(1)));
  t.notOk(epochs.note('a', mark(2)), 'and again');
  t.match(said, [/their file is not used/, /can't be written/]);
  rmSync(path, { recursive: true });
  t.ok(epochs.note('a', mark(3)), 'nothing is there that could be wrong');
});

// ---- A server that is killed --------------------------------------------------------------------

/** Long enough for a patch to be shorter. */
const value = (score) => ({ score, padding: 'x'.repeat(400) });
const numberOf = (cursor) => Number(cursor.split('-')[1]);
const epochOf = (cursor) => cursor.split('-')[0];

for (const door of DOORS) {
  t.test(`killed, by "${door}": cursors go on, and mean one value each`, async (t) => {
    const folder = t.testdir({ tokens: `${TOKEN}\n` });
    const options = {
      ...{ drain: 0, 'log-level': 'fatal', 'publish-token-file': join(folder, 'tokens') },
      state: join(folder, 'state')
    };
    const begin = () => startServer(t, { door, options });
    const crash = async (server) => {
      server.child.kill('SIGKILL');
      await server.ended();
    };
    const one = await begin();
    await put(one, 'same', value(1));
    const { body: same } = await put(one, 'same', value(2));
    const { body: other } = await put(one, 'other', value(1));
    const { body: ended } = await put(one, 'ended', 1);
    await remove(one, 'ended');
    await crash(one);

    const two = await begin();
    t.equal((await get(two, 'same', `after=${same.cursor}`)).status, 404, 'until it is published');
    const again = await put(two, 'same', value(2));
    t.strictSame([again.status, again.body.cursor], [201, same.cursor], 'the same value');
    const watcher = await parkGet(two, 'same', `after=${same.cursor}&delta=1`);
    const changed = await put(two, 'other', value(2));
    t.equal(epochOf(changed.body.cursor), epochOf(other.cursor));
    t.equal(numberOf(changed.body.cursor), numberOf(other.cursor) + 1, 'another value');
    const { body: whole } = await get(two, 'other', `after=${other.cursor}&delta=1`);
    t.strictSame(whole.value, value(2), 'whole: nobody knows what led there');
    t.not((await put(two, 'ended', 2)).body.cursor, ended.cursor);
    // Who was parked on the value that was there before is told of the next, by a patch.
    await put(two, 'same', value(3));
    const { body: next } = await watcher.answer;
    t.equal(next.from, same.cursor);
    t.equal(numberOf(next.cursor), numberOf(same.cursor) + 1);
    await crash(two);

    // Twice in a row, and a restart in order in between.
    const three = await begin();
    const third = await put(three, 'same', value(3));
    t.equal(third.body.cursor, next.cursor);
    await three.stop();
    const four = await begin();
    t.equal((await get(four, 'same')).body.cursor, next.cursor);
    await crash(four);
    const five = await begin();
    t.equal((await put(five, 'same', value(3))).body.cursor, next.cursor, 'with no publication');
    await five.stop();
  });
}

/** Feeds whose threads are given; no state. */
function newFeeds(t, threads, more = {}) {
  const bounds = { hold: 60, feeds: 10, feedBytes: 1e6, feedMemory: 1e6, feedWatchers: 10 };
  const feeds = new Feeds({ ...bounds, upstream: 'none', ...more }, threads, silent);
  t.teardown(() => feeds.close());
  return feeds;
}

t.test('of a state what is no JSON is left out, and a head that is none refuses it', async (t) => {
  const state = join(t.testdir(), 'state');
  const head = { epoch: 7, version: 3, patches: [], upstream: false };
  const take = (entries) => {
    const parts = entries.map(([key, value, more]) => {
      const lengths = { value: Buffer.byteLength(value), log: 0 };
      return `${JSON.stringify({ key, ...head, ...lengths, ...more })}\n${value}`;
    });
    const text = `sprites-feeds 2 7\n${parts.join('')}`;
    const sha256 = createHash('sha256').update(text).digest('hex');
    writeFileSync(`${state}.feeds`, `${text}${JSON.stringify({ end: parts.length, sha256 })}\n`);
    const feeds = newFeeds(t, {});
    const options = { state, stateBytes: 1e6, feeds: 10 };
    const runs = { run: 8, runBefore: 7, ended: true };
    const said = [];
    const log = { ...silent, error: ({ feed }) => said.push(feed) };
    openFeedState({ feeds, options, runs, log });
    return { feeds, said };
  };
  const bad = ['', 'undefined', '{"a":undefined}', '{"b":1,"a":2}', '[1 ]', '1e400'];
  const deep = (levels) => '['.repeat(levels) + ']'.repeat(levels);
  const values = [...bad, deep(65), deep(64), '{"__proto__":1,"a":"\\ud800"}'];
  const { feeds, said } = take(values.map((value, i) => [`k${i}`, value]));
  const kept = values.filter((value, i) => feeds.find(`k${i}`) !== null);
  t.strictSame(kept, values.slice(-2));
  t.equal(said.length, values.length - 2, 'each is told');
  const heads = [
    { key: 'a//b' },
    { key: 1 },
    { epoch: 2 ** 53 },
    { version: -1 },
    { value: -30 },
    { value: 1.5 },
    { log: null },
    { patches: [5] },
    { patches: {} }
  ];
  for (const more of heads)
    t.throws(() => take([['a', '1', more]]), /damaged/, JSON.stringify(more));
});

t.test('a fetch that comes late does not use a version twice', async (t) => {
  const path = join(t.testdir(), 'epochs');
  open(path).epochs.note('a', mark(3));
  const encoder = new TextEncoder();
  const change = (text) => ({ value: encoder.encode(text), patch: NONE, gzip: NONE, digest: text });
  let fetched;
  const threads = {
    run: (task) =>
      task === 'fetch' ? new Promise((resolve) => (fetched = resolve)) : change('"published"')
  };
  const feeds = newFeeds(t, threads, { upstream: 'http://localhost/{key}' });
  feeds.keepEpochs(open(path).epochs);
  const cursors = [];
  const watch = () =>
    feeds.watch({ keys: ['a'], afters: [''] }, ({ cursor }) => cursors.push(cursor) > 0);
  watch();
  const late = feeds.fetch('a', { url: '', time: 1 });
  const { cursor } = await feeds.publish('a', 'value', NONE);
  t.equal(cursor, 'e7-4');
  await feeds.remove('a');
  watch();
  fetched(change('"fetched"'));
  await late;
  const now = feeds.native.find('a', true);
  t.equal(String(now.value), '"fetched"');
  t.not(now.epoch, 7);
});
