import { readFileSync } from 'node:fs';
import t from 'tap';

import { quizOf, readQuestions, reduce } from '../../lib/arena/games/quiz/reduce.js';
import { moment } from '../support/arena-reducers.js';

/** The quiz as a pure function. */

const QUESTIONS = [
  { question: 'One and one?', answers: ['1', '2', '3'], right: 1 },
  { question: 'And one?', answers: ['3', '4'], right: 0 }
];

const settings = { seconds: 20, pause: 6 };

/** Choices by number, of the question that is open. */
const room = (choices, time, question = 0) =>
  moment({
    settings,
    time,
    columns: ['question', 'choice'],
    players: Object.fromEntries(
      Object.entries(choices).map(([number, choice]) => [number, { question, choice }])
    )
  });

t.test(
  'answers are counted while they come; the right one is shown when time is over',
  async (t) => {
    const quiz = quizOf(QUESTIONS);
    const memory = {};
    const first = quiz(room({ 1: -1, 2: -1, 3: -1 }, 0, -1), memory);
    t.match(first, { index: 0, of: 2, question: 'One and one?', counts: [0, 0, 0], answered: 0 });
    t.equal(first.until, 20_000);
    t.notOk('right' in first, 'no phone learns it before');
    t.strictSame(quiz(room({ 1: 1, 2: 0, 3: -1 }, 5000), memory).counts, [1, 1, 0]);
    t.strictSame(quiz(room({ 1: 1, 2: 1, 3: -1 }, 9000), memory).counts, [0, 2, 0], 'changed');
    const shown = quiz(room({ 1: 1, 2: 0, 3: -1 }, 20_000), memory);
    t.match(shown, { right: 1, counts: [1, 1, 0] });
    const late = quiz(room({ 1: 0, 3: 0 }, 22_000), memory);
    t.match(late, { right: 1, counts: [1, 1, 0] }, 'who is late, or leaves, changes nothing');
    const next = quiz(room({ 1: 0, 3: 0 }, 26_000), memory);
    t.match(next, { index: 1, counts: [0, 0], until: 46_000 }, 'no answer counts for the next one');
  }
);

t.test('when all have answered it goes on after a second', async (t) => {
  const quiz = quizOf(QUESTIONS);
  const memory = {};
  quiz(room({ 1: -1 }, 0), memory);
  t.equal(quiz(room({ 1: 1 }, 3000), memory).until, 4000);
  t.equal(quiz(room({ 1: 1, 2: -1 }, 3500), memory).until, 20_000, 'somebody else has come');
  t.equal(quiz(room({ 1: 1, 2: 2 }, 5000), memory).until, 6000);
  t.match(quiz(room({ 1: 1, 2: 2 }, 6000), memory), { right: 1 });
});

t.test('the end: how often the room was right, and the game is over', async (t) => {
  const quiz = quizOf(QUESTIONS);
  const memory = {};
  let last;
  for (let time = 0; time < 60_000 && !last?.over; time += 500) {
    const at = memory.index ?? 0;
    last = quiz(room(at === 0 ? { 1: 1, 2: 0 } : {}, time, at), JSON.parse(JSON.stringify(memory)));
    quiz(room(at === 0 ? { 1: 1, 2: 0 } : {}, time, at), memory);
  }
  t.strictSame(last, { page: 'result', over: true, shares: [50, 0] });
});

t.test(
  'what is chosen of answers that there are not, or of another question, is not counted',
  async (t) => {
    const memory = {};
    const quiz = quizOf(QUESTIONS);
    t.equal(quiz(room({ 1: 3, 2: 5, 3: -1 }, 0), memory).answered, 0);
    t.equal(quiz(room({ 1: 1, 2: 1 }, 0, 1), memory).answered, 0);
    t.equal(quiz(room({}, 100), memory).answered, 0, 'nobody there');
  }
);

t.test('the questions that come with it are good; others are refused in words', async (t) => {
  t.match(reduce(room({ 1: -1 }, 0), {}), { index: 0 });
  const url = new URL('../../lib/arena/games/quiz/questions/questions.json', import.meta.url);
  t.ok(readQuestions(JSON.parse(readFileSync(url, 'utf8'))).length > 4);
  const [good] = QUESTIONS;
  for (const [value, says] of [
    [[], /list of 1 to 1000/],
    [{}, /list of 1 to 1000/],
    [null, /list of 1 to 1000/],
    [[good, null], /^question 2 must have/],
    [[{ ...good, right: 3 }], /^question 1 must have/],
    [[{ ...good, right: 0.5 }], /must have/],
    [[{ ...good, question: '' }], /must have/],
    [[{ ...good, question: 'x'.repeat(201) }], /must have/],
    [[{ ...good, answers: ['1'] }], /2 to 6/],
    [[{ ...good, answers: [1, 2] }], /must have/],
    [[{ ...good, answers: Array(7).fill('1') }], /2 to 6/]
  ]) {
    t.throws(() => readQuestions(value), says);
  }
});
