import t from 'tap';

import {
  MAX_NAMES,
  MAX_SERVERS,
  NAME,
  nextEpoch,
  readEntry,
  VERSION
} from '../../lib/world/entry.js';
import { Leases } from '../../lib/world/leases.js';
import { Membership } from '../../lib/world/membership.js';
import { WorldError } from '../../lib/world/world-error.js';
import { Random } from '../fuzz/random.js';
import { VirtualTime } from '../support/virtual-time.js';
import { leadsTo, silent, VirtualBroker, VirtualProcess } from '../support/world-virtual.js';

/** Memberships in virtual time: minutes of a world in milliseconds, and the same every time. */

const LEASE = 10_000;

/** Allowed time beyond the lease, in milliseconds. */
const GRACE = 2000;

class World {
  constructor(how = {}) {
    this.time = new VirtualTime(1);
    this.broker = new VirtualBroker({ time: this.time, ...how });
    this.servers = new Map();
  }

  /** Starts a server; `as`: its key here, when several have the same name. */
  add(name, { as = name, rows = 10, ...how } = {}) {
    const process = new VirtualProcess(this.broker);
    const server = { name, process, views: [], rows };
    server.membership = new Membership({
      name,
      lease: LEASE,
      store: process.store,
      clock: process.clock,
      describe: () => ({ rows: server.rows }),
      onChange(membership) {
        const view = membership.view();
        // A server asks its own seams of each view, as here.
        view.ring.seams(name);
        server.views.push(view);
      },
      log: silent,
      ...how
    });
    server.membership.start();
    this.servers.set(as, server);
    return server;
  }

  async startRing(names, how) {
    for (const name of names) this.add(name, how);
    await this.untilRing(names);
  }

  /** @returns {Promise<number>} milliseconds until each of these sees exactly these as the ring */
  untilRing(names, most) {
    const all = [...names];
    return this.until(() => all.every((name) => this.ring(name) === all.join('')), most);
  }

  /** @returns {number[]} */
  epochs() {
    return [...'abc'].map((name) => this.view(name).epoch);
  }

  get(as) {
    return this.servers.get(as);
  }

  state(as) {
    return this.get(as).membership.state;
  }

  view(as) {
    return this.get(as).membership.view();
  }

  ring(as) {
    return this.view(as)
      .ring.members.map(({ name }) => name)
      .join('');
  }

  /** Returns the last view of a server. */
  lastView(as) {
    return this.get(as).views.at(-1);
  }

  run(ms) {
    return this.time.run(ms);
  }

  /** @returns {Promise<number>} milliseconds until it holds */
  async until(condition, maxMs = 60_000) {
    const began = this.time.now();
    await this.time.run(maxMs, condition);
    if (!condition()) throw new Error(`not within ${maxMs} ms: ${condition}`);
    return this.time.now() - began;
  }
}

/** Returns a world whose servers are one ring; `how`: options of each server. */
async function startedWorld(names, how) {
  const world = new World();
  await world.startRing([...names], how);
  return world;
}

t.test('servers join, and all have the same ring', async (t) => {
  const world = new World();
  world.add('b');
  await world.until(() => world.state('b') === 'member');
  t.equal(world.ring('b'), 'b');
  world.add('a', { rows: 3 });
  world.add('c');
  const took = await world.untilRing('abc');
  t.ok(took < GRACE, `${took} ms`);
  for (const as of ['a', 'b', 'c']) {
    t.equal(world.state(as), 'member');
    t.equal(leadsTo(world.lastView(as).ring, 'right', 'b', 5), 'c');
    t.equal(leadsTo(world.lastView(as).ring, 'right', 'c', 5), 'b', 'a has no row 5');
    t.equal(world.lastView(as).peers.size, 2);
  }
  world.get('a').rows = 6;
  await world.until(() => leadsTo(world.lastView('c').ring, 'right', 'c', 5) === 'a', LEASE);
  t.equal(world.lastView('b').peers.get('a').epoch, world.view('a').epoch, 'its frames are good');
});

