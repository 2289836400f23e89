/**
 * What sprites do by themselves: they stroll a little, rest, and blink. Ornament: where motion
 * troubles somebody, nothing of this runs.
 */

/** Seconds, from the least to the most. Tests hurry it. */
export const PACE = { rest: [2, 9], stroll: [0.8, 2.6], blink: [2, 7] };

/** Seconds for which eyes are closed: a body's are while its `blink` is below. */
export const CLOSED = 0.14;

const SPEED = [18, 46]; // CSS pixels a second
const GRIP = 8; // how quickly a stroller takes up its speed, a second
const TOUCHED = 6; // seconds for which it stays after a hand or a key had it
const MARGIN = 1.3; // of its half side: so far from an edge it turns around

/**
 * Gives a body what this file keeps of it.
 *
 * @param {() => number} random in [0, 1)
 * @returns {{rest: number, stroll: number, strollX: number, strollY: number, blink: number}} seconds
 *     until it strolls; those it still strolls; its speed then; seconds until its eyes are open again
 */
export function makeLife(random) {
  return {
    rest: between(PACE.rest, random()),
    stroll: 0,
    strollX: 0,
    strollY: 0,
    blink: between(PACE.blink, random())
  };
}

/** A body was touched: it stays where it is for a while. */
export function settle(body) {
  body.stroll = 0;
  body.rest = Math.max(body.rest, TOUCHED);
}

/**
 * Lets bodies live for a moment.
 *
 * @param {import('./desktop.js').Desktop} desktop
 * @param {number} time seconds
 * @param {() => number} random in [0, 1)
 * @returns {number} seconds until something is to be drawn differently; 0 while one strolls
 */
export function live(desktop, time, random) {
  let due = Infinity;
  for (const body of desktop.bodies) {
    body.blink -= time;
    if (!(body.blink > 0)) body.blink = between(PACE.blink, random());
    due = Math.min(due, body.blink > CLOSED ? body.blink - CLOSED : body.blink);
    if (body.held || body.flight) continue;
    if (body.stroll > 0) stroll(desktop, body, time, random);
    else if (body.vx === 0 && body.vy === 0) body.rest -= time;
    if (body.stroll <= 0 && body.rest <= 0) setOut(body, random);
    due = Math.min(due, body.stroll > 0 ? 0 : body.rest);
  }
  return due;
}

function setOut(body, random) {
  const turn = random() * 2 * Math.PI;
  const speed = between(SPEED, random());
  body.stroll = between(PACE.stroll, random());
  body.strollX = Math.cos(turn) * speed;
  body.strollY = Math.sin(turn) * speed;
  body.tame = true;
}

function stroll({ width, height }, body, time, random) {
  const margin = body.half * MARGIN;
  body.strollX = inward(body.strollX, body.x, margin, width);
  body.strollY = inward(body.strollY, body.y, margin, height);
  const grip = 1 - Math.exp(-GRIP * time);
  body.vx += (body.strollX - body.vx) * grip;
  body.vy += (body.strollY - body.vy) * grip;
  body.stroll -= time;
  if (body.stroll <= 0) body.rest = between(PACE.rest, random());
}

/** A speed along one axis, turned away from an edge that is nearer than `margin`. */
export function inward(speed, at, margin, length) {
  if (at < margin) return Math.abs(speed);
  return at > length - margin ? -Math.abs(speed) : speed;
}

function between([least, most], share) {
  return least + (most - least) * share;
}
