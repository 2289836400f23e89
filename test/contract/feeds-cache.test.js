import { gunzipSync } from 'node:zlib';

import t from 'tap';

import {
  EventStream,
  get,
  park,
  parkGet,
  parkMany,
  put,
  remove,
  tokenFile,
  tryPut
} from '../support/feeds.js';
import { request } from '../support/http.js';
import { contract, refused, startServer } from '../support/server.js';

/**
 * Feeds behind a cache: what an answer says of itself, the turn of a ping, and what must never be kept.
 */

const SECONDS = 7;
const NEWEST = 'public, s-maxage=1, max-age=0';
const LONG = `public, s-maxage=${SECONDS}, max-age=0`;
const TURN = /^[A-Za-z0-9-]{1,40}$/;

/** A value that is compressed, and that patches of a few bytes are small beside. */
const long = (score) => ({ score, padding: Array.from({ length: 200 }, (_, i) => `line ${i}`) });

const cacheOf = ({ headers }) => headers['cache-control'];
const options = { 'publish-token-file': tokenFile(t), 'feed-threads': 1, hold: 5 };

contract(t, { options: { ...options, 'feed-cache': SECONDS } }, async (t, server) => {
  let last = 0;
  /** A key of its own for each test, and the cursor of its first version. */
  async function fresh(value = 1) {
    const key = `cached/${(last += 1)}`;
    return { key, cursor: (await put(server, key, value)).body.cursor };
  }

  t.test(
    'the newest may be kept for a moment, what is newer than a cursor for longer',
    async (t) => {
      const { key, cursor } = await fresh();
      const plain = await get(server, key);
      t.equal(cacheOf(plain), NEWEST);
      t.equal(plain.headers.etag, `"${cursor}"`);
      t.equal(plain.headers.vary, 'Accept-Encoding, Accept');
      t.equal(cacheOf(await get(server, key, 'after=none')), NEWEST);
      const watcher = await parkGet(server, key, `after=${cursor}`);
      const { body } = await put(server, key, 2);
      for (const answer of [await watcher.answer, await get(server, key, `after=${cursor}`)]) {
        t.equal(cacheOf(answer), LONG);
        t.equal(answer.headers.etag, `"${body.cursor}"`);
      }
    }
  );

  t.test('each form of a version has a tag of its own', async (t) => {
    const { key, cursor } = await fresh(long(0));
    const next = (await put(server, key, long(1))).body.cursor;
    const headers = { 'Accept-Encoding': 'gzip' };
    const plain = await get(server, key, `after=${cursor}`);
    const gzip = await get(server, key, `after=${cursor}`, { headers });
    const patch = await get(server, key, `after=${cursor}&delta=1`, { headers });
    t.equal(gzip.headers['content-encoding'], 'gzip');
    t.equal(JSON.parse(gunzipSync(gzip.bytes)).cursor, next);
    t.equal(patch.body.from, cursor);
    for (const answer of [plain, gzip, patch]) {
      t.equal(cacheOf(answer), LONG);
      t.ok(answer.headers.etag.startsWith(`"${next}`));
    }
    t.equal(new Set([plain, gzip, patch].map(({ headers }) => headers.etag)).size, 3);
  });

  t.test('a ping names a turn, and each hold that begins with one ends in another', async (t) => {
    const { key, cursor } = await fresh();
    const first = await get(server, key, `after=${cursor}&hold=5`);
    t.strictSame(Object.keys(first.body), ['feed', 'cursor', 'turn']);
    t.match(first.body.turn, TURN);
    t.equal(cacheOf(first), LONG);
    const second = await get(server, key, `after=${cursor}&hold=5&turn=${first.body.turn}`);
    t.not(second.body.turn, first.body.turn);
    t.not(second.headers.etag, first.headers.etag);
    const watcher = await parkGet(server, key, `turn=${second.body.turn}&after=${cursor}`);
    await put(server, key, 2);
    t.equal((await watcher.answer).body.value, 2, 'it hears of news as ever');
  });

  t.test('who waits for a first value has turns, too', async (t) => {
    const key = 'cached/awaited';
    const ping = await get(server, key, 'after=none&hold=5');
    t.equal(ping.body.cursor, 'none');
    t.match(ping.body.turn, TURN);
    const watcher = await parkGet(server, key, `after=none&hold=5&turn=${ping.body.turn}`);
    await put(server, key, 3);
    t.equal((await watcher.answer).body.value, 3);
  });

  t.test('304 for who has it', async (t) => {
    const { key, cursor } = await fresh(long(0));
    const { headers } = await get(server, key);
    const known = ['"x", W/' + headers.etag, headers.etag, '*'];
    for (const list of known) {
      for (const method of ['GET', 'HEAD']) {
        const more = { headers: { 'If-None-Match': list } };
        const answer = await server.ask(method, `/feed/${key}`, more);
        t.equal(answer.status, 304, `${method} ${list}`);
        t.equal(answer.bytes.length, 0);
        t.equal(answer.headers.etag, headers.etag);
        t.equal(cacheOf(answer), NEWEST);
      }
    }
    const not = {
      headers: { 'If-None-Match': `"${cursor}0", "${cursor.slice(0, -1)}", ${cursor}` }
    };
    t.equal((await get(server, key, '', not)).status, 200);
    await put(server, key, long(1));
    const old = { headers: { 'If-None-Match': headers.etag } };
    t.equal((await get(server, key, '', old)).status, 200, 'not any more');
    const parked = await parkGet(server, key, `after=${(await get(server, key)).body.cursor}`, old);
    await put(server, key, long(2));
    t.equal((await parked.answer).body.value.score, 2, 'a poll parks with it');
  });

  t.test('HEAD says what GET would', async (t) => {
    const { key, cursor } = await fresh();
    const { headers } = await server.ask('HEAD', `/feed/${key}`);
    t.match(headers, { etag: `"${cursor}"`, 'cache-control': NEWEST });
  });

  t.test('problems, lists and streams are never kept', async (t) => {
    const { key, cursor } = await fresh();
    t.equal(cacheOf(await get(server, 'cached/nowhere')), 'no-store');
    t.equal(cacheOf(await get(server, key, 'after=_')), 'no-store');
    const gone = await parkGet(server, key, `after=${cursor}`);
    const many = await parkMany(server, { feeds: { [key]: cursor } });
    await put(server, key, 2);
    const { headers, body } = await many.answer;
    t.equal(headers['cache-control'], 'no-store');
    t.notOk('turn' in body);
    await gone.answer;
    const ended = await parkGet(server, key, `after=${(await get(server, key)).body.cursor}`);
    await remove(server, key);
    t.match(await ended.answer, { status: 404, headers: { 'cache-control': 'no-store' } });
    const other = await fresh();
    const stream = await EventStream.open(server, other.key);
    t.match(stream.head, /Cache-Control: no-store/);
    t.notMatch(stream.head, /ETag/);
    stream.wire.destroy();
  });

  for (const turn of ['', 'a_b', 'a'.repeat(41), '1&turn=2']) {
    t.test(`no turn: ${turn}`, (t) =>
      refused(t, server, 'bad-turn', () => get(server, 'cached/any', `turn=${turn}`), turn)
    );
  }
});

