import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

import t from 'tap';

import { get, parkGet, put, tokenFile } from '../support/feeds.js';
import { request, Wire } from '../support/http.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** A restart with a state, while workers hold the polls and take the throws: nothing is lost. */

const CLIENTS = 12;

/** Sprites thrown before the server is told to end. */
const THROWN = 200;

const OPTIONS = {
  workers: 2,
  lease: 600,
  drain: 1,
  'throw-rate': 0,
  mailbox: 65536,
  'mailbox-bytes': '8M'
};

/** Throws on one connection, one after the other, until that ends; `promised` takes what got a 202. */
async function throwAway(server, id, promised) {
  const wire = await server.wire();
  for (let n = 1; ; n += 1) {
    wire.send(request('POST', `/throw/${id}/left?n=${n}`, { body: `{"uid":"${id}/${n}"}` }));
    let answer;
    try {
      answer = await server.read(wire);
    } catch {
      // The server has ended: whether it has taken this one is unknown.
      return wire.destroy();
    }
    if (answer.status === 202) promised.push(`${id}/${n}`);
  }
}

/** Polls, and acks what comes, until `over`; gives the names of what came. */
async function catchAll(server, id, over) {
  const wire = await server.wire();
  const uids = [];
  for (let ack = 0; !over();) {
    wire.send(request('GET', `/poll/${id}?ack=${ack}`));
    const { body } = await server.read(wire);
    for (const { sprite } of body.sprites) uids.push(sprite.uid);
    ack = body.seq;
  }
  await wire.destroy();
  return uids;
}

t.test('what was promised while the server ends comes after its restart', async (t) => {
  const options = {
    ...OPTIONS,
    state: join(t.testdir(), 'state'),
    'publish-token-file': tokenFile(t)
  };
  const one = await startServer(t, { options });
  const ids = [];
  for (let i = 0; i < CLIENTS; i += 1) ids.push(await one.join());
  await put(one, 'scores', { home: 1 });
  const watcher = await one.wire();
  watcher.send(request('GET', '/feed/scores'));
  const { cursor } = (await one.read(watcher)).body;
  // Half of them are parked once, and get what is thrown while they are; none acks it.
  const parked = [];
  for (const id of ids.slice(0, CLIENTS / 2)) parked.push(await one.park(id));
  const promised = [];
  const throwing = ids.map((id) => throwAway(one, id, promised));
  await one.until(({ thrown }) => thrown > THROWN);
  one.child.kill('SIGTERM');
  await Promise.all(throwing);
  for (const { answer } of parked) t.equal((await answer).status, 200, 'answered');
  t.strictSame(await one.ended(), { code: 0, signal: null });

  const two = await startServer(t, { options });
  const { clients, thrown, acked, waiting, lost } = await two.status();
  t.equal(clients, CLIENTS, 'every client has its place');
  t.equal(acked + lost, 0);
  t.ok(thrown >= promised.length, `${thrown} thrown, ${promised.length} promised`);
  t.equal(waiting, thrown);
  let over = false;
  const catching = ids.map((id) => catchAll(two, id, () => over));
  await two.until((status) => status.waiting === 0);
  over = true;
  for (const id of ids) await two.leave(id);
  const uids = (await Promise.all(catching)).flat();
  const came = new Set(uids);
  t.equal(came.size, uids.length, 'none came twice');
  t.strictSame(
    promised.filter((uid) => !came.has(uid)),
    [],
    'none is missing'
  );
  const { body } = await get(two, 'scores', `after=${cursor}&hold=5`);
  t.strictSame(body, { feed: 'scores', cursor }, 'a feed keeps its version');
  await two.stop();
});

t.test('feeds that are watched in workers show what the main thread has', async (t) => {
  const options = { workers: 2, drain: 0, 'publish-token-file': tokenFile(t) };
  const server = await startServer(t, { options });
  const value = Array.from({ length: 200 }, (_, i) => `line ${i}`);
  await put(server, 'large', value);
  // Enough that each worker has a first one that asks for it compressed.
  for (let i = 0; i < 12; i += 1) {
    const wire = await server.wire();
    wire.send(request('GET', '/feed/large', { headers: { 'Accept-Encoding': 'gzip' } }));
    const { headers, bytes } = await server.read(wire, { gzip: true });
    await wire.destroy();
    t.equal(headers['content-encoding'], 'gzip');
    t.strictSame(JSON.parse(gunzipSync(bytes)).value, value);
  }

  const { cursor } = (await put(server, 'watched', 1)).body;
  const watchers = await Promise.all(
    Array.from({ length: 3 }, () => parkGet(server, 'watched', `after=${cursor}`))
  );
  const page = await Wire.open(server.adminPort, '127.0.0.1');
  await until(async () => {
    const { body } = await page.send(request('GET', '/overview')).read();
    const feeds = body.feeds.map(({ key, watching }) => `${key}: ${watching}`);
    return feeds.join() === 'watched: 3,large: 0';
  });
  for (const wire of [page, ...watchers.map((one) => one.wire)]) await wire.destroy();
  await server.stop();
});
