import { readQuestions } from './questions.js';

/**
 * A quiz: each question is open for a time, or until all players have answered. Then the right answer and the count of
 * each answer are shown. A right answer gets points, twice as many at once as at the last moment. Phones get the right
 * answer only with the big screen.
 *
 * Each question has two steps, open and shown. The number of a step is unique in its arena. With it the panel ends the
 * step, or skips the question: a repeated or late click can't end another step.
 */

const LINGER = 1000; // ms: the last player to answer may change the answer
const STEPS = 2048; // most steps of a round: two per question
const MAX_POINTS = 1000; // for a right answer at once
const MIN_POINTS = 500; // for a right answer at the last moment

/** Most players with points: the memory of 64 KiB has no room for more. Other players play without points. */
const MAX_SCORED = 1500;

/** Number of leaders whose names are in the reduced feed. */
const NAMED_LEADERS = 10;

/** The last valid content. An unchanged content is the same object, and is not checked again. */
let checkedContent;

function questionsOf(content) {
  if (content !== checkedContent) readQuestions(content);
  checkedContent = content;
  return content;
}

/** Opens a question. */
function openQuestion(memory, index, time) {
  memory.index = index;
  memory.since = time;
  memory.counts = undefined;
  memory.shown = undefined;
  memory.all = undefined;
  for (const player of Object.values(memory.scores)) player.length = 2;
}

/**
 * Stores each player's choice, and the points that it would get. An entry is [points, right answers, choice, worth].
 *
 * @returns {number[]} the count of each answer
 */
function countChoices({ players, numbers, inputs, time, settings }, memory, answers) {
  const counts = new Array(answers).fill(0);
  const lateness = (time - memory.since) / (settings.seconds * 1000);
  const worth = Math.round(MAX_POINTS - (MAX_POINTS - MIN_POINTS) * Math.min(1, lateness));
  for (let i = 0; i < players; i += 1) {
    const choice = inputs.choice[i];
    if (inputs.question[i] !== memory.index || choice < 0 || choice >= answers) continue;
    counts[choice] += 1;
    let player = memory.scores[numbers[i]];
    if (player === undefined) {
      if (memory.scored >= MAX_SCORED) continue;
      memory.scored += 1;
      player = memory.scores[numbers[i]] = [0, 0];
    }
    if (player[2] !== choice) player.splice(2, 2, choice, worth);
  }
  return counts;
}

/** Ends the open step: adds the points of right answers. */
function endStep(memory, counts, right, time) {
  memory.shown = time;
  memory.counts = counts;
  memory.shares[memory.index] = Math.round((counts[right] / Math.max(1, sum(counts))) * 100);
  for (const player of Object.values(memory.scores)) {
    const [points, rightAnswers, choice, worth] = player;
    if (choice === right) player.splice(0, 2, points + worth, rightAnswers + 1);
  }
}

/** Returns the standings, in the form of standings.js. */
const standingsOf = ({ scores }) =>
  Object.entries(scores)
    .map(([number, [points, right]]) => [Number(number), points, right])
    .toSorted((a, b) => b[1] - a[1] || a[0] - b[0])
    .flat();

const namedOf = (standings) => standings.filter((_, at) => at % 3 === 0).slice(0, NAMED_LEADERS);

/** Returns the result: each question with its right answer, and the percentage of players that chose it. */
function resultOf(questions, memory) {
  const asked = memory.shares.flatMap((share, at) => {
    const { question, answers, right } = questions[at] ?? {};
    if ((share ?? null) === null || question === undefined) return [];
    return [{ question, answer: answers[right], share }];
  });
  const standings = standingsOf(memory);
  return { page: 'result', over: true, asked, standings, named: namedOf(standings) };
}

const sum = (counts) => counts.reduce((all, one) => all + one, 0);

const isShown = (memory) => memory.shown !== undefined;

const stepOf = (round, memory) => round * STEPS + memory.index * 2 + (isShown(memory) ? 1 : 0);

/** Opens the next question if the current one is over or skipped. */
function goOnWhenDue({ time, settings, round }, memory) {
  const step = stepOf(round, memory);
  const isOver = isShown(memory)
    ? time >= memory.shown + settings.pause * 1000 || settings.end === step
    : settings.skip === step;
  if (!isOver) return;
  memory.shares[memory.index] ??= null;
  openQuestion(memory, memory.index + 1, time);
}

/** Returns the value for the current question. Ends its open step when the time is over or all have answered. */
function questionValue(now, memory, { question, answers, right }) {
  const { time, players, settings, round } = now;
  let ends = memory.since + settings.seconds * 1000;
  let counts = memory.counts;
  if (!isShown(memory)) {
    counts = countChoices(now, memory, answers.length);
    memory.all = players > 0 && sum(counts) === players ? (memory.all ?? time) : undefined;
    ends = Math.min(ends, (memory.all ?? Infinity) + LINGER);
    if (time >= ends || settings.end === stepOf(round, memory))
      endStep(memory, counts, right, time);
  }
  const standings = standingsOf(memory);
  const shown = isShown(memory) && { right, counts };
  if (shown) ends = memory.shown + settings.pause * 1000;
  return {
    ...{ question, answers, standings, named: namedOf(standings), ...shown },
    index: memory.index,
    step: stepOf(round, memory),
    answered: sum(counts),
    left: Math.max(0, Math.ceil((ends - time) / 1000)),
    seconds: shown ? settings.pause : settings.seconds
  };
}

/** See lib/arena/README.md. */
export function reduce(now, memory) {
  const questions = questionsOf(now.content);
  if (memory.scores === undefined) {
    Object.assign(memory, { shares: [], scores: {}, scored: 0 });
    openQuestion(memory, 0, now.time);
  }
  goOnWhenDue(now, memory);
  const question = questions[memory.index];
  if (now.page === 'result' || question === undefined) return resultOf(questions, memory);
  return { ...questionValue(now, memory, question), of: questions.length };
}
