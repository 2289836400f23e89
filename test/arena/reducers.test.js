import { readFileSync } from 'node:fs';

import t from 'tap';

import {
  describeMissing,
  batchAt,
  batchOf,
  sumThrough
} from '../../lib/arena/games/load/batches.js';
import { reduce as load } from '../../lib/arena/games/load/reduce.js';
import {
  HEIGHT,
  PADDLE,
  RADIUS,
  reduce as pong,
  WIDTH
} from '../../lib/arena/games/pong/reduce.js';
import { readQuestions } from '../../lib/arena/games/quiz/questions.js';
import { reduce as quiz } from '../../lib/arena/games/quiz/reduce.js';
import { nameOf, ordinal, readStandings } from '../../lib/arena/games/quiz/standings.js';
import { reduce as worm } from '../../lib/arena/games/worm/reduce.js';
import { between, Smooth } from '../../lib/arena/pages/smooth.js';
import { reducerArguments, runReducer } from '../support/arena.js';

/** Pong as a pure function: the reducer of the server, for all thumbs. */

const settings = { points: 3, speed: 100 };

/** Returns a moment with players, by number and thumb. */
const room = (thumbs, more = {}) =>
  reducerArguments({ settings, columns: ['y'], players: thumbs, ...more });

/** Plays with two thumbs that follow the ball, each by its share. Returns all values. */
function rally(memory, ms, { left = 1, right = 1, more = {} } = {}) {
  const values = [];
  runReducer(memory, ms, (time, last) => {
    const ball = ((last?.ball[1] ?? HEIGHT / 2) - PADDLE.half) / (HEIGHT - 2 * PADDLE.half);
    const to = (share) => ({ y: Math.min(1, Math.max(0, ball * share)) });
    const now = room({ 1: to(left), 2: to(right) }, { time, ...more });
    values.push(pong(now, memory));
    return values.at(-1);
  });
  return values;
}

