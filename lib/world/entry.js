import { readServerUrl } from './public-url.js';

/**
 * What a server says of itself in the key-value store: one small JSON object under its name. `version`, `epoch`, `state`
 * and `lease` keep their meaning in every version, so that servers of different versions can refuse each other by name.
 */

/** The version of entries and frames. Servers of different versions do not make one ring. */
export const VERSION = 2;

/** Servers there may be in one world. What one more is told: `world-full`. */
export const MOST_SERVERS = 1024;

/** The longest grace that is granted, milliseconds; the options allow an hour, and as much for the drain. */
const MOST_GRACE = 2 * 3600 * 1000;

/** The most an entry may have, in bytes. */
export const ENTRY_BYTES = 4096;

/** A server's name: it is a key in the store and a token in subjects. */
export const NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** The states of a server that holds its name. */
const LIVING = ['joining', 'member', 'leaving'];

/** Those of a name that is free: its server has left, or its lease was found to have ended. */
const OVER = ['gone', 'lost'];

/**
 * @typedef {object} Entry
 * @property {number} version see VERSION
 * @property {number} epoch grows whenever the name is taken, and is never used twice
 * @property {'joining' | 'member' | 'leaving' | 'gone' | 'lost'} state
 * @property {number} lease how long it holds without being renewed, milliseconds
 * @property {string} instance whose state it is: the same after a restart with --state
 * @property {string} run the process
 * @property {number} rows rows it has now
 * @property {number} [clients] clients it had when it wrote this: one that is no count is not taken
 * @property {string} [url] where clients reach it: one that is none is not taken
 * @property {number} [grace] only of one that leaves in order and comes back with its state: how long its clients' ids stay
 *     its own from then on, milliseconds
 */

/** @returns {boolean} whether an entry's server holds its name */
export const isLiving = (entry) => entry !== undefined && LIVING.includes(entry.state);

/** @returns {boolean} whether an entry's server is one of the ring, for who speaks that version */
export const isMember = (entry, version) => entry?.state === 'member' && entry.version === version;

/**
 * @param {string} text as it is in the store
 * @returns {Entry | undefined} undefined for what is none: a name with such a value is free
 */
export function readEntry(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { version, epoch, state, lease } = value ?? {};
  const whole = [version, epoch, lease].every((one) => Number.isSafeInteger(one) && one > 0);
  if (!whole || ![...LIVING, ...OVER].includes(state)) return undefined;
  const isCount = (number) => Number.isSafeInteger(number) && number >= 0;
  if (version === VERSION && !isCount(value.rows)) return undefined;
  const { url, grace, clients, ...rest } = value;
  const read = readServerUrl(url);
  const isGrace = Number.isSafeInteger(grace) && grace > 0 && grace <= MOST_GRACE;
  return {
    ...rest,
    ...(isCount(clients) && { clients }),
    ...(read !== undefined && { url: read }),
    ...(isGrace && { grace })
  };
}

/**
 * The epoch of who takes a name. By compare-and-set it is above every one in the store. Where the store has lost its
 * memory it must still not be one that was used: seconds of the clock grow faster than anybody can take names. Clocks
 * of two machines are never compared.
 *
 * @param {number[]} known epochs that were used
 * @returns {number}
 */
export function nextEpoch(known) {
  return Math.max(Math.floor(Date.now() / 1000), ...known.map((epoch) => epoch + 1));
}
