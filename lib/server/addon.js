import { createRequire } from 'node:module';

/**
 * The native addon. There is no stand-in in JavaScript: a program that can't have it stops with
 * one line that says what to do.
 */

const FILE = '../../native/build/Release/sprites.node';

/**
 * Loads the addon.
 *
 * @returns {object} its exports: the classes Pool, AddressLimits, Relay, Reservation and Door; the
 *     functions readForwarded, readForwardedFor, writeNow, takeFileLock and releaseFileLock; the
 *     list outcomes
 * @throws {Error} with code `ERR_SPRITES_ADDON` and a message of one line, when it is missing or
 *     was built for another Node
 */
export function loadAddon() {
  try {
    return createRequire(import.meta.url)(FILE);
  } catch (cause) {
    const why =
      cause.code === 'MODULE_NOT_FOUND'
        ? 'the native addon is not built'
        : `the native addon does not load (${cause.message.split('\n')[0]})`;
    const error = new Error(`${why}: run "npm install" with this Node (${process.version})`, {
      cause
    });
    error.code = 'ERR_SPRITES_ADDON';
    throw error;
  }
}
