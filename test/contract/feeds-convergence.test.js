import { setImmediate as turn } from 'node:timers/promises';

import t from 'tap';

import { canonical } from '../../lib/feeds/canonical.js';
import { Random } from '../fuzz/random.js';
import { keptFeeds, KEYS, Publisher, TOKEN, Watcher } from '../support/feeds.js';
import { lengthOf } from '../support/until.js';
import { startServer } from '../support/server.js';

/**
 * Convergence: whatever happens to a watcher that keeps asking, it holds the publisher's newest value in
 * the end, never saw versions out of order, and got the value by patches byte for byte.
 */

t.jobs = 2; // most of the time they wait

const STEPS = lengthOf({ short: 40, long: 120 });

t.test('a watcher that keeps asking has the newest value in the end', async (t) => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  t.comment(`seed ${seed}`);
  const random = new Random(seed);
  const how = { options: keptFeeds(t) };
  let server = await startServer(t, how);
  const publisher = new Publisher();
  const watchers = Array.from({ length: 8 }, () => new Watcher(t, random, publisher));
  let going = true;
  const loops = watchers.map(async (watcher) => {
    while (going) {
      try {
        await watcher.ask(server);
      } catch {
        // The server is being stopped, or killed: the watcher asks again.
        await turn();
      }
    }
  });
  for (let step = 0; step < STEPS; step += 1) {
    await publisher.publish(server, random, random.pick(KEYS));
    if (step % 40 === 20) {
      await server.stop();
      server = await startServer(t, how);
    }
    if (step % 40 === 39) {
      server.child.kill('SIGKILL');
      await server.ended();
      server = await startServer(t, how);
    }
    if (random.oneIn(25)) {
      await server.ask('DELETE', `/feed/${KEYS[2]}`, {
        headers: { Authorization: `Bearer ${TOKEN}` }
      });
    }
  }
  for (const key of KEYS) await publisher.publish(server, random, key);
  going = false;
  let over = false;
  const ends = Promise.all(loops).finally(() => {
    over = true;
  });
  // Watchers that are parked, or read a stream, hear of one more version.
  while (!over) for (const key of KEYS) await publisher.publish(server, random, key);
  await ends;
  for (const watcher of watchers) {
    const feeds = Object.fromEntries(KEYS.map((key) => [key, watcher.after(key)]));
    const cursors = () => KEYS.map((key) => watcher.after(key)).join();
    const newest = KEYS.map((key) => publisher.newest.get(key).cursor).join();
    if (cursors() !== newest) {
      const body = JSON.stringify({ delta: true, feeds });
      const answer = await server.ask('POST', '/feeds', { body });
      for (const item of answer.body.items) watcher.take(item);
    }
    t.equal(cursors(), newest, 'the newest of each');
    for (const key of KEYS) {
      const { value } = publisher.newest.get(key);
      t.equal(canonical(watcher.held.get(key).value), canonical(value));
    }
  }
  await server.stop();
});
