import { spawnSync } from 'node:child_process';
import t from 'tap';

import { Crossing } from '../../lib/world/crossing.js';
import { MAX_NAMES } from '../../lib/world/entry.js';
import { Ring } from '../../lib/world/ring.js';
import { createLog } from '../../lib/base/log.js';
import { readOptions } from '../../lib/operator/options.js';
import { Pool, Unanswerable } from '../../lib/torus/pool.js';
import { until } from '../support/until.js';

/**
 * Sprites that cross between the pools of one process: lib/world/crossing.js with hand-made rings, and a function that
 * carries the frames. The simulation checks the laws (test/native/simulate.cc).
 */

const bytesOf = (sprite) => Buffer.from(JSON.stringify(sprite));

/** Makes servers of one ring; `sizes`: the number of clients by server name. */
function makeWorld(t, sizes, crossingOptions = {}) {
  const servers = new Map();
  const awake = setInterval(() => {}, 1000);
  const world = {
    servers,
    /** Carries a frame. Tests may replace it; by default the frame arrives soon. */
    carry: (from, to, frame) => setImmediate(() => servers.get(to)?.crossing.receive(from, frame)),
    /** Sets the ring of all servers at every server. */
    sew() {
      const names = [...servers.keys()];
      const rows = (one) => servers.get(one).crossing.describe().rows;
      for (const [name, { crossing, epoch }] of servers) {
        const ring = new Ring(names.map((one) => ({ name: one, rows: rows(one) })));
        const others = names.filter((one) => one !== name);
        const peers = new Map(others.map((one) => [one, {}]));
        const epochs = new Map([...servers].map(([one, its]) => [one, its.epoch]));
        crossing.update({ state: 'member', epoch, ring, peers, epochs });
      }
    },
    /** Returns the sums of all counts. Checks the law of sprites at each server. */
    sums() {
      const all = [...servers.values()].map(({ pool }) => pool.status());
      for (const one of all) {
        const { thrown, crossedIn, acked, waiting, lost, crossedOut } = one;
        if (thrown + crossedIn !== acked + waiting + lost + crossedOut) {
          throw new Error(`the books don't balance: ${JSON.stringify(one)}`);
        }
      }
      const sum = (name) => all.reduce((total, one) => total + one[name], 0);
      const names = ['thrown', 'acked', 'waiting', 'lost', 'crossedIn', 'crossedOut'];
      return Object.fromEntries(names.map((name) => [name, sum(name)]));
    }
  };
  let epoch = 100;
  for (const [name, size] of Object.entries(sizes)) {
    const pool = new Pool({ ...readOptions([]), throwRate: 0, capacity: 1000 });
    const send = (to, frame) => world.carry(name, to, Buffer.from(frame));
    const crossing = new Crossing({
      pool,
      name,
      send,
      log: createLog('silent'),
      ...crossingOptions
    });
    const ids = Array.from({ length: size }, () => pool.join().id);
    servers.set(name, { pool, crossing, ids, epoch: epoch++ });
  }
  t.teardown(() => {
    clearInterval(awake);
    for (const { pool, crossing } of servers.values()) {
      crossing.close();
      pool.close();
    }
  });
  world.sew();
  return world;
}

/** Polls. Resolves with the answer, which comes at once or later. */
function poll({ pool }, id) {
  return new Promise((resolve) => {
    const receive = (body) => resolve(JSON.parse(body));
    const { body } = pool.poll(id, {}, receive);
    if (body) receive(body);
  });
}

const throwSprite = ({ pool }, id, edge, sprite) => pool.throw(id, edge, -1, bytesOf(sprite));

t.test('without answers the outbox fills up, and then the neighbor is busy', async (t) => {
  const world = makeWorld(t, { a: 1, b: 1 }, { outboxBytes: 2000 });
  const [a, b] = [world.servers.get('a'), world.servers.get('b')];
  const { carry } = world;
  world.carry = () => {};
  let taken = 0;
  while (throwSprite(a, a.ids[0], 'right', { x: taken }) === 'queued') taken++;
  t.ok(taken > 10 && taken < 100, `${taken} wait`);
  t.equal(throwSprite(a, a.ids[0], 'right', { x: taken }), 'neighbor-busy');
  t.equal(throwSprite(a, a.ids[0], 'down', { x: taken }), 'queued', 'all else goes on');
  t.same(a.crossing.status().servers, [{ name: 'b', waiting: taken }]);
  world.carry = carry;
  await until(() => a.crossing.status().waiting === 0);
  t.equal(throwSprite(a, a.ids[0], 'right', { x: taken }), 'queued', 'it heals by itself');
  await until(() => b.pool.status().crossedIn === taken + 1);
});

t.test('a sprite for a server whose clients have left goes on around the ring', async (t) => {
  const world = makeWorld(t, { a: 1, b: 0, c: 0 });
  const [a, b] = [world.servers.get('a'), world.servers.get('b')];
  const { id } = b.pool.join();
  world.sew();
  b.pool.leave(id);
  t.equal(throwSprite(a, a.ids[0], 'right', { x: 2 }), 'queued');
  t.match(await poll(a, a.ids[0]), { sprites: [{ from: 'left', sprite: { x: 2 } }] });
  t.equal(world.sums().crossedIn, 3, 'by b and c home');
});

