import { read, write } from './store.js';

/**
 * What this browser's owner prefers, on every desktop of theirs. Kept in localStorage, which may hold
 * anything, or be switched off.
 */

const KEY = 'sprites.preferences';

/** The defaults; a preference must have the type of its default. */
const DEFAULTS = Object.freeze({
  sound: true,
  lively: true, // sprites stroll and blink
  companion: true, // throws back while this desktop is alone
  letters: true, // and digits, as shortcuts
  cover: false, // pictures of strangers stay covered until they are asked for
  desktop: '' // its name, which goes with what it throws
});

export class Preferences {
  #values = kept();
  #listeners = [];

  /** @param {keyof typeof DEFAULTS} name */
  get(name) {
    return this.#values[name];
  }

  /**
   * @param {keyof typeof DEFAULTS} name
   * @param {boolean|string} value
   */
  set(name, value) {
    if (this.#values[name] === value) return;
    this.#values[name] = value;
    // Another tab may have kept another one meanwhile. Where none can be kept it holds as long as the page.
    write('localStorage', KEY, { ...kept(), [name]: value });
    for (const listener of this.#listeners) listener(name, value);
  }

  /** @param {(name: string, value: boolean|string) => void} listener */
  onChange(listener) {
    this.#listeners.push(listener);
  }
}

function kept() {
  const found = read('localStorage', KEY);
  const values = { ...DEFAULTS };
  for (const [name, value] of Object.entries(DEFAULTS)) {
    if (typeof found?.[name] === typeof value) values[name] = found[name];
  }
  return values;
}
