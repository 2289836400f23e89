import { lanAddresses } from '../base/lan-addresses.js';

/**
 * What a server says of itself in the key-value store: one small JSON object under its name. `version`, `epoch`, `state`
 * and `lease` keep their meaning in every version, so that servers of different versions can refuse each other by name.
 */

/** The version of entries and frames. Servers of different versions do not make one ring. */
export const VERSION = 2;

/** Servers there may be in one world. What one more is told: `world-full`. */
export const MOST_SERVERS = 1024;

/**
 * Names that are known, with those of servers that have left: as many as native/torus/seams.h has numbers for. Of one more
 * the longest not renewed is forgotten.
 */
export const MOST_NAMES = 4096;

/** The longest grace that is granted, milliseconds; the options allow an hour, and as much for the drain. */
const MOST_GRACE = 2 * 3600 * 1000;

/** The longest lease, milliseconds; the options allow five minutes. */
const MOST_LEASE = 3600 * 1000;

/** Rows of the largest torus there can be, a square: kMaxCapacity of native/torus/torus.h. */
const MOST_ROWS = 2 ** 15;

/** Clients of that torus. */
const MOST_CLIENTS = MOST_ROWS ** 2;

/**
 * How far ahead of the clock an epoch may be, seconds: 136 years, for a machine whose clock has begun at 1970. Each begins as
 * the clock's seconds and grows more slowly than these, so a larger one is not valid, and there is always a next one.
 */
const AHEAD = 2 ** 32;

/** The most an entry may have, in bytes. */
export const ENTRY_BYTES = 4096;

/** The longest text in an entry but the URL, in characters: a UUID has 36. */
const MOST_TEXT = 64;

/** A server's name: it is a key in the store and a token in subjects. */
export const NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** @returns {boolean} whether a server of a world may have it; `none` is that of one without */
export const isName = (text) => NAME.test(text) && text !== 'none';

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
 * @property {number} [since] when it began to join: the revision of what it wrote first
 * @property {number} rows rows it has now
 * @property {number} [clients] clients it had when it wrote this: one that is no count is not taken
 * @property {string} [url] where clients reach it: one that is none is not taken
 * @property {number} [grace] only of one that leaves in order and comes back with its state: how long its clients' ids stay
 *     its own from then on, milliseconds
 * @property {true} [empty] only of one that has left in order: nothing was in its outboxes, or it keeps no state
 */

/** @returns {boolean} whether an entry's server holds its name */
export const isLiving = (entry) => entry !== undefined && LIVING.includes(entry.state);

/** @returns {boolean} whether an entry's server is one of the ring, for servers of that version */
export const isMember = (entry, version) => entry?.state === 'member' && entry.version === version;

const isFrom = (low, high) => (value) =>
  Number.isSafeInteger(value) && value >= low && value <= high;

const seconds = () => Math.floor(Date.now() / 1000);

const isText = (value) => typeof value === 'string' && value.length <= MOST_TEXT;

/** What an entry of this version must have. */
const NEEDED = {
  version: isFrom(1, Number.MAX_SAFE_INTEGER),
  epoch: (value) => isFrom(1, seconds() + AHEAD)(value),
  state: (value) => [...LIVING, ...OVER].includes(value),
  lease: isFrom(1, MOST_LEASE),
  rows: isFrom(0, MOST_ROWS)
};

/** What it may have: whatever is none of these counts as missing. */
const OPTIONAL = {
  instance: isText,
  run: isText,
  since: isFrom(1, Number.MAX_SAFE_INTEGER),
  clients: isFrom(0, MOST_CLIENTS),
  url: (value) => readServerUrl(value) !== undefined,
  grace: isFrom(1, MOST_GRACE),
  empty: (value) => value === true
};

/** Those that keep their meaning in every version: all that an entry of another one must have. */
const EVER = ['version', 'epoch', 'state', 'lease'];

/**
 * Every client of NATS can have written it, so every member is held to its bounds, and what has no meaning is left out: an
 * entry that is written again, as lost, is not larger than it was.
 *
 * @param {string} text as it is in the store
 * @returns {Entry | undefined} undefined for what is none: a name with such a value is free
 */
export function readEntry(text) {
  if (Buffer.byteLength(text) > ENTRY_BYTES) return undefined;
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isOurs = value?.version === VERSION;
  const needed = isOurs ? Object.keys(NEEDED) : EVER;
  if (!needed.every((name) => NEEDED[name](value?.[name]))) return undefined;
  const optional = Object.keys(OPTIONAL).filter((name) => OPTIONAL[name](value[name]));
  const read = Object.fromEntries([...needed, ...optional].map((name) => [name, value[name]]));
  return read.url === undefined ? read : { ...read, url: readServerUrl(read.url) };
}

/**
 * The epoch of a server that takes a name. By compare-and-set it is above every one in the store. Where the store has lost its
 * memory it must still not be one that was used: seconds of the clock grow faster than servers can take names. Clocks
 * of two machines are never compared.
 *
 * @param {number[]} known epochs that were used
 * @returns {number}
 */
export function nextEpoch(known) {
  return Math.max(seconds(), ...known.map((epoch) => epoch + 1));
}

/** The most a server's URL may have, in characters. */
const LONGEST = 256;

/**
 * @param {unknown} text
 * @returns {string | undefined} the URL of a server, http or https, with a host and perhaps a port, and without a slash at
 *     the end; undefined for anything else
 */
export function readServerUrl(text) {
  if (typeof text !== 'string' || text.length > LONGEST || !URL.canParse(text)) return undefined;
  const { protocol, origin, href } = new URL(text);
  const isPlain = ['http:', 'https:'].includes(protocol) && [origin, `${origin}/`].includes(href);
  return isPlain && /^[\x21-\x7e]+$/.test(text) ? origin : undefined;
}

/**
 * Where clients reach this server alone, for the others to say.
 *
 * @param {{worldUrl: string, host: string}} options
 * @param {number} port the one that it listens on
 * @returns {string} --world-url; else by the address that it listens on, and where that is every one, by the first of this
 *     machine that others can reach
 */
export function publicUrl({ worldUrl, host }, port) {
  if (worldUrl !== 'none') return worldUrl;
  const isEvery = ['0.0.0.0', '::'].includes(host);
  const address = isEvery ? (lanAddresses(host)[0] ?? '127.0.0.1') : host;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}