t.test(
  'a minute of quiet: no server is told anything, and a lease is renewed four times',
  async (t) => {
    const world = await startedWorld('abc');
    await world.run(1000);
    const views = [...world.servers.values()].map((server) => server.views.length);
    const { writes } = world.broker.counts;
    await world.run(60_000);
    t.strictSame(
      [...world.servers.values()].map((server) => server.views.length),
      views
    );
    const renewals = (world.broker.counts.writes - writes) / 3 / (60_000 / LEASE);
    t.ok(renewals > 3 && renewals <= 4.1, `${renewals} in a lease`);
    t.equal(world.broker.counts.conflicts, 0);
  }
);

t.test('a killed one is out after its lease and not before, at every server', async (t) => {
  for (const names of ['ab', 'abcde']) {
    const world = await startedWorld(names);
    await world.run(1234);
    world.get('b').process.kill();
    await world.run(LEASE - LEASE / 4 - 100);
    const left = [...names].filter((name) => name !== 'b');
    for (const name of left) t.equal(world.ring(name), names, 'not before');
    const took = await world.until(() =>
      left.every((name) => world.lastView(name).ring.members.length === left.length)
    );
    t.ok(took < LEASE / 4 + GRACE, `${took} ms after that`);
    t.equal(world.broker.entries.get('b').entry.state, 'lost');
    t.equal(world.broker.counts.conflicts, 0, 'one took it out, and no other tried');
  }
});

t.test('cut off from the broker: it knows before the others sew without it', async (t) => {
  const world = await startedWorld('abc');
  const { epoch } = world.view('b');
  world.get('b').process.cutOff();
  await world.until(() => world.lastView('b').state === 'cut-off', LEASE);
  t.equal(world.ring('a'), 'abc', 'the others wait longer');
  t.equal(world.ring('b'), 'abc', 'its seams stand, closed');
  t.equal(world.view('b').problem.code, 'unreachable');
  await world.untilRing('ac', 3000);
  await world.run(LEASE);
  t.equal(world.state('b'), 'cut-off');
  t.notOk(world.view('a').peers.has('b'), 'a frame of it is refused');
  world.get('b').process.reconnect();
  const took = await world.untilRing('abc');
  t.ok(took < GRACE, `${took} ms`);
  t.ok(world.view('b').epoch > epoch, 'the old epoch is over');
  t.equal(world.view('a').peers.get('b').epoch, world.view('b').epoch);
});

t.test('a server that is cut off by a broker that hangs is told as the lease ends', async (t) => {
  const world = await startedWorld('ab');
  world.broker.hang();
  // Without any other event at that time.
  while (world.state('a') === 'member') await world.run(1);
  await world.run(3);
  t.equal(world.lastView('a').state, 'cut-off');
});

t.test('stopped and continued: it finds itself taken out, and takes no other out', async (t) => {
  const world = await startedWorld('abc');
  const epochs = world.epochs();
  world.get('b').process.stop();
  await world.untilRing('ac');
  await world.run(3 * LEASE);
  world.get('b').process.continue();
  t.not(world.state('b'), 'member', 'not for a moment');
  const took = await world.untilRing('abc');
  t.ok(took < GRACE, `${took} ms`);
  await world.run(2 * LEASE);
  t.equal(world.view('a').epoch, epochs[0], 'the others were left alone');
  t.equal(world.view('c').epoch, epochs[2]);
  t.ok(world.view('b').epoch > epochs[1]);
});

t.test('the broker away, or hanging, for less than a lease, and for much longer', async (t) => {
  for (const [away, how] of [
    [LEASE / 2, 'stop'],
    [5 * LEASE, 'stop'],
    [LEASE / 2, 'hang'],
    [5 * LEASE, 'hang']
  ]) {
    const random = new Random(away);
    const world = new World({ delay: () => 1 + random.below(200) });
    await world.startRing(['a', 'b', 'c']);
    const epochs = world.epochs();
    world.broker[how]();
    await world.run(away);
    const expected = away < LEASE ? 'member' : 'cut-off';
    for (const name of 'abc') t.equal(world.state(name), expected);
    for (const name of 'abc') t.equal(world.ring(name), 'abc', 'no server sews without the broker');
    world.broker.start();
    await world.until(() => [...'abc'].every((name) => world.state(name) === 'member'), GRACE);
    await world.run(2 * LEASE);
    t.strictSame(world.epochs(), epochs, 'no server was lost by it');
  }
});

