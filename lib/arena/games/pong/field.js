import { canvasIn, make, palette, put, style } from '../../arena-pages/elements.js';
import { between, Smooth } from '../../arena-pages/smooth.js';
import { drawSticker } from '../../page/pictures.js';

/** Pong on the big screen, in units of a field of 16 by 9, as in reduce.js. */

const WIDTH = 16;
const HEIGHT = 9;
const BALL_HALF = 0.46; // half the size of its picture, with the white rim around the ball
const PADDLE = { inset: 0.6, half: 1.05, thick: 0.42 };
const TRAIL = 7;
const FIELD_MARGIN = 0.45; // margin around the field, in units

const NAMES = { left: 'Left', right: 'Right' };

/** Returns the field's place on the canvas: pixels per unit, and its corner. */
function layout(width, height) {
  const unit = Math.min(width / (WIDTH + 2 * FIELD_MARGIN), height / (HEIGHT + 2 * FIELD_MARGIN));
  return { unit, x: (width - WIDTH * unit) / 2, y: (height - HEIGHT * unit) / 2 };
}

function drawNet(ctx, color) {
  ctx.setLineDash([0.32, 0.28]);
  ctx.lineWidth = 0.05;
  ctx.strokeStyle = color;
  ctx.globalAlpha = 0.8;
  ctx.beginPath();
  ctx.roundRect(0, 0, WIDTH, HEIGHT, 0.3);
  ctx.moveTo(WIDTH / 2, 0.15);
  ctx.lineTo(WIDTH / 2, HEIGHT);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

function drawPaddle(ctx, color, x, y) {
  ctx.beginPath();
  ctx.roundRect(x - PADDLE.thick / 2, y - PADDLE.half, PADDLE.thick, 2 * PADDLE.half, 0.21);
  ctx.lineWidth = 0.16;
  ctx.strokeStyle = '#fff';
  ctx.stroke();
  ctx.fillStyle = color;
  ctx.fill();
}

/** Draws where the ball has been, the oldest place first. */
function drawTrail(ctx, places) {
  for (const [i, [x, y]] of places.entries()) {
    ctx.globalAlpha = (i / TRAIL) * 0.22;
    ctx.beginPath();
    ctx.arc(x, y, 0.28 * (0.4 + (0.6 * i) / TRAIL), 0, Math.PI * 2);
    ctx.fillStyle = '#ff6b4a';
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

function drawBall(ctx, picture, [x, y], turn) {
  ctx.save();
  ctx.translate(x, y);
  ctx.rotate(turn);
  ctx.drawImage(picture, -BALL_HALF, -BALL_HALF, 2 * BALL_HALF, 2 * BALL_HALF);
  ctx.restore();
}

function showPoints(elements, score) {
  for (const [i, element] of elements.entries()) {
    const text = String(score[i]);
    if (element.textContent === text) continue;
    element.classList.remove('bump');
    void element.offsetWidth; // Restarts the animation.
    if (text !== '0') element.classList.add('bump');
    put(element, text);
  }
}

function showHalves(elements, halves) {
  for (const [i, element] of elements.entries()) {
    const count = halves[i];
    put(element, count === 0 ? 'The machine' : `${count} ${count === 1 ? 'thumb' : 'thumbs'}`);
  }
}

export function start({ root, control }) {
  const isMotionReduced = matchMedia('(prefers-reduced-motion: reduce)').matches;
  const sheet = style(import.meta.url);
  const scoreBox = make('div', { className: 'pong-score', into: root });
  const points = ['0', '0'].map((text) => make('b', { text, into: scoreBox }));
  const { fit } = canvasIn(root, 'Pong: two paddles and a ball');
  const halves = make('div', { className: 'pong-halves', into: root });
  const halfCounts = [make('span', { into: halves }), make('span', { into: halves })];
  const words = make('div', { className: 'whole pong-words', role: 'status', into: root });
  const ball = drawSticker('ball', 256);
  const smooth = new Smooth();
  const trail = [];
  let { pace, page } = control;
  let score = [0, 0];
  let round = null;
  let drawn = 0;

  function frame(time) {
    const view = smooth.at(time);
    const { ctx, width, height } = fit();
    const color = palette();
    const { unit, x, y } = layout(width, height);
    root.style.setProperty('--top', `${y}px`);
    root.style.setProperty('--side', `${x}px`);
    ctx.translate(x, y);
    ctx.scale(unit, unit);
    drawNet(ctx, color('soft'));
    if (view === null) return;
    const { from, to, share } = view;
    const isSameRally = from.rally === to.rally;
    const paddles = to.paddles.map((one, i) => between(from.paddles[i], one, share));
    drawPaddle(ctx, color('across'), PADDLE.inset - PADDLE.thick / 2, paddles[0]);
    drawPaddle(ctx, color('along'), WIDTH - PADDLE.inset + PADDLE.thick / 2, paddles[1]);
    const position = isSameRally
      ? to.ball.map((one, i) => between(from.ball[i], one, share))
      : to.ball;
    if (!isSameRally) trail.length = 0;
    if (!to.winner) {
      if (!isMotionReduced) trail.push(position);
      if (trail.length > TRAIL) trail.shift();
      drawTrail(ctx, trail);
      drawBall(ctx, ball, position, isMotionReduced ? 0 : position[0] / 1.4);
    }
    drawn += 1;
    root.dataset.drawn = drawn;
    root.dataset.ball = position.map((one) => one.toFixed(2)).join(' ');
  }

  /** On the page of the result the half that leads has won, also if the host has stopped the round. */
  function showWinner() {
    const [left, right] = page === 'result' ? score : [0, 0];
    const winner = left > right ? 'left' : left < right ? 'right' : '';
    words.dataset.winner = winner;
    put(words, winner && `${NAMES[winner]} wins`);
  }

  return {
    control(control) {
      ({ pace, page } = control);
      showWinner();
    },
    value({ round: valueRound, time, value }) {
      if (value === null) return;
      if (valueRound !== round) smooth.reset();
      round = valueRound;
      smooth.push(time, value, performance.now(), 1000 / pace);
      ({ score } = value);
      showPoints(points, score);
      showHalves(halfCounts, value.halves);
      showWinner();
    },
    frame,
    stop: () => sheet.remove()
  };
}
