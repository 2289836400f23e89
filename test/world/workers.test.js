import t from 'tap';

import { problemOf } from '../support/contract.js';
import { get, put, tokenFile } from '../support/feeds.js';
import { skip, startNats } from '../support/nats.js';
import { until } from '../support/until.js';
import { books, enterWorld, lookAt, sewn, throwAll, untilAll } from '../support/world-servers.js';

/** Two servers of one world whose connections workers hold, with a real nats-server. */

const WORKERS = 2;

function enter(t, nats, name) {
  const feeds = { 'publish-token-file': tokenFile(t) };
  const bounds = { 'throw-rate': 0, 'poll-rate': 0, lease: 300, drain: 30 };
  return enterWorld(t, nats, name, { workers: WORKERS, ...feeds, ...bounds });
}

/** Says what a client has got, by a poll that is given up. */
async function acknowledge({ server, id, seq }) {
  const { wire } = await server.park(id, `ack=${seq}`);
  await wire.destroy();
}

t.test('servers with workers in one world', { skip, timeout: 240_000 }, async (t) => {
  const nats = await startNats(t);
  const [a, b] = await Promise.all(['a', 'b'].map((name) => enter(t, nats, name)));
  const clients = [];
  for (const server of [a, b]) {
    for (let i = 0; i < 4; i++) clients.push({ server, id: await server.join(), seq: 0 });
  }
  /** Two that are neighbors over the seam. */
  let [before, after] = [];

  t.test('one torus: left of right is oneself, over seams too', async (t) => {
    await sewn([a, b]);
    const right = await throwAll(t, clients, 'right');
    const left = await throwAll(t, clients, 'left');
    for (const { id } of clients) t.equal(left.get(right.get(id)), id, 'left of right');
    after = clients.find((one) => {
      before = clients.find(({ id }) => id === right.get(one.id));
      return before.server === a && one.server === b;
    });
    const { thrown, lost, crossedIn } = await books(t, [a, b]);
    t.strictSame({ thrown, lost, crossedIn }, { thrown: 16, lost: 0, crossedIn: 8 });
    const [one] = await lookAt([a]);
    t.match(one, { workers: WORKERS, worldMember: 1, worldServers: 2, worldSeams: 4 });
  });

  t.test('a poll that a worker holds is answered by what lands over a seam', async (t) => {
    for (const [from, to, edge, by] of [
      [before, after, 'right', 'left'],
      [after, before, 'left', 'right']
    ]) {
      const { wire, answer } = await to.server.park(to.id, `ack=${to.seq}&hold=100`);
      const [{ parked }] = await lookAt([to.server]);
      t.equal(parked, 1);
      const thrown = await from.server.throw(from.id, edge, JSON.stringify({ edge }));
      t.strictSame([thrown.status, thrown.body], [202, { state: 'queued' }]);
      const { body } = await answer;
      t.match(body.sprites, [{ from: by, sprite: { edge } }]);
      to.seq = body.seq;
      await wire.destroy();
    }
  });

  t.test('a worker knows of the world what the main thread does', async (t) => {
    const targets = [`/poll/${after.id}?ack=0`, `/throw/${after.id}/left`];
    targets.push(...[`/place/${after.id}`, `/status/${after.id}`]);
    for (const target of targets) {
      const method = target.startsWith('/throw') ? 'POST' : 'GET';
      const answer = await a.ask(method, target);
      t.equal(problemOf(answer), 'misdirected', target);
      t.equal(answer.headers.location, `http://127.0.0.1:${b.port}${target}`);
    }
    const { body } = await a.ask('GET', '/status');
    t.match(body.world, { name: 'a', state: 'member', servers: [{ name: 'a' }, { name: 'b' }] });
    const counts = await until(async () => {
      const answer = await a.ask('GET', `/status/${before.id}`);
      return answer.body.world.clients === clients.length && answer.body;
    });
    t.match(counts, { clients: 4, world: { name: 'a', clients: 8 } });
    const [{ world }] = await lookAt([a]);
    t.match(world.servers, [{ clients: 4 }, { clients: 4 }]);
    const ready = await fetch(`http://127.0.0.1:${a.adminPort}/readyz`);
    t.equal(ready.status, 200);
  });

  t.test('what is published at a worker is at the workers of the other server', async (t) => {
    const { body } = await put(a, 'scores', { n: 1 });
    const answer = await until(async () => {
      const one = await get(b, 'scores');
      return one.status === 200 && one;
    });
    t.strictSame([answer.body.cursor, answer.body.value], [body.cursor, { n: 1 }]);
  });

  t.test('without the broker a worker says that the neighbor is busy', async (t) => {
    await nats.kill();
    await untilAll([a, b], (all) => all.every(({ world }) => world.state === 'cut-off'));
    const over = await before.server.throw(before.id, 'right');
    t.equal(problemOf(over), 'neighbor-busy');
    t.match(over.headers['retry-after'], /^\d+$/);
    await nats.start();
    await sewn([a, b]);
    t.equal((await before.server.throw(before.id, 'right', '{"healed":true}')).status, 202);
    const { body } = await after.server.poll(after.id, `ack=${after.seq}`);
    t.match(body.sprites, [{ from: 'left', sprite: { healed: true } }]);
    after.seq = body.seq;
  });

  t.test('a server that leaves in order hands over what waits', async (t) => {
    for (const client of clients) await acknowledge(client);
    b.child.kill('SIGSTOP');
    for (let n = 0; n < 20; n++) {
      const { body } = await a.throw(before.id, 'right', JSON.stringify({ n }));
      t.equal(body.state, 'queued');
    }
    await untilAll([a], ([one]) => one.outboxSprites === 20);
    a.child.kill('SIGTERM');
    await untilAll([a], ([{ world }]) => world.state === 'leaving');
    b.child.kill('SIGCONT');
    t.strictSame(await a.ended(), { code: 0, signal: null });
    const { body } = await b.poll(after.id, `ack=${after.seq}`);
    t.strictSame(
      body.sprites.map(({ sprite }) => sprite.n),
      Array.from({ length: 20 }, (_, n) => n)
    );
    after.seq = body.seq;
    await acknowledge(after);
    t.match((await lookAt([b]))[0], { waiting: 0, lost: 0 });
    await b.stop();
  });
});
