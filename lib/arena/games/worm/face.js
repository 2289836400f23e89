/** The worm's head, in a circle of radius 1. Its mouth and color show the mood. */

const INK = '#2a2342';
const SAD = [255, 107, 74];
const CALM = [255, 197, 61];
const GLAD = [57, 190, 150];

/** @returns {string} the color of a mood, -1 to 1 */
export function colorOf(mood) {
  const [from, to] = mood < 0 ? [CALM, SAD] : [CALM, GLAD];
  const share = Math.min(1, Math.abs(mood));
  return `rgb(${from.map((one, i) => Math.round(one + (to[i] - one) * share)).join(' ')})`;
}

function circle(ctx, x, y, radius, color) {
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, Math.PI * 2);
  ctx.fillStyle = color;
  ctx.fill();
}

/**
 * Draws the head.
 *
 * @param {CanvasRenderingContext2D} ctx
 * @param {{x: number, y: number, radius: number, mood: number}} head lengths in the canvas's units; mood from -1 to 1
 */
export function drawFace(ctx, { x, y, radius, mood }) {
  ctx.save();
  ctx.translate(x, y);
  ctx.scale(radius, radius);
  circle(ctx, 0, 0, 1, '#fff');
  circle(ctx, 0, 0, 0.88, colorOf(mood));
  for (const side of [-1, 1]) {
    circle(ctx, side * 0.32, -0.2, 0.12, INK);
    circle(ctx, side * 0.32 + 0.04, -0.25, 0.04, '#fff');
    ctx.globalAlpha = 0.35;
    circle(ctx, side * 0.56, 0.12, 0.13, '#ff6b8a');
    ctx.globalAlpha = 1;
  }
  ctx.beginPath();
  ctx.moveTo(-0.34, 0.3 - 0.12 * mood);
  ctx.quadraticCurveTo(0, 0.3 + 0.42 * mood, 0.34, 0.3 - 0.12 * mood);
  ctx.lineWidth = 0.1;
  ctx.lineCap = 'round';
  ctx.strokeStyle = INK;
  ctx.stroke();
  ctx.restore();
}
