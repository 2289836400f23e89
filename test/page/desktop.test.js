import { getEventListeners } from 'node:events';

import t from 'tap';

import { opposite } from '../../lib/client/client.js';
import { publicWorld } from '../../lib/operator/live-counts.js';
import { Announcer, displayName, senderWords, describeSprite } from '../../lib/page/announcer.js';
import { Companion } from '../../lib/page/companion.js';
import { Desktop } from '../../lib/page/desktop.js';
import { Hands } from '../../lib/page/hands.js';
import { EYES_CLOSED_TIME, PACE } from '../../lib/page/life.js';
import { PollTurns } from '../../lib/page/poll-turns.js';
import { Preferences } from '../../lib/page/preferences.js';
import { describeWorld, readWorld, summarizeWorld } from '../../lib/page/ring.js';
import { Store } from '../../lib/page/store.js';
import { Random } from '../fuzz/random.js';
import { VirtualTime } from '../support/virtual-time.js';

const SPRITE = { id: 'x', picture: 'ball', at: 0.5, speed: [0, 0] };

const FRAME = 1 / 60;

/** Makes a desktop of 1000 by 500, and lists of its leaving bodies and its bumps. */
function make({ open = true } = {}) {
  const left = [];
  const bumps = [];
  const random = new Random(7);
  const desktop = new Desktop(
    (body, edge) => left.push({ body, edge, ...desktop.crossing(body, edge) }),
    (strength) => bumps.push(strength),
    () => random.fraction()
  );
  desktop.resize(1000, 500);
  desktop.isOpen = open;
  const run = (seconds, lively = false) => {
    for (let time = 0; time < seconds; time += FRAME) desktop.step(FRAME, lively);
  };
  return { desktop, left, bumps, run };
}

const edgesOf = (left) => left.map(({ edge }) => edge);

const inside = ({ x, y }) => x >= 0 && x <= 1000 && y >= 0 && y <= 500;

t.test('a sprite slides, slows down and rests', async (t) => {
  const { desktop, left, run } = make();
  const body = desktop.add(SPRITE, { x: 200, y: 250, half: 30, vx: 400 });
  t.equal(desktop.isMoving, true);
  run(8);
  t.equal(desktop.isMoving, false);
  t.equal(desktop.step(FRAME), false);
  t.ok(body.x > 450 && body.x < 600, `${body.x}`);
  t.equal(left.length, 0);
});

for (const [edge, vx, vy, at, speed] of [
  ['left', -2000, 50, 0.5, [2, 0.1]],
  ['right', 2000, -50, 0.5, [2, -0.1]],
  ['up', 100, -1000, 0.5, [2, 0.1]],
  ['down', -100, 1000, 0.5, [2, -0.1]]
]) {
  t.test(`over the ${edge} edge: where and how fast, in lengths of edges`, async (t) => {
    const { desktop, left, run } = make();
    const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30, vx, vy });
    run(0.6);
    t.equal(left.length, 1, 'told once');
    t.equal(left[0].edge, edge);
    t.equal(body.flight, edge);
    t.ok(Math.abs(left[0].at - at) < 0.06, `at ${left[0].at}`);
    t.ok(
      left[0].speed[0] > speed[0] * 0.6 && left[0].speed[0] <= speed[0],
      `across ${left[0].speed[0]}`
    );
    t.equal(Math.sign(left[0].speed[1]), Math.sign(speed[1]));
    t.equal(desktop.bodyAt(body.x, body.y, 0), null, 'what flies is not to be caught');

    const other = make();
    const sprite = { ...SPRITE, at: left[0].at, speed: left[0].speed };
    const entered = other.desktop.enter(sprite, opposite(edge), 30);
    const again = other.desktop.crossing({ ...entered }, edge);
    t.ok(Math.abs(again.at - left[0].at) < 1e-9, 'it enters at the same height');
    t.ok(Math.abs(again.speed[0] - left[0].speed[0]) < 1e-9, 'as fast');
    t.ok(Math.abs(again.speed[1] - left[0].speed[1]) < 1e-9, 'and in the same direction');
    other.run(0.3);
    t.equal(other.left.length, 0, 'it does not leave by the edge it came in by');
    t.ok(entered.x > 0 && entered.x < 1000 && entered.y > 0 && entered.y < 500);
  });
}

