import { createServer } from 'node:http';
import t from 'tap';

import { Feeds } from '../../lib/client/client.js';
import { freePort, listening } from '../support/addresses.js';
import { CACHE_NAMES, reasonToSkip, startCache } from '../support/caches.js';
import { authorized, put, remove, tokenFile } from '../support/feeds.js';
import { temporary } from '../support/processes.js';
import { FaultProxy } from '../support/proxies.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * Runs the caches of deploy/: how many requests reach the server, and what clients see while a cache is restarted,
 * slow, or sends stale answers.
 */

const WATCHERS = 300;
const HOLD = 5;

t.setTimeout(300_000);

const options = { 'publish-token-file': tokenFile(t), 'feed-cache': 10, hold: HOLD };

/** Starts a cache. The end of the test ends it. */
async function start(t, kind, ports, how) {
  const cache = await startCache(kind, temporary(t), ports, how);
  t.teardown(() => cache.end());
  return cache;
}

/** Starts clients that watch feeds through a cache's port. Each has a list of the values that it has seen. */
function startWatchers(t, port, keys, count, startVersion) {
  const clients = Array.from({ length: count }, () => {
    const base = `http://127.0.0.1:${port}`;
    const client = new Feeds({ base, cached: true, limits: { feedHold: HOLD, backoffMost: 1000 } });
    const seen = startVersion ? [startVersion.value] : [];
    for (const key of keys) client.watch(key, (value) => seen.push(value), { kept: startVersion });
    return { client, seen };
  });
  t.teardown(() => clients.forEach(({ client }) => client.close()));
  return clients;
}

const untilAllHave = (clients, value) =>
  until(
    () => clients.every(({ seen }) => seen.at(-1) === value),
    () => `${value}`,
    60
  );

const backwardLists = (clients) =>
  clients.map(({ seen }) => seen).filter((list) => list.some((value, i) => value <= list[i - 1]));

const ONE_KEY = ['scores'];
/** Keys in the order of an answer. */
const SEVERAL_KEYS = ['scores', 'standings', 'table'];
const cases = CACHE_NAMES.flatMap((kind) =>
  [ONE_KEY, SEVERAL_KEYS].map((keys) => ({ kind, keys }))
);

for (const { kind, keys } of cases) {
  const skip = reasonToSkip(kind);
  t.test(`${WATCHERS} watch ${keys} through ${kind}`, { skip }, async (t) => {
    const server = await startServer(t, { options });
    const ports = { port: await freePort(), server: server.port };
    const cache = await start(t, kind, ports);
    // Every published value is larger than the values before it.
    const publish = (value) => put(server, keys.at(value % keys.length), value);
    for (const [i, key] of keys.entries()) await put(server, key, i + 1 - keys.length);

    const clients = startWatchers(t, ports.port, keys, WATCHERS);
    await untilAllHave(clients, 0);
    await server.until(({ watching }) => watching > 0);
    const before = await server.status();
    const began = performance.now();
    let versions = 1;
    for (; versions <= 3; versions += 1) {
      await publish(versions);
      await untilAllHave(clients, versions);
    }
    // Wait for some turns without anything new.
    await server.until(({ feedPings }) => feedPings >= before.feedPings + 2, 60);
    const turns = Math.ceil((performance.now() - began) / (HOLD * 1000)) + 1;
    const { feedPolls, watching } = await server.status();
    const polls = feedPolls - before.feedPolls;
    t.comment(`${polls} requests, ${versions} versions, ${turns} turns`);
    t.ok(polls <= 2 * (versions + turns), `${polls} requests`);
    t.ok(watching <= 2 * keys.length, `${watching} are parked`);

    t.same(backwardLists(clients), []);
    for (const { client } of clients) client.close();
    await cache.end();
    await server.stop();
  });
}