t.test('what can not be written is not sent', async (t) => {
  const world = makeWorld(t, { a: 1, b: 1 });
  const [a, b] = [world.servers.get('a'), world.servers.get('b')];
  const { carry } = world;
  const senders = [];
  world.carry = (from, ...what) => {
    senders.push(from);
    carry(from, ...what);
  };
  throwSprite(a, a.ids[0], 'right', { x: 1 });
  const refuse = () => {
    throw new Unanswerable('the disk is full');
  };
  for (const endTurn of [refuse, async () => refuse()]) {
    let turns = 0;
    b.pool.endTurn = () => {
      turns += 1;
      return endTurn();
    };
    await until(() => turns > 0, 'something has come from a');
    t.notOk(senders.includes('b'), 'nothing is acknowledged');
  }
  delete b.pool.endTurn;
  await until(() => a.crossing.status().waiting === 0);
});

t.test('a server that leaves hands over what waits', async (t) => {
  const world = makeWorld(t, { a: 1, b: 1 });
  const [a, b] = [world.servers.get('a'), world.servers.get('b')];
  for (let x = 0; x < 5; x++) throwSprite(a, a.ids[0], 'right', { x });
  const leavingView = {
    state: 'leaving',
    epoch: a.epoch,
    ring: new Ring([{ name: 'a', rows: 1 }])
  };
  a.crossing.update({ ...leavingView, peers: new Map(), epochs: new Map() });
  t.equal(throwSprite(a, a.ids[0], 'right', { x: 6 }), 'neighbor-busy');
  await a.crossing.handOver(60_000);
  t.equal(b.pool.status().crossedIn, 5);
  throwSprite(b, b.ids[0], 'left', { x: 1 });
  await until(() => b.crossing.status().refused['not-in-ring'] > 0, 'it takes nothing any more');
});

t.test('names that change: one is forgotten with which nothing is to be done', async (t) => {
  const errors = [];
  const log = { debug() {}, warn() {}, error: (...what) => errors.push(what) };
  const world = makeWorld(t, { a: 1, b: 1 }, { log });
  const [a, b] = [world.servers.get('a'), world.servers.get('b')];
  const cross = async (n) => {
    t.equal(throwSprite(b, b.ids[0], 'right', { n }), 'queued');
    await until(() => a.pool.status().crossedIn === n && b.crossing.status().waiting === 0);
  };
  await cross(1);
  const setRing = (names, drained) => {
    const ring = new Ring(['a', ...names].map((name) => ({ name, rows: 1 })));
    const peers = new Map(names.map((name) => [name, {}]));
    a.crossing.update({ state: 'member', ring, peers, epochs: new Map(), drained });
  };
  const knownNames = () => new Set(a.crossing.status().servers.map(({ name }) => name));
  const maxNames = Array.from({ length: MAX_NAMES - 1 }, (_, n) => `x${n}`);
  setRing(maxNames);
  t.equal(knownNames().size, MAX_NAMES);
  setRing([...maxNames, 'y']);
  t.notOk(knownNames().has('y'), 'b may come back with what was taken from it');
  t.match(errors, [[{ server: 'y' }, /no sprite goes to y or comes from it/]]);
  setRing([...maxNames, 'y'], ['b']);
  t.ok(knownNames().has('y') && !knownNames().has('b'), 'or has left with nothing in its outboxes');
  setRing(['z1', 'z2']);
  t.ok(knownNames().has('z1') && knownNames().has('z2') && knownNames().size === MAX_NAMES);
  t.equal(errors.length, 1);
  world.sew();
  await cross(2);
  t.match(await poll(a, a.ids[0]), { sprites: [{ sprite: { n: 1 } }, { sprite: { n: 2 } }] });
});

t.test('one that is closed is collected at any moment', async (t) => {
  // Code compiled by V8 may collect garbage without a context: then Node must not be called.
  const program = `
    import { loadAddon } from './lib/base/addon.js';
    import { readOptions } from './lib/operator/options.js';
    import { Pool } from './lib/torus/pool.js';
    const { World } = loadAddon();
    const pool = new Pool({ ...readOptions([]), capacity: 10 });
    let last = null;
    const fill = (count) => {
      for (let i = 0; i < count; i += 1) last = { i, before: null };
    };
    for (let i = 0; i < 50; i += 1) fill(20_000);
    for (let i = 0; i < 20; i += 1) {
      new World(pool.native, { outboxBytes: 1, doubt: 1, life: 1 }, () => {}).close();
      fill(100_000);
      await new Promise((go) => setImmediate(go));
    }
    process.exit(0);
  `;
  const { status, signal, stderr } = spawnSync(
    process.execPath,
    ['--max-semi-space-size=1', '--input-type=module', '--eval', program],
    { encoding: 'utf8' }
  );
  t.strictSame({ status, signal, stderr }, { status: 0, signal: null, stderr: '' });
});