t.test('all cut off for long, and back one after the other: none takes another out', async (t) => {
  const world = await startedWorld('abc');
  const epochs = world.epochs();
  for (const name of 'abc') world.get(name).process.cutOff();
  await world.run(3 * LEASE);
  for (const name of 'abc') {
    world.get(name).process.reconnect();
    await world.until(() => world.state(name) === 'member', GRACE);
  }
  await world.run(2 * LEASE);
  t.strictSame(world.epochs(), epochs);
});

t.test('a broker that has forgotten everything: the same ring, no epoch used twice', async (t) => {
  const world = await startedWorld('abc');
  const epochs = world.epochs();
  world.broker.stop({ forgets: true });
  await world.run(1000);
  world.broker.start();
  await world.until(() => world.broker.entries.size === 3 && world.ring('a') === 'abc');
  await world.untilRing('abc');
  for (const [place, name] of [...'abc'].entries()) {
    t.ok(world.view(name).epoch > epochs[place]);
  }
});

t.test('a slow broker', async (t) => {
  const random = new Random(3);
  const world = new World({ delay: () => 50 + random.below(400) });
  await world.startRing(['a', 'b', 'c']);
  const epochs = world.epochs();
  await world.run(20 * LEASE);
  t.strictSame(world.epochs(), epochs);
});

t.test('a name is taken once', async (t) => {
  const world = await startedWorld('ab');
  const { epoch } = world.view('b');
  world.add('b', { as: 'twin' });
  await world.until(() => world.view('twin').problem?.code === 'name-taken', LEASE);
  t.equal(world.state('twin'), 'alone');
  t.match(world.view('twin').problem.message, /name b .*--name/);
  await world.run(5 * LEASE);
  t.equal(world.state('twin'), 'alone');
  t.equal(world.view('b').epoch, epoch, 'a server that has it keeps it');
  // The first server stops for longer than its lease: the other one gets the name, and keeps it.
  world.get('b').process.stop();
  await world.until(() => world.state('twin') === 'member', 2 * LEASE);
  world.get('b').process.continue();
  await world.until(() => world.view('b').problem?.code === 'name-taken', LEASE);
  await world.run(5 * LEASE);
  t.equal(world.state('b'), 'alone');
  t.equal(world.state('twin'), 'member');
  t.ok(world.view('twin').epoch > epoch);
  // The others refuse the frames of an older process than the newest that they know.
  world.get('twin').membership.leave();
  await world.run(2 * LEASE);
  t.strictSame([world.state('twin'), world.state('b')], ['gone', 'alone']);
  t.match(world.view('b').problem, { code: 'name-taken', message: /restart/ });
  world.add('b', { as: 'restarted' });
  await world.until(() => world.state('restarted') === 'member', LEASE);
});

t.test(
  'two of one state, which is a mistake: the newer has the name, and it is for good',
  async (t) => {
    const world = new World();
    world.add('a', { instance: 'copied' });
    await world.until(() => world.state('a') === 'member');
    world.add('a', { as: 'copy', instance: 'copied' });
    await world.until(() => world.state('copy') === 'member', 1000);
    await world.until(() => world.view('a').problem?.code === 'name-taken', LEASE);
    const { epoch } = world.view('copy');
    await world.run(5 * LEASE);
    t.strictSame([world.state('a'), world.state('copy')], ['alone', 'member']);
    t.equal(world.view('copy').epoch, epoch);
  }
);

t.test(
  'a broker that hangs while a name is taken: it is no other server that has it',
  async (t) => {
    const world = new World();
    world.add('a');
    await world.until(() => world.broker.counts.requests === 2);
    world.broker.hang();
    await world.until(() => world.broker.counts.requests === 3, LEASE / 4);
    await world.run(10);
    world.broker.start();
    const took = await world.until(() => world.state('a') === 'member');
    t.ok(took < GRACE, `${took} ms`);
  }
);

t.test('two that start at once with one name', async (t) => {
  const world = new World();
  world.add('a', { as: 'one' });
  world.add('a', { as: 'two' });
  await world.run(2 * LEASE);
  t.strictSame(
    [world.state('one'), world.state('two')].toSorted(),
    ['alone', 'member'],
    'one has it'
  );
});

