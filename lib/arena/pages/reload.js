/**
 * A module that could not be fetched: a browser keeps that failure for as long as the page lives, whoever imports it
 * again (whatwg/html issue 6768), and those that it imports as well. Only a page that is loaded anew asks again.
 */

const KEY = 'sprites.reloads';

/** Milliseconds until the first reload, and at most: twice as many each time, until one has helped. */
const FIRST = 1000;
const MOST = 60_000;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Whether the server gives the file now: a page that is loaded anew without it would be an error page. */
async function isThere(url) {
  try {
    const { ok } = await fetch(url, { cache: 'no-store' });
    return ok;
  } catch {
    return false; // No contact: asked again.
  }
}

/**
 * Loads the page anew as soon as the server gives a file of it that could not be imported. A room full of phones
 * does not do so at once.
 *
 * @param {string} url the file's
 * @param {() => boolean} isWanted whether it still is; asked before each step
 */
export async function reloadFor(url, isWanted) {
  const before = Number(sessionStorage.getItem(KEY) ?? 0);
  const wait = Math.min(MOST, FIRST * 2 ** before);
  do {
    await pause(wait * (1 + Math.random()));
    if (!isWanted()) return;
  } while (!(await isThere(url)));
  if (!isWanted()) return;
  sessionStorage.setItem(KEY, before + 1);
  location.reload();
}

/** Says that a module was imported: the next failure is a first one. */
export function imported() {
  sessionStorage.removeItem(KEY);
}
