import { readFileSync } from 'node:fs';

/**
 * A quiz: each question of questions/questions.json is open for a time, or until all have answered;
 * then the right answer is shown. The questions are in a folder of their own, which is not served:
 * a phone learns the right answer when everybody does.
 */

const ANSWERS = 6; // as many as inputs.json lets a phone choose from
const QUESTIONS = 1000;
const LINGER = 1000; // ms: who has just answered last sees the chart before the answer

/**
 * @param {unknown} value of a file of questions
 * @returns {{question: string, answers: string[], right: number}[]}
 * @throws {Error} saying in one line which question is not as it must be
 */
export function readQuestions(value) {
  const isList = Array.isArray(value) && value.length > 0 && value.length <= QUESTIONS;
  if (!isList) throw new Error(`the questions must be a list of 1 to ${QUESTIONS}`);
  for (const [at, one] of value.entries()) {
    const { question, answers, right } = one ?? {};
    const isText = (text) => typeof text === 'string' && text.length > 0 && text.length <= 200;
    const good =
      isText(question) &&
      Array.isArray(answers) &&
      answers.length >= 2 &&
      answers.length <= ANSWERS &&
      answers.every(isText) &&
      Number.isInteger(right) &&
      right >= 0 &&
      right < answers.length;
    if (good) continue;
    throw new Error(
      `question ${at + 1} must have "question", 2 to ${ANSWERS} "answers" of 1 to 200 characters, ` +
        'and "right", which of them it is, from 0'
    );
  }
  return value;
}

/** How often each answer was chosen, for the question that is open. */
function count({ players, inputs }, index, answers) {
  const counts = new Array(answers).fill(0);
  for (let i = 0; i < players; i += 1) {
    const choice = inputs.choice[i];
    if (inputs.question[i] === index && choice >= 0 && choice < answers) counts[choice] += 1;
  }
  return counts;
}

/** Opens a question. */
function open(memory, index, time) {
  memory.index = index;
  memory.since = time;
  memory.counts = undefined;
  memory.shown = undefined;
}

/**
 * @param {{question: string, answers: string[], right: number}[]} questions
 * @returns {(now: object, memory: object) => object} a reducer, as lib/arena/README.md says
 */
export function quizOf(questions) {
  return function reduce(now, memory) {
    const { time, players, settings } = now;
    if (memory.index === undefined) {
      open(memory, 0, time);
      memory.shares = [];
    }
    if (memory.shown !== undefined && time >= memory.shown + settings.pause * 1000) {
      if (memory.index + 1 < questions.length) open(memory, memory.index + 1, time);
      else return { page: 'result', over: true, shares: memory.shares };
    }
    const { question, answers, right } = questions[memory.index];
    // The counts stand still as soon as the answer is shown: who leaves then has answered.
    const counts = memory.counts ?? count(now, memory.index, answers.length);
    const answered = counts.reduce((sum, one) => sum + one, 0);
    const all = players > 0 && answered === players;
    const ends = memory.since + settings.seconds * 1000;
    memory.all = all ? (memory.all ?? time) : undefined;
    const until = Math.min(ends, (memory.all ?? Infinity) + LINGER);
    if (memory.shown === undefined && time >= until) {
      memory.shown = time;
      memory.counts = counts;
      memory.shares.push(answered === 0 ? 0 : Math.round((counts[right] / answered) * 100));
    }
    const value = {
      index: memory.index,
      of: questions.length,
      question,
      answers,
      counts,
      answered,
      since: memory.since,
      until
    };
    return memory.shown === undefined ? value : { ...value, until: memory.shown, right };
  };
}

const file = new URL('questions/questions.json', import.meta.url);

export const reduce = quizOf(readQuestions(JSON.parse(readFileSync(file, 'utf8'))));
