import t from 'tap';

import { Feeds } from '../../lib/client/client.js';
import { isOlder } from '../../lib/client/feed-items.js';
import { Clock, HANG, answer, scripted } from '../support/page-fakes.js';
import { failWhenStuck } from '../support/stuck.js';

failWhenStuck(t);

/** The JavaScript client of feeds behind a cache: which addresses it asks for, and what it does with old answers. */

const value = (n) => ({ feed: 'a', cursor: `e1-${n}`, value: n });
const ping = (n, turn) => ({ feed: 'a', cursor: `e1-${n}`, turn });

/** A client behind a scripted cache; `feeds`: of the server, what POST is answered. */
function start(feed, feeds = [HANG], options = {}) {
  const clock = new Clock();
  const fetch = scripted({ feed: feed.map((one) => (one.feed ? answer(200, one) : one)), feeds });
  const client = new Feeds({
    base: 'http://feeds.test',
    cached: true,
    fetch,
    timers: clock,
    random: () => 0.5,
    ...options
  });
  const asked = () => fetch.of('feed').map(({ url }) => url.pathname + url.search);
  const seen = [];
  const watch = (key = 'a') =>
    client.watch(key, (value, { problem }) => seen.push(value ?? problem));
  return { client, clock, fetch, asked, seen, watch };
}

t.test('a turn belongs to its address: another hold has none', async (t) => {
  const { client, clock, asked, watch } = start([ping('9', 'x7'), HANG]);
  client.watch('a', () => {}, { kept: { cursor: 'e1-9', value: 9 } });
  watch();
  await clock.settle();
  t.same(asked(), ['/feed/a?after=e1-9&hold=5&delta=1', '/feed/a?after=e1-9&hold=55&delta=1']);
  client.close();
});

t.test('a cache that says the same again is not hammered', async (t) => {
  const { client, clock, asked, watch } = start([value(1), ping(1, 'x7')]);
  watch();
  await clock.settle();
  t.equal(asked().length, 3, 'the turn once, then it waits');
  client.close();
  let last = 0;
  const other = start([value(1), () => answer(200, ping(1, `x${(last += 1)}`))]);
  other.watch();
  await other.clock.settle();
  t.ok(other.asked().length < 15, 'nor one that always has another turn');
  other.client.close();
  const gone = answer(404, { type: 'urn:sprites:unknown-feed' });
  const late = start([value(1), gone, value(1), gone, value(1), HANG]);
  late.watch();
  await late.clock.settle();
  t.same(late.seen, [1, 'unknown-feed', 1, 'unknown-feed'], 'nor one that has what has ended');
  late.client.close();
});

t.test('what the server itself says counts, older or not', async (t) => {
  const { client, clock, seen, watch } = start(
    [value(5), value(3), HANG],
    [answer(200, { items: [value(4)] }), HANG]
  );
  watch();
  await clock.settle();
  await clock.pass(20_000);
  t.same(seen, [5, 4], 'of a state from before');
  client.close();
});

t.test('a patch that fits nothing never leads back', async (t) => {
  const patch = [{ op: 'add', path: '/none/x', value: 1 }];
  const { client, clock, asked, seen, watch } = start(
    [value(5), { feed: 'a', from: 'e1-5', cursor: 'e1-6', patch }, value(4), HANG],
    [answer(200, { items: [value(6)] }), HANG]
  );
  watch();
  await clock.settle();
  await clock.pass(20_000);
  await clock.pass(20_000);
  t.equal(asked()[2], '/feed/a?after=none&hold=55&delta=1');
  t.same(seen, [5, 6]);
  client.close();
});

t.test('several feeds have one poll, in the order of their keys', async (t) => {
  const items = (list, more) => answer(200, { items: list, ...more });
  const of = (feed, n) => ({ feed, cursor: `e1-${n}`, value: n });
  const { client, clock, fetch, asked, seen, watch } = start(
    [HANG],
    [
      ...[items([of('b', 1), of('a/c', 2)]), items([], { turn: 'x7' }), items([of('b', 5)])],
      ...[items([of('b', 4), of('a/c', 3)]), items([of('b', 6)]), HANG]
    ]
  );
  watch('b');
  watch('a/c');
  await clock.settle();
  await clock.pass(20_000);
  t.same(asked(), []);
  t.same(
    fetch.of('feeds').map(({ method = 'GET', url }) => method + url.search),
    [
      'GET?watch=a/c:none,b:none&hold=5&delta=1',
      'GET?watch=a/c:e1-2,b:e1-1&hold=55&delta=1',
      'GET?watch=a/c:e1-2,b:e1-1&hold=55&delta=1&turn=x7',
      'GET?watch=a/c:e1-2,b:e1-5&hold=55&delta=1',
      'POST',
      'GET?watch=a/c:e1-2,b:e1-6&hold=55&delta=1'
    ],
    'what is older, of any, is not taken'
  );
  t.same(seen, [1, 2, 5, 6]);
  client.close();
});

t.test('an address that is too long for some caches is not asked for', async (t) => {
  const keys = Array.from({ length: 19 }, (_, i) => `${i + 10}/${'k'.repeat(191)}`);
  // The last key fills what is left.
  const { length } = `s?watch=${keys.map((key) => `${key}:none`)},:none&hold=5&delta=1`;
  for (const [more, method] of [
    [0, 'GET'],
    [1, 'POST']
  ]) {
    const { client, clock, fetch, watch } = start([HANG]);
    for (const key of [...keys, 'z'.repeat(4000 - length + more)]) watch(key);
    await clock.settle();
    t.equal(fetch.of('feeds')[0].method ?? 'GET', method);
    client.close();
  }
});

t.test('which cursor is older', async (t) => {
  t.ok(isOlder('e1-9', 'e1-10'));
  t.ok(isOlder('e1-9007199254740991', 'e1-9007199254740992'));
  const others = ['e1-10 e1-9', 'e1-9 e1-9', 'e2-1 e1-9', 'none e1-9', 'e1-1 none'];
  for (const pair of [...others, 'e1-x e1-y', '1 2', 'e1-01 e1-2']) {
    t.notOk(isOlder(...pair.split(' ')), pair);
  }
});
