import { Hands, Keyboard } from './hands.js';
import { EYES_CLOSED_TIME } from './life.js';
import { drawLabel, drawShadow, drawSticker, imageSticker } from './pictures.js';
import { senderWords } from './announcer.js';
import { decodePicture } from './images.js';
import { PICTURES } from '../client/sprite.js';

/**
 * Draws the desktop on one canvas. It draws frames while something moves, then sleeps until the next
 * stroll or blink. A frame allocates nothing.
 */

const MAX_RIPPLES = 24;
const RIPPLE_TIME = 0.7; // seconds
const IMAGE_SCALE = 1.6; // size of an image, in sizes of a drawn sprite
const SENDER_TIME = 8000; // ms for which an arrived sprite shows its sender
const WADDLE = [14, 0.09]; // frequency (radians a second) and amplitude (radians) of a stroller's lean
const TAU = Math.PI * 2;

/** @typedef {import('./desktop.js').Body} Body */

export class Stage {
  #canvas;
  #ctx;
  #desktop;
  #options;
  #hands;
  #keyboard;
  #ratio = 1;
  #half = 36;
  #frameRequest = 0;
  #sleepTimer = 0;
  #lastFrameAt = 0;
  #stickers = new Map();
  #shadow = null;
  #selectionColor = '#000';
  #ripples = [];
  #wasMoving = false;

