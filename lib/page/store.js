/**
 * What a tab remembers, in its sessionStorage: its place in the torus, and the sprites on its
 * desktop. Both live as long as the tab; a reload finds them again.
 *
 * A duplicated tab starts with a copy of them. It must not poll with the same id and show the same
 * sprites a second time; so a tab that finds something asks the others first whether it is theirs.
 */

const PLACE = 'sprites.place';
const DESKTOP = 'sprites.desktop';
const OWNER = 'sprites.owner';
const ANSWER_TIME = 160; // ms in which a tab that is alive answers

export class Store {
  #owner = '';
  #channel = null;

  /**
   * Takes over what this tab remembers.
   *
   * @returns {Promise<{place: unknown, desktop: unknown}>} null for what there isn't
   */
  async open() {
    const found = { place: read(PLACE), desktop: read(DESKTOP) };
    const owner = read(OWNER);
    if (typeof BroadcastChannel === 'function') {
      this.#channel = new BroadcastChannel('sprites');
      if (typeof owner === 'string' && (await this.#isHeld(owner))) {
        found.place = null;
        found.desktop = null;
      }
      this.#channel.onmessage = ({ data }) => {
        if (data?.ask === this.#owner) this.#channel.postMessage({ held: this.#owner });
      };
    }
    this.#owner = makeName();
    write(OWNER, this.#owner);
    if (!found.place) write(PLACE, null);
    return found;
  }

  /** @param {object|null} place what the client's `onResume` says */
  keepPlace(place) {
    write(PLACE, place);
  }

  /** @param {object} desktop */
  keepDesktop(desktop) {
    write(DESKTOP, desktop);
  }

  #isHeld(owner) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ANSWER_TIME, false);
      this.#channel.onmessage = ({ data }) => {
        if (data?.held !== owner) return;
        clearTimeout(timer);
        resolve(true);
      };
      this.#channel.postMessage({ ask: owner });
    });
  }
}

/** @returns {string} a name of its own, in the characters an id may have */
export function makeName() {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}

function read(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key));
  } catch {
    return null; // Storage is switched off, or holds what this page never wrote.
  }
}

function write(key, value) {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Storage is full or switched off. The page goes on; it will not be remembered.
  }
}
