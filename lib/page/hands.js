import { PICTURES } from '../client/sprite.js';
import { settle } from './life.js';

/**
 * Pointers on the desktop: they grab, drag and throw sprites, put them away into the tray, and open one with a
 * second tap.
 */

const MAX_SAMPLES = 8; // kept positions of a pointer, to measure its speed when it lets go
const SAMPLE_AGE = 90; // ms before the last sample: an older sample says little about the throw
const MAX_SAMPLE_AGE = 500; // ms: an older sample is never used, not even where a slow machine has no other
const STILL_FOR = 120; // ms without a move after which a sprite is put down instead of thrown
const TAP = { time: 500, away: 20 }; // ms and pixels within which a second tap means the same sprite
const DRAG_DISTANCE = 4; // CSS pixels: a shorter move is a tap
const FINGER_TOLERANCE = 14; // CSS pixels by which a finger may miss a sprite
const FLICK_SPEED = 0.8; // edge lengths a second: a sprite let go over the tray, faster downwards, is thrown

/** @typedef {import('./desktop.js').Body} Body */

export class Hands {
  #canvas;
  #desktop;
  #callbacks;
  #grips = new Map();
  #tray;
  /** @type {Body|null} the body under a pointer that holds nothing */
  hovered = null;
  #lastTap = { body: null, x: 0, y: 0, time: -Infinity };

