import { gunzipSync } from 'node:zlib';

import t from 'tap';

import { problemOf } from '../support/contract.js';
import {
  append,
  askForPatches,
  authorized,
  EventStream,
  get,
  getMany,
  park,
  parkGet,
  parkGetMany,
  parkMany,
  put,
  remove,
  tokenFile
} from '../support/feeds.js';
import { request } from '../support/http.js';
import { contract, refused, startServer, stopAtEnd, DEFAULT_WORKERS } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * Feeds for watchers: tests every sentence of the contract.
 */

const CURSOR = /^e[0-9a-z]+-[0-9]+$/;

/** Returns a value far longer than its patches. */
const long = (score) => ({ score, padding: Array.from({ length: 200 }, (_, i) => `line ${i}`) });

const options = { 'publish-token-file': tokenFile(t), 'feed-threads': 1, hold: 60 };

contract(t, { options }, async (t, server) => {
  await put(server, 'first', 1);
  let last = 0;
  /** Returns a new key. */
  const freshKey = () => `tests/${(last += 1)}`;

  t.test('without a cursor the value comes at once', async (t) => {
    const key = freshKey();
    const { body } = await put(server, key, { b: [1, 2], a: 'ä' });
    const answer = await get(server, key);
    t.equal(answer.status, 200);
    t.equal(answer.headers['content-type'], 'application/json');
    t.strictSame(answer.body, { feed: key, cursor: body.cursor, value: { a: 'ä', b: [1, 2] } });
    t.match(body.cursor, CURSOR);
    t.ok(body.cursor.length <= 40);
    t.equal(
      answer.bytes.toString(),
      `{"feed":"${key}","cursor":"${body.cursor}","value":{"a":"ä","b":[1,2]}}`,
      'in canonical form'
    );
  });

  t.test('with the newest cursor it parks, and hears of the next version', async (t) => {
    const key = freshKey();
    const { body: first } = await put(server, key, 1);
    const watcher = await parkGet(server, key, `after=${first.cursor}`);
    const { body: second } = await put(server, key, 2);
    t.equal(second.watching, 1, 'the publisher is told how many watch');
    const { body } = await watcher.answer;
    t.strictSame(body, { feed: key, cursor: second.cursor, value: 2 });
  });

  t.test('delta=1: what leads from a version that is remembered', async (t) => {
    const key = freshKey();
    const cursors = [];
    for (const score of [0, 1, 2, 3]) {
      cursors.push((await put(server, key, long(score))).body.cursor);
      if (score === 0) await askForPatches(server, key);
    }
    const { body } = await get(server, key, `after=${cursors[0]}&delta=1`);
    t.strictSame(body, {
      feed: key,
      from: cursors[0],
      cursor: cursors[3],
      patch: [1, 2, 3].map((value) => ({ op: 'replace', path: '/score', value }))
    });
    const watcher = await parkGet(server, key, `delta=1&after=${cursors[3]}`);
    await put(server, key, long(4));
    t.strictSame((await watcher.answer).body.patch, [{ op: 'replace', path: '/score', value: 4 }]);
    t.equal((await get(server, key, `after=${cursors[0]}&delta=0`)).body.value.score, 4);
  });

  t.test('no patch is made before a client has asked for one', async (t) => {
    const key = freshKey();
    const { body: first } = await put(server, key, long(0));
    const { body: second } = await put(server, key, long(1));
    const patchOrValueAfter = async ({ cursor }) =>
      (await get(server, key, `after=${cursor}&delta=1`)).body;
    t.equal((await patchOrValueAfter(first)).value.score, 1);
    await put(server, key, long(2));
    t.equal((await patchOrValueAfter(second)).patch.length, 1, 'but then');
    t.equal((await patchOrValueAfter(first)).value.score, 2, 'and none that leads from before');
  });

  t.test('patches are kept until they are half as long as the value', async (t) => {
    const key = freshKey();
    const first = (await put(server, key, long(0))).body.cursor;
    const { bytes } = await askForPatches(server, key);
    // 46 bytes of patch and a comma each: the first patch is dropped when all are half as long as the value.
    let score = 0;
    let answer;
    do {
      score += 1;
      await put(server, key, long(10000 + score));
      answer = await get(server, key, `after=${first}&delta=1`);
    } while (answer.body.patch !== undefined && score < 1000);
    t.equal(answer.body.value.score, 10000 + score, 'then there is the value');
    const one = JSON.stringify({ op: 'replace', path: '/score', value: 10001 }).length + 1;
    const half = JSON.stringify(long(10000)).length / 2;
    t.ok(score * one > half && (score - 1) * one <= half, `${score} of ${one} in ${bytes.length}`);
  });

  t.test('a patch that is longer than half the value is none', async (t) => {
    const key = freshKey();
    const { body: first } = await put(server, key, { a: 1 });
    await askForPatches(server, key);
    await put(server, key, { b: 2 });
    t.strictSame((await get(server, key, `after=${first.cursor}&delta=1`)).body.value, { b: 2 });
  });

  t.test('a cursor of another epoch, unknown, too new: the whole value', async (t) => {
    const key = freshKey();
    const { body: first } = await put(server, key, 1);
    t.equal((await remove(server, key)).status, 204);
    const { body: second } = await put(server, key, 2);
    t.not(second.cursor, first.cursor);
    const epoch = second.cursor.split('-')[0];
    // With workers a newer cursor is no error: the client may have it from another worker, and the poll waits.
    const ahead = DEFAULT_WORKERS > 0 ? [] : [`${epoch}-9`];
    for (const cursor of [first.cursor, 'e7-42', 'x', '-', 'A-1', ...ahead, `${epoch}-0`, 'e-1']) {
      t.equal((await get(server, key, `after=${cursor}&delta=1`)).body.value, 2, cursor);
    }
    t.equal((await get(server, key, 'after=')).body.value, 2, 'an empty one is none');
  });

  t.test('a value that did not change keeps its cursor and wakes no watcher', async (t) => {
    const key = freshKey();
    const { body: first } = await put(server, key, '{"a":1.0,"b":"\\u00e4"}');
    const watcher = await parkGet(server, key, `after=${first.cursor}`);
    const again = await put(server, key, ' {"b":"ä", "a":1} ');
    t.strictSame(again.body, { cursor: first.cursor, watching: 1 });
    t.equal((await server.status()).watching, 1);
    await put(server, key, 3);
    t.equal((await watcher.answer).body.value, 3);
  });

  t.test('a feed without a publisher is unknown', async (t) => {
    await refused(t, server, 'unknown-feed', () => get(server, 'nobody/publishes/this'));
    await refused(t, server, 'unknown-feed', () => get(server, 'nobody', 'after=e1-1&hold=5'));
  });

  t.test('not yet published: a poll, a list and a stream wait for the first value', async (t) => {
    const [key, other] = [freshKey(), freshKey()];
    const one = await parkGet(server, key, 'after=none');
    const many = await parkMany(server, { feeds: { [key]: 'none', [other]: 'none' } });
    const stream = await EventStream.open(server, key, { headers: { 'Last-Event-ID': 'e7-42' } });
    t.match(stream.head, /^HTTP\/1\.1 200 OK\r\n/);
    t.ok((await stream.next()).comment);
    t.equal((await server.status()).watching, 4);
    await refused(t, server, 'unknown-feed', () => get(server, key), 'what does not wait is told');
    t.equal((await remove(server, key)).status, 404, 'there is nothing to delete');
    const { status, body } = await put(server, key, 1);
    t.strictSame([status, body.watching], [201, 3]);
    const item = { feed: key, cursor: body.cursor, value: 1 };
    t.strictSame((await one.answer).body, item);
    t.strictSame((await many.answer).body, { items: [item] });
    t.strictSame(await stream.news(), { id: body.cursor, data: item });
    const next = (await put(server, key, 2)).body.cursor;
    t.equal((await stream.news()).id, next, 'the stream goes on');
    t.equal(
      (await get(server, key, 'after=none')).body.value,
      2,
      'where there is a value it comes'
    );
  });

  t.test('not yet published, and the hold is over: the cursor none again', async (t) => {
    const key = freshKey();
    const { feeds } = await server.status();
    const list = JSON.stringify({ hold: 5, feeds: { [key]: 'none' } });
    const [one, many] = await Promise.all([
      get(server, key, 'after=none&hold=0'),
      server.ask('POST', '/feeds', { body: list })
    ]);
    t.strictSame(one.body, { feed: key, cursor: 'none' });
    t.strictSame(many.body, { items: [] });
    t.equal((await server.status()).feeds, feeds, 'it has never counted as a feed');
  });

  t.test('a watcher of a feed that is deleted is told', async (t) => {
    const key = freshKey();
    const { body: first } = await put(server, key, 1);
    const one = await parkGet(server, key, `after=${first.cursor}`);
    const many = await parkMany(server, { feeds: { [key]: first.cursor } });
    const stream = await EventStream.open(server, key, { query: `after=${first.cursor}` });
    t.equal((await remove(server, key)).status, 204);
    t.equal(problemOf(await one.answer), 'unknown-feed');
    t.strictSame((await many.answer).body.items, [{ feed: key, problem: 'unknown-feed' }]);
    t.strictSame((await stream.news()).data, { feed: key, problem: 'unknown-feed' });
    t.equal(await stream.next(), null, 'and the stream ends');
    stream.wire.send(request('GET', '/status'));
    t.equal((await server.read(stream.wire)).status, 200, 'its connection goes on');
    const again = await EventStream.open(server, key, {
      headers: { 'Last-Event-ID': first.cursor }
    });
    const { body: second } = await put(server, key, 2);
    t.equal((await again.news()).id, second.cursor, 'an event source that reconnects waits for it');
  });

  t.test('keys: what is one, and what is none', async (t) => {
    for (const key of ['a', 'A-z.0_9~', 'matchesfeed/8/matchcentre', 'a/...', 'k'.repeat(200)]) {
      await put(server, key, 1);
      t.equal((await get(server, key)).body.feed, key);
    }
    const bad = ['', '/', 'a/', '/a', 'a//b', '.', '..', 'a/../b', 'a/.', 'ä', 'a%20b', 'a b%'];
    for (const key of [...bad, 'a,b', 'a:b', 'k'.repeat(201)]) {
      const target = encodeURI(key).replaceAll('%25', '%');
      await refused(t, server, 'bad-key', () => get(server, target), `"${key}"`);
    }
  });

  for (const [way, ask, parks] of [
    [
      'a body',
      (feeds, how) => server.ask('POST', '/feeds', { body: JSON.stringify({ ...how, feeds }) }),
      (feeds) => parkMany(server, { delta: true, feeds })
    ],
    [
      'an address',
      (feeds, how) => getMany(server, feeds, new URLSearchParams(how).toString()),
      (feeds) => parkGetMany(server, feeds, 'delta=1')
    ]
  ]) {
    t.test(`one poll for many feeds, by ${way}: what is new of them`, async (t) => {
      const [a, b, c, none] = [freshKey(), freshKey(), freshKey(), freshKey()];
      const first = {};
      for (const key of [a, b, c]) first[key] = (await put(server, key, long(0))).body.cursor;
      const all = (await ask({ [a]: '', [b]: first[b], [c]: '', [none]: 'none' })).body.items;
      t.strictSame(
        all.map(({ feed, cursor, value }) => [feed, cursor, value.score]),
        [a, c].map((key) => [key, first[key], 0])
      );
      const watcher = await parks({ ...first, [none]: 'none' });
      t.equal((await server.status()).watching, 4);
      const { cursor } = (await put(server, b, long(1))).body;
      const patch = [{ op: 'replace', path: '/score', value: 1 }];
      const news = { feed: b, from: first[b], cursor, patch };
      t.strictSame((await watcher.answer).body, { items: [news] });
      t.equal((await server.status()).watching, 0, 'the others are not watched any more');
      const unknown = (await ask({ [a]: first[a], 'no/body': '', [b]: first[b] })).body.items;
      t.strictSame(
        unknown.map(({ feed, problem, value }) => [feed, problem, value?.score]),
        [
          ['no/body', 'unknown-feed', undefined],
          [b, undefined, 1]
        ]
      );
      for (const hold of [0, 5]) {
        const { body } = await ask({ [a]: first[a] }, { hold });
        t.strictSame(body, { items: [] }, 'hold over');
      }
      const waits = await parks({ [none]: 'none' });
      await put(server, none, 2);
      t.equal((await waits.answer).body.items[0].value, 2);
      // Longer than a body that native code reads itself.
      const names = Array.from({ length: 32 }, (_, i) => 'k'.repeat(199) + i.toString(36));
      const most = await ask(Object.fromEntries(names.map((key) => [key, ''])));
      t.equal(most.body.items.length, 32);
    });
  }

  t.test('what asks for no feed changes nothing, by every way to ask', async (t) => {
    const key = freshKey();
    await put(server, key, 1);
    const tooMany = Array.from({ length: 33 }, (_, i) => `k${i}`);
    const huge = '99999999999999';
    // For one feed, behind its key; for a list, behind `watch=` and as a body.
    const bad = {
      'bad-cursor': [
        ['x_', 'a.b', 'x'.repeat(41), 'e7%20', 'e1-1&after=e1-2'].map((one) => `after=${one}`),
        ['a:_', 'a:b:c', `a:${'c'.repeat(41)}`],
        ['{"feeds":{"a":"_"}}', '{"feeds":{"a":1}}']
      ],
      'bad-hold': [
        ['', '4', '61', '5.0', '-5', '5&hold=5', huge].map((hold) => `hold=${hold}`),
        ['a:&hold=4', 'a:&hold=', 'a:&hold=61', 'a:&hold=4294967295', 'a:&hold=5&hold=5'],
        ['4', '"5"', '5.5'].map((hold) => `{"hold":${hold},"feeds":{"a":""}}`)
      ],
      'bad-delta': [
        ['', '2', 'true', '01', '1&delta=1'].map((delta) => `delta=${delta}`),
        ['a:&delta=', 'a:&delta=2', 'a:&delta=1&delta=1'],
        ['{"delta":1,"feeds":{"a":""}}']
      ],
      'bad-turn': [[], ['a:&turn=', 'a:&turn=_', 'a:&turn=1&turn=1'], []],
      'bad-key': [[], [':', 'a//b:', 'a:,+:', `${'k'.repeat(201)}:`], ['{"feeds":{"a//b":""}}']],
      'bad-watch': [
        [],
        ['', 'a', 'a:,', 'a:,b', 'a:,a:', 'a:&watch=b:', '%61', tooMany.map((one) => `${one}:`)],
        [
          ...['', '{}', '[]', 'null', '{"feeds":{}}', '{"feeds":[]}', '{"feeds":{"a":""}'],
          ...['{"feeds":{"a":"","a":"e1-1"}}', '{"feeds":{"a":"","\\u0061":""}}'],
          ...['{"feeds":{"b":""},"feeds":{"a":""}}', '{"hold":5,"hold":6,"feeds":{"a":""}}'],
          ...['{"feeds":{"a":""}} x', Buffer.from([0x7b, 0xff, 0x7d])],
          JSON.stringify({ feeds: Object.fromEntries(tooMany.map((one) => [one, ''])) })
        ]
      ],
      'watch-too-large': [[], [], [`{"feeds":{"a":""}}${' '.repeat(16384)}`]]
    };
    const requestWays = [
      (query) => get(server, key, query),
      (list) => server.ask('GET', `/feeds?watch=${list}`),
      (body) => server.ask('POST', '/feeds', { body })
    ];
    for (const [problem, lists] of Object.entries(bad)) {
      for (const [i, list] of lists.entries()) {
        for (const one of list) {
          const why = `${problem}: ${`${one}`.slice(0, 40)}`;
          await refused(t, server, problem, () => requestWays[i](one), why);
        }
      }
    }
    const escaped = '{"feeds" : {"fir\\u0073t" : "", "no/body":"" }, "delta":false}\n';
    for (const answer of [
      await server.ask('POST', '/feeds', { body: escaped }),
      await server.ask('GET', `/feeds?watch=${encodeURIComponent('first:,no/body:')}`)
    ]) {
      const keys = answer.body.items.map(({ feed }) => feed);
      t.same(keys.sort(), ['first', 'no/body'], 'escapes and white space are welcome');
    }
  });

  t.test('an event stream in gzip: the same events, each to be had at once', async (t) => {
    const key = freshKey();
    const query = 'delta=1&after=none';
    const gzip = { query, headers: { 'Accept-Encoding': 'gzip, br' } };
    const plain = await EventStream.open(server, key, { query });
    const stream = await EventStream.open(server, key, gzip);
    t.notMatch(plain.head, /Content-Encoding/);
    for (const { head } of [plain, stream]) t.match(head, /\r\nVary: Accept-Encoding\r\n/);
    t.match(stream.head, /\r\nContent-Encoding: gzip\r\n/);
    const both = async (value) => {
      await put(server, key, value);
      t.strictSame(await stream.news(), await plain.news());
    };
    await both(long(0));
    const texts = Array.from({ length: 20 }, (_, n) => ({ player: `Name ${n}`, goals: n }));
    await both({ ...long(1), texts });
    t.ok(stream.bytes < plain.bytes / 2, `${stream.bytes} of ${plain.bytes} bytes`);
    // Longer than what is compressed in a tick (128 KiB), and than a block of deflate.
    await both(['a long text '.repeat(20000)]);
    await remove(server, key);
    t.strictSame(await stream.news(), await plain.news());
    t.strictSame([await stream.next(), await plain.next()], [null, null]);
    const wire = await server.wire();
    const head = `GET /feed/${key}x HTTP/1.0\r\nAccept: text/event-stream\r\n`;
    wire.send(`${head}Accept-Encoding: gzip;q=0.5, x;q=0\r\n\r\n`);
    t.notMatch(await wire.readHead(), /Content-Encoding/, 'nor has one without chunks');
  });

  t.test('an event stream has every version that its reader is fast enough for', async (t) => {
    const key = freshKey();
    const { body: first } = await put(server, key, long(0));
    const stream = await EventStream.open(server, key, { query: 'delta=1' });
    t.match(stream.head, /^HTTP\/1\.1 200 OK\r\n/);
    t.match(stream.head, /\r\nContent-Type: text\/event-stream\r\n/i);
    t.match(stream.head, /\r\nCache-Control: no-store\r\n/i);
    const event = await stream.news();
    t.equal(event.id, first.cursor);
    t.strictSame(event.data, { feed: key, cursor: first.cursor, value: long(0) });
    for (const score of [1, 2, 3]) {
      const { body } = await put(server, key, long(score));
      const next = await stream.news();
      t.equal(next.id, body.cursor);
      t.strictSame(next.data.patch, [{ op: 'replace', path: '/score', value: score }]);
    }
    t.equal((await server.status()).streams, 1);
  });

  t.test('a stream that comes back goes on behind its Last-Event-ID', async (t) => {
    const key = freshKey();
    const { body: first } = await put(server, key, 1);
    const headers = { 'Last-Event-ID': first.cursor };
    const stream = await EventStream.open(server, key, { query: 'after=e1-1', headers });
    t.ok((await stream.next()).comment, 'nothing is new, but the stream is open');
    const { body } = await put(server, key, 2);
    t.equal((await stream.news()).id, body.cursor);
    await refused(t, server, 'bad-cursor', () =>
      get(server, key, '', { headers: { Accept: 'text/event-stream', 'Last-Event-ID': 'a b' } })
    );
  });

  t.test('Accept-Encoding: gzip, where it is worth it', async (t) => {
    const key = freshKey();
    const headers = { 'Accept-Encoding': 'gzip, deflate, br' };
    const ask = (query) =>
      park(server, request('GET', `/feed/${key}?${query}`, { headers }), { gzip: true });
    const awaits = await ask('after=none');
    const { body: first } = await put(server, key, long(0));
    t.equal((await awaits.answer).headers['content-encoding'], 'gzip', 'that was awaited, too');
    const one = await (await ask('')).answer;
    t.equal(one.headers['content-encoding'], 'gzip');
    t.strictSame(JSON.parse(gunzipSync(one.bytes)), {
      feed: key,
      cursor: first.cursor,
      value: long(0)
    });
    const [parkedOne, parkedTwo] = [
      await ask(`after=${first.cursor}`),
      await ask(`after=${first.cursor}&delta=0`)
    ];
    await put(server, key, long(1));
    const [two, three] = [await parkedOne.answer, await parkedTwo.answer];
    t.equal(two.headers['content-encoding'], 'gzip');
    t.strictSame(two.bytes, three.bytes, 'compressed once');
    t.equal(JSON.parse(gunzipSync(two.bytes)).value.score, 1);
    const plain = await get(server, key, '', { headers: { 'Accept-Encoding': 'gzip;q=0, br' } });
    t.equal(plain.body.value.score, 1, 'not where the client forbids it');
    t.equal(plain.headers.vary, 'Accept-Encoding', 'a cache is told that it depends');
    t.equal(one.headers.vary, 'Accept-Encoding');
    await put(server, key, 2);
    t.equal((await (await ask('')).answer).headers['content-encoding'], undefined, 'too short');
  });

  t.test('items in gzip, where it is worth it', async (t) => {
    const log = freshKey();
    const headers = { 'Accept-Encoding': 'gzip' };
    const texts = Array.from({ length: 40 }, (_, n) => `${n} shoots, and it is over the bar.`);
    for (const text of texts) await append(server, log, text);
    const items = await park(server, request('GET', `/feed/${log}`, { headers }), { gzip: true });
    const { headers: itemHeaders, bytes } = await items.answer;
    t.equal(itemHeaders['content-encoding'], 'gzip');
    t.strictSame(JSON.parse(gunzipSync(bytes)).items, texts);
    t.notOk('content-encoding' in (await get(server, log, 'last=1', { headers })).headers);
  });

  t.test('a watcher that asks to close is answered, and then closed', async (t) => {
    const key = freshKey();
    const { body: first } = await put(server, key, 1);
    const headers = { Connection: 'close' };
    const one = await parkGet(server, key, `after=${first.cursor}`, { headers });
    const stream = await EventStream.open(server, key, { query: `after=${first.cursor}`, headers });
    t.ok((await stream.next()).comment);
    await server.until(({ watching }) => watching === 2);
    t.equal((await put(server, key, 2)).body.watching, 2);
    const { headers: said, body } = await one.answer;
    t.strictSame([said.connection, body.value], ['close', 2]);
    await one.wire.closed();
    t.match(stream.head, /\r\nconnection: close\r\n/i);
    t.equal((await stream.news()).data.value, 2);
    await remove(server, key);
    t.equal((await stream.news()).data.problem, 'unknown-feed');
    t.equal(await stream.next(), null);
    await stream.wire.closed();
  });

  t.test('an event stream by HTTP/1.0 has no chunks, and ends with its connection', async (t) => {
    const key = freshKey();
    await put(server, key, 1);
    const wire = await server.wire();
    const fields = 'Accept: text/event-stream\r\nConnection: keep-alive\r\n';
    wire.send(`GET /feed/${key} HTTP/1.0\r\n${fields}\r\n`);
    const head = await wire.readHead();
    t.match(head, /^HTTP\/1\.1 200 /);
    t.match(head, /\r\nconnection: close\r\n/i);
    t.notMatch(head, /transfer-encoding|content-length/i);
    const untilReceived = (words) => until(() => wire.unreadBytes.includes(words), words);
    await untilReceived('"value":1}\n\n');
    await put(server, key, 2);
    await untilReceived('"value":2}\n\n');
    await remove(server, key);
    await wire.closed();
    const text = wire.unreadBytes.toString();
    t.match(text, /"unknown-feed"[^]*\n\n$/);
    t.notMatch(text, /^[0-9a-f]+\r$/m, 'no line is the length of a chunk');
  });

  t.test('HEAD says what GET would, and neither waits nor fetches', async (t) => {
    const key = freshKey();
    const ask = (target) => server.ask('HEAD', `/feed/${target}`);
    t.equal((await ask(key)).status, 404);
    const { body } = await put(server, key, { ä: [1] });
    const whole = await get(server, key);
    for (const query of ['', `?after=${body.cursor}&hold=5`]) {
      const { status, headers, bytes } = await ask(`${key}${query}`);
      t.strictSame([status, bytes.length], [200, 0]);
      for (const name of ['content-length', 'content-type', 'vary', 'cache-control']) {
        t.equal(headers[name], whole.headers[name], name);
      }
    }
    t.equal((await ask('a//b')).status, 400);
    t.equal((await ask(`${key}?after=_`)).status, 400);
    const large = freshKey();
    await put(server, large, ['x'.repeat(2000)]);
    const lengthOf = async (method, one) => {
      const headers = { 'Accept-Encoding': 'gzip' };
      return (await server.ask(method, `/feed/${one}`, { headers })).headers['content-length'];
    };
    t.equal(await lengthOf('HEAD', key), await lengthOf('GET', key));
    t.equal(await lengthOf('HEAD', large), undefined, 'known when it has been compressed');
  });

  t.test('a publisher is told the keys there are, a page at a time', async (t) => {
    const own = await startServer(t, { options });
    stopAtEnd(t, own);
    const list = (query, headers = authorized()) => own.ask('GET', `/feeds?${query}`, { headers });
    await refused(t, own, 'bad-token', () => list('', {}));
    t.strictSame((await list('')).body, { feeds: [] });
    const { body: first } = await put(own, 'b/1', [1, 2]);
    for (let n = 0; n < 1001; n += 1) await put(own, `a/${n}`, n);
    const keys = Array.from({ length: 1001 }, (_, n) => `a/${n}`).sort();
    const { body: page } = await list('');
    t.strictSame(
      page.feeds.map(({ feed }) => feed),
      keys.slice(0, 1000)
    );
    t.equal(page.next, keys[999]);
    const { body: rest } = await list(`from=${page.next}`);
    const last = { feed: 'b/1', kind: 'value', cursor: first.cursor, bytes: 5, watching: 0 };
    t.strictSame(rest, { feeds: [{ ...rest.feeds[0], feed: keys[1000] }, last] });
    t.strictSame((await list('prefix=b')).body.feeds, [last]);
    t.strictSame((await list('prefix=b&from=b/1')).body.feeds, []);
    for (const query of ['from=a//b', 'prefix=%20', 'prefix=a&prefix=b', 'from=a&from=b']) {
      await refused(t, own, 'bad-key', () => list(query), query);
    }
    const closed = await startServer(t);
    stopAtEnd(t, closed);
    await refused(t, closed, 'publishing-closed', () => closed.ask('GET', '/feeds'));
  });

  t.test('methods that a feed does not have', async (t) => {
    const { status, headers: said } = await server.ask('PROPFIND', '/feed/first');
    t.equal(status, 405);
    t.equal(said.allow, 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS');
    t.equal((await server.ask('PUT', '/feeds')).headers.allow, 'GET, POST, OPTIONS');
    const { headers } = await server.ask('OPTIONS', '/feed/first');
    t.match(headers['access-control-allow-methods'], /PUT, PATCH, DELETE/);
    t.match(headers['access-control-allow-headers'], /Authorization.*Last-Event-ID/);
  });
});
