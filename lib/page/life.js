/**
 * Motion of sprites by themselves: they stroll a little, rest, and blink. It is ornament: nothing of
 * this runs for visitors who prefer reduced motion.
 */

/** Ranges of times, in seconds. Tests shorten them. */
export const PACE = { rest: [2, 9], stroll: [0.8, 2.6], blink: [2, 7] };

/** Seconds for which eyes are closed: a body's eyes are closed while its `blink` is below this. */
export const EYES_CLOSED_TIME = 0.14;

const STROLL_SPEEDS = [18, 46]; // CSS pixels a second
const GRIP = 8; // rate at which a stroller approaches its speed, a second
const REST_AFTER_TOUCH = 6; // seconds for which a body stays after a hand or a key has moved it
const EDGE_MARGIN = 1.3; // half sides: distance from an edge at which a stroller turns around

/**
 * Returns the members of a body for strolling and blinking.
 *
 * @param {() => number} random in [0, 1)
 * @returns {{rest: number, stroll: number, strollX: number, strollY: number, blink: number}} `rest`:
 *     seconds until it strolls; `stroll`: seconds it still strolls; `strollX`, `strollY`: its speed then; `blink`:
 *     seconds until the end of its next blink
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

/** Keeps a body that was touched in its place for a while. */
export function settle(body) {
  body.stroll = 0;
  body.rest = Math.max(body.rest, REST_AFTER_TOUCH);
}

/**
 * Lets bodies stroll and blink for a moment.
 *
 * @param {import('./desktop.js').Desktop} desktop
 * @param {number} time seconds
 * @param {() => number} random in [0, 1)
 * @returns {number} seconds until the picture changes; 0 while a body strolls
 */
export function stepLife(desktop, time, random) {
  let due = Infinity;
  for (const body of desktop.bodies) {
    body.blink -= time;
    if (!(body.blink > 0)) body.blink = between(PACE.blink, random());
    due = Math.min(due, body.blink > EYES_CLOSED_TIME ? body.blink - EYES_CLOSED_TIME : body.blink);
    if (body.held || body.flight) continue;
    if (body.stroll > 0) stroll(desktop, body, time, random);
    else if (body.vx === 0 && body.vy === 0) body.rest -= time;
    if (body.stroll <= 0 && body.rest <= 0) startStroll(body, random);
    due = Math.min(due, body.stroll > 0 ? 0 : body.rest);
  }
  return due;
}

function startStroll(body, random) {
  const angle = random() * 2 * Math.PI;
  const speed = between(STROLL_SPEEDS, random());
  body.stroll = between(PACE.stroll, random());
  body.strollX = Math.cos(angle) * speed;
  body.strollY = Math.sin(angle) * speed;
  body.tame = true;
}

function stroll({ width, height }, body, time, random) {
  const margin = body.half * EDGE_MARGIN;
  body.strollX = inward(body.strollX, body.x, margin, width);
  body.strollY = inward(body.strollY, body.y, margin, height);
  const grip = 1 - Math.exp(-GRIP * time);
  body.vx += (body.strollX - body.vx) * grip;
  body.vy += (body.strollY - body.vy) * grip;
  body.stroll -= time;
  if (body.stroll <= 0) body.rest = between(PACE.rest, random());
}

/** Returns a speed along one axis, turned away from an edge that is nearer than `margin`. */
export function inward(speed, position, margin, length) {
  if (position < margin) return Math.abs(speed);
  return position > length - margin ? -Math.abs(speed) : speed;
}

/** Returns the number at a share of the way between two numbers. */
export function between([least, most], share) {
  return least + (most - least) * share;
}

/**
 * Sprites bump into each other instead of lying on top of each other. A fast sprite flies over the
 * others, so that no throw is stopped, and no stranger's throw sweeps a desktop. A sprite that was
 * bumped stays on the desktop (`tame`): a sprite leaves over an edge only when it is thrown.
 */

