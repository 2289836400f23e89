import { PICTURES } from '../client/sprite.js';

/**
 * Messages of the page: to every visitor in a toast that disappears again, and to screen readers in a live region. The
 * toast has a line for news and one for an offer, whose button news of strangers must not take away.
 */

const TOAST_TIME = 3500; // ms
const UPDATE_INTERVAL = 700; // ms between two updates of the live region, at least
const MAX_TOGETHER = 3; // most messages in one update; older ones are dropped

export class Announcer {
  #toast;
  #liveRegion;
  #home;
  #lineTimers = new Map(); // by the toast's lines
  #offeredAction = null;
  #pending = new Map(); // texts by subject, the newest last
  #announceTimer = 0;

  /**
   * @param {HTMLElement} toast with two lines; shown only while one of them is
   * @param {HTMLElement} news a live region
   * @param {HTMLElement} home gets the focus when a focused button disappears
   */
  constructor(toast, news, home) {
    this.#toast = toast;
    this.#liveRegion = news;
    this.#home = home;
  }

  /** Shows a toast for a while. */
  showToast(text) {
    const news = this.#toast.firstElementChild;
    news.textContent = text;
    this.#show(news, TOAST_TIME);
    this.announce(text);
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
    const offer = this.#toast.lastElementChild;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'act';
    button.textContent = action;
    button.addEventListener('click', () => {
      this.withdraw(act);
      act();
    });
    this.#hide(offer);
    offer.replaceChildren(text, ' ', button);
    this.#offeredAction = act;
    this.#show(offer, time);
    this.announce(`${text} ${action} with ${key}.`);
  }

  /** Removes an offer that was done in another way, or can't be done any more. */
  withdraw(act) {
    if (this.#offeredAction === act) this.#hide(this.#toast.lastElementChild);
  }

  #show(line, time) {
    line.hidden = false;
    this.#toast.hidden = false;
    clearTimeout(this.#lineTimers.get(line));
    this.#lineTimers.set(
      line,
      setTimeout(() => this.#hide(line), time)
    );
  }

  /** Hides a line. If its button has the focus, `home` gets the focus. */
  #hide(line) {
    if (line.contains(document.activeElement)) this.#home.focus({ preventScroll: true });
    line.hidden = true;
    this.#toast.hidden = [...this.#toast.children].every(({ hidden }) => hidden);
  }

  /**
   * Announces a text to screen readers.
   *
   * @param {string} text
   * @param {string} [subject] the text replaces a pending text with the same subject
   */
  announce(text, subject = text) {
    this.#pending.delete(subject);
    this.#pending.set(subject, text);
    if (this.#announceTimer) return;
    this.#announceTimer = setTimeout(() => {
      this.#announceTimer = 0;
      this.#liveRegion.textContent = [...this.#pending.values()].slice(-MAX_TOGETHER).join(' ');
      this.#pending.clear();
    }, UPDATE_INTERVAL);
  }
}

/** Sprites and places in words, for visitors who do not see them. */

const SIDES = { left: 'left', right: 'right', up: 'upper', down: 'lower' };

/** @returns {string} `left`, `right`, `upper` or `lower`: the edge, or the neighbor behind it */
export function sideName(edge) {
  return SIDES[edge];
}

/** @returns {string} a stranger's name without bidirectional controls, which would reverse the words behind it */
export const displayName = (name) => name.replace(/\p{Bidi_Control}/gu, '');

/**
 * @param {import('../client/sprite.js').Sprite} sprite
 * @param {'a'|'the'} [article]
 * @returns {string} such as `a ball`, or `the ghost “Boo”`
 */
export function describeSprite({ picture, name }, article = 'the') {
  const kind = PICTURES.includes(picture) ? picture : 'picture';
  return `${article} ${kind}${name ? ` “${displayName(name)}”` : ''}`;
}

/**
 * @param {import('../client/sprite.js').Sprite} sprite
 * @returns {string} such as ` from Ada`; empty where the sender is unknown
 */
export function senderWords({ by }) {
  return by ? ` from ${displayName(by)}` : '';
}

/**
 * @param {{x: number, y: number}} body
 * @param {{width: number, height: number}} desktop
 * @returns {string} such as `in the middle`, or `at the upper left`
 */
export function describePosition({ x, y }, { width, height }) {
  const row = ['upper', '', 'lower'][Math.min(2, Math.max(0, Math.floor((y / height) * 3)))];
  const column = ['left', '', 'right'][Math.min(2, Math.max(0, Math.floor((x / width) * 3)))];
  if (!row && !column) return 'in the middle';
  return `at the ${[row, column || (row && 'middle')].filter(Boolean).join(' ')}`;
}

/** @returns {string} the text with a capital at its beginning */
export function capitalize(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/**
 * Returns why a sprite came back, in words.
 *
 * @param {import('../client/throws.js').Outcome} outcome
 * @param {string} neighbor the neighbor to which it was thrown, in words
 * @returns {string}
 */
export function returnWords({ state, problem }, neighbor) {
  if (problem === 'neighbor-busy') return `The ${neighbor} has no room: it came back.`;
  if (problem === 'state-unwritable') return 'The server can keep nothing just now: it came back.';
  if (state === 'busy') return 'Too much at once: it came back. Try again in a moment.';
  if (problem === 'sprite-too-large') {
    return 'That one is too large for this server: it came back.';
  }
  return 'It could not be thrown: it came back.';
}
