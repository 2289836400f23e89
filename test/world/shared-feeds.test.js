import { join } from 'node:path';

import t from 'tap';

import { digestOf } from '../../lib/feeds/packing.js';
import { Feeds } from '../../lib/feeds/feeds.js';
import { cursorText, LAST_VERSION } from '../../lib/feeds/names.js';
import { readOptions } from '../../lib/operator/options.js';
import { Pool } from '../../lib/torus/pool.js';
import { FeedMarks } from '../../lib/world/feed-message.js';
import { FeedReconciler } from '../../lib/world/feed-reconciler.js';
import { WorldError } from '../../lib/world/world-error.js';
import { freshSeed, Random } from '../fuzz/random.js';
import { SimulatedFeedStore, Servers } from '../support/world-feeds.js';
import { VirtualTime } from '../support/virtual-time.js';
import { silent } from '../support/world-virtual.js';

/**
 * Feeds of a world in virtual time. Servers#checkVersion checks two laws for every version in a table: a cursor means one value
 * everywhere, and no table goes back to an older version. FEED_HISTORIES: the number of histories; SEED: the first
 * seed.
 */

const HISTORIES = Number(process.env.FEED_HISTORIES ?? 40);
const SEED = Number(process.env.SEED ?? freshSeed());
const KEYS = ['a', 'b/c', 'd'];
const NO_BYTES = Buffer.alloc(0);

/** Returns the percentage of lost news. */
const lossPercentOf = (seed) => (seed % 2 === 0 ? 0 : 10);

function world(t, { seed = SEED, lossPercent = 0, names = ['a', 'b', 'c'] } = {}) {
  const time = new VirtualTime(1);
  const random = new Random(seed);
  const store = new SimulatedFeedStore({ time, random, lossPercent });
  const servers = new Servers({ t, time, random, store });
  for (const name of names) servers.start(name);
  return { time, random, store, servers };
}

/** Returns a world whose servers have reached the store. */
async function startedWorld(t, how) {
  const all = world(t, how);
  await all.time.run(100);
  return all;
}

/** Lets time pass until a promise settles. */
async function untilSettled(time, promise) {
  let is = false;
  const end = promise.finally(() => (is = true));
  end.catch(() => {});
  await time.run(60_000, () => is);
  return end;
}

const untilQuiet = (time, servers) => time.run(120_000, () => servers.isQuiet());

t.test(
  'alone, a server publishes to its own; by versions the newest is at all in the end',
  async (t) => {
    const { time, servers, store } = await startedWorld(t);
    const before = await untilSettled(time, servers.publish('a', 'x', 'value', { n: 0 }));
    await untilQuiet(time, servers);
    store.stop();
    const first = await untilSettled(time, servers.publish('a', 'x', 'value', { n: 1 }));
    const second = await untilSettled(time, servers.publish('a', 'x', 'value', { n: 2 }));
    const other = await untilSettled(time, servers.publish('b', 'x', 'value', { n: 3 }));
    const epoch = ({ cursor }) => cursor.split('-')[0];
    t.not(epoch(first), epoch(before), 'its own epoch');
    t.equal(epoch(first), epoch(second), 'one, so that patches go on');
    t.not(epoch(first), epoch(other));
    const { shared: leaving } = servers.all.get('a');
    t.equal(leaving.status().unstored, 1);
    const handedOver = leaving.handOver(10_000);
    store.start();
    await untilSettled(time, handedOver);
    t.equal(leaving.status().unstored, 0, 'one that leaves waits for the store');
    await untilQuiet(time, servers);
    t.ok(servers.isQuiet());
    t.match(
      servers.tables()[2],
      `["x","${second.cursor}","{\\"n\\":2}"]`,
      'two versions are more than one'
    );
    const overruled = [...servers.all.values()].map(({ shared }) => shared.status().overruled);
    t.equal(Math.max(...overruled), 1, 'the other one is counted');
    const after = await untilSettled(time, servers.publish('c', 'x', 'value', { n: 4 }));
    t.equal(epoch(after), epoch(second));
  }
);

