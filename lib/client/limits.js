/** The bounds of a client. Times are milliseconds, unless their name says otherwise. */
const LIMITS = {
  backoffFirst: 500, // longest first wait after a failure
  backoffMost: 15_000, // of any: below a lease of 30 s, to be back in time for the old place
  backoffLeast: 1000, // of backoffMost where few clients are known of
  pauseMost: 600_000, // of "retry" and Retry-After, whatever the server says
  requestTimeout: 10_000, // join, throw, leave, place, status
  throwSpeed: 16, // characters a millisecond: a throw has so much more time
  proofTimeout: 5000, // of the request that proves contact
  pollSlack: 15_000, // how much longer than its hold, and a fourth of it, a poll may take
  pollTrust: 3, // failed polls in a row after which only an answered poll proves contact
  busyLeast: 250, // between two attempts of a throw that found the server busy
  quick: 1000, // an empty poll answered sooner than this counts as a failure
  long: 10_000, // a poll parked so long tells whether the network lets it park
  attempts: 5, // of one throw that gets no answer while there is contact, or whose place is forgotten
  throwPatience: 60_000, // until a throw without an answer is given up
  numberWindow: 60, // numbers between a repeated throw and a new one; the server remembers 64
  strayMisses: 3, // 404 in a row that no Sprites server wrote, and the place counts as forgotten
  movesMost: 6, // answers in a row that the place is at another server, then it counts as forgotten
  leavePatience: 5000, // of a leave, in all
  leaveReserve: 1500, // of which this is kept for telling the server
  leaveRetry: 200, // between two attempts to tell it
  answerMost: 16 * 1024 * 1024, // bytes in one answer, decoded
  holdLeast: 5, // seconds: the shortest hold the server takes
  holdUnknown: 120, // seconds: the server's hold, as long as it has not said
  feedHold: 55, // seconds, of a poll for feeds: many a proxy cuts off what is silent for a minute
  feedAnswerMost: 64 * 1024 * 1024, // bytes in an answer with feeds
  feedsAtOnce: 32 // keys: as many as one poll may ask for
};

/** @typedef {typeof LIMITS} Limits */

/** @type {Readonly<Limits>} */
export const DEFAULTS = Object.freeze(LIMITS);

/**
 * Something between cuts off polls that were parked for `took` ms: the hold to ask for.
 *
 * @param {number} took ms
 * @param {number} hold seconds, up to now
 * @param {Limits} limits
 * @returns {number} seconds
 */
export function shorterHold(took, hold, { holdLeast }) {
  return Math.max(holdLeast, Math.min(hold, Math.floor((took / 1000) * 0.75)));
}

/**
 * The longest wait after so many failures.
 *
 * @param {number} failures in a row, from 1
 * @param {number|null} clients how many the server has, where that is known
 * @param {Pick<Limits, 'backoffFirst'|'backoffLeast'|'backoffMost'>} [limits]
 * @returns {number} ms
 */
export function longestWait(failures, clients, limits = DEFAULTS) {
  const { backoffFirst, backoffLeast, backoffMost } = limits;
  const most =
    clients === null ? backoffMost : Math.min(backoffMost, Math.max(backoffLeast, clients));
  return Math.min(most, backoffFirst * 2 ** Math.min(failures - 1, 30));
}
