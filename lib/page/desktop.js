import { EDGES, opposite } from '../client/client.js';
import { bump, inward, live, makeLife, settle } from './life.js';

/**
 * The desktop as a plane on which sprites slide, walk, hop and leave: numbers only, no DOM.
 *
 *        0 ───────── x ───────▶ width        A body leaves when its middle crosses an edge, and
 *      0 ┌─────────────────────┐              enters with its middle on the edge; so it is seen
 *        │            ○──▶     │              whole, half here and half there.
 *      y │   ◐ resting         ◑ flying: its throw is not yet answered
 *        ▼                     │
 * height └─────────────────────┘              Where there is no way out (offline) edges are walls.
 *
 * It bumps into others, and strolls by itself where it may (life.js).
 *
 * Lengths are CSS pixels, times seconds. `step` runs once a frame and allocates nothing.
 */

const FRICTION = 1.15; // of the speed, a second: what is thrown at v slides almost v / FRICTION
const DRAG = 45; // and this much of it besides, a second, so that it comes to rest and doesn't creep
const LIFT_IN = 70; // more than the drag takes, to get over an edge
const GRAVITY = 2100;
const JUMP = 560;
const WALK = 0.42; // edge lengths a second
const WALK_GRIP = 14; // how quickly a walker takes up its speed, a second
const BOUNCE = 0.62; // of the speed is left after a wall
const PUSH = 120; // the least with which a wall pushes away
const BACK = 0.35; // edge lengths a second: the least with which a refused sprite comes back
const OVERHANG = 0.5; // of its half side: let go so close to an edge, it is meant to go over it
const LET_GO = 0.8; // edge lengths a second: the least at which it goes
const FLUNG = 0.2; // edge lengths a second: quicker is no trembling of a hand
const LEAD = 0.15; // seconds: so long ago a hand may have aimed at where a body was
const PRESS = 6; // seconds
const PASSING = [0.4, 1.5]; // seconds: the least and the most one takes that only flies across
const PEEK_AFTER = 0.7; // seconds without an answer after which a flying sprite shows itself again

/** What of a body and of the desktop is on an axis. */
const X = { at: 'x', speed: 'vx', length: 'width' };
const Y = { at: 'y', speed: 'vy', length: 'height' };

/** How each edge lies: the axis that leads over it and the one along it, and which way is out. */
export const WAYS = {
  left: { over: X, along: Y, out: -1 },
  right: { over: X, along: Y, out: 1 },
  up: { over: Y, along: X, out: -1 },
  down: { over: Y, along: X, out: 1 }
};

/**
 * @typedef {object} Body a sprite on this desktop
 * @property {import('../client/sprite.js').Sprite} sprite
 * @property {number} x its middle
 * @property {number} y
 * @property {number} vx a second
 * @property {number} vy
 * @property {number} z height above the desktop, while it hops
 * @property {number} vz
 * @property {number} half half its side
 * @property {boolean} held by a pointer
 * @property {''|'left'|'right'|'up'|'down'} flight the edge over which it flies, unanswered yet
 * @property {number} flightTime seconds since it crossed that edge
 * @property {object|null} ticket of that throw
 * @property {boolean} arrived its throw was accepted, and it is still seen leaving: no reload keeps it
 * @property {boolean} tame it was bumped into or strolls: edges are walls for it until it is thrown
 * @property {boolean} stranger it is from another desktop
 * @property {boolean} isNew it has just come in, and shows its sender
 * @property {number} rest and `stroll`, `strollX`, `strollY`, `blink`: see life.js
 * @property {object|null} look what the stage draws it with
 */

export class Desktop {
  /** @type {Body[]} the last one lies on top */
  bodies = [];
  width = 1;
  height = 1;
  /** @type {boolean} whether sprites may leave */
  open = false;
  /** @type {Body|null} the one that walks */
  selected = null;
  /** -1, 0 or 1 along each axis: where the selected one is asked to walk */
  walkX = 0;
  walkY = 0;
  /** @type {number} seconds until something happens by itself; 0: it does; Infinity: nothing lives */
  due = Infinity;
  #pressed = 0; // seconds for which nothing moved but what lay on each other
  #onLeave;
  #onBump;
  #random;

