import assert from 'node:assert/strict';

import t from 'tap';

import { checkLaw1, checkLaw4, TorusModel } from '../model/torus.js';
import { loadTestAddon } from '../support/addon.js';
import { lengthOf } from '../support/until.js';
import { MAX_TOUCHED, Rig } from '../support/torus-rig.js';

const { Torus } = loadTestAddon();

// A fixed amount of work, without waits: it takes long only on a busy machine.
t.setTimeout(600_000);

const NOBODY = 0xffffffff;

const POWERS = Array.from({ length: 1000 }, (_, i) => 2 ** i);

/**
 * A torus whose shape can be set and read. A shape consists of the slots that have a node, the number of opened slots,
 * and the lines that are cycles of their own. The numbers of the nodes are not part of it.
 */
class Shaper {
  constructor(slots) {
    this.torus = new Torus(slots + 1);
    this.slots = new Uint32Array(slots + 1);
    this.links = new Uint32Array(4 * (slots + 1));
    this.seats = new Uint32Array(2 * (slots + 1));
  }

  /** Sets a shape. Each node has the number of its slot. */
  set(shape) {
    const { opened, ownRows, ownColumns, living } = shape;
    const seats = this.seats.subarray(0, 2 * living.length);
    for (let i = 0; i < living.length; i++) seats[2 * i] = seats[2 * i + 1] = living[i];
    assert.ok(this.torus.restore(opened, ownRows, ownColumns, seats), JSON.stringify(shape));
  }

  /** Reads the places of nodes, and the links. */
  read() {
    this.torus.slots(this.slots);
    this.torus.links(this.links);
  }

  /** Reads the shape, and the links by slot instead of by node: [shape, links]. */
  get() {
    this.read();
    const { slots } = this;
    const { opened, ownRows, ownColumns, rows, columns } = this.torus.state();
    const living = [];
    const links = new Uint8Array(4 * opened);
    // A number that identifies the shape: a bit for each slot, and two for the lines.
    let name = (rows === ownRows ? 0 : 1) + (columns === ownColumns ? 0 : 2);
    for (let node = 0; node < slots.length; node++) {
      const slot = slots[node];
      if (slot === NOBODY) continue;
      living.push(slot);
      name += POWERS[slot + 2];
      for (let edge = 0; edge < 4; edge++) {
        links[4 * slot + edge] = slots[this.links[4 * node + edge]];
      }
    }
    return [{ name, opened, ownRows, ownColumns, living }, links];
  }

  /**
   * Counts the nodes other than `subject` that have moved, or whose links differ from `before`, between the shape that
   * was set and the last read().
   */
  changedSince(before, subject) {
    let changed = 0;
    for (let node = 0; node < this.slots.length; node++) {
      if (this.slots[node] === NOBODY || node === subject) continue;
      let same = this.slots[node] === node;
      for (let edge = 0; edge < 4; edge++) {
        same &&= this.links[4 * node + edge] === before[4 * node + edge];
      }
      if (!same) changed++;
    }
    return changed;
  }
}

/** Compares the links of a shape with the model's, and checks laws 1 and 4. */
function checkShape(shape, links) {
  const model = TorusModel.of(
    shape,
    shape.living.map((slot) => [slot, slot])
  );
  for (const [slot, expected] of model.links()) {
    for (let edge = 0; edge < 4; edge++) {
      if (links[4 * slot + edge] !== expected[edge]) {
        assert.fail(
          `slot ${slot}, edge ${edge} of ${JSON.stringify(shape)}: ` +
            `${links[4 * slot + edge]}, not ${expected[edge]}`
        );
      }
    }
  }
  checkLaw1(links, shape.living);
  checkLaw4(links, shape.living, (slot) => slot);
}

/**
 * Slots of the exhaustive test. They include all lines so short that a step in one can reach into the line before it
 * (torus.h). Longer lines only repeat the behavior of the longest of these.
 */
const SLOTS = lengthOf({ short: 27, long: 32 });

