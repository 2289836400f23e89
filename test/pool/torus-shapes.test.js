import t from 'tap';
import assert from 'node:assert/strict';
import { loadTestAddon } from '../support/addon.js';
import { lengthOf } from '../support/long.js';
import { MOST_TOUCHED, seeded } from '../support/torus-rig.js';
import { TorusModel, cellOf } from '../model/torus.js';
import { checkLaw1, checkLaw4 } from '../model/laws.js';

const { Torus } = loadTestAddon();

// A fixed amount of work, with nothing to wait for: only a crowded machine makes it long.
t.setTimeout(600_000);

const NOBODY = 0xffffffff;

const POWERS = Array.from({ length: 1000 }, (_, i) => 2 ** i);

/**
 * A torus whose shape can be set and read. A shape is which slots have a node, how many are opened,
 * and which lines are their own; node numbers are no part of it.
 */
class Shaper {
  constructor(slots) {
    this.torus = new Torus(slots + 1);
    this.slots = new Uint32Array(slots + 1);
    this.links = new Uint32Array(4 * (slots + 1));
    this.seats = new Uint32Array(2 * (slots + 1));
  }

  /** Sets a shape: each node has the number of its slot. */
  set(shape) {
    const { opened, ownRows, ownColumns, living } = shape;
    const seats = this.seats.subarray(0, 2 * living.length);
    for (let i = 0; i < living.length; i++) seats[2 * i] = seats[2 * i + 1] = living[i];
    assert.ok(this.torus.restore(opened, ownRows, ownColumns, seats), JSON.stringify(shape));
  }

  /** Reads who is where, and the links. */
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
    // As a number that names the shape: a bit for each slot, and two for the lines.
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
   * How many nodes but `subject` moved or have other links than they had `before`, in a shape that
   * was set then; as last read.
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

/** Compares the links of a shape with the model's and holds them against laws 1 and 4. */
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
 * Slots of the exhaustive test: all of the lines that are short enough for a step to reach from one
 * into the one before it, as torus.h says. Later ones only repeat what the longest of these do.
 */
const SLOTS = lengthOf({ short: 27, long: 32 });

t.test(`laws 1, 2 and 4 hold in every shape within ${SLOTS} slots, at every step`, async (t) => {
  const shaper = new Shaper(SLOTS);
  const { torus } = shaper;
  const known = new Map();
  const open = [];
  const counts = new Array(MOST_TOUCHED + 1).fill(0);

  // Checks a step just made from a known shape; a shape it leads to for the first time is queued.
  const arrive = (from, subject, touched) => {
    const [shape, links] = shaper.get();
    const changed = shaper.changedSince(from.links, subject);
    if (touched !== changed) assert.fail(`counted ${touched} touched, ${changed} changed`);
    if (touched > MOST_TOUCHED) {
      assert.fail(`${touched} touched from ${JSON.stringify(from.shape)}`);
    }
    counts[touched]++;
    const there = known.get(shape.name);
    if (there === undefined) {
      checkShape(shape, links);
      open.push({ shape, links });
      known.set(shape.name, open.at(-1));
    } else if (Buffer.compare(there.links, links) !== 0) {
      assert.fail(`the links of ${JSON.stringify(shape)} are not always the same`);
    }
    return shape;
  };

  const [shape, links] = shaper.get();
  open.push({ shape, links });
  known.set(shape.name, open[0]);
  while (open.length > 0) {
    const from = open.pop();
    const { living, opened } = from.shape;
    if (living.length < SLOTS) {
      shaper.set(from.shape);
      const joiner = SLOTS;
      const touched = torus.join(joiner);
      // A join into the slot after the last one leads out of what is enumerated.
      if (torus.slot(joiner) < SLOTS) arrive(from, joiner, touched);
    }
    let set = false;
    for (const slot of living) {
      if (!set) shaper.set(from.shape);
      const touched = torus.leave(slot);
      const there = arrive(from, slot, touched);
      set = false;
      if (there.opened - there.living.length > opened - living.length) {
        // It left a hole. When the next to join fills that one, all is as it was.
        const back = torus.join(slot);
        if (torus.slot(slot) === slot) {
          shaper.read();
          assert.equal(back, touched);
          assert.equal(shaper.changedSince(from.links, undefined), 0);
          set = true;
        }
      }
    }
  }
  const steps = counts.reduce((sum, count) => sum + count);
  t.comment(`${known.size} shapes, ${steps} steps, by nodes touched: ${counts.join(' ')}`);
});

/** A random shape: around the ends of lines half of the time, with few, some or all the holes. */
function randomShape(shaper, random, slots) {
  const pick = (bound) => Math.floor(random() * bound);
  let opened = 1 + pick(slots);
  if (pick(2) === 0) {
    const line = 1 + pick(Math.floor(Math.sqrt(slots)) - 1);
    opened = line * line + pick(2) * line - 4 + pick(8);
    opened = Math.max(1, Math.min(slots, opened));
  }
  const share = [0.1, 0.5, 1][pick(3)];
  const blocks = new Map();
  for (let slot = 0; slot < opened - 1; slot++) {
    const { row, column } = cellOf(slot);
    const block = `${row >> 2},${column >> 2}`;
    blocks.set(block, [...(blocks.get(block) ?? []), slot]);
  }
  const holes = new Set();
  for (const block of blocks.values()) {
    if (random() < share) holes.add(block[pick(block.length)]);
  }
  const living = [];
  for (let slot = 0; slot < opened; slot++) {
    if (!holes.has(slot)) living.push(slot);
  }
  // The last line may be its own or hanging, or either: whatever the torus accepts.
  const model = TorusModel.of(
    { opened, ownRows: 1, ownColumns: 1 },
    living.map((s) => [s, s])
  );
  const { rows, columns } = model.extent;
  const seats = Uint32Array.from(living.flatMap((slot) => [slot, slot]));
  const choices = [];
  for (const ownRows of [rows, rows - 1]) {
    for (const ownColumns of [columns, columns - 1]) {
      const possible = shaper.torus.restore(opened, ownRows, ownColumns, seats);
      if (possible) choices.push([ownRows, ownColumns]);
    }
  }
  const [ownRows, ownColumns] = choices[pick(choices.length)];
  return { opened, ownRows, ownColumns, living };
}

t.test("random shapes up to 240 slots, and steps from them, are the model's", async (t) => {
  const slots = 240;
  const shaper = new Shaper(slots);
  const random = seeded(11);
  let most = 0;
  for (let i = 0; i < lengthOf({ short: 500, long: 1500 }); i++) {
    const shape = randomShape(shaper, random, slots);
    shaper.set(shape);
    const [, before] = shaper.get();
    checkShape(shape, before);
    const model = TorusModel.of(
      shape,
      shape.living.map((slot) => [slot, slot])
    );
    // The last ones are where the lines end.
    const back = Math.floor(random() ** 3 * shape.living.length);
    const slot = shape.living[shape.living.length - 1 - back];
    const touched = shaper.torus.leave(slot);
    model.leave(slot);
    const [after, links] = shaper.get();
    checkShape(after, links);
    assert.equal(after.opened, model.opened);
    assert.equal(after.ownRows, model.own.row);
    assert.equal(after.ownColumns, model.own.column);
    assert.deepEqual(new Set(after.living), new Set(model.nodeAt.keys()));
    assert.equal(touched, shaper.changedSince(before, slot));
    most = Math.max(most, touched);
  }
  t.comment(`${most} touched at most`);
  t.ok(most <= MOST_TOUCHED);
});