  /**
   * @param {(body: Body, edge: string) => void} onLeave a body's middle has crossed an open edge.
   *     It flies until `gone` or `back` is called
   * @param {(strength: number) => void} [onBump] two have met, at so many CSS pixels a second
   * @param {() => number} [random] in [0, 1)
   */
  constructor(onLeave, onBump = () => {}, random = Math.random) {
    this.#onLeave = onLeave;
    this.#onBump = onBump;
    this.#random = random;
  }

  /**
   * Takes a new size; everything keeps its place as a share of it. A window squeezed to nothing
   * counts as one pixel, or there would be no share to come back by.
   */
  resize(newWidth, newHeight) {
    const width = Math.max(1, newWidth);
    const height = Math.max(1, newHeight);
    const sx = width / this.width;
    const sy = height / this.height;
    for (const body of this.bodies) {
      body.x *= sx;
      body.y *= sy;
    }
    this.width = width;
    this.height = height;
  }

  /**
   * Puts a sprite on the desktop.
   *
   * @param {import('../client/sprite.js').Sprite} sprite
   * @param {{x: number, y: number, half: number, vx?: number, vy?: number, vz?: number}} where
   * @returns {Body}
   */
  add(sprite, { x, y, half, vx = 0, vy = 0, vz = 0 }) {
    const body = {
      sprite,
      x,
      y,
      vx,
      vy,
      z: 0,
      vz,
      half,
      held: false,
      flight: '',
      flightTime: 0,
      ticket: null,
      arrived: false,
      tame: false,
      stranger: false,
      isNew: false,
      ...makeLife(this.#random),
      look: null
    };
    this.bodies.push(body);
    this.#pressed = 0;
    return body;
  }

  /**
   * Lets a sprite in by an edge: at the height at which it left the other desktop, and as fast.
   *
   * @param {import('../client/sprite.js').Sprite} sprite
   * @param {'left'|'right'|'up'|'down'} from
   * @param {number} half
   * @returns {Body}
   */
  enter(sprite, from, half) {
    const { over, along, out } = WAYS[from];
    const length = this[over.length];
    // One that is too slow to get over the edge is helped in.
    const speed = Math.max(sprite.speed[0] * length, FRICTION * half * 1.5 + LIFT_IN);
    const entered = { half, [over.at]: out < 0 ? 0 : length, [over.speed]: -out * speed };
    entered[along.at] = sprite.at * this[along.length];
    entered[along.speed] = sprite.speed[1] * this[along.length];
    return this.add(sprite, entered);
  }

  /**
   * Lets a sprite in that finds no room: it flies across, out of every hand's reach, and is in
   * flight over the opposite edge.
   *
   * @param {import('../client/sprite.js').Sprite} sprite
   * @param {'left'|'right'|'up'|'down'} from
   * @param {number} half
   * @returns {{body: Body, time: number}} time: seconds until it is there, to be thrown on
   */
  pass(sprite, from, half) {
    const body = this.enter(sprite, from, half);
    const time = Math.min(PASSING[1], Math.max(PASSING[0], 1 / sprite.speed[0]));
    const { over, out } = WAYS[from];
    body[over.speed] = (-out * this[over.length]) / time;
    body.flight = opposite(from);
    return { body, time };
  }

  /**
   * What a throw says about a body that crosses an edge.
   *
   * @param {Body} body
   * @param {'left'|'right'|'up'|'down'} edge
   * @returns {{at: number, speed: [number, number]}}
   */
  crossing(body, edge) {
    const { over, along } = WAYS[edge];
    const speed = [over, along].map((axis) => body[axis.speed] / this[axis.length]);
    return { at: body[along.at] / this[along.length], speed: [Math.abs(speed[0]), speed[1]] };
  }

  /** Takes a body into a hand, on top of the others, where it stands still. */
  hold(body) {
    this.selected = body;
    this.raise(body);
    settle(body);
    body.held = true;
    body.tame = false;
    body.vx = 0;
    body.vy = 0;
    body.z = 0;
    body.vz = 0;
  }

  /** Takes a body off the desktop: it was thrown, or put away. */
  gone(body) {
    const index = this.bodies.indexOf(body);
    if (index >= 0) this.bodies.splice(index, 1);
    if (this.selected === body) this.selected = null;
  }

  /** Notes that what flies over an edge has come around: its throw was accepted, though unanswered yet. */
  arrived(id) {
    const body = this.bodies.find(({ flight, sprite }) => flight && sprite.id === id);
    if (body) body.arrived = true;
  }

  /** Lets a body that could not leave come back from its edge. */
  back(body) {
    const { flight: edge, half } = body;
    if (!edge) return;
    body.flight = '';
    body.ticket = null;
    const { over, out } = WAYS[edge];
    const { at, speed, length } = over;
    body[at] = out < 0 ? Math.max(body[at], -half) : Math.min(body[at], this[length] + half);
    body[speed] = -out * Math.max(Math.abs(body[speed]) * BOUNCE, this[length] * BACK);
  }

  /** @returns {boolean} whether anything is on its way, or in a hand */
  get moving() {
    return this.bodies.some(
      (body) =>
        body.held || body.flight || body.vx !== 0 || body.vy !== 0 || body.z > 0 || body.vz !== 0
    );
  }

  /** Lets the selected one hop, from the ground. */
  jump() {
    const body = this.selected;
    if (body && body.z === 0 && !body.flight) body.vz = JUMP;
  }

  /**
   * The edge over which a body hangs, or past which it was dragged.
   *
   * @param {number} x where its middle would be, if nothing had held it on the desktop
   * @param {number} y
   * @param {number} half
   * @returns {''|'left'|'right'|'up'|'down'} the one it is farthest over; none is ''
   */
  overhang(x, y, half) {
    const over = { left: -x, right: x - this.width, up: -y, down: y - this.height };
    let most = '';
    for (const edge of EDGES) {
      if (over[edge] >= -OVERHANG * half && !(over[edge] <= over[most])) most = edge;
    }
    return most;
  }

  /** @returns {boolean} whether a body was flung away from an edge, and not only trembles there */
  isFlungBack(body, edge) {
    const { over, out } = WAYS[edge];
    return (-out * body[over.speed]) / this[over.length] > FLUNG;
  }

  /** Sends a body out over an edge, which it is near: as fast as it goes, and not too slow. */
  push(body, edge) {
    const { over, out } = WAYS[edge];
    body.tame = false;
    body[over.speed] = out * Math.max(out * body[over.speed], LET_GO * this[over.length]);
  }

  /**
   * The body that is meant by a point: the topmost that is there, or else one that was there a moment
   * ago, when the hand aimed at it.
   *
   * @param {number} x
   * @param {number} y
   * @param {number} near how far beside a body still counts
   * @returns {Body|null}
   */
  hit(x, y, near) {
    return this.#topmost(x, y, near, 0) ?? this.#topmost(x, y, near, LEAD);
  }

  /** The topmost at a point at any moment of the last `lead` seconds. */
  #topmost(x, y, near, lead) {
    for (let i = this.bodies.length - 1; i >= 0; i -= 1) {
      const body = this.bodies[i];
      if (body.flight) continue;
      const reach = body.half + near;
      const dx = beside(x - body.x, -body.vx * lead);
      const dy = beside(y - body.y + body.z, -body.vy * lead);
      if (Math.abs(dx) <= reach && Math.abs(dy) <= reach) return body;
    }
    return null;
  }

