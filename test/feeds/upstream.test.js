import { mock } from 'node:test';

import pino from 'pino';
import t from 'tap';

import { FetchTurns } from '../../lib/feeds/fetch-turns.js';
import { isKey } from '../../lib/feeds/names.js';
import { openUpstream } from '../../lib/feeds/upstream.js';

/**
 * When a feed is fetched, and when it is forgotten, by a clock of the test's own.
 */

const EVERY = 5;
const IDLE = 60;

/** A table with one feed, and the fetches of it: `watching` and `lastAsked` are the test's to set. */
function open(t) {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const scene = { now: 0, fetches: 0, forgotten: false, watching: 1, lastAsked: 0, failed: false };
  let ask;
  const feeds = {
    onFetch: (fetch) => (ask = fetch),
    find: () =>
      scene.forgotten
        ? null
        : {
            watching: scene.watching,
            idle: scene.now - scene.lastAsked,
            upstream: true,
            length: 7
          },
    forget: () => (scene.forgotten = true),
    fail: () => {},
    fetch: async () => {
      scene.fetches += 1;
      return scene.failed ? { failed: 'it is down' } : { unchanged: true };
    }
  };
  const options = {
    upstream: 'https://a.example/{key}',
    upstreamEvery: EVERY,
    upstreamAtOnce: 1,
    upstreamTime: 10,
    feedIdle: IDLE
  };
  const upstream = openUpstream({ feeds, options, log: pino({ level: 'silent' }) });
  t.teardown(() => upstream.close());
  /** Lets so many seconds go by, and what is due then be done. */
  scene.pass = async (seconds) => {
    for (let i = 0; i < seconds * 10; i += 1) {
      scene.now += 100;
      mock.timers.tick(100);
      // A fetch's outcome is taken some promises later.
      for (let turns = 0; turns < 5; turns += 1) await null;
    }
  };
  scene.start = async () => {
    ask('a');
    await scene.pass(0.1);
  };
  return scene;
}

t.test('--feed-idle: forgotten so long after somebody last watched, and not before', async (t) => {
  const scene = open(t);
  await scene.start();
  t.equal(scene.fetches, 1);
  await scene.pass(4 * EVERY);
  t.equal(scene.fetches, 5, 'again and again while it is watched');
  scene.watching = 0;
  scene.lastAsked = scene.now;
  await scene.pass(EVERY - 0.1);
  const { fetches } = scene;
  await scene.pass(IDLE - EVERY - 1);
  t.ok(scene.fetches <= fetches + 1, 'not when nobody does');
  t.notOk(scene.forgotten, 'and it stays for who comes back');
  await scene.pass(2);
  t.ok(scene.forgotten, 'until its time is over');
});

t.test('who comes back in time begins the time anew', async (t) => {
  const scene = open(t);
  await scene.start();
  scene.watching = 0;
  scene.lastAsked = scene.now;
  await scene.pass(IDLE - 2);
  scene.lastAsked = scene.now;
  await scene.pass(IDLE - 2);
  t.notOk(scene.forgotten);
  await scene.pass(4);
  t.ok(scene.forgotten);
});

t.test('a source that fails is asked later and later, five minutes at the most', async (t) => {
  const scene = open(t);
  scene.failed = true;
  await scene.start();
  await scene.pass(60);
  // Between half and all of 5, 10, 20, 40 s.
  t.ok(scene.fetches >= 4 && scene.fetches <= 6, `${scene.fetches} in a minute`);
  await scene.pass(1800);
  const { fetches } = scene;
  await scene.pass(3000);
  t.ok(scene.fetches - fetches >= 9 && scene.fetches - fetches <= 21, 'in fifty minutes');
  scene.failed = false;
  await scene.pass(301);
  const back = scene.fetches;
  await scene.pass(60);
  t.ok(scene.fetches >= back + 11, 'and as before when it answers again');
});

const source = (name, asker, first) => ({ name, asker, first });

t.test('one address has at most half of what may be fetched at once', (t) => {
  for (const [atOnce, share] of [
    [8, 4],
    [5, 2],
    [1, 1]
  ]) {
    const turns = new FetchTurns(atOnce);
    // Half of them are of feeds that have a value: these count as well.
    for (let n = 0; n < 20; n += 1) turns.add(source(n, 1, n % 2 === 0));
    let begun = 0;
    while (turns.take() !== undefined) begun += 1;
    t.equal(begun, share, `${atOnce} at once, nobody else asks`);
    if (atOnce > 1) {
      turns.add(source('other', 2, true));
      t.equal(turns.take().name, 'other', 'the next address need not wait for an end');
      turns.end(2);
    }
    t.equal(turns.take(), undefined);
    turns.end(1);
    t.equal(turns.take().asker, 1, 'one that has ended makes room for the next');
    t.equal(turns.take(), undefined);
    t.equal(turns.underWay, share);
  }
  const turns = new FetchTurns(4);
  for (let n = 0; n < 12; n += 1) turns.add(source(n, n % 3, true));
  while (turns.take() !== undefined);
  t.equal(turns.underWay, 4, 'and all together have no more than there may be');
  t.end();
});

t.test("no key leads out of the template's path, or to another host", (t) => {
  const tries = ['..', '.', 'a/../..', 'a/./b', '/a', 'a//b', 'a/', '//evil.example', 'a\\..\\b'];
  for (const key of [...tries, '%2e%2e/a', 'a?b', 'a#b', '@evil.example', ' a', 'ä', '']) {
    t.notOk(isKey(key), key);
  }
  for (const key of [
    '...',
    '.../..a/b..',
    '~',
    '-/_',
    '.well-known/x',
    'evil.example',
    '8/score'
  ]) {
    t.ok(isKey(key));
    const { host, pathname } = new URL('https://api.example/of/{key}'.replaceAll('{key}', key));
    t.strictSame([host, pathname], ['api.example', `/of/${key}`]);
  }
  t.end();
});

t.test('addresses take turns, and what is watched goes before what is new', (t) => {
  const turns = new FetchTurns(4);
  const drawn = (count) =>
    Array.from({ length: count }, () => {
      const { name, asker } = turns.take();
      turns.end(asker);
      return name;
    });
  const many = Array.from({ length: 5 }, (_, n) => source(`new${n}`, 1, true));
  for (const one of many) turns.add(one);
  turns.add(many[0]);
  turns.add(source('other', 2, true));
  t.equal(turns.size, 6, 'one that waits already waits once');
  t.strictSame(drawn(3), ['new0', 'other', 'new1'], 'one of each address in turn');

  for (let n = 0; n < 6; n += 1) turns.add(source(`seen${n}`, 3, false));
  turns.add(source('honest', 4, false));
  turns.delete(many[2]);
  t.strictSame(
    drawn(9),
    ['seen0', 'honest', 'seen1', 'new3', 'seen2', 'seen3', 'seen4', 'new4', 'seen5'],
    'three that are watched to one that is new'
  );
  t.equal(turns.take(), undefined);
  turns.delete(many[0]);
  t.equal(turns.size, 0);
  t.end();
});