t.test(
  'one that comes back with what it had takes what is newer, and gives what is not there',
  async (t) => {
    const { time, servers, store } = await startedWorld(t);
    await untilSettled(time, servers.publish('a', 'old', 'value', 1));
    await untilSettled(time, servers.publish('a', 'gone', 'value', 1));
    await untilQuiet(time, servers);
    const kept = servers.kill('c');
    await untilSettled(time, servers.publish('a', 'old', 'value', 2));
    await untilSettled(time, servers.remove('a', 'gone'));
    servers.start('c', { kept });
    await untilQuiet(time, servers);
    t.ok(servers.isQuiet());
    t.match(servers.tables()[2], /^\[\["old","e[0-9a-z]+-2","2"\]\]$/);
    t.equal(servers.all.get('c').shared.status().overruled, 0, 'nothing was published apart');
    // A server fills a store again that has lost everything.
    store.stop();
    store.loseAll();
    store.start();
    await time.run(10_000, () => store.messages.size === 2);
    t.equal(store.messages.get('old').version, 2);
    t.equal(store.messages.get('gone').digest, undefined, 'deleted ones too');
    await untilQuiet(time, servers);
    store.messages.clear();
    await time.run(10_000, () => store.messages.has('old'));
    t.ok(store.messages.has('old'), 'and one that was purged, of what is not deleted');
    const d = servers.start('d');
    await time.run(10_000, () => d.isHere);
    t.equal(d.feeds.table.size, 1);
  }
);

t.test('a write that the store has forgotten, and given its version to another', async (t) => {
  const { time, servers, store } = await startedWorld(t, { names: ['a', 'b'] });
  await untilSettled(time, servers.publish('a', 'x', 'value', { n: 1 }));
  await untilQuiet(time, servers);
  store.sync();
  servers.all.get('b').connection.isCut = true;
  await untilSettled(time, servers.publish('a', 'x', 'value', { n: 2 }));
  servers.all.get('a').connection.isCut = true;
  store.stop();
  store.loseUnsynced();
  store.start();
  servers.all.get('b').connection.reconnect();
  await time.run(3000);
  await untilSettled(time, servers.publish('b', 'x', 'value', { n: 3 }));
  t.equal(store.messages.get('x').version, 2, 'the number is used again, in another epoch');
  servers.all.get('a').connection.reconnect();
  await untilQuiet(time, servers);
  t.ok(servers.isQuiet());
});

t.test('items that the store has forgotten, and given their versions to others', async (t) => {
  const { time, servers, store } = await startedWorld(t, { names: ['a', 'b'] });
  const append = (name, n) =>
    untilSettled(time, servers.append(name, 'log', { n, fill: 'x'.repeat(6000) }));
  for (let n = 0; n < 9; n += 1) await append('a', n);
  const { cursor } = await append('a', 9);
  await untilQuiet(time, servers);
  store.sync();
  servers.all.get('b').connection.isCut = true;
  await append('a', 'forgotten');
  servers.all.get('a').connection.isCut = true;
  store.stop();
  store.loseUnsynced();
  store.start();
  servers.all.get('b').connection.reconnect();
  await time.run(3000);
  const next = await append('b', 10);
  await append('b', 11);
  t.equal(next.cursor.split('-')[0], cursor.split('-')[0], 'the numbers are used again');
  servers.all.get('a').connection.reconnect();
  await untilQuiet(time, servers);
  t.ok(servers.isQuiet());
  const [[, now, items]] = JSON.parse(servers.tables()[0]);
  t.not(now.split('-')[0], cursor.split('-')[0], 'so the log gets another epoch, and all a gap');
  t.strictSame(
    items.map((item) => JSON.parse(item).n),
    Array.from({ length: 12 }, (_, n) => n),
    'with all items of the store'
  );
  const epochs = [...store.parts.keys()].map((name) => name.split('-')[0]);
  t.strictSame([...new Set(epochs)], [`log ${now.split('-')[0]}`], 'and no other parts');
});