t.test('each half moves its paddle to its mean, no quicker than a paddle moves', async (t) => {
  const memory = {};
  const up = room({ 1: { y: 0 }, 3: { y: 0.5 }, 2: { y: 1 }, 4: { y: 1 } });
  const first = pong({ ...up, step: 50 }, memory);
  t.strictSame(first.halves, [2, 2]);
  t.equal(first.paddles[0], HEIGHT / 2 - 0.7, 'on its way: 14 units a second');
  runReducer(memory, 2000, (time) => pong({ ...up, time, step: 50 }, memory));
  const { paddles } = pong({ ...up, step: 0 }, memory);
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

t.test('the page of the result ends the round: the half that leads wins', async (t) => {
  const memory = {};
  rally(memory, 1000);
  for (const [score, winner] of [
    [[0, 0], undefined],
    [[2, 1], 'left'],
    [[0, 1], 'right']
  ]) {
    memory.score = score;
    const end = pong(room({}, { page: 'result' }), memory);
    t.match(end, { score, page: 'result', over: true });
    t.equal(end.winner, winner);
  }
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

  // The host lowers the points during a round: it does not end with a draw.
  const lowered = {};
  pong(room({}), lowered);
  lowered.score = [3, 2];
  const more = { settings: { ...settings, points: 1 } };
  const last = rally(lowered, 60_000, { left: 0, more }).find(({ over }) => over);
  t.match(last, { score: [3, 4], winner: 'right' });
});

t.test('a half without players is the machine, which can be beaten', async (t) => {
  const memory = {};
  const values = [];
  runReducer(memory, 120_000, (time, last) => {
    // A thumb that meets the ball with the very end of the paddle: steep returns.
    const ball = last?.ball[1] ?? HEIGHT / 2;
    const y = (ball + 0.9 - PADDLE.half) / (HEIGHT - 2 * PADDLE.half);
    const thumbs = { 1: { y: Math.min(1, Math.max(0, y)) } };
    values.push(pong(room(thumbs, { time }), memory));
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
    runReducer(memory, 120_000, (time) => {
      values.push(pong(room({ 1: { y } }, { time }), memory));
      return values.at(-1).over ? undefined : values.at(-1);
    });
    t.ok(values.at(-1).over, `at ${y} it ends: ${values.at(-1).score}`);
  }
});

t.test('without players the ball waits; only its half misses a player that leaves', async (t) => {
  const memory = {};
  const idle = pong(room({}, { step: 250 }), memory);
  t.strictSame(
    [idle.ball, idle.halves],
    [
      [WIDTH / 2, HEIGHT / 2],
      [0, 0]
    ]
  );
  t.strictSame(pong(room({}, { step: 250 }), memory), idle, 'the same value: no watcher is woken');
  pong(room({ 1: { y: 0 }, 2: { y: 0 } }), memory);
  const { halves } = pong(room({ 2: { y: 0 } }), memory);
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
  t.strictSame(pong(next, copy), pong(next, memory));
  for (let i = 0; i < 3; i += 1) pong({ ...next, step: 250 }, copy);
  const quick = pong({ ...next, step: 250 }, copy);
  t.strictSame(pong({ ...next, step: 1000 }, memory), quick, 'the least pace plays as quick');
  const long = pong({ ...next, step: 1e9 }, copy);
  const short = pong({ ...next, step: 1100 }, memory);
  t.strictSame(long, short);
  const back = pong({ ...next, step: -5 }, memory);
  t.strictSame(back, short, 'a clock that went back moves nothing');
});

t.test('of a thousand in each half the value is small', async (t) => {
  const thumbs = Object.fromEntries(
    Array.from({ length: 2000 }, (_, i) => [i + 1, { y: (i % 100) / 100 }])
  );
  t.ok(JSON.stringify(pong(room(thumbs), {})).length < 250);
});

/** The worm as a pure function. */

const inMoods = (moods, time = 0) =>
  reducerArguments({
    settings: { tenths: 5 },
    time,
    columns: ['mood'],
    players: Object.fromEntries(moods.map((mood, i) => [i + 1, { mood }]))
  });

t.test('the mean, and how far the room is of one mind', async (t) => {
  t.match(worm(inMoods([1, 1, -1, 0]), {}), { mood: 25, spread: 83 });
  t.match(worm(inMoods([0.5, 0.5]), {}), { mood: 50, spread: 0 });
});

t.test('a point each half second; without players none', async (t) => {
  const memory = {};
  let last;
  runReducer(memory, 5000, (time) => (last = worm(inMoods([time < 2500 ? -1 : 1], time), memory)));
  t.strictSame(last.line, [-100, -100, -100, -100, -100, 100, 100, 100, 100, 100, 100]);
  t.equal(last.band.length, last.line.length);
  t.match(worm(inMoods([], 9000), memory), { mood: 0, spread: 0, line: last.line });
  const back = worm(inMoods([0.3], 9100), memory);
  t.equal(back.line.length - last.line.length, 1, 'the time without players is no line');
});

t.test('the line stays within its bound, however long it lasts', async (t) => {
  const memory = {};
  let longest = 0;
  for (let time = 0; time < 4 * 3_600_000; time += 500) {
    const { line } = worm(inMoods([Math.sin(time / 1e6)], time), memory);
    longest = Math.max(longest, line.length);
  }
  const last = worm(inMoods([0], 4 * 3_600_000), memory);
  t.equal(longest, 399);
  t.ok(last.line.length >= 199 && last.every > 500);
  t.ok(JSON.stringify(last).length < 5000);
  const after = worm(inMoods([0], 400 * 3_600_000), memory);
  t.ok(after.line.length < 400, 'a long sleep, too');
});

t.test('a player that leaves is in the mean no more', async (t) => {
  const memory = {};
  t.equal(worm(inMoods([1, -1]), memory).mood, 0);
  t.equal(worm(inMoods([1], 50), memory).mood, 100);
});

/** The quiz as a pure function. */

const QUESTIONS = [
  { question: 'One and one?', answers: ['1', '2', '3'], right: 1 },
  { question: 'And one?', answers: ['3', '4'], right: 0 }
];

/** Returns a moment with choices for a question, by player number; and other members. */
const choosing = (choices, time, { question = 0, settings = {}, ...more } = {}) =>
  reducerArguments({
    content: QUESTIONS,
    settings: { seconds: 20, pause: 6, end: 0, skip: 0, ...settings },
    time,
    columns: ['question', 'choice'],
    players: Object.fromEntries(
      Object.entries(choices).map(([number, choice]) => [number, { question, choice }])
    ),
    ...more
  });

/** Returns a reducer whose memory goes through JSON after each call, as in a restart. */
function play() {
  let memory = {};
  return (...given) => {
    const value = quiz(choosing(...given), memory);
    memory = JSON.parse(JSON.stringify(memory));
    return JSON.parse(JSON.stringify(value));
  };
}

t.test('what is chosen is told with the answer, when time is over', async (t) => {
  const quiz = play();
  const first = quiz({ 1: -1, 2: -1, 3: -1 }, 0, { question: -1 });
  t.match(first, { index: 0, of: 2, question: 'One and one?', answered: 0, left: 20, seconds: 20 });
  t.match(quiz({ 1: 1, 2: 0, 3: -1 }, 5000), { answered: 2, left: 15 });
  const open = quiz({ 1: 1, 2: 1, 3: -1 }, 9000);
  t.notOk('right' in open || 'counts' in open, 'no phone learns it before');
  t.match(quiz({ 1: 1, 2: 0, 3: -1 }, 20_000), { right: 1, counts: [1, 1, 0], left: 6 });
  const late = quiz({ 1: 0, 3: 0 }, 22_000);
  t.match(
    late,
    { right: 1, counts: [1, 1, 0], left: 4 },
    'a player that is late, or leaves, changes nothing'
  );
  const next = quiz({ 1: 0, 3: 0 }, 26_000);
  t.match(next, { index: 1, answered: 0, left: 20 }, 'no answer counts for the next one');
});

t.test('points: more the sooner; a changed answer begins anew', async (t) => {
  const quiz = play();
  quiz({ 1: 1, 2: -1, 3: 0, 4: 1 }, 0);
  quiz({ 1: 1, 2: 1, 3: 0, 4: 0 }, 10_000);
  const { standings, named } = quiz({ 1: 1, 2: 1, 3: 1, 4: 0 }, 20_000);
  t.strictSame(standings, [1, 1000, 1, 2, 750, 1, 3, 500, 1, 4, 0, 0]);
  t.strictSame(named, [1, 2, 3, 4]);
  quiz({ 2: 0, 3: 0 }, 26_000, { question: 1 });
  const second = quiz({ 3: 0 }, 46_000, { question: 1 });
  t.strictSame(
    second.standings,
    [2, 1750, 2, 3, 1500, 2, 1, 1000, 1, 4, 0, 0],
    'also of players that have left'
  );
});

t.test('when all have answered it goes on after a second', async (t) => {
  const quiz = play();
  quiz({ 1: -1 }, 0);
  t.equal(quiz({ 1: 1 }, 3000).left, 1);
  t.equal(quiz({ 1: 1, 2: -1 }, 3500).left, 17, 'another player has come');
  t.equal(quiz({ 1: 1, 2: 2 }, 5000).left, 1);
  t.match(quiz({ 1: 1, 2: 2 }, 6000), { right: 1 });
});

t.test('the panel ends a step, once, and leaves a question out', async (t) => {
  const quiz = play();
  const { step } = quiz({ 1: 1 }, 0, { round: 3 });
  const ended = { settings: { end: step }, round: 3 };
  t.match(quiz({ 1: 1 }, 500, ended), { right: 1, step: step + 1 });
  t.match(quiz({ 1: 1 }, 600, ended), { right: 1 }, 'the click was for the question alone');
  t.match(quiz({ 1: 1 }, 700, { settings: { end: step + 1 }, round: 3 }), { index: 1 });
  t.match(quiz({ 1: 1 }, 800, { settings: { skip: step }, round: 3 }), { index: 1 }, 'too late');
  const over = quiz({ 1: 1 }, 900, { settings: { skip: step + 2 }, round: 3 });
  t.match(over, { page: 'result', over: true, standings: [1, 1000, 1] });
  t.strictSame(over.asked, [{ question: 'One and one?', answer: '2', share: 100 }]);
  t.not(play()({}, 0, { round: 4 }).step, step, 'another round has other steps');
});

t.test('the end: what was asked, in words, and the standings, at any time', async (t) => {
  const quiz = play();
  quiz({ 1: 1, 2: 0 }, 0);
  t.strictSame(quiz({ 1: 1, 2: 0 }, 900, { page: 'result' }).asked, []);
  quiz({ 1: 1, 2: 0 }, 1000);
  t.match(quiz({ 1: 1, 2: 0 }, 7000), { index: 1 });
  quiz({}, 27_000, { question: 1 });
  t.strictSame(quiz({}, 33_000), {
    ...{ page: 'result', over: true, standings: [1, 1000, 1, 2, 0, 0], named: [1, 2] },
    asked: [
      { question: 'One and one?', answer: '2', share: 50 },
      { question: 'And one?', answer: '3', share: 0 }
    ]
  });
});

t.test('other questions hold at once; fewer of them are the end', async (t) => {
  const quiz = play();
  quiz({ 1: 1 }, 0);
  const [first] = QUESTIONS;
  const content = [{ ...first, question: 'One and 1?' }];
  t.match(quiz({ 1: 1 }, 100, { content }), { question: 'One and 1?', answered: 1, of: 1 });
  t.match(quiz({ 1: 1 }, 1100, { content }), { right: 1 });
  t.match(quiz({ 1: 1 }, 7100, { content }), { over: true, asked: [{ question: 'One and 1?' }] });
  t.throws(() => quiz({ 1: 1 }, 0, { content: [] }), /list of 1 to 1000/);
});

t.test('an answer that there is not, or of another question, is not counted', async (t) => {
  const quiz = play();
  t.equal(quiz({ 1: 3, 2: 5, 3: -1 }, 0).answered, 0);
  t.equal(quiz({ 1: 1, 2: 1 }, 0, { question: 1 }).answered, 0);
  t.equal(quiz({}, 100).answered, 0, 'no player is there');
});

t.test('with a room full of people, and the longest questions, it has room', async (t) => {
  const content = Array.from({ length: 20 }, () => ({
    question: 'é'.repeat(200),
    answers: Array(5).fill('é'.repeat(110)),
    right: 4
  }));
  t.ok(Buffer.byteLength(JSON.stringify(content)) < 32_768);
  const choices = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [99_999 - at, 4]));
  const memory = {};
  let value;
  for (let time = 0; time < 2_000_000 && !value?.over; time += 20_000) {
    value = quiz(choosing(choices, time, { question: memory.index ?? 0, content }), memory);
    const most = Math.max(...[value, memory].map((one) => Buffer.byteLength(JSON.stringify(one))));
    if (most > 65_536) t.fail(`${most} bytes`);
  }
  t.ok(value.over);
  t.equal(readStandings(value.standings).length, 1500, 'others play without points');
});

t.test('places: equal points share one', async (t) => {
  const places = readStandings([7, 9, 1, 3, 9, 1, 1, 5, 1]).map(({ number, place }) => [
    number,
    place
  ]);
  t.strictSame(places, [
    [7, 1],
    [3, 1],
    [1, 3]
  ]);
  t.strictSame(readStandings(), []);
  t.strictSame(
    [1, 2, 3, 4, 11, 12, 22, 113].map(ordinal).join(),
    '1st,2nd,3rd,4th,11th,12th,22nd,113th'
  );
  const names = { 3: 'שלום' };
  t.strictSame(
    [3, 7].map((number) => nameOf({ names }, number)),
    ['\u2068שלום\u2069', 'Player 7']
  );
});

t.test('the questions that come with it are good; others are refused in words', async (t) => {
  const url = new URL('../../lib/arena/games/quiz/content.json', import.meta.url);
  t.ok(readQuestions(JSON.parse(readFileSync(url, 'utf8'))).length > 4);
  const [good] = QUESTIONS;
  for (const [value, says] of [
    [[], /list of 1 to 1000/],
    [{}, /list of 1 to 1000/],
    [null, /list of 1 to 1000/],
    [[good, null], /^question 2 needs a question/],
    [[{ ...good, right: 3 }], /^question 1 must say which/],
    [[{ ...good, right: 0.5 }], /must say which/],
    [[{ ...good, question: '' }], /needs a question/],
    [[{ ...good, question: 'x'.repeat(201) }], /needs a question/],
    [[{ ...good, answers: ['1'] }], /2 to 6/],
    [[{ ...good, answers: [1, 2] }], /2 to 6/],
    [[{ ...good, answers: ['1', ' '] }], /2 to 6/],
    [[{ ...good, answers: Array(7).fill('1') }], /2 to 6/]
  ]) {
    t.throws(() => readQuestions(value), says);
  }
});

/** Load as a pure function: the value for reports of machines and phones. */

const { inputs } = JSON.parse(
  readFileSync(new URL('../../lib/arena/games/load/inputs.json', import.meta.url))
);
const NOTHING = Object.fromEntries(
  Object.entries(inputs).map(([name, { min, start = min }]) => [name, start])
);

/** Returns a moment of the game: the last report of each player, in this batch. */
const at = (batch, players, round = 1) => ({
  ...reducerArguments({
    time: (batch - 1) * 2000 + 500,
    columns: Object.keys(inputs),
    players: Object.fromEntries(
      Object.entries(players).map(([number, report]) => [
        number,
        { ...NOTHING, round: 1, batch, machine: 1, ...report }
      ])
    )
  }),
  round
});

t.test('batches: two seconds each; all up to one of them is a sum', async (t) => {
  t.strictSame([0, 1999, 2000, 60_000].map(batchAt), [1, 1, 2, 31]);
  const rows = [
    [3, 10, 9],
    [4, 5, 5],
    [5, 7, 0]
  ];
  t.strictSame(sumThrough(rows, 4), { accepted: 15, received: 14 });
  t.strictSame(sumThrough(rows, 2), { accepted: 0, received: 0 });
  t.strictSame(
    [0, 10.5, 25, 27, 2 ** 33, 1e30].map((batch) => batchOf(batch * 2 ** 20, 10)),
    [0, 10, 25, undefined, undefined, undefined],
    'of sprites whose numbers any client may have written; a lease is 15 batches'
  );
});

t.test('sums of all, the median by weight, the slowest p99; phones apart', async (t) => {
  const value = load(
    at(2, {
      1: { connections: 100, members: 100, perSecond: 300, p50: 1, p99: 9 },
      2: { connections: 200, members: 201, perSecond: 100, p50: 5, p99: 40, bounded: 1 },
      3: { machine: 0, connections: 2, members: 2, perSecond: 1, p50: 20, p99: 33 }
    }),
    {}
  );
  t.match(value, { machines: 2, phones: 1, connections: 302, members: 303, perSecond: 401 });
  t.match(value, { p50: 1, p99: 40, phone50: 20, phone99: 33, missing: 0, torn: 0 });
  t.strictSame(
    value.list.map(({ number, bounded }) => [number, bounded]),
    [
      [1, 0],
      [2, 1],
      [3, 0]
    ]
  );
});

t.test('what one threw and another caught is not missing', async (t) => {
  const value = load(
    at(9, { 1: { accepted: 500, received: 100 }, 2: { accepted: 0, received: 400 } }),
    {}
  );
  t.match(value, { counted: 500, missing: 0 });
});

t.test('what was not caught is missing, and heals when it comes late', async (t) => {
  const memory = {};
  t.match(load(at(9, { 1: { accepted: 500, received: 497 } }), memory), { missing: 3 });
  t.match(load(at(10, { 1: { accepted: 600, received: 600 } }), memory), { missing: 0 });
});

t.test('only one and the same batch is compared', async (t) => {
  const memory = {};
  load(at(9, { 1: { accepted: 500, received: 0 }, 2: { received: 500 } }), memory);
  const ahead = { 1: { batch: 10, accepted: 900, received: 0 }, 2: { batch: 9, received: 500 } };
  t.match(load(at(10, ahead), memory), { counted: 500, missing: 0 }, 'the other is not so far');
  const both = { 1: { batch: 10, accepted: 900 }, 2: { batch: 10, received: 899 } };
  t.match(load(at(10, both), memory), { counted: 900, missing: 1 });
});

t.test('a player that comes later has nothing before', async (t) => {
  const memory = {};
  for (const batch of [9, 10, 11]) load(at(batch, { 1: { accepted: 5, received: 5 } }), memory);
  const joined = { 1: { accepted: 5, received: 5, batch: 11 }, 2: { batch: 12 } };
  t.match(load(at(12, joined), memory), { counted: 5, missing: 0 });
});

t.test('a player that has said all stays in the sum; one gone without is told', async (t) => {
  const memory = {};
  load(at(9, { 1: { accepted: 9, done: 1 }, 2: { received: 9 } }), memory);
  t.match(load(at(10, { 2: { received: 9 } }), memory), { counted: 9, missing: 0, torn: 0 });
  t.match(load(at(11, {}), memory), { counted: 9, missing: 0, torn: 1 });
});

t.test('a player that says nothing new is waited for no longer', async (t) => {
  const memory = {};
  load(at(9, { 1: { accepted: 9 }, 2: { received: 9 } }), memory);
  const later = { 1: { accepted: 20, received: 11 }, 2: { batch: 9, received: 9 } };
  t.match(load(at(30, later), memory), { counted: 20, missing: 0, torn: 1 });
});

t.test('of another round nothing counts', async (t) => {
  t.match(load(at(9, { 1: { accepted: 9 } }, 2), {}), { machines: 0, counted: 0 });
});

t.test('ten thousand phones: value and memory stay within their bounds', async (t) => {
  const memory = {};
  const phones = Array.from({ length: 10_000 }, (_, i) => [
    i + 1,
    { machine: 0, connections: 3, accepted: 1e6, received: 1e6, p50: 12.345, p99: 99.9 }
  ]);
  for (const batch of [9, 10]) load(at(batch, Object.fromEntries(phones)), memory);
  const value = load(at(11, Object.fromEntries(phones)), memory);
  t.match(value, { phones: 10_000, connections: 30_000, missing: 0 });
  t.ok(JSON.stringify(value).length < 8192);
  t.ok(JSON.stringify(memory).length < 1024);
});

t.test('in words: others’ desktops, and players that went without a last report', async (t) => {
  const value = { missing: 0, counted: 1000, torn: 0, members: 50 };
  const now = { clients: 50, lost: 7 };
  const first = { lost: 7 };
  const says = (more, status = now) => describeMissing({ ...value, ...more }, status, first);
  t.match(says({}), { count: 0, is: 'good', words: 'Missing: 0 of 1,000 sprites' });
  t.match(says({ missing: 2 }), { count: 2, is: 'bad', words: 'Missing: 2 of' });
  t.match(says({ missing: 2, torn: 1 }), { count: 2, is: 'open', words: 'at most 2' });
  t.match(says({ missing: 2 }, { clients: 51, lost: 7 }), { count: 0, words: '2 sprites landed' });
  t.match(says({ missing: 2 }, { clients: 51, lost: 8 }), { count: 1, is: 'bad' });
  const crossed = { clients: 50, lost: 7, crossedOut: 3 };
  t.match(says({ missing: 2 }, crossed), { count: 0, words: '2 sprites landed' });
  t.match(describeMissing(null, now, first), { count: null, is: 'none' });
});

/** Movement on the field between two versions. */

const INTERVAL = 50;

/** Returns the number that is drawn at a moment. */
function drawn(smooth, now) {
  const seen = smooth.at(now);
  return seen && between(seen.from, seen.to, seen.share);
}

t.test('a movement is even, though versions come unevenly', async (t) => {
  const smooth = new Smooth();
  t.equal(smooth.at(0), null);
  const late = [0, 30, 5, 22, 0, 12, 34, 2];
  const arrivals = Array.from({ length: 60 }, (_, i) => i * INTERVAL + 1000 + late[i % 8]);
  let shown = null;
  const steps = [];
  for (let now = 1000, next = 0; now < 3900; now += 16) {
    for (; arrivals[next] <= now; next += 1) {
      smooth.push(next * INTERVAL, next * INTERVAL, arrivals[next], INTERVAL);
    }
    const at = drawn(smooth, now);
    if (shown !== null && now > 1300) steps.push(at - shown);
    shown = at;
  }
  t.ok(Math.min(...steps) > 10, `${Math.min(...steps)} of 16`);
  t.ok(Math.max(...steps) < 22, `${Math.max(...steps)} of 16`);
});

t.test('after a standstill it begins to move, and does not creep', async (t) => {
  const smooth = new Smooth();
  smooth.push(0, 10, 100, INTERVAL);
  smooth.push(50, 10, 150, INTERVAL);
  t.equal(drawn(smooth, 5000), 10);
  smooth.push(5000, 20, 5100, INTERVAL);
  t.equal(drawn(smooth, 5100), 10);
  t.ok(drawn(smooth, 5150) > 10);
  t.equal(drawn(smooth, 5200), 20);
  t.equal(drawn(smooth, 9000), 20, 'and stays at the newest');
});

t.test('a version of the same time, as when a player has come, moves nothing', async (t) => {
  const smooth = new Smooth();
  smooth.push(0, 0, 1000, INTERVAL);
  smooth.push(50, 50, 1050, INTERVAL);
  const before = drawn(smooth, 1100);
  smooth.push(50, 50, 1100, INTERVAL);
  t.ok(drawn(smooth, 1100) - before < 2);
  t.equal(drawn(smooth, 2000), 50);
});

t.test('another round begins anew, with no way between', async (t) => {
  const smooth = new Smooth();
  smooth.push(9000, 1, 9100, INTERVAL);
  smooth.push(9050, 2, 9150, INTERVAL);
  smooth.push(10, 7, 9200, INTERVAL);
  t.equal(drawn(smooth, 9200), 7);
});