t.test(`laws 1, 2 and 4 hold in every shape within ${SLOTS} slots, at every step`, async (t) => {
  const shaper = new Shaper(SLOTS);
  const { torus } = shaper;
  const known = new Map();
  const unvisited = [];
  const counts = new Array(MAX_TOUCHED + 1).fill(0);

  // Checks a step from a known shape. Queues the shape that it leads to, if that is new.
  const checkStep = (from, subject, touched) => {
    const [shape, links] = shaper.get();
    const changed = shaper.changedSince(from.links, subject);
    if (touched !== changed) assert.fail(`counted ${touched} touched, ${changed} changed`);
    if (touched > MAX_TOUCHED) {
      assert.fail(`${touched} touched from ${JSON.stringify(from.shape)}`);
    }
    counts[touched]++;
    const knownShape = known.get(shape.name);
    if (knownShape === undefined) {
      checkShape(shape, links);
      unvisited.push({ shape, links });
      known.set(shape.name, unvisited.at(-1));
    } else if (Buffer.compare(knownShape.links, links) !== 0) {
      assert.fail(`the links of ${JSON.stringify(shape)} are not always the same`);
    }
    return shape;
  };

  const [shape, links] = shaper.get();
  unvisited.push({ shape, links });
  known.set(shape.name, unvisited[0]);
  while (unvisited.length > 0) {
    const from = unvisited.pop();
    const { living, opened } = from.shape;
    if (living.length < SLOTS) {
      shaper.set(from.shape);
      const joiner = SLOTS;
      const touched = torus.join(joiner);
      // A join into the slot after the last one leads to a shape that is not enumerated.
      if (torus.slot(joiner) < SLOTS) checkStep(from, joiner, touched);
    }
    let isSet = false;
    for (const slot of living) {
      if (!isSet) shaper.set(from.shape);
      const touched = torus.leave(slot);
      const reached = checkStep(from, slot, touched);
      isSet = false;
      if (reached.opened - reached.living.length > opened - living.length) {
        // The leave has made a hole. If the next join fills that hole, the torus is as before.
        const touchedByJoin = torus.join(slot);
        if (torus.slot(slot) === slot) {
          shaper.read();
          assert.equal(touchedByJoin, touched);
          assert.equal(shaper.changedSince(from.links, undefined), 0);
          isSet = true;
        }
      }
    }
  }
  const steps = counts.reduce((sum, count) => sum + count);
  t.comment(`${known.size} shapes, ${steps} steps, by nodes touched: ${counts.join(' ')}`);
});

/**
 * Histories by which clients could bend the torus out of shape. Each starts from a torus of `n` nodes and removes
 * nodes, down to nine at least: law 4 holds only from nine on.
 */
const HISTORIES = {
  'every second row leaves': (rig) => rig.leaveWhere(({ row }) => row % 2 === 0),
  'every second column leaves': (rig) => rig.leaveWhere(({ column }) => column % 2 === 0),
  'all rows but the first and the last leave': (rig) => {
    rig.leaveWhere(({ row, rows }) => row > 0 && row < rows - 1);
  },
  'all columns but the first and the last leave': (rig) => {
    rig.leaveWhere(({ column, columns }) => column > 0 && column < columns - 1);
  },
  'row after row leaves from the top': (rig) => {
    for (let line = 0; line < rig.extent().rows; line++) rig.leaveWhere(({ row }) => row === line);
  },
  'column after column leaves from the right': (rig) => {
    for (let line = rig.extent().columns - 1; line >= 0; line--) {
      rig.leaveWhere(({ column }) => column === line);
    }
  },
  'every node in the first row leaves': (rig) => {
    while (rig.size > 9) rig.leaveWhere(({ row }) => row === 0);
  },
  'every node in the first column leaves': (rig) => {
    while (rig.size > 9) rig.leaveWhere(({ column }) => column === 0);
  },
  'every node in the last row leaves': (rig) => {
    while (rig.size > 9) rig.leaveWhere(({ row, rows }) => row === rows - 1);
  },
  'every node in the last column leaves': (rig) => {
    while (rig.size > 9) rig.leaveWhere(({ column, columns }) => column === columns - 1);
  },
  'the newest half leaves': (rig, n) => rig.leaveWhere(({ slot }) => slot >= n / 2),
  'the oldest half leaves': (rig, n) => rig.leaveWhere(({ slot }) => slot < n / 2),
  'the newest leaves again and again': (rig) => {
    while (rig.size > 10) rig.leave(rig.newest());
  },
  'every second one leaves': (rig) => rig.leaveWhere(({ slot }) => slot % 2 === 1),
  'every second one leaves, like a chessboard': (rig) => {
    rig.leaveWhere(({ row, column }) => (row + column) % 2 === 1);
  },
  'all but the diagonal leave': (rig) => rig.leaveWhere(({ row, column }) => row !== column),
  'all but the other diagonal leave': (rig) => {
    rig.leaveWhere(({ row, column, rows }) => row + column !== rows - 1);
  },
  'all but one in every block leave': (rig) => {
    rig.leaveWhere(({ row, column }) => row % 4 !== 0 || column % 4 !== 0);
  },
  'holes are dug side by side, then the grid shrinks': (rig) => {
    const meets = (position) => position % 8 === 3 || position % 8 === 4;
    rig.leaveWhere(({ row, column }) => row % 4 === 1 && meets(column));
    while (rig.size > 10) rig.leave(rig.newest());
  },
  'holes are dug one above the other, then the grid shrinks': (rig) => {
    const meets = (position) => position % 8 === 3 || position % 8 === 4;
    rig.leaveWhere(({ row, column }) => column % 4 === 2 && meets(row));
    while (rig.size > 10) rig.leave(rig.newest());
  },
  'random ones leave until ten are left': (rig, n) => rig.resize(Math.min(n, 10)),
  'at every size around here some leave and join at the end': (rig, n) => {
    for (let size = n; size > Math.max(12, n - 40); size--) {
      for (let i = 0; i < 3; i++) rig.leave(rig.newest());
      for (let i = 0; i < 3; i++) rig.join();
      rig.leave(rig.newest());
    }
  }
};

