/**
 * A small map of the torus: a ring seen from a little above, turned so that this desktop is in
 * front. Columns run around the ring, rows around its tube. The map is drawn only when something
 * changes, and glides to its new shape. A thrown sprite is drawn on its way to the neighbor, and a
 * sprite that comes in on its way from there, over a copy of the ring that is kept meanwhile.
 */

const RING_PATCHES = 44; // patches around the ring
const TUBE_PATCHES = 20; // patches around the tube
const RING_RADIUS = 1;
const TUBE_RADIUS = 0.46;
const TILT = 0.92; // radians of the viewer above the ring's plane
const GLIDE_TIME = 900; // ms
const FLIGHT_TIME = 800; // ms for which a thrown sprite is drawn on its way
const MAX_FLIGHTS = 12; // most sprites on their way that are drawn at a time
const MAX_DOTS = 900; // most desktops that are drawn as dots
const TAU = Math.PI * 2;

/** @typedef {{row: number, column: number, rows: number, columns: number}} Place */

export class TorusMap {
  #canvas;
  #ctx;
  #isStill;
  #glideFrom = null;
  #shownPlace = null;
  #place = null;
  #glideBeganAt = 0;
  #frameRequest = 0;
  #patches = [];
  #flights = [];
  #ringCopy = document.createElement('canvas');
  #isCopied = false;
  #point = { x: 0, y: 0, depth: 0, facing: 0 };

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => boolean} isStill whether nothing may glide or fly
   */
  constructor(canvas, isStill) {
    this.#canvas = canvas;
    this.#ctx = canvas.getContext('2d');
    this.#isStill = isStill;
    for (let i = 0; i < RING_PATCHES; i += 1) {
      for (let j = 0; j < TUBE_PATCHES; j += 1) this.#patches.push({ i, j, depth: 0, light: 0 });
    }
  }

  /**
   * Shows a place.
   *
   * @param {Place|null} place null when it is not known
   */
  show(place) {
    const isSame =
      place &&
      this.#place &&
      ['row', 'column', 'rows', 'columns'].every((key) => place[key] === this.#place[key]);
    if (isSame || (!place && !this.#place && this.#shownPlace)) return;
    this.#place = place;
    this.#glideFrom = place && this.#shownPlace ? { ...this.#shownPlace } : null;
    this.#glideBeganAt = performance.now();
    this.#isCopied = false;
    if (!this.#frameRequest) this.#frameRequest = requestAnimationFrame(this.#draw);
  }

  /**
   * Shows a sprite on its way.
   *
   * @param {'left'|'right'|'up'|'down'} edge
   * @param {boolean} isOutward true: from this desktop over the edge; false: in at the edge
   */
  showFlight(edge, isOutward) {
    if (this.#isStill() || !this.#place) return;
    this.#flights.push({ edge, out: isOutward, begin: performance.now() });
    if (this.#flights.length > MAX_FLIGHTS) this.#flights.shift();
    if (!this.#frameRequest) this.#frameRequest = requestAnimationFrame(this.#draw);
  }

  /** Draws again after a change of size or colors. */
  redraw() {
    this.#isCopied = false;
    if (!this.#frameRequest) this.#frameRequest = requestAnimationFrame(this.#draw);
  }

  #draw = (now) => {
    this.#frameRequest = 0;
    const target = this.#place ?? { row: 0, column: 0, rows: 6, columns: 12 };
    const share =
      this.#isStill() || !this.#glideFrom
        ? 1
        : Math.min(1, (now - this.#glideBeganAt) / GLIDE_TIME);
    const eased = 1 - (1 - share) ** 3;
    const from = this.#glideFrom ?? target;
    this.#shownPlace = {
      row: between(from.row, target.row, eased),
      column: between(from.column, target.column, eased),
      rows: between(from.rows, target.rows, eased),
      columns: between(from.columns, target.columns, eased)
    };
    if (!this.#isCopied) this.#paint(this.#shownPlace, target);
    if (share === 1) {
      this.#glideFrom = null;
      this.#drawFlights(now);
    }
    if (share < 1 || this.#flights.length > 0)
      this.#frameRequest = requestAnimationFrame(this.#draw);
  };

  /** Draws the flights over a copy of the ring. */
  #drawFlights(now) {
    const canvas = this.#canvas;
    const ctx = this.#ctx;
    if (this.#flights.length === 0 && !this.#isCopied) return;
    if (!this.#isCopied) {
      this.#ringCopy.width = canvas.width;
      this.#ringCopy.height = canvas.height;
      this.#ringCopy.getContext('2d').drawImage(canvas, 0, 0);
      this.#isCopied = true;
    }
    ctx.save();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.drawImage(this.#ringCopy, 0, 0);
    ctx.restore();
    this.#flights = this.#flights.filter(({ begin }) => now - begin < FLIGHT_TIME);
    for (const flight of this.#flights) this.#drawFlight(ctx, flight, now);
  }

  /** Draws a flight from this desktop to its neighbor, or back. In a ring of one desktop it goes all around. */
  #drawFlight(ctx, { edge, out, begin }, now) {
    const { row, column, rows, columns } = this.#shownPlace;
    const isHorizontal = edge === 'left' || edge === 'right';
    const sign = edge === 'left' || edge === 'up' ? -1 : 1;
    const [count, apart] = isHorizontal ? [columns, columns / 16] : [rows, rows / 9];
    const reach = sign * (count < 2 ? 1 : Math.max(1, apart));
    const share = Math.max(0, (now - begin) / FLIGHT_TIME);
    const distance = (out ? share : 1 - share) * reach;
    const { u, v } = this.#angles(this.#shownPlace);
    const i = column + 0.5 + (isHorizontal ? distance : 0);
    const j = row + 0.5 + (isHorizontal ? 0 : distance);
    const { x, y, facing, hidden } = this.#project(u(i), v(j));
    if (facing < 0 || hidden) return;
    ctx.fillStyle = '#fff';
    disc(ctx, x, y, 0.1);
    ctx.fillStyle = '#ffb01f';
    disc(ctx, x, y, 0.07);
  }

  /** Returns the angles of columns and rows: this desktop's column in front, its row where the tube faces us. */
  #angles({ row, column, rows, columns }) {
    const turn = Math.PI / 2 - ((column + 0.5) / columns) * TAU;
    const roll = TILT - ((row + 0.5) / rows) * TAU;
    return { u: (i) => (i / columns) * TAU + turn, v: (j) => (j / rows) * TAU + roll };
  }

  #paint(shown, target) {
    const { row, column } = shown;
    const ratio = Math.min(3, globalThis.devicePixelRatio || 1);
    const { clientWidth, clientHeight } = this.#canvas;
    if (!clientWidth || !clientHeight) return;
    const width = Math.round(clientWidth * ratio);
    const height = Math.round(clientHeight * ratio);
    if (this.#canvas.width !== width) this.#canvas.width = width;
    if (this.#canvas.height !== height) this.#canvas.height = height;
    const ctx = this.#ctx;
    const style = getComputedStyle(this.#canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    const isKnown = this.#place !== null;
    const scale = Math.min(width / 3.05, height / 2.55);
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.setTransform(scale, 0, 0, scale, width / 2, height / 2);

    const { u, v } = this.#angles(shown);
    this.#drawSurface(ctx, color, isKnown);
    this.#drawLines(ctx, color('--map-line'), u, v, shown);
    if (!isKnown) return;
    const hasDots = target.rows * target.columns <= MAX_DOTS;
    if (hasDots) this.#drawDots(ctx, color('--map-dot'), u, v, target);
    this.#drawSelf(ctx, color, u, v, { row, column, target });
  }

  /** Draws the body of the ring, patch by patch from the back to the front. */
  #drawSurface(ctx, color, isKnown) {
    const light = color(isKnown ? '--map-light' : '--map-off-light');
    const dark = color(isKnown ? '--map-dark' : '--map-off-dark');
    for (const patch of this.#patches) {
      const point = this.#project(
        ((patch.i + 0.5) / RING_PATCHES) * TAU,
        ((patch.j + 0.5) / TUBE_PATCHES) * TAU
      );
      patch.depth = point.depth;
      patch.facing = point.facing;
    }
    this.#patches.sort((a, b) => a.depth - b.depth);
    for (const { i, j, facing } of this.#patches) {
      if (facing < -0.15) continue;
      ctx.beginPath();
      for (const [di, dj] of [
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 1]
      ]) {
        const { x, y } = this.#project(
          ((i + di) / RING_PATCHES) * TAU,
          ((j + dj) / TUBE_PATCHES) * TAU
        );
        ctx.lineTo(x, y);
      }
      ctx.closePath();
      ctx.fillStyle = mix(dark, light, Math.max(0, Math.min(1, facing)));
      ctx.strokeStyle = ctx.fillStyle;
      ctx.lineWidth = 0.012;
      ctx.fill();
      ctx.stroke();
    }
  }

  /** Draws the lines of columns and rows, only as many as can be told apart. */
  #drawLines(ctx, color, u, v, { rows, columns }) {
    ctx.strokeStyle = color;
    ctx.lineWidth = 0.009;
    const columnStep = Math.max(1, Math.ceil(columns / 40));
    const rowStep = Math.max(1, Math.ceil(rows / 20));
    ctx.beginPath();
    for (let i = 0; i < Math.round(columns); i += columnStep) {
      this.#addCurve(ctx, 28, (t) => [u(i), t * TAU]);
    }
    for (let j = 0; j < Math.round(rows); j += rowStep) {
      this.#addCurve(ctx, 64, (t) => [t * TAU, v(j)]);
    }
    ctx.stroke();
  }

  #addCurve(ctx, steps, at) {
    let isDrawing = false;
    for (let s = 0; s <= steps; s += 1) {
      const { x, y, facing, hidden } = this.#project(...at(s / steps));
      const isVisible = facing > 0.03 && !hidden;
      if (isVisible && isDrawing) ctx.lineTo(x, y);
      else if (isVisible) ctx.moveTo(x, y);
      isDrawing = isVisible;
    }
  }

  #drawDots(ctx, color, u, v, { rows, columns }) {
    const size = Math.max(0.016, Math.min(0.05, 0.7 / Math.sqrt(rows * columns)));
    ctx.fillStyle = color;
    for (let j = 0; j < rows; j += 1) {
      for (let i = 0; i < columns; i += 1) {
        const { x, y, facing, hidden } = this.#project(u(i + 0.5), v(j + 0.5));
        if (facing > 0.05 && !hidden) disc(ctx, x, y, size * (0.45 + 0.55 * facing));
      }
    }
  }

  /** Draws this desktop, and its four neighbors in the colors of its edges. */
  #drawSelf(ctx, color, u, v, { row, column, target }) {
    const neighbors = [
      [0, 1, '--across'],
      [0, -1, '--across'],
      [1, 0, '--along'],
      [-1, 0, '--along']
    ];
    const i = column + 0.5;
    const j = row + 0.5;
    // In a large torus this desktop's dot would hide a neighbor's: it is drawn a little apart.
    const reachI = Math.max(1, target.columns / 16);
    const reachJ = Math.max(1, target.rows / 9);
    ctx.lineWidth = 0.035;
    ctx.lineCap = 'round';
    for (const [dj, di, name] of neighbors) {
      const [count, reach] = di ? [target.columns, reachI] : [target.rows, reachJ];
      if (count < 2) continue;
      ctx.strokeStyle = color(name);
      ctx.fillStyle = color(name);
      ctx.beginPath();
      this.#addCurve(ctx, 12, (t) => [u(i + di * t * reach), v(j + dj * t * reach)]);
      ctx.stroke();
      const { x, y, facing, hidden } = this.#project(u(i + di * reach), v(j + dj * reach));
      if (facing > 0 && !hidden) disc(ctx, x, y, 0.055);
    }
    const { x, y } = this.#project(u(i), v(j));
    ctx.fillStyle = '#fff';
    disc(ctx, x, y, 0.115);
    ctx.fillStyle = color('--self');
    disc(ctx, x, y, 0.082);
  }

  /** Projects a point of the ring into the picture: y down, `depth` towards the viewer. */
  #project(u, v) {
    const point = this.#point;
    const out = RING_RADIUS + TUBE_RADIUS * Math.cos(v);
    const px = out * Math.cos(u);
    const py = out * Math.sin(u);
    const pz = TUBE_RADIUS * Math.sin(v);
    const sin = Math.sin(TILT);
    const cos = Math.cos(TILT);
    point.x = px;
    point.y = py * sin - pz * cos;
    point.depth = py * cos + pz * sin;
    const nx = Math.cos(v) * Math.sin(u);
    point.facing = nx * cos + Math.sin(v) * sin;
    // The far side of the hole lies behind the near side of the tube.
    point.hidden = Math.cos(v) < -0.2 && Math.sin(u) > 0.2 && point.facing < 0.35;
    return point;
  }
}

function between(from, to, share) {
  return from + (to - from) * share;
}

function disc(ctx, x, y, radius) {
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, TAU);
  ctx.fill();
}

/** Mixes two colors that are written as #rrggbb. */
function mix(from, to, share) {
  let color = '#';
  for (let at = 1; at < 7; at += 2) {
    const a = parseInt(from.slice(at, at + 2), 16);
    const b = parseInt(to.slice(at, at + 2), 16);
    color += Math.round(between(a, b, share))
      .toString(16)
      .padStart(2, '0');
  }
  return color;
}