t.test(
  'after a crash the name is free when the lease has ended, with the state at once',
  async (t) => {
    const world = new World();
    world.add('a', { instance: 'state-of-a' });
    world.add('b');
    await world.untilRing('ab');
    const { epoch } = world.view('a');
    world.get('a').process.kill();
    world.get('b').process.kill();
    world.add('a', { as: 'a again', instance: 'state-of-a' });
    await world.until(() => world.state('a again') === 'member', 1000);
    t.ok(world.view('a again').epoch > epoch);
    world.add('b', { as: 'b again' });
    await world.run(LEASE / 2);
    t.equal(world.state('b again'), 'joining');
    const took = await world.until(() => world.state('b again') === 'member');
    t.ok(took < LEASE / 2 + GRACE, `${took} ms after that`);
  }
);

t.test('leaving in order: out at once, and hands over with its lease renewed', async (t) => {
  const world = await startedWorld('abc', { stopSending: () => true });
  const seen = [];
  const left = world.get('b').membership.leave(async (view) => {
    seen.push([view.state, [...view.peers.keys()].toSorted().join('')]);
    await world.time.pause(3 * LEASE);
    seen.push(world.ring('a'), world.view('a').peers.has('b'), world.view('a').drained.length);
  });
  await world.untilRing('ac', 1000);
  await world.until(() => world.broker.entries.get('b').entry.state === 'gone', 5 * LEASE);
  await world.run(2000);
  await left;
  t.strictSame(seen, [['leaving', 'ac'], 'ac', true, 0], 'its frames are good until it is gone');
  t.notOk(world.view('a').peers.has('b'));
  t.strictSame(world.view('a').drained, ['b'], 'with nothing in its outboxes');
  // Its name is free at once.
  world.add('b', { as: 'again' });
  await world.until(() => world.ring('a') === 'abc', 1000);
  t.strictSame(world.view('a').drained, []);
});

/** Grace period of a server that leaves in order with a state, in milliseconds. */
const RETURN_GRACE = 60_000;

t.test('a server that comes back has its places: from its leaving on, for its grace', async (t) => {
  const world = await startedWorld('abc', { grace: RETURN_GRACE });
  const names = ({ redirectTargets }) =>
    redirectTargets
      .map(({ name }) => name)
      .toSorted()
      .join('');
  const seen = (as) => [names(world.lastView(as)), world.lastView(as).restarting.join('')];
  t.strictSame(seen('a'), ['bc', '']);
  const left = world.get('b').membership.leave(() => world.time.pause(2 * LEASE));
  await world.until(() => world.state('b') === 'leaving' && world.ring('a') === 'ac', 1000);
  t.strictSame(seen('a'), ['c', 'b'], 'while it drains');
  await world.until(() => world.broker.entries.get('b').entry.state === 'gone', 3 * LEASE);
  await world.run(1000);
  await left;
  t.strictSame(seen('c'), ['a', 'b']);
  t.equal(world.ring('c'), 'ac', 'sewn together without it');
  world.add('d');
  await world.until(() => world.state('d') === 'member', GRACE);
  t.strictSame(seen('d'), ['ac', 'b'], 'a server that comes later waits, too');
  const again = world.add('b', {
    as: 'again',
    grace: RETURN_GRACE,
    prepare: () => world.time.pause(3000)
  });
  await world.until(() => world.state('again') === 'joining', GRACE);
  await world.run(500);
  t.strictSame(seen('a'), ['bcd', ''], 'its clients are sent to it before it is one of the ring');
  t.strictSame(seen('again'), ['acd', '']);
  await world.until(() => world.state('again') === 'member', LEASE);
  await world.run(2 * RETURN_GRACE);
  t.strictSame(seen('a'), ['bcd', '']);

  const began = world.time.now();
  await Promise.all([again.membership.leave(), world.run(1000)]);
  await world.until(() => world.lastView('a').restarting.length === 0, 2 * RETURN_GRACE);
  const waited = world.time.now() - began;
  t.ok(waited >= RETURN_GRACE && waited < RETURN_GRACE + 1000, `${waited} ms`);
  t.strictSame(seen('a'), ['cd', '']);
});

