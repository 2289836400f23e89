/**
 * Pong for a room: players with odd numbers are the left half, those with even ones the right, and a
 * paddle goes to the mean of its half. A half without players is played by the machine.
 *
 * Lengths are in units of a field of 16 by 9, times in milliseconds, speeds in units per second.
 */

export const WIDTH = 16;
export const HEIGHT = 9;
export const RADIUS = 0.28; // of the ball
export const PADDLE = { inset: 0.6, half: 1.05 }; // distance of its face from the edge; half its height

const START_SPEED = 7;
const FASTER = 1.05; // factor of the speed, with every return
const MAX_SPEED = 16;
const STEEPEST = 1.05; // angle from the horizontal after a return by a paddle's end, in radians
const PADDLE_SPEED = 14;
const MACHINE_SPEED = 4.6; // slow enough to be beaten
const MACHINE_AIM = 1.7; // range of its random offset from the ball, so that no two returns are alike
const PAUSE = 1500; // ms before a serve
const STRIDE = 5; // ms per step of the simulation: the ball moves less than its radius
const LONGEST_STEP = 1100; // ms played per reduction at most, above the 1000 of the least pace: a longer pause is skipped

const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
const rounded = (value) => Math.round(value * 1000) / 1000;

/** Returns a pseudo-random number from 0 to below 1. The seed is the round's number: a round is reproducible. */
function random(memory) {
  memory.seed = (Math.imul(memory.seed, 1_664_525) + 1_013_904_223) >>> 0;
  return memory.seed / 2 ** 32;
}

function begin(memory, round) {
  memory.seed = (round * 2_654_435_761) >>> 0;
  memory.score = [0, 0];
  memory.paddles = [HEIGHT / 2, HEIGHT / 2];
  memory.rally = 0;
  memory.to = random(memory) < 0.5 ? 0 : 1;
  serve(memory);
}

/** Puts the ball in the middle, where it waits before the serve. */
function serve(memory) {
  memory.rally += 1;
  memory.hits = 0;
  memory.aim = 0;
  memory.pause = PAUSE;
  memory.ball = [WIDTH / 2, HEIGHT / 2];
  const angle = (random(memory) - 0.5) * 0.9;
  memory.speed = [(memory.to === 0 ? -1 : 1) * Math.cos(angle), Math.sin(angle)];
  memory.pace = START_SPEED;
}

/** Returns the number of players in each half, and the target of its paddle: the mean of their thumbs, if any. */
function halves({ players, numbers, inputs }) {
  const count = [0, 0];
  const sum = [0, 0];
  for (let i = 0; i < players; i += 1) {
    const side = numbers[i] % 2 === 1 ? 0 : 1;
    count[side] += 1;
    sum[side] += inputs.y[i];
  }
  const margin = PADDLE.half;
  const targets = count.map((n, side) =>
    n === 0 ? undefined : margin + (sum[side] / n) * (HEIGHT - 2 * margin)
  );
  return { count, targets };
}

/** Moves a paddle towards its target. */
function movePaddle(memory, side, target, ms) {
  const isMachine = target === undefined;
  const to = clamp(
    isMachine ? memory.ball[1] + memory.aim : target,
    PADDLE.half,
    HEIGHT - PADDLE.half
  );
  const maxStep = ((isMachine ? MACHINE_SPEED : PADDLE_SPEED) * ms) / 1000;
  memory.paddles[side] += clamp(to - memory.paddles[side], -maxStep, maxStep);
}

/** Bounces the ball off a paddle, if they meet: the nearer to the paddle's end, the steeper. */
function bounceOff(memory, side) {
  const [x, y] = memory.ball;
  const offset = y - memory.paddles[side];
  const face = side === 0 ? PADDLE.inset + RADIUS : WIDTH - PADDLE.inset - RADIUS;
  const isApproaching =
    side === 0 ? memory.speed[0] < 0 && x <= face : memory.speed[0] > 0 && x >= face;
  const isPast = Math.abs(x - face) > 2 * RADIUS;
  if (!isApproaching || isPast || Math.abs(offset) > PADDLE.half + RADIUS) return;
  const angle = clamp(offset / PADDLE.half, -1, 1) * STEEPEST;
  memory.speed = [(side === 0 ? 1 : -1) * Math.cos(angle), Math.sin(angle)];
  memory.pace = Math.min(MAX_SPEED, memory.pace * FASTER);
  memory.ball[0] = face;
  memory.hits += 1;
  memory.aim = (random(memory) - 0.5) * MACHINE_AIM;
}

/** Moves the ball. @returns {number} the side at which the ball has left the field; -1: none */
function moveBall(memory, ms, speed) {
  const distance = (memory.pace * speed * ms) / 1000;
  memory.ball[0] += memory.speed[0] * distance;
  memory.ball[1] += memory.speed[1] * distance;
  const [, y] = memory.ball;
  const edge = y < RADIUS ? RADIUS : y > HEIGHT - RADIUS ? HEIGHT - RADIUS : undefined;
  if (edge !== undefined) {
    memory.ball[1] = edge;
    memory.speed[1] = Math.abs(memory.speed[1]) * (edge === RADIUS ? 1 : -1);
  }
  bounceOff(memory, 0);
  bounceOff(memory, 1);
  if (memory.ball[0] < -RADIUS) return 0;
  return memory.ball[0] > WIDTH + RADIUS ? 1 : -1;
}

/** Plays for some milliseconds. @returns {boolean} whether a half has won */
function play(memory, ms, targets, { points, speed }) {
  for (let left = ms; left > 0; left -= STRIDE) {
    const stride = Math.min(STRIDE, left);
    movePaddle(memory, 0, targets[0], stride);
    movePaddle(memory, 1, targets[1], stride);
    if (memory.pause > 0) {
      memory.pause = Math.max(0, memory.pause - stride);
      continue;
    }
    const side = moveBall(memory, stride, speed / 100);
    if (side < 0) continue;
    memory.score[1 - side] += 1;
    memory.to = side; // The next serve goes to the half that has lost the point.
    // The host may lower the points during a round: at a draw the next point wins.
    if (memory.score[1 - side] >= points && memory.score[1 - side] > memory.score[side])
      return true;
    serve(memory);
  }
  return false;
}

/** See lib/arena/README.md. Without players the ball waits. */
export function reduce(now, memory) {
  const { players, step, round, settings } = now;
  if (memory.score === undefined) begin(memory, round);
  const { count, targets } = halves(now);
  const isWon = players > 0 && play(memory, clamp(step, 0, LONGEST_STEP), targets, settings);
  const value = {
    ball: memory.ball.map(rounded),
    paddles: memory.paddles.map(rounded),
    score: [...memory.score],
    halves: count,
    rally: memory.rally,
    hits: memory.hits,
    serving: memory.pause > 0
  };
  // The host may show the result before a half has won: the half that leads then wins, if one does.
  if (!isWon && now.page !== 'result') return value;
  const [left, right] = memory.score;
  const winner = left > right ? 'left' : 'right';
  return { ...value, ...(left !== right && { winner }), page: 'result', over: true };
}
