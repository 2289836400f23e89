import { join } from 'node:path';

import { jetstream } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import t from 'tap';

import { problemOf } from '../support/contract.js';
import { enterNats, skip, startNats } from '../support/nats.js';
import { temporary } from '../support/processes.js';
import { until } from '../support/until.js';
import { enterWorld, requestsOf, sewn, untilAll } from '../support/world-servers.js';

/**
 * A server of a world that restarts in order, with its state: whose clients ask the others meanwhile, are
 * told to wait, and have their places and what waits for them when it is back.
 */

/** Seconds after the drain; longer than any restart here takes, and over when the test wants it to be. */
const LONG = { 'world-grace': 300 };
const SHORT = { 'world-grace': 1, drain: 4 };

const enter = ({ t, nats }, name, more) => {
  // Whatever the machine does meanwhile, no server is sewn out, and each has the time to say that it leaves.
  const bounds = { 'world-lease': 60, 'throw-rate': 0, 'poll-rate': 0, lease: 600, drain: 20 };
  return enterWorld(t, nats, name, { arena: 'hall', ...bounds, ...more });
};

t.test('a server that restarts in order', { skip, timeout: 240_000 }, async (t) => {
  const where = { t, nats: await startNats(t) };
  const kept = { state: join(temporary(t), 'b') };
  const [a, c, d] = await Promise.all([
    enter(where, 'a'),
    enter(where, 'c'),
    enter(where, 'd', { workers: 2 })
  ]);
  let b = await enter(where, 'b', { ...kept, ...LONG });
  const others = [a, c, d];
  await sewn([a, b, c, d]);
  await b.join();
  // The second of a row: up of it is itself.
  const one = await b.join();
  for (const n of [1, 2, 3]) t.equal((await b.throw(one, 'up', `{"n":${n}}`)).status, 202);
  const before = (await b.ask('GET', `/place/${one}`)).body;

  t.test('while it is away its clients are told to wait', async (t) => {
    b.child.kill('SIGTERM');
    await untilAll(others, (all) => all.every(({ world }) => world.restarting.includes('b')));
    t.strictSame(await b.ended(), { code: 0, signal: null });
    const connection = await enterNats(t, where.nats);
    const kv = await new Kvm(jetstream(connection)).open('sprites-world');
    const said = (await kv.get('b')).json();
    t.match(said, { state: 'gone', empty: true }, 'nothing that it has sent comes again');
    for (const server of others) {
      const { refused: counted } = await server.inside();
      for (const request of requestsOf(one)) {
        const answer = await until(async () => {
          const said = await server.ask(...request);
          // Workers hear of it a little later.
          return problemOf(said) !== 'misdirected' && problemOf(said) !== 'unknown-client' && said;
        });
        t.equal(problemOf(answer), 'restarting', `${request} at ${server.name}`);
        t.equal(answer.headers['retry-after'], '5');
        t.equal(answer.headers.location, undefined);
      }
      const many = requestsOf(one).length + (counted.restarting ?? 0);
      await until(async () => (await server.inside()).refused.restarting >= many);
    }
    const { world } = await a.inside();
    t.strictSame(
      world.servers.map(({ name }) => name),
      ['a', 'c', 'd'],
      'sewn together without it'
    );
  });

  t.test('one that starts meanwhile says the same', async (t) => {
    const e = await enter(where, 'e');
    await sewn([a, c, d, e]);
    t.equal(problemOf(await e.poll(one)), 'restarting');
    await e.stop();
    // It has no state, and comes back without places.
    await sewn([a, c, d]);
    t.strictSame((await a.inside()).world.restarting, ['b']);
  });

  t.test('it is back: the same id, place and mailbox', async (t) => {
    b = await enter(where, 'b', { ...kept, ...SHORT });
    await sewn([a, b, c, d]);
    for (const server of others) {
      const { headers } = await until(async () => {
        const answer = await server.ask('GET', `/poll/${one}`);
        return problemOf(answer) === 'misdirected' && answer;
      });
      t.equal(headers.location, `http://127.0.0.1:${b.port}/poll/${one}`);
    }
    t.strictSame((await a.inside()).world.restarting, []);
    const { row, column } = (await b.ask('GET', `/place/${one}`)).body;
    t.strictSame({ row, column }, { row: before.row, column: before.column });
    const { body } = await b.poll(one, 'hold=5');
    const got = body.sprites.map(({ sprite }) => sprite.n);
    t.strictSame(got, [1, 2, 3]);
  });

  t.test('its grace over, its clients are unknown', async (t) => {
    const began = performance.now();
    b.child.kill('SIGTERM');
    for (const server of others) {
      await until(async () => problemOf(await server.poll(one)) === 'unknown-client');
      t.ok(performance.now() - began >= 5000, server.name);
      t.equal((await server.ask('POST', `/leave/${one}`)).status, 204);
    }
    await b.ended();
    t.strictSame((await a.inside()).world.restarting, []);
  });
});