t.test('a server that does not come back is not waited for', async (t) => {
  const world = await startedWorld('ab');
  world.add('c', { grace: RETURN_GRACE });
  await world.until(() => world.ring('a') === 'abc');
  world.get('c').process.kill();
  await world.until(() => world.ring('a') === 'ab', 2 * LEASE);
  t.strictSame(world.lastView('a').restarting, [], 'one that is lost');
  await Promise.all([world.get('b').membership.leave(), world.run(1000)]);
  t.strictSame(world.lastView('a').restarting, [], 'one without a state');
  t.strictSame(world.lastView('a').redirectTargets, []);
});

t.test('a server that dies while it leaves in order is waited for as well', async (t) => {
  const world = await startedWorld('ab', { grace: RETURN_GRACE });
  world.get('b').membership.leave(() => new Promise(() => {}));
  await world.until(() => world.lastView('a').restarting.includes('b'), 1000);
  const began = world.time.now();
  world.get('b').process.kill();
  await world.until(() => world.broker.entries.get('b').entry.state === 'lost', 2 * LEASE);
  await world.run(100);
  t.strictSame(world.lastView('a').restarting, ['b']);
  await world.until(() => world.lastView('a').restarting.length === 0, 2 * RETURN_GRACE);
  t.ok(world.time.now() - began < RETURN_GRACE + 1000, 'from its leaving on');
});

t.test('a store that takes nothing is a problem until it does, and said once', async (t) => {
  const world = new World();
  const problems = [];
  const states = [];
  const info = ({ state }) => states.push(state);
  world.add('a', { log: { ...silent, info, warn: ({ problem }) => problems.push(problem) } });
  await world.until(() => world.state('a') === 'member', GRACE);
  const fillStore = () =>
    t.capture(world.broker, 'write', () => {
      throw new WorldError('unreachable', 'insufficient resources');
    });
  const fullStore = fillStore();
  await world.until(() => problems.length > 0, LEASE);
  const seen = new Set();
  for (let at = 0; at < LEASE; at += 100) {
    seen.add(world.view('a').problem?.code);
    await world.run(100);
  }
  t.strictSame([...seen, ...problems], ['unreachable', 'unreachable']);
  fullStore.restore();
  await world.until(() => world.view('a').problem === undefined, 1000);
  await world.run(LEASE);
  t.equal(states.at(-1), 'member');
  states.length = 0;
  const fullAgain = fillStore();
  await world.until(() => problems.length > 1, LEASE);
  fullAgain.restore();
  await world.run(LEASE);
  t.strictSame(states, ['member'], 'its end is said where the server has stayed a member');
});

t.test('leaving without the broker ends all the same', async (t) => {
  const world = await startedWorld('ab');
  world.broker.stop();
  let hasHandedOver = false;
  let done = false;
  world
    .get('a')
    .membership.leave(async () => (hasHandedOver = true))
    .then(() => (done = true));
  await world.until(() => done, LEASE);
  t.notOk(hasHandedOver);
});

t.test('leaving has a time, after which it is gone whatever still waits', async (t) => {
  const world = await startedWorld('ab');
  let done = false;
  world
    .get('a')
    .membership.leave((_, left) => world.time.pause(left), LEASE / 4)
    .then(() => (done = true));
  await world.until(() => done, LEASE / 2);
  t.equal(world.broker.entries.get('a').entry.state, 'gone');
});

t.test('one that stands still as it leaves hands over what waits', async (t) => {
  const world = await startedWorld('ab');
  const { process, membership } = world.get('a');
  let seen;
  membership.leave(async ({ state }) => (seen = state), 3 * LEASE);
  process.stop();
  await world.run(LEASE / 2);
  process.continue();
  await world.until(() => seen, 1000);
  t.equal(seen, 'leaving');
});

t.test('ends at once, whatever the store is still asked', async (t) => {
  let isClosed = false;
  let refuse;
  const answer = new Promise((_, reject) => (refuse = reject));
  const store = {
    watch() {},
    open: () => answer,
    close: async () => {
      isClosed = true;
      refuse(new Error('closed'));
    }
  };
  const describe = () => ({ rows: 3 });
  const membership = new Membership({ name: 'a', lease: LEASE, store, describe, log: silent });
  membership.start();
  await membership.close();
  t.ok(isClosed);
});

