/**
 * The ring of a world of servers, as a picture and in words, from `world` in the answer to /status. The arc of the
 * answering server is at the bottom, its right neighbor to the right of it. An arc is thicker for a server with more
 * rows. Used by the page and by the admin port's page.
 */

const SVG = 'http://www.w3.org/2000/svg';
const TAU = Math.PI * 2;
const RADIUS = 38;
const MIN_WIDTH = 5; // width of the arc of a server without rows
const MAX_WIDTH = 12; // width of the arc of the server with the most rows
const SEAM_REACH = 11; // half the length of a seam's stroke
const MAX_NAMED = 12; // most servers in a picture with names
const MAX_NAME_LENGTH = 9; // characters of a name there

/**
 * @typedef {{from: number, to: number, peer: string}} Seam
 * @typedef {object} World
 * @property {string} name
 * @property {string} state
 * @property {{name: string, rows: number}[]} servers in the ring's order, with the answering server
 * @property {{left: Seam[], right: Seam[]}} seams
 */

/**
 * @param {any} value `world` in the answer to /status
 * @returns {World|null} null where there is no world, or an invalid one
 */
export function readWorld(value) {
  const { name, state, servers, seams } = value ?? {};
  const isName = (text) => typeof text === 'string' && /^[a-z0-9-]{1,32}$/.test(text);
  const isList = (list) => Array.isArray(list) && list.length <= 1024;
  const isSeam = (one) => isName(one?.peer) && isRows(one.from) && isRows(one.to);
  const isRows = (rows) => Number.isSafeInteger(rows) && rows >= 0;
  const isValid =
    isName(name) &&
    typeof state === 'string' &&
    isList(servers) &&
    servers.every((one) => isName(one?.name) && isRows(one.rows)) &&
    servers.some((one) => one.name === name) &&
    ['left', 'right'].every((side) => isList(seams?.[side]) && seams[side].every(isSeam));
  return isValid ? { name, state, servers, seams } : null;
}

/**
 * @param {World} world
 * @param {number} [count] number of servers, where `servers` has only some of them
 * @returns {string} such as `server b, one of 3`
 */
export function summarizeWorld({ name, servers, state }, count = servers.length) {
  if (count === 1) return `server ${name}, alone in its world`;
  return `server ${name}, one of ${count}${state === 'cut-off' ? ', cut off' : ''}`;
}

/**
 * @param {World} world
 * @param {number} [count] as in summarizeWorld
 * @returns {string} the content of the picture, in sentences
 */
export function describeWorld(world, count = world.servers.length) {
  const { name, servers, seams, state } = world;
  const beginning = `This is server ${name}, `;
  if (count === 1) return `${beginning}alone in its world: every row ends at its own other end.`;
  const rows = servers.map((one) => `${one.name} with ${plural(one.rows, 'row')}`);
  const unlistedCount = count - servers.length;
  const others =
    unlistedCount > 0 ? [...rows, plural(unlistedCount, 'server') + ' further away'] : rows;
  return [
    `${beginning}one of ${count} that are one torus, in this order: ${joinList(others)}, and around.`,
    `Off the right end of a row it goes on ${seamWords(seams.right)}, off the left end ${seamWords(seams.left)}.`,
    ...(state === 'cut-off' ? ['It has no contact with the others now.'] : [])
  ].join(' ');
}

const plural = (count, what) => `${count} ${what}${count === 1 ? '' : 's'}`;

