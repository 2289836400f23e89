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

const PLACE_KEY = 'sprites.place';
const DESKTOP_KEY = 'sprites.desktop';
const OWNER_KEY = 'sprites.owner';
const SHELF_PREFIX = 'sprites.shelf.';
const ANSWER_TIME = 160; // ms within which a living tab answers
const MIN_SHELF_TIME = 1500; // ms on the shelf before other tabs may take a desktop: its own tab may be reopened

export class Store {
  #owner = '';
  #isClosed = false;

  /**
   * Reads this tab's memory.
   *
   * @returns {Promise<{place: unknown, desktop: unknown}>} null for a missing part
   */
  async load() {
    const stored = {
      place: readStorage('sessionStorage', PLACE_KEY),
      desktop: readStorage('sessionStorage', DESKTOP_KEY)
    };
    const owner = readStorage('sessionStorage', OWNER_KEY);
    if (await isHeldByOtherTab('sprites', owner, () => this.#owner)) {
      stored.place = null;
      stored.desktop = null;
    }
    if (typeof owner === 'string')
      stored.desktop ??= removeShelf(SHELF_PREFIX + owner)?.desktop ?? null;
    this.#owner = randomName();
    writeStorage('sessionStorage', OWNER_KEY, this.#owner);
    if (!stored.place) writeStorage('sessionStorage', PLACE_KEY, null);
    return stored;
  }

  /** Stores the place. @param {object|null} place as the client's `onResume` reports it */
  savePlace(place) {
    if (!this.#isClosed) writeStorage('sessionStorage', PLACE_KEY, place);
  }

  /** Stores the desktop. @param {object} desktop */
  saveDesktop(desktop) {
    if (!this.#isClosed) writeStorage('sessionStorage', DESKTOP_KEY, desktop);
  }

  /**
   * Puts the desktop of a closing tab on the shelf. The store remembers nothing more afterwards.
   *
   * @param {{sprites: object[]}} desktop
   */
  close(desktop) {
    writeStorage('sessionStorage', PLACE_KEY, null);
    writeStorage('sessionStorage', DESKTOP_KEY, desktop);
    this.#isClosed = true;
    if (desktop.sprites.length === 0) return;
    const isShelved = writeStorage('localStorage', SHELF_PREFIX + this.#owner, {
      at: Date.now(),
      desktop
    });
    if (isShelved) writeStorage('sessionStorage', DESKTOP_KEY, null);
  }

  /**
   * Takes sprites of closed tabs from the shelf, the oldest first.
   *
   * @param {number} maxSprites sprites; further ones stay on the shelf
   * @returns {object[]} sprites as they were stored
   */
  takeShelved(maxSprites) {
    const adopted = [];
    for (const key of shelfKeys()) {
      const room = maxSprites - adopted.length;
      if (room <= 0) break;
      const { at, desktop } = readStorage('localStorage', key) ?? {};
      const age = Date.now() - at;
      if (age >= 0 && age < MIN_SHELF_TIME) continue;
      removeShelf(key);
      const sprites = Array.isArray(desktop?.sprites) ? desktop.sprites : [];
      adopted.push(...sprites.slice(0, room));
      if (sprites.length > room) {
        writeStorage('localStorage', key, { at, desktop: { sprites: sprites.slice(room) } });
      }
    }
    return adopted;
  }
}

/**
 * Asks the browser's other tabs whether one of them uses the memory that this tab has found. From then on this tab
 * answers such questions.
 *
 * @param {string} name of the channel
 * @param {unknown} owner of the found memory; null: there is none, and no question
 * @param {() => unknown} ownOwner returns the owner of this tab's memory
 * @returns {Promise<boolean>}
 */
export async function isHeldByOtherTab(name, owner, ownOwner) {
  let channel;
  try {
    channel = new BroadcastChannel(name);
  } catch {
    return false; // Channels are missing here, or forbidden together with storage.
  }
  const held = owner !== null && (await askOtherTabs(channel, owner));
  channel.onmessage = ({ data }) => {
    if (data?.ask !== undefined && data.ask === ownOwner()) channel.postMessage({ held: data.ask });
  };
  return held;
}

function askOtherTabs(channel, owner) {
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
export function randomName() {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
}

function shelfKeys() {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(SHELF_PREFIX))
      .sort(
        (a, b) =>
          (readStorage('localStorage', a)?.at ?? 0) - (readStorage('localStorage', b)?.at ?? 0)
      );
  } catch {
    return []; // Storage is switched off.
  }
}

function removeShelf(key) {
  const shelf = readStorage('localStorage', key);
  writeStorage('localStorage', key, null);
  return shelf;
}

/**
 * Reads an entry of a storage.
 *
 * @param {'localStorage'|'sessionStorage'} storage by name: even its getter throws where storage is switched off
 * @param {string} key
 * @returns {any} null where there is none
 */
export function readStorage(storage, key) {
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
export function writeStorage(storage, key, value) {
  try {
    if (value === null) globalThis[storage].removeItem(key);
    else globalThis[storage].setItem(key, JSON.stringify(value));
    return true;
  } catch {
    return false; // Storage is full or switched off. The page goes on without a memory.
  }
}
