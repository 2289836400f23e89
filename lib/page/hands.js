import { PICTURES } from '../client/sprite.js';
import { settle } from './life.js';

/**
 * Pointers on the desktop: they grab, drag and throw sprites, put them away into the tray, and open one with a
 * second tap.
 */

const SAMPLES = 8; // kept positions of a pointer, to measure its speed when it lets go
const SAMPLE_AGE = 90; // ms before the last sample: an older sample says little about the throw
const SAMPLE_LOST = 500; // ms: an older sample is never used, not even where a slow machine has no other
const STILL_FOR = 120; // ms without a move after which a sprite is put down instead of thrown
const TAP = { time: 500, away: 20 }; // ms and pixels within which a second tap means the same sprite
const DRAGGED = 4; // CSS pixels: a shorter move is a tap
const FINGER = 14; // CSS pixels by which a finger may miss a sprite
const FLICK = 0.8; // edge lengths a second: a sprite let go over the tray, faster downwards, is thrown, not put away

/** @typedef {import('./desktop.js').Body} Body */

export class Hands {
  #canvas;
  #desktop;
  #told;
  #grips = new Map();
  #tray;
  /** @type {Body|null} the body under a pointer that holds nothing */
  over = null;
  #tap = { body: null, x: 0, y: 0, time: -Infinity };

