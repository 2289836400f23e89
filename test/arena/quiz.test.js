import { readFileSync } from 'node:fs';
import t from 'tap';

import { readQuestions } from '../../lib/arena/games/quiz/questions.js';
import { reduce } from '../../lib/arena/games/quiz/reduce.js';
import { ordinal, readStandings } from '../../lib/arena/games/quiz/standings.js';
import { moment } from '../support/arena.js';

/** The quiz as a pure function. */

const QUESTIONS = [
  { question: 'One and one?', answers: ['1', '2', '3'], right: 1 },
  { question: 'And one?', answers: ['3', '4'], right: 0 }
];

/** Choices by number, of the question that is open; what else is to be given. */
const room = (choices, time, { question = 0, settings = {}, ...more } = {}) =>
  moment({
    content: QUESTIONS,
    settings: { seconds: 20, pause: 6, end: 0, skip: 0, ...settings },
    time,
    columns: ['question', 'choice'],
    players: Object.fromEntries(
      Object.entries(choices).map(([number, choice]) => [number, { question, choice }])
    ),
    ...more
  });

/** A reducer with a memory that is what JSON makes of it, as after a restart. */
function play() {
  let memory = {};
  return (...given) => {
    const value = reduce(room(...given), memory);
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
    'who is late, or leaves, changes nothing'
  );
  const next = quiz({ 1: 0, 3: 0 }, 26_000);
  t.match(next, { index: 1, answered: 0, left: 20 }, 'no answer counts for the next one');
});

t.test('points: more the sooner; who changes his mind begins anew', async (t) => {
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
    'also of who has left'
  );
});

t.test('when all have answered it goes on after a second', async (t) => {
  const quiz = play();
  quiz({ 1: -1 }, 0);
  t.equal(quiz({ 1: 1 }, 3000).left, 1);
  t.equal(quiz({ 1: 1, 2: -1 }, 3500).left, 17, 'somebody else has come');
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

t.test(
  'the end: what was asked, in words, and the standings; the panel is there at any time',
  async (t) => {
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
  }
);

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

t.test(
  'what is chosen of answers that there are not, or of another question, is not counted',
  async (t) => {
    const quiz = play();
    t.equal(quiz({ 1: 3, 2: 5, 3: -1 }, 0).answered, 0);
    t.equal(quiz({ 1: 1, 2: 1 }, 0, { question: 1 }).answered, 0);
    t.equal(quiz({}, 100).answered, 0, 'nobody there');
  }
);

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
    value = reduce(room(choices, time, { question: memory.index ?? 0, content }), memory);
    const most = Math.max(...[value, memory].map((one) => Buffer.byteLength(JSON.stringify(one))));
    if (most > 65_536) t.fail(`${most} bytes`);
  }
  t.ok(value.over);
  t.equal(readStandings(value.standings).length, 1500, 'others play without points');
});

t.test('places: who has as many points shares one', async (t) => {
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