const joinList = (texts) =>
  texts.length < 2 ? texts.join('') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`;

/** Says where rows go on. Rows are counted from 1, as beside the map. */
function seamWords(seams) {
  if (seams.length === 0) return 'at its own other end';
  if (seams.length === 1) return `at ${seams[0].peer}`;
  return joinList(seams.map(({ from, to, peer }) => `at ${peer} in rows ${from + 1} to ${to}`));
}

/**
 * Draws the ring. A style sheet gives its colors, for the classes arc, own, seam and name.
 *
 * @param {SVGElement} svg
 * @param {World} world
 */
export function drawRing(svg, { name, servers, seams }) {
  svg.setAttribute('viewBox', '-70 -60 140 120');
  const ownIndex = servers.findIndex((one) => one.name === name);
  const mostRows = Math.max(1, ...servers.map(({ rows }) => rows));
  const step = TAU / servers.length;
  const gap = servers.length === 1 ? 0 : Math.min(0.16, step * 0.3);
  // The answering server is in the middle of the bottom, the next one to the right of it.
  const angle = (index) => TAU / 4 - (index - ownIndex) * step;
  const parts = servers.map(({ rows }, at) => {
    const width = MIN_WIDTH + (MAX_WIDTH - MIN_WIDTH) * Math.sqrt(rows / mostRows);
    const shape = arc(angle(at) + step / 2 - gap / 2, angle(at) - step / 2 + gap / 2);
    return makeElement(
      'path',
      { d: shape, 'stroke-width': width.toFixed(1) },
      at === ownIndex ? 'arc own' : 'arc'
    );
  });
  for (const [side, sign] of [
    ['left', 1],
    ['right', -1]
  ]) {
    if (seams[side].length === 0) continue;
    const seamAngle = angle(ownIndex) + (sign * step) / 2;
    parts.push(
      makeElement(
        'path',
        { d: `M${point(seamAngle, -SEAM_REACH)}L${point(seamAngle, SEAM_REACH)}` },
        'seam'
      )
    );
  }
  if (servers.length <= MAX_NAMED)
    parts.push(...servers.map((one, at) => label(one.name, angle(at))));
  svg.replaceChildren(...parts);
}

/** Returns an arc of the ring from one angle back to a smaller one. */
function arc(from, to) {
  // Two halves, since one SVG arc can't be a whole circle.
  const half = (from + to) / 2;
  return `M${point(from)}A${RADIUS} ${RADIUS} 0 0 0 ${point(half)}A${RADIUS} ${RADIUS} 0 0 0 ${point(to)}`;
}

/** Returns a point, `distance` units outside the ring's line. */
const point = (angle, distance = 0) =>
  [Math.cos(angle), Math.sin(angle)]
    .map((part) => (part * (RADIUS + distance)).toFixed(2))
    .join(' ');

function label(name, angle) {
  const [x, y] = point(angle, 15).split(' ');
  const side = Math.cos(angle);
  const anchor = Math.abs(side) < 0.2 ? 'middle' : side > 0 ? 'start' : 'end';
  const text = makeElement('text', { x, y: Number(y) + 3, 'text-anchor': anchor }, 'name');
  text.textContent =
    name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH - 1)}…` : name;
  return text;
}

function makeElement(kind, attributes, name) {
  const element = document.createElementNS(SVG, kind);
  element.setAttribute('class', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** The world of this desktop's server, above the map; hidden where there is none. */
export class WorldView {
  #box;
  #ring;
  #words;
  #announcer;
  #shownNews = '';

  /**
   * @param {HTMLElement} box with an svg and a p in it
   * @param {import('./announcer.js').Announcer} announcer
   */
  constructor(box, announcer) {
    this.#box = box;
    this.#ring = box.querySelector('svg');
    this.#words = box.querySelector('p');
    this.#announcer = announcer;
  }

  /** @param {{world?: unknown, worldServers?: number}} status the answer to /status */
  show({ world: value, worldServers }) {
    const world = readWorld(value);
    this.#box.hidden = world === null;
    if (!world) return;
    const news = JSON.stringify([world, worldServers]);
    if (news === this.#shownNews) return;
    const isFirst = this.#shownNews === '';
    this.#shownNews = news;
    drawRing(this.#ring, world);
    const text = describeWorld(world, worldServers);
    // Rows change all the time: the text is announced only when the number of servers or the contact has changed.
    const summary = summarizeWorld(world, worldServers);
    if (!isFirst && summary !== this.#words.textContent) this.#announcer.announce(text, 'world');
    this.#ring.setAttribute('aria-label', text);
    this.#words.textContent = summary;
  }
}