t.test('one too slow to get over the edge is helped in', async (t) => {
  for (const from of ['left', 'right', 'up', 'down']) {
    const { desktop, run, left } = make();
    const body = desktop.enter(SPRITE, from, 30);
    run(10);
    t.equal(left.length, 0);
    t.ok(
      body.x >= 29 && body.x <= 971 && body.y >= 29 && body.y <= 471,
      `${from}: ${body.x} ${body.y}`
    );
  }
});

t.test('through a corner it leaves by one edge, within its length', async (t) => {
  const { desktop, left, run } = make();
  desktop.add(SPRITE, { x: 20, y: 20, half: 30, vx: -3000, vy: -3000 });
  run(1);
  t.equal(left.length, 1);
  t.ok(left[0].body.y >= 0 && left[0].body.x <= 1000);
});

t.test('a sprite in flight stays out of sight, then looks back over its edge', async (t) => {
  const { desktop, run } = make();
  const body = desktop.add(SPRITE, { x: 950, y: 250, half: 30, vx: 3000 });
  run(0.5);
  t.ok(body.x > 1030, 'out of sight');
  run(1);
  t.ok(body.x > 1000 && body.x < 1030, 'half to be seen');
});

t.test('closed edges are walls', async (t) => {
  const { desktop, left, run } = make({ open: false });
  for (const [vx, vy] of [
    [-5000, 100],
    [5000, 100],
    [100, -5000],
    [100, 5000],
    [9000, 9000]
  ]) {
    desktop.add(SPRITE, { x: 500, y: 250, half: 30, vx, vy });
  }
  const inTheEdge = desktop.add(SPRITE, { x: 0, y: 500, half: 30 });
  run(12);
  t.equal(left.length, 0);
  for (const { x, y } of desktop.bodies)
    t.ok(x >= 20 && x <= 980 && y >= 20 && y <= 480, `${x} ${y}`);
  t.ok(inTheEdge.x > 25, 'what stood in an edge is pushed in');
});

t.test('it walks, and aside goes what is in its way; it hops and lands', async (t) => {
  const { desktop, left, run } = make();
  const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
  const other = desktop.add(SPRITE, { x: 850, y: 255, half: 30 });
  desktop.selected = body;
  desktop.walkX = 1;
  run(0.5);
  t.ok(body.x > 560 && body.y === 250);
  desktop.jump();
  run(0.1);
  t.ok(body.z > 10);
  const { vz } = body;
  desktop.jump();
  t.equal(body.vz, vz, 'not from the air');
  run(1);
  t.equal(body.z, 0);
  run(6);
  t.same(edgesOf(left), ['right']);
  t.ok(inside(other) && other.x !== 850);
});

t.test('a jump survives a first frame in which no time has passed', async (t) => {
  const { desktop } = make();
  const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
  desktop.selected = body;
  desktop.jump();
  t.equal(desktop.step(0), true, 'it moves');
  desktop.step(FRAME);
  t.ok(body.z > 0);
});

t.test('a long sleep is no leap', async (t) => {
  const { desktop } = make();
  const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30, vx: 100 });
  desktop.step(3600);
  t.ok(body.x < 510);
});

t.test('a new size keeps every place; the topmost is hit first; raising puts on top', async (t) => {
  const { desktop } = make();
  const low = desktop.add({ ...SPRITE, id: 'low' }, { x: 500, y: 250, half: 30 });
  const high = desktop.add({ ...SPRITE, id: 'high' }, { x: 510, y: 250, half: 30 });
  t.equal(desktop.bodyAt(505, 250, 0), high);
  desktop.raise(low);
  t.equal(desktop.bodyAt(505, 250, 0), low);
  t.equal(desktop.bodyAt(100, 100, 0), null);
  t.equal(desktop.bodyAt(460, 250, 14), low, 'near enough for a finger');
  desktop.resize(500, 1000);
  t.same([low.x, low.y], [250, 500]);
  desktop.selected = low;
  desktop.remove(low);
  desktop.remove(low);
  t.equal(desktop.bodies.length, 1);
  t.equal(desktop.selected, null);
});

