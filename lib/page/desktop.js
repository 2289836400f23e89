import { EDGES, opposite } from '../client/client.js';
import { bumpBodies, inward, stepLife, makeLife, settle } from './life.js';

/**
 * The desktop as a plane on which sprites slide, walk, hop and leave: numbers only, no DOM.
 *
 *        0 ───────── x ───────▶ width        A body leaves when its middle crosses an edge, and
 *      0 ┌─────────────────────┐              enters with its middle on the edge. So all of it is
 *        │            ○──▶     │              visible, half here and half on the other desktop.
 *      y │   ◐ resting         ◑ flying: its throw is not yet answered
 *        ▼                     │
 * height └─────────────────────┘              Without contact to the server, edges are walls.
 *
 * Bodies bump into each other, and stroll by themselves (life.js).
 *
 * Lengths are in CSS pixels, times in seconds. `step` runs once a frame and allocates nothing.
 */

const FRICTION = 1.15; // rate at which the speed decays, a second: a body of speed v slides almost v / FRICTION
const DRAG = 45; // further loss of speed a second, so that a body comes to rest and doesn't creep
const LIFT_IN = 70; // part of the least speed of an entering body: more than the drag takes on its way in
const GRAVITY = 2100;
const JUMP_SPEED = 560;
const WALK_SPEED = 0.42; // edge lengths a second
const WALK_GRIP = 14; // rate at which a walker approaches its speed, a second
const BOUNCE = 0.62; // share of the speed that is left after a wall
const MIN_WALL_SPEED = 120; // least speed after a wall
const RETURN_SPEED = 0.35; // least speed of a refused sprite that comes back, in edge lengths a second
const OVERHANG = 0.5; // half sides: a body let go this close to an edge is thrown over it
const LET_GO_SPEED = 0.8; // least speed of that throw, in edge lengths a second
const FLUNG_SPEED = 0.2; // edge lengths a second: a slower body may only tremble with the hand
const AIM_TIME = 0.15; // seconds: age of the position at which a hand may have aimed
const PRESS_TIME = 6; // seconds for which overlapping bodies that can't get apart are pushed
const PASS_TIMES = [0.4, 1.5]; // shortest and longest flight across a full desktop, in seconds
const PEEK_AFTER = 0.7; // seconds without an answer after which a flying sprite is visible again

/** Members of a body and of the desktop, by axis. */
const X = { at: 'x', speed: 'vx', length: 'width' };
const Y = { at: 'y', speed: 'vy', length: 'height' };

/** Geometry of each edge: the axis that leads over it, the axis along it, and the sign of the way out. */
export const WAYS = {
  left: { over: X, along: Y, out: -1 },
  right: { over: X, along: Y, out: 1 },
  up: { over: Y, along: X, out: -1 },
  down: { over: Y, along: X, out: 1 }
};

/**
 * @typedef {object} Body a sprite on this desktop
 * @property {import('../client/sprite.js').Sprite} sprite
 * @property {number} x of its middle
 * @property {number} y
 * @property {number} vx CSS pixels a second
 * @property {number} vy
 * @property {number} z height above the desktop, while it hops
 * @property {number} vz
 * @property {number} half half of its side
 * @property {boolean} held by a pointer
 * @property {''|'left'|'right'|'up'|'down'} flight the edge over which it flies until the throw is answered; else ''
 * @property {number} flightTime seconds since it crossed that edge
 * @property {object|null} ticket of its throw
 * @property {boolean} isAccepted its throw was accepted, and it is still drawn as it leaves: no reload keeps it
 * @property {boolean} tame it strolls, or another body has bumped it: edges turn it around until it is thrown
 * @property {boolean} stranger it comes from another desktop
 * @property {boolean} isNew it came in a moment ago, and shows its sender
 * @property {number} rest and `stroll`, `strollX`, `strollY`, `blink`: see life.js
 * @property {object|null} images its images, for the stage
 */

export class Desktop {
  /** @type {Body[]} from the bottom to the top */
  bodies = [];
  width = 1;
  height = 1;
  /** @type {boolean} whether sprites may leave */
  isOpen = false;
  /** @type {Body|null} the body that keys move */
  selected = null;
  /** Direction in which the selected body walks: -1, 0 or 1 along each axis. */
  walkX = 0;
  walkY = 0;
  /** @type {number} seconds until a body strolls or blinks; 0: a body strolls; Infinity: no body will */
  nextLifeIn = Infinity;
  #pressedTime = 0; // seconds for which nothing moved but overlapping bodies
  #onLeave;
  #onBump;
  #random;

  /**
   * @param {(body: Body, edge: string) => void} onLeave called when a body's middle has crossed an
   *     open edge. The body flies until `remove` or `returnFromEdge` is called
   * @param {(strength: number) => void} [onBump] called when two bodies meet, with their closing
   *     speed in CSS pixels a second
   * @param {() => number} [random] in [0, 1)
   */
  constructor(onLeave, onBump = () => {}, random = Math.random) {
    this.#onLeave = onLeave;
    this.#onBump = onBump;
    this.#random = random;
  }

