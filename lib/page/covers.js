import { displayName } from './announcer.js';
import { PICTURES } from '../client/sprite.js';

/**
 * Covers of strangers' pictures. A hidden picture is covered on every sprite that has it. The preference
 * `cover` covers every picture until the visitor shows it. A covered sprite is thrown on unchanged.
 */

const MAX_REMEMBERED = 200; // pictures, of each kind; at most 12 kB each

const OFFER_TIME = 6000; // ms for which the button is shown

export class Covers {
  #coverAll;
  #announcer;
  #onChange;
  #hidden = new Set();
  #shown = new Set();
  #offered; // the action of the last offer

  /**
   * @param {() => boolean} coverAll whether each picture is covered until the visitor shows it
   * @param {import('./announcer.js').Announcer} announcer
   * @param {() => void} onChange called when the set of covered pictures changes
   */
  constructor(coverAll, announcer, onChange) {
    this.#coverAll = coverAll;
    this.#announcer = announcer;
    this.#onChange = onChange;
  }

  /** @returns {boolean} whether a body shows a picture from another desktop */
  isStrangersPicture(body) {
    return body.stranger === true && !PICTURES.includes(body.sprite.picture);
  }

  /** @returns {boolean} whether a body's picture is covered */
  isCovered(body) {
    if (!this.isStrangersPicture(body)) return false;
    return this.#coverAll() ? !this.#shown.has(body.sprite.picture) : this.isHidden(body);
  }

  /** @returns {boolean} whether the visitor has hidden a body's picture */
  isHidden(body) {
    return this.#hidden.has(body.sprite.picture);
  }

  /** Offers to hide or to show the picture of a body that was grabbed or selected. */
  offer(body) {
    if (!this.isStrangersPicture(body)) return;
    const action = this.isCovered(body) ? 'Show it' : 'Hide it';
    this.#offered = () => this.toggle(body);
    this.#announcer.offer(
      `${displayName(body.sprite.by ?? '') || 'A neighbor'} sent this picture.`,
      action,
      OFFER_TIME,
      { act: this.#offered, key: 'h' }
    );
  }

  /** Hides a body's picture, or shows it. */
  toggle(body) {
    if (!this.isStrangersPicture(body)) return;
    const { picture } = body.sprite;
    const wasCovered = this.isCovered(body);
    (wasCovered ? this.#hidden : this.#shown).delete(picture);
    addBounded(wasCovered ? this.#shown : this.#hidden, picture);
    this.#announcer.withdraw(this.#offered);
    this.#announcer.showToast(wasCovered ? 'The picture is shown.' : 'The picture is hidden.');
    this.#onChange();
  }

  /** Hides a picture that was hidden before a reload. */
  hide(picture) {
    addBounded(this.#hidden, picture);
  }
}

function addBounded(set, picture) {
  set.delete(picture);
  set.add(picture);
  if (set.size > MAX_REMEMBERED) set.delete(set.values().next().value);
}
