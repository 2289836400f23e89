import { join } from 'node:path';

import { jetstream } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import t from 'tap';

import { problemOf } from '../support/contract.js';
import { enterNats, skip, startNats } from '../support/nats.js';
import { temporary } from '../support/processes.js';
import { until, untilAnswer } from '../support/until.js';
import { enterWorld, requestsOf, untilRing, untilAll } from '../support/world-servers.js';
import { tagOf, tagText } from '../../lib/base/tag.js';

/** A client that asks another server of its world, while its own server is there, restarts in order, or is gone. */

/** Long enough that also on a busy machine no server drops out of the ring by itself, and each has time to leave. */
const BOUNDS = { 'world-lease': 60, 'throw-rate': 0, 'poll-rate': 0, lease: 600, drain: 20 };

/** Grace periods after the drain, in seconds: longer than any restart here, and short enough to end in the test. */
const LONG = { 'world-grace': 300 };
const SHORT = { 'world-grace': 1, drain: 4 };

/** Polls as the client of another server until that problem is the answer, and returns the answer. */
const untilProblem = (server, id, problem) =>
  untilAnswer(
    () => server.poll(id),
    (answer) => problemOf(answer) === problem,
    undefined,
    `${problem} at ${server.name}`
  );

async function askAll(server, id) {
  const answers = [];
  for (const request of requestsOf(id)) {
    answers.push({ target: request[1], answer: await server.ask(...request) });
  }
  return answers;
}

