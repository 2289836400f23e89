import { isKey } from '../feeds/names.js';

/** Which feeds are meant: a key, `prefix/*` for all below a prefix, or `*` for all. native/feeds/key_patterns.h reads them alike. */

/** @returns {boolean} whether a text is one */
export function isPattern(text) {
  if (typeof text !== 'string') return false;
  return text === '*' || isKey(text.endsWith('/*') ? text.slice(0, -2) : text);
}

export class Patterns {
  #all;

  /** @param {string[]} all each isPattern */
  constructor(all) {
    this.#all = new Set(all);
  }

  /** @returns {boolean} whether a key is meant */
  covers(key) {
    if (this.#all.has(key) || this.#all.has('*')) return true;
    for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) {
      if (this.#all.has(`${key.slice(0, slash)}/*`)) return true;
    }
    return false;
  }
}