t.test('of a log that was appended to in two worlds one is left, and that is logged', async (t) => {
  const [own, other] = [
    await startedWorld(t, { names: ['a'] }),
    await startedWorld(t, { names: ['b'] })
  ];
  const append = ({ time, servers }, name, n) => untilSettled(time, servers.append(name, 'log', n));
  for (const n of [1, 2]) await append(own, 'a', n);
  await append(other, 'b', 3);
  const { time, servers } = own;
  const warnings = [];
  servers.log = { ...silent, warn: (...what) => warnings.push(what) };
  servers.start('b', { kept: other.servers.kill('b') });
  await untilQuiet(time, servers);
  t.equal(...servers.tables());
  t.match(warnings, [[{ feed: 'log' }, /items are gone/]]);
});

t.test(
  'parts that a log keeps no more are forgotten, and all of one that is no more',
  async (t) => {
    const { time, servers, store } = world(t, { names: ['a', 'b'] });
    for (const { feeds } of servers.all.values()) feeds.logBounds = { items: 1000, bytes: 16_384 };
    await time.run(100);
    const fill = 'x'.repeat(6000);
    for (let n = 0; n < 40; n += 1)
      await untilSettled(time, servers.append('a', 'log', { n, fill }));
    await untilQuiet(time, servers);
    t.equal(store.parts.size, 10);
    store.stop();
    t.strictSame(await untilSettled(time, servers.remove('b', 'log')), {}, 'at one server alone');
    store.start();
    await untilQuiet(time, servers);
    await time.run(100);
    t.strictSame([store.parts.size, ...servers.tables()], [0, '[]', '[]']);
  }
);

t.test('parts of a log that a server can not take are forgotten when it ends that', async (t) => {
  const { time, servers, store } = world(t, { names: ['a'] });
  const small = servers.start('b', { most: 1 });
  await time.run(100);
  await untilSettled(time, servers.publish('a', 'x', 'value', 1));
  const fill = 'x'.repeat(6000);
  for (let n = 0; n < 9; n += 1) await untilSettled(time, servers.append('a', 'log', { n, fill }));
  await time.run(1000);
  t.match(small.shared.status(), { behind: 1 });
  t.ok(store.parts.size > 0);
  t.strictSame(await untilSettled(time, servers.remove('b', 'log')), {});
  await time.run(1000);
  t.strictSame([store.parts.size, small.shared.status().behind], [0, 0]);
});

t.test(
  'what a server has no room for is refused there, counted, and keeps no server from joining',
  async (t) => {
    const { time, servers } = await startedWorld(t, { names: ['a'] });
    for (let n = 0; n < 5; n += 1)
      await untilSettled(time, servers.publish('a', `${n}`, 'value', n));
    const small = servers.start('b', { most: 3 });
    await time.run(10_000, () => small.isHere);
    t.ok(small.isHere);
    t.equal(small.feeds.table.size, 3);
    t.match(small.shared.status(), { refused: 2, behind: 2 });
    await untilSettled(time, servers.remove('a', '0'));
    await untilSettled(time, servers.remove('a', '1'));
    await untilSettled(time, servers.remove('a', '2'));
    await time.run(
      40_000,
      () => small.shared.status().behind === 0 && small.feeds.table.size === 2
    );
    t.equal(small.feeds.table.size, 2, 'it is tried again');
    t.equal(small.shared.status().behind, 0);
  }
);

t.test('what a server has no room for it does not publish', async (t) => {
  const { time, servers, store } = world(t, { names: [] });
  servers.start('a', { most: 1 });
  await time.run(100);
  await untilSettled(time, servers.publish('a', 'x', 'value', 1));
  const answer = await untilSettled(time, servers.publish('a', 'y', 'value', 1));
  t.strictSame(answer, { problem: 'too-many-feeds' });
  t.notOk(store.messages.has('y'), 'nor has the world it');
});

