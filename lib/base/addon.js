import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

/**
 * What is built of native/. There is no stand-in in JavaScript: a program that can't have the addon stops with one line
 * that says what to do.
 */

const require = createRequire(import.meta.url);

/** The addon as node-gyp has built it here. */
const BUILT = '../../native/build/Release/sprites.node';

/**
 * A file that was built for this platform and came as a package of its own (.github/pack.js makes these packages).
 *
 * @param {string} product as node-gyp names it; of an addon there is one for each ABI of Node
 * @returns {string} its path
 * @throws {Error} with code `MODULE_NOT_FOUND`
 */
export function prebuilt(product) {
  const name = product.replace(/(?=\.node$)/, `-${process.versions.modules}`);
  // Quicker than process.report, which also looks up the names of connected hosts. Alpine has musl as ld-musl-….so.1, others
  // as libc.so, to which that is a link.
  const isMusl = /\/(ld-musl-.*|libc\.so)$/m.test(readFileSync('/proc/self/maps', 'latin1'));
  return require.resolve(`sprites-server-linux-${process.arch}${isMusl ? '-musl' : ''}/${name}`);
}

/**
 * Loads the addon, in the main thread: the one that was built here, otherwise the one of the platform's package for this
 * Node's ABI.
 *
 * @returns {object} its exports: the classes Pool, AddressLimits, Door, Feeds, Arena, Tls, World and
 *     LoopDelays; the functions canonical, reservePort, writeNow, takeFileLock, holdsFileLock, releaseFileLock,
 *     giveBackHeap, release and endNow; the lists outcomes and refusals
 * @throws {Error} with code `ERR_SPRITES_ADDON` and a message of one line, when there is none for this Node and
 *     platform, or in another thread than the main one
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
  let broken;
  for (const path of [() => BUILT, () => prebuilt('sprites.node')]) {
    try {
      return require(path());
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') broken ??= error;
    }
  }
  const platform = `Node ${process.version} on ${process.platform} ${process.arch}`;
  const why = broken
    ? `the native addon does not load (${broken.message.split('\n')[0]})`
    : `the native addon is not built for ${platform}`;
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const how = `run "npm run build" in ${root} with this Node, a C++20 compiler, make and Python 3`;
  throw addonError(`${why}: ${how}`, broken);
}

function addonError(message, cause) {
  return Object.assign(new Error(message, { cause }), { code: 'ERR_SPRITES_ADDON' });
}