t.test('starts without a broker, alone, and joins when there is one', async (t) => {
  const world = new World();
  world.broker.stop();
  world.add('a');
  await world.run(LEASE);
  t.equal(world.state('a'), 'alone');
  t.equal(world.lastView('a').problem.code, 'unreachable');
  t.equal(world.ring('a'), 'a');
  world.broker.start();
  await world.until(() => world.state('a') === 'member', GRACE);
  t.equal(world.lastView('a').problem, undefined);
});

t.test('what comes before joining is done first, and again after being out', async (t) => {
  const world = await startedWorld('ab');
  let prepared = 0;
  let finish;
  world.add('c', {
    prepare() {
      prepared++;
      if (prepared === 2) return Promise.reject(new Error('feeds'));
      return new Promise((resolve) => (finish = resolve));
    }
  });
  await world.run(3 * LEASE);
  t.equal(world.state('c'), 'joining', 'its lease is renewed meanwhile');
  t.equal(world.ring('a'), 'ab');
  t.ok(world.view('a').peers.has('c'));
  finish();
  await world.until(() => world.ring('a') === 'abc', 1000);
  t.equal(prepared, 1);
  world.get('c').process.stop();
  await world.until(() => world.ring('a') === 'ab');
  world.get('c').process.continue();
  await world.until(() => prepared === 3, 5000);
  t.equal(world.ring('a'), 'ab', 'the second try has failed');
  finish();
  await world.until(() => world.ring('a') === 'abc', 1000);
});

t.test('another version is refused by name, the first one stays', async (t) => {
  const world = await startedWorld('ab');
  world.add('z', { version: VERSION + 1 });
  await world.until(() => world.state('z') === 'alone' && world.view('z').problem, LEASE);
  t.match(world.view('z').problem, {
    code: 'other-version',
    message: new RegExp(`^a .*version ${VERSION} .*version ${VERSION + 1}`)
  });
  await world.run(2 * LEASE);
  for (const name of 'ab') t.equal(world.ring(name), 'ab');
  t.equal(world.state('z'), 'alone');
  const { redirectTargets, peers } = world.view('z');
  t.strictSame(
    [redirectTargets, peers.size],
    [[], 0],
    'it sends no client there, and takes no frame'
  );
  // When the last old server has gone, the new server is the world.
  for (const name of 'ab') world.get(name).process.kill();
  await world.until(() => world.state('z') === 'member', 3 * LEASE);
});

t.test('two versions that start at once: one of them is the world', async (t) => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const random = new Random(seed);
    const world = new World({ delay: () => 1 + random.below(40) });
    world.add('a', { version: VERSION });
    world.add('b', { version: VERSION + 1 });
    await world.run(2 * LEASE);
    t.strictSame([world.state('a'), world.state('b')].toSorted(), ['alone', 'member']);
  }
});

t.test('a server whose ids would begin as those of another one', async (t) => {
  // The first two of s0, s1, s2 … whose names have the same tag.
  const world = new World();
  await world.startRing(['a', 's8419']);
  world.add('s9071');
  await world.until(() => world.view('s9071').problem, LEASE);
  t.match(world.view('s9071').problem, { code: 'same-tag', message: /s8419 .* s9071 .*--name/ });
  await world.run(2 * LEASE);
  t.equal(world.ring('a'), 'as8419');
  t.equal(world.state('s9071'), 'alone');
  t.strictSame(world.view('s9071').redirectTargets, [], 'it sends no client to the others');
  world.get('s8419').process.cutOff();
  await world.until(() => world.state('s9071') === 'member', 3 * LEASE);
  world.get('s8419').process.reconnect();
  await world.until(() => world.lastView('s8419').problem?.code === 'same-tag', LEASE);
  t.equal(world.lastView('s8419').state, 'alone', 'one that was out meanwhile');

  const both = new World();
  both.add('s8419');
  both.add('s9071');
  await both.run(2 * LEASE);
  t.strictSame(['s8419', 's9071'].map((name) => both.state(name)).toSorted(), ['alone', 'member']);
});

t.test('one server more than there may be', async (t) => {
  const world = new World();
  const member = { epoch: 1, state: 'member', lease: 10 * LEASE, run: 'x', rows: 1 };
  const entry = { version: VERSION, ...member };
  for (let i = 1; i <= MAX_SERVERS; i++) {
    world.broker.entries.set(`s${i}`, { entry: { ...entry }, revision: i });
  }
  world.broker.revision = MAX_SERVERS;
  world.add('a');
  await world.until(() => world.view('a').problem?.code === 'world-full', LEASE);
  t.equal(world.state('a'), 'alone');
  world.broker.write('s7', { ...entry, state: 'gone' }, 7);
  await world.until(() => world.state('a') === 'member', LEASE);
});