const BUMP_RADIUS = 0.82; // radius of a sprite for bumps, in half sides
const FLYOVER_SPEED = 320; // CSS pixels a second from which a sprite flies over the others
const FLYOVER_HEIGHT = 20; // CSS pixels of a hop from which a sprite jumps over the others
const BOUNCE = 0.6; // share of the closing speed that is left after a bump
const SEPARATION_RATE = 20; // rate at which the overlap of two sprites shrinks, a second
const CROWDED_SHARE = 0.55; // covered share of a desktop above which nothing bumps: there is no room to get apart
const ALLOWED_OVERLAP = 0.5; // CSS pixels that two sprites may overlap; otherwise they would never rest
const AUDIBLE_SPEED = 50; // closing speed above which a bump is heard, in CSS pixels a second

/**
 * Lets bodies bump for a moment.
 *
 * @param {import('./desktop.js').Desktop} desktop
 * @param {number} time seconds
 * @param {(strength: number) => void} onBump called with the closing speed, in CSS pixels a second
 * @returns {boolean} whether overlapping bodies were moved apart
 */
export function bumpBodies(desktop, time, onBump) {
  const { bodies } = desktop;
  if (isCrowded(desktop)) return false;
  let hasMoved = false;
  for (let i = 0; i < bodies.length; i += 1) {
    const a = bodies[i];
    if (!isSolid(a)) continue;
    for (let j = i + 1; j < bodies.length; j += 1) {
      const b = bodies[j];
      const reach = (a.half + b.half) * BUMP_RADIUS;
      const dx = b.x - a.x;
      const dy = b.y - a.y;
      if (dx >= reach || dx <= -reach || dy >= reach || dy <= -reach || !isSolid(b)) continue;
      const distance = Math.hypot(dx, dy);
      if (distance >= reach - ALLOWED_OVERLAP) continue;
      // Bodies in one place are parted in all directions.
      const nx = distance > 0 ? dx / distance : Math.cos(i + j);
      const ny = distance > 0 ? dy / distance : Math.sin(i + j);
      exchangeSpeeds(a, b, nx, ny, onBump);
      const apart = (reach - distance) * Math.min(1, SEPARATION_RATE * time);
      moveApart(desktop, a, b, nx * apart, ny * apart);
      hasMoved = true;
    }
  }
  return hasMoved;
}

function isSolid(body) {
  return (
    !body.held &&
    !body.flight &&
    body.z < FLYOVER_HEIGHT &&
    body.vx * body.vx + body.vy * body.vy < FLYOVER_SPEED * FLYOVER_SPEED
  );
}

function isCrowded({ bodies, width, height }) {
  let covered = 0;
  for (let i = 0; i < bodies.length; i += 1) covered += (bodies[i].half * 2 * BUMP_RADIUS) ** 2;
  return covered > CROWDED_SHARE * width * height;
}

/** Lets two bodies of the same weight exchange their speeds along the line between them. */
function exchangeSpeeds(a, b, nx, ny, onBump) {
  const closing = (a.vx - b.vx) * nx + (a.vy - b.vy) * ny;
  if (closing <= 0) return;
  const push = ((1 + BOUNCE) * closing) / 2;
  a.vx -= push * nx;
  a.vy -= push * ny;
  b.vx += push * nx;
  b.vy += push * ny;
  a.tame = true;
  b.tame = true;
  if (closing > AUDIBLE_SPEED) onBump(closing);
}

/** Moves two bodies apart by `dx` and `dy` in all. If a wall stops one of them, the other moves all of it. */
function moveApart({ width, height }, a, b, dx, dy) {
  let x = a.x;
  let y = a.y;
  a.x = Math.max(0, Math.min(width, a.x - dx / 2));
  a.y = Math.max(0, Math.min(height, a.y - dy / 2));
  const movedX = b.x + dx - (x - a.x);
  const movedY = b.y + dy - (y - a.y);
  x = Math.max(0, Math.min(width, movedX));
  y = Math.max(0, Math.min(height, movedY));
  a.x = Math.max(0, Math.min(width, a.x - (movedX - x)));
  a.y = Math.max(0, Math.min(height, a.y - (movedY - y)));
  b.x = x;
  b.y = y;
}
