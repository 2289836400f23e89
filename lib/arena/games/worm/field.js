import { canvasIn, make, palette, put, style } from '../../arena-pages/elements.js';
import { between, Smooth } from '../../arena-pages/smooth.js';
import { colorOf, drawFace } from './face.js';

/** The worm on the big screen: the line so far, with its band of disagreement, and its head. */

const HEAD_RADIUS = 0.055; // radius, as a share of the canvas's smaller side
const ANNOUNCE_INTERVAL = 5000; // ms
const MIN_POINTS = 40; // with fewer points the line does not fill the width

function drawAxis(ctx, width, y, color) {
  ctx.setLineDash([10, 9]);
  ctx.lineWidth = 2;
  ctx.strokeStyle = color;
  ctx.beginPath();
  ctx.moveTo(0, y);
  ctx.lineTo(width, y);
  ctx.stroke();
  ctx.setLineDash([]);
}

function drawBand(ctx, points, color) {
  ctx.beginPath();
  for (const { x, high } of points) ctx.lineTo(x, high);
  for (const { x, low } of points.toReversed()) ctx.lineTo(x, low);
  ctx.fillStyle = color;
  ctx.globalAlpha = 0.16;
  ctx.fill();
  ctx.globalAlpha = 1;
}

function drawLine(ctx, points, width) {
  ctx.lineJoin = 'round';
  ctx.lineCap = 'round';
  for (const [size, style] of [
    [width * 1.5, () => '#fff'],
    [width, ({ mood }) => colorOf(mood)]
  ]) {
    ctx.lineWidth = size;
    for (let i = 1; i < points.length; i += 1) {
      ctx.beginPath();
      ctx.moveTo(points[i - 1].x, points[i - 1].y);
      ctx.lineTo(points[i].x, points[i].y);
      ctx.strokeStyle = style(points[i]);
      ctx.stroke();
    }
  }
}

export function start({ root, control }) {
  const sheet = style(import.meta.url);
  const { fit } = canvasIn(root, 'The mood of the room over time');
  const bar = make('p', { className: 'worm-mood', into: root });
  const age = make('span', { into: bar });
  const mood = make('b', { into: bar });
  // The mood changes some ten times a second: screen readers get it only every ANNOUNCE_INTERVAL.
  const announcement = make('span', { className: 'unseen', role: 'status', into: root });
  let announcedAt = -Infinity;
  const smooth = new Smooth();
  let pace = control.pace;
  let round = null;
  let drawnFrames = 0;

  function frame(time) {
    const view = smooth.at(time);
    const { ctx, width, height } = fit();
    const color = palette();
    const middle = height * 0.54;
    const reach = height * 0.38;
    drawAxis(ctx, width, middle, color('soft'));
    if (view === null) return;
    const { from, to, share } = view;
    const radius = HEAD_RADIUS * Math.min(width, height);
    const currentMood = between(from.mood, to.mood, share) / 100;
    const room = width - 4 * radius;
    const step = room / Math.max(MIN_POINTS, to.line.length);
    const place = (i, value, spread) => ({
      x: radius + i * step,
      y: middle - value * reach,
      high: middle - Math.min(1, value + spread) * reach,
      low: middle - Math.max(-1, value - spread) * reach,
      mood: value
    });
    const points = to.line.map((one, i) => place(i, one / 100, to.band[i] / 100));
    points.push(place(to.line.length, currentMood, to.spread / 100));
    drawBand(ctx, points, color('self'));
    drawLine(ctx, points, radius * 0.5);
    const { x, y } = points.at(-1);
    drawFace(ctx, { x, y, radius, mood: currentMood });
    drawnFrames += 1;
    root.dataset.drawn = drawnFrames;
  }

  return {
    control(control) {
      pace = control.pace;
    },
    value({ round: valueRound, time, value }) {
      if (!value) return;
      if (valueRound !== round) smooth.reset();
      round = valueRound;
      smooth.push(time, value, performance.now(), 1000 / pace);
      const words = `${value.mood > 0 ? '+' : ''}${value.mood}`;
      put(mood, words);
      if (performance.now() - announcedAt > ANNOUNCE_INTERVAL) {
        announcedAt = performance.now();
        put(announcement, `The mood is ${words}`);
      }
      put(
        age,
        `How does the room feel? ${Math.round((value.every * value.line.length) / 1000)} s of it`
      );
      root.dataset.mood = value.mood;
    },
    frame,
    stop: () => sheet.remove()
  };
}