t.test('a name', async (t) => {
  for (const name of ['a', 'rack1-b', `a${'b'.repeat(31)}`]) t.match(name, NAME);
  for (const name of ['', 'A', '1a', 'a.b', 'a*', 'a b', 'a\n', `a${'b'.repeat(32)}`]) {
    t.notMatch(name, NAME);
  }
});

const TEXTS = ['', '5', 'javascript:x', 'x'.repeat(64)];

/** Valid values of an entry's members, at their bounds. An invalid optional member counts as missing. */
const MEMBERS = {
  needed: {
    epoch: [1, 2 ** 32],
    state: ['joining', 'member', 'leaving', 'gone', 'lost'],
    lease: [1, 3600e3],
    rows: [0, 2 ** 15]
  },
  optional: {
    clients: [0, 2 ** 30],
    grace: [1, 7200e3],
    since: [1, Number.MAX_SAFE_INTEGER],
    empty: [true],
    url: ['http://a:1'],
    run: TEXTS,
    instance: TEXTS
  }
};

/** Invalid values of all members, as JSON, with numbers around every bound. */
const INVALID_VALUES = [
  ...['-1', '0.5', '"5"', 'null', '{}', '[5]', 'false', '""', '1e300', '1e400', '-1e400'],
  ...['9007199254740992', '9223372036854775808', `"${'x'.repeat(65)}"`, '"javascript:x"']
];

t.test('what an entry is', async (t) => {
  const entry = { version: VERSION, epoch: 5, state: 'member', lease: 1000, rows: 0 };
  const textOf = (more) => JSON.stringify({ ...entry, ...more });
  t.strictSame(readEntry(textOf()), entry);
  for (const none of ['', 'x', 'null', '[]', '7', '{}', `{"version":${VERSION}}`]) {
    t.equal(readEntry(none), undefined, none);
  }
  t.equal(readEntry(`${textOf()}${' '.repeat(4096)}`), undefined, 'too large');
  t.ok(readEntry(textOf({ version: VERSION + 1, rows: 'other' })), 'of another version');
  for (const [kind, members] of Object.entries(MEMBERS)) {
    for (const [name, values] of Object.entries(members)) {
      for (const value of values) {
        t.equal(readEntry(textOf({ [name]: value }))?.[name], value, `${name} is ${value}`);
      }
      const [least, most] = values;
      // The epoch's bound is some time ahead of the clock.
      const beyond = [least - 1, most + (name === 'epoch' ? 2 ** 33 : 1)].filter(Number.isInteger);
      const invalid = INVALID_VALUES.filter((text) => !values.includes(JSON.parse(text)));
      for (const text of [...invalid, ...beyond.map(String)]) {
        const found = readEntry(textOf({ [name]: 'ODD' }).replace('"ODD"', text));
        const expected = kind === 'needed' ? undefined : entry;
        t.strictSame(found, expected, `${name} is ${text}`);
      }
      const without = readEntry(textOf({ [name]: undefined }));
      t.strictSame(without, kind === 'needed' ? undefined : entry, `no ${name}`);
    }
  }
});

t.test('an entry that is written again, as lost, is not larger than it was', async (t) => {
  const entry = { version: VERSION, epoch: 5, state: 'member', lease: 1000, rows: 0 };
  const read = readEntry(JSON.stringify({ ...entry, more: 'x'.repeat(3800) }));
  t.strictSame(read, entry, 'what has no meaning is left out');
});

