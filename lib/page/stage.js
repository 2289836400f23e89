import { drawLabel, drawShadow, drawSticker, imageSticker } from './pictures.js';
import { decodePicture } from './images.js';
import { PICTURES } from '../client/sprite.js';

/**
 * The desktop as one canvas: draws the bodies, and turns pointers and keys into what happens to
 * them. It runs a frame at a time only while something moves, and allocates nothing in a frame.
 */

const RIPPLES = 24;
const RIPPLE_TIME = 0.7; // seconds
const SAMPLES = 8; // of a pointer's way, to know how fast it let go
const SAMPLE_AGE = 90; // ms before the last: what is older says little about the throw
const SAMPLE_LOST = 500; // and this says nothing, even where a slow machine has seen nothing since
const STILL_FOR = 120; // ms without a move, and a sprite is put down instead of thrown
const TAP = { time: 500, away: 20 }; // ms and pixels in which a second tap is for the same sprite
const DRAGGED = 4; // CSS pixels: what was moved less was tapped
const TAU = Math.PI * 2;

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const HURL = 1.6; // edge lengths a second, for a throw by key

export class Stage {
  #canvas;
  #ctx;
  #desktop;
  #still;
  #onChange;
  #ratio = 1;
  #half = 36;
  #frame = 0;
  #last = 0;
  #stickers = new Map();
  #shadow = null;
  #ring = '#000';
  #ripples = [];
  #grips = new Map();
  #keys = new Set();
  #byKeys = false;
  #moving = false;
  #tap = { body: null, x: 0, y: 0, time: -Infinity };
  #onAway;
  #onSelect;
  #onWalked;
  #walker = null;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import('./desktop.js').Desktop} desktop
   * @param {object} options
   * @param {() => boolean} options.still whether ornament should stand still
   * @param {() => void} options.onChange something has come to rest, or was selected
   * @param {(body: import('./desktop.js').Body) => void} options.onAway a sprite is put away
   * @param {(picture: string) => void} options.onPick a drawn one is asked for by key
   * @param {(body: import('./desktop.js').Body) => void} options.onSelect one was chosen by key
   * @param {(body: import('./desktop.js').Body) => void} options.onWalked one has walked by key, and
   *     stands
   */
  constructor(canvas, desktop, { still, onChange, onAway, onPick, onSelect, onWalked }) {
    this.#canvas = canvas;
    this.#ctx = canvas.getContext('2d');
    this.#desktop = desktop;
    this.#still = still;
    this.#onChange = onChange;
    this.#onAway = onAway;
    this.#onSelect = onSelect;
    this.#onWalked = onWalked;
    for (let i = 0; i < RIPPLES; i += 1) {
      this.#ripples.push({ x: 0, y: 0, age: RIPPLE_TIME, color: '', size: 1 });
    }
    canvas.addEventListener('pointerdown', this.#down);
    canvas.addEventListener('pointermove', this.#move);
    canvas.addEventListener('pointerup', this.#up);
    canvas.addEventListener('pointercancel', this.#up);
    canvas.addEventListener('lostpointercapture', this.#up);
    canvas.addEventListener('dblclick', (event) => {
      const body = this.#aim(event, 0);
      if (body) onAway(body);
    });
    addEventListener('keydown', (event) => this.#key(event, { onAway, onPick }));
    addEventListener('keyup', (event) => {
      if (this.#keys.delete(event.key)) this.#walk();
    });
    addEventListener('blur', () => {
      this.#keys.clear();
      this.#walk();
    });
    canvas.addEventListener('blur', () => {
      this.#byKeys = false;
      this.wake();
    });
  }

  /** @returns {number} half the side of a sprite, CSS pixels */
  get half() {
    return this.#half;
  }

  /** Takes the size the canvas has on the page. */
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
        body.half = half;
        this.dress(body);
      }
    }
    this.colors();
  }

  /** Takes the colors of the style, which may have changed to dark. */
  colors() {
    this.#ring = getComputedStyle(this.#canvas).getPropertyValue('--self').trim();
    this.wake();
  }

  /** Gives a body what it is drawn with; an image takes a moment to decode. */
  dress(body) {
    const { picture, name } = body.sprite;
    const pixels = Math.round(body.half * 2 * this.#ratio);
    const label = name ? drawLabel(name, this.#ratio) : null;
    body.look = { sticker: null, label, source: null };
    if (PICTURES.includes(picture)) {
      body.look.sticker = this.#drawn(picture, pixels);
      this.wake();
      return;
    }
    const { look } = body;
    decodePicture(picture).then((bitmap) => {
      look.sticker = bitmap ? imageSticker(bitmap, pixels) : this.#drawn('torn', pixels);
      bitmap?.close();
      this.wake();
    });
  }

  #drawn(name, pixels) {
    let sticker = this.#stickers.get(name);
    if (!sticker) {
      sticker = drawSticker(name, pixels);
      this.#stickers.set(name, sticker);
    }
    return sticker;
  }

  /** A ring of color at an edge: something went over it. */
  ripple(x, y, color) {
    if (this.#still()) return;
    let oldest = this.#ripples[0];
    for (const ripple of this.#ripples) if (ripple.age > oldest.age) oldest = ripple;
    oldest.x = x;
    oldest.y = y;
    oldest.age = 0;
    oldest.color = color;
    oldest.size = this.#half;
    this.wake();
  }

  /** Draws, and goes on drawing as long as anything moves. */
  wake() {
    if (this.#frame) return;
    this.#last = performance.now();
    this.#frame = requestAnimationFrame(this.#tick);
  }

  #tick = (now) => {
    const dt = Math.max(0, (now - this.#last) / 1000);
    this.#last = now;
    const moving = this.#desktop.step(dt);
    let rippling = false;
    for (let i = 0; i < RIPPLES; i += 1) {
      const ripple = this.#ripples[i];
      if (ripple.age < RIPPLE_TIME) {
        ripple.age += dt;
        rippling = true;
      }
    }
    this.#draw();
    this.#standing();
    if (moving || rippling || this.#grips.size > 0) {
      this.#frame = requestAnimationFrame(this.#tick);
    } else {
      this.#frame = 0;
    }
    if (this.#moving !== moving) {
      this.#moving = moving;
      if (!moving) this.#onChange();
    }
  };

  /** Tells when the one that walked by key stands. */
  #standing() {
    const body = this.#walker;
    if (!body || this.#keys.size > 0 || body.vx !== 0 || body.vy !== 0) return;
    this.#walker = null;
    if (!body.flight && !body.held) this.#onWalked(body);
  }

  #draw() {
    const ctx = this.#ctx;
    const ratio = this.#ratio;
    const { bodies, selected } = this.#desktop;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    for (let i = 0; i < RIPPLES; i += 1) {
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
      const { look } = body;
      if (!look?.sticker) continue;
      const lift = body.held ? 14 : body.z;
      const size = body.half * 2 * ratio;
      const x = body.x * ratio;
      const y = body.y * ratio;
      const spread = 0.86 - Math.min(0.3, lift / 400);
      ctx.setTransform(1, 0, 0, 1, x, y + body.half * 0.72 * ratio);
      ctx.drawImage(this.#shadow, -size * 0.5 * spread, -size * 0.14, size * spread, size * 0.3);
      const big = body.held ? 1.1 : 1 + Math.min(0.12, body.z / 700);
      const lean = this.#still() ? 0 : Math.max(-0.3, Math.min(0.3, body.vx * 0.00035));
      const cos = Math.cos(lean) * big;
      const sin = Math.sin(lean) * big;
      ctx.setTransform(cos, sin, -sin, cos, x, y - lift * ratio);
      if (body.flight && body.flightTime > 0.7) ctx.globalAlpha = 0.6;
      ctx.drawImage(look.sticker, -size / 2, -size / 2, size, size);
      if (look.label) {
        ctx.drawImage(look.label, -look.label.width / 2, size * 0.5);
      }
      ctx.globalAlpha = 1;
      if (body === selected && this.#byKeys) {
        ctx.setTransform(1, 0, 0, 1, x, y - lift * ratio);
        ctx.strokeStyle = this.#ring;
        ctx.lineWidth = 3 * ratio;
        ctx.beginPath();
        ctx.arc(0, 0, size * 0.62, 0, TAU);
        ctx.stroke();
      }
    }
  }

  // ---- pointers ----

  #down = (event) => {
    if (event.button > 0) return;
    const body = this.#aim(event, event.pointerType === 'touch' ? 14 : 0);
    if (!body) return;
    this.#tap = { body, x: event.clientX, y: event.clientY, time: event.timeStamp };
    this.grab(body, event, body.x - event.offsetX, body.y - event.offsetY);
    this.#grips.get(event.pointerId).entered = true;
  };

  /** The sprite meant by a pointer. A second tap is for the first one's, which it has stopped. */
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
   * @param {import('./desktop.js').Body} body
   * @param {PointerEvent} event
   * @param {number} dx from the pointer to its middle
   * @param {number} dy
   */
  grab(body, event, dx = 0, dy = 0) {
    if (body.held) return;
    this.#byKeys = false;
    this.#desktop.selected = body;
    this.#desktop.raise(body);
    body.held = true;
    body.vx = 0;
    body.vy = 0;
    body.z = 0;
    body.vz = 0;
    const samples = [];
    for (let i = 0; i < SAMPLES; i += 1) samples.push({ x: 0, y: 0, time: -1e9 });
    // `entered`: it has been over the desktop; `dragged`: it has moved. Both tell what letting go means.
    const grip = { body, dx, dy, x: body.x, y: body.y, samples, next: 0 };
    grip.entered = false;
    grip.dragged = false;
    this.#grips.set(event.pointerId, grip);
    this.#canvas.setPointerCapture(event.pointerId);
    this.#sample(grip, event);
    this.wake();
  }

  #move = (event) => {
    const grip = this.#grips.get(event.pointerId);
    if (!grip) {
      const near = this.#desktop.hit(event.offsetX, event.offsetY, 0);
      this.#canvas.classList.toggle('over', near !== null);
      return;
    }
    this.#sample(grip, event);
    const { body } = grip;
    const { width, height } = this.#desktop;
    const x = event.offsetX + grip.dx;
    const y = event.offsetY + grip.dy;
    grip.dragged ||= Math.hypot(x - grip.x, y - grip.y) > DRAGGED;
    if (!grip.dragged) return;
    grip.x = x;
    grip.y = y;
    grip.entered ||= event.offsetY < height;
    body.x = Math.min(width, Math.max(0, x));
    body.y = Math.min(height, Math.max(0, y));
  };

  #up = (event) => {
    const grip = this.#grips.get(event.pointerId);
    if (!grip) return;
    this.#grips.delete(event.pointerId);
    const { body, samples } = grip;
    body.held = false;
    const last = samples[(grip.next + SAMPLES - 1) % SAMPLES];
    const first = this.#since(samples, last);
    // Held still before it was let go, it was put down and not thrown.
    if (first && event.timeStamp - last.time <= STILL_FOR) {
      const time = Math.max(0.004, (last.time - first.time) / 1000);
      const most = 6 * Math.max(this.#desktop.width, this.#desktop.height);
      body.vx = Math.max(-most, Math.min(most, (last.x - first.x) / time));
      body.vy = Math.max(-most, Math.min(most, (last.y - first.y) / time));
    }
    if (grip.dragged) this.#tap.time = -Infinity;
    this.#overEdge(grip);
    this.#onChange();
    this.wake();
  };

  /**
   * What was dragged to an edge or past it goes over it, however slowly it was let go; unless it was
   * flung back. What never came out of the tray goes back there.
   */
  #overEdge({ body, x, y, entered, dragged }) {
    if (!entered) {
      this.#onAway(body);
      return;
    }
    const edge = dragged ? this.#desktop.overhang(x, y, body.half) : '';
    if (edge && !this.#desktop.isFlungBack(body, edge)) this.#desktop.push(body, edge);
  }

  /** The sample from which on speed is measured: a little before the last, or the next older. */
  #since(samples, last) {
    let first = null;
    for (const sample of samples) {
      const age = last.time - sample.time;
      if (age <= 0 || age > SAMPLE_LOST) continue;
      const best = first ? last.time - first.time : Infinity;
      // The oldest of the young ones; where there is none, the youngest of the old.
      const better = age <= SAMPLE_AGE ? age > best || best > SAMPLE_AGE : age < best;
      if (better) first = sample;
    }
    return first;
  }

  #sample(grip, event) {
    const sample = grip.samples[grip.next];
    grip.next = (grip.next + 1) % SAMPLES;
    sample.x = event.clientX;
    sample.y = event.clientY;
    sample.time = event.timeStamp;
  }

  // ---- keys ----

  #key(event, { onAway, onPick }) {
    const active = document.activeElement;
    const ours = active === this.#canvas || active === document.body || active === null;
    if (!ours || event.ctrlKey || event.metaKey || event.altKey) return;
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
    } else if (event.key === 'n' || event.key === 'p') {
      this.#choose(event.key === 'n' ? 1 : -1);
    } else if (event.key === 'Delete' || event.key === 'Backspace') {
      if (desktop.selected) onAway(desktop.selected);
    } else if (event.key >= '1' && event.key <= String(PICTURES.length)) {
      if (!event.repeat) onPick(PICTURES[event.key - 1]);
    } else {
      return;
    }
    event.preventDefault();
    this.#byKeys = true;
    this.wake();
  }

  #choose(step) {
    const desktop = this.#desktop;
    const free = desktop.bodies.filter((body) => !body.flight);
    if (free.length === 0) return;
    const now = free.indexOf(desktop.selected);
    if (now >= 0 && step === 0) return;
    desktop.selected = now < 0 ? free.at(-1) : free[(now + step + free.length) % free.length];
    this.#onSelect(desktop.selected);
    this.#onChange();
  }

  #hurl([x, y]) {
    const { selected: body, width, height } = this.#desktop;
    if (!body || body.held || body.flight) return;
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
    this.wake();
  }
}
