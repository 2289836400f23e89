import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

/**
 * Finds and loads the programs built from native/. The addon has no substitute in JavaScript: a program without it stops
 * with one line that says what to do.
 */

const require = createRequire(import.meta.url);

/** The addon that node-gyp builds in a checkout. */
const CHECKOUT_ADDON = '../../native/build/Release/sprites.node';

/**
 * Finds a file in the package for this platform (.github/pack.js makes these packages).
 *
 * @param {string} product its name in node-gyp; an addon has one file for each ABI of Node
 * @returns {string} its path
 * @throws {Error} with code `MODULE_NOT_FOUND`
 */
export function findPrebuilt(product) {
  const name = product.replace(/(?=\.node$)/, `-${process.versions.modules}`);
  // Quicker than process.report, which also looks up the names of connected hosts. Alpine has musl as ld-musl-….so.1; on
  // other systems that is a link to libc.so.
  const isMusl = /\/(ld-musl-.*|libc\.so)$/m.test(readFileSync('/proc/self/maps', 'latin1'));
  return require.resolve(`sprites-server-linux-${process.arch}${isMusl ? '-musl' : ''}/${name}`);
}

/**
 * Loads the addon, in the main thread: the one of this checkout, otherwise the one for this Node's ABI in the platform's
 * package.
 *
 * @returns {object} its exports: the classes Pool, AddressLimits, Door, Feeds, Arena, Tls, World and
 *     LoopDelays; the functions canonical, reservePort, writeNow, takeFileLock, holdsFileLock, releaseFileLock,
 *     giveBackHeap, release and endNow; the lists outcomes and refusals
 * @throws {Error} with code `ERR_SPRITES_ADDON` and a message of one line, when there is no addon for this Node and
 *     platform, or in another thread than the main thread
 */
export function loadAddon() {
  if (!isMainThread) throw addonError('the native addon works in the main thread alone');
  return load();
}

/**
 * @returns {(text: Uint8Array, depth: number, out: Uint8Array) => number} see native/base/canonical.h; in any thread
 * @throws {Error} as loadAddon
 */
export const loadCanonical = () => load().canonical;

function load() {
  let loadError;
  for (const path of [() => CHECKOUT_ADDON, () => findPrebuilt('sprites.node')]) {
    try {
      return require(path());
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') loadError ??= error;
    }
  }
  const platform = `Node ${process.version} on ${process.platform} ${process.arch}`;
  const problem = loadError
    ? `the native addon does not load (${loadError.message.split('\n')[0]})`
    : `the native addon is not built for ${platform}`;
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const advice = `run "npm run build" in ${root} with this Node, a C++20 compiler, make and Python 3`;
  throw addonError(`${problem}: ${advice}`, loadError);
}

function addonError(message, cause) {
  return Object.assign(new Error(message, { cause }), { code: 'ERR_SPRITES_ADDON' });
}
