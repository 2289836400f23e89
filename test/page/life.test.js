import t from 'tap';
import { Desktop } from '../../lib/page/desktop.js';
import { CLOSED, PACE } from '../../lib/page/life.js';

/** What sprites do to each other and by themselves, in numbers: no browser. */

const SPRITE = { id: 'x', picture: 'ball', at: 0.5, speed: [0, 0] };
const FRAME = 1 / 60;

/** A random that is the same every time. */
function seeded() {
  let seed = 7;
  return () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return seed / 2 ** 32;
  };
}

/** A desktop of 1000 by 500 that counts who leaves and who bumps. */
function make() {
  const seen = { left: [], bumps: [] };
  const desktop = new Desktop(
    (body, edge) => seen.left.push(edge),
    (strength) => seen.bumps.push(strength),
    seeded()
  );
  desktop.resize(1000, 500);
  desktop.open = true;
  const run = (seconds, lively = false) => {
    for (let time = 0; time < seconds; time += FRAME) desktop.step(FRAME, lively);
  };
  return { desktop, run, ...seen };
}

/** @returns {number} how far the two that are nearest each other are apart */
function nearest(bodies) {
  let least = Infinity;
  for (const [i, a] of bodies.entries()) {
    for (const b of bodies.slice(i + 1)) least = Math.min(least, Math.hypot(a.x - b.x, a.y - b.y));
  }
  return least;
}

const inside = ({ x, y }) => x >= 0 && x <= 1000 && y >= 0 && y <= 500;

t.test('what lies on another one is parted from it, and both rest', async (t) => {
  const { desktop, run, left, bumps } = make();
  for (const x of [300, 300, 320]) desktop.add(SPRITE, { x, y: 250, half: 30 });
  run(3);
  t.ok(nearest(desktop.bodies) > 48, `${nearest(desktop.bodies)}`);
  t.equal(desktop.step(FRAME), false, 'at rest');
  t.same([left, bumps], [[], []], 'nobody has left, and nothing was heard');
});

t.test('a heap finds room, and rests', async (t) => {
  const { desktop, run, left } = make();
  for (let i = 0; i < 20; i += 1) desktop.add(SPRITE, { x: 20, y: 480, half: 30 });
  run(10);
  t.ok(nearest(desktop.bodies) > 47, `${nearest(desktop.bodies)}`);
  t.ok(desktop.bodies.every(inside));
  t.equal(desktop.step(FRAME), false, 'at rest');
  t.equal(left.length, 0);
});

t.test('a heap that finds no room in a while lies as it lies', async (t) => {
  const { desktop, run, left } = make();
  for (let i = 0; i < 80; i += 1) desktop.add(SPRITE, { x: 20, y: 480, half: 30 });
  run(10);
  t.equal(desktop.step(FRAME), false, 'at rest');
  t.ok(desktop.bodies.every(inside));
  t.equal(left.length, 0);
  desktop.add(SPRITE, { x: 20, y: 480, half: 30 });
  t.equal(desktop.step(FRAME), true, 'something new, and they try again');
});

t.test('where there is no room they lie as they lie, and rest at once', async (t) => {
  const { desktop } = make();
  for (let i = 0; i < 200; i += 1) desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
  t.equal(desktop.step(FRAME), false);
  t.ok(desktop.bodies.every(({ x, y }) => x === 500 && y === 250));
});

t.test('one that rolls gives its speed to the one it meets', async (t) => {
  const { desktop, run, bumps } = make();
  const one = desktop.add(SPRITE, { x: 300, y: 250, half: 30, vx: 300 });
  const other = desktop.add(SPRITE, { x: 400, y: 250, half: 30 });
  run(0.3);
  t.equal(bumps.length, 1, 'once');
  t.ok(bumps[0] > 150 && bumps[0] < 300, `${bumps}`);
  t.ok(other.vx > one.vx && one.vx >= 0);
  t.ok(other.x > 400);
});