for (const kind of CACHE_NAMES) {
  const skip = reasonToSkip(kind);
  t.test(`equal requests are one through ${kind}`, { skip }, async (t) => {
    const server = await startServer(t, { options: { ...options, 'feed-cache': 1 } });
    const ports = { port: await freePort(), server: server.port };
    const cache = await start(t, kind, ports);
    const { cursor } = (await put(server, 'scores', 1)).body;
    const address = `http://127.0.0.1:${ports.port}/feed/scores?after=${cursor}&hold=${HOLD}`;
    /** Sends `count` equal requests, which all get a ping. @returns {Promise<number>} the polls at the server */
    const ask = async (count) => {
      const before = await server.status();
      const one = async () => (await fetch(address)).json();
      const pings = await Promise.all(Array.from({ length: count }, one));
      t.ok(pings.every((ping) => ping.cursor === cursor && 'turn' in ping));
      return (await server.status()).feedPolls - before.feedPolls;
    };
    // More than 1023, up to which nginx counts the uses of an answer (deploy/nginx-cache.conf).
    t.equal(await ask(1100), 1);
    // By then the cached answer is stale.
    const answered = performance.now();
    await until(() => performance.now() > answered + 2000);
    t.equal(await ask(50), 1);
    // Node's fetch accepts gzip, as browsers do.
    const stream = await fetch(address, { headers: { Accept: 'text/event-stream' } });
    await remove(server, 'scores');
    t.match(await stream.text(), 'unknown-feed', 'a stream ends with its last event');
    const url = `http://127.0.0.1:${ports.port}/feed/large`;
    const body = ' '.repeat(2 ** 20 + 1);
    const large = await fetch(url, { method: 'PUT', headers: authorized(), body });
    t.match(await large.json(), { type: 'urn:sprites:feed-too-large' });
    await cache.end();
    await server.stop();
  });

  t.test(`${kind} says itself where a client is`, { skip }, async (t) => {
    const seen = new Map();
    const server = createServer(({ url, headers }, response) => {
      seen.set(url, [headers['x-forwarded-for'], headers.forwarded]);
      response.end('{}');
    });
    const ports = { port: await freePort(), server: await listening(t, server) };
    await start(t, kind, ports);
    const paths = ['/feed/scores', '/feed/scores?grant=a', '/feeds?watch=a', '/join'];
    const headers = { 'X-Forwarded-For': '192.0.2.1', Forwarded: 'for=192.0.2.1' };
    for (const path of paths) await fetch(`http://127.0.0.1:${ports.port}${path}`, { headers });
    for (const path of paths) t.same(seen.get(path), ['127.0.0.1', undefined], path);
    server.close();
    server.closeAllConnections();
    // The cache has no answer to any of these.
    for (const path of paths) {
      const away = await fetch(`http://127.0.0.1:${ports.port}${path}&away`);
      t.match([away.status, away.headers.get('retry-after')], [503, '2'], path);
      t.equal((await away.json()).type, 'urn:sprites:draining');
    }
  });

  t.test(`${kind} is killed, slow, and gives what is old`, { skip }, async (t) => {
    const server = await startServer(t, { options });
    const ports = { port: await freePort(), server: server.port };
    let cache = await start(t, kind, ports);
    const proxy = await FaultProxy.start(t, ports.port);
    let version = 0;
    let last;
    const publish = async () => {
      version += 1;
      last = (await put(server, 'scores', version)).body;
    };
    await publish();
    const clients = startWatchers(t, proxy.port, ONE_KEY, 30);
    await untilAllHave(clients, version);

    const restart = async (how) => {
      await cache.end('SIGKILL');
      await publish();
      cache = await start(t, kind, ports, how);
    };
    const slow = () => {
      proxy.cut();
      proxy.delay = 700;
    };
    const quick = () => {
      proxy.cut();
      proxy.delay = 0;
    };
    const faults = { restart, slow, quick, blind: () => restart({ hasBadKey: true }) };
    for (const [name, fault] of Object.entries(faults)) {
      await publish();
      await fault();
      clients.push(...startWatchers(t, proxy.port, ONE_KEY, 5));
      for (let i = 0; i < 3; i += 1) await publish();
      await untilAllHave(clients, version);
      // The cached answer is stale now, and some clients come back with a value that they have kept.
      await publish();
      clients.push(
        ...startWatchers(t, proxy.port, ONE_KEY, 5, { cursor: last.cursor, value: version })
      );
      await untilAllHave(clients, version);
      t.pass(name);
    }
    t.same(backwardLists(clients), []);
    for (const { client } of clients) client.close();
    await cache.end();
    await server.stop();
  });
}
