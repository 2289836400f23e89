import t from 'tap';
import { Desktop } from '../../lib/page/desktop.js';
import { opposite } from '../../lib/client/client.js';

const SPRITE = { id: 'x', picture: 'ball', at: 0.5, speed: [0, 0] };

/** A desktop of 1000 by 500 whose leavers are collected. */
function make({ open = true } = {}) {
  const left = [];
  const desktop = new Desktop((body, edge) =>
    left.push({ body, edge, ...desktop.crossing(body, edge) })
  );
  desktop.resize(1000, 500);
  desktop.open = open;
  const run = (seconds) => {
    for (let time = 0; time < seconds; time += 1 / 60) desktop.step(1 / 60);
  };
  return { desktop, left, run };
}

t.test('a sprite slides, slows down and rests', async (t) => {
  const { desktop, left, run } = make();
  const body = desktop.add(SPRITE, { x: 200, y: 250, half: 30, vx: 400 });
  t.equal(desktop.moving, true);
  run(8);
  t.equal(desktop.moving, false);
  t.equal(desktop.step(1 / 60), false);
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
    t.equal(desktop.hit(body.x, body.y, 0), null, 'what flies is not to be caught');

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

t.test('one that could not leave comes back, from every edge', async (t) => {
  for (const [vx, vy] of [
    [-3000, 0],
    [3000, 0],
    [0, -3000],
    [0, 3000]
  ]) {
    const { desktop, left, run } = make();
    const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30, vx, vy });
    run(0.7);
    t.equal(left.length, 1);
    desktop.back(body);
    t.equal(body.flight, '');
    run(0.25);
    t.ok(body.x >= 0 && body.x <= 1000 && body.y >= 0 && body.y <= 500, `${body.x} ${body.y}`);
    t.equal(left.length, 1, 'it does not leave again by itself at once');
  }
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

t.test('it walks, and over an edge it is thrown; it hops and lands', async (t) => {
  const { desktop, left, run } = make();
  const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
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
  run(3);
  t.equal(left[0].edge, 'right');
  desktop.walkX = 0;
});

t.test('a jump survives a first frame in which no time has passed', async (t) => {
  const { desktop } = make();
  const body = desktop.add(SPRITE, { x: 500, y: 250, half: 30 });
  desktop.selected = body;
  desktop.jump();
  t.equal(desktop.step(0), true, 'it moves');
  desktop.step(1 / 60);
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
  t.equal(desktop.hit(505, 250, 0), high);
  desktop.raise(low);
  t.equal(desktop.hit(505, 250, 0), low);
  t.equal(desktop.hit(100, 100, 0), null);
  t.equal(desktop.hit(460, 250, 14), low, 'near enough for a finger');
  desktop.resize(500, 1000);
  t.same([low.x, low.y], [250, 500]);
  desktop.selected = low;
  desktop.gone(low);
  desktop.gone(low);
  t.equal(desktop.bodies.length, 1);
  t.equal(desktop.selected, null);
});

t.test('a hand that aims at what moves hits it where it was a moment ago', async (t) => {
  const { desktop, run } = make();
  const body = desktop.add(SPRITE, { x: 200, y: 250, half: 30, vx: 600, vy: -100 });
  const aimed = { x: body.x, y: body.y };
  run(0.12);
  t.ok(body.x - 30 > aimed.x, 'it is not there any more');
  t.equal(desktop.hit(aimed.x, aimed.y, 0), body);
  t.equal(desktop.hit(aimed.x - 60, aimed.y, 0), null, 'it has never been there');
  t.equal(desktop.hit(body.x + 60, body.y, 0), null, 'nor is it there yet');
  const still = desktop.add(SPRITE, { x: aimed.x, y: aimed.y, half: 30 });
  desktop.raise(body);
  t.equal(desktop.hit(aimed.x, aimed.y, 0), still, 'what is there comes first');
});

t.test('what hangs over an edge, and what was dragged past it, is pushed over', async (t) => {
  for (const [edge, x, y] of [
    ['left', 14, 250],
    ['left', -300, 250],
    ['right', 986, 250],
    ['up', 500, 0],
    ['down', 500, 640],
    ['down', -20, 900]
  ]) {
    const { desktop, left, run } = make();
    t.equal(desktop.overhang(x, y, 30), edge, `${x} ${y}`);
    const body = desktop.add(SPRITE, {
      x: Math.min(1000, Math.max(0, x)),
      y: Math.min(500, Math.max(0, y)),
      half: 30
    });
    desktop.push(body, edge);
    run(0.3);
    t.same(
      left.map((one) => one.edge),
      [edge]
    );
    t.ok(left[0].speed[0] > 0.7, 'as fast as a throw');
  }
  const { desktop } = make();
  t.equal(desktop.overhang(30, 250, 30), '', 'what stands at an edge stays');
  const body = desktop.add(SPRITE, { x: 0, y: 250, half: 30, vx: 500 });
  t.equal(desktop.isFlungBack(body, 'left'), true);
  t.equal(desktop.isFlungBack(body, 'right'), false);
  body.vx = 20;
  t.equal(desktop.isFlungBack(body, 'left'), false, 'a hand trembles');
});

t.test('a window squeezed to nothing and opened again keeps every place', async (t) => {
  const { desktop } = make();
  const body = desktop.add(SPRITE, { x: 250, y: 400, half: 30 });
  for (const [width, height] of [
    [800, 0],
    [0, 600],
    [0, 0]
  ]) {
    desktop.resize(width, height);
    desktop.step(1 / 60);
    desktop.resize(800, 600);
    t.ok(Math.abs(body.x - 200) < 1e-6, `${body.x}`);
    t.ok(Math.abs(body.y - 480) < 1e-6, `${body.y}`);
  }
});

for (const from of ['left', 'right', 'up', 'down']) {
  t.test(`what only flies across, from the ${from}: over the opposite edge`, async (t) => {
    const { desktop, left, run } = make();
    const sprite = { ...SPRITE, at: 0.25, speed: [1, 0] };
    const { body, time } = desktop.pass(sprite, from, 30);
    t.equal(body.flight, opposite(from));
    t.equal(time, 1);
    run(time / 2);
    const level = from === 'left' || from === 'right';
    const share = level ? body.x / 1000 : body.y / 500;
    t.ok(share > 0.4 && share < 0.6, `half way: ${share}`);
    t.equal(desktop.hit(body.x, body.y, 0), null, 'not to be caught');
    run(time);
    t.equal(left.length, 0, 'its throw is for who asked');
    const { at } = desktop.crossing(body, body.flight);
    t.ok(Math.abs(at - 0.25) < 1e-9);
    desktop.back(body);
    run(0.3);
    t.ok(body.x >= 0 && body.x <= 1000 && body.y >= 0 && body.y <= 500, 'it can come back');
    t.ok(desktop.pass({ ...SPRITE, speed: [0, 0] }, from, 30).time < 2, 'the slowest is helped');
    t.ok(desktop.pass({ ...SPRITE, speed: [20, 0] }, from, 30).time > 0.2);
  });
}