t.test('a hand that aims at what moves hits it where it was a moment ago', async (t) => {
  const { desktop, run } = make();
  const body = desktop.add(SPRITE, { x: 200, y: 250, half: 30, vx: 600, vy: -100 });
  const aimed = { x: body.x, y: body.y };
  run(0.12);
  t.ok(body.x - 30 > aimed.x, 'it is not there any more');
  t.equal(desktop.bodyAt(aimed.x, aimed.y, 0), body);
  t.equal(desktop.bodyAt(aimed.x - 60, aimed.y, 0), null, 'it has never been there');
  t.equal(desktop.bodyAt(body.x + 60, body.y, 0), null, 'nor is it there yet');
  const still = desktop.add(SPRITE, { x: aimed.x, y: aimed.y, half: 30 });
  desktop.raise(body);
  t.equal(desktop.bodyAt(aimed.x, aimed.y, 0), still, 'what is there comes first');
});

/** Makes Hands on a desktop, a function that sends pointer events, and a list of opened bodies. */
function makeHands(desktop) {
  const listeners = {};
  const element = {
    addEventListener: (type, act) => (listeners[type] = act),
    getBoundingClientRect: () => ({ left: 0, right: 1000, top: 500, bottom: 560 }),
    setPointerCapture() {},
    classList: { remove() {}, toggle() {} }
  };
  const opened = [];
  const callbacks = {
    onGrab() {},
    onLetGo() {},
    onPutAway() {},
    onOpen: (body) => opened.push(body)
  };
  const hands = new Hands({ canvas: element, tray: element }, desktop, callbacks);
  const point = (x, y, types, pointerId = 1) => {
    const where = { offsetX: x, offsetY: y, clientX: x, clientY: y };
    for (const type of types) listeners[type]({ ...where, pointerId, button: 0, timeStamp: 0 });
  };
  return { hands, opened, point };
}

t.test('a double click opens what moves, aimed where it was', async (t) => {
  const { desktop, left, run } = make();
  const { hands, opened, point } = makeHands(desktop);
  const body = desktop.add(SPRITE, { x: 200, y: 250, half: 30, vx: 600 });
  run(0.12);
  point(200, 250, ['pointerdown', 'pointerup', 'pointerdown', 'pointerup', 'dblclick']);
  t.strictSame([opened, left, hands.isHolding], [[body], [], false]);
});

t.test('two fingers on one sprite: the first has it', async (t) => {
  const { desktop } = make();
  const { hands, point } = makeHands(desktop);
  const body = desktop.add(SPRITE, { x: 200, y: 250, half: 30 });
  for (const finger of [1, 2]) point(200, 250, ['pointerdown'], finger);
  point(300, 300, ['pointermove', 'pointerup'], 2);
  t.strictSame([body.x, body.y, body.held], [200, 250, true]);
  point(220, 250, ['pointermove', 'pointerup']);
  t.strictSame([body.x, body.held, hands.isHolding], [220, false, false]);
});

t.test('what is put away has its place in the window as that is by then', async (t) => {
  const { desktop } = make();
  const { point } = makeHands(desktop);
  const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
  point(500, 250, ['pointerdown']);
  desktop.resize(400, 500);
  point(9, 509, ['pointermove', 'pointerup']); // over the tray
  t.strictSame([body.x, body.y], [200, 250]);
});

