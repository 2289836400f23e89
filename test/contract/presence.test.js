import t from 'tap';

import { createServer } from '../../server.js';
import { problemOf } from '../support/contract.js';
import {
  append,
  authorized,
  EventStream,
  get,
  durableFeedOptions,
  park,
  parkGet,
  patch,
  put,
  remove,
  tokenFile,
  tryPut
} from '../support/feeds.js';
import { bearer, KEY_SET, keyFile, reads } from '../support/grants.js';
import { request } from '../support/http.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** Presence over the wire: how many clients watch a feed, and their names. Bounds and leases: test/native/presence_test.cc. */

const namedGrant = (sub, read = 'team/*') => reads(read, { sub, present: true });

const openStream = (server, key, token) =>
  EventStream.open(server, key, token === undefined ? {} : bearer(token));

/** Reads events until `isIt` accepts a value. Returns all values read. */
async function readUntil(stream, isLast) {
  const values = [];
  for (;;) {
    const { data } = await stream.news();
    if (data.value === undefined) throw new Error(`no value: ${JSON.stringify(data)}`);
    values.push(data.value);
    if (isLast(data.value)) return values;
  }
}

const isPresence = (watching, who) => (value) =>
  value.watching === watching && JSON.stringify(value.who) === JSON.stringify(who);

for (const workers of [0, 1]) {
  t.test(`with ${workers} workers`, async (t) => {
    const server = await startServer(t, {
      options: {
        ...{ 'publish-token-file': tokenFile(t), grants: keyFile(t), private: 'team/*' },
        ...{ workers, hold: 60, lease: 1, arena: 'hall', 'feed-threads': 1, drain: 0 }
      }
    });
    await put(server, 'team/a', 1);
    await put(server, 'open', 1);

    t.test('it is as private as its feed', async (t) => {
      const answers = (more) =>
        Promise.all(['team/a', 'team/no'].map((key) => get(server, `presence/${key}`, '', more)));
      for (const [token, problem] of [
        [undefined, 'grant-required'],
        ['x.y.z', 'bad-grant'],
        [namedGrant('ann', 'team/b'), 'not-granted'],
        [namedGrant('ann', 'presence/*'), 'not-granted']
      ]) {
        for (const answer of await answers(token === undefined ? {} : bearer(token))) {
          t.equal(problemOf(answer), problem);
        }
      }
      const [there, not] = await answers(bearer(reads('team/*')));
      t.strictSame(there.body.value, { watching: 0, who: [] });
      t.equal(problemOf(not), 'unknown-feed');
      const watchBody = { hold: 5, feeds: { 'presence/team/a': '', 'presence/open': '' } };
      const { body } = await server.ask('POST', '/feeds', { body: JSON.stringify(watchBody) });
      const [private_, open] = body.items;
      t.equal(private_.problem, 'grant-required');
      t.strictSame(open.value, { watching: 0, who: [] });
      t.equal((await server.ask('HEAD', '/feed/presence/open')).status, 200);
      t.equal(problemOf(await get(server, 'presence/presence/open')), 'unknown-feed');
    });

    t.test('no client may publish it', async (t) => {
      for (const key of ['presence/open', 'presence/new']) {
        t.equal(problemOf(await tryPut(server, key, '1')), 'reserved-feed');
        t.equal(problemOf(await patch(server, key, 'merge-patch', {})), 'reserved-feed');
        t.equal(problemOf(await remove(server, key)), 'reserved-feed');
        t.equal(problemOf(await append(server, key, 1)), 'reserved-feed');
      }
      const by = bearer(reads([], { publish: ['*'] }));
      const answer = await server.ask('PUT', '/feed/presence/open', { body: '1', ...by });
      t.equal(problemOf(answer), 'reserved-feed');
    });

    for (const key of ['team/a', 'open']) {
      t.test(`${key}: a tab that reloads does not flicker, one that dies is gone`, async (t) => {
        const all = reads(['team/*', 'open']);
        const ann = namedGrant('ann', ['team/*', 'open']);
        const presenceStream = await openStream(server, `presence/${key}`, all);
        await readUntil(presenceStream, isPresence(0, []));
        let tab = await openStream(server, key, ann);
        const feeds = { [key]: (await get(server, key, '', bearer(all))).body.cursor };
        const list = {
          body: JSON.stringify({ hold: 60, feeds }),
          ...bearer(namedGrant('bo', key))
        };
        const poll = await park(server, request('POST', '/feeds', list));
        const plain = await openStream(server, key, all);
        await readUntil(presenceStream, isPresence(3, ['ann', 'bo']));
        // Each publication answers the poll, and the tab reloads: presence does not change.
        for (let n = 0; n < 3; n += 1) {
          await tab.wire.destroy();
          tab = await openStream(server, key, ann);
        }
        await plain.wire.destroy();
        const [...seen] = await readUntil(presenceStream, isPresence(2, ['ann', 'bo']));
        await tab.wire.reset();
        seen.push(...(await readUntil(presenceStream, isPresence(1, ['bo']))));
        for (const { who } of seen.slice(0, -1))
          t.strictSame(who, ['ann', 'bo'].slice(-who.length));
        await poll.wire.destroy();
        await readUntil(presenceStream, isPresence(0, []));
        await presenceStream.wire.destroy();
      });
    }

    t.test('a watcher that does not say so, or may not read it, has no name', async (t) => {
      const plain = await openStream(server, 'open', reads('open', { sub: 'cy' }));
      const nameless = await openStream(server, 'open', reads('open', { present: true }));
      const other = await openStream(server, 'open', namedGrant('di', 'team/*'));
      const badGrantStream = await openStream(server, 'open', 'x.y.z');
      await until(async () => (await get(server, 'presence/open')).body.value.watching === 4);
      t.strictSame((await get(server, 'presence/open')).body.value.who, []);
      for (const stream of [plain, nameless, other, badGrantStream]) await stream.wire.destroy();
    });

    t.test('a token that is known is no business of JavaScript for an open feed', async (t) => {
      const grant = namedGrant('ann', 'open');
      const bad = namedGrant('eve', ['open', 'team/*']).replace(/[^.]+$/, grant.split('.')[2]);
      for (const token of [grant, bad]) {
        await get(server, 'open', '', bearer(token));
        const { handled } = await server.status();
        for (const key of ['open', 'presence/open']) {
          t.equal((await get(server, key, '', bearer(token))).status, 200);
          t.equal((await get(server, key, `grant=${token}`)).status, 200);
        }
        t.equal((await server.status()).handled, handled);
      }
      t.equal(problemOf(await get(server, 'team/a', '', bearer(bad))), 'bad-grant');
      const feeds = JSON.stringify({ feeds: { open: '', 'team/a': '' } });
      const list = await server.ask('POST', '/feeds', { body: feeds, ...bearer(bad) });
      t.equal(problemOf(list), 'bad-grant');
    });

    t.test('a client without a token has not the name of the request before', async () => {
      for (let n = 0; n < 2; n += 1)
        await get(server, 'open', '', bearer(namedGrant('ann', 'open')));
      const plain = await openStream(server, 'open');
      const presenceStream = await openStream(server, 'presence/open');
      await readUntil(presenceStream, isPresence(1, []));
      for (const stream of [plain, presenceStream]) await stream.wire.destroy();
    });

    t.test('a revoked watcher is gone at once', async () => {
      const told = await openStream(server, 'presence/open');
      const tab = await openStream(server, 'open', namedGrant('eve', 'open'));
      await readUntil(told, ({ who }) => who.includes('eve'));
      const revoked = `http://127.0.0.1:${server.adminPort}/revoked/sub/eve`;
      await fetch(revoked, { method: 'PUT' });
      await readUntil(told, ({ who }) => !who.includes('eve'));
      for (let event; event !== null; event = await tab.news()) if (event?.data.problem) break;
      await told.wire.destroy();
      await fetch(revoked, { method: 'DELETE' });
    });

    t.test('it ends with its feed, and begins with it', async (t) => {
      await put(server, 'soon', 1);
      const { body } = await get(server, 'presence/soon');
      const query = `after=${body.cursor}&hold=10`;
      const { answer } = await parkGet(server, 'presence/soon', query);
      await remove(server, 'soon');
      t.equal(problemOf(await answer), 'unknown-feed');
      const waiting = await park(server, request('GET', '/feed/presence/soon?after=none&hold=10'));
      await put(server, 'soon', 2);
      t.strictSame((await waiting.answer).body.value, { watching: 0, who: [] });
    });
  });
}

