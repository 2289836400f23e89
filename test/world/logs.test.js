import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import t from 'tap';

import { problemOf } from '../support/contract.js';
import {
  append,
  EventStream,
  get,
  parkGet,
  put,
  remove,
  tokenFile,
  tryPut
} from '../support/feeds.js';
import { skip, startNats } from '../support/nats.js';
import { temporary } from '../support/processes.js';
import { until } from '../support/until.js';
import { enterWorld, ready } from '../support/world-servers.js';

/** Logs of a world: one order at every server, each item once. A real nats-server, and servers of their own. */

const enter = (t, nats, name, more) =>
  enterWorld(t, nats, name, { 'publish-token-file': tokenFile(t), drain: 0, ...more });

/** What a server has of a log, part by part, when it has come to a cursor. */
async function logAt(server, key, cursor) {
  const read = async () => {
    const { body } = await get(server, key, 'last=1000000');
    const { gap, items = [] } = body;
    let at = body.cursor;
    while (at && at !== cursor) {
      const { body: more } = await get(server, key, `after=${at}&hold=5`);
      if (!more.items || more.gap) return false;
      items.push(...more.items);
      at = more.cursor;
    }
    return at === cursor && { gap, items };
  };
  return until(read, () => `${key} at ${server.name} comes to ${cursor}`);
}

t.test('one order at every server, and each item once', { skip, timeout: 120_000 }, async (t) => {
  const nats = await startNats(t, 'max_payload: 65536');
  const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => enter(t, nats, name)));
  await ready([a, b, c]);
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
  const log = await logAt(a, 'chat', last);
  t.strictSame(
    log.items.map(({ n }) => n).toSorted((x, y) => x - y),
    [0, ...numbers]
  );
  for (const [at, cursor] of cursors.entries()) {
    t.equal(log.items[Number(cursor.split('-')[1]) - 1].n, at + 1, 'a cursor is of its item');
  }
  for (const server of [b, c]) t.strictSame(await logAt(server, 'chat', last), log, server.name);
  const heard = [];
  while (heard.length < 60) heard.push(...(await stream.news()).data.items);
  t.strictSame(heard, log.items.slice(1));
  stream.wire.destroy();

  const d = await enter(t, nats, 'd');
  const small = await enter(t, nats, 'e', { 'log-items': 20 });
  await ready([d, small]);
  t.strictSame(await logAt(d, 'chat', last), log, 'a new server has all, from several parts');
  const { gap, items } = await logAt(small, 'chat', last);
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
    t.strictSame((await logAt(server, 'chat', again.body.cursor)).items, ['again']);
  }
  await Promise.all([a, b, c, d, small].map((server) => server.stop()));
});

t.test('a server that was away, and a broker', { skip, timeout: 120_000 }, async (t) => {
  const nats = await startNats(t);
  const folder = temporary(t);
  const kept = { state: join(folder, 'b'), 'log-items': 50 };
  const a = await enter(t, nats, 'a', { 'log-items': 50 });
  let b = await enter(t, nats, 'b', kept);
  await ready([a, b]);
  const say = async (count) => {
    let cursor;
    for (let n = 0; n < count; n += 1) {
      const { status, body } = await append(a, 'chat', { n, fill: 'x'.repeat(2000) });
      t.ok(status < 300);
      ({ cursor } = body);
    }
    return cursor;
  };
  for (const count of [80, 30]) {
    const seen = await say(5);
    await logAt(b, 'chat', seen);
    await b.kill();
    const cursor = await say(count);
    b = await enter(t, nats, 'b', kept);
    await ready([b]);
    const { body } = await get(b, 'chat', `after=${seen}`);
    t.equal(body.gap, count > 50 || undefined, 'a gap where more has come than is kept');
    if (count < 50) t.equal(body.from, seen);
    t.strictSame(
      (await logAt(b, 'chat', cursor)).items.at(-1),
      (await get(a, 'chat', 'last=1')).body.items[0]
    );
  }
  const before = await say(1);
  await logAt(b, 'chat', before);
  await nats.kill();
  const refused = await append(b, 'chat', 'alone');
  t.equal(problemOf(refused), 'publishing-busy', 'without the broker nothing is appended');
  t.ok(refused.headers['retry-after']);
  nats.forget();
  await nats.start();
  let later;
  await until(async () => {
    later = await append(b, 'chat', 'later');
    return later.status === 200;
  });
  t.equal(later.body.cursor.split('-')[0], before.split('-')[0], 'cursors go on');
  const log = await logAt(a, 'chat', later.body.cursor);
  t.equal(log.items.filter((item) => item === 'later').length, 1);
  t.notOk(log.items.includes('alone'));
  const c = await enter(t, nats, 'c', { 'log-items': 50 });
  await ready([c]);
  t.strictSame(
    (await logAt(c, 'chat', later.body.cursor)).items,
    log.items.slice(-50),
    'a broker that has lost it all is filled again'
  );
  await Promise.all([a, b, c].map((server) => server.stop()));
});