t.test(
  'what is dragged to an edge or past it is thrown; what was tapped there stays',
  async (t) => {
    for (const [edge, x, y] of [
      ['left', 14, 250],
      ['left', -300, 250],
      ['right', 986, 250],
      ['up', 500, 0],
      ['down', 500, 640],
      ['down', -20, 900]
    ]) {
      const { desktop, left, run } = make();
      const { point } = makeHands(desktop);
      desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
      point(500, 250, ['pointerdown']);
      point(x, y, ['pointermove', 'pointerup']);
      run(0.3);
      t.same(edgesOf(left), [edge], `${x} ${y}`);
      t.ok(left[0].speed[0] > 0.7, 'as fast as a throw');
    }
    const { desktop, left, run } = make();
    desktop.add(SPRITE, { x: 14, y: 250, half: 30 });
    makeHands(desktop).point(14, 250, ['pointerdown', 'pointerup']);
    run(0.3);
    t.same(left, []);
    t.equal(desktop.overhang(30, 250, 30), '', 'what stands at an edge stays');
    const body = desktop.add(SPRITE, { x: 0, y: 250, half: 30, vx: 500 });
    t.equal(desktop.isFlungBack(body, 'left'), true);
    t.equal(desktop.isFlungBack(body, 'right'), false);
    body.vx = 20;
    t.equal(desktop.isFlungBack(body, 'left'), false, 'a hand trembles');
  }
);

t.test('a window squeezed to nothing and opened again keeps every place', async (t) => {
  const { desktop } = make();
  const body = desktop.add(SPRITE, { x: 250, y: 400, half: 30 });
  for (const [width, height] of [
    [800, 0],
    [0, 600],
    [0, 0]
  ]) {
    desktop.resize(width, height);
    desktop.step(FRAME);
    desktop.resize(800, 600);
    t.ok(Math.abs(body.x - 200) < 1e-6, `${body.x}`);
    t.ok(Math.abs(body.y - 480) < 1e-6, `${body.y}`);
  }
});

for (const from of ['left', 'right', 'up', 'down']) {
  t.test(`what only flies across, from the ${from}: over the opposite edge`, async (t) => {
    const { desktop, left, run } = make();
    const sprite = { ...SPRITE, at: 0.25, speed: [1, 0] };
    const { body, time } = desktop.passThrough(sprite, from, 30);
    t.equal(body.flight, opposite(from));
    t.equal(time, 1);
    run(time / 2);
    const level = from === 'left' || from === 'right';
    const share = level ? body.x / 1000 : body.y / 500;
    t.ok(share > 0.4 && share < 0.6, `half way: ${share}`);
    t.equal(desktop.bodyAt(body.x, body.y, 0), null, 'not to be caught');
    run(time);
    t.equal(left.length, 0, 'the caller that asked throws it');
    const { at } = desktop.crossing(body, body.flight);
    t.ok(Math.abs(at - 0.25) < 1e-9);
    desktop.returnFromEdge(body);
    t.equal(body.flight, '');
    run(0.3);
    t.ok(inside(body), 'it can come back');
    t.equal(left.length, 0, 'it does not leave again by itself at once');
    t.ok(
      desktop.passThrough({ ...SPRITE, speed: [0, 0] }, from, 30).time < 2,
      'the slowest is helped'
    );
    t.ok(desktop.passThrough({ ...SPRITE, speed: [20, 0] }, from, 30).time > 0.2);
  });
}

t.test(
  'what comes around is its own, or a stranger’s still; not with another picture',
  async (t) => {
    const { desktop } = make();
    const companion = new Companion(desktop, () => {});
    const [own, guest] = ['own', 'guest'].map((id) =>
      desktop.add({ ...SPRITE, id }, { x: 500, y: 250, half: 30 })
    );
    guest.stranger = true;
    for (const body of [own, guest]) companion.rememberThrow(body);
    t.equal(companion.findThrown(own.sprite).stranger, false);
    t.equal(companion.findThrown(guest.sprite).stranger, true);
    for (const other of [{ picture: 'star' }, { photo: 'another' }, { id: 'none' }]) {
      t.equal(companion.findThrown({ ...own.sprite, ...other }), undefined);
    }
  }
);

/** Bumps, strolls and blinks of sprites. */