t.test(
  'a client that asks the wrong server is told the right one',
  { skip, timeout: 240_000 },
  async (t) => {
    const nats = await startNats(t);
    /** Starts a server that outlives the subtest that starts it. */
    const enter = (name, more) => enterWorld(t, nats, name, { arena: 'hall', ...BOUNDS, ...more });
    const [a, first, c, d] = await Promise.all([
      enter('a'),
      enter('b', { 'world-lease': 5 }), // it may come back within this time
      enter('c', { 'world-url': 'https://c.example' }),
      enter('d', { workers: 2 })
    ]);
    let b = first;
    await untilRing([a, b, c, d]);
    const { world } = await a.adminStatus();
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
          const before = await server.adminStatus();
          const answers = await askAll(server, id);
          for (const { target, answer } of answers) {
            t.equal(problemOf(answer), 'misdirected', target);
            t.equal(answer.headers.location, `${urls[name]}${target}`);
            t.equal(answer.headers['access-control-expose-headers'], 'Location, Retry-After');
          }
          // Workers report their counts a little later.
          const expectedCount = (before.refused.misdirected ?? 0) + answers.length;
          const after = await untilAnswer(
            () => server.adminStatus(),
            ({ refused }) => refused.misdirected >= expectedCount
          );
          t.equal(after.refused.misdirected, expectedCount, 'counted');
          for (const what of ['clients', 'thrown', 'left', 'inputs', 'parked']) {
            t.equal(after[what], before[what], `${what} as before`);
          }
        });
      }
    }

    t.test('its own clients are served as ever', async (t) => {
      for (const server of [a, b, d]) {
        const id = ids[server.name];
        const handled = (await server.adminStatus()).handled;
        t.equal((await server.throw(id, 'up')).status, 202);
        t.equal((await server.poll(id)).body.sprites.length, 1);
        t.equal((await server.ask('GET', `/place/${id}`)).status, 200);
        if (server === a) t.equal((await server.adminStatus()).handled, handled, 'natively');
      }
    });

    t.test('an id that no server of the ring has', async (t) => {
      const nobody = [
        ids.a.replace(/^.{6}/, tagText(tagOf('nobody'))), // the tag of no server
        ids.b.replace(/^(.{14})8/, '$14'), // not an id of Sprites
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
      const { epoch } = (await b.adminStatus()).world;
      b.child.kill('SIGSTOP');
      await untilRing([a, c, d]);
      b.child.kill('SIGCONT');
      await untilRing([a, b, c, d]);
      t.ok((await b.adminStatus()).world.epoch > epoch);
    });

    t.test('the clients of a server that is gone are unknown', async (t) => {
      await b.kill();
      const soon = await a.poll(ids.b);
      t.equal(soon.status, 421, 'it may be back');
      await untilRing([a, c, d]);
      for (const server of [a, d]) await untilProblem(server, ids.b, 'unknown-client');
      b = await enter('b');
      await untilRing([a, b, c, d]);
      for (const server of [a, d]) {
        const { headers } = await untilProblem(server, ids.b, 'misdirected');
        t.equal(headers.location, `http://127.0.0.1:${b.port}/poll/${ids.b}`, 'its new place');
      }
      t.equal(problemOf(await b.poll(ids.b)), 'unknown-client');
    });

    const stateOptions = { state: join(temporary(t), 'e') };
    let e, clientId, before;

    t.test('while a server restarts in order its clients are told to wait', async (t) => {
      e = await enter('e', { ...stateOptions, ...LONG });
      await untilRing([a, b, c, d, e]);
      await e.join();
      // The second client of a row is its own upper neighbor.
      clientId = await e.join();
      for (const n of [1, 2, 3]) t.equal((await e.throw(clientId, 'up', `{"n":${n}}`)).status, 202);
      before = (await e.ask('GET', `/place/${clientId}`)).body;
      e.child.kill('SIGTERM');
      await untilAll([a, c, d], (all) => all.every(({ world }) => world.restarting.includes('e')));
      t.strictSame(await e.ended(), { code: 0, signal: null });
      const kv = await new Kvm(jetstream(await enterNats(t, nats))).open('sprites-world');
      const entry = (await kv.get('e')).json();
      t.match(entry, { state: 'gone', empty: true }, 'nothing that it has sent comes again');
      for (const server of [a, c, d]) {
        const { refused: counted } = await server.adminStatus();
        for (const request of requestsOf(clientId)) {
          // Workers learn of the restart a little later.
          const answer = await untilAnswer(
            () => server.ask(...request),
            (said) => !['misdirected', 'unknown-client'].includes(problemOf(said))
          );
          t.equal(problemOf(answer), 'restarting', `${request} at ${server.name}`);
          t.equal(answer.headers['retry-after'], '5');
          t.equal(answer.headers.location, undefined);
        }
        const expectedCount = requestsOf(clientId).length + (counted.restarting ?? 0);
        await until(async () => (await server.adminStatus()).refused.restarting >= expectedCount);
      }
      await untilRing([a, b, c, d]);
    });

    t.test('a server that starts meanwhile says the same', async (t) => {
      const f = await enter('f');
      await untilRing([a, b, c, d, f]);
      t.equal(problemOf(await f.poll(clientId)), 'restarting');
      await f.stop();
      // The server has no state, and comes back without places.
      await untilRing([a, b, c, d]);
      t.strictSame((await a.adminStatus()).world.restarting, ['e']);
    });

    t.test('it is back: the same id, place and mailbox', async (t) => {
      e = await enter('e', { ...stateOptions, ...SHORT });
      await untilRing([a, b, c, d, e]);
      for (const server of [a, c, d]) {
        const { headers } = await untilProblem(server, clientId, 'misdirected');
        t.equal(headers.location, `http://127.0.0.1:${e.port}/poll/${clientId}`);
      }
      t.strictSame((await a.adminStatus()).world.restarting, []);
      const { row, column } = (await e.ask('GET', `/place/${clientId}`)).body;
      t.strictSame({ row, column }, { row: before.row, column: before.column });
      const { body } = await e.poll(clientId, 'hold=5');
      const got = body.sprites.map(({ sprite }) => sprite.n);
      t.strictSame(got, [1, 2, 3]);
    });

    t.test('its grace over, its clients are unknown', async (t) => {
      const began = performance.now();
      e.child.kill('SIGTERM');
      for (const server of [a, c, d]) {
        await until(async () => problemOf(await server.poll(clientId)) === 'unknown-client');
        t.ok(performance.now() - began >= 5000, server.name);
        t.equal((await server.ask('POST', `/leave/${clientId}`)).status, 204);
      }
      await e.ended();
      t.strictSame((await a.adminStatus()).world.restarting, []);
    });
  }
);