t.test('news that are not in the store', async (t) => {
  const forgedEntry = {
    version: VERSION,
    epoch: 2 ** 32,
    state: 'gone',
    lease: 1000,
    rows: 1,
    run: 'x'
  };
  const news = { entry: forgedEntry, revision: Number.MAX_SAFE_INTEGER };
  const world = await startedWorld('ab');
  const { views, process } = world.get('a');
  const viewsBefore = views.length;
  process.receive('a', news);
  process.receive('a', { ...news, entry: undefined });
  await world.run(2 * LEASE);
  const outside = views
    .slice(viewsBefore)
    .filter(({ state, ring }) => state !== 'member' || ring.size < 2);
  t.strictSame(outside, [], 'of the entry of this server: the store is asked');
  process.receive('b', news);
  await world.until(() => world.ring('a') === 'a');
  t.ok((await world.until(() => world.ring('a') === 'ab')) < LEASE / 4 + 500, 'of the others');
  // And while a name is taken.
  world.add('c').process.receive('c', { ...news, entry: { ...forgedEntry, state: 'member' } });
  await world.until(() => world.ring('a') === 'abc' && world.state('c') === 'member', 5 * LEASE);
  // Late news of an entry that was overwritten since make the server read again.
  const { requests } = world.broker.counts;
  process.receive('b', { entry: { ...forgedEntry, state: 'member' }, revision: 1 });
  await world.run(500);
  t.ok(world.broker.counts.requests > requests);
  t.equal(world.ring('a'), 'abc');
});

t.test('of more names than there may be the longest not renewed are forgotten', async (t) => {
  const leases = new Leases();
  const entry = { version: VERSION, epoch: 5, state: 'gone', lease: 1000, rows: 1, grace: 5000 };
  leases.record('a', { entry, revision: 1 }, 0);
  leases.record('b', { entry, revision: 2 }, 0);
  for (let n = 1; n < MAX_NAMES; n++) {
    if (n % 1000 === 0) leases.record('b', { entry, revision: 2 + n }, n);
    leases.record(`c${n}`, { entry, revision: 2 + n }, n);
  }
  t.equal([...leases.entries()].length, MAX_NAMES);
  t.notOk(leases.get('a'));
  t.ok(leases.get('b'));
  t.equal(leases.absences.names(1).length, MAX_NAMES);
});

t.test('an epoch is above every known one, and was never used', async (t) => {
  t.ok(nextEpoch([]) >= Math.floor(Date.now() / 1000) - 1);
  t.equal(nextEpoch([2 ** 32, 3]), 2 ** 32 + 1, 'whatever the clock says');
});

t.test(
  'any history: the laws hold at every moment, and in the end there is one ring',
  async (t) => {
    for (let seed = 1; seed <= 4; seed++) {
      const random = new Random(seed);
      // News that are delivered twice come out of order.
      const echo = () => (seed % 2 === 0 && random.oneIn(3) ? random.below(4000) : undefined);
      const world = new World({ delay: () => 1 + random.below(60), echo });
      const names = [...'abcde'];
      await world.startRing(names);
      for (let step = 0; step < 30; step++) {
        playRandomEvent(world, random, names);
        for (let i = 0; i < 10; i++) {
          await world.run(random.below(LEASE / 5));
          checkLaw(t, world, names);
        }
      }
      world.broker.start();
      for (const name of names) {
        world.get(name).process.reconnect();
        world.get(name).process.continue();
      }
      await world.untilRing(names, 5 * LEASE);
      for (const { membership } of world.servers.values()) {
        const closed = membership.close();
        await world.run(2000);
        await closed;
      }
    }
    t.pass('four histories');
  }
);

/** Plays a random event of a server. */
function playRandomEvent(world, random, names) {
  const name = random.pick(names);
  const { process } = world.get(name);
  const events = [
    () => process.stop(),
    () => process.continue(),
    () => process.cutOff(),
    () => process.reconnect(),
    () => world.broker.stop(),
    () => world.broker.start(),
    () => world.broker.start(),
    () => (world.get(name).rows = random.below(20)),
    () => {
      process.kill();
      world.add(name);
    },
    () => {}
  ];
  random.pick(events)();
}

/**
 * Checks that a server that counts itself a member is a member in the store, with the same epoch: no server that has
 * seen the store closes the ring without it.
 */
function checkLaw(t, world, names) {
  for (const name of names) {
    const { membership, process } = world.get(name);
    if (membership.state !== 'member' || process.isStopped) continue;
    const { entry } = world.broker.entries.get(name);
    const { epoch } = membership.view();
    if (entry.state !== 'member' || entry.epoch !== epoch) {
      t.strictSame({ state: entry.state, epoch: entry.epoch }, { state: 'member', epoch }, name);
    }
  }
}
