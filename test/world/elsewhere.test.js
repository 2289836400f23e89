import t from 'tap';

import { problemOf } from '../support/contract.js';
import { skip, startNats } from '../support/nats.js';
import { until } from '../support/until.js';
import { enterWorld, requestsOf, sewn } from '../support/world-servers.js';
import { tagOf, tagText } from '../../lib/base/tag.js';

/** A client that asks another server of its world than its own. */

const enter = (t, nats, name, more) => enterWorld(t, nats, name, { arena: 'hall', ...more });

async function askAll(server, id) {
  const answers = [];
  for (const request of requestsOf(id)) {
    answers.push({ target: request[1], answer: await server.ask(...request) });
  }
  return answers;
}

t.test(
  'a client that asks the wrong server is told the right one',
  { skip, timeout: 120_000 },
  async (t) => {
    const nats = await startNats(t);
    const [a, b, c, d] = await Promise.all([
      enter(t, nats, 'a'),
      enter(t, nats, 'b', { 'world-lease': 5 }), // so long it may be back
      enter(t, nats, 'c', { 'world-url': 'https://c.example' }),
      enter(t, nats, 'd', { workers: 2 })
    ]);
    await sewn([a, b, c, d]);
    const { world } = await a.inside();
    t.strictSame(
      world.servers.map(({ name, tag, url }) => [name, tag, url]),
      [
        ['a', 'ca9781', `http://127.0.0.1:${a.port}`],
        ['b', '3e23e8', `http://127.0.0.1:${b.port}`],
        ['c', '2e7d2c', 'https://c.example'],
        ['d', '18ac3e', `http://127.0.0.1:${d.port}`]
      ]
    );
    const urls = Object.fromEntries(world.servers.map(({ name, url }) => [name, url]));
    const ids = { a: await a.join(), b: await b.join(), c: await c.join(), d: await d.join() };
    for (const [name, id] of Object.entries(ids)) t.ok(id.startsWith(tagText(tagOf(name))), name);

    for (const server of [a, b, d]) {
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
          // What workers have counted is told a little later.
          const many = (before.refused.misdirected ?? 0) + answers.length;
          const after = await until(async () => {
            const now = await server.inside();
            return now.refused.misdirected >= many && now;
          });
          t.equal(after.refused.misdirected, many, 'counted');
          for (const what of ['clients', 'thrown', 'left', 'inputs', 'parked']) {
            t.equal(after[what], before[what], `${what} as before`);
          }
        });
      }
    }

    t.test('its own clients are served as ever', async (t) => {
      for (const server of [a, b, d]) {
        const id = ids[server.name];
        const handled = (await server.inside()).handled;
        t.equal((await server.throw(id, 'up')).status, 202);
        t.equal((await server.poll(id)).body.sprites.length, 1);
        t.equal((await server.ask('GET', `/place/${id}`)).status, 200);
        if (server === a) t.equal((await server.inside()).handled, handled, 'natively');
      }
    });

    t.test('an id that no server of the ring has', async (t) => {
      const nobody = [
        ids.a.replace(/^.{6}/, tagText(tagOf('nobody'))), // of no server
        ids.b.replace(/^(.{14})8/, '$14'), // of no server of Sprites
        'nonsense'
      ];
      for (const server of [a, b, d]) {
        const own = `${ids[server.name].slice(0, 24)}ffffffffffff`;
        for (const id of [...nobody, own]) {
          for (const { target, answer } of await askAll(server, id)) {
            const gone = target.endsWith('leave') || target.startsWith('/leave');
            const wanted = target.startsWith('/arena') ? 'unknown-player' : 'unknown-client';
            t.equal(problemOf(answer), gone ? undefined : wanted, `${target} of ${id}`);
            t.equal(answer.headers.location, undefined);
          }
        }
      }
    });

    t.test('Location comes from the ring alone, whatever a request says', async (t) => {
      const id = ids.c;
      const hostile = [
        ...[`/poll/${id}?next=//evil.example`, `/poll/${id}?%0d%0aSet-Cookie:%20x=1`],
        ...[`http://evil.example/poll/${id}`, `/throw/${id}/%0d%0aevil`, `/throw/${id}/..`],
        ...[`/arena/@evil.example/${id}`, `//evil.example/poll/${id}`]
      ];
      for (const server of [a, b, d]) {
        for (const target of hostile) {
          const method = target.includes('poll') ? 'GET' : 'POST';
          const headers = ['Forwarded: host=evil.example'];
          const answer = await server.ask(method, target, { headers });
          const { location } = answer.headers;
          t.notOk(location && !location.startsWith(`${urls.c}/`), `${target} → ${location}`);
          t.equal(answer.headers['set-cookie'], undefined);
        }
      }
    });

    t.test('requests sent ahead: the rest is answered in order', async (t) => {
      for (const server of [a, b, d]) {
        const wire = await server.wire();
        const ask = (id) => `GET /place/${id} HTTP/1.1\r\nHost: x\r\n\r\n`;
        const own = ask(ids[server.name]);
        wire.send(Buffer.from(own + ask(ids.c) + own));
        const statuses = [];
        for (let i = 0; i < 3; i++) statuses.push((await server.read(wire)).status);
        t.strictSame(statuses, [200, 421, 200], server.name);
      }
    });

    t.test('a server that stood still is out, and comes back in a new epoch', async (t) => {
      const { epoch } = (await b.inside()).world;
      b.child.kill('SIGSTOP');
      await sewn([a, c, d]);
      b.child.kill('SIGCONT');
      await sewn([a, b, c, d]);
      t.ok((await b.inside()).world.epoch > epoch);
    });

    t.test('the clients of a server that is gone are unknown', async (t) => {
      await b.kill();
      const soon = await a.poll(ids.b);
      t.equal(soon.status, 421, 'it may be back');
      await sewn([a, c, d]);
      const says = async (server, problem) => {
        const told = async () => {
          const answer = await server.poll(ids.b);
          return problemOf(answer) === problem && answer;
        };
        return until(told, `${problem} at ${server.name}`);
      };
      for (const server of [a, d]) await says(server, 'unknown-client');
      const again = await enter(t, nats, 'b');
      await sewn([a, again, c, d]);
      for (const server of [a, d]) {
        const { headers } = await says(server, 'misdirected');
        t.equal(headers.location, `http://127.0.0.1:${again.port}/poll/${ids.b}`, 'its new place');
      }
      t.equal(problemOf(await again.poll(ids.b)), 'unknown-client');
    });
  }
);
