/**
 * The memory of a tab: its place in the torus and the sprites on its desktop. A reload finds them
 * in the tab's sessionStorage. A closed tab puts its sprites on the browser's shelf (localStorage).
 * The same tab, when it is reopened, or else the next tab takes them from there. Sprites are moved,
 * not copied: a sprite is in one place at any time.
 *
 * A duplicated tab starts with a copy of the sessionStorage. It must not poll with the same id and
 * show the same sprites a second time. So a tab that finds a memory first asks the other tabs whether
 * the memory is theirs.
 */

const PLACE = 'sprites.place';
const DESKTOP = 'sprites.desktop';
const OWNER = 'sprites.owner';
const SHELF = 'sprites.shelf.';
const ANSWER_TIME = 160; // ms within which a living tab answers
const SHELVED = 1500; // ms on the shelf before other tabs may take a desktop: its own tab may be reopened

export class Store {
  #owner = '';
  #closed = false;

  /**
   * Reads this tab's memory.
   *
   * @returns {Promise<{place: unknown, desktop: unknown}>} null for a missing part
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

  /** Stores the place. @param {object|null} place as the client's `onResume` reports it */
  keepPlace(place) {
    if (!this.#closed) write('sessionStorage', PLACE, place);
  }

  /** Stores the desktop. @param {object} desktop */
  keepDesktop(desktop) {
    if (!this.#closed) write('sessionStorage', DESKTOP, desktop);
  }

  /**
   * Puts the desktop of a closing tab on the shelf. The store remembers nothing more afterwards.
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
   * Takes sprites of closed tabs from the shelf, the oldest first.
   *
   * @param {number} most sprites; further ones stay on the shelf
   * @returns {object[]} sprites as they were stored
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
 * Asks the browser's other tabs whether one of them uses the memory that this tab has found. From then on this tab
 * answers such questions.
 *
 * @param {string} name of the channel
 * @param {unknown} owner of the found memory; null: there is none, and no question
 * @param {() => unknown} mine returns the owner of this tab's memory
 * @returns {Promise<boolean>}
 */
export async function isHeld(name, owner, mine) {
  let channel;
  try {
    channel = new BroadcastChannel(name);
  } catch {
    return false; // Channels are missing here, or forbidden together with storage.
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

/** @returns {string} a random name, of characters that an id may have */
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
 * Reads an entry of a storage.
 *
 * @param {'localStorage'|'sessionStorage'} storage by name: even its getter throws where storage is switched off
 * @param {string} key
 * @returns {any} null where there is none
 */
export function read(storage, key) {
  try {
    return JSON.parse(globalThis[storage].getItem(key));
  } catch {
    return null; // Storage is switched off, or has a text that this page never wrote.
  }
}

/**
 * Writes an entry of a storage.
 *
 * @param {'localStorage'|'sessionStorage'} storage
 * @param {string} key
 * @param {any} value null removes the entry
 * @returns {boolean} whether it was written
 */
export function write(storage, key, value) {
  try {
    if (value === null) globalThis[storage].removeItem(key);
    else globalThis[storage].setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false; // Storage is full or switched off. The page goes on without a memory.
  }
}