t.test('without the option an answer is what it was', async (t) => {
  const server = await startServer(t, { options });
  const { cursor } = (await tryPut(server, 'plain', '1')).body;
  const list = { headers: { 'If-None-Match': `"${cursor}", *` } };
  for (const answer of [
    await get(server, 'plain', '', list),
    await server.ask('HEAD', '/feed/plain', list)
  ]) {
    t.equal(answer.status, 200);
    t.equal(cacheOf(answer), 'no-store');
    t.equal(answer.headers.vary, 'Accept-Encoding');
    t.notOk('etag' in answer.headers);
  }
  const ping = await get(server, 'plain', `after=${cursor}&hold=5&turn=x`);
  t.strictSame(ping.body, { feed: 'plain', cursor });
  t.equal(cacheOf(ping), 'no-store');
});

t.test('a server that ends has no answer kept', async (t) => {
  const server = await startServer(t, { options: { ...options, 'feed-cache': SECONDS, drain: 2 } });
  const { cursor } = (await tryPut(server, 'ending', '1')).body;
  const { answer } = await park(server, request('GET', `/feed/ending?after=${cursor}`));
  const closed = server.stop();
  const ping = await answer;
  t.equal(cacheOf(ping), 'no-store');
  t.notOk('turn' in ping.body);
  t.type(ping.body.retry, 'number');
  await closed;
});
