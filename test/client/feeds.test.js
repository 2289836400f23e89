import { createRequire } from 'node:module';

import t from 'tap';

import { Feeds, feedStore } from '../../lib/client/client.js';
import { isOlder } from '../../lib/client/feed-items.js';
import { applyPatch } from '../../lib/client/patch.js';
import { HANG, RESET, answer, problem, scripted, uncaught } from '../support/page-fakes.js';
import { failWhenStuck } from '../support/until.js';
import { VirtualTime } from '../support/virtual-time.js';

failWhenStuck(t);

/** The JavaScript client of feeds beyond the vectors: times, and features of this client alone. */

const require = createRequire(import.meta.url);

const items = (...list) => answer(200, { items: list });
const value = (n, key = 'a') => ({ feed: key, cursor: `e1-${n}`, value: { n, list: [n] } });

/** Starts a client on a scripted server or, with `feed`, behind a scripted cache, and collects its callbacks. */
function start(script, options = {}, feed = undefined) {
  const clock = new VirtualTime();
  const fetch = scripted({ feeds: script, feed });
  const states = [];
  const feeds = new Feeds({
    base: 'http://feeds.test',
    fetch,
    timers: clock,
    random: () => 0.5,
    onState: (state, { why }) => states.push(why ? `${state}: ${why}` : state),
    ...options
  });
  const asks = () => fetch.of('feeds').map(({ body }) => JSON.parse(body));
  return { feeds, clock, fetch, states, asks };
}

t.test('it asks below the path of its base, without what needs a preflight', async (t) => {
  const calls = [];
  const fetch = async (url, init) => {
    calls.push([url, init]);
    return new Response(JSON.stringify({ items: [value(1)] }));
  };
  const { feeds, clock } = start([], { base: 'http://feeds.test:8080/below/', fetch });
  feeds.watch('a', () => feeds.close(), null);
  await clock.settle();
  const [[url, { method, headers }]] = calls;
  t.equal(url, 'http://feeds.test:8080/below/feeds');
  t.equal(method, 'POST');
  t.same(headers, { 'content-type': 'text/plain;charset=UTF-8' });
});

t.test('values are frozen, and share what a patch does not touch', async (t) => {
  const before = { a: { deep: [1, { x: 1 }] }, b: { list: [1, 2] } };
  const patch = [{ op: 'add', path: '/b/list/-', value: { new: [] } }];
  const { feeds, clock } = start([
    items({ feed: 'a', cursor: 'e-1', value: before }),
    items({ feed: 'a', from: 'e-1', cursor: 'e-2', patch }),
    HANG
  ]);
  const reported = [];
  const watch = feeds.watch('a', (value, change) => reported.push({ value, change }));
  t.equal(watch.held, null, 'nothing is held yet');
  await clock.settle();
  const [first, second] = reported;
  t.same(first.value, before);
  t.same(second.value.b, { list: [1, 2, { new: [] }] });
  t.equal(second.value.a, first.value.a, 'shared');
  for (const part of [first.value.a.deep[1], second.value.b.list, second.value.b.list[2].new]) {
    t.ok(Object.isFrozen(part));
  }
  t.same(first.change, { key: 'a', cursor: 'e-1' });
  t.same(second.change, { key: 'a', cursor: 'e-2', patch });
  t.same(watch.held, { cursor: 'e-2', value: second.value });
  watch.close();
  t.equal(watch.held, null);
  await clock.settle();
  t.equal(clock.pending, 0, 'and nothing is left');
});

t.test('a program may close and watch from inside its callback', async (t) => {
  const { feeds, clock, asks } = start([
    items(value(1), value(1, 'b')),
    items(value(1, 'c')),
    HANG
  ]);
  const reported = [];
  const note = (value, { key }) => reported.push(key);
  feeds.watch('a', (value, change) => {
    note(value, change);
    b.close();
    feeds.watch('c', note);
    feeds.watch('a', note);
  });
  const b = feeds.watch('b', note);
  await clock.settle();
  t.same(reported, ['a', 'a', 'c'], 'b was closed before its turn; the new ones are told');
  t.same(
    asks().map(({ feeds }) => Object.keys(feeds).join()),
    ['a,b', 'a,c', 'a,c']
  );
  feeds.close();
});

t.test('one function may watch twice, and each watch ends by itself', async (t) => {
  const { feeds, clock } = start([items(value(1)), items(value(2)), HANG]);
  let callCount = 0;
  const countCall = () => (callCount += 1);
  const [one, two] = [feeds.watch('a', countCall), feeds.watch('a', countCall)];
  one.close();
  one.close();
  await clock.settle();
  t.equal(callCount, 2);
  two.close();
  t.equal(feeds.state, 'idle');
});

t.test('a watch of a key that is none, closed at once, is told nothing', async (t) => {
  const { feeds, clock } = start([HANG]);
  const reports = [];
  feeds.watch('..', (value, { problem }) => reports.push(problem)).close();
  feeds.watch(undefined, (value, { problem }) => reports.push(problem));
  feeds.watch('x'.repeat(201), (value, { problem }) => reports.push(problem));
  await clock.settle();
  t.same(reports, ['bad-key', 'bad-key']);
  t.equal(feeds.state, 'idle');
  feeds.watch('..', () => t.fail('it was closed with all others'));
  feeds.close();
  await clock.settle();
});

