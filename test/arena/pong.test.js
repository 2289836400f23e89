import { readFileSync } from 'node:fs';
import t from 'tap';

import { HEIGHT, PADDLE, RADIUS, WIDTH, reduce } from '../../lib/arena/games/pong/reduce.js';
import { readFormat } from '../../lib/arena/format.js';
import { moment, playOn } from '../support/arena.js';

/** Pong as a pure function: what the server's reducer does with everybody's thumbs. */

const settings = { points: 3, speed: 100 };

/** Players by number and thumb. */
const room = (thumbs, more = {}) => moment({ settings, columns: ['y'], players: thumbs, ...more });

/** Two thumbs that follow the ball, each by its share, for a while. */
function rally(memory, ms, { left = 1, right = 1, more = {} } = {}) {
  const values = [];
  playOn(memory, ms, (time, last) => {
    const ball = ((last?.ball[1] ?? HEIGHT / 2) - PADDLE.half) / (HEIGHT - 2 * PADDLE.half);
    const to = (share) => ({ y: Math.min(1, Math.max(0, ball * share)) });
    const now = room({ 1: to(left), 2: to(right) }, { time, ...more });
    values.push(reduce(now, memory));
    return values.at(-1);
  });
  return values;
}

t.test('what inputs.json says is good', async (t) => {
  const url = new URL('../../lib/arena/games/pong/inputs.json', import.meta.url);
  t.strictSame(readFormat(readFileSync(url, 'utf8')).pages, ['play', 'result']);
});

t.test('each half moves its paddle to its mean, no quicker than a paddle moves', async (t) => {
  const memory = {};
  const up = room({ 1: { y: 0 }, 3: { y: 0.5 }, 2: { y: 1 }, 4: { y: 1 } });
  const first = reduce({ ...up, step: 50 }, memory);
  t.strictSame(first.halves, [2, 2]);
  t.equal(first.paddles[0], HEIGHT / 2 - 0.7, 'on its way: 14 units a second');
  playOn(memory, 2000, (time) => reduce({ ...up, time, step: 50 }, memory));
  const { paddles } = reduce({ ...up, step: 0 }, memory);
  t.equal(paddles[0], 2.775, 'a quarter of its way');
  t.equal(paddles[1], HEIGHT - PADDLE.half);
});

t.test('two halves that follow the ball play on, the ball within the field', async (t) => {
  const values = rally({}, 60_000);
  t.strictSame(values.at(-1).score, [0, 0]);
  t.ok(values.at(-1).hits > 20);
  const isWithin = ({ ball: [x, y] }) => x > 0 && x < WIDTH && y >= RADIUS && y <= HEIGHT - RADIUS;
  t.ok(values.every(isWithin));
});

t.test('a half that misses loses points, then the round', async (t) => {
  const memory = {};
  const values = rally(memory, 60_000, { left: 0 });
  const end = values.find(({ over }) => over);
  t.match(end, { score: [0, 3], winner: 'right', page: 'result', over: true });
  t.ok(values.some(({ score }) => score[1] === 1));
  t.ok(values.filter(({ rally }) => rally === 2).length > 10, 'a serve after each point');
  const speeds = values.map(({ serving }) => serving);
  t.ok(speeds[0] && speeds.includes(false));
});

t.test('a half with nobody in it is the machine, which can be beaten', async (t) => {
  const memory = {};
  const values = [];
  playOn(memory, 120_000, (time, last) => {
    // A thumb that meets the ball with the very end of the paddle: steep returns.
    const ball = last?.ball[1] ?? HEIGHT / 2;
    const y = (ball + 0.9 - PADDLE.half) / (HEIGHT - 2 * PADDLE.half);
    const thumbs = { 1: { y: Math.min(1, Math.max(0, y)) } };
    values.push(reduce(room(thumbs, { time }), memory));
    return values.at(-1).over ? undefined : values.at(-1);
  });
  t.strictSame(values[0].halves, [1, 0]);
  t.ok(
    values.some(({ hits }) => hits > 1),
    'it returns the ball'
  );
  t.ok(values.at(-1).score[0] > 0, `it loses points: ${values.at(-1).score}`);
});

t.test('a thumb that lies still loses to the machine, wherever it lies', async (t) => {
  for (const y of [0, 0.25, 0.5, 0.75, 1]) {
    const values = [];
    const memory = {};
    playOn(memory, 120_000, (time) => {
      values.push(reduce(room({ 1: { y } }, { time }), memory));
      return values.at(-1).over ? undefined : values.at(-1);
    });
    t.ok(values.at(-1).over, `at ${y} it ends: ${values.at(-1).score}`);
  }
});

t.test('nobody there: the ball waits; who leaves is missed by his half only', async (t) => {
  const memory = {};
  const idle = reduce(room({}, { step: 250 }), memory);
  t.strictSame(
    [idle.ball, idle.halves],
    [
      [WIDTH / 2, HEIGHT / 2],
      [0, 0]
    ]
  );
  t.strictSame(reduce(room({}, { step: 250 }), memory), idle, 'the same value: nobody is woken');
  reduce(room({ 1: { y: 0 }, 2: { y: 0 } }), memory);
  const { halves } = reduce(room({ 2: { y: 0 } }), memory);
  t.strictSame(halves, [0, 1]);
});

t.test('the same thumbs make the same game; another round serves otherwise', async (t) => {
  const ball = (round) => rally({}, 4000, { more: { round } }).at(-1).ball;
  t.strictSame(ball(1), ball(1));
  t.not(new Set([1, 2, 3, 4, 5, 6].map((round) => String(ball(round)))).size, 1);
});

t.test('memory is JSON, and goes on from it; a long step is not played', async (t) => {
  const memory = {};
  rally(memory, 5000);
  const copy = JSON.parse(JSON.stringify(memory));
  const next = room({ 1: { y: 0.2 }, 2: { y: 0.8 } });
  t.strictSame(reduce(next, copy), reduce(next, memory));
  const long = reduce({ ...next, step: 1e9 }, copy);
  const short = reduce({ ...next, step: 250 }, memory);
  t.strictSame(long, short);
  const back = reduce({ ...next, step: -5 }, memory);
  t.strictSame(back, short, 'a clock that went back moves nothing');
});

t.test('a thousand in each half are quick, and the value is small', async (t) => {
  const thumbs = Object.fromEntries(
    Array.from({ length: 2000 }, (_, i) => [i + 1, { y: (i % 100) / 100 }])
  );
  const memory = {};
  const now = room(thumbs);
  const begin = performance.now();
  for (let i = 0; i < 100; i += 1) reduce(now, memory);
  t.ok(performance.now() - begin < 2000);
  t.ok(JSON.stringify(reduce(now, memory)).length < 250);
});
