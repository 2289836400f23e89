import { called } from './announcer.js';
import { PICTURES } from '../client/sprite.js';

/**
 * Pictures of strangers that are not to be seen: one that was hidden, wherever it comes in again; or,
 * where that is preferred, every one that was not asked for. A covered sprite is thrown on as it came.
 */

const REMEMBERED = 200; // pictures, of each kind; at most 12 kB each

const OFFER = 6000; // ms for which a button offers it

export class Covers {
  #coverAll;
  #announcer;
  #onChange;
  #hidden = new Set();
  #shown = new Set();

  /**
   * @param {() => boolean} coverAll whether a picture is covered until it was asked for
   * @param {import('./announcer.js').Announcer} announcer
   * @param {() => void} onChange other pictures are covered now
   */
  constructor(coverAll, announcer, onChange) {
    this.#coverAll = coverAll;
    this.#announcer = announcer;
    this.#onChange = onChange;
  }

  /** @returns {boolean} whether a body shows a picture from another desktop */
  isStrangers(body) {
    return body.stranger === true && !PICTURES.includes(body.sprite.picture);
  }

  /** @returns {boolean} whether a body's picture is not to be seen */
  isCovered(body) {
    if (!this.isStrangers(body)) return false;
    return this.#coverAll() ? !this.#shown.has(body.sprite.picture) : this.isHidden(body);
  }

  /** @returns {boolean} whether a body's picture was hidden, and not only covered as all are */
  isHidden(body) {
    return this.#hidden.has(body.sprite.picture);
  }

  /** A body is taken or chosen: offers to hide its picture, or to show it. */
  offer(body) {
    if (!this.isStrangers(body)) return;
    const action = this.isCovered(body) ? 'Show it' : 'Hide it';
    this.#announcer.offer(
      `${called(body.sprite.by ?? '') || 'A neighbor'} sent this picture.`,
      action,
      OFFER,
      { act: () => this.toggle(body), key: 'h' }
    );
  }

  /** Hides a body's picture, or shows it. */
  toggle(body) {
    if (!this.isStrangers(body)) return;
    const { picture } = body.sprite;
    const covered = this.isCovered(body);
    (covered ? this.#hidden : this.#shown).delete(picture);
    remember(covered ? this.#shown : this.#hidden, picture);
    this.#announcer.say(covered ? 'The picture is shown.' : 'The picture is hidden.');
    this.#onChange();
  }

  /** Hides a picture that was hidden before a reload. */
  hide(picture) {
    remember(this.#hidden, picture);
  }
}

function remember(set, picture) {
  set.delete(picture);
  set.add(picture);
  if (set.size > REMEMBERED) set.delete(set.values().next().value);
}
