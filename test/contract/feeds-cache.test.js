import { gunzipSync } from 'node:zlib';

import t from 'tap';

import {
  append,
  askForPatches,
  EventStream,
  get,
  getMany,
  park,
  parkGet,
  parkGetMany,
  parkMany,
  put,
  remove,
  tokenFile,
  tryPut
} from '../support/feeds.js';
import { request } from '../support/http.js';
import { contract, refused, startServer } from '../support/server.js';

/**
 * Feeds behind a cache: the caching headers of answers, the turn of a ping, and answers that must never be cached.
 */

const SECONDS = 7;
const NEWEST = 'public, s-maxage=1, max-age=0';
const LONG = `public, s-maxage=${SECONDS}, max-age=0`;
const TURN = /^[A-Za-z0-9-]{1,40}$/;

/** Returns a value long enough to be compressed, and far longer than its patches. */
const long = (score) => ({ score, padding: Array.from({ length: 200 }, (_, i) => `line ${i}`) });

const cacheOf = ({ headers }) => headers['cache-control'];
const options = { 'publish-token-file': tokenFile(t), 'feed-threads': 1, hold: 60 };

contract(t, { options: { ...options, 'feed-cache': SECONDS } }, async (t, server) => {
  let last = 0;
  /** Sends its requests over one connection, so to one worker. Another worker may lack the value, and answer 200. */
  async function openKeptConnection() {
    const wire = await server.wire();
    return {
      ask(method, target, more) {
        wire.send(request(method, target, more));
        return server.read(wire, { head: method === 'HEAD' });
      }
    };
  }

  /** Publishes a new feed. Returns its key and its first cursor. */
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
    const keptConnection = await openKeptConnection();
    await askForPatches(server, key);
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
    const texts = Array.from({ length: 80 }, (_, i) => `the ${i}th text`);
    const longer = (await put(server, key, { ...long(1), texts })).body.cursor;
    for (const more of [{}, { headers }]) {
      const query = `after=${next}&delta=1`;
      const { headers: answerHeaders } = await get(keptConnection, key, query, more);
      const isPacked = 'headers' in more;
      t.equal('content-encoding' in answerHeaders, isPacked);
      t.equal(
        answerHeaders.etag.startsWith(`"${longer}.`) && answerHeaders.etag.endsWith('.gzip"'),
        isPacked
      );
      const known = { headers: { ...more.headers, 'If-None-Match': answerHeaders.etag } };
      const repeated = await get(keptConnection, key, query, known);
      t.strictSame([repeated.status, repeated.headers.etag], [304, answerHeaders.etag]);
    }
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

  t.test('a client that waits for a first value has turns, too', async (t) => {
    const key = 'cached/awaited';
    const ping = await get(server, key, 'after=none&hold=5');
    t.equal(ping.body.cursor, 'none');
    t.match(ping.body.turn, TURN);
    const watcher = await parkGet(server, key, `after=none&turn=${ping.body.turn}`);
    await put(server, key, 3);
    t.equal((await watcher.answer).body.value, 3);
  });

  t.test('304 for a client that has it', async (t) => {
    const { key, cursor } = await fresh(long(0));
    const keptConnection = await openKeptConnection();
    const { headers } = await get(keptConnection, key);
    const known = ['"x", W/' + headers.etag, headers.etag, '*'];
    for (const list of known) {
      for (const method of ['GET', 'HEAD']) {
        const more = { headers: { 'If-None-Match': list } };
        const answer = await keptConnection.ask(method, `/feed/${key}`, more);
        t.equal(answer.status, 304, `${method} ${list}`);
        t.equal(answer.bytes.length, 0);
        t.equal(answer.headers.etag, headers.etag);
        t.equal(cacheOf(answer), NEWEST);
      }
    }
    const handled = await get(keptConnection, key, 'turn=%61', {
      headers: { 'If-None-Match': '*' }
    });
    t.equal(handled.status, 304, 'from JavaScript, too, which leaves nothing behind');
    const unknown = [
      `"${cursor}0", "${cursor.slice(0, -1)}", ${cursor}`,
      ...[`"x"${headers.etag}`, `"x"${cursor}"x"`, `"x, ${headers.etag}`, `x, ${headers.etag}`]
    ];
    for (const list of unknown) {
      for (const method of ['GET', 'HEAD']) {
        const more = { headers: { 'If-None-Match': list } };
        const { status } = await keptConnection.ask(method, `/feed/${key}`, more);
        t.equal(status, 200, `${method} ${list}`);
      }
    }
    await put(server, key, long(1));
    const old = { headers: { 'If-None-Match': headers.etag } };
    t.equal((await get(server, key, '', old)).status, 200, 'not any more');
    const parked = await parkGet(server, key, `after=${(await get(server, key)).body.cursor}`, old);
    await put(server, key, long(2));
    t.equal((await parked.answer).body.value.score, 2, 'a poll parks with it');
  });

  t.test('several feeds by an address', async (t) => {
    const [a, b] = [await fresh(long(0)), await fresh(long(0))];
    const keptConnection = await openKeptConnection();
    const cursors = { [a.key]: a.cursor, [b.key]: b.cursor };
    const watcher = await parkGetMany(server, cursors, 'delta=1');
    const next = (await put(server, b.key, long(1))).body.cursor;
    const news = await watcher.answer;
    const patch = [{ op: 'replace', path: '/score', value: 1 }];
    const item = { feed: b.key, from: b.cursor, cursor: next, patch };
    t.strictSame(news.body, { items: [item] });
    t.equal(cacheOf(news), LONG);
    t.equal(news.headers.vary, 'Accept-Encoding, Accept');
    const again = await getMany(keptConnection, cursors, 'hold=5&delta=1&turn=x');
    t.strictSame([again.body, again.headers.etag], [news.body, news.headers.etag]);
    const other = { [b.key]: b.cursor, [a.key]: a.cursor };
    t.not((await getMany(server, other, 'delta=1')).headers.etag, news.headers.etag);
    const whole = await getMany(server, cursors);
    t.equal(whole.body.items[0].value.score, 1);
    t.not(whole.headers.etag, news.headers.etag, 'the value is another form');
    const more = { headers: { 'If-None-Match': news.headers.etag } };
    const same = await getMany(keptConnection, cursors, 'delta=1', more);
    t.strictSame([same.status, same.headers.etag], [304, news.headers.etag]);
    await put(server, a.key, long(1));
    t.equal((await getMany(server, cursors, 'delta=1', more)).status, 200, 'of another feed, too');
    for (const after of ['', 'none']) {
      t.equal(cacheOf(await getMany(server, { ...cursors, [a.key]: after })), NEWEST);
    }
  });

  t.test('a ping for several feeds names a turn', async (t) => {
    const [a, b] = [await fresh(), await fresh()];
    const held = { [a.key]: a.cursor, [b.key]: b.cursor };
    const first = await getMany(server, held, 'hold=5');
    t.strictSame(Object.keys(first.body), ['items', 'turn']);
    t.strictSame(first.body.items, []);
    t.match(first.body.turn, TURN);
    t.equal(cacheOf(first), LONG);
    const second = await getMany(server, held, `hold=5&turn=${first.body.turn}`);
    t.not(second.body.turn, first.body.turn);
    t.not(second.headers.etag, first.headers.etag);
  });

  t.test('HEAD says what GET would', async (t) => {
    const { key, cursor } = await fresh();
    const { headers } = await server.ask('HEAD', `/feed/${key}`);
    t.match(headers, { etag: `"${cursor}"`, 'cache-control': NEWEST });
    const later = await server.ask('HEAD', `/feed/${key}?after=${cursor}`);
    const streamed = await server.ask('HEAD', `/feed/${key}`, {
      headers: { Accept: 'text/event-stream' }
    });
    for (const answer of [later, streamed]) {
      const { status, headers } = answer;
      t.strictSame([status, headers.etag, cacheOf(answer)], [200, undefined, 'no-store']);
    }
    const log = `${key}/log`;
    for (const item of [1, 2]) await append(server, log, item);
    const { etag, 'content-length': length } = (await get(server, log)).headers;
    const of = await server.ask('HEAD', `/feed/${log}`);
    t.match(of.headers, { etag, 'content-length': length });
    const known = { headers: { 'If-None-Match': etag } };
    t.equal((await server.ask('HEAD', `/feed/${log}`, known)).status, 304);
    const { key: large, cursor: whole } = await fresh(long(0));
    const gzip = { 'Accept-Encoding': 'gzip', 'If-None-Match': `"${whole}"` };
    const open = await server.ask('HEAD', `/feed/${large}`, { headers: gzip });
    t.strictSame([open.status, open.headers.etag], [200, undefined], 'the tag of another form');
    const any = { headers: { ...gzip, 'If-None-Match': '*' } };
    const keptConnection = await openKeptConnection();
    await get(keptConnection, large);
    for (const method of ['GET', 'HEAD']) {
      t.equal(
        (await keptConnection.ask(method, `/feed/${large}`, any)).status,
        304,
        `${method} any form`
      );
    }
  });

  t.test('problems, lists and streams are never kept', async (t) => {
    const { key, cursor } = await fresh();
    const other = await fresh();
    const third = await fresh();
    t.equal(cacheOf(await get(server, 'cached/nowhere')), 'no-store');
    t.equal(cacheOf(await get(server, key, 'after=_')), 'no-store');
    const deletedPoll = await parkGet(server, key, `after=${cursor}`);
    const many = await parkMany(server, { feeds: { [key]: cursor } });
    await put(server, key, 2);
    const { headers, body } = await many.answer;
    t.equal(headers['cache-control'], 'no-store');
    t.notOk('turn' in body);
    await deletedPoll.answer;
    const both = { [other.key]: other.cursor, [third.key]: third.cursor };
    const parked = await parkGetMany(server, both);
    await remove(server, other.key);
    for (const answer of [
      await parked.answer,
      await getMany(server, { [key]: '', 'cached/nowhere': '' })
    ]) {
      t.ok(answer.body.items.some(({ problem }) => problem === 'unknown-feed'));
      t.equal(cacheOf(answer), 'no-store', 'a list with a problem');
    }
    const ended = await parkGet(server, key, `after=${(await get(server, key)).body.cursor}`);
    await remove(server, key);
    t.match(await ended.answer, { status: 404, headers: { 'cache-control': 'no-store' } });
    const stream = await EventStream.open(server, third.key);
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
  const empty = await getMany(server, { plain: cursor }, 'hold=5&turn=x', list);
  t.strictSame([empty.body, cacheOf(empty)], [{ items: [] }, 'no-store']);
});

t.test('a server that ends has no answer kept', async (t) => {
  const server = await startServer(t, { options: { ...options, 'feed-cache': SECONDS, drain: 2 } });
  const { cursor } = (await tryPut(server, 'ending', '1')).body;
  const one = await park(server, request('GET', `/feed/ending?after=${cursor}`));
  const many = await parkGetMany(server, { ending: cursor });
  const closed = server.stop();
  for (const ping of [await one.answer, await many.answer]) {
    t.equal(cacheOf(ping), 'no-store');
    t.notOk('turn' in ping.body);
    t.type(ping.body.retry, 'number');
  }
  await closed;
});