t.test('a value that is not what its head says is refused', async (t) => {
  const { time, servers, store } = await startedWorld(t, { names: ['a', 'b'] });
  const { cursor } = await untilSettled(time, servers.publish('a', 'x', 'value', 1));
  await untilQuiet(time, servers);
  const { feeds, shared } = servers.all.get('b');
  for (const body of ['2', 'no JSON']) {
    store.lastRevision += 1;
    const { version, ...head } = store.messages.get('x');
    const message = {
      ...head,
      version: version + 1,
      body: Buffer.from(body),
      revision: store.lastRevision
    };
    store.messages.set('x', message);
    store.publishNews('x');
    await time.run(100);
    t.equal(cursorText(feeds.table.get('x')), cursor, `${body} changes nothing`);
  }
  t.match(shared.status(), { refused: 2, behind: 1 });
  // The feed stays unreadable for all servers, until a whole value replaces it.
  const patch = await untilSettled(time, servers.publish('b', 'x', 'merge-patch', { n: 1 }));
  t.match(patch, { problem: 'patch-conflict', detail: /^Publish a whole value/ });
  const put = await untilSettled(time, servers.publish('b', 'x', 'value', 1));
  t.match(put, { created: false, cursor: /-4$/ }, 'also one that is what it was');
  store.write('y', { ...store.messages.get('x'), digest: digestOf(Buffer.from('0')) }, NO_BYTES, 0);
  t.match(await untilSettled(time, servers.publish('a', 'y', 'value', 2)), { cursor: /-5$/ });
  store.write('z', { ...store.messages.get('y') }, NO_BYTES, 0);
  t.strictSame(await untilSettled(time, servers.remove('a', 'z')), {}, 'or it is deleted');
  t.equal(store.messages.get('z').digest, undefined);
  // Or an operator cleans it.
  store.write('v', { ...store.messages.get('y') }, NO_BYTES, 0);
  await time.run(100);
  store.messages.delete('v');
  t.match(await untilSettled(time, servers.publish('a', 'v', 'value', 3)), { cursor: /-1$/ });
  await untilSettled(time, servers.remove('b', 'v'));
  await untilQuiet(time, servers);
  t.match(shared.status(), { behind: 0, unstored: 0 });
  t.equal(servers.tables()[1], servers.tables()[0]);
  t.equal(JSON.parse(servers.tables()[1]).length, 2);
});

t.test('behind the last version there is none, and each value has a cursor', async (t) => {
  const { time, servers, store } = await startedWorld(t, { names: ['a', 'b'] });
  const value = Buffer.from('0');
  for (const [key, version] of [
    ['x', LAST_VERSION],
    ['y', LAST_VERSION - 1]
  ]) {
    const head = { epoch: LAST_VERSION, version, digest: digestOf(value), form: 'plain' };
    store.write(key, head, value, 0);
    await untilQuiet(time, servers);
    const cursors = [];
    for (const [n, name] of [...'abba'].entries()) {
      const { cursor } = await untilSettled(time, servers.publish(name, key, 'value', { n }));
      cursors.push(cursor);
      await untilQuiet(time, servers);
      t.equal(servers.tables()[1], servers.tables()[0]);
      t.match(servers.tables()[1], `"${cursor}","{\\"n\\":${n}}"`);
    }
    t.equal(new Set(cursors).size, 4);
    for (const cursor of cursors) t.match(cursor, /-9007199254740991$/);
  }
});

t.test(
  'one cursor with another value in the store: what is here gets a version of its own',
  async (t) => {
    const { time, servers, store } = await startedWorld(t, { names: ['a', 'b'] });
    await untilSettled(time, servers.publish('a', 'x', 'value', { n: 1 }));
    await untilQuiet(time, servers);
    const { connection } = servers.all.get('b');
    connection.isCut = true;
    await untilSettled(time, servers.publish('a', 'x', 'value', { n: 2 }));
    // The store lost the write above, and gave its version to another value. At that time the disk is full.
    servers.all.get('a').feeds.disk = 'full';
    const message = store.messages.get('x');
    const other = Buffer.from('{"n":3}');
    const digest = digestOf(other);
    store.messages.set('x', { ...message, body: other, digest });
    store.stop();
    store.start();
    await time.run(5000);
    const { feeds, shared } = servers.all.get('a');
    t.equal(shared.status().behind, 1);
    feeds.disk = 'well';
    await time.run(40_000);
    t.match(servers.tables()[0], /"e[0-9a-z]+-3","{\\"n\\":2}"/);
    connection.reconnect();
    await untilQuiet(time, servers);
    t.ok(servers.isQuiet());
    t.equal(servers.tables()[1], servers.tables()[0]);
  }
);