t.test('nothing goes over an edge because it was bumped into', async (t) => {
  for (const [x, y, vx, vy] of [
    [960, 250, 300, 0],
    [40, 250, -300, 0],
    [500, 30, 0, -300],
    [500, 470, 0, 300]
  ]) {
    const { desktop, run, left, bumps } = make();
    const one = desktop.add(SPRITE, { x: x - vx / 3, y: y - vy / 3, half: 30, vx, vy });
    const other = desktop.add(SPRITE, { x, y, half: 30 });
    run(5);
    t.ok(bumps.length > 0);
    t.same(left, []);
    t.ok(inside(one) && inside(other));
    // Thrown after all, it goes.
    desktop.hold(other);
    other.held = false;
    other.x = 10;
    desktop.push(other, 'left');
    run(2);
    t.same(left, ['left']);
  }
});

t.test('a throw flies over the others, and so does one that is held or jumps', async (t) => {
  const { desktop, run, left, bumps } = make();
  desktop.add(SPRITE, { x: 500, y: 250, half: 30, vx: 1500 });
  const lying = desktop.add(SPRITE, { x: 800, y: 250, half: 30 });
  run(0.5);
  t.same([left, bumps], [['right'], []]);
  t.equal(lying.x, 800);
  const held = desktop.add(SPRITE, { x: 800, y: 250, half: 30 });
  desktop.hold(held);
  run(0.5);
  t.equal(lying.x, 800, 'a hand carries over it');
});

t.test('who walks by key pushes others aside, and leaves over the edge', async (t) => {
  const { desktop, run, left } = make();
  const body = desktop.add(SPRITE, { x: 700, y: 250, half: 30 });
  const other = desktop.add(SPRITE, { x: 850, y: 255, half: 30 });
  desktop.selected = body;
  desktop.walkX = 1;
  run(6);
  t.same(left, ['right']);
  t.ok(inside(other) && other.x !== 850);
});

t.test('they stroll and rest by themselves, and never leave', async (t) => {
  const { desktop, run, left } = make();
  for (let i = 0; i < 12; i += 1) desktop.add(SPRITE, { x: 40 + i * 70, y: 470, half: 30 });
  const before = desktop.bodies.map(({ x, y }) => [x, y]);
  let strolled = new Set();
  let rested = 0;
  for (let second = 0; second < 120; second += 1) {
    run(1, true);
    for (const body of desktop.bodies) {
      if (body.stroll > 0) strolled = strolled.add(body);
      else rested += 1;
    }
  }
  t.equal(strolled.size, 12, 'every one');
  t.ok(rested > 100, 'not all the time');
  t.ok(desktop.bodies.every(inside));
  t.notSame(
    desktop.bodies.map(({ x, y }) => [x, y]),
    before
  );
  t.same(left, []);
  run(20);
  t.equal(desktop.step(FRAME), false, 'where motion troubles, all rests');
});

t.test('what was touched stays where it is for a while', async (t) => {
  const { desktop, run } = make();
  const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
  for (let i = 0; i < 600 && !(body.stroll > 0); i += 1) desktop.step(FRAME, true);
  t.ok(body.stroll > 0);
  desktop.hold(body);
  body.held = false;
  const { x } = body;
  run(5, true);
  t.equal(body.x, x);
  run(30, true);
  t.not(body.x, x);
});

t.test('eyes are closed for a moment, again and again', async (t) => {
  const { desktop } = make();
  const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
  let closed = 0;
  let blinks = 0;
  let before = false;
  for (let frame = 0; frame < 60 * 60; frame += 1) {
    desktop.step(FRAME, true);
    const now = body.blink < CLOSED;
    if (now) closed += 1;
    if (now && !before) blinks += 1;
    before = now;
  }
  t.ok(
    blinks >= 60 / PACE.blink[1] - 1 && blinks <= 60 / PACE.blink[0] + 1,
    `${blinks} in a minute`
  );
  t.ok(closed / blinks < 12, 'for a few frames each');
});

t.test(
  'it says when something will happen by itself, so that nobody need look before',
  async (t) => {
    const { desktop } = make();
    t.equal(desktop.due, Infinity);
    const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
    desktop.step(FRAME, true);
    const { due } = desktop;
    t.ok(due > 1 && due < 9, `${due}`);
    desktop.wait(3600);
    desktop.step(FRAME, true);
    t.ok(body.blink < CLOSED || body.stroll > 0, 'now, and no more than that after an hour');
    desktop.step(FRAME);
    t.equal(desktop.due, Infinity, 'nothing where motion troubles');
  }
);
