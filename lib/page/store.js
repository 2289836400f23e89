/**
 * What a tab remembers: its place in the torus and the sprites on its desktop. A reload finds them
 * again in the tab's sessionStorage. A tab that is closed puts its sprites on the browser's shelf
 * (localStorage), where that tab, when it is opened again, or else the next one finds them. They
 * are moved, not copied: a sprite is in one place at any time.
 *
 * A duplicated tab starts with a copy of the sessionStorage. It must not poll with the same id and
 * show the same sprites a second time; so a tab that finds something asks the others first whether
 * it is theirs.
 */

const PLACE = 'sprites.place';
const DESKTOP = 'sprites.desktop';
const OWNER = 'sprites.owner';
const SHELF = 'sprites.shelf.';
const ANSWER_TIME = 160; // ms in which a tab that is alive answers
const SHELVED = 1500; // ms a desktop lies on the shelf before other tabs may take it: its own may come back

export class Store {
  #owner = '';
  #closed = false;

  /**
   * Takes over what this tab remembers.
   *
   * @returns {Promise<{place: unknown, desktop: unknown}>} null for what there isn't
   */
  async open() {
    const found = {
      place: read('sessionStorage', PLACE),
      desktop: read('sessionStorage', DESKTOP)
    };
    const owner = read('sessionStorage', OWNER);
    if (await isHeld('sprites', owner, () => this.#owner)) {
      found.place = null;
      found.desktop = null;
    }
    if (typeof owner === 'string') found.desktop ??= takeShelf(SHELF + owner)?.desktop ?? null;
    this.#owner = makeName();
    write('sessionStorage', OWNER, this.#owner);
    if (!found.place) write('sessionStorage', PLACE, null);
    return found;
  }

  /** @param {object|null} place what the client's `onResume` says */
  keepPlace(place) {
    if (!this.#closed) write('sessionStorage', PLACE, place);
  }

  /** @param {object} desktop */
  keepDesktop(desktop) {
    if (!this.#closed) write('sessionStorage', DESKTOP, desktop);
  }

  /**
   * The tab is closed: its desktop goes to the shelf, and this store remembers nothing more.
   *
   * @param {{sprites: object[]}} desktop
   */
  close(desktop) {
    write('sessionStorage', PLACE, null);
    write('sessionStorage', DESKTOP, desktop);
    this.#closed = true;
    if (desktop.sprites.length === 0) return;
    const shelved = write('localStorage', SHELF + this.#owner, { at: Date.now(), desktop });
    if (shelved) write('sessionStorage', DESKTOP, null);
  }

  /**
   * Takes what closed tabs have left on the shelf, the oldest first.
   *
   * @param {number} most sprites; what is more stays there
   * @returns {object[]} sprites as they were kept
   */
  adopt(most) {
    const taken = [];
    for (const key of shelves()) {
      const room = most - taken.length;
      if (room <= 0) break;
      const { at, desktop } = read('localStorage', key) ?? {};
      const age = Date.now() - at;
      if (age >= 0 && age < SHELVED) continue;
      takeShelf(key);
      const sprites = Array.isArray(desktop?.sprites) ? desktop.sprites : [];
      taken.push(...sprites.slice(0, room));
      if (sprites.length > room) {
        write('localStorage', key, { at, desktop: { sprites: sprites.slice(room) } });
      }
    }
    return taken;
  }
}

/**
 * Asks the browser's other tabs whether one of them has what this one finds in its memory. From then on this tab
 * answers the others.
 *
 * @param {string} name of the channel
 * @param {unknown} owner of what is found; null: there is nothing to ask for
 * @param {() => unknown} mine the owner of what this tab has
 * @returns {Promise<boolean>}
 */
export async function isHeld(name, owner, mine) {
  let channel;
  try {
    channel = new BroadcastChannel(name);
  } catch {
    return false; // There is none, or it is forbidden, as storage is.
  }
  const held = owner !== null && (await ask(channel, owner));
  channel.onmessage = ({ data }) => {
    if (data?.ask !== undefined && data.ask === mine()) channel.postMessage({ held: data.ask });
  };
  return held;
}

function ask(channel, owner) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ANSWER_TIME, false);
    channel.onmessage = ({ data }) => {
      if (data?.held !== owner) return;
      clearTimeout(timer);
      resolve(true);
    };
    channel.postMessage({ ask: owner });
  });
}

/** @returns {string} a name of its own, in the characters an id may have */
export function makeName() {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}

function shelves() {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(SHELF))
      .sort((a, b) => (read('localStorage', a)?.at ?? 0) - (read('localStorage', b)?.at ?? 0));
  } catch {
    return []; // Storage is switched off.
  }
}

function takeShelf(key) {
  const found = read('localStorage', key);
  write('localStorage', key, null);
  return found;
}

/**
 * @param {'localStorage'|'sessionStorage'} storage by name: where it is switched off, to ask for it is an error
 * @param {string} key
 * @returns {any} null where there is none
 */
export function read(storage, key) {
  try {
    return JSON.parse(globalThis[storage].getItem(key));
  } catch {
    return null; // Storage is switched off, or holds what this page never wrote.
  }
}

/**
 * @param {'localStorage'|'sessionStorage'} storage
 * @param {string} key
 * @param {any} value null: none
 * @returns {boolean} whether it is remembered
 */
export function write(storage, key, value) {
  try {
    if (value === null) globalThis[storage].removeItem(key);
    else globalThis[storage].setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false; // Storage is full or switched off. The page goes on; it will not be remembered.
  }
}