  /**
   * @param {{canvas: HTMLCanvasElement, tray: HTMLElement}} elements `tray`: a sprite dropped on it is put away
   * @param {import('./desktop.js').Desktop} desktop
   * @param {object} callbacks
   * @param {(body: Body) => void} callbacks.onGrab called when a sprite is grabbed
   * @param {() => void} callbacks.onLetGo called when a sprite was let go
   * @param {() => void} callbacks.onHover called when `hovered` has changed
   * @param {(body: Body) => void} callbacks.onPutAway called to put a sprite away
   * @param {(body: Body) => void} callbacks.onOpen called to open a sprite large
   */
  constructor({ canvas, tray }, desktop, callbacks) {
    this.#canvas = canvas;
    this.#tray = tray;
    this.#desktop = desktop;
    this.#callbacks = callbacks;
    canvas.addEventListener('pointerdown', this.#down);
    canvas.addEventListener('pointermove', this.#move);
    canvas.addEventListener('pointerup', this.#up);
    canvas.addEventListener('pointercancel', this.#up);
    canvas.addEventListener('lostpointercapture', this.#up);
    canvas.addEventListener('pointerleave', () => this.#hover(null));
    canvas.addEventListener('dblclick', (event) => {
      const body = this.#aim(event, 0);
      if (body) callbacks.onOpen(body);
    });
  }

  /** @returns {boolean} whether a sprite is held */
  get isHolding() {
    return this.#grips.size > 0;
  }

  #down = (event) => {
    if (event.button > 0) return;
    const body = this.#aim(event, event.pointerType === 'touch' ? FINGER_TOLERANCE : 0);
    if (!body || body.held) return;
    this.#lastTap = { body, x: event.clientX, y: event.clientY, time: event.timeStamp };
    this.grab(body, event, body.x - event.offsetX, body.y - event.offsetY);
    this.#grips.get(event.pointerId).entered = true;
  };

  /** Returns the sprite at which a pointer aims. A second tap means the sprite that the first tap has stopped. */
  #aim(event, tolerance) {
    const { body, x, y, time } = this.#lastTap;
    const isSecondTap =
      event.timeStamp - time <= TAP.time &&
      Math.hypot(event.clientX - x, event.clientY - y) <= TAP.away;
    if (isSecondTap && !body.flight && this.#desktop.bodies.includes(body)) return body;
    return this.#desktop.bodyAt(event.offsetX, event.offsetY, tolerance);
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
    this.#desktop.pickUp(body);
    // `entered`: the pointer has been over the desktop; `dragged`: it has moved. Letting go depends on both.
    const { x, y } = body;
    // Shares of the desktop's size, which may change before the body goes back there.
    const startPlace = { x: x / this.#desktop.width, y: y / this.#desktop.height };
    const grip = { body, dx, dy, startPlace, x, y, samples: [], entered: false, dragged: false };
    this.#grips.set(event.pointerId, grip);
    this.#canvas.setPointerCapture(event.pointerId);
    addSample(grip, event);
    this.#callbacks.onGrab(body);
  }

  #move = (event) => {
    const grip = this.#grips.get(event.pointerId);
    if (!grip) {
      // A finger that slides over the desktop hovers over nothing.
      const isMouse = event.pointerType !== 'touch';
      this.#hover(isMouse ? this.#desktop.bodyAt(event.offsetX, event.offsetY, 0) : null);
      return;
    }
    addSample(grip, event);
    const { body } = grip;
    const { width, height } = this.#desktop;
    const x = event.offsetX + grip.dx;
    const y = event.offsetY + grip.dy;
    grip.dragged ||= Math.hypot(x - grip.x, y - grip.y) > DRAG_DISTANCE;
    if (!grip.dragged) return;
    grip.x = x;
    grip.y = y;
    grip.entered ||= event.offsetY < height;
    this.#tray.classList.toggle('taking', this.#isOverTray(event));
    body.x = Math.min(width, Math.max(0, x));
    body.y = Math.min(height, Math.max(0, y));
  };

  #hover(body) {
    if (body === this.hovered) return;
    this.hovered = body;
    this.#canvas.classList.toggle('over', body !== null);
    this.#callbacks.onHover();
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
    const first = speedStart(samples, last);
    // A body that was held still before it was let go is put down, not thrown.
    if (first && event.timeStamp - last.time <= STILL_FOR) {
      const time = Math.max(0.004, (last.time - first.time) / 1000);
      const maxSpeed = 6 * Math.max(this.#desktop.width, this.#desktop.height);
      body.vx = Math.max(-maxSpeed, Math.min(maxSpeed, (last.x - first.x) / time));
      body.vy = Math.max(-maxSpeed, Math.min(maxSpeed, (last.y - first.y) / time));
    }
    if (grip.dragged) this.#lastTap.time = -Infinity;
    const isSlow = body.vy < FLICK_SPEED * this.#desktop.height;
    // A sprite that never came out of the tray is put away, too.
    if (!grip.entered || (grip.dragged && isSlow && this.#isOverTray(event))) {
      body.x = grip.startPlace.x * this.#desktop.width; // where an undo brings it back
      body.y = grip.startPlace.y * this.#desktop.height;
      this.#callbacks.onPutAway(body);
    } else this.#throwOverEdge(grip);
    this.#callbacks.onLetGo();
  };

  /**
   * Throws a body that was dragged to an edge or past it, however slowly it was let go, unless it was
   * flung back.
   */
  #throwOverEdge({ body, x, y, dragged }) {
    const edge = dragged ? this.#desktop.overhang(x, y, body.half) : '';
    if (edge && !this.#desktop.isFlungBack(body, edge)) this.#desktop.pushOver(body, edge);
  }
}

/** Returns the sample from which the speed is measured: the oldest within SAMPLE_AGE, or else the next older. */
function speedStart(samples, last) {
  let first = null;
  for (const one of samples) {
    const age = last.time - one.time;
    if (age <= 0 || age > MAX_SAMPLE_AGE) continue;
    const bestAge = first ? last.time - first.time : Infinity;
    const isBetter = age <= SAMPLE_AGE ? age > bestAge || bestAge > SAMPLE_AGE : age < bestAge;
    if (isBetter) first = one;
  }
  return first;
}

function addSample({ samples }, { clientX: x, clientY: y, timeStamp: time }) {
  samples.push({ x, y, time });
  if (samples.length > MAX_SAMPLES) samples.shift();
}

/**
 * Keys on the desktop: they select a sprite, walk it, let it jump, throw it, open it, put it away, and take new
 * ones. Keys pressed in a field or at a button are ignored. Characters are used only while the desktop has the
 * focus, and letters and digits can be switched off (WCAG 2.1.4), so that a visitor's speech input or slip does
 * not trigger anything.
 */

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEPS = { n: 1, p: -1, PageDown: 1, PageUp: -1 };
const THROW_SPEED = 1.6; // speed of a throw by key, in edge lengths a second

export class Keyboard {
  #canvas;
  #desktop;
  #callbacks;
  #keys = new Set();
  #walker = null;
  /** @type {boolean} whether the last input was a key, not a pointer */
  isActive = false;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import('./desktop.js').Desktop} desktop
   * @param {object} callbacks
   * @param {() => void} callbacks.onKey called when a body may begin to move
   * @param {(body: Body) => void} callbacks.onSelect called when a body was selected
   * @param {(body: Body) => void} callbacks.onWalked called when a body has walked and stopped
   * @param {(body: Body) => void} callbacks.onPutAway called to put a body away
   * @param {(body: Body) => void} callbacks.onOpen called to open a body large
   * @param {() => boolean} callbacks.letters whether letters and digits are shortcuts
   * @param {(picture: string) => void} callbacks.onPick called to take a new drawn sprite
   * @param {(body: Body) => void} callbacks.onCover called to hide or show a body's picture
   */
  constructor(canvas, desktop, callbacks) {
    this.#canvas = canvas;
    this.#desktop = desktop;
    this.#callbacks = callbacks;
    addEventListener('keydown', this.#down);
    addEventListener('keyup', (event) => {
      if (this.#keys.delete(event.key)) this.#walk();
    });
    addEventListener('blur', () => {
      this.#keys.clear();
      this.#walk();
    });
    canvas.addEventListener('blur', () => {
      this.isActive = false;
      callbacks.onKey();
    });
  }

  /** Reports a walker that has stopped. Called once a frame. */
  step() {
    const body = this.#walker;
    if (!body || this.#keys.size > 0 || body.vx !== 0 || body.vy !== 0) return;
    this.#walker = null;
    if (!body.flight && !body.held) this.#callbacks.onWalked(body);
  }

  #down = (event) => {
    const focused = document.activeElement;
    const isFocusFree = focused === document.body || focused === null;
    const isCharacter = event.key.length === 1;
    if (focused !== this.#canvas && (!isFocusFree || isCharacter)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isCharacter && event.key !== ' ' && !this.#callbacks.letters()) return;
    const desktop = this.#desktop;
    const arrow = ARROWS[event.key];
    if (arrow) {
      this.#select(0);
      if (event.shiftKey) this.#throwSelected(arrow);
      else if (!this.#keys.has(event.key)) {
        this.#keys.add(event.key);
        this.#walk();
      }
    } else if (event.key === ' ') {
      this.#select(0);
      desktop.jump();
    } else if (STEPS[event.key]) {
      this.#select(STEPS[event.key]);
    } else if (event.key === 'Enter') {
      this.#select(0);
      if (desktop.selected && !event.repeat) this.#callbacks.onOpen(desktop.selected);
    } else if (event.key === 'Delete' || event.key === 'Backspace') {
      if (desktop.selected) this.#callbacks.onPutAway(desktop.selected);
    } else if (event.key === 'h') {
      if (desktop.selected) this.#callbacks.onCover(desktop.selected);
    } else if (event.key >= '1' && event.key <= String(PICTURES.length)) {
      if (!event.repeat) this.#callbacks.onPick(PICTURES[event.key - 1]);
    } else {
      return;
    }
    event.preventDefault();
    if (desktop.selected) settle(desktop.selected);
    this.isActive = true;
    this.#callbacks.onKey();
  };

  #select(step) {
    const desktop = this.#desktop;
    const available = desktop.bodies.filter((body) => !body.flight);
    if (available.length === 0) return;
    const currentIndex = available.indexOf(desktop.selected);
    if (currentIndex >= 0 && step === 0) return;
    desktop.selected =
      currentIndex < 0
        ? available.at(-1)
        : available[(currentIndex + step + available.length) % available.length];
    this.#callbacks.onSelect(desktop.selected);
  }

  #throwSelected([x, y]) {
    const { selected: body, width, height } = this.#desktop;
    if (!body || body.held || body.flight) return;
    body.tame = false;
    // A body in the air is not slowed down: it would fly through the neighbor's desktop and on.
    body.z = 0;
    body.vz = 0;
    if (x) body.vx = x * THROW_SPEED * width;
    if (y) body.vy = y * THROW_SPEED * height;
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
    this.#callbacks.onKey();
  }
}