  /**
   * Sets a new size. Every body keeps its place as a share of the size. The least size is one pixel,
   * so that a window squeezed to nothing does not lose these shares.
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
      isAccepted: false,
      tame: false,
      stranger: false,
      isNew: false,
      ...makeLife(this.#random),
      images: null
    };
    this.bodies.push(body);
    this.#pressedTime = 0;
    return body;
  }

  /**
   * Lets a sprite in at an edge, with the position and the speed with which it left the other desktop.
   *
   * @param {import('../client/sprite.js').Sprite} sprite
   * @param {'left'|'right'|'up'|'down'} from
   * @param {number} half
   * @returns {Body}
   */
  enter(sprite, from, half) {
    const { over, along, out } = WAYS[from];
    const length = this[over.length];
    // A sprite that is too slow to get in gets the least speed for it.
    const speed = Math.max(sprite.speed[0] * length, FRICTION * half * 1.5 + LIFT_IN);
    const entered = { half, [over.at]: out < 0 ? 0 : length, [over.speed]: -out * speed };
    entered[along.at] = sprite.at * this[along.length];
    entered[along.speed] = sprite.speed[1] * this[along.length];
    return this.add(sprite, entered);
  }

  /**
   * Lets a sprite fly across a full desktop. No hand can grab it: it counts as flying over the
   * opposite edge from the beginning.
   *
   * @param {import('../client/sprite.js').Sprite} sprite
   * @param {'left'|'right'|'up'|'down'} from
   * @param {number} half
   * @returns {{body: Body, time: number}} time: seconds until it is at
   *     the opposite edge, to be thrown on
   */
  passThrough(sprite, from, half) {
    const body = this.enter(sprite, from, half);
    const time = Math.min(PASS_TIMES[1], Math.max(PASS_TIMES[0], 1 / sprite.speed[0]));
    const { over, out } = WAYS[from];
    body[over.speed] = (-out * this[over.length]) / time;
    body.flight = opposite(from);
    return { body, time };
  }

