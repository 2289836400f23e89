import { randomBytes } from 'node:crypto';

import t from 'tap';

import { skip, startNats, startBrokerProxy } from '../support/nats.js';
import { get, put, tokenFile } from '../support/feeds.js';
import { until } from '../support/until.js';
import { enterWorld, logOf, untilRing } from '../support/world-servers.js';

/** Two servers whose lines to the broker need longer for one document than a lease. */

const LEASE = 3;

/** Bandwidth of each connection and direction, in bytes a second. */
const BANDWIDTH = 60_000;

/** Returns a document that does not compress below some 200 kB: 3.3 s on that line. */
const document = (n) => ({ n, noise: randomBytes(200_000).toString('base64') });

async function enter(t, nats, name) {
  const way = await startBrokerProxy(t, () => Number(new URL(nats.url).port));
  const feeds = { 'publish-token-file': tokenFile(t), 'feed-bytes': 500_000, drain: 1 };
  const server = await enterWorld(t, way, name, { ...feeds, 'world-lease': LEASE });
  return Object.assign(server, { way });
}

t.test('feeds on a slow line', { skip, timeout: 180_000 }, async (t) => {
  const nats = await startNats(t);
  const [a, b] = await Promise.all(['a', 'b'].map((name) => enter(t, nats, name)));
  await untilRing([a, b]);
  await put(a, 'small', { n: 1 });
  for (const { way } of [a, b]) way.slow({ width: BANDWIDTH });

  await t.test('documents arrive, the newest in the end, and every lease holds', async (t) => {
    await put(a, 'x', document(1));
    const newest = new Map();
    for (const key of ['x', 'y']) {
      newest.set(key, (await put(a, key, document(2))).body.cursor);
    }
    for (const key of newest.keys()) {
      const { body } = await until(
        async () => {
          const answer = await get(b, key);
          return answer.status === 200 && answer.body.cursor === newest.get(key) && answer;
        },
        () => `${key} at b: ${logOf(b)}`,
        90
      );
      t.equal(body.value.n, 2);
    }
    for (const server of [a, b]) {
      t.notMatch(
        logOf(server),
        /cut-off|world is lost/,
        `${server.name} was a member all the time`
      );
      const { world, worldFeedsUnshared } = await server.adminStatus();
      t.strictSame([world.state, worldFeedsUnshared], ['member', 0]);
    }
  });

  await t.test('without the connection of feeds leases hold, and sprites cross', async (t) => {
    for (const { way } of [a, b]) way.mend();
    await until(async () => (await a.adminStatus()).worldFeedsReachable === 1);
    a.way.cutOne('sprites a feeds');
    await until(async () => (await a.adminStatus()).worldFeedsReachable === 0);
    const alone = await put(a, 'small', { n: 3 });
    t.equal(alone.status, 200, 'it counts here');
    const [ofA, ofB] = [await a.join(), await b.join()];
    await untilRing([a, b]);
    t.equal((await a.throw(ofA, 'right', '{"over":"the seam"}')).status, 202);
    const { body } = await b.poll(ofB);
    t.match(body.sprites, [{ from: 'left', sprite: { over: 'the seam' } }]);
    t.equal((await fetch(`http://127.0.0.1:${a.adminPort}/readyz`)).status, 200);
    t.notMatch(logOf(a), /cut-off/);
    a.way.mend();
    await until(async () => (await get(b, 'small')).body.cursor === alone.body.cursor);
    t.equal((await a.adminStatus()).worldFeedsReachable, 1);
  });

  await t.test('without the other one feeds go on', async (t) => {
    a.way.cutOne('sprites a');
    await until(async () => (await a.adminStatus()).world.state === 'cut-off');
    const { body } = await put(a, 'small', { n: 4 });
    await until(async () => (await get(b, 'small')).body.cursor === body.cursor);
    t.equal((await a.adminStatus()).worldFeedsReachable, 1);
    a.way.mend();
    await untilRing([a, b]);
  });
  await Promise.all([a, b].map((server) => server.stop()));
});