  /**
   * @param {{canvas: HTMLCanvasElement, tray: HTMLElement}} elements `tray`: a sprite dropped on it is put away
   * @param {import('./desktop.js').Desktop} desktop
   * @param {object} options
   * @param {() => boolean} options.isStill whether ornament stands still
   * @param {() => void} options.onChange called when bodies have come to rest, or one was selected or let go
   * @param {(body: Body) => void} options.onPutAway called to put a body away
   * @param {(body: Body) => void} options.onOpen called to open a body large
   * @param {() => boolean} options.letters whether letters and digits are shortcuts
   * @param {(picture: string) => void} options.onPick called to take a new drawn sprite, by key
   * @param {(body: Body) => void} options.onSelect called when a body was selected by key
   * @param {(body: Body) => void} options.onWalked called when a body has walked by key, and stopped
   * @param {(body: Body) => void} options.onGrab called when a body was grabbed
   * @param {(body: Body) => void} options.onCover called to hide or show a body's picture
   * @param {(body: Body) => boolean} options.isCovered whether a body's picture is covered
   */
  constructor(elements, desktop, options) {
    const { canvas } = elements;
    const { onChange, onSelect, onGrab } = options;
    this.#canvas = canvas;
    this.#ctx = canvas.getContext('2d');
    this.#desktop = desktop;
    this.#options = options;
    for (let i = 0; i < MAX_RIPPLES; i += 1) {
      this.#ripples.push({ x: 0, y: 0, age: RIPPLE_TIME, color: '', size: 1 });
    }
    this.#hands = new Hands(elements, desktop, {
      ...options,
      onGrab: (body) => {
        this.#keyboard.isActive = false;
        onGrab(body);
        this.wake();
      },
      onLetGo: () => {
        onChange();
        this.wake();
      },
      onHover: () => this.wake()
    });
    this.#keyboard = new Keyboard(canvas, desktop, {
      ...options,
      onKey: () => this.wake(),
      onSelect: (body) => {
        onSelect(body);
        onChange();
      }
    });
  }

  /** Puts a body into the hand of a pointer, wherever the pointer is. */
  grab(body, event) {
    this.#hands.grab(body, event);
  }

  /** @returns {number} half the side of a sprite with this picture, in CSS pixels */
  half(picture) {
    return Math.round(this.#half * (PICTURES.includes(picture) ? 1 : IMAGE_SCALE));
  }

  /** Adopts the canvas's size on the page. */
  resize() {
    const { clientWidth, clientHeight } = this.#canvas;
    const ratio = Math.min(2.5, globalThis.devicePixelRatio || 1);
    this.#canvas.width = Math.round(clientWidth * ratio);
    this.#canvas.height = Math.round(clientHeight * ratio);
    this.#desktop.resize(clientWidth, clientHeight);
    const side = Math.min(clientWidth, clientHeight);
    const half = Math.round(Math.max(30, Math.min(46, side * 0.062)));
    if (ratio !== this.#ratio || half !== this.#half || !this.#shadow) {
      this.#ratio = ratio;
      this.#half = half;
      this.#stickers.clear();
      this.#shadow = drawShadow(Math.round(half * 2 * ratio));
      for (const body of this.#desktop.bodies) {
        body.half = this.half(body.sprite.picture);
        this.updateImages(body);
      }
    }
    this.readColors();
  }

  /** Reads the colors of the style sheet, which may have changed to dark. */
  readColors() {
    this.#selectionColor = getComputedStyle(this.#canvas).getPropertyValue('--self').trim();
    this.wake();
  }

  /** Gives a body its images for drawing; an image takes a moment to decode. */
  updateImages(body) {
    const { picture, name } = body.sprite;
    const pixels = Math.round(body.half * 2 * this.#ratio);
    const label = name ? drawLabel(name, this.#ratio) : null;
    const senderText = body.stranger ? senderWords(body.sprite).trim() : '';
    const sender = senderText ? drawLabel(senderText, this.#ratio, 'dark') : null;
    body.images = { sticker: null, closed: null, label, sender };
    if (PICTURES.includes(picture)) {
      body.images.sticker = this.#stickerOf(picture, pixels);
      body.images.closed = this.#stickerOf(picture, pixels, true);
      this.wake();
      return;
    }
    const { images } = body;
    if (this.#options.isCovered(body)) {
      images.sticker = this.#stickerOf('covered', pixels);
      this.wake();
      return;
    }
    decodePicture(picture).then((bitmap) => {
      images.sticker = bitmap ? imageSticker(bitmap, pixels) : this.#stickerOf('torn', pixels);
      bitmap?.close();
      this.wake();
    });
  }

  #stickerOf(name, pixels, closed = false) {
    const key = closed ? `${name} closed` : name;
    let sticker = this.#stickers.get(key);
    if (!sticker) {
      sticker = drawSticker(name, pixels, closed);
      this.#stickers.set(key, sticker);
    }
    return sticker;
  }

  /** Lets an arrived sprite show its sender for a while. */
  showSender(body) {
    body.isNew = true;
    setTimeout(() => {
      body.isNew = false;
      this.wake();
    }, SENDER_TIME);
    this.wake();
  }

  /** Draws a ring of color where a sprite has crossed an edge. */
  ripple(x, y, color) {
    if (this.#options.isStill()) return;
    let oldest = this.#ripples[0];
    for (const ripple of this.#ripples) if (ripple.age > oldest.age) oldest = ripple;
    oldest.x = x;
    oldest.y = y;
    oldest.age = 0;
    oldest.color = color;
    oldest.size = this.#half;
    this.wake();
  }

  /** Starts drawing, which goes on as long as anything moves. */
  wake() {
    if (this.#frameRequest) return;
    clearTimeout(this.#sleepTimer);
    const now = performance.now();
    if (this.#sleepTimer) this.#desktop.advanceRest((now - this.#lastFrameAt) / 1000);
    this.#sleepTimer = 0;
    this.#lastFrameAt = now;
    this.#frameRequest = requestAnimationFrame(this.#tick);
  }

  #tick = (now) => {
    const dt = Math.max(0, (now - this.#lastFrameAt) / 1000);
    this.#lastFrameAt = now;
    const isMoving = this.#desktop.step(dt, !this.#options.isStill());
    let isRippling = false;
    for (let i = 0; i < MAX_RIPPLES; i += 1) {
      const ripple = this.#ripples[i];
      if (ripple.age < RIPPLE_TIME) {
        ripple.age += dt;
        isRippling = true;
      }
    }
    this.#draw();
    this.#keyboard.step();
    this.#frameRequest = 0;
    const { nextLifeIn: due } = this.#desktop;
    if (isMoving || isRippling || this.#hands.isHolding || due === 0) {
      this.#frameRequest = requestAnimationFrame(this.#tick);
    } else if (due < Infinity) {
      this.#sleepTimer = setTimeout(() => this.wake(), due * 1000);
    }
    if (this.#wasMoving !== isMoving) {
      this.#wasMoving = isMoving;
      if (!isMoving) this.#options.onChange();
    }
  };

  #draw() {
    const ctx = this.#ctx;
    const ratio = this.#ratio;
    const { bodies, selected } = this.#desktop;
    const keySelected = this.#keyboard.isActive ? selected : null;
    const isStill = this.#options.isStill();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    for (let i = 0; i < MAX_RIPPLES; i += 1) {
      const ripple = this.#ripples[i];
      if (ripple.age >= RIPPLE_TIME) continue;
      const share = ripple.age / RIPPLE_TIME;
      ctx.globalAlpha = (1 - share) * 0.8;
      ctx.strokeStyle = ripple.color;
      ctx.lineWidth = (1 - share) * 10 * ratio;
      ctx.beginPath();
      const radius = ripple.size * (0.6 + 2.4 * Math.sqrt(share)) * ratio;
      ctx.arc(ripple.x * ratio, ripple.y * ratio, radius, 0, TAU);
      ctx.stroke();
    }
    ctx.globalAlpha = 1;
    for (let i = 0; i < bodies.length; i += 1) {
      const body = bodies[i];
      const { images } = body;
      if (!images?.sticker) continue;
      const lift = body.held ? 14 : body.z;
      const size = body.half * 2 * ratio;
      const x = body.x * ratio;
      const y = body.y * ratio;
      const spread = 0.86 - Math.min(0.3, lift / 400);
      ctx.setTransform(1, 0, 0, 1, x, y + body.half * 0.72 * ratio);
      ctx.drawImage(this.#shadow, -size * 0.5 * spread, -size * 0.14, size * spread, size * 0.3);
      const scale = body.held ? 1.1 : 1 + Math.min(0.12, body.z / 700);
      const lean = isStill ? 0 : leanOf(body);
      const cos = Math.cos(lean) * scale;
      const sin = Math.sin(lean) * scale;
      ctx.setTransform(cos, sin, -sin, cos, x, y - lift * ratio);
      if (body.flight && body.flightTime > 0.7) ctx.globalAlpha = 0.6;
      const eyes = body.blink < EYES_CLOSED_TIME && images.closed ? images.closed : images.sticker;
      ctx.drawImage(eyes, -size / 2, -size / 2, size, size);
      const showsSender =
        body === keySelected || body === this.#hands.hovered || body.held || body.isNew;
      this.#drawLabels(body, showsSender ? images.sender : null, lift);
      ctx.globalAlpha = 1;
      if (body === keySelected) {
        ctx.setTransform(1, 0, 0, 1, x, y - lift * ratio);
        ctx.strokeStyle = this.#selectionColor;
        ctx.lineWidth = 3 * ratio;
        ctx.beginPath();
        ctx.arc(0, 0, size * 0.62, 0, TAU);
        ctx.stroke();
      }
    }
  }

  /** Draws a sprite's name and sender below it, or above it where there is no room; always within the desktop. */
  #drawLabels({ x, y, half, images: { label } }, sender, lift) {
    if (!label && !sender) return;
    const ctx = this.#ctx;
    const ratio = this.#ratio;
    const height = (label?.height ?? 0) + (sender?.height ?? 0);
    const middle = (y - lift) * ratio;
    const below = middle + half * ratio;
    let top = below + height <= this.#canvas.height ? below : middle - half * ratio - height;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    for (let i = 0; i < 2; i += 1) {
      const text = i === 0 ? label : sender;
      if (!text) continue;
      const left = Math.min(x * ratio - text.width / 2, this.#canvas.width - text.width);
      ctx.drawImage(text, Math.round(Math.max(0, left)), Math.round(top));
      top += text.height;
    }
  }
}

/** Returns the lean of a body: a fast one leans forward, a stroller waddles. */
function leanOf({ vx, stroll }) {
  const waddle = stroll > 0 ? Math.sin(stroll * WADDLE[0]) * WADDLE[1] : 0;
  return waddle + Math.max(-0.3, Math.min(0.3, vx * 0.00035));
}
