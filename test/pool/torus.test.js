import t from 'tap';
import { loadTestAddon } from '../support/addon.js';
import { lengthOf } from '../support/until.js';
import { MAX_TOUCHED, Rig } from '../support/torus-rig.js';

const { Torus } = loadTestAddon();

// A fixed amount of work, without waits: it takes long only on a busy machine.
t.setTimeout(600_000);

const [LEFT, RIGHT, UP, DOWN] = [0, 1, 2, 3];

/** Returns a torus of the nodes 0 to size - 1, joined in order. */
function torusOf(size, capacity = size) {
  const torus = new Torus(capacity);
  for (let node = 0; node < size; node++) torus.join(node);
  return torus;
}

const neighbors = (torus, node) =>
  [LEFT, RIGHT, UP, DOWN].map((edge) => torus.neighbor(node, edge));

const figure = (number) => number.toFixed(3);

t.test('nine nodes make three rows of three', async (t) => {
  const torus = torusOf(9);
  //  0 1 4
  //  2 3 5
  //  6 7 8
  t.same(neighbors(torus, 3), [2, 5, 1, 7]);
  t.same(neighbors(torus, 0), [4, 1, 6, 2], 'a corner wraps around');
  t.same(neighbors(torus, 8), [7, 6, 5, 4]);
  t.same(torus.place(5), { row: 1, column: 2, rows: 3, columns: 3 });
});

/** Makes random steps toward one random population after another, up to `limit` nodes. */
function wander(rig, limit, steps) {
  let target = limit;
  for (let i = 0; i < steps; i++) {
    if (rig.size === target) target = rig.random.below(limit + 1);
    const toward = rig.random.fraction() < 0.8;
    if (rig.size === 0 || (rig.size < limit && rig.size < target === toward)) rig.join();
    else rig.leave();
  }
}

for (const [size, steps, every] of [
  [200, 100_000, 400],
  [1000, 100_000, 2000],
  [10_000, lengthOf({ short: 50_000, long: 200_000 }), 25_000],
  [lengthOf({ short: 20_000, long: 100_000 }), lengthOf({ short: 70_000, long: 350_000 }), 50_000]
]) {
  t.test(`random joins and leaves up to ${size} nodes are the model's`, async (t) => {
    const rig = new Rig(size, { every, seed: size });
    wander(rig, size, steps);
    rig.inspect();
    const { mean, most } = rig.account();
    t.comment(`${rig.allSteps} steps touched ${figure(mean)} nodes on average, ${most} at most`);
    t.ok(most <= MAX_TOUCHED);
  });
}

/**
 * Kinds of steps at a steady population. In turn: a leave, then a join. At random: both in random order, so that the
 * population fluctuates as with real clients.
 */
const KINDS = {
  'in turn': (rig, size, i) => (i % 2 === 0 ? rig.leave() : rig.join()),
  'at random': (rig, size) => rig.churn(size)
};

for (const [kind, step] of Object.entries(KINDS)) {
  t.test(`steady churn ${kind} touches fewer than five a step, and keeps law 5`, async (t) => {
    const largest = lengthOf({ short: 4000, long: 10_000 });
    for (const size of [9, 16, 25, 36, 49, 64, 100, 400, 1000, largest]) {
      const rig = new Rig(3 * size, { seed: size });
      rig.resize(size);
      for (let i = 0; i < size; i++) step(rig, size, i);
      rig.account();
      let shares = 0;
      let samples = 0;
      const steps = Math.max(10_000, 2 * size);
      for (let i = 0; i < steps; i++) {
        step(rig, size, i);
        if (i % (steps / 100) === 0) {
          shares += rig.share();
          samples++;
        }
      }
      rig.inspect();
      const { mean, most } = rig.account();
      const share = shares / samples;
      t.comment(
        `${size} nodes: ${figure(mean)} touched, ${most} at most; ` + `law 5 for ${figure(share)}`
      );
      t.ok(mean < 5, `${size} nodes: a mean of ${figure(mean)}`);
      // Law 5 fails where the last line ends, and in a grid of a few lines most nodes are near that.
      if (size >= 100) t.ok(share > 0.9, `${size} nodes: law 5 for ${figure(share)}`);
    }
  });
}

