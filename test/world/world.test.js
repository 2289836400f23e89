import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { problemOf } from '../support/contract.js';
import { get, put, tokenFile } from '../support/feeds.js';
import { skip, startNats } from '../support/nats.js';
import { until, untilAnswer } from '../support/until.js';
import {
  untilBalanced,
  enterWorld,
  logOf,
  readStatuses,
  untilRing,
  throwAll,
  readinessProblem,
  untilAll
} from '../support/world-servers.js';

/** Servers of one world: processes, sockets, a real nats-server; without and with workers. */

/** Leases in seconds: long enough on a busy machine, and longer for servers that the test stops. */
const LEASES = { a: 5, b: 60, c: 5, d: 60 };

t.test('servers of one world', { skip, timeout: 240_000 }, (t) => play(t, 0));
t.test('servers with workers', { skip, timeout: 240_000 }, (t) => play(t, 2));

async function play(t, workers) {
  const nats = await startNats(t, 'max_payload: 65536');
  const tokens = tokenFile(t);
  const enter = (name) => {
    const bounds = { 'throw-rate': 0, 'poll-rate': 0, lease: 300, 'max-sprite': '200K', drain: 30 };
    const ownOptions = { 'world-lease': LEASES[name], workers, 'publish-token-file': tokens };
    return enterWorld(t, nats, name, { ...bounds, ...ownOptions });
  };
  const [a, b, c] = await Promise.all(['a', 'b', 'c'].map(enter));
  const sizes = new Map(Object.entries({ a: 4, b: 1, c: 9 }));
  const clients = [];
  for (const server of [a, b, c]) {
    for (let i = 0; i < sizes.get(server.name); i++) {
      clients.push({ server, id: await server.join(), seq: 0 });
    }
  }
  const ofB = clients.find(({ server }) => server === b);
  /** The client of `a` whose right neighbor is b's client. */
  let before;

  t.test('one torus: left of right is oneself, over seams too', async (t) => {
    const all = await untilRing([a, b, c]);
    t.strictSame(
      all.map(({ rows, worldMember, worldServers, worldSeams }) => [
        ...[rows, worldMember, worldServers, worldSeams]
      ]),
      [
        [2, 1, 3, 4],
        [1, 1, 3, 2],
        [3, 1, 3, 4]
      ]
    );
    t.strictSame(all[0].world.seams.right, [
      { from: 0, to: 1, peer: 'b' },
      { from: 1, to: 2, peer: 'c' }
    ]);
    const right = await throwAll(t, clients, 'right');
    const left = await throwAll(t, clients, 'left');
    t.equal(new Set(right.values()).size, clients.length, 'each has a right neighbor of its own');
    for (const { id } of clients) t.equal(left.get(right.get(id)), id, 'left of right');
    before = clients.find(({ id }) => id === right.get(ofB.id));
    t.equal(before.server, a);
    const { thrown, lost, crossedIn } = await untilBalanced(t, [a, b, c]);
    // Per edge: three crossings in the first row, which runs through all servers, and two in the second.
    t.strictSame({ thrown, lost, crossedIn }, { thrown: 28, lost: 0, crossedIn: 10 });
    t.equal(await readinessProblem(a), undefined);
    const metrics = await (await fetch(`http://127.0.0.1:${a.adminPort}/metrics`)).text();
    for (const line of ['world_member 1', 'world_servers 3', 'world_seams 4', 'outbox_sprites 0']) {
      t.match(metrics, `\nsprites_${line}\n`);
    }
  });

  t.test('a parked poll is answered by what lands over a seam', async (t) => {
    for (const [from, to, edge, by] of [
      [before, ofB, 'right', 'left'],
      [ofB, before, 'left', 'right']
    ]) {
      const { wire, answer } = await to.server.park(to.id, `ack=${to.seq}&hold=100`);
      t.equal((await to.server.adminStatus()).parked, 1);
      const thrown = await from.server.throw(from.id, edge, JSON.stringify({ edge }));
      t.strictSame([thrown.status, thrown.body], [202, { state: 'queued' }]);
      const { body } = await answer;
      t.match(body.sprites, [{ from: by, sprite: { edge } }]);
      to.seq = body.seq;
      await wire.destroy();
    }
  });

  t.test(
    'a client is told of the world, and of what was published at another server',
    async (t) => {
      const servers = ['a', 'b', 'c'].map((name) => ({ name }));
      t.match((await a.ask('GET', '/status')).body.world, { name: 'a', state: 'member', servers });
      const { body: own } = await untilAnswer(
        () => a.ask('GET', `/status/${before.id}`),
        ({ body }) => body.world.clients === clients.length
      );
      t.equal(own.clients, sizes.get('a'));
      const [{ world }] = await readStatuses([a]);
      t.strictSame(new Map(world.servers.map((one) => [one.name, one.clients])), sizes);
      const { cursor } = (await put(a, 'scores', { n: 1 })).body;
      const { body } = await untilAnswer(
        () => get(b, 'scores'),
        ({ status }) => status === 200
      );
      t.strictSame([body.cursor, body.value], [cursor, { n: 1 }]);
    }
  );

  t.test('without the broker each goes on alone, a new one too', async (t) => {
    await nats.kill();
    const isCut = ({ world: { state, problem } }) =>
      state === 'cut-off' && problem === 'unreachable';
    const cut = await untilAll([a, c], (all) => all.every(isCut));
    for (const { worldServers } of cut)
      t.equal(worldServers, 3, 'no server sews without the others');
    const over = await a.throw(before.id, 'right');
    t.equal(problemOf(over), 'neighbor-busy', 'nothing is promised over a seam');
    t.match(over.headers['retry-after'], /^\d+$/);
    const within = await b.throw(ofB.id, 'up', '{"way":"up"}');
    t.equal(within.status, 202);
    const { body } = await b.poll(ofB.id, `ack=${ofB.seq}`);
    t.match(body.sprites, [{ from: 'down', sprite: { way: 'up' } }]);
    ofB.seq = body.seq;
    t.equal(await readinessProblem(a), undefined, 'it serves its own clients as ever');

    const d = await enter('d');
    const [{ world }] = await untilAll([d], ([one]) => one.world.problem === 'unreachable');
    t.match(world, { state: 'alone', servers: [{ name: 'd' }], seams: { left: [], right: [] } });
    t.match(logOf(d), /"problem":"unreachable"/, 'it says so');
    const id = await d.join();
    t.equal((await d.throw(id, 'right', '{"alone":true}')).status, 202);
    t.match((await d.poll(id)).body.sprites, [{ from: 'left', sprite: { alone: true } }]);
    await d.leave(id);
    await until(async () => (await readinessProblem(d)) === undefined, 'it is ready after a while');

    await nats.start();
    await untilRing([a, b, c, d]);
    t.equal((await a.throw(before.id, 'right', '{"healed":true}')).status, 202);
    const healed = (await b.poll(ofB.id, `ack=${ofB.seq}`)).body;
    t.match(healed.sprites, [{ from: 'left', sprite: { healed: true } }]);
    ofB.seq = healed.seq;

    await d.kill();
    const again = await enter('d');
    await untilAll([again], ([one]) => one.world.state === 'joining');
    t.equal(await readinessProblem(again), 'joining', 'while the one before it may still live');
    const { cursor } = (await put(again, 'late', 1)).body;
    await until(async () => (await get(a, 'late')).body.cursor === cursor, 'it is the world’s');
    await again.stop();
  });

  t.test('a server that leaves in order hands over what waits', async (t) => {
    b.child.kill('SIGSTOP');
    for (let n = 0; n < 20; n++) {
      const { body } = await a.throw(before.id, 'right', JSON.stringify({ n }), `n=${n}`);
      t.equal(body.state, 'queued');
    }
    await untilAll([a], ([one]) => one.outboxSprites === 20 && one.outboxBytes > 0);
    a.child.kill('SIGTERM');
    await untilAll([a], ([one]) => one.world.state === 'leaving');
    t.equal(await readinessProblem(a), 'draining');
    await untilAll([c], ([one]) => one.world.servers.every(({ name }) => name !== 'a'));
    // Checks for half a second: without the wait the server would be gone after a tenth of that.
    for (let looks = 0; looks < 10; looks++) {
      const [{ world, outboxSprites }] = await readStatuses([a]);
      t.strictSame([world.state, outboxSprites], ['leaving', 20], 'it waits');
      await pause(50);
    }
    b.child.kill('SIGCONT');
    t.strictSame(await a.ended(), { code: 0, signal: null });
    t.match(logOf(a), /"state":"gone","sprites":0,.*has left the world/);
    const { body } = await b.poll(ofB.id, `ack=${ofB.seq}`);
    t.strictSame(
      body.sprites.map(({ sprite }) => sprite.n),
      Array.from({ length: 20 }, (_, n) => n)
    );
    const [{ lost }] = await untilAll([b], ([one]) => one.world.seams.left[0]?.peer === 'c');
    t.equal(lost, 0);
  });

  t.test('what the NATS server does not take waits, and the log says why', async (t) => {
    const large = JSON.stringify({ large: 'x'.repeat(100_000) });
    t.equal((await b.throw(ofB.id, 'right', large)).status, 202);
    await until(() => logOf(b).includes('see its max_payload'));
    await untilAll([b], ([one]) => one.outboxSprites === 1);
    t.equal((await b.throw(ofB.id, 'up')).status, 202, 'all else goes on');
  });
}
