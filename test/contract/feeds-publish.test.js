import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import t from 'tap';

import { problemOf } from '../support/contract.js';
import {
  askForPatches,
  authorized,
  EventStream,
  get,
  durableFeedOptions,
  parkGet,
  patch,
  put,
  remove,
  TOKEN,
  tokenFile,
  tryPut
} from '../support/feeds.js';
import { request } from '../support/http.js';
import { launchToEnd } from '../support/launch.js';
import { contract, refused, startServer, DEFAULT_WORKERS } from '../support/server.js';

/**
 * Feeds for publishers: tests every sentence of the contract.
 */

const options = {
  'publish-token-file': tokenFile(t),
  'feed-threads': 1,
  'feed-bytes': 2048,
  'log-bytes': 2048,
  'feed-memory': 10000,
  feeds: 8,
  'feed-watchers': 3,
  hold: 60
};

contract(t, { options }, async (t, server) => {
  await put(server, 'first', 1);
  let last = 0;
  /** Returns a new key. The test's end deletes its feed. */
  const freshKey = (t) => {
    const key = `tests/${(last += 1)}`;
    t.teardown(() => remove(server, key));
    return key;
  };

  t.test('a new feed is 201, a new version 200', async (t) => {
    const key = freshKey(t);
    const one = await tryPut(server, key, '[1]');
    t.equal(one.status, 201);
    t.strictSame(Object.keys(one.body), ['cursor', 'watching']);
    const two = await tryPut(server, key, '[2]');
    t.equal(two.status, 200);
    t.not(two.body.cursor, one.body.cursor);
    for (const value of [null, false, 0, '""', '"a"', {}, []]) {
      await put(server, key, value);
      const expected = typeof value === 'string' ? JSON.parse(value) : value;
      t.strictSame((await get(server, key)).body.value, expected, 'any JSON is a value');
    }
  });

  t.test('clients that may publish, and clients that may not', async (t) => {
    const key = freshKey(t);
    const ask = (method, Authorization) =>
      server.ask(method, `/feed/${key}`, { body: '1', headers: { Authorization } });
    const wrongTokens = ['', 'Bearer', 'Bearer x', `Basic ${TOKEN}`, `Bearer ${TOKEN}x`, TOKEN];
    for (const Authorization of [undefined, ...wrongTokens]) {
      for (const method of ['PUT', 'PATCH', 'DELETE']) {
        const why = `${method} ${Authorization}`;
        const tryPublish = () => ask(method, Authorization);
        const { headers } = await refused(t, server, 'bad-token', tryPublish, why);
        t.equal(headers['www-authenticate'], 'Bearer');
      }
    }
    t.equal((await ask('PUT', 'bearer old-token')).status, 201, 'each token of the file may');
  });

  t.test('what is no value changes nothing', async (t) => {
    const key = freshKey(t);
    await put(server, key, 1);
    const deep = (depth) => '['.repeat(depth) + ']'.repeat(depth);
    const bad = {
      nothing: '',
      'half of one': '{"a":',
      'two of them': '1 2',
      'not UTF-8': Buffer.from([0x22, 0xff, 0x22]),
      compressed: gzipSync('1'),
      'a byte order mark': Buffer.from('\ufeff1'),
      'a number no double holds': '1e400',
      'nested 65 deep': deep(65)
    };
    for (const [why, body] of Object.entries(bad)) {
      const answer = await refused(t, server, 'bad-value', () => tryPut(server, key, body), why);
      if (why === 'compressed') t.match(answer.body.detail, /uncompressed/);
    }
    t.equal((await tryPut(server, key, deep(64))).status, 200);
    await refused(t, server, 'bad-key', () => tryPut(server, 'a//b', '1'));
    const player = await server.join();
    for (const [method, target, body] of [
      ['PUT', `/feed/${key}`, '2'],
      ['POST', '/feeds', `{"feeds":{"${key}":""}}`],
      ['POST', `/throw/${player}/up`, '{}']
    ]) {
      const ask = (coding) => {
        const headers = authorized({ 'Content-Encoding': coding });
        return server.ask(method, target, { body, headers });
      };
      for (const coding of ['gzip', 'identity, br', 'x']) {
        const { headers } = await refused(t, server, 'bad-media-type', () => ask(coding), method);
        t.equal(headers['accept-encoding'], 'identity');
      }
      for (const coding of ['Identity', 'identity, identity', ''])
        t.ok((await ask(coding)).status < 300, `${method} ${coding}`);
    }
  });

  t.test('a JSON Patch (RFC 6902)', async (t) => {
    const key = freshKey(t);
    await put(server, key, { a: [1, 2], b: 1 });
    const answer = await patch(server, key, 'json-patch', [
      { op: 'test', path: '/b', value: 1 },
      { op: 'add', path: '/a/-', value: 3 },
      { op: 'move', from: '/b', path: '/c' }
    ]);
    t.equal(answer.status, 200);
    t.strictSame((await get(server, key)).body.value, { a: [1, 2, 3], c: 1 });
    const conflict = [{ op: 'test', path: '/c', value: 8 }];
    await refused(t, server, 'patch-conflict', () => patch(server, key, 'json-patch', conflict));
    for (const bad of ['{}', '[{"op":"add"}]', '[']) {
      await refused(t, server, 'bad-patch', () => patch(server, key, 'json-patch', bad), bad);
    }
  });

  t.test('a merge patch (RFC 7396)', async (t) => {
    const key = freshKey(t);
    await put(server, key, { a: 1, b: { c: 2, d: 3 }, e: [1] });
    const answer = await patch(server, key, 'merge-patch', { a: null, b: { c: null, f: 4 }, e: 5 });
    t.equal(answer.status, 200);
    t.strictSame((await get(server, key)).body.value, { b: { d: 3, f: 4 }, e: 5 });
    await refused(t, server, 'bad-patch', () => patch(server, key, 'merge-patch', '{'));
  });

  t.test('a patch of another kind, and one of a feed that is not there', async (t) => {
    const key = freshKey(t);
    await put(server, key, 1);
    for (const type of ['application/nobody+json', 'constructor', '__proto__']) {
      const headers = authorized({ 'Content-Type': type });
      const ask = () => server.ask('PATCH', `/feed/${key}`, { body: '[]', headers });
      const { headers: said } = await refused(t, server, 'bad-media-type', ask);
      t.match(said['accept-patch'], /json-patch.*merge-patch/);
    }
    await refused(t, server, 'unknown-feed', () => patch(server, 'nobody', 'merge-patch', '{}'));
    await refused(t, server, 'unknown-feed', () => remove(server, 'nobody'));
  });

  // The order of requests to different workers is unknown.
  const ordered = DEFAULT_WORKERS > 1 ? () => {} : t.test.bind(t);
  ordered('publications of one feed keep their order', async (t) => {
    const key = freshKey(t);
    await put(server, key, 0);
    const wire = await server.wire();
    const wires = await Promise.all(Array.from({ length: 20 }, () => server.wire()));
    // Each publication has its own connection, and is sent after the one before.
    for (const [i, one] of wires.entries()) {
      const body = JSON.stringify({ i });
      // A thread applies a patch; a whole value needs no thread.
      const [method, type] = i % 2 === 0 ? ['PATCH', 'merge-patch+json'] : ['PUT', 'json'];
      const headers = authorized({ 'Content-Type': `application/${type}` });
      one.send(request(method, `/feed/${key}`, { body, headers }));
      wire.send(request('GET', '/status'));
      await server.read(wire);
    }
    const versions = [];
    for (const one of wires) {
      const { body } = await server.read(one);
      versions.push(Number(body.cursor.split('-')[1]));
    }
    t.strictSame(
      versions,
      versions.map((_, i) => versions[0] + i)
    );
    t.strictSame((await get(server, key)).body.value, { i: 19 });
  });

  t.test('--feed-bytes: as sent, and as canonical JSON', async (t) => {
    const key = freshKey(t);
    const text = (length) => JSON.stringify('x'.repeat(length - 2));
    t.equal((await tryPut(server, key, text(2048))).status, 201);
    const ask = (body) => () => tryPut(server, key, body);
    const { headers } = await refused(t, server, 'feed-too-large', ask(text(2049)));
    t.equal(headers.connection, 'close');
    const grows = `[${Array.from({ length: 300 }, () => '1e20').join()}]`;
    await refused(t, server, 'feed-too-large', ask(grows), 'numbers that are longer in full');
    await put(server, key, { a: 'x'.repeat(900) });
    const copies = [
      { op: 'copy', from: '', path: '/b' },
      { op: 'copy', from: '', path: '/c' }
    ];
    await refused(t, server, 'feed-too-large', () => patch(server, key, 'json-patch', copies));
  });

  t.test('--feeds', async (t) => {
    const { feeds } = await server.status();
    const keys = Array.from({ length: 8 - feeds }, () => freshKey(t));
    for (const key of keys) await put(server, key, 1);
    await refused(t, server, 'too-many-feeds', () => tryPut(server, 'one/more', '1'));
    await put(server, keys[0], 2);
    await remove(server, keys[0]);
    await put(server, keys[0], 3);
  });

  t.test('--feed-memory', async (t) => {
    // A value's patches may be as long as the value: a publication needs room for both beside the stored feeds.
    const keys = Array.from({ length: 4 }, () => freshKey(t));
    const body = JSON.stringify('x'.repeat(2000));
    for (const key of keys.slice(0, 3)) await put(server, key, body);
    await refused(t, server, 'feed-memory-full', () => tryPut(server, keys[3], body));
    t.equal((await get(server, keys[0])).body.value.length, 2000);
    await remove(server, keys[0]);
    await put(server, keys[3], body);
  });

  t.test('--feed-watchers', async (t) => {
    const key = freshKey(t);
    const { cursor } = (await put(server, key, 1)).body;
    const parked = [];
    for (let i = 0; i < 3; i += 1) parked.push(await parkGet(server, key, `after=${cursor}`));
    await refused(t, server, 'too-many-watchers', () => get(server, key));
    await put(server, key, 2);
    for (const { answer } of parked) t.equal((await answer).body.value, 2);
  });
});