t.test('a store that is full is said once, and once that it is not any more', async (t) => {
  const { time, servers, store } = await startedWorld(t, { names: [] });
  const logLines = [];
  servers.log = {
    ...silent,
    warn: (_, text) => logLines.push(text),
    info: (text) => logLines.push(text)
  };
  servers.start('a');
  await time.run(100);
  const full = t.capture(store, 'write', () => {
    throw new WorldError('unreachable', 'insufficient resources');
  });
  t.ok((await untilSettled(time, servers.publish('a', 'x', 'value', 1))).cursor, 'it counts here');
  await time.run(60_000);
  t.match(logLines, [/insufficient/]);
  full.restore();
  await untilQuiet(time, servers);
  await time.run(5000);
  t.match(logLines, [/insufficient/, /answers again/]);
  t.equal(logLines.length, 2);
  t.ok(servers.isQuiet());
});

t.test('a write of which no answer comes may have been done', async (t) => {
  const { time, servers } = await startedWorld(t, { names: ['a', 'b'] });
  const { connection, feeds } = servers.all.get('a');
  connection.isCut = true;
  const first = await untilSettled(time, servers.publish('a', 'x', 'value', { n: 1 }));
  feeds.slow = 50;
  const second = servers.publish('a', 'x', 'value', { n: 2 });
  await time.run(10);
  connection.reconnect();
  await time.run(70);
  connection.isDeaf = true;
  const { cursor } = await untilSettled(time, second);
  t.not(cursor.split('-')[0], first.cursor.split('-')[0], 'it goes on in an epoch of its own');
  t.match(servers.tables()[1], '{\\"n\\":2}', 'it was done');
  await untilSettled(time, servers.publish('b', 'x', 'value', { n: 3 }));
  await untilSettled(time, servers.publish('a', 'x', 'value', { n: 4 }));
  connection.isDeaf = false;
  await time.run(10_000);
  t.ok(servers.isQuiet());
});

t.test('what a server was taking when it ends is no fault', async (t) => {
  const { time, servers } = world(t, { names: ['a'] });
  const logLines = [];
  servers.log = { ...silent, error: (_, text) => logLines.push(text) };
  const { feeds, shared } = servers.start('b');
  await time.run(100);
  feeds.computeChange = async () => {
    await time.pause(50);
    throw new Error('a worker thread has died');
  };
  await untilSettled(time, servers.publish('a', 'x', 'value', 1));
  await time.run(20);
  shared.close();
  await time.run(100);
  t.strictSame(logLines, []);
});

