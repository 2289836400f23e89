import { PICTURES } from '../client/sprite.js';

/**
 * What the page says: to every visitor, in a toast that goes again, and to screen readers, by a live region.
 */

const TOAST_TIME = 3500; // ms
const PAUSE = 700; // ms between two news at the least, however much there is
const TOGETHER = 3; // news that are said in one go; of more the newest

export class Announcer {
  #toast;
  #news;
  #home;
  #toastTimer = 0;
  #offered = null;
  #pending = new Map(); // texts by their subject, the newest last
  #hearing = 0;

  /**
   * @param {HTMLElement} toast is shown while it says something
   * @param {HTMLElement} news a live region
   * @param {HTMLElement} home gets the focus from a button that goes
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
   * Says something, with a button that does something about it.
   *
   * @param {string} text
   * @param {string} action what the button says
   * @param {number} time ms it can be seen
   * @param {{act: () => void, key: string}} how what it does; the key that does the same, in words
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

  /** What was offered has been done in another way, or can't be done any more: its button goes. */
  withdraw(act) {
    if (this.#offered === act) this.#hide();
  }

  /** What was offered goes, with its button. */
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
   * For screen readers.
   *
   * @param {string} text
   * @param {string} [subject] what is not said yet about it is replaced
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

/** @returns {string} a name from a stranger, which turns no words behind it around */
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

/** @returns {string} a sentence begins with a capital */
export function sentence(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/**
 * Why a sprite came back.
 *
 * @param {import('../client/throws.js').Outcome} outcome
 * @param {string} neighbor that should have had it
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