  /**
   * Returns position and speed of a body that crosses an edge, as in a written sprite.
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

  /** Puts a body into a hand: on top of the others, and without speed. */
  pickUp(body) {
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

  /** Removes a body that was thrown or put away. */
  remove(body) {
    const index = this.bodies.indexOf(body);
    if (index >= 0) this.bodies.splice(index, 1);
    if (this.selected === body) this.selected = null;
  }

  /** Notes that a flying sprite has come around the torus: its throw was accepted, though it is not yet answered. */
  markAccepted(id) {
    const body = this.bodies.find(({ flight, sprite }) => flight && sprite.id === id);
    if (body) body.isAccepted = true;
  }

  /** Lets a body whose throw was refused come back from its edge. */
  returnFromEdge(body) {
    const { flight: edge, half } = body;
    if (!edge) return;
    body.flight = '';
    body.ticket = null;
    const { over, out } = WAYS[edge];
    const { at, speed, length } = over;
    body[at] = out < 0 ? Math.max(body[at], -half) : Math.min(body[at], this[length] + half);
    body[speed] = -out * Math.max(Math.abs(body[speed]) * BOUNCE, this[length] * RETURN_SPEED);
  }

  /** @returns {boolean} whether any body moves, flies or is held */
  get isMoving() {
    return this.bodies.some(
      (body) =>
        body.held || body.flight || body.vx !== 0 || body.vy !== 0 || body.z > 0 || body.vz !== 0
    );
  }

  /** Lets the selected body hop, if it is on the ground. */
  jump() {
    const body = this.selected;
    if (body && body.z === 0 && !body.flight) body.vz = JUMP_SPEED;
  }

  /**
   * Returns the edge over which a body hangs, or past which it was dragged.
   *
   * @param {number} x of its middle, if it were not kept on the desktop
   * @param {number} y
   * @param {number} half
   * @returns {''|'left'|'right'|'up'|'down'} the edge it is farthest over; '' for none
   */
  overhang(x, y, half) {
    const distances = { left: -x, right: x - this.width, up: -y, down: y - this.height };
    let farthest = '';
    for (const edge of EDGES) {
      if (distances[edge] >= -OVERHANG * half && !(distances[edge] <= distances[farthest]))
        farthest = edge;
    }
    return farthest;
  }

  /** @returns {boolean} whether a body was flung away from an edge: its speed is more than a hand's trembling */
  isFlungBack(body, edge) {
    const { over, out } = WAYS[edge];
    return (-out * body[over.speed]) / this[over.length] > FLUNG_SPEED;
  }

  /** Sends a body out over a near edge, with its own speed or LET_GO_SPEED, whichever is more. */
  pushOver(body, edge) {
    const { over, out } = WAYS[edge];
    body.tame = false;
    body[over.speed] = out * Math.max(out * body[over.speed], LET_GO_SPEED * this[over.length]);
  }

  /**
   * Returns the body at which a pointer aims: the topmost at the point, or else the topmost that was
   * there in the last AIM_TIME seconds, when the hand took aim.
   *
   * @param {number} x
   * @param {number} y
   * @param {number} tolerance CSS pixels by which the point may miss a body
   * @returns {Body|null}
   */
  bodyAt(x, y, tolerance) {
    return this.#topmost(x, y, tolerance, 0) ?? this.#topmost(x, y, tolerance, AIM_TIME);
  }

  /** Returns the topmost body that was at a point at any moment of the last `lead` seconds. */
  #topmost(x, y, tolerance, lead) {
    for (let i = this.bodies.length - 1; i >= 0; i -= 1) {
      const body = this.bodies[i];
      if (body.flight) continue;
      const reach = body.half + tolerance;
      const dx = distanceTo(x - body.x, -body.vx * lead);
      const dy = distanceTo(y - body.y + body.z, -body.vy * lead);
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
   * Moves all bodies.
   *
   * @param {number} dt seconds; at most 1/20 is used, so that bodies don't jump after a sleep of the page
   * @param {boolean} [lively] whether bodies stroll and blink; then `nextLifeIn` is set
   * @returns {boolean} whether anything is still moving
   */
  step(dt, lively = false) {
    const time = Math.min(dt, 1 / 20);
    this.nextLifeIn = lively ? stepLife(this, time, this.#random) : Infinity;
    const slow = Math.exp(-FRICTION * time);
    let isMoving = false;
    // Backwards, since a body may leave the list meanwhile.
    for (let i = this.bodies.length - 1; i >= 0; i -= 1) {
      const body = this.bodies[i];
      if (body.held) continue;
      if (body.flight) {
        this.#fly(body, time);
        isMoving = true;
      } else if (this.#slide(body, time, slow)) {
        isMoving = true;
      }
    }
    // A heap that found no room in PRESS_TIME seconds stays as it is, until another body moves.
    if (isMoving) this.#pressedTime = 0;
    if (this.#pressedTime > PRESS_TIME || !bumpBodies(this, time, this.#onBump)) return isMoving;
    this.#pressedTime += time;
    return true;
  }

  /** Advances rest and blink by a time in which nothing moved, at most by `nextLifeIn`. */
  advanceRest(seconds) {
    const time = Math.min(seconds, this.nextLifeIn);
    for (const body of this.bodies) {
      body.rest -= time;
      body.blink -= time;
    }
  }

  #slide(body, time, slow) {
    const isWalking = body === this.selected && (this.walkX !== 0 || this.walkY !== 0);
    if (isWalking) {
      settle(body);
      body.tame = false;
      const speed = WALK_SPEED * Math.min(this.width, this.height);
      const grip = 1 - Math.exp(-WALK_GRIP * time);
      body.vx += (this.walkX * speed - body.vx) * grip;
      body.vy += (this.walkY * speed - body.vy) * grip;
    } else if (body.z === 0) {
      const speed = Math.hypot(body.vx, body.vy) * slow;
      const speedShare = speed > DRAG * time ? slow * (1 - (DRAG * time) / speed) : 0;
      body.vx *= speedShare;
      body.vy *= speedShare;
    }
    if (body.vz !== 0 || body.z > 0) {
      body.vz -= GRAVITY * time;
      body.z += body.vz * time;
      // A body that rises from the ground has not landed, even where no time has passed.
      if (body.z <= 0 && body.vz <= 0) {
        body.z = 0;
        body.vz = 0;
      }
    }
    body.x += body.vx * time;
    body.y += body.vy * time;
    if (body.tame) this.#turnAtEdges(body);
    else if (this.isOpen) this.#leaveOverEdge(body);
    else this.#bounceOffWalls(body);
    return isWalking || body.vx !== 0 || body.vy !== 0 || body.z > 0 || body.vz !== 0;
  }

  #leaveOverEdge(body) {
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

  /** Turns a tame body around at the edges: it was not thrown. */
  #turnAtEdges(body) {
    const { half, x, y } = body;
    body.vx = inward(body.vx, x, half, this.width);
    body.vy = inward(body.vy, y, half, this.height);
    this.#keepInside(body);
  }

  #keepInside(body) {
    body.x = Math.min(this.width, Math.max(0, body.x));
    body.y = Math.min(this.height, Math.max(0, body.y));
  }

  /** Bounces a body that runs into a wall, and pushes in a body that stands in one. */
  #bounceOffWalls(body) {
    const { half } = body;
    if (body.x < half && body.vx <= 0) body.vx = bounceSpeed(body.vx);
    else if (body.x > this.width - half && body.vx >= 0) body.vx = -bounceSpeed(body.vx);
    if (body.y < half && body.vy <= 0) body.vy = bounceSpeed(body.vy);
    else if (body.y > this.height - half && body.vy >= 0) body.vy = -bounceSpeed(body.vy);
    this.#keepInside(body);
  }

  /** Moves a flying body out of sight behind its edge. While the answer is late, the body peeks over the edge. */
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

function bounceSpeed(speed) {
  return Math.max(Math.abs(speed) * BOUNCE, MIN_WALL_SPEED);
}

/** Returns the signed distance of a point from the interval between 0 and `end`. */
function distanceTo(point, end) {
  return point - Math.max(Math.min(0, end), Math.min(point, Math.max(0, end)));
}
