/**
 * What sprites do by themselves: they stroll a little, rest, and blink. Ornament: where motion
 * troubles the visitor, nothing of this runs.
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

/** A number between two. */
export function between([least, most], share) {
  return least + (most - least) * share;
}

/**
 * Sprites bump into each other instead of lying on top of each other. What is quick flies over the
 * others: a throw is never stopped, and no stranger's throw sweeps a desktop. Whatever was bumped
 * into stays on the desktop (`tame`): a sprite goes over an edge only when it is thrown.
 */

const ROUND = 0.82; // of its half side: how far the middle of a sprite keeps others away
const FAST = 320; // CSS pixels a second, above which a sprite flies over the others
const HIGH = 20; // CSS pixels of a hop, above which it jumps over them
const BOUNCE = 0.6; // of the speed at which two met is left
const APART = 20; // of what two lie on each other they are pushed apart, a second
const CROWDED = 0.55; // of the desktop covered, and there is no room for that: then they lie as they lie
const NEAR = 0.5; // CSS pixels that two may lie on each other: else they would never rest
const HEARD = 50; // CSS pixels a second at which two meet so that it is heard

/**
 * Lets bodies bump for a moment.
 *
 * @param {import('./desktop.js').Desktop} desktop
 * @param {number} time seconds
 * @param {(strength: number) => void} onBump two have met, at so many CSS pixels a second
 * @returns {boolean} whether any were moved, which lay on each other
 */
export function bump(desktop, time, onBump) {
  const { bodies } = desktop;
  if (isCrowded(desktop)) return false;
  let moved = false;
  for (let i = 0; i < bodies.length; i += 1) {
    const a = bodies[i];
    if (!isSolid(a)) continue;
    for (let j = i + 1; j < bodies.length; j += 1) {
      const b = bodies[j];
      const reach = (a.half + b.half) * ROUND;
      const dx = b.x - a.x;
      const dy = b.y - a.y;
      if (dx >= reach || dx <= -reach || dy >= reach || dy <= -reach || !isSolid(b)) continue;
      const distance = Math.hypot(dx, dy);
      if (distance >= reach - NEAR) continue;
      // Many in one place are parted in all directions.
      const nx = distance > 0 ? dx / distance : Math.cos(i + j);
      const ny = distance > 0 ? dy / distance : Math.sin(i + j);
      meet(desktop, a, b, nx, ny, onBump);
      part(desktop, a, b, nx, ny, (reach - distance) * Math.min(1, APART * time));
      moved = true;
    }
  }
  return moved;
}

function isSolid(body) {
  return (
    !body.held &&
    !body.flight &&
    body.z < HIGH &&
    body.vx * body.vx + body.vy * body.vy < FAST * FAST
  );
}

function isCrowded({ bodies, width, height }) {
  let covered = 0;
  for (let i = 0; i < bodies.length; i += 1) covered += (bodies[i].half * 2 * ROUND) ** 2;
  return covered > CROWDED * width * height;
}

/** Two of the same weight exchange their speeds along the line between them. */
function meet(desktop, a, b, nx, ny, onBump) {
  const closing = (a.vx - b.vx) * nx + (a.vy - b.vy) * ny;
  if (closing <= 0) return;
  const push = ((1 + BOUNCE) * closing) / 2;
  a.vx -= push * nx;
  a.vy -= push * ny;
  b.vx += push * nx;
  b.vy += push * ny;
  a.tame = true;
  b.tame = true;
  if (closing > HEARD) onBump(closing);
}

/** Moves two apart by so much together; where a wall stops one, the other goes all the way. */
function part({ width, height }, a, b, nx, ny, by) {
  let x = a.x;
  let y = a.y;
  a.x = Math.max(0, Math.min(width, a.x - (nx * by) / 2));
  a.y = Math.max(0, Math.min(height, a.y - (ny * by) / 2));
  const bx = b.x + nx * by - (x - a.x);
  const besideY = b.y + ny * by - (y - a.y);
  x = Math.max(0, Math.min(width, bx));
  y = Math.max(0, Math.min(height, besideY));
  a.x = Math.max(0, Math.min(width, a.x - (bx - x)));
  a.y = Math.max(0, Math.min(height, a.y - (besideY - y)));
  b.x = x;
  b.y = y;
}