t.test('a watch that is over, or was refused, holds nothing of a later one', async (t) => {
  const { feeds, clock } = start([items(value(1)), HANG]);
  const first = feeds.watch('a', () => {});
  feeds.close();
  const second = feeds.watch('a', () => {});
  await clock.settle();
  t.equal(second.held.cursor, 'e1-1');
  t.equal(first.held, null);
  t.equal(feeds.follow('a', () => {}).cursor, null);
  feeds.close();
});

t.test('a second watch that begins right before an answer is told once', async (t) => {
  const reports = [];
  const onState = (state) => {
    if (state === 'online') feeds.watch('a', ({ n }) => reports.push(n));
  };
  const { feeds, clock } = start([items(value(1)), HANG], { onState });
  feeds.watch('a', () => {});
  await clock.settle();
  t.same(reports, [1]);
  feeds.close();
});

t.test('what a callback throws is an uncaught error, and the others are told', async (t) => {
  const fail = (what) => () => {
    throw new Error(what);
  };
  const caught = uncaught(t);
  const { feeds, clock, asks } = start([items(value(1)), HANG], { onState: fail('state') });
  let callCount = 0;
  feeds.watch('a', fail('change'));
  feeds.watch('a', () => (callCount += 1));
  const store = feedStore(feeds, 'a');
  store.subscribe(fail('store'));
  store.subscribe(() => (callCount += 1));
  await clock.settle();
  t.same(caught, ['state', 'state', 'change', 'store']);
  t.equal(callCount, 2);
  t.equal(asks().length, 2, 'it asks on');
  t.equal(feeds.state, 'online');
  feeds.close();
});

t.test('a program that takes its time to give no grant has cut off no poll', async (t) => {
  let grantCount = 0;
  const grant = async () => {
    grantCount += 1;
    if (grantCount === 1) return 'one';
    await new Promise((resolve) => clock.setTimeout(resolve, 20_000));
    throw new Error('no grant to be had');
  };
  const script = [items(value(1)), problem(401, 'bad-grant')];
  const { feeds, clock, states } = start(script, { grant });
  feeds.watch('a', () => {});
  await clock.run(20_000);
  t.same(states, ['asking', 'online', 'offline: no-grant']);
  feeds.close();
});

t.test('wake ends a wait of its own, and none that the server asked for', async (t) => {
  const own = start([RESET, items(value(1)), HANG]);
  own.feeds.watch('a', () => {});
  await own.clock.settle();
  t.match(own.feeds, { why: 'network', nextTry: { asked: false } });
  own.feeds.wake();
  await own.clock.settle();
  t.same(own.states, ['asking', 'offline: network', 'online']);
  t.equal(own.clock.now(), 0, 'no time has passed');
  t.equal(own.feeds.nextTry, null);

  const servers = start([
    problem(503, 'too-many-watchers', { 'retry-after': '20' }),
    items(value(1)),
    HANG
  ]);
  servers.feeds.watch('a', () => {});
  await servers.clock.settle();
  servers.feeds.wake();
  servers.feeds.watch('b', () => {});
  await servers.clock.run(19_999);
  t.equal(servers.asks().length, 1);
  t.same(servers.feeds.nextTry, { ms: 5001, asked: true });
  await servers.clock.run(5001);
  t.equal(servers.feeds.state, 'online');
  for (const { feeds } of [own, servers]) feeds.close();
  own.feeds.wake();
  await own.clock.settle();
  t.equal(own.feeds.state, 'idle', 'nothing is watched');
});

t.test('wake gives up a poll that may hang, but none that has just been sent', async (t) => {
  const { feeds, clock, asks } = start([items(value(1)), HANG]);
  feeds.watch('a', () => {});
  await clock.run(500);
  feeds.wake();
  await clock.settle();
  t.equal(asks().length, 2);
  await clock.run(600);
  feeds.wake();
  await clock.settle();
  t.same(
    asks().map(({ hold }) => hold),
    [0, 55, 0],
    'and doubts whether there is contact'
  );
  feeds.close();
});

t.test('while offline a further watch waits with the others', async (t) => {
  const { feeds, clock, asks } = start([RESET]);
  feeds.watch('a', () => {});
  await clock.settle();
  for (const key of ['b', 'c', 'd']) {
    feeds.watch(key, () => {});
    await clock.settle();
  }
  t.equal(asks().length, 1, 'a failure is waited out');
  await clock.until(() => asks().length === 2);
  t.same(Object.keys(asks()[1].feeds), ['a', 'b', 'c', 'd']);
  feeds.close();
});

