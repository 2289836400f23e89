import { readQuestions } from './questions.js';

/**
 * A quiz: each question of the content is open for a time, or until all have answered; then the right answer is
 * shown, and how many chose which. A right answer gets points, twice as many at once as at the last moment. A phone
 * learns the right answer when all do.
 *
 * Each question has two steps, open and shown. A step has a number that no other of this arena has, by which the panel
 * ends it, or leaves the question out: a click that comes twice, or too late, ends no other.
 */

const LINGER = 1000; // ms: the last player to answer may change the answer
const STEPS = 2048; // of a round at most: two a question
const POINTS = 1000; // at once
const LEAST = 500; // at the last moment

/** Players with points there may be: as many as a memory of 64 KiB has room for. Others play on without. */
const SCORED = 1500;

/** Of how many the names are told. */
const NAMED = 10;

/** The content that was good last: it is the same object until it changes. */
let known;

function questionsOf(content) {
  if (content !== known) readQuestions(content);
  known = content;
  return content;
}

/** Opens a question. */
function open(memory, index, time) {
  memory.index = index;
  memory.since = time;
  memory.counts = undefined;
  memory.shown = undefined;
  memory.all = undefined;
  for (const player of Object.values(memory.scores)) player.length = 2;
}

/**
 * Takes what is chosen now, and what it would be worth: a player's entry is [points, right ones, choice, worth].
 *
 * @returns {number[]} how often each answer is chosen
 */
function take({ players, numbers, inputs, time, settings }, memory, answers) {
  const counts = new Array(answers).fill(0);
  const late = (time - memory.since) / (settings.seconds * 1000);
  const worth = Math.round(POINTS - (POINTS - LEAST) * Math.min(1, late));
  for (let i = 0; i < players; i += 1) {
    const choice = inputs.choice[i];
    if (inputs.question[i] !== memory.index || choice < 0 || choice >= answers) continue;
    counts[choice] += 1;
    let player = memory.scores[numbers[i]];
    if (player === undefined) {
      if (memory.scored >= SCORED) continue;
      memory.scored += 1;
      player = memory.scores[numbers[i]] = [0, 0];
    }
    if (player[2] !== choice) player.splice(2, 2, choice, worth);
  }
  return counts;
}

/** Shows the answer: the points are given. */
function show(memory, counts, right, time) {
  memory.shown = time;
  memory.counts = counts;
  memory.shares[memory.index] = Math.round((counts[right] / Math.max(1, sum(counts))) * 100);
  for (const player of Object.values(memory.scores)) {
    const [points, times, choice, worth] = player;
    if (choice === right) player.splice(0, 2, points + worth, times + 1);
  }
}

/** As standings.js reads it. */
const standingsOf = ({ scores }) =>
  Object.entries(scores)
    .map(([number, [points, right]]) => [Number(number), points, right])
    .toSorted((a, b) => b[1] - a[1] || a[0] - b[0])
    .flat();

const namedOf = (standings) => standings.filter((_, at) => at % 3 === 0).slice(0, NAMED);

/** What was asked, with the right answer in words, and of a hundred how many have known it. */
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

/** Goes on to the next question where this one is over, or is left out. */
function goOn({ time, settings, round }, memory) {
  const step = stepOf(round, memory);
  const isOver = isShown(memory)
    ? time >= memory.shown + settings.pause * 1000 || settings.end === step
    : settings.skip === step;
  if (!isOver) return;
  memory.shares[memory.index] ??= null;
  open(memory, memory.index + 1, time);
}

/** The question that is open, or whose answer is shown. */
function ask(now, memory, { question, answers, right }) {
  const { time, players, settings, round } = now;
  let ends = memory.since + settings.seconds * 1000;
  let counts = memory.counts;
  if (!isShown(memory)) {
    counts = take(now, memory, answers.length);
    memory.all = players > 0 && sum(counts) === players ? (memory.all ?? time) : undefined;
    ends = Math.min(ends, (memory.all ?? Infinity) + LINGER);
    if (time >= ends || settings.end === stepOf(round, memory)) show(memory, counts, right, time);
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

/** As lib/arena/README.md says. */
export function reduce(now, memory) {
  const questions = questionsOf(now.content);
  if (memory.scores === undefined) {
    Object.assign(memory, { shares: [], scores: {}, scored: 0 });
    open(memory, 0, now.time);
  }
  goOn(now, memory);
  const question = questions[memory.index];
  if (now.page === 'result' || question === undefined) return resultOf(questions, memory);
  return { ...ask(now, memory, question), of: questions.length };
}