  /**
   * @param {{canvas: HTMLCanvasElement, tray: HTMLElement}} elements `tray`: a sprite dropped on it is put away
   * @param {import('./desktop.js').Desktop} desktop
   * @param {object} lastView
   * @param {(body: Body) => void} lastView.onGrab called when a sprite is grabbed
   * @param {() => void} lastView.onLetGo called when a sprite was let go
   * @param {() => void} lastView.onOver called when `over` has changed
   * @param {(body: Body) => void} lastView.onAway called to put a sprite away
   * @param {(body: Body) => void} lastView.onOpen called to open a sprite large
   */
  constructor({ canvas, tray }, desktop, told) {
    this.#canvas = canvas;
    this.#tray = tray;
    this.#desktop = desktop;
    this.#told = told;
    canvas.addEventListener('pointerdown', this.#down);
    canvas.addEventListener('pointermove', this.#move);
    canvas.addEventListener('pointerup', this.#up);
    canvas.addEventListener('pointercancel', this.#up);
    canvas.addEventListener('lostpointercapture', this.#up);
    canvas.addEventListener('pointerleave', () => this.#hover(null));
    canvas.addEventListener('dblclick', (event) => {
      const body = this.#aim(event, 0);
      if (body) told.onOpen(body);
    });
  }

  /** @returns {boolean} whether a sprite is held */
  get busy() {
    return this.#grips.size > 0;
  }

  #down = (event) => {
    if (event.button > 0) return;
    const body = this.#aim(event, event.pointerType === 'touch' ? FINGER : 0);
    if (!body || body.held) return;
    this.#tap = { body, x: event.clientX, y: event.clientY, time: event.timeStamp };
    this.grab(body, event, body.x - event.offsetX, body.y - event.offsetY);
    this.#grips.get(event.pointerId).entered = true;
  };

  /** Returns the sprite at which a pointer aims. A second tap means the sprite that the first tap has stopped. */
  #aim(event, near) {
    const { body, x, y, time } = this.#tap;
    const again =
      event.timeStamp - time <= TAP.time &&
      Math.hypot(event.clientX - x, event.clientY - y) <= TAP.away;
    if (again && !body.flight && this.#desktop.bodies.includes(body)) return body;
    return this.#desktop.hit(event.offsetX, event.offsetY, near);
  }

  /**
   * Puts a body into the hand of a pointer.
   *
   * @param {Body} body
   * @param {PointerEvent} event
   * @param {number} dx from the pointer to the body's middle
   * @param {number} dy
   */
  grab(body, event, dx = 0, dy = 0) {
    if (body.held) return;
    this.#desktop.hold(body);
    // `entered`: the pointer has been over the desktop; `dragged`: it has moved. Letting go depends on both.
    const { x, y } = body;
    // Shares of the desktop's size, which may change before the body goes back there.
    const home = { x: x / this.#desktop.width, y: y / this.#desktop.height };
    const grip = { body, dx, dy, home, x, y, samples: [], entered: false, dragged: false };
    this.#grips.set(event.pointerId, grip);
    this.#canvas.setPointerCapture(event.pointerId);
    sample(grip, event);
    this.#told.onGrab(body);
  }

  #move = (event) => {
    const grip = this.#grips.get(event.pointerId);
    if (!grip) {
      // A finger that slides over the desktop hovers over nothing.
      const mouse = event.pointerType !== 'touch';
      this.#hover(mouse ? this.#desktop.hit(event.offsetX, event.offsetY, 0) : null);
      return;
    }
    sample(grip, event);
    const { body } = grip;
    const { width, height } = this.#desktop;
    const x = event.offsetX + grip.dx;
    const y = event.offsetY + grip.dy;
    grip.dragged ||= Math.hypot(x - grip.x, y - grip.y) > DRAGGED;
    if (!grip.dragged) return;
    grip.x = x;
    grip.y = y;
    grip.entered ||= event.offsetY < height;
    this.#tray.classList.toggle('taking', this.#isOverTray(event));
    body.x = Math.min(width, Math.max(0, x));
    body.y = Math.min(height, Math.max(0, y));
  };

  #hover(body) {
    if (body === this.over) return;
    this.over = body;
    this.#canvas.classList.toggle('over', body !== null);
    this.#told.onOver();
  }

  #isOverTray({ clientX: x, clientY: y }) {
    const { left, right, top, bottom } = this.#tray.getBoundingClientRect();
    return x >= left && x <= right && y >= top && y <= bottom;
  }

  #up = (event) => {
    const grip = this.#grips.get(event.pointerId);
    if (!grip) return;
    this.#grips.delete(event.pointerId);
    this.#tray.classList.remove('taking');
    const { body, samples } = grip;
    body.held = false;
    const last = samples.at(-1);
    const first = since(samples, last);
    // A body that was held still before it was let go is put down, not thrown.
    if (first && event.timeStamp - last.time <= STILL_FOR) {
      const time = Math.max(0.004, (last.time - first.time) / 1000);
      const most = 6 * Math.max(this.#desktop.width, this.#desktop.height);
      body.vx = Math.max(-most, Math.min(most, (last.x - first.x) / time));
      body.vy = Math.max(-most, Math.min(most, (last.y - first.y) / time));
    }
    if (grip.dragged) this.#tap.time = -Infinity;
    const isSlow = body.vy < FLICK * this.#desktop.height;
    // A sprite that never came out of the tray is put away, too.
    if (!grip.entered || (grip.dragged && isSlow && this.#isOverTray(event))) {
      body.x = grip.home.x * this.#desktop.width; // where an undo brings it back
      body.y = grip.home.y * this.#desktop.height;
      this.#told.onAway(body);
    } else this.#overEdge(grip);
    this.#told.onLetGo();
  };

  /**
   * Throws a body that was dragged to an edge or past it, however slowly it was let go, unless it was
   * flung back.
   */
  #overEdge({ body, x, y, dragged }) {
    const edge = dragged ? this.#desktop.overhang(x, y, body.half) : '';
    if (edge && !this.#desktop.isFlungBack(body, edge)) this.#desktop.push(body, edge);
  }
}

/** Returns the sample from which the speed is measured: the oldest within SAMPLE_AGE, or else the next older. */
function since(samples, last) {
  let first = null;
  for (const one of samples) {
    const age = last.time - one.time;
    if (age <= 0 || age > SAMPLE_LOST) continue;
    const best = first ? last.time - first.time : Infinity;
    const better = age <= SAMPLE_AGE ? age > best || best > SAMPLE_AGE : age < best;
    if (better) first = one;
  }
  return first;
}

function sample({ samples }, { clientX: x, clientY: y, timeStamp: time }) {
  samples.push({ x, y, time });
  if (samples.length > SAMPLES) samples.shift();
}

/**
 * Keys on the desktop: they select a sprite, walk it, let it jump, throw it, open it, put it away, and take new
 * ones. Keys pressed in a field or at a button are ignored. Characters are used only while the desktop has the
 * focus, and letters and digits can be switched off (WCAG 2.1.4), so that a visitor's speech input or slip does
 * not trigger anything.
 */

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEPS = { n: 1, p: -1, PageDown: 1, PageUp: -1 };
const HURL = 1.6; // speed of a throw by key, in edge lengths a second

export class Keyboard {
  #canvas;
  #desktop;
  #told;
  #keys = new Set();
  #walker = null;
  /** @type {boolean} whether the last input was a key, not a pointer */
  active = false;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import('./desktop.js').Desktop} desktop
   * @param {object} lastView
   * @param {() => void} lastView.onKey called when a body may begin to move
   * @param {(body: Body) => void} lastView.onSelect called when a body was selected
   * @param {(body: Body) => void} lastView.onWalked called when a body has walked and stopped
   * @param {(body: Body) => void} lastView.onAway called to put a body away
   * @param {(body: Body) => void} lastView.onOpen called to open a body large
   * @param {() => boolean} lastView.letters whether letters and digits are shortcuts
   * @param {(picture: string) => void} lastView.onPick called to take a new drawn sprite
   * @param {(body: Body) => void} lastView.onCover called to hide or show a body's picture
   */
  constructor(canvas, desktop, told) {
    this.#canvas = canvas;
    this.#desktop = desktop;
    this.#told = told;
    addEventListener('keydown', this.#down);
    addEventListener('keyup', (event) => {
      if (this.#keys.delete(event.key)) this.#walk();
    });
    addEventListener('blur', () => {
      this.#keys.clear();
      this.#walk();
    });
    canvas.addEventListener('blur', () => {
      this.active = false;
      told.onKey();
    });
  }

  /** Reports a walker that has stopped. Called once a frame. */
  step() {
    const body = this.#walker;
    if (!body || this.#keys.size > 0 || body.vx !== 0 || body.vy !== 0) return;
    this.#walker = null;
    if (!body.flight && !body.held) this.#told.onWalked(body);
  }

  #down = (event) => {
    const focused = document.activeElement;
    const nobodys = focused === document.body || focused === null;
    const isCharacter = event.key.length === 1;
    if (focused !== this.#canvas && (!nobodys || isCharacter)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isCharacter && event.key !== ' ' && !this.#told.letters()) return;
    const desktop = this.#desktop;
    const arrow = ARROWS[event.key];
    if (arrow) {
      this.#choose(0);
      if (event.shiftKey) this.#hurl(arrow);
      else if (!this.#keys.has(event.key)) {
        this.#keys.add(event.key);
        this.#walk();
      }
    } else if (event.key === ' ') {
      this.#choose(0);
      desktop.jump();
    } else if (STEPS[event.key]) {
      this.#choose(STEPS[event.key]);
    } else if (event.key === 'Enter') {
      this.#choose(0);
      if (desktop.selected && !event.repeat) this.#told.onOpen(desktop.selected);
    } else if (event.key === 'Delete' || event.key === 'Backspace') {
      if (desktop.selected) this.#told.onAway(desktop.selected);
    } else if (event.key === 'h') {
      if (desktop.selected) this.#told.onCover(desktop.selected);
    } else if (event.key >= '1' && event.key <= String(PICTURES.length)) {
      if (!event.repeat) this.#told.onPick(PICTURES[event.key - 1]);
    } else {
      return;
    }
    event.preventDefault();
    if (desktop.selected) settle(desktop.selected);
    this.active = true;
    this.#told.onKey();
  };

  #choose(step) {
    const desktop = this.#desktop;
    const free = desktop.bodies.filter((body) => !body.flight);
    if (free.length === 0) return;
    const now = free.indexOf(desktop.selected);
    if (now >= 0 && step === 0) return;
    desktop.selected = now < 0 ? free.at(-1) : free[(now + step + free.length) % free.length];
    this.#told.onSelect(desktop.selected);
  }

  #hurl([x, y]) {
    const { selected: body, width, height } = this.#desktop;
    if (!body || body.held || body.flight) return;
    body.tame = false;
    // A body in the air is not slowed down: it would fly through the neighbor's desktop and on.
    body.z = 0;
    body.vz = 0;
    if (x) body.vx = x * HURL * width;
    if (y) body.vy = y * HURL * height;
  }

  #walk() {
    let x = 0;
    let y = 0;
    for (const key of this.#keys) {
      x += ARROWS[key][0];
      y += ARROWS[key][1];
    }
    this.#desktop.walkX = x;
    this.#desktop.walkY = y;
    if (x || y) this.#walker = this.#desktop.selected;
    this.#told.onKey();
  }
}
