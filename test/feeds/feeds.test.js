import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mock } from 'node:test';
import { pathToFileURL } from 'node:url';

import pino from 'pino';
import t from 'tap';

import { Feeds } from '../../lib/feeds/feeds.js';
import { FetchTurns } from '../../lib/feeds/fetch-turns.js';
import { isKey, LAST_VERSION } from '../../lib/feeds/names.js';
import { JobTimeError, ThreadError, Threads } from '../../lib/feeds/threads.js';
import { Upstream } from '../../lib/feeds/upstream.js';
import { acceptsGzip } from '../../lib/feeds/watch-request.js';
import { Unanswerable } from '../../lib/torus/pool.js';
import { problemOf } from '../support/contract.js';
import { plainEnvironment } from '../support/cpp-build.js';
import { STATELESS_POOL, openFeedDoor, watchAndWait } from '../support/feeds.js';
import { until } from '../support/until.js';

/**
 * When a feed is fetched, and when it is forgotten, by a simulated clock.
 */

const EVERY = 5;
const IDLE = 60;

/** Opens an upstream for a fake table with one feed. The test sets `watching` and `lastAsked`, and reads `fetches`. */
function open(t) {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const scene = { now: 0, fetches: 0, forgotten: false, watching: 1, lastAsked: 0, failed: false };
  Object.assign(scene, { mayForget: true, length: 7, underWay: null, logged: [] });
  const logLine = (_, text) => scene.logged.push(text);
  const feeds = {
    onFetch: (fetch) => (scene.request = fetch),
    find: () =>
      scene.forgotten
        ? null
        : {
            watching: scene.watching,
            idle: scene.now - scene.lastAsked,
            upstream: true,
            length: scene.length
          },
    fetchedKeys: () => [],
    removeFetched: () => (scene.forgotten = scene.mayForget),
    fail: () => {},
    fetch: async () => {
      scene.fetches += 1;
      await scene.underWay;
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
  const upstream = new Upstream({ feeds, options, log: { info: logLine, warn: logLine } });
  t.teardown(() => upstream.close());
  /** Advances the clock by some seconds, and runs everything that becomes due. */
  scene.pass = async (seconds) => {
    for (let i = 0; i < seconds * 10; i += 1) {
      scene.now += 100;
      mock.timers.tick(100);
      // The outcome of a fetch arrives some promises later.
      for (let turns = 0; turns < 5; turns += 1) await null;
    }
  };
  scene.start = async () => {
    scene.request('a');
    await scene.pass(0.1);
  };
  return scene;
}

t.test('--feed-idle: forgotten so long after the last watcher, and not before', async (t) => {
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
  t.ok(scene.fetches <= fetches + 1, 'not without a watcher');
  t.notOk(scene.forgotten, 'and it stays for a watcher that comes back');
  await scene.pass(2);
  t.ok(scene.forgotten, 'until its time is over');
});

t.test('what can not be forgotten now is forgotten later, and fetched for who comes', async (t) => {
  const scene = open(t);
  await scene.start();
  scene.watching = 0;
  scene.mayForget = false;
  await scene.pass(2 * IDLE);
  t.notOk(scene.forgotten);
  const { fetches } = scene;
  scene.watching = 1;
  await scene.pass(EVERY + 1);
  t.ok(scene.fetches > fetches);
  scene.watching = 0;
  scene.mayForget = true;
  await scene.pass(EVERY + 1);
  t.ok(scene.forgotten);
});

t.test('a watcher that comes back in time begins the time anew', async (t) => {
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
  // The waits are 5, 10, 20, 40 s, each with jitter: between half and all of it.
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

t.test('however many feeds fail, the log has few lines', async (t) => {
  const scene = open(t);
  scene.failed = true;
  for (let n = 0; n < 30; n += 1) scene.request(`${n}`);
  await scene.pass(10);
  t.ok(scene.fetches >= 30);
  scene.failed = false;
  await scene.pass(60);
  const lines = (message) => Array(10).fill(message);
  const [failed, answers] = ['the upstream has failed', 'the upstream answers again'];
  t.strictSame(scene.logged, [...lines(failed), ...lines(answers)]);
});

t.test(
  'one that is deleted while it is fetched, and asked for again, is fetched anew',
  async (t) => {
    const scene = open(t);
    let end;
    scene.underWay = new Promise((resolve) => (end = resolve));
    await scene.start();
    scene.length = 0;
    await scene.start();
    t.equal(scene.fetches, 1, 'one at a time');
    end();
    await scene.pass(0.2);
    t.equal(scene.fetches, 2, 'what the first has fetched was compared with what is gone');
  }
);

t.test('blanks in a list such as Accept take no more time than what else is in it', (t) => {
  const accepts = (list) => acceptsGzip({ 'accept-encoding': list });
  // A parser that scans the rest of the list from each blank would take an hour.
  const blanks = ' \t'.repeat(2 ** 19);
  t.ok(accepts(`a${blanks}b,${blanks}gzip${blanks};${blanks}q=1${blanks}`));
  t.notOk(accepts(`gzip${blanks};${blanks}q=0${blanks}`));
  t.notOk(accepts(' ,;,\xa0gzip'));
  t.end();
});

const source = (name, asker, first) => ({ name, asker, first });

t.test('one address has at most half of what may be fetched at once', (t) => {
  for (const [atOnce, share] of [
    [8, 4],
    [5, 2],
    [1, 1]
  ]) {
    const turns = new FetchTurns(atOnce);
    // Half of the fetches are of feeds that have a value: these count, too.
    for (let n = 0; n < 20; n += 1) turns.add(source(n, 1, n % 2 === 0));
    let begun = 0;
    while (turns.beginNext() !== undefined) begun += 1;
    t.equal(begun, share, `${atOnce} at once, no other asks`);
    if (atOnce > 1) {
      turns.add(source('other', 2, true));
      t.equal(turns.beginNext().name, 'other', 'the next address need not wait for an end');
      turns.end(2);
    }
    t.equal(turns.beginNext(), undefined);
    turns.end(1);
    t.equal(turns.beginNext().asker, 1, 'one that has ended makes room for the next');
    t.equal(turns.beginNext(), undefined);
    t.equal(turns.underWay, share);
  }
  const turns = new FetchTurns(4);
  for (let n = 0; n < 12; n += 1) turns.add(source(n, n % 3, true));
  while (turns.beginNext() !== undefined);
  t.equal(turns.underWay, 4, 'and all together have no more than there may be');
  t.end();
});

t.test("no key leads out of the template's path, or to another host", (t) => {
  const tries = ['..', '.', 'a/../..', 'a/./b', '/a', 'a//b', 'a/', '//evil.example', 'a\\..\\b'];
  for (const key of [...tries, '%2e%2e/a', 'a?b', 'a#b', '@evil.example', ' a', 'ä', '']) {
    t.notOk(isKey(key), key);
  }
  for (const key of [
    ...['...', '.../..a/b..', '~', '-/_'],
    ...['.well-known/x', 'evil.example'],
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
      const { name, asker } = turns.beginNext();
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
  t.equal(turns.beginNext(), undefined);
  turns.delete(many[0]);
  t.equal(turns.size, 0);
  t.end();
});

/**
 * Worker threads that die, and the outcomes of their jobs.
 */

const WORKER = new URL('../../lib/feeds/worker.js', import.meta.url);

/** The real worker, which also exits or throws where the body or URL of a job says so. */
const MORTAL = `
  import { parentPort } from 'node:worker_threads';
  import ${JSON.stringify(WORKER)};
  parentPort.on('message', ({ job: { body, url } }) => {
    const text = body === undefined ? String(url) : Buffer.from(body).toString();
    if (text.includes('exit')) process.exit(1);
    if (text.includes('throw')) throw new Error('a defect');
  });
`;

/** The smallest job. */
const EMPTY = { value: new Uint8Array(0) };

const OPTIONS = {
  hold: 60,
  feeds: 4,
  feedBytes: 300000,
  feedMemory: 3000000,
  feedWatchers: 4,
  upstream: 'https://a.example/{key}',
  upstreamEvery: 60,
  upstreamAtOnce: 2,
  upstreamTime: 60,
  feedIdle: 60
};

/** A text so long that a thread handles it, not the main thread. */
const LONG = 'x'.repeat(200000);

/** Returns feeds with these threads. Keeps the event loop running until the test ends. */
function feedsOf(t, threads, more = {}) {
  const log = pino({ level: 'silent' });
  const feeds = new Feeds({ options: { ...OPTIONS, ...more }, threads, pool: STATELESS_POOL, log });
  const awake = setInterval(() => {}, 1000);
  t.teardown(async () => {
    clearInterval(awake);
    feeds.close();
    await threads.close();
  });
  return feeds;
}

/** Returns threads of mortal workers, and feeds with these threads. */
function mortalFeeds(t) {
  const file = `${t.testdir({ 'mortal.mjs': MORTAL })}/mortal.mjs`;
  const threads = new Threads(2, pathToFileURL(file));
  return { threads, feeds: feedsOf(t, threads) };
}

t.test('the jobs of a thread that dies fail, and the next starts another', async (t) => {
  const { threads } = mortalFeeds(t);
  for (const words of ['exit', 'throw']) {
    const jobs = ['a', words, 'b', 'c'].map((text) =>
      threads.run('change', {
        key: 'k',
        cursor: 'e1-1',
        kind: 'value',
        body: Buffer.from(text),
        most: 9
      })
    );
    const outcomes = await Promise.allSettled(jobs);
    t.equal(outcomes[1].status, 'rejected', `${words}: it fails`);
    t.ok(outcomes[1].reason instanceof ThreadError);
    t.equal(outcomes[0].status, 'fulfilled', 'what another thread does goes on');
    await until(() => threads.count === 1, 'it is gone');
    t.equal(threads.busy, 0, 'nothing is under way');
    await Promise.all([threads.run('pack', EMPTY), threads.run('pack', EMPTY)]);
    t.equal(threads.count, 2, 'there are two again');
  }
});

/** A value that is compressed when it is published, since it has more than a kibibyte. */
const COMPRESSED = JSON.stringify('endless'.repeat(150));

/** The real worker, but compressing a text with the word `endless` never ends. */
const ENDLESS = `
  import { syncBuiltinESMExports } from 'node:module';
  import zlib from 'node:zlib';
  const { gzipSync } = zlib;
  zlib.gzipSync = (bytes) => {
    while (bytes.includes('endless'));
    return gzipSync(bytes);
  };
  syncBuiltinESMExports();
  await import(${JSON.stringify(WORKER)});
`;

t.test('a job that takes too long is ended, and what waits behind it is done', async (t) => {
  const file = `${t.testdir({ 'endless.mjs': ENDLESS })}/endless.mjs`;
  const threads = new Threads(1, pathToFileURL(file), 0.4);
  t.teardown(() => threads.close());
  const job = (text, gzip) => ({
    ...{
      key: 'k',
      cursor: 'e1-1',
      kind: 'value',
      body: Buffer.from(text),
      most: 5000,
      patched: false
    },
    gzip
  });
  const before = threads.run('change', job('1', false));
  const endless = threads.run('change', job(COMPRESSED, true)).catch((error) => error);
  const behind = threads.run('change', job('[ 3 ]', false));
  t.equal(Buffer.from((await before).value).toString(), '1');
  t.ok((await endless) instanceof JobTimeError);
  t.equal(Buffer.from((await behind).value).toString(), '[3]', 'by another thread');
  t.equal(threads.busy, 0);
  t.equal(threads.count, 1, 'there is one again');
});

/** A worker that answers, and then creates the file that its job names. */
const ANSWERED = `
  import { writeFileSync } from 'node:fs';
  import { parentPort } from 'node:worker_threads';
  parentPort.on('message', ({ id, job }) => {
    parentPort.postMessage({ id });
    writeFileSync(job, '');
  });
`;

t.test('an answer that comes while the threads are closed does not let the process end', (t) => {
  const threads = new URL('../../lib/feeds/threads.js', import.meta.url);
  const folder = t.testdir({
    'answered.mjs': ANSWERED,
    'program.mjs': `
      import { existsSync } from 'node:fs';
      import { Threads } from ${JSON.stringify(threads)};
      process.chdir(import.meta.dirname);
      const threads = new Threads(1, new URL('answered.mjs', import.meta.url));
      await threads.run('change', 'first');
      threads.run('change', 'second');
      while (!existsSync('second'));
      await threads.close();`
  });
  const { status, stderr } = spawnSync(process.execPath, [`${folder}/program.mjs`], {
    env: plainEnvironment(),
    encoding: 'utf8',
    timeout: 20_000
  });
  t.strictSame({ status, stderr }, { status: 0, stderr: '' });
  t.end();
});

/** A worker that creates the file that its job names, and then makes a blocking call that nothing can interrupt. */
const IN_A_CALL = `
  import { execFileSync } from 'node:child_process';
  import { writeFileSync } from 'node:fs';
  import { parentPort, workerData } from 'node:worker_threads';
  parentPort.on('message', ({ id, job }) => {
    Atomics.store(new Int32Array(workerData), 0, id);
    writeFileSync(job, '');
    execFileSync('sleep', ['1.5']);
  });
`;

t.test('a job that takes too long while the threads are closed has no other begin', async (t) => {
  const folder = t.testdir({ 'called.mjs': IN_A_CALL });
  const threads = new Threads(1, pathToFileURL(`${folder}/called.mjs`), 0.6);
  const jobs = Promise.allSettled(['a', 'b'].map((job) => threads.run('x', `${folder}/${job}`)));
  await until(() => existsSync(`${folder}/a`));
  await threads.close();
  t.equal(threads.count, 0);
  for (const { reason } of await jobs) t.match(reason, { message: 'a worker thread has died' });
});

t.test('a publication that takes too long changes nothing, and the next is taken', async (t) => {
  const file = `${t.testdir({ 'endless.mjs': ENDLESS })}/endless.mjs`;
  const threads = new Threads(1, pathToFileURL(file), 0.4);
  const feeds = feedsOf(t, threads, { feedBytes: 5000 });
  const publish = (text) => feeds.publish('a', 'value', Buffer.from(text));
  const { cursor } = await publish(JSON.stringify('x'.repeat(2000)));
  // A client reads the feed compressed. So the next value is compressed, too, which never ends.
  await watchAndWait(await openFeedDoor(t, feeds), feeds, `?after=${cursor}`, {
    'Accept-Encoding': 'gzip'
  });
  const [slow, next] = await Promise.all([publish(COMPRESSED), publish('3')]);
  t.equal(slow.problem, 'publishing-slow');
  t.equal(next.problem, undefined);
  t.not(next.cursor, cursor);
});

t.test('a publication whose thread dies changes nothing, and those behind it go on', async (t) => {
  const { feeds } = mortalFeeds(t);
  const publish = (text) => feeds.publish('a', 'value', Buffer.from(text));
  const first = await publish('1');
  const [lost, next] = await Promise.all([publish(`"exit${LONG}"`), publish('2')]);
  t.same(lost, { problem: 'internal-error' });
  t.equal(next.cursor, first.cursor.replace(/-1$/, '-2'), 'versions have no gap');
  t.equal(feeds.status().published, 2);
  t.equal(feeds.status().publishing, 0);
});

t.test('a fetch whose thread dies has failed, and is tried again later', async (t) => {
  const { feeds } = mortalFeeds(t);
  const options = { ...OPTIONS, upstream: 'https://a.example/{key}/exit' };
  const upstream = new Upstream({ feeds, options, log: pino({ level: 'silent' }) });
  t.teardown(() => upstream.close());
  const ask = await openFeedDoor(t, feeds);
  t.equal(problemOf(await (await ask()).read()), 'upstream-failed');
  t.match(upstream.status(), { fetches: 1, fetchesFailed: 1, fetching: 0, fetchesWaiting: 0 });
});

t.test('a fetch of a feed that was published and deleted meanwhile is not taken', async (t) => {
  let end;
  const run = () => new Promise((resolve) => (end = resolve));
  const feeds = feedsOf(t, { run, async close() {} });
  const ask = await openFeedDoor(t, feeds);
  const none = new Uint8Array(0);
  /** Begins a fetch. Returns a function that ends it with a value. */
  const begin = () => {
    const fetching = feeds.fetch('a', {});
    return (text) => {
      end({ value: Buffer.from(text), patch: none, gzip: none });
      return fetching;
    };
  };
  const first = await watchAndWait(ask, feeds);
  await begin()('1');
  await first.read();
  const late = begin();
  const { cursor } = await feeds.publish('a', 'value', Buffer.from('2'));
  await feeds.remove('a');
  const wire = await watchAndWait(ask, feeds);
  t.strictSame(await late('3'), { etag: undefined, unchanged: false });
  await begin()('3');
  const { body } = await wire.read();
  t.equal(body.value, 3);
  t.not(body.cursor, cursor, 'a cursor means one value');
});

// ---- Patches are made only for clients that accept them, to spare the threads

/** Returns feeds with fake threads, which record their jobs and return every value unchanged. */
async function notedFeeds(t) {
  const jobs = [];
  const threads = {
    async run(task, job) {
      jobs.push(job);
      return { value: job.body, patch: new Uint8Array(0), gzip: new Uint8Array(0) };
    },
    async close() {}
  };
  const feeds = feedsOf(t, threads, { upstream: 'none' });
  const publish = (text) => feeds.publish('a', 'value', Buffer.from(text));
  const ask = await openFeedDoor(t, feeds);
  const watch = async ({ delta = 0, stream = false }) => {
    const headers = stream ? { Accept: 'text/event-stream' } : {};
    const { cursor } = await publish('"same"');
    return watchAndWait(ask, feeds, `?after=${cursor}&delta=${delta}`, headers);
  };
  /** Publishes a new value. Returns whether the threads had to make a patch. */
  const patched = async () => {
    await publish(`"${jobs.length}${LONG}"`);
    const { before } = jobs.at(-1);
    t.equal(before !== undefined, jobs.at(-1).patched, 'the value before goes where it is needed');
    return jobs.at(-1).patched;
  };
  return { feeds, jobs, publish, watch, patched };
}

t.test('from the first client on that takes patches', async (t) => {
  const { feeds, publish, watch, patched } = await notedFeeds(t);
  await publish('1');
  t.equal(await patched(), false, 'none watches');
  await watch({ stream: true });
  t.equal(await patched(), false, 'those that watch take whole values');
  const wire = await watch({ stream: true, delta: 1 });
  t.equal(await patched(), true);
  await wire.destroy();
  await until(() => feeds.status().watching === 1);
  t.equal(await patched(), true, 'it may be on its way back');
});

t.test('what takes JavaScript long is done by a thread', async (t) => {
  const { jobs, publish } = await notedFeeds(t);
  await publish(`"${'x'.repeat(100_000)}"`);
  t.equal(jobs.length, 0);
  await publish('1e21');
  t.equal(jobs.length, 1);
});

t.test('without a patch a value that did not change is known as well', async (t) => {
  const { feeds, publish, watch, patched } = await notedFeeds(t);
  await watch({ stream: true });
  t.equal(await patched(), false);
  const first = await publish('[1]');
  t.strictSame(await publish('[1]'), { ...first, unchanged: true });
  t.equal(feeds.status().unchanged, 1);
  t.not((await publish('[2]')).cursor, first.cursor);
});

t.test(
  'where the end of a state may be lost every feed has a new epoch, at the latest with its next version',
  async (t) => {
    const feeds = feedsOf(t, new Threads(0), { feedMemory: 2000 });
    const kept = { epoch: 5, upstream: false, patches: [], log: Buffer.of() };
    const large = Buffer.from(`"${'x'.repeat(1500)}"`);
    feeds.native.restore({ ...kept, key: 'last', version: LAST_VERSION, value: Buffer.from('1') });
    feeds.native.restore({ ...kept, key: 'large', version: 7, value: large });
    const over = ['over', 'over/too'];
    for (const key of over)
      feeds.native.restore({ ...kept, key, version: 1, value: Buffer.of(49) });
    const renewing = feeds.renew();
    for (const key of over) feeds.native.remove(key);
    await renewing;
    const { epoch, version } = feeds.find('last');
    t.not(epoch, 5);
    t.equal(version, LAST_VERSION, 'a start reads no higher one');
    t.equal(feeds.find('large').epoch, 5, 'there is no memory for it twice');
    const [, next] = (await feeds.publish('large', 'value', Buffer.from('2'))).cursor.split('-');
    t.equal(next, '8');
    const renewed = feeds.find('large').epoch;
    t.not(renewed, 5);
    await feeds.publish('large', 'value', Buffer.from('3'));
    t.equal(feeds.find('large').epoch, renewed);
  }
);

t.test('what can not be written in its turn holds late, and a caller is told', async (t) => {
  const log = pino({ level: 'silent' });
  const threads = new Threads(0);
  const endTurn = () => Promise.reject(new Unanswerable('the disk is full'));
  const feeds = new Feeds({ options: OPTIONS, threads, pool: { ...STATELESS_POOL, endTurn }, log });
  t.teardown(() => feeds.close());
  const late = { problem: 'state-unwritable', late: true };
  t.strictSame(await feeds.publish('a', 'value', Buffer.from('1')), { created: true, ...late });
  t.strictSame(await feeds.remove('a'), late);
});

t.test('what a publication has brought is released with its answer', async (t) => {
  const feeds = feedsOf(t, new Threads(1));
  const taken = t.capture(feeds.native, 'publish', feeds.native.publish);
  const publish = async (kind, text) => {
    const body = Buffer.from(text);
    t.notHas(await feeds.publish('a', kind, body), { problem: String });
    const [{ args }] = taken();
    return [body.length, args[0].value.length];
  };
  t.strictSame(await publish('value', JSON.stringify({ text: 'x'.repeat(1e5) })), [0, 0]);
  // A small Buffer shares its memory with others, so that memory is not released.
  t.strictSame(await publish('merge-patch', '{"i":1}'), [7, 0]);
  t.match(feeds.copyValue('a').toString(), /^\{"i":1,"text":"xxx/);
});
