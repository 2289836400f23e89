import { cpSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';

import { jetstreamManager } from '@nats-io/jetstream';
import t from 'tap';

import { digestOf } from '../../lib/feeds/packing.js';
import { FeedStore, STREAM } from '../../lib/world/feed-store.js';
import { NatsLink } from '../../lib/world/nats-link.js';
import { createServer } from '../../server.js';
import { listening } from '../support/addresses.js';
import { problemOf } from '../support/contract.js';
import {
  append,
  EventStream,
  get,
  durableFeedOptions,
  parkGet,
  parkMany,
  patch,
  put,
  remove,
  TOKEN,
  tokenFile,
  tryPut
} from '../support/feeds.js';
import { request } from '../support/http.js';
import { enterNats, skip, startNats, startBrokerProxy } from '../support/nats.js';
import { temporary } from '../support/processes.js';
import { startServer } from '../support/server.js';
import { until, untilAnswer } from '../support/until.js';
import { enterWorld, logOf, untilReady } from '../support/world-servers.js';

/**
 * Feeds of a world with server processes and a real nats-server. shared-feeds.test.js tests losses at exact times.
 */

const enter = (t, nats, name, more) =>
  enterWorld(t, nats, name, { 'publish-token-file': tokenFile(t), drain: 1, ...more });

/** Polls a feed at a server until `holds` accepts the answer, and returns the answer. */
const untilFeed = (server, key, holds = ({ status }) => status === 200) =>
  untilAnswer(() => get(server, key), holds, undefined, `${holds} of ${key} at ${server.name}`);

const hasCursor = (cursor) => (answer) => answer.body.cursor === cursor;

/** Returns a server's items of the chat, once it has reached a cursor. */
async function itemsAt(server, cursor) {
  const read = async () => {
    const { body } = await get(server, 'chat', 'last=1000000');
    const { gap, items = [] } = body;
    let at = body.cursor;
    while (at && at !== cursor) {
      const { body: more } = await get(server, 'chat', `after=${at}&hold=5`);
      if (!more.items || more.gap) return false;
      items.push(...more.items);
      at = more.cursor;
    }
    return at === cursor && { gap, items };
  };
  return until(read, () => `the chat at ${server.name} comes to ${cursor}`);
}

t.test('published at one server, at all', { skip, timeout: 120_000 }, async (t) => {
  const nats = await startNats(t, 'max_payload: 65536');
  const upstream = createHttpServer((request, response) => response.end('{"from":"upstream"}'));
  const url = `http://127.0.0.1:${await listening(t, upstream)}/{key}`;
  const [a, b, c] = await Promise.all([
    enter(t, nats, 'a', { arena: 'hall' }),
    enter(t, nats, 'b'),
    enter(t, nats, 'c', { upstream: url, 'upstream-every': 1, 'feed-bytes': 90_000 })
  ]);
  await untilReady([a, b, c]);
  const early = await parkGet(b, 'early', 'after=none');
  const { cursor: promised } = (await put(a, 'early', 1)).body;
  t.equal(
    (await early.answer).body.cursor,
    promised,
    'a client that waits at another server hears of it'
  );
  await remove(a, 'early');

  await t.test('a long poll, one of many and an event stream, at other servers', async (t) => {
    const value = { title: 'scores', list: Array.from({ length: 40 }, (_, n) => ({ n })) };
    const first = await put(a, 'scores', value);
    t.equal(first.status, 201);
    const { cursor } = first.body;
    for (const server of [b, c]) {
      const { body } = await untilFeed(server, 'scores', hasCursor(cursor));
      t.strictSame(body, { feed: 'scores', cursor, value }, server.name);
    }
    const poll = await parkGet(b, 'scores', `after=${cursor}&delta=1`);
    const many = await parkMany(c, { delta: true, feeds: { scores: cursor } });
    const stream = await EventStream.open(b, 'scores', { headers: { 'Last-Event-ID': cursor } });
    const second = await patch(a, 'scores', 'merge-patch', { title: 'more' });
    t.equal(second.status, 200);
    const next = second.body.cursor;
    const delta = {
      ...{ feed: 'scores', from: cursor, cursor: next },
      patch: [{ op: 'replace', path: '/title', value: 'more' }]
    };
    t.strictSame((await poll.answer).body, delta, 'deltas, too');
    t.strictSame((await many.answer).body, { items: [delta] });
    t.match(await stream.news(), { id: next, data: { value: { ...value, title: 'more' } } });
    stream.wire.destroy();
    const same = await put(b, 'scores', { ...value, title: 'more' });
    t.equal(same.body.cursor, next, 'a value that did not change keeps its cursor, wherever');
    const gzip = await get(c, 'scores', '', { headers: { 'Accept-Encoding': 'gzip' } });
    t.equal(gzip.status, 200);
  });

  await t.test('a client that knows a version first waits for it at another server', async (t) => {
    const { cursor } = (await get(b, 'scores')).body;
    const [epoch, version] = cursor.split('-');
    const ahead = `${epoch}-${Number(version) + 1}`;
    const { answer } = await parkGet(b, 'scores', `after=${ahead}&hold=60`);
    const one = await put(c, 'scores', { n: 1 });
    t.equal(one.body.cursor, ahead);
    const two = await put(a, 'scores', { n: 2 });
    const { body } = await answer;
    t.strictSame(
      body,
      { feed: 'scores', cursor: two.body.cursor, value: { n: 2 } },
      'not the older'
    );
    const old = await get(a, 'scores', `after=eother-1`);
    t.strictSame(old.body, body, 'of another epoch: the whole value');
  });

  await t.test('deleted at one, gone at all', async (t) => {
    const { body } = await put(a, 'short', 1);
    await untilFeed(c, 'short', hasCursor(body.cursor));
    const { answer } = await parkGet(b, 'short', `after=${body.cursor}`);
    t.equal((await remove(c, 'short')).status, 204);
    t.equal(problemOf(await answer), 'unknown-feed');
    await untilFeed(a, 'short', ({ status }) => status === 404);
    const again = await put(b, 'short', 2);
    t.equal(again.status, 201);
    await untilFeed(a, 'short', hasCursor(again.body.cursor));
  });

  await t.test('what stays on its server: arenas, and what is fetched', async (t) => {
    await untilFeed(a, 'arena/hall/control');
    await put(b, 'arena/other', 1);
    const fetched = await untilFeed(c, 'price');
    t.strictSame(fetched.body.value, { from: 'upstream' });
    await put(a, 'after', 1);
    await untilFeed(b, 'after');
    for (const key of ['arena/hall/control', 'price']) {
      t.equal((await get(b, key)).status, 404, key);
    }
    t.equal((await get(a, 'arena/other')).status, 404);
    const published = await put(a, 'price', { from: 'a' });
    await untilFeed(c, 'price', hasCursor(published.body.cursor));
  });

  await t.test('logs: one order at every server, and each item once', async (t) => {
    const parked = await parkGet(b, 'chat', 'after=none');
    const first = await append(a, 'chat', { n: 0 });
    t.equal(first.status, 201);
    const [epoch] = first.body.cursor.split('-');
    t.strictSame(
      (await parked.answer).body.items,
      [{ n: 0 }],
      'a client that waits at another server hears it'
    );
    const stream = await EventStream.open(c, 'chat', { query: `after=${first.body.cursor}` });
    const numbers = Array.from({ length: 60 }, (_, n) => n + 1);
    const all = numbers.map(async (n) => {
      let answer;
      do answer = await append([a, b, c][n % 3], 'chat', { n, fill: 'x'.repeat(1000) });
      while (answer.status === 503);
      return answer;
    });
    const cursors = (await Promise.all(all)).map(({ status, body }) => {
      t.equal(status, 200);
      return body.cursor;
    });
    const last = `${epoch}-61`;
    t.strictSame(cursors.toSorted(), numbers.map((n) => `${epoch}-${n + 1}`).toSorted());
    const log = await itemsAt(a, last);
    t.strictSame(
      log.items.map(({ n }) => n).toSorted((x, y) => x - y),
      [0, ...numbers]
    );
    for (const [at, cursor] of cursors.entries()) {
      t.equal(log.items[Number(cursor.split('-')[1]) - 1].n, at + 1, 'a cursor is of its item');
    }
    for (const server of [b, c]) t.strictSame(await itemsAt(server, last), log, server.name);
    const streamed = [];
    while (streamed.length < 60) streamed.push(...(await stream.news()).data.items);
    t.strictSame(streamed, log.items.slice(1));
    stream.wire.destroy();

    const d = await enter(t, nats, 'late');
    const small = await enter(t, nats, 'small', { 'log-items': 20 });
    await untilReady([d, small]);
    t.strictSame(await itemsAt(d, last), log, 'a new server has all, from several parts');
    const { gap, items } = await itemsAt(small, last);
    t.ok(gap && items.length >= 20);
    t.strictSame(items, log.items.slice(-items.length), 'or what it keeps');

    t.equal(problemOf(await tryPut(b, 'chat', '1')), 'other-kind');
    const value = await put(a, 'value', 1);
    t.equal(problemOf(await append(b, 'value', 1)), 'other-kind', 'at once at every server');
    t.equal(value.status, 201);
    const large = await append(a, 'chat', randomBytes(80_000).toString('base64'));
    t.equal(problemOf(large), 'item-too-large');
    t.match(large.body.detail, /max_payload/);
    t.equal((await remove(b, 'chat')).status, 204);
    t.equal((await put(c, 'chat', 1)).status, 201, 'deleted, it may be the other kind');
    await until(async () => (await get(d, 'chat')).body.value === 1);
    t.equal((await remove(a, 'chat')).status, 204);
    const again = await append(b, 'chat', 'again');
    t.equal(again.status, 201);
    for (const server of [a, c, d, small]) {
      t.strictSame((await itemsAt(server, again.body.cursor)).items, ['again']);
    }
    await Promise.all([d, small].map((server) => server.stop()));
  });

  await t.test(
    'a value that no message has room for, one that a server does not take',
    async (t) => {
      const large = await tryPut(
        a,
        'large',
        JSON.stringify(randomBytes(80_000).toString('base64'))
      );
      t.equal(large.status, 413);
      t.equal(problemOf(large), 'feed-too-large');
      t.match(large.body.detail, /64512 bytes.*max_payload/);
      const { cursor } = (await put(a, 'long', JSON.stringify('x'.repeat(100_000)))).body;
      await untilFeed(b, 'long', hasCursor(cursor));
      const { worldFeedsBehind } = await c.until((counts) => counts.worldFeedsRefused > 0);
      t.ok(worldFeedsBehind >= 1, 'more than its --feed-bytes');
      t.match(logOf(c), '"feed":"long","problem":"feed-too-large"');
    }
  );

  await t.test('the counts', async (t) => {
    const [atA, atB] = [await a.adminStatus(), await b.adminStatus()];
    t.ok(atA.worldFeedsOut > 0 && atA.worldFeedsIn > 0);
    t.ok(atB.worldFeedsIn > 0);
    t.match(atA, { worldFeedsOverruled: 0, worldFeedsUnshared: 0, worldFeedsBehind: 0 });
    const metrics = await (await fetch(`http://127.0.0.1:${a.adminPort}/metrics`)).text();
    t.match(metrics, /^sprites_world_feeds_in_total [1-9]/m);
    t.match(metrics, /^sprites_world_feeds_out_total [1-9]/m);
    t.match(metrics, /^sprites_world_feeds_unshared 0$/m);
  });

  await t.test('a new server is ready when it has them all, and shares to its end', async (t) => {
    for (let n = 0; n < 80; n += 1) await put(a, `many/${n}`, n);
    await untilFeed(b, 'many/79');
    // This feed may have come before others of them.
    const { feeds } = await b.until(({ worldFeedsBehind }) => worldFeedsBehind === 0);
    const { streams } = await jetstreamManager(await enterNats(t, nats));
    await streams.purge(STREAM);
    const isFilled = async () => (await streams.info(STREAM)).state.messages === feeds - 1;
    await until(isFilled, 'what an operator purges comes again');
    const d = await enter(t, nats, 'd', { drain: 20 });
    await untilReady([d]);
    // All but arena/other, which was published at b.
    t.equal((await d.status()).feeds, feeds - 1);
    const wire = await d.wire();
    const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Length': 1 };
    wire.send(request('PUT', '/feed/last', { headers: { ...headers, Expect: '100-continue' } }));
    t.equal((await wire.read()).status, 100);
    d.child.kill('SIGTERM');
    await until(() => /has left the world/.test(logOf(d)));
    wire.send('1');
    await untilFeed(b, 'last', hasCursor((await d.read(wire)).body.cursor));
    await d.stop();
  });

  await Promise.all([a, b, c].map((server) => server.stop()));
});

t.test('all heads are read, however much was replaced', { skip, timeout: 120_000 }, async (t) => {
  const nats = await startNats(t);
  const store = new FeedStore(new NatsLink({ servers: [nats.url], name: 'a' }), 'a');
  t.teardown(() => store.close());
  await store.open();
  const versions = Array.from({ length: 60 }, (_, n) => n + 1);
  const keys = Array.from({ length: 20 }, (_, n) => `k/${n}`);
  // Enough for several of the store's blocks.
  const body = randomBytes(20_000);
  const head = { epoch: 7, digest: digestOf('1'), form: 'plain' };
  const writeAll = keys.map(async (key, at) => {
    let revision = 0;
    for (const version of versions.slice(at)) {
      revision = await store.put(key, { ...head, version }, body, revision);
    }
  });
  await Promise.all(writeAll);
  const heads = await store.readHeads();
  t.strictSame([...heads.keys()].toSorted(), keys.toSorted());
  for (const { epoch, version } of heads.values()) t.strictSame([epoch, version], [7, 60]);
});

t.test('a state that may lack its end brings back no older value', { skip }, async (t) => {
  const nats = await startNats(t);
  const [before, copy] = [temporary(t), temporary(t)];
  const enterB = (folder) => enter(t, nats, 'b', { state: join(folder, 'b') });
  const [a, first] = [await enter(t, nats, 'a'), await enterB(before)];
  await untilReady([a, first]);
  const keys = Array.from({ length: 12 }, (_, n) => `key/${n}`);
  for (const key of keys) await put(a, key, 1);
  const { cursor: appended } = (await append(a, 'log', 1)).body;
  for (const key of [...keys, 'log']) await untilFeed(first, key);
  await first.kill();
  for (const key of keys) await put(a, key, 2);
  await append(a, 'log', 2);
  cpSync(before, copy, { recursive: true });
  const b = await enterB(copy);
  await untilReady([b]);
  for (const server of [a, b]) {
    for (const key of keys) t.equal((await get(server, key)).body.value, 2, server.name);
  }
  const { body } = await get(b, 'log', `after=${appended}`);
  t.match(body, { from: appended, items: [2], gap: undefined }, 'nor is an item missing');
  await b.stop();
  const outside = await startServer(t, {
    options: { ...durableFeedOptions(t), state: join(copy, 'b') }
  });
  const { cursor } = (await put(outside, keys[0], 3)).body;
  t.not(cursor, (await put(a, keys[0], 4)).body.cursor, 'without --world its epochs are its own');
  await Promise.all([a, outside].map((server) => server.stop()));
});

t.test('without the broker, and with it again', { skip, timeout: 120_000 }, async (t) => {
  const nats = await startNats(t);
  const [a, b] = await Promise.all(['a', 'b'].map((name) => enter(t, nats, name)));
  await untilReady([a, b]);
  const before = await put(a, 'x', { n: 0 });
  await untilFeed(b, 'x', hasCursor(before.body.cursor));
  await nats.kill();
  const stream = await EventStream.open(a, 'x');
  await stream.news();
  const one = await put(a, 'x', { n: 1 });
  t.equal(one.status, 200, 'it counts, at its own server');
  t.equal(
    problemOf(await append(a, 'log', 1)),
    'publishing-busy',
    'but two orders would not be one'
  );
  t.match((await stream.news()).data.value, { n: 1 });
  await put(a, 'x', { n: 2 });
  const other = await put(b, 'x', { n: 3 });
  const epochs = [before, one, other].map(({ body }) => body.cursor.split('-')[0]);
  t.equal(new Set(epochs).size, 3, 'in epochs of their own');
  await remove(b, 'x');
  const alone = await put(b, 'y', 1);
  const { worldFeedsUnshared } = await b.adminStatus();
  t.equal(worldFeedsUnshared, 2);
  await nats.start();
  await untilFeed(a, 'y', hasCursor(alone.body.cursor));
  for (const server of [a, b]) {
    await until(async () => (await server.adminStatus()).worldFeedsUnshared === 0);
  }
  // A version in the store may still be on its way to the other server.
  await until(async () => {
    const [one, two] = await Promise.all([a, b].map((server) => get(server, 'x')));
    return isDeepStrictEqual(one.body, two.body);
  });
  stream.wire.destroy();
  await nats.kill();
  await put(a, 'lost', 1);
  await Promise.all([a, b].map((server) => server.stop()));
  const leaveLog = (server) =>
    logOf(server)
      .split('\n')
      .find((line) => /has left the world/.test(line));
  t.match(
    JSON.parse(leaveLog(a)),
    { level: 40, sprites: 0, feeds: 1 },
    'it says what it takes away'
  );
  t.match(JSON.parse(leaveLog(b)), { level: 30, sprites: 0, feeds: 0 });
});

t.test('what a program publishes as its server ends is done, or not', { skip }, async (t) => {
  const nats = await startNats(t);
  const way = await startBrokerProxy(t, () => Number(new URL(nats.url).port));
  const server = await createServer({ port: 0, world: way.url, name: 'a', drain: 0 });
  await until(() => server.status().worldFeedsReachable === 1);
  await server.publish('x', 1);
  way.hang('in');
  let isSettled = false;
  const late = server.publish('x', 2).finally(() => (isSettled = true));
  const { streams } = await jetstreamManager(await enterNats(t, nats));
  await until(async () => isSettled || (await streams.info(STREAM)).state.last_seq === 2);
  const closed = server.close();
  // A close that did not wait would be done by then, and the publication would have failed.
  await Promise.race([late.catch(() => {}), pause(1500)]);
  way.mend();
  t.match(await late, { cursor: /-2$/ });
  await closed;
  await t.rejects(server.publish('x', 3), { problem: 'draining' });
});
