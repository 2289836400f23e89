import { PICTURES } from '../client/sprite.js';

/**
 * Messages of the page: to every visitor in a toast that disappears again, and to screen readers in a live region.
 */

const TOAST_TIME = 3500; // ms
const PAUSE = 700; // ms between two updates of the live region, at least
const TOGETHER = 3; // most messages in one update; older ones are dropped

export class Announcer {
  #toast;
  #news;
  #home;
  #toastTimer = 0;
  #offered = null;
  #pending = new Map(); // texts by subject, the newest last
  #hearing = 0;

  /**
   * @param {HTMLElement} toast shown only while it has a message
   * @param {HTMLElement} news a live region
   * @param {HTMLElement} home gets the focus when a focused button disappears
   */
  constructor(toast, news, home) {
    this.#toast = toast;
    this.#news = news;
    this.#home = home;
  }

  /** Shows a toast for a while. */
  say(text) {
    this.#show(text, TOAST_TIME);
    this.hear(text);
  }

  /**
   * Shows a toast with a button.
   *
   * @param {string} text
   * @param {string} action the button's text
   * @param {number} time ms for which the toast is shown
   * @param {{act: () => void, key: string}} how `act`: the button's action; `key`: the key for it, in words
   */
  offer(text, action, time, { act, key }) {
    this.#show(text, time);
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'act';
    button.textContent = action;
    button.addEventListener('click', () => {
      this.withdraw(act);
      act();
    });
    this.#toast.append(' ', button);
    this.#offered = act;
    this.hear(`${text} ${action} with ${key}.`);
  }

  /** Removes an offer that was done in another way, or can't be done any more. */
  withdraw(act) {
    if (this.#offered === act) this.#hide();
  }

  /** Forgets the offer. If its button has the focus, `home` gets the focus. */
  #clear() {
    this.#offered = null;
    if (this.#toast.contains(document.activeElement)) this.#home.focus({ preventScroll: true });
  }

  #hide() {
    this.#clear();
    this.#toast.hidden = true;
  }

  #show(text, time) {
    this.#clear();
    this.#toast.textContent = text;
    this.#toast.hidden = false;
    clearTimeout(this.#toastTimer);
    this.#toastTimer = setTimeout(() => this.#hide(), time);
  }

  /**
   * Announces a text to screen readers.
   *
   * @param {string} text
   * @param {string} [subject] the text replaces a pending text with the same subject
   */
  hear(text, subject = text) {
    this.#pending.delete(subject);
    this.#pending.set(subject, text);
    if (this.#hearing) return;
    this.#hearing = setTimeout(() => {
      this.#hearing = 0;
      this.#news.textContent = [...this.#pending.values()].slice(-TOGETHER).join(' ');
      this.#pending.clear();
    }, PAUSE);
  }
}

/** Sprites and places in words, for visitors who do not see them. */

const SIDES = { left: 'left', right: 'right', up: 'upper', down: 'lower' };

/** @returns {string} `left`, `right`, `upper` or `lower`: the edge, or the neighbor behind it */
export function side(edge) {
  return SIDES[edge];
}

/** @returns {string} a stranger's name without bidirectional controls, which would reverse the words behind it */
export const called = (name) => name.replace(/\p{Bidi_Control}/gu, '');

/**
 * @param {import('../client/sprite.js').Sprite} sprite
 * @param {'a'|'the'} [article]
 * @returns {string} such as `a ball`, or `the ghost “Boo”`
 */
export function what({ picture, name }, article = 'the') {
  const kind = PICTURES.includes(picture) ? picture : 'picture';
  return `${article} ${kind}${name ? ` “${called(name)}”` : ''}`;
}

/**
 * @param {import('../client/sprite.js').Sprite} sprite
 * @returns {string} such as ` from Ada`; empty where the sender is unknown
 */
export function from({ by }) {
  return by ? ` from ${called(by)}` : '';
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

/** @returns {string} the text with a capital at its beginning */
export function sentence(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/**
 * Returns why a sprite came back, in words.
 *
 * @param {import('../client/throws.js').Outcome} outcome
 * @param {string} neighbor the neighbor to which it was thrown, in words
 * @returns {string}
 */
export function cameBack({ state, problem }, neighbor) {
  if (problem === 'neighbor-busy') return `The ${neighbor} has no room: it came back.`;
  if (problem === 'state-unwritable') return 'The server can keep nothing just now: it came back.';
  if (state === 'busy') return 'Too much at once: it came back. Try again in a moment.';
  if (problem === 'sprite-too-large') {
    return 'That one is too large for this server: it came back.';
  }
  return 'It could not be thrown: it came back.';
}