  /** Puts a body on top of the others. */
  raise(body) {
    const index = this.bodies.indexOf(body);
    if (index < 0 || index === this.bodies.length - 1) return;
    this.bodies.splice(index, 1);
    this.bodies.push(body);
  }

  /**
   * Lets time pass.
   *
   * @param {number} dt seconds; long ones are cut, so that a page that slept doesn't jump
   * @param {boolean} [lively] whether they stroll and blink; then `due` says when next
   * @returns {boolean} whether anything is still moving
   */
  step(dt, lively = false) {
    const time = Math.min(dt, 1 / 20);
    this.due = lively ? live(this, time, this.#random) : Infinity;
    const slow = Math.exp(-FRICTION * time);
    let moving = false;
    // Backwards, since a body may leave the list on its way.
    for (let i = this.bodies.length - 1; i >= 0; i -= 1) {
      const body = this.bodies[i];
      if (body.held) continue;
      if (body.flight) {
        this.#fly(body, time);
        moving = true;
      } else if (this.#slide(body, time, slow)) {
        moving = true;
      }
    }
    // A heap that finds no room in all this time lies as it lies, until something else moves.
    if (moving) this.#pressed = 0;
    if (this.#pressed > PRESS || !bump(this, time, this.#onBump)) return moving;
    this.#pressed += time;
    return true;
  }

  /** Lets time pass in which nothing moved; no more of it than there was until something would. */
  wait(seconds) {
    const time = Math.min(seconds, this.due);
    for (const body of this.bodies) {
      body.rest -= time;
      body.blink -= time;
    }
  }

  #slide(body, time, slow) {
    const walking = body === this.selected && (this.walkX !== 0 || this.walkY !== 0);
    if (walking) {
      settle(body);
      body.tame = false;
      const speed = WALK * Math.min(this.width, this.height);
      const grip = 1 - Math.exp(-WALK_GRIP * time);
      body.vx += (this.walkX * speed - body.vx) * grip;
      body.vy += (this.walkY * speed - body.vy) * grip;
    } else if (body.z === 0) {
      const speed = Math.hypot(body.vx, body.vy) * slow;
      const left = speed > DRAG * time ? slow * (1 - (DRAG * time) / speed) : 0;
      body.vx *= left;
      body.vy *= left;
    }
    if (body.vz !== 0 || body.z > 0) {
      body.vz -= GRAVITY * time;
      body.z += body.vz * time;
      // Rising from the ground it has not landed, even where no time has passed.
      if (body.z <= 0 && body.vz <= 0) {
        body.z = 0;
        body.vz = 0;
      }
    }
    body.x += body.vx * time;
    body.y += body.vy * time;
    if (body.tame) this.#keep(body);
    else if (this.open) this.#cross(body);
    else this.#wall(body);
    return walking || body.vx !== 0 || body.vy !== 0 || body.z > 0 || body.vz !== 0;
  }

  #cross(body) {
    let edge = '';
    if (body.x < 0 && body.vx < 0) edge = 'left';
    else if (body.x > this.width && body.vx > 0) edge = 'right';
    else if (body.y < 0 && body.vy < 0) edge = 'up';
    else if (body.y > this.height && body.vy > 0) edge = 'down';
    if (!edge) return;
    body.flight = edge;
    body.flightTime = 0;
    this.#onLeave(body, edge);
  }

