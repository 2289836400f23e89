import { lanAddresses } from '../base/lan-addresses.js';

/**
 * A server's entry in the key-value store: one small JSON object under its name. `version`, `epoch`, `state` and `lease`
 * keep their meaning in every version, so that servers of different versions can refuse each other by name.
 */

/** Version of entries and frames. Servers of different versions do not make one ring. */
export const VERSION = 2;

/** Most servers in a world. A further server gets `world-full`. */
export const MAX_SERVERS = 1024;

/**
 * Most known names, with those of servers that have left: native/torus/seams.h has as many numbers. For a further name the
 * least recently renewed one is forgotten.
 */
export const MAX_NAMES = 4096;

/** Longest grace period, in milliseconds; the options allow an hour, and as much for the drain. */
const MAX_GRACE = 2 * 3600 * 1000;

/** Longest lease, in milliseconds; the options allow five minutes. */
const MAX_LEASE = 3600 * 1000;

/** Most rows: those of the largest torus, a square (kMaxCapacity of native/torus/torus.h). */
const MAX_ROWS = 2 ** 15;

/** Most clients: those of the largest torus. */
const MAX_CLIENTS = MAX_ROWS ** 2;

/**
 * How far an epoch may be ahead of the clock, in seconds: 136 years, for a machine whose clock started at 1970. An epoch
 * starts as the seconds of the clock and grows more slowly than these. So a larger one is invalid, and there is always a
 * next one.
 */
const MAX_EPOCH_AHEAD = 2 ** 32;

/** Largest entry, in bytes. */
export const ENTRY_BYTES = 4096;

/** Longest text in an entry besides the URL, in characters: a UUID has 36. */
const MAX_TEXT = 64;

/** Names of servers: a name is a key in the store and a token in subjects. */
export const NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** @returns {boolean} whether a text is a server's name; `none` is the name of a server without a world */
export const isName = (text) => NAME.test(text) && text !== 'none';

/** The states of a server that holds its name. */
const HOLDING_STATES = ['joining', 'member', 'leaving'];

/** The states of a free name: its server has left, or its lease has ended. */
const FREE_STATES = ['gone', 'lost'];

/**
 * @typedef {object} Entry
 * @property {number} version see VERSION
 * @property {number} epoch grows whenever a server takes the name, and is never used twice
 * @property {'joining' | 'member' | 'leaving' | 'gone' | 'lost'} state
 * @property {number} lease how long the entry is valid without a renewal, in milliseconds
 * @property {string} instance identifies the state: the same after a restart with --state
 * @property {string} run identifies the process
 * @property {number} [since] when the server began to join: the revision of its first write
 * @property {number} rows number of its rows
 * @property {number} [clients] number of its clients; absent if invalid
 * @property {string} [url] its URL for clients; absent if invalid
 * @property {number} [grace] how long the server keeps the ids of its clients, in milliseconds; only in the entry of a
 *     server that leaves in order and will come back with its state
 * @property {true} [empty] the outboxes were empty, or the server keeps no state; only in the entry of a server that has
 *     left in order
 */

/** @returns {boolean} whether an entry's server holds its name */
export const holdsName = (entry) => entry !== undefined && HOLDING_STATES.includes(entry.state);

/** @returns {boolean} whether an entry's server is a member of the ring of this version */
export const isMember = (entry, version) => entry?.state === 'member' && entry.version === version;

const isIntegerIn = (low, high) => (value) =>
  Number.isSafeInteger(value) && value >= low && value <= high;

const nowInSeconds = () => Math.floor(Date.now() / 1000);

const isText = (value) => typeof value === 'string' && value.length <= MAX_TEXT;

/** Required members of an entry of this version. */
const REQUIRED = {
  version: isIntegerIn(1, Number.MAX_SAFE_INTEGER),
  epoch: (value) => isIntegerIn(1, nowInSeconds() + MAX_EPOCH_AHEAD)(value),
  state: (value) => [...HOLDING_STATES, ...FREE_STATES].includes(value),
  lease: isIntegerIn(1, MAX_LEASE),
  rows: isIntegerIn(0, MAX_ROWS)
};

/** Optional members. An invalid one counts as absent. */
const OPTIONAL = {
  instance: isText,
  run: isText,
  since: isIntegerIn(1, Number.MAX_SAFE_INTEGER),
  clients: isIntegerIn(0, MAX_CLIENTS),
  url: (value) => readServerUrl(value) !== undefined,
  grace: isIntegerIn(1, MAX_GRACE),
  empty: (value) => value === true
};

/** Members that keep their meaning in every version: an entry of another version must have these. */
const STABLE_MEMBERS = ['version', 'epoch', 'state', 'lease'];

/**
 * Reads an entry. Every client of NATS could have written it, so that every member is checked against its bounds. Unknown
 * members are left out: an entry that is written again as lost does not grow.
 *
 * @param {string} text the value in the store
 * @returns {Entry | undefined} undefined for an invalid entry: its name is free
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
  const requiredNames = isOurs ? Object.keys(REQUIRED) : STABLE_MEMBERS;
  if (!requiredNames.every((name) => REQUIRED[name](value?.[name]))) return undefined;
  const optionalNames = Object.keys(OPTIONAL).filter((name) => OPTIONAL[name](value[name]));
  const entry = Object.fromEntries(
    [...requiredNames, ...optionalNames].map((name) => [name, value[name]])
  );
  return entry.url === undefined ? entry : { ...entry, url: readServerUrl(entry.url) };
}

/**
 * Returns the epoch of a server that takes a name. By compare-and-set it is higher than every epoch in the store. It must be
 * unused even if the store has lost its content: the seconds of the clock grow faster than servers can take names. Clocks
 * of two machines are never compared.
 *
 * @param {number[]} usedEpochs used epochs
 * @returns {number}
 */
export function nextEpoch(usedEpochs) {
  return Math.max(nowInSeconds(), ...usedEpochs.map((epoch) => epoch + 1));
}

/** Longest URL of a server, in characters. */
const MAX_URL_LENGTH = 256;

/**
 * @param {unknown} text
 * @returns {string | undefined} the URL of a server, http or https, with a host and an optional port, without a slash at
 *     the end; undefined for anything else
 */
export function readServerUrl(text) {
  if (typeof text !== 'string' || text.length > MAX_URL_LENGTH || !URL.canParse(text))
    return undefined;
  const { protocol, origin, href } = new URL(text);
  const isPlain = ['http:', 'https:'].includes(protocol) && [origin, `${origin}/`].includes(href);
  return isPlain && /^[\x21-\x7e]+$/.test(text) ? origin : undefined;
}

/**
 * Returns the URL under which clients reach this server. The other servers send it to clients.
 *
 * @param {{worldUrl: string, host: string}} options
 * @param {number} port the port that the server listens on
 * @returns {string} --world-url; without it, a URL with the address that the server listens on, or, where it listens on
 *     all, with the first address of this machine that others can reach
 */
export function publicUrl({ worldUrl, host }, port) {
  if (worldUrl !== 'none') return worldUrl;
  const isWildcard = ['0.0.0.0', '::'].includes(host);
  const address = isWildcard ? (lanAddresses(host)[0] ?? '127.0.0.1') : host;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}
