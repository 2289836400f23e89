import { join } from 'node:path';

import t from 'tap';

import { Feeds } from '../../lib/client/client.js';
import { canonical } from '../../lib/feeds/canonical.js';
import { playUntilHeard } from '../support/feeds-history.js';
import { patch, put, remove, TOKEN, tokenFile } from '../support/feeds.js';
import { lengthOf, until } from '../support/until.js';
import { startServer } from '../support/server.js';

/** The JavaScript client of feeds against the server. */

const baseOf = (server) => `http://127.0.0.1:${server.port}`;

/** Watches keys, and keeps what it is told. */
function watchAll(t, server, keys) {
  const feeds = new Feeds({ base: baseOf(server), limits: { backoffMost: 500 } });
  t.teardown(() => feeds.close());
  const told = [];
  const held = new Map();
  for (const key of keys) {
    const note = (value, { cursor, patch, problem }) => {
      told.push({ key, cursor, problem, patched: patch !== undefined });
      held.set(key, value);
    };
    feeds.watch(key, note);
  }
  return { feeds, told, held };
}

t.test('many keys in one poll, with patches', async (t) => {
  const server = await startServer(t, { options: { 'publish-token-file': tokenFile(t) } });
  const list = Array.from({ length: 100 }, (_, n) => ({ n, name: `player ${n}` }));
  await put(server, 'team/1', { list });
  await put(server, 'scores', [0, 0]);
  const { feeds, told, held } = watchAll(t, server, ['team/1', 'scores', 'later']);
  await until(() => told.length === 2);
  t.equal(held.get('later'), undefined, 'what is not yet published is no problem');
  t.same(held.get('scores'), [0, 0]);

  await patch(server, 'team/1', 'merge-patch', { coach: 'Ada' });
  await until(() => held.get('team/1').coach === 'Ada');
  t.ok(told.at(-1).patched, 'it came as a patch');
  t.equal(canonical(held.get('team/1')), canonical({ coach: 'Ada', list }));
  await put(server, 'later', { is: 'here' });
  await until(() => held.get('later')?.is === 'here');
  await until(async () => (await server.status()).watching === 3);

  await remove(server, 'scores');
  await until(() => told.at(-1).problem === 'unknown-feed');
  t.equal(held.get('scores'), undefined);
  await put(server, 'scores', [1, 0]);
  await until(() => held.get('scores')?.[0] === 1);
  t.equal(feeds.state, 'online');

  feeds.close();
  await server.until(({ watching }) => watching === 0);
  await server.stop();
});

t.test('over a restart it goes on with patches', async (t) => {
  const folder = t.testdir({ tokens: `${TOKEN}\n` });
  const options = {
    'publish-token-file': join(folder, 'tokens'),
    state: join(folder, 'state'),
    drain: 1
  };
  const first = await startServer(t, { options });
  await put(first, 'a', { n: 1, padding: 'x'.repeat(500) });
  const { feeds, told, held } = watchAll(t, first, ['a']);
  await until(() => told.length === 1);
  await first.stop();
  await until(() => feeds.state === 'offline');
  const second = await startServer(t, { options: { ...options, port: first.port } });
  await put(second, 'a', { n: 2, padding: 'x'.repeat(500) });
  await until(() => held.get('a').n === 2);
  t.same(
    told.map(({ patched }) => patched),
    [false, true]
  );
  feeds.close();
  await second.stop();
});

/**
 * The JavaScript client through a random history; test/client/feeds-cpp.test.js has the C++ client as
 * well, and test/fuzz/feeds.js plays on for as long as one likes.
 */

t.setTimeout(300_000);

t.test('a client that watches has the newest value in the end', (t) =>
  playUntilHeard(t, { steps: lengthOf({ short: 30, long: 60 }) })
);