for (const [down, right] of [
  [0, 0],
  [0, 1],
  [1, 0],
  [1, 1]
]) {
  const name = `the ${down ? 'lower' : 'upper'} ${right ? 'right' : 'left'} corner`;
  const corner = ({ row, column, rows, columns }) =>
    row * 2 >= rows === Boolean(down) && column * 2 >= columns === Boolean(right);
  HISTORIES[`${name} is emptied, then the grid shrinks`] = (rig) => {
    rig.leaveWhere(corner);
    while (rig.size > 10) rig.leave(rig.newest());
  };
  HISTORIES[`all but ${name} leave`] = (rig) => rig.leaveWhere((cell) => !corner(cell));
}

/**
 * Plays a history from n nodes down, then grows back to n, and inspects both. Returns law 5's share after the history.
 */
function play(rig, history, n) {
  rig.resize(n);
  history(rig, n);
  rig.inspect();
  const share = rig.share();
  rig.resize(n);
  rig.inspect();
  return share;
}

for (const [name, history] of Object.entries(HISTORIES)) {
  t.test(name, async (t) => {
    for (const n of [9, 10, 12, 15, 16, 17, 20, 25, 30, 36, 47, 64, 81, 100]) {
      play(new Rig(n, { every: 1, seed: n }), history, n);
    }
    const n = lengthOf({ short: 900, long: 2500 });
    const rig = new Rig(n, { every: 1000, seed: n });
    const share = play(rig, history, n);
    const { mean, most } = rig.account();
    t.comment(
      `${n} nodes: ${mean.toFixed(3)} touched a step, ${most} at most; ` +
        `law 5 for ${share.toFixed(3)}`
    );
    t.ok(most <= MAX_TOUCHED);
  });
}

t.test('very many fall to ten and grow back', async (t) => {
  const n = lengthOf({ short: 20_000, long: 100_000 });
  const rig = new Rig(n, { every: 0.3 * n, seed: 7 });
  rig.resize(n);
  rig.account();
  rig.resize(10);
  rig.inspect();
  const { rows, columns, opened } = rig.extent();
  const fall = rig.account();
  t.ok(opened <= 12, `ten nodes sit in ${opened} slots`);
  t.ok(rows <= 4 && columns <= 4, `in ${rows} rows and ${columns} columns`);
  rig.resize(n);
  rig.inspect();
  const growth = rig.account();
  t.comment(`falling touched ${fall.mean.toFixed(3)} a step, growing ${growth.mean.toFixed(3)}`);
  t.ok(Math.max(fall.most, growth.most) <= MAX_TOUCHED);
});
