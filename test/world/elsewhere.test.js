import t from 'tap';

import { problemOf } from '../support/contract.js';
import { skip, startNats } from '../support/nats.js';
import { startServer } from '../support/server.js';
import { sewn } from '../support/world-servers.js';
import { tagOf, tagText } from '../../lib/world/tag.js';

/** A client that asks another server of its world than its own, by each way in. */

const POSTS = new Set(['throw', 'leave', 'arena']);

async function enter(t, nats, name, { door = 'native', more = {} } = {}) {
  const world = { world: nats.url, name, 'world-lease': 3, arena: 'hall' };
  const server = await startServer(t, { door, options: { ...world, ...more } });
  return Object.assign(server, { name });
}

/** Every target that has an id in it. */
const targets = (id) => [
  ...[`/poll/${id}`, `/poll/${id}?ack=3&hold=5`, `/place/${id}`],
  ...[`/throw/${id}/left`, `/throw/${id}/up?n=7`, `/leave/${id}`],
  ...[`/arena/hall/${id}`, `/arena/hall/${id}?n=2`, `/arena/hall/${id}/leave`]
];

/** Asks for each of them, with a body where there may be one. */
async function askAll(server, id) {
  const answers = [];
  for (const target of targets(id)) {
    const method = POSTS.has(target.split('/')[1]) ? 'POST' : 'GET';
    const body = /^.(throw|arena)/.test(target) ? { body: '{"y":0}' } : {};
    answers.push({ target, answer: await server.ask(method, target, body) });
  }
  return answers;
}

t.test('who asks the wrong server is told the right one', { skip, timeout: 120_000 }, async (t) => {
  const nats = await startNats(t);
  const [a, b, c] = await Promise.all([
    enter(t, nats, 'a'),
    enter(t, nats, 'b', { door: 'node' }),
    enter(t, nats, 'c', { more: { 'world-url': 'https://c.example' } })
  ]);
  await sewn([a, b, c]);
  const [{ world }] = await Promise.all([a.inside()]);
  t.strictSame(
    world.servers.map(({ name, tag, url }) => [name, tag, url]),
    [
      ['a', 'ca9781', `http://127.0.0.1:${a.port}`],
      ['b', '3e23e8', `http://127.0.0.1:${b.port}`],
      ['c', '2e7d2c', 'https://c.example']
    ]
  );
  const urls = Object.fromEntries(world.servers.map(({ name, url }) => [name, url]));
  const ids = { a: await a.join(), b: await b.join(), c: await c.join() };
  for (const [name, id] of Object.entries(ids)) t.ok(id.startsWith(tagText(tagOf(name))), name);

  for (const server of [a, b]) {
    for (const [name, id] of Object.entries(ids)) {
      if (name === server.name) continue;
      t.test(`an id of ${name} at ${server.name}`, async (t) => {
        const before = await server.inside();
        const answers = await askAll(server, id);
        for (const { target, answer } of answers) {
          t.equal(problemOf(answer), 'misdirected', target);
          t.equal(answer.headers.location, `${urls[name]}${target}`);
          t.equal(answer.headers['access-control-expose-headers'], 'Location, Retry-After');
        }
        const after = await server.inside();
        t.equal(
          (after.refused.misdirected ?? 0) - (before.refused.misdirected ?? 0),
          answers.length,
          'counted'
        );
        for (const what of ['clients', 'thrown', 'left', 'inputs', 'parked']) {
          t.equal(after[what], before[what], `${what} as before`);
        }
      });
    }
  }

  t.test('its own clients are served as ever', async (t) => {
    for (const server of [a, b]) {
      const id = ids[server.name];
      const handedOver = (await server.inside()).handedOver;
      t.equal((await server.throw(id, 'up')).status, 202);
      t.equal((await server.poll(id)).body.sprites.length, 1);
      t.equal((await server.ask('GET', `/place/${id}`)).status, 200);
      if (server === a) t.equal((await server.inside()).handedOver, handedOver, 'natively');
    }
  });

  t.test('an id that no server of the ring has', async (t) => {
    const nobody = [
      ids.a.replace(/^.{6}/, tagText(tagOf('nobody'))), // of no server
      `${ids.a.slice(0, 24)}ffffffffffff`, // of the server itself
      ids.b.replace(/^(.{14})8/, '$14'), // of no server of Sprites
      'nonsense'
    ];
    for (const id of nobody) {
      for (const { target, answer } of await askAll(a, id)) {
        const gone = target.endsWith('leave') || target.startsWith('/leave');
        const wanted = target.startsWith('/arena') ? 'unknown-player' : 'unknown-client';
        t.equal(problemOf(answer), gone ? undefined : wanted, `${target} of ${id}`);
        t.equal(answer.headers.location, undefined);
      }
    }
  });

  t.test('Location comes from the ring alone, whatever a request says', async (t) => {
    const id = ids.b;
    const hostile = [
      ...[`/poll/${id}?next=//evil.example`, `/poll/${id}?%0d%0aSet-Cookie:%20x=1`],
      ...[`http://evil.example/poll/${id}`, `/throw/${id}/%0d%0aevil`, `/throw/${id}/..`],
      ...[`/arena/@evil.example/${id}`, `//evil.example/poll/${id}`]
    ];
    for (const target of hostile) {
      const method = target.includes('poll') ? 'GET' : 'POST';
      const answer = await a.ask(method, target, { headers: ['Forwarded: host=evil.example'] });
      const { location } = answer.headers;
      t.notOk(location && !location.startsWith(`${urls.b}/`), `${target} → ${location}`);
      t.equal(answer.headers['set-cookie'], undefined);
    }
  });

  t.test('requests sent ahead: the rest is answered in order', async (t) => {
    const wire = await a.wire();
    const ask = (id) => `GET /place/${id} HTTP/1.1\r\nHost: x\r\n\r\n`;
    wire.send(Buffer.from(ask(ids.a) + ask(ids.b) + ask(ids.a)));
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await a.read(wire)).status);
    t.strictSame(statuses, [200, 421, 200]);
  });

  t.test('the clients of a server that is gone are unknown', async (t) => {
    b.child.kill('SIGKILL');
    await b.ended();
    const soon = await a.poll(ids.b);
    t.equal(soon.status, 421, 'it may be back');
    await sewn([a, c]);
    t.equal(problemOf(await a.poll(ids.b)), 'unknown-client');
    const again = await enter(t, nats, 'b');
    await sewn([a, again, c]);
    const { headers } = await a.poll(ids.b);
    t.equal(headers.location, `http://127.0.0.1:${again.port}/poll/${ids.b}`, 'its new place');
    t.equal(problemOf(await again.poll(ids.b)), 'unknown-client');
  });
});