/** @returns {number} the smallest distance of two bodies */
function nearest(bodies) {
  let least = Infinity;
  for (const [i, a] of bodies.entries()) {
    for (const b of bodies.slice(i + 1)) least = Math.min(least, Math.hypot(a.x - b.x, a.y - b.y));
  }
  return least;
}

for (const [what, seconds, xs, y] of [
  ['what lies on another one', 3, [300, 300, 320], 250],
  ['a heap in a corner', 10, Array(20).fill(20), 480]
]) {
  t.test(`${what} finds room, and rests`, async (t) => {
    const { desktop, run, left, bumps } = make();
    for (const x of xs) desktop.add(SPRITE, { x, y, half: 30 });
    run(seconds);
    t.ok(nearest(desktop.bodies) > 47, `${nearest(desktop.bodies)}`);
    t.ok(desktop.bodies.every(inside));
    t.equal(desktop.step(FRAME), false, 'at rest');
    t.same([left, bumps], [[], []], 'no sprite has left, and nothing was heard');
  });
}

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
    // A throw ends `tame`: the body leaves.
    desktop.pickUp(other);
    other.held = false;
    other.x = 10;
    desktop.pushOver(other, 'left');
    run(2);
    t.same(edgesOf(left), ['left']);
  }
});

t.test('a throw flies over the others, and so does one that is held or jumps', async (t) => {
  const { desktop, run, left, bumps } = make();
  desktop.add(SPRITE, { x: 500, y: 250, half: 30, vx: 1500 });
  const lying = desktop.add(SPRITE, { x: 800, y: 250, half: 30 });
  run(0.5);
  t.same([edgesOf(left), bumps], [['right'], []]);
  t.equal(lying.x, 800);
  const held = desktop.add(SPRITE, { x: 800, y: 250, half: 30 });
  desktop.pickUp(held);
  run(0.5);
  t.equal(lying.x, 800, 'a hand carries over it');
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
  desktop.pickUp(body);
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
    const now = body.blink < EYES_CLOSED_TIME;
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

t.test('it says when something will happen by itself', async (t) => {
  const { desktop } = make();
  t.equal(desktop.nextLifeIn, Infinity);
  const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
  desktop.step(FRAME, true);
  const { nextLifeIn: due } = desktop;
  t.ok(due > 1 && due < 9, `${due}`);
  desktop.advanceRest(3600);
  desktop.step(FRAME, true);
  t.ok(
    body.blink < EYES_CLOSED_TIME || body.stroll > 0,
    'now, and no more than that after an hour'
  );
  desktop.step(FRAME);
  t.equal(desktop.nextLifeIn, Infinity, 'nothing where motion troubles');
});

/** The ring of a world in words; its picture is in test/page/world.browser.test.js. */

const seam = (peer, from, to) => ({ peer, from, to });
const world = (name, names, left, right, more = {}) => ({
  name,
  state: 'member',
  servers: [...names].map((one, at) => ({ name: one, rows: at + 1 })),
  seams: { left, right },
  ...more
});

t.test('a desktop that is alone', async (t) => {
  const alone = readWorld(world('a', 'a', [], []));
  t.equal(summarizeWorld(alone), 'server a, alone in its world');
  t.equal(
    describeWorld(alone),
    'This is server a, alone in its world: every row ends at its own other end.'
  );
});

t.test('one of a ring', async (t) => {
  const b = readWorld(world('b', 'abc', [seam('a', 0, 1), seam('c', 1, 2)], [seam('c', 0, 2)]));
  t.equal(summarizeWorld(b), 'server b, one of 3');
  t.equal(
    describeWorld(b),
    'This is server b, one of 3 that are one torus, in this order: a with 1 row, b with 2 rows and' +
      ' c with 3 rows, and around. Off the right end of a row it goes on at c, off the left end' +
      ' at a in rows 1 to 1 and at c in rows 2 to 2.'
  );
  const off = { ...b, state: 'cut-off', seams: { left: [], right: [] } };
  t.equal(summarizeWorld(off), 'server b, one of 3, cut off');
  t.match(describeWorld(off), /goes on at its own other end, .* no contact with the others now\.$/);
  t.match(describeWorld(b, 70), /one of 70 .* and 67 servers further away, and around/);
});

t.test('what is none is not shown', async (t) => {
  const good = world('a', 'ab', [seam('b', 0, 1)], []);
  t.ok(readWorld(good));
  const bad = [
    ...[undefined, null, 7, 'a', [], {}, { ...good, name: 'c' }, { ...good, name: '<b>' }],
    ...[
      { ...good, servers: null },
      { ...good, servers: [{ name: 'a' }] },
      { ...good, seams: {} }
    ],
    { ...good, servers: [{ name: 'a', rows: -1 }] },
    { ...good, seams: { left: [seam('x y', 0, 1)], right: [] } },
    { ...good, seams: { left: [null], right: [] } },
    { ...good, seams: { left: [seam('b', 0, '1')], right: [] } }
  ];
  for (const one of bad) t.equal(readWorld(one), null, JSON.stringify(one));
});

t.test('of a large world a client is told of the servers around its own', async (t) => {
  const servers = Array.from({ length: 1000 }, (_, at) => ({
    ...{ name: `s${String(at).padStart(3, '0')}`, rows: 9 },
    ...{ tag: '123456', url: 'http://secret' }
  }));
  const whole = (name) => ({
    ...{ name, state: 'member', clients: 5, problem: null, epoch: 7, outboxes: [], refused: {} },
    ...{ servers, seams: { left: Array(100).fill(seam('x', 0, 1)), right: [seam('y', 0, 9)] } }
  });
  for (const [name, first] of [
    ['s000', 's000'],
    ['s500', 's468'],
    ['s999', 's936']
  ]) {
    const told = publicWorld(whole(name));
    t.equal(told.servers.length, 64);
    t.equal(told.servers[0].name, first);
    t.ok(told.servers.some((one) => one.name === name));
    t.ok(readWorld(told));
    t.strictSame(Object.keys(told), ['name', 'state', 'clients', 'servers', 'seams']);
    t.notMatch(JSON.stringify(told), /secret|123456/);
    t.ok(JSON.stringify(told).length < 8192);
  }
  t.equal(publicWorld(null), null);
});

/** Simulates the locks, as far as polls use them, and the channel of a browser, for several tabs in one process. */
function shareTabs(t, clock) {
  const held = new Set();
  const pending = [];
  const channels = new Set();
  const grantLock = (name) => {
    const at = pending.findIndex((one) => one.name === name);
    if (at < 0) held.delete(name);
    else pending.splice(at, 1)[0].go();
  };
  const request = async (name, { ifAvailable, signal }, callback) => {
    if (held.has(name) && ifAvailable) return callback(null);
    const wait = (go, fail) => {
      const abort = () => fail(signal.reason);
      const enter = () => {
        signal.removeEventListener('abort', abort);
        go();
      };
      pending.push({ name, go: enter });
      signal.addEventListener('abort', abort);
    };
    if (held.has(name)) await new Promise(wait);
    else held.add(name);
    return Promise.resolve(callback({ name })).finally(() => grantLock(name));
  };
  class Channel {
    constructor() {
      channels.add(this);
    }
    postMessage(data) {
      for (const one of channels) if (one !== this) one.onmessage({ data });
    }
  }
  const locks = { request, query: async () => ({ pending: [...pending] }) };
  const shared = {
    navigator: { locks },
    BroadcastChannel: Channel,
    setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout
  };
  for (const [name, value] of Object.entries(shared)) t.intercept(globalThis, name, { value });
  t.intercept(performance, 'now', { value: clock.now });
}

t.test('however many tabs there are, each poll is answered in time', async (t) => {
  const TABS = 12;
  const clock = new VirtualTime();
  shareTabs(t, clock);
  // A server that answers each poll when its hold is over.
  const fetch = (href, { signal }) =>
    new Promise((resolve, reject) => {
      const hold = Number(new URL(href).searchParams.get('hold'));
      const timer = clock.setTimeout(() => resolve(hold), hold * 1000);
      signal.addEventListener('abort', () => {
        clock.clearTimeout(timer);
        reject(signal.reason);
      });
    });
  t.intercept(globalThis, 'fetch', { value: fetch });
  for (const hold of [5, 120]) {
    const signals = Array.from({ length: TABS }, () => new AbortController().signal);
    const polled = signals.map((signal) =>
      new PollTurns().fetch(`http://torus.test/poll/me?ack=0&hold=${hold}`, { signal })
    );
    let answered = 0;
    for (const poll of polled) poll.then(() => (answered += 1));
    await clock.run((hold * 1.25 + 15) * 1000); // the client's timeout of a poll
    t.equal(answered, TABS, `${hold} s`);
    const listeners = (signal) => getEventListeners(signal, 'abort').length;
    t.ok(
      signals.every((signal) => listeners(signal) === 1),
      'no turn leaves a listener behind'
    );
  }
  const { signal } = new AbortController();
  const lone = new PollTurns().fetch('http://torus.test/poll/me?hold=120', { signal });
  await clock.run(120_000);
  t.equal(await lone, 120, 'alone it polls as ever');
});

t.test('news are heard while they pour in, the newest of each subject', async (t) => {
  const clock = new VirtualTime();
  t.intercept(globalThis, 'setTimeout', { value: clock.setTimeout });
  const news = { textContent: '' };
  const announcer = new Announcer({}, news, {});
  announcer.announce('You took a star.');
  for (const number of [1, 2, 3, 4]) {
    announcer.announce(`Fish ${number} came in.`, 'came in');
    await clock.run(300);
  }
  t.equal(news.textContent, 'You took a star. Fish 3 came in.');
});

t.test('a stranger names things, and turns no words around them', async (t) => {
  const evil = '\u202E\u2067Boo\u200F';
  t.equal(
    `${describeSprite({ picture: 'ghost', name: evil })}${senderWords({ by: evil })}`,
    'the ghost “Boo” from Boo'
  );
  t.equal(displayName(''), '');
  t.equal(senderWords({ by: '' }), '');
});

/** Simulates a browser's storage. */
function storeIn(t) {
  const localStorage = Object.create({
    getItem(key) {
      return this[key] ?? null;
    },
    setItem(key, text) {
      this[key] = text;
    },
    removeItem(key) {
      delete this[key];
    }
  });
  t.intercept(globalThis, 'localStorage', { value: localStorage });
  return localStorage;
}

t.test('a shelf of the future is taken: a clock was set back', async (t) => {
  const localStorage = storeIn(t);
  const put = (key, at) =>
    localStorage.setItem(
      `sprites.shelf.${key}`,
      JSON.stringify({ at, desktop: { sprites: [key] } })
    );
  put('past', Date.now() - 60_000);
  put('now', Date.now());
  put('future', Date.now() + 60_000);
  t.strictSame(new Store().takeShelved(10), ['past', 'future']);
  t.strictSame(Object.keys(localStorage), ['sprites.shelf.now']);
});

t.test('a desktop that is more than full takes nothing off a shelf', async (t) => {
  const localStorage = storeIn(t);
  const desktop = { sprites: ['one', 'two', 'three'] };
  localStorage.setItem('sprites.shelf.a', JSON.stringify({ at: 0, desktop }));
  t.strictSame(new Store().takeShelved(-1), []);
  t.strictSame(new Store().takeShelved(2), ['one', 'two']);
  t.strictSame(new Store().takeShelved(2), ['three']);
});

t.test('a preference is kept beside those that another tab has kept meanwhile', async (t) => {
  storeIn(t);
  const [one, other] = [new Preferences(), new Preferences()];
  one.set('desktop', 'Ada');
  other.set('sound', false);
  const next = new Preferences();
  t.strictSame([next.get('desktop'), next.get('sound'), next.get('lively')], ['Ada', false, true]);
});