t.test('none is kept: a restart begins anew', async (t) => {
  const options = durableFeedOptions(t);
  const first = await startServer(t, { options });
  await put(first, 'a', 1);
  const { cursor } = (await get(first, 'presence/a')).body;
  first.child.kill('SIGTERM');
  await first.ended();
  const second = await startServer(t, { options });
  const { feeds } = (await second.ask('GET', '/feeds', { headers: authorized() })).body;
  t.strictSame(
    feeds.map(({ feed }) => feed),
    ['a']
  );
  const { body } = await get(second, 'presence/a', `after=${cursor}&hold=10`);
  t.strictSame(body.value, { watching: 0, who: [] });
  t.not(body.cursor.split('-')[0], cursor.split('-')[0]);
});

t.test('a program hears of it', async (t) => {
  const server = await createServer({
    ...{ port: 0, host: '127.0.0.1', adminPort: 'none', lease: 1 },
    ...{ grants: { keys: KEY_SET.keys.slice(0, 1) } }
  });
  t.teardown(() => server.close());
  const begins = server.watch('presence/a');
  await server.publish('a', 1);
  const first = await begins;
  t.strictSame(first.value, { watching: 0, who: [] });
  const next = server.watch('presence/a', first.cursor);
  const grant = await server.grant({ sub: 'ann', present: true, read: ['a'], seconds: 60 });
  const ending = new AbortController();
  const headers = { Accept: 'text/event-stream' };
  const { signal } = ending;
  const stream = await fetch(`${server.addresses[0]}feed/a?grant=${grant}`, { headers, signal });
  const second = await next;
  t.strictSame(second.value, { watching: 1, who: ['ann'] });
  t.equal(stream.status, 200, 'not collected until here: the collector would end the stream');
  ending.abort();
  let now = second;
  while (now.value.watching > 0 || now.value.who.length > 0) {
    now = await server.watch('presence/a', now.cursor);
  }
  await t.rejects(server.publish('presence/a', 1), { problem: 'reserved-feed' });
  await server.remove('a');
  t.strictSame(await server.watch('presence/a', now.cursor), { cursor: 'none', value: undefined });
});
