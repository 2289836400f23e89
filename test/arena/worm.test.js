import t from 'tap';

import { reduce } from '../../lib/arena/games/worm/reduce.js';
import { moment, playOn } from '../support/arena.js';

/** The worm as a pure function. */

const room = (moods, time = 0) =>
  moment({
    settings: { tenths: 5 },
    time,
    columns: ['mood'],
    players: Object.fromEntries(moods.map((mood, i) => [i + 1, { mood }]))
  });

t.test('the mean, and how far the room is of one mind', async (t) => {
  t.match(reduce(room([1, 1, -1, 0]), {}), { mood: 25, spread: 83 });
  t.match(reduce(room([0.5, 0.5]), {}), { mood: 50, spread: 0 });
});

t.test('a point each half second; nobody there, none', async (t) => {
  const memory = {};
  let last;
  playOn(memory, 5000, (time) => (last = reduce(room([time < 2500 ? -1 : 1], time), memory)));
  t.strictSame(last.line, [-100, -100, -100, -100, -100, 100, 100, 100, 100, 100, 100]);
  t.equal(last.band.length, last.line.length);
  t.match(reduce(room([], 9000), memory), { mood: 0, spread: 0, line: last.line });
  const back = reduce(room([0.3], 9100), memory);
  t.equal(back.line.length - last.line.length, 1, 'the time when nobody was there is no line');
});

t.test('the line stays within its bound, however long it lasts', async (t) => {
  const memory = {};
  let longest = 0;
  for (let time = 0; time < 4 * 3_600_000; time += 500) {
    const { line } = reduce(room([Math.sin(time / 1e6)], time), memory);
    longest = Math.max(longest, line.length);
  }
  const last = reduce(room([0], 4 * 3_600_000), memory);
  t.equal(longest, 399);
  t.ok(last.line.length >= 199 && last.every > 500);
  t.ok(JSON.stringify(last).length < 5000);
  const after = reduce(room([0], 400 * 3_600_000), memory);
  t.ok(after.line.length < 400, 'a long sleep, too');
});

t.test('who leaves is in the mean no more', async (t) => {
  const memory = {};
  t.equal(reduce(room([1, -1]), memory).mood, 0);
  t.equal(reduce(room([1], 50), memory).mood, 100);
});
