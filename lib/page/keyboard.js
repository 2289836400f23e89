import { settle } from './life.js';
import { PICTURES } from '../client/sprite.js';

/**
 * Keys on the desktop: they choose a sprite, walk it, let it jump, throw it, open it, put it away, take new
 * ones. What is typed into a field or at a button is not for the desktop. Characters are for it only where it
 * has the focus, and letters and digits can be switched off (WCAG 2.1.4): who speaks to a computer, or slips, shall not
 * set off anything.
 */

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const STEPS = { n: 1, p: -1, PageDown: 1, PageUp: -1 };
const HURL = 1.6; // edge lengths a second, for a throw by key

/** @typedef {import('./desktop.js').Body} Body */

export class Keyboard {
  #canvas;
  #desktop;
  #told;
  #keys = new Set();
  #walker = null;
  /** @type {boolean} whether the last thing done was done by key */
  active = false;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import('./desktop.js').Desktop} desktop
   * @param {object} told
   * @param {() => void} told.onKey something may move now
   * @param {(body: Body) => void} told.onSelect one was chosen
   * @param {(body: Body) => void} told.onWalked one has walked, and stands
   * @param {(body: Body) => void} told.onAway one is put away
   * @param {(body: Body) => void} told.onOpen one is to be seen large
   * @param {() => boolean} told.letters whether letters and digits are for the desktop
   * @param {(picture: string) => void} told.onPick a drawn one is asked for
   * @param {(body: Body) => void} told.onCover its picture is to be hidden, or shown
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

  /** Tells when the one that walked stands. Once a frame. */
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
    // In the air nothing slows it down: it would fly through the neighbor's desktop and on.
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
