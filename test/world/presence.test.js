import t from 'tap';

import { SharedPresence } from '../../lib/world/shared-presence.js';
import { EventStream, get, parkGet, put, tokenFile } from '../support/feeds.js';
import { bearer, inSeconds, keyFile, reads as grantOf } from '../support/grants.js';
import { enterNats, skip, startNats } from '../support/nats.js';
import { until } from '../support/until.js';
import { enterWorld, untilReady, untilEach } from '../support/world-servers.js';

/** The watchers of a feed at all servers of a world, with server processes and a real nats-server. */

/** Returns a grant that outlives the test on any machine. */
const readsAll = (more) => grantOf('*', { exp: inSeconds(600), ...more });

const grantNamed = (sub) => readsAll({ sub, present: true });

/** Opens an event stream of the feed: a watcher. */
async function openWatcher(server, key, token = readsAll()) {
  const stream = await EventStream.open(server, key, bearer(token));
  await stream.news();
  return stream;
}

/** Waits until all servers tell the same of a feed. */
async function untilPresence(servers, key, watching, who) {
  const look = (server) => get(server, `presence/${key}`, '', bearer(readsAll()));
  await untilEach(servers, { watching, who }, async (server) => (await look(server)).body.value);
}

t.test('a server tells its watchers while the name is its own', (t) => {
  const sent = [];
  let reportPresence;
  const feeds = { native: { removeShares() {} }, onPresence: (told) => (reportPresence = told) };
  const presence = new SharedPresence({
    feeds,
    isShared: () => true,
    send: (one) => sent.push(one)
  });
  for (const state of ['alone', 'joining', 'member', 'leaving', 'alone']) {
    presence.update({ state, peers: new Map() });
    reportPresence({ key: `presence/${state}`, share: { watching: 1, who: [] } });
  }
  const keys = sent.map((one) => JSON.parse(one).key);
  t.strictSame(keys, ['presence/member', 'presence/leaving']);
  t.end();
});

t.test('a watcher at any server is told of at all', { skip, timeout: 180_000 }, async (t) => {
  const nats = await startNats(t);
  const common = { grants: keyFile(t), private: 'plan', 'publish-token-file': tokenFile(t) };
  const bounds = { drain: 0, lease: 1, workers: 0 };
  const enter = (name, more) => enterWorld(t, nats, name, { ...common, ...bounds, ...more });
  const [a, b, c] = await Promise.all([
    enter('a', { arena: 'hall' }),
    enter('b', { workers: 1 }),
    enter('c', { arena: 'hall' })
  ]);
  const all = [a, b, c];
  await untilReady(all);
  for (const key of ['plan', 'open']) await put(a, key, 1);
  const seen = async (server) => (await get(server, 'plan', '', bearer(grantNamed('ann')))).status;
  for (const server of all) await until(async () => (await seen(server)) === 200);

  await t.test('their number and their names, each once', async () => {
    const tab = await openWatcher(a, 'plan', grantNamed('bo'));
    await openWatcher(b, 'plan', grantNamed('ann'));
    const { body } = await get(c, 'plan', '', bearer(grantNamed('ann')));
    await parkGet(c, 'plan', `after=${body.cursor}`, bearer(grantNamed('ann')));
    await openWatcher(c, 'plan');
    await untilPresence(all, 'plan', 4, ['ann', 'bo']);
    // A waiting watcher gets the change of watchers at another server.
    const told = await get(c, 'presence/plan', '', bearer(readsAll()));
    const query = `after=${told.body.cursor}`;
    const waiting = await parkGet(c, 'presence/plan', query, bearer(readsAll()));
    await tab.wire.destroy();
    await waiting.answer;
    await untilPresence(all, 'plan', 3, ['ann']);
  });

  await t.test('a hundred names at most', async () => {
    const name = (i) => `n${100 + ((i * 7) % 103)}`;
    const names = Array.from({ length: 103 }, (_, i) => name(i));
    for (const [i, one] of names.entries()) await openWatcher(all[i % 3], 'open', grantNamed(one));
    await untilPresence(all, 'open', 103, names.toSorted().slice(0, 100));
  });

  await t.test('an arena, which is its server’s, is not added up', async (t) => {
    const key = 'arena/hall/control';
    for (const server of [a, c]) await openWatcher(server, key);
    await untilPresence([a, c], key, 1, []);
    // The other servers were asked for this feed meanwhile.
    await openWatcher(b, 'plan');
    await untilPresence(all, 'plan', 4, ['ann']);
    t.strictSame((await get(a, `presence/${key}`)).body.value, { watching: 1, who: [] });
  });

  await t.test('what no server says is not taken', async (t) => {
    const connection = await enterNats(t, nats);
    const publish = (from, what) =>
      connection.publish(
        `sprites.presence.${from}`,
        typeof what === 'string' ? what : JSON.stringify(what)
      );
    const share = { key: 'presence/plan', watching: 7, who: ['eve'] };
    publish('x', share);
    for (const bad of [
      'null',
      '{',
      { ...share, key: 'plan' },
      { ...share, key: 7 },
      { ...share, watching: -1 },
      { ...share, watching: 2 ** 32 },
      { ...share, who: 'eve' },
      { ...share, who: [7] },
      { ...share, who: [''] },
      { ...share, who: Array(101).fill('eve') },
      { ...share, who: ['e'.repeat(201)] },
      { key: 'presence/gone', asks: true },
      { key: 'presence/presence/plan', asks: true }
    ]) {
      publish('b', bad);
    }
    await connection.flush();
    await openWatcher(a, 'plan', grantNamed('zoe'));
    await untilPresence(all, 'plan', 5, ['ann', 'zoe']);
    t.strictSame((await get(a, 'presence/plan', '', bearer(readsAll()))).body.value, {
      watching: 5,
      who: ['ann', 'zoe']
    });
  });

  await t.test('a server that dies takes its watchers away with its lease', async () => {
    await b.kill();
    await untilPresence([a, c], 'plan', 3, ['ann', 'zoe']);
  });

  await t.test('one that leaves, and one that joins', async () => {
    c.child.kill('SIGTERM');
    await c.ended();
    await untilPresence([a], 'plan', 1, ['zoe']);
    const d = await enter('d');
    await untilReady([d]);
    await openWatcher(d, 'plan', grantNamed('di'));
    await untilPresence([a, d], 'plan', 2, ['di', 'zoe']);
    await nats.kill();
    await untilPresence([a], 'plan', 1, ['zoe']);
    await untilPresence([d], 'plan', 1, ['di']);
  });
});
