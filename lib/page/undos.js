/** What was put away, as long as it can be had back. */

/** Milliseconds. */
export const UNDO_TIME = 8000;

export class Undos {
  #bodies = [];

  /** @param {import('./desktop.js').Body} body it was put away just now */
  keep(body) {
    this.#bodies.push(body);
    setTimeout(() => {
      this.#bodies = this.#bodies.filter((other) => other !== body);
    }, UNDO_TIME);
  }

  /** @returns {boolean} whether there is none to be had back */
  get isEmpty() {
    return this.#bodies.length === 0;
  }

  /** @returns {import('./desktop.js').Body|null} the one put away last, which is kept no more */
  take() {
    return this.#bodies.pop() ?? null;
  }
}
