import { createRequire } from 'node:module';
import { isMainThread } from 'node:worker_threads';

/**
 * The native addon. There is no stand-in in JavaScript: a program that can't have it stops with
 * one line that says what to do.
 */

const FILE = '../../native/build/Release/sprites.node';

/**
 * Loads the addon.
 *
 * @returns {object} its exports: the classes Pool, AddressLimits, Relay, Reservation, Door and
 *     LoopDelays; the functions readForwarded, readForwardedFor, writeNow, takeFileLock, releaseFileLock and
 *     endNow; the list outcomes
 * @throws {Error} with code `ERR_SPRITES_ADDON` and a message of one line, when it is missing or
 *     was built for another Node, or in another thread than the main one
 */
export function loadAddon() {
  if (!isMainThread) throw addonError('the native addon works in the main thread alone');
  try {
    return createRequire(import.meta.url)(FILE);
  } catch (cause) {
    const why =
      cause.code === 'MODULE_NOT_FOUND'
        ? 'the native addon is not built'
        : `the native addon does not load (${cause.message.split('\n')[0]})`;
    throw addonError(`${why}: run "npm install" with this Node (${process.version})`, cause);
  }
}

function addonError(message, cause) {
  return Object.assign(new Error(message, { cause }), { code: 'ERR_SPRITES_ADDON' });
}