t.test('one publication too many at once is refused,', async (t) => {
  const server = await startServer(t, {
    options: { ...options, 'feed-bytes': '64K', 'feed-memory': '1M' }
  });
  const body = (i) => JSON.stringify(Array.from({ length: 8000 }, (_, n) => i + n / 4));
  await put(server, 'a', body(0));
  await askForPatches(server, 'a');
  const answers = [];
  // One thread works on all these publications, one by one. Making patches takes time.
  for (let burst = 0; burst < 20 && !answers.some(problemOf); burst += 1) {
    const wires = await Promise.all(Array.from({ length: 400 }, () => server.wire()));
    // The server is stopped while they are sent: it finds all of them at once.
    server.child.kill('SIGSTOP');
    for (const [i, wire] of wires.entries()) {
      wire.send(request('PUT', '/feed/a', { body: body(i + 1), headers: authorized() }));
    }
    server.child.kill('SIGCONT');
    answers.push(...(await Promise.all(wires.map((wire) => server.read(wire)))));
    await Promise.all(wires.map((wire) => wire.destroy()));
  }
  const busy = answers.filter(problemOf);
  t.ok(busy.length > 0, `${busy.length} of ${answers.length} were refused`);
  t.ok(
    busy.every((answer) => problemOf(answer) === 'publishing-busy' && answer.status === 503),
    'and told so'
  );
  const { published, unchanged, publishing } = await server.status();
  t.equal(publishing, 0);
  t.equal(published + unchanged, 1 + answers.length - busy.length, 'they have changed nothing');
  t.equal((await tryPut(server, 'a', '1')).status, 200, 'and then there is room again');
  await server.stop();
});

