import pino from 'pino';
import t from 'tap';

import { Feeds } from '../../lib/feeds/feeds.js';
import { NO_STATE, openDoorTo, watchBy } from '../support/feeds.js';
import { until } from '../support/until.js';

/**
 * Patches are made for those who take them, and for nobody else: the threads are spared.
 */

const OPTIONS = {
  hold: 30,
  feeds: 4,
  feedBytes: 300000,
  feedMemory: 3000000,
  feedWatchers: 8,
  upstream: 'none'
};

/** As long as what the main loop leaves to a thread, patched or not. */
const LONG = 'x'.repeat(200000);

/** Feeds whose threads take every value as it is, and note what they were asked for. */
async function makeFeeds(t) {
  const jobs = [];
  const threads = {
    async run(task, job) {
      jobs.push(job);
      return { value: job.body, patch: new Uint8Array(0), gzip: new Uint8Array(0) };
    }
  };
  const feeds = new Feeds({
    options: OPTIONS,
    threads,
    pool: NO_STATE,
    log: pino({ level: 'silent' })
  });
  const awake = setInterval(() => {}, 1000);
  t.teardown(() => {
    clearInterval(awake);
    feeds.close();
  });
  const publish = (text) => feeds.publish('a', 'value', Buffer.from(text));
  const after = async () => (await publish('"same"')).cursor;
  const ask = await openDoorTo(t, feeds);
  const watch = async ({ delta = 0, stream = false }) => {
    const headers = stream ? { Accept: 'text/event-stream' } : {};
    return watchBy(ask, feeds, `?after=${await after()}&delta=${delta}`, headers);
  };
  /** What the threads are asked for with a new value. */
  const patched = async () => {
    await publish(`"${jobs.length}${LONG}"`);
    const { before } = jobs.at(-1);
    t.equal(before !== undefined, jobs.at(-1).patched, 'the value before goes where it is needed');
    return jobs.at(-1).patched;
  };
  return { feeds, jobs, publish, watch, patched };
}

t.test('from the first client on that takes patches', async (t) => {
  const { feeds, publish, watch, patched } = await makeFeeds(t);
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

t.test('without a patch a value that did not change is known as well', async (t) => {
  const { feeds, publish, watch, patched } = await makeFeeds(t);
  await watch({ stream: true });
  t.equal(await patched(), false);
  const first = await publish('[1]');
  t.strictSame(await publish('[1]'), { ...first, unchanged: true });
  t.equal(feeds.status().unchanged, 1);
  t.not((await publish('[2]')).cursor, first.cursor);
});
