import { readStorage, writeStorage } from './store.js';

/**
 * Modules that could not be fetched. A browser caches the failure for the life of the page, for the module and for its
 * imports (whatwg/html issue 6768). Only a reload of the page fetches them again.
 */

const RELOADS_KEY = 'sprites.reloads';

/** Shortest and longest delay before a reload, in milliseconds. The delay doubles until an import has succeeded. */
const SHORTEST_DELAY = 1000;
const LONGEST_DELAY = 60_000;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns whether the server answers with the file now. Without it, the reloaded page would be an error page. */
async function isServed(url) {
  try {
    const { ok } = await fetch(url, { cache: 'no-store' });
    return ok;
  } catch {
    return false; // No contact: the caller tries again.
  }
}

/**
 * Reloads the page when the server has the file that could not be imported. A random delay spreads the reloads of a
 * room full of phones.
 *
 * @param {string} url the file's
 * @param {() => boolean} [isWanted] whether the file is still wanted; called before each step
 */
export async function reloadWhenServed(url, isWanted = () => true) {
  const reloads = Number(readStorage('sessionStorage', RELOADS_KEY)) || 0;
  const delay = Math.min(LONGEST_DELAY, SHORTEST_DELAY * 2 ** reloads);
  do {
    await sleep(delay * (1 + Math.random()));
    if (!isWanted()) return;
  } while (!(await isServed(url)));
  if (!isWanted()) return;
  writeStorage('sessionStorage', RELOADS_KEY, reloads + 1);
  location.reload();
}

/** Resets the delay of reloads, after an import has succeeded. */
export function resetReloadDelay() {
  writeStorage('sessionStorage', RELOADS_KEY, null);
}

// The page's own script comes after this one, in the same document.
for (const script of document.scripts) {
  script.addEventListener('error', () => reloadWhenServed(script.src));
}