  /** A sprite that was not thrown stays: it turns around at an edge. */
  #keep(body) {
    const { half, x, y } = body;
    body.vx = inward(body.vx, x, half, this.width);
    body.vy = inward(body.vy, y, half, this.height);
    this.#within(body);
  }

  #within(body) {
    body.x = Math.min(this.width, Math.max(0, body.x));
    body.y = Math.min(this.height, Math.max(0, body.y));
  }

  /** A wall bounces what runs into it, and pushes in what stands in it. */
  #wall(body) {
    const { half } = body;
    if (body.x < half && body.vx <= 0) body.vx = bounced(body.vx);
    else if (body.x > this.width - half && body.vx >= 0) body.vx = -bounced(body.vx);
    if (body.y < half && body.vy <= 0) body.vy = bounced(body.vy);
    else if (body.y > this.height - half && body.vy >= 0) body.vy = -bounced(body.vy);
    this.#within(body);
  }

  /** Out of sight behind its edge; where the answer is late, it looks back over it. */
  #fly(body, time) {
    body.flightTime += time;
    const { over, along, out } = WAYS[body.flight];
    const isLate = body.flightTime > PEEK_AFTER;
    const hidden = body.half * (isLate ? 0.3 : 1.4);
    const to = body[over.at] + body[over.speed] * time;
    body[over.at] = out < 0 ? Math.max(-hidden, to) : Math.min(this[over.length] + hidden, to);
    if (!isLate) body[along.at] += body[along.speed] * time;
    body[along.at] = Math.min(this[along.length], Math.max(0, body[along.at]));
    if (body.z > 0) body.z = Math.max(0, body.z - 200 * time);
  }
}

function bounced(speed) {
  return Math.max(Math.abs(speed) * BOUNCE, PUSH);
}

/** How far a point is from the way between zero and `end`. */
function beside(point, end) {
  return point - Math.max(Math.min(0, end), Math.min(point, Math.max(0, end)));
}