t.test('no answer in time, and none without an end', async (t) => {
  const slow = start([HANG]);
  slow.feeds.watch('a', () => {});
  await slow.clock.run(15_000);
  t.same(slow.states, ['asking', 'offline: slow']);
  const long = start([answer(200, { items: [], padding: 'x'.repeat(200) })], {
    limits: { feedAnswerMost: 200 }
  });
  long.feeds.watch('a', () => {});
  await long.clock.settle();
  t.same(long.states, ['asking', 'offline: garbage']);
  for (const { feeds } of [slow, long]) feeds.close();
});

for (const file of ['tests.json', 'spec_tests.json']) {
  t.test(`patches: the public test suite, ${file}`, async (t) => {
    let testCount = 0;
    for (const { doc, patch, expected, error, disabled } of require(
      `json-patch-test-suite/${file}`
    )) {
      const known = ['add', 'remove', 'replace'];
      if (disabled || !patch?.every(({ op }) => known.includes(op))) continue;
      // An error of the suite may be a duplicate member, which JSON.parse does not report.
      if (error !== undefined && expected === undefined) {
        t.throws(() => applyPatch(doc, patch), `${error} ${JSON.stringify(patch)}`);
      } else if (expected !== undefined) {
        t.same(applyPatch(doc, patch), expected, JSON.stringify(patch));
      }
      testCount += 1;
    }
    t.ok(testCount > 5);
  });
}

t.test('a store: what a watch was told last, as long as it has listeners', async (t) => {
  const { feeds, clock, asks } = start([
    items(value(1)),
    items({ feed: 'a', problem: 'unknown-feed' }),
    items(value(2)),
    HANG
  ]);
  const store = feedStore(feeds, 'a');
  t.same(store.getSnapshot(), { value: undefined });
  await clock.run(1000);
  t.equal(asks().length, 0, 'without listeners');
  const reported = [];
  const note = () => reported.push(store.getSnapshot());
  const ends = [store.subscribe(note), store.subscribe(note)];
  await clock.until(() => asks().length === 4);
  t.equal(reported.length, 6, 'the same function twice is told twice');
  t.same(
    reported.map(({ value, problem }) => value?.n ?? problem),
    [1, 1, 'unknown-feed', 'unknown-feed', 2, 2]
  );
  t.equal(store.getSnapshot(), store.getSnapshot(), 'the same object until it changes');
  for (const end of ends) end();
  const again = store.subscribe(note);
  await clock.run(1000);
  t.equal(asks().length, 4, 'a client that comes back at once goes on with the same watch');
  again();
  again();
  await clock.until(() => feeds.state === 'idle');
  store.subscribe(note);
  await clock.until(() => asks().length === 5);
  t.same(asks()[4].feeds, { a: 'e1-2' }, 'and later with what it holds');
  feeds.close();
});

t.test('a log that is followed says its cursor', async (t) => {
  const item = { feed: 'log', from: 'none', cursor: 'e1-1', items: [1] };
  const { feeds, clock } = start([items(item), HANG]);
  const reports = [];
  const log = feeds.follow('log', (list, news) => reports.push([list, news]), null);
  t.equal(log.cursor, null);
  await clock.until(() => reports.length === 1);
  t.strictSame(reports, [[[1], { key: 'log', cursor: 'e1-1' }]]);
  t.equal(log.cursor, 'e1-1');
  log.close();
  t.equal(log.cursor, null);
  t.equal(feeds.state, 'idle');
});

/** Watches behind a cache with these answers, on a stopped clock. Returns the callbacks and the count of requests. */
async function cached(feed) {
  const { feeds, clock, fetch } = start([HANG], { cached: true }, feed);
  const reported = [];
  feeds.watch('a', (value, { problem }) => reported.push(value ?? problem));
  await clock.settle();
  feeds.close();
  return { reported, requestCount: fetch.of('feed').length };
}

t.test('a cache that says the same again is not hammered', async (t) => {
  const first = answer(200, { feed: 'a', cursor: 'e1-1', value: 1 });
  const ping = (turn) => answer(200, { feed: 'a', cursor: 'e1-1', turn });
  t.equal((await cached([first, ping('x7')])).requestCount, 3, 'the turn once, then it waits');
  let last = 0;
  const { requestCount } = await cached([first, () => ping(`x${(last += 1)}`)]);
  t.ok(requestCount < 15, 'nor one that always has another turn');
  const gone = problem(404, 'unknown-feed');
  const { reported } = await cached([first, gone, first, gone, first, HANG]);
  t.same(reported, [1, 'unknown-feed', 1, 'unknown-feed'], 'nor one that has what has ended');
});

t.test('an address that is too long for some caches is not asked for', async (t) => {
  const keys = Array.from({ length: 19 }, (_, i) => `${i + 10}/${'k'.repeat(191)}`);
  // The last key fills the rest of the URL.
  const { length } = `s?watch=${keys.map((key) => `${key}:none`)},:none&hold=0&delta=1`;
  for (const [more, method] of [
    [0, 'GET'],
    [1, 'POST']
  ]) {
    const { feeds, clock, fetch } = start([HANG], { cached: true });
    for (const key of [...keys, 'z'.repeat(4000 - length + more)]) feeds.watch(key, () => {});
    await clock.settle();
    t.equal(fetch.of('feeds')[0].method ?? 'GET', method);
    feeds.close();
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