t.test('what the disk takes late has its cursor, and what it refuses is done later', async (t) => {
  const { time, servers } = await startedWorld(t, { names: ['a', 'b'] });
  const { connection, feeds, shared } = servers.all.get('a');
  connection.isCut = true;
  const unwritable = { problem: 'state-unwritable' };
  for (const [n, disk] of ['well', 'late', 'well'].entries()) {
    feeds.disk = disk;
    const answer = await untilSettled(time, servers.publish('a', 'x', 'value', n));
    if (disk === 'late') t.match(answer, unwritable);
  }
  connection.reconnect();
  await untilQuiet(time, servers);
  t.match(servers.tables()[1], /-3","2"/);
  t.equal(shared.status().refused, 0);

  feeds.disk = 'full';
  t.match(await untilSettled(time, servers.remove('a', 'x')), unwritable);
  await time.run(100);
  t.equal(servers.tables()[1], '[]');
  feeds.disk = 'well';
  await untilQuiet(time, servers);
  t.equal(servers.tables()[0], '[]');
});

t.test(
  'a disk that stays full is one line for each feed in the log, not one for each version',
  async (t) => {
    const { time, servers } = await startedWorld(t, { names: ['a'] });
    const lines = [];
    servers.log = { ...silent, error: ({ problem }) => lines.push(problem) };
    const { feeds, shared } = servers.start('b');
    await time.run(100);
    for (const disk of ['full', 'well', 'full']) {
      feeds.disk = disk;
      for (let n = 0; n < 3; n += 1) {
        await untilSettled(time, servers.publish('a', 'x', 'value', disk + n));
        await time.run(100);
      }
      t.equal(shared.status().behind, disk === 'full' ? 1 : 0);
    }
    t.strictSame(lines, ['state-unwritable', 'state-unwritable']);
  }
);

t.test('deleted feeds are remembered up to a bound, here and in the store', async (t) => {
  const { time, servers, store } = world(t, { names: ['a'] });
  servers.kill('a');
  servers.start('a', { most: 10 });
  await time.run(100);
  for (let n = 0; n < 25; n += 1) {
    await untilSettled(time, servers.publish('a', `${n}`, 'value', n));
    await untilSettled(time, servers.remove('a', `${n}`));
  }
  await time.run(1000);
  t.equal(store.messages.size, 10);
  t.ok(store.messages.has('24'));
});

t.test('a value that no message has room for is refused, with the bound', async (t) => {
  const { time, servers, store } = await startedWorld(t, { names: ['a', 'b'] });
  const { connection, shared } = servers.all.get('a');
  connection.maxBodyBytes = 50;
  const answer = await untilSettled(time, servers.publish('a', 'x', 'value', 'x'.repeat(60)));
  t.match(answer, { problem: 'feed-too-large', detail: /more than 50 bytes.*max_payload/ });
  // A value from before the limit was known stays.
  connection.maxBodyBytes = 100;
  store.stop();
  await untilSettled(time, servers.publish('a', 'x', 'value', 'x'.repeat(60)));
  connection.maxBodyBytes = 50;
  store.start();
  await time.run(10_000);
  t.equal(shared.status().unstored, 1);
  t.equal(store.messages.size, 0);
});

t.test(`random histories, from seed ${SEED}`, async (t) => {
  for (let n = 0; n < HISTORIES; n += 1) {
    await history(t, SEED + n);
    if (!t.passing()) t.comment(`seed ${SEED + n}`);
    if (!t.passing()) break;
  }
  t.pass(`${HISTORIES} histories`);
});

t.test(`logs: random histories without a loss, from seed ${SEED}`, async (t) => {
  let promised = 0;
  for (let n = 0; n < HISTORIES && t.passing(); n += 1) promised += await logHistory(t, SEED + n);
  t.ok(promised > 5 * HISTORIES, `${promised} were promised`);
});

t.test('what must be looked for is, whatever news there are of it', async (t) => {
  const clock = new VirtualTime(1);
  const revisions = [];
  let finish;
  const store = {
    ...{ isConnected: true, isLost: false },
    watch: (watcher) => Object.assign(store, watcher),
    open: async () => ({ identity: 'one', last: 3 }),
    readHeads: async () => new Map([['x', { epoch: 1, version: 3, digest: 'd', revision: 3 }]])
  };
  const reconciler = new FeedReconciler({
    ...{ store, clock, log: silent, marks: new FeedMarks(10), maxBehind: 10 },
    ...{ isShared: () => true, onReached() {} },
    reconcile: (_, revision) =>
      revisions.push(revision) && new Promise((resolve) => (finish = resolve))
  });
  reconciler.open();
  await clock.run(1);
  // Heads are read again while the feed is settled; then late news of an older version come.
  store.onMissed();
  await clock.run(1);
  store.onNews('x', 2);
  finish();
  await clock.run(1);
  t.strictSame(revisions, [Infinity, Infinity]);
  reconciler.end();
});

/** Returns a world with random faults. */
function faultyWorld(t, seed) {
  const all = world(t, { seed, lossPercent: lossPercentOf(seed) });
  const { time, random, store, servers } = all;
  const savedTables = new Map();
  const randomServer = () => random.pick([...servers.all.values()]);
  function mend() {
    for (const { connection } of servers.all.values()) {
      connection.isDeaf = false;
      if (connection.isCut) connection.reconnect();
    }
  }
  function killOne() {
    const { name } = randomServer();
    if (servers.all.size > 1) savedTables.set(name, servers.kill(name));
  }
  function restartKilled() {
    for (const [name, table] of savedTables)
      servers.start(name, random.oneIn(2) ? { kept: table } : {});
    savedTables.clear();
  }
  /** Plays random events, and then ends all faults. */
  async function playEvents(events) {
    for (let step = 0; step < 120; step += 1) {
      random.pick(events)();
      await time.run(random.pick([0, 1, 3, 10, 300, 2500]));
    }
    restartKilled();
    store.start();
    mend();
    await time.run(8000);
  }
  /** @returns {Promise<unknown[]>} the tables of all servers at the end */
  async function finish() {
    await untilQuiet(time, servers);
    const tables = servers.tables();
    if (!servers.isQuiet()) {
      const counts = [...servers.all.values()].map(({ shared }) => shared.status());
      t.fail(`seed ${seed}: not the same: ${tables.join('\n')} ${JSON.stringify(counts)}`);
    }
    for (const { shared } of servers.all.values()) shared.close();
    return JSON.parse(tables[0]);
  }
  return { ...all, randomServer, mend, killOne, restartKilled, playEvents, finish };
}

/** Cuts off and kills servers, stops and hangs the store: each promised item is there once, in one order. */
async function logHistory(t, seed) {
  const { random, store, servers, randomServer, mend, killOne, restartKilled, playEvents, finish } =
    faultyWorld(t, seed);
  const promised = [];
  let n = 0;
  function append() {
    n += 1;
    const item = { n, fill: 'x'.repeat(random.below(6000)) };
    servers
      .append(randomServer().name, 'log', item)
      .then(({ cursor }) => cursor && promised.push([Number(cursor.split('-')[1]), item.n]));
  }
  await playEvents([
    ...Array.from({ length: 12 }, () => append),
    () => store.stop(),
    () => random.oneIn(2) && store.hang(),
    ...Array.from({ length: 3 }, () => () => store.start()),
    () => (randomServer().connection.isCut = true),
    () => (randomServer().connection.isDeaf = random.oneIn(2)),
    ...[mend, mend, mend, killOne, restartKilled]
  ]);
  const [[, cursor, items] = [0, 'e0-0', []]] = await finish();
  const numbers = items.map((item) => JSON.parse(item).n);
  const first = Number(cursor.split('-')[1]) + 1 - items.length;
  const wrong = promised.find(([version, number]) => numbers[version - first] !== number);
  if (wrong) t.fail(`seed ${seed}: ${wrong} is not where it was promised, in ${numbers}`);
  if (new Set(numbers).size < numbers.length) t.fail(`seed ${seed}: an item twice in ${numbers}`);
  return promised.length;
}

/** Versions of forged heads, which no server has written. */
const FORGED_VERSIONS = [1, 2 ** 31, 2 ** 32, LAST_VERSION - 1, LAST_VERSION, LAST_VERSION];

/** Plays a history of all faults. At the end all servers have the same feeds. */
async function history(t, seed) {
  const { time, random, store, servers, randomServer, killOne, restartKilled, playEvents, finish } =
    faultyWorld(t, seed);
  const isHostile = seed % 3 === 0;
  store.doublesNews = isHostile;
  const oneIn = (many, act) => random.oneIn(many) && act();
  const events = [
    ...(isHostile ? [intrude, intrude] : []),
    ...Array.from({ length: 8 }, () => publish),
    () => store.stop(),
    () => store.hang(),
    () => store.start(),
    () => store.start(),
    () => store.sync(),
    () => oneIn(4, () => store.stop() || store.loseUnsynced()),
    () => oneIn(8, () => store.stop() || store.loseAll()),
    () => (randomServer().connection.isCut = true),
    mendSome,
    mendSome,
    () => oneIn(2, killOne),
    restartKilled
  ];

  function publish() {
    const { name } = randomServer();
    const key = random.pick(KEYS);
    const kind = random.below(10);
    const value = { n: random.below(1e6) };
    const patch = { [`k${random.below(3)}`]: random.below(1e6) };
    let answer;
    if (random.oneIn(3)) answer = servers.append(name, random.pick([...KEYS, 'log']), value);
    else if (kind < 5) answer = servers.publish(name, key, 'value', value);
    else if (kind < 9) answer = servers.publish(name, key, 'merge-patch', patch);
    else answer = servers.remove(name, key);
    answer.catch((error) => t.fail(error));
  }

  /** A foreign program writes a head, or sends news. */
  function intrude() {
    const key = random.pick(KEYS);
    if (random.oneIn(4)) return store.publishNews(key, random.pick(FORGED_VERSIONS));
    const before = store.messages.get(key);
    // A cursor that no server uses.
    const epoch = LAST_VERSION - store.lastRevision;
    const version = random.pick([
      ...FORGED_VERSIONS,
      Math.min(LAST_VERSION, (before?.version ?? 0) + 1)
    ]);
    const value = Buffer.from(JSON.stringify({ epoch, version }));
    const head = {
      epoch,
      version,
      form: 'plain',
      ...(random.below(4) && { digest: digestOf(value) })
    };
    const body = random.oneIn(2) ? value : Buffer.from('no JSON');
    return store.write(key, head, body, before?.revision ?? 0);
  }

  function mendSome() {
    for (const { connection } of servers.all.values())
      if (connection.isCut && random.oneIn(2)) connection.reconnect();
  }

  await playEvents(events);
  if (isHostile) {
    for (const key of KEYS) {
      const answer = await untilSettled(
        time,
        servers.publish(randomServer().name, key, 'value', { end: 1 })
      );
      if (answer.problem && answer.problem !== 'other-kind')
        t.fail(`seed ${seed}: ${key} can't be written over: ${answer.problem}`);
    }
  }
  const all = await finish();
  const stored = [...store.messages.values()].filter(({ digest }) => digest !== undefined).length;
  if (all.length !== stored) t.fail(`seed ${seed}: the store has ${stored}`);
}

t.test('a state keeps what was deleted in a world', async (t) => {
  const path = join(t.testdir(), 'state');
  const options = { ...readOptions([]), capacity: 10, world: ['nats://a'] };
  const state = { path, stateBytes: 1e6, journalBytes: 1e6, snapshotEvery: 600, sync: 'never' };
  function open() {
    const pool = new Pool(options);
    t.teardown(() => pool.close());
    pool.openState(state);
    const feeds = new Feeds({ options, threads: {}, pool, log: silent });
    t.teardown(() => feeds.close());
    feeds.restore();
    return { pool, feeds };
  }
  const whole = { value: Buffer.from('1'), patch: Buffer.of(), gzip: Buffer.of() };
  for (const end of ['closeState', 'finishState']) {
    const { pool, feeds } = open();
    feeds.attachShared({});
    feeds.noteDeleted('gone', { epoch: 5, version: 3 });
    feeds.noteDeleted('back', { epoch: 5, version: 3 });
    feeds.noteDeleted('back');
    await feeds.storeVersion(end, { epoch: 6, version: 2 }, whole);
    pool[end]();
    pool.closeState();
  }
  const { feeds } = open();
  const restored = Object.fromEntries(feeds.attachShared({}));
  t.match(restored, {
    ...{ gone: { epoch: 5, version: 3 }, closeState: { epoch: 6, version: 2 } },
    finishState: { epoch: 6, version: 2, digest: digestOf(whole.value) }
  });
  t.equal(restored.gone.digest, undefined);
  t.equal(restored.back, undefined);
  t.equal(feeds.status().feeds, 2);
});
