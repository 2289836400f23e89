import { pathToFileURL } from 'node:url';

import pino from 'pino';
import t from 'tap';

import { Feeds } from '../../lib/feeds/feeds.js';
import { JobTimeError, ThreadError, Threads } from '../../lib/feeds/threads.js';
import { openUpstream } from '../../lib/feeds/upstream.js';
import { NO_STATE } from '../support/feeds.js';
import { until } from '../support/until.js';

/**
 * Worker threads of the feeds that die, and what becomes of their jobs.
 */

const WORKER = new URL('../../lib/feeds/worker.js', import.meta.url);

/** A worker that does what the real one does, but ends where a job's body or URL says so. */
const MORTAL = `
  import { parentPort } from 'node:worker_threads';
  import ${JSON.stringify(WORKER)};
  parentPort.on('message', ({ job: { body, url } }) => {
    const text = body === undefined ? String(url) : Buffer.from(body).toString();
    if (text.includes('exit')) process.exit(1);
    if (text.includes('throw')) throw new Error('a defect');
  });
`;

const OPTIONS = {
  hold: 60,
  feeds: 4,
  feedBytes: 1000,
  feedMemory: 100000,
  feedWatchers: 4,
  upstream: 'https://a.example/{key}',
  upstreamEvery: 60,
  upstreamAtOnce: 2,
  upstreamTime: 60,
  feedIdle: 60
};

/** Threads that can be made to die, and the feeds they work for. */
function mortalFeeds(t) {
  const file = `${t.testdir({ 'mortal.mjs': MORTAL })}/mortal.mjs`;
  const threads = new Threads(2, pathToFileURL(file));
  const feeds = new Feeds({
    options: OPTIONS,
    threads,
    pool: NO_STATE,
    log: pino({ level: 'silent' })
  });
  t.teardown(async () => {
    feeds.close();
    await threads.close();
  });
  return { threads, feeds };
}

t.test('the jobs of a thread that dies fail, and the next starts another', async (t) => {
  const { threads } = mortalFeeds(t);
  await threads.start();
  for (const words of ['exit', 'throw']) {
    const jobs = ['a', words, 'b', 'c'].map((text) =>
      threads.run('change', { key: 'k', cursor: 'e1-1', kind: 'value', body: text, most: 9 })
    );
    const outcomes = await Promise.allSettled(jobs);
    t.equal(outcomes[1].status, 'rejected', `${words}: it fails`);
    t.ok(outcomes[1].reason instanceof ThreadError);
    t.equal(outcomes[0].status, 'fulfilled', 'what another thread does goes on');
    await until(() => threads.count === 1, 'it is gone');
    t.equal(threads.busy, 0, 'nothing is under way');
    await Promise.all([threads.run('nothing', {}), threads.run('nothing', {})]);
    t.equal(threads.count, 2, 'there are two again');
  }
});

/** A value that is compressed when it is published: from a kibibyte on. */
const COMPRESSED = JSON.stringify('endless'.repeat(150));

/** A worker in which some jobs, that the real one does not end, never end. */
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
  await threads.start();
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

t.test('a publication that takes too long changes nothing, and the next is taken', async (t) => {
  const file = `${t.testdir({ 'endless.mjs': ENDLESS })}/endless.mjs`;
  const threads = new Threads(1, pathToFileURL(file), 0.4);
  const feeds = new Feeds({
    options: { ...OPTIONS, feedBytes: 5000 },
    threads,
    pool: NO_STATE,
    log: pino({ level: 'silent' })
  });
  const awake = setInterval(() => {}, 1000);
  t.teardown(async () => {
    clearInterval(awake);
    feeds.close();
    await threads.close();
  });
  const publish = (text) => feeds.publish('a', 'value', Buffer.from(text));
  const { cursor } = await publish(JSON.stringify('x'.repeat(2000)));
  // Somebody takes it compressed: so is the next, and that never ends.
  feeds.watch({ keys: ['a'], afters: [cursor], gzip: true }, () => true);
  const [slow, next] = await Promise.all([publish(COMPRESSED), publish('3')]);
  t.equal(slow.problem, 'publishing-slow');
  t.equal(next.problem, undefined);
  t.not(next.cursor, cursor);
});

t.test('a publication whose thread dies changes nothing, and those behind it go on', async (t) => {
  const { feeds } = mortalFeeds(t);
  const publish = (text) => feeds.publish('a', 'value', Buffer.from(text));
  const first = await publish('1');
  const [lost, next] = await Promise.all([publish('"exit"'), publish('2')]);
  t.same(lost, { problem: 'internal-error' });
  t.equal(next.cursor, first.cursor.replace(/-1$/, '-2'), 'versions have no gap');
  t.equal(feeds.status().published, 2);
  t.equal(feeds.status().publishing, 0);
});

t.test('a fetch whose thread dies has failed, and is tried again later', async (t) => {
  const { feeds } = mortalFeeds(t);
  const options = { ...OPTIONS, upstream: 'https://a.example/{key}/exit' };
  const upstream = openUpstream({ feeds, options, log: pino({ level: 'silent' }) });
  t.teardown(() => upstream.close());
  let answered;
  const { outcome } = feeds.watch({ keys: ['a'], afters: [''] }, (answer) => {
    answered = answer.outcome;
    return true;
  });
  t.equal(outcome, 'ok');
  await until(() => answered !== undefined, 'it is answered');
  t.equal(answered, 'upstream-failed');
  t.match(upstream.status(), { fetches: 1, fetchesFailed: 1, fetching: 0, fetchesWaiting: 0 });
});
