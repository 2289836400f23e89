import { readStorage, writeStorage } from './store.js';

/**
 * The visitor's preferences, shared by all desktops in this browser. They are stored in localStorage, which
 * may be switched off, and whose content is not trusted.
 */

const KEY = 'sprites.preferences';

/** The defaults; a preference must have the type of its default. */
const DEFAULTS = Object.freeze({
  sound: true,
  lively: true, // sprites stroll and blink
  companion: true, // Pip throws back while this desktop is alone
  letters: true, // letters and digits are shortcuts
  cover: false, // pictures of strangers stay covered until the visitor shows them
  desktop: '' // name of the desktop, sent with its throws
});

export class Preferences {
  #values = readStored();
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
    // Another tab may have stored another preference meanwhile. Without storage a preference lasts as long as the page.
    writeStorage('localStorage', KEY, { ...readStored(), [name]: value });
    for (const listener of this.#listeners) listener(name, value);
  }

  /** @param {(name: string, value: boolean|string) => void} listener */
  onChange(listener) {
    this.#listeners.push(listener);
  }
}

function readStored() {
  const stored = readStorage('localStorage', KEY);
  const values = { ...DEFAULTS };
  for (const [name, value] of Object.entries(DEFAULTS)) {
    if (typeof stored?.[name] === typeof value) values[name] = stored[name];
  }
  return values;
}
