import { PICTURES } from '../client/sprite.js';

/** Sprites and places in words, for who does not see them. */

const SIDES = { left: 'left', right: 'right', up: 'upper', down: 'lower' };

/** @returns {string} `left`, `right`, `upper` or `lower`: the edge, or who is behind it */
export function side(edge) {
  return SIDES[edge];
}

/**
 * @param {import('../client/sprite.js').Sprite} sprite
 * @param {'a'|'the'} [article]
 * @returns {string} such as `a ball`, or `the ghost “Boo”`
 */
export function what({ picture, name }, article = 'the') {
  const kind = PICTURES.includes(picture) ? picture : 'picture';
  return `${article} ${kind}${name ? ` “${name}”` : ''}`;
}

/**
 * @param {import('../client/sprite.js').Sprite} sprite
 * @returns {string} such as ` from Ada`; empty where nobody has said
 */
export function from({ by }) {
  return by ? ` from ${by}` : '';
}

/**
 * @param {{x: number, y: number}} body
 * @param {{width: number, height: number}} desktop
 * @returns {string} such as `in the middle`, or `at the upper left`
 */
export function where({ x, y }, { width, height }) {
  const row = ['upper', '', 'lower'][Math.min(2, Math.max(0, Math.floor((y / height) * 3)))];
  const column = ['left', '', 'right'][Math.min(2, Math.max(0, Math.floor((x / width) * 3)))];
  if (!row && !column) return 'in the middle';
  return `at the ${[row, column || (row && 'middle')].filter(Boolean).join(' ')}`;
}

/** @returns {string} a sentence begins with a capital */
export function sentence(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/**
 * Why a sprite came back.
 *
 * @param {import('../client/throws.js').Outcome} outcome
 * @param {string} neighbor who should have had it
 * @returns {string}
 */
export function cameBack({ state, problem }, neighbor) {
  if (problem === 'neighbor-busy') return `The ${neighbor} has no room: it came back.`;
  if (state === 'busy') return 'Too much at once: it came back. Try again in a moment.';
  if (problem === 'sprite-too-large') {
    return 'That one is too large for this server: it came back.';
  }
  return 'It could not be thrown: it came back.';
}