t.test('churn fills the holes of a torus half of whose nodes left', async (t) => {
  const size = 10_000;
  const rig = new Rig(2 * size, { seed: 5 });
  rig.resize(2 * size);
  rig.resize(size);
  const share = rig.share();
  for (let i = 0; i < size / 4; i++) {
    rig.leave();
    rig.join();
  }
  rig.inspect();
  t.comment(`law 5 for ${figure(share)} after the leaves, ${figure(rig.share())} after the churn`);
  t.ok(rig.share() > 0.9);
});

/** Returns the data of a torus that a snapshot keeps. */
function save(torus, capacity) {
  const slots = new Uint32Array(capacity);
  torus.slots(slots);
  const seats = [];
  slots.forEach((slot, node) => {
    if (slot !== 0xffffffff) seats.push(node, slot);
  });
  const { opened, ownRows, ownColumns } = torus.state();
  return [opened, ownRows, ownColumns, Uint32Array.from(seats)];
}

t.test('a saved torus is restored link for link, and goes on', async (t) => {
  for (const size of [0, 1, 2, 5, 9, 13, 40, 300, 5000]) {
    const rig = new Rig(size + 10, { seed: size, every: Math.ceil(size / 4) });
    wander(rig, size, 3 * size);
    const saved = save(rig.torus, size + 10);
    const links = new Uint32Array(4 * (size + 10));
    rig.torus.links(links);
    const state = rig.torus.state();
    // Restored into a torus that had other nodes before.
    rig.torus = torusOf(7, size + 10);
    t.equal(rig.torus.restore(...saved), true);
    const restored = new Uint32Array(4 * (size + 10));
    rig.torus.links(restored);
    t.strictSame(restored, links, `${size} nodes`);
    t.same(rig.torus.state(), state);
    wander(rig, size, size);
    rig.inspect();
  }
});

t.test('a saved torus that is none is refused, and leaves an empty torus', async (t) => {
  const torus = torusOf(11, 40);
  torus.leave(5);
  const [opened, ownRows, ownColumns, seats] = save(torus, 40);
  const edited = (edit) => {
    const copy = Uint32Array.from(seats);
    edit(copy);
    return [opened, ownRows, ownColumns, copy];
  };
  const bad = {
    'more slots than the capacity': [41, 6, 7, seats],
    'fewer slots than nodes': [9, 3, 3, seats],
    'no slots, but nodes': [0, 1, 1, seats],
    'slots, but no nodes': [opened, ownRows, ownColumns, new Uint32Array(0)],
    'a slot twice': edited((s) => {
      s[3] = s[1];
    }),
    'a node twice': edited((s) => {
      s[2] = s[0];
    }),
    'a slot beyond the last': edited((s) => {
      s[1] = opened;
    }),
    'a node beyond the capacity': edited((s) => {
      s[0] = 40;
    }),
    'the last slot empty': [2, 1, 2, Uint32Array.of(0, 0)],
    'the last slot of a block with a hole empty': [opened + 1, ownRows, ownColumns, seats],
    'two holes in a block': [opened, ownRows, ownColumns, seats.subarray(2)],
    'too many rows of their own': [opened, ownRows + 1, ownColumns, seats],
    'too few rows of their own': [opened, ownRows - 1, ownColumns, seats],
    'a column of its own too soon': [opened, ownRows, ownColumns + 1, seats],
    'too few columns of their own': [opened, ownRows, ownColumns - 1, seats],
    'no rows of their own': [1, 0, 1, Uint32Array.of(0, 0)],
    'no rows of their own, and no nodes': [0, 0, 1, new Uint32Array(0)],
    'columns below none': [1, 1, 0xffffffff, Uint32Array.of(0, 0)]
  };
  t.equal(torus.restore(opened, ownRows, ownColumns, seats), true, 'unedited it is one');
  for (const [what, data] of Object.entries(bad)) {
    const target = torusOf(11, 40);
    t.equal(target.restore(...data), false, what);
    t.same(target.state(), { size: 0, opened: 0, rows: 0, columns: 0, ownRows: 1, ownColumns: 1 });
    const links = new Uint32Array(160);
    target.links(links);
    t.ok(
      links.every((link) => link === 0xffffffff),
      'no link is left'
    );
    for (let node = 0; node < 40; node++) target.join(node);
    t.same(neighbors(target, 3), neighbors(torusOf(40), 3), 'and it works');
  }
});