t.test('without tokens publishing is closed,', async (t) => {
  const server = await startServer(t);
  const { body } = await refused(t, server, 'publishing-closed', () => tryPut(server, 'a', '1'));
  t.match(body.detail, /--publish-token-file/);
  await server.stop();
});

t.test('feeds survive a restart, and watchers go on with patches,', async (t) => {
  const how = { options: durableFeedOptions(t) };
  const one = await startServer(t, how);
  const value = (score) => ({ score, padding: 'x'.repeat(400) });
  const first = (await put(one, 'a/b', value(1))).body.cursor;
  await askForPatches(one, 'a/b');
  const second = (await put(one, 'a/b', value(2))).body.cursor;
  const parked = await parkGet(one, 'a/b', `after=${second}`);
  const early = await parkGet(one, 'early', 'after=none');
  const query = { query: `after=${second}` };
  const streams = await Promise.all([1, 2, 3].map(() => EventStream.open(one, 'a/b', query)));
  const stopped = one.stop();
  const told = (await parked.answer).body;
  t.equal(told.cursor, second);
  t.ok(told.retry >= 0, 'a parked client is told when to come back');
  const { cursor, retry } = (await early.answer).body;
  t.equal(cursor, 'none');
  t.ok(retry >= 0, 'so is one that waits for a first value');
  const last = await Promise.all(streams.map((stream) => stream.news()));
  t.ok(
    last.some((event) => event?.retry > 0),
    'and an event stream, unless its time is 0'
  );
  await stopped;

  const two = await startServer(t, how);
  t.equal((await get(two, 'a/b')).body.cursor, second);
  const stream = await EventStream.open(two, 'early', { query: 'after=none' });
  const { body: published } = await put(two, 'early', 1);
  t.equal((await stream.news()).id, published.cursor, 'it comes when it is in the journal');
  const delta = (await get(two, 'a/b', `after=${first}&delta=1`)).body;
  t.strictSame(delta.patch, [{ op: 'replace', path: '/score', value: 2 }]);
  const third = (await put(two, 'a/b', value(3))).body.cursor;
  t.equal(third, second.replace(/-2$/, '-3'), 'versions go on');
  const both = (await get(two, 'a/b', `after=${first}&delta=1`)).body;
  t.equal(both.patch.length, 2);
  await two.kill();

  const { code, errors } = await launchToEnd(t, { ...how.options, feeds: 1 });
  t.strictSame([code, /: raise --feeds or/.test(errors)], [1, true], 'nor a start without room');
  const three = await startServer(t, how);
  t.equal((await get(three, 'a/b')).body.cursor, third, 'nor does a crash lose one');
  const after = (await get(three, 'a/b', `after=${first}&delta=1`)).body;
  t.equal(after.patch.length, 2, 'and patches go on');
  const watcher = await parkGet(three, 'a/b', `after=${third}&delta=1`);
  const { cursor: fourth } = (await put(three, 'a/b', value(4))).body;
  t.equal(fourth, third.replace(/-3$/, '-4'), 'so do versions');
  t.match((await watcher.answer).body, { from: third, cursor: fourth });
  await remove(three, 'a/b');
  await three.kill();
  const four = await startServer(t, how);
  t.equal(problemOf(await get(four, 'a/b')), 'unknown-feed', 'what has ended stays so');
  await four.stop();
});

t.test('tokens are read anew on SIGUSR2,', async (t) => {
  // Some editors write a byte order mark.
  const directory = t.testdir({ tokens: `\uFEFF${TOKEN}\r\n` });
  const file = join(directory, 'tokens');
  const server = await startServer(t, { options: { 'publish-token-file': file } });
  await put(server, 'a', 1);
  writeFileSync(file, 'another\n');
  server.child.kill('SIGUSR2');
  let answer;
  do answer = await tryPut(server, 'a', '1');
  while (answer.status === 200);
  t.equal(problemOf(answer), 'bad-token');
  await server.until(() => server.errors.join('').includes('the tokens are read anew'));
  await server.stop();
});
