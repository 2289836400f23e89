/** Limits of a client. Times are in milliseconds, unless the comment has another unit. */
const LIMITS = {
  backoffFirst: 500, // longest first wait after a failure
  backoffMost: 15_000, // longest wait of all: below a lease of 30 s, to be back in time for the old place
  backoffLeast: 1000, // longest wait in a torus of few clients
  pauseMost: 600_000, // longest wait by "retry" or Retry-After
  requestTimeout: 10_000, // of join, throw, leave, place, status
  throwSpeed: 16, // characters a millisecond: extends the timeout of a throw by its length
  proofTimeout: 5000, // of the request that proves contact
  pollSlack: 15_000, // timeout of a poll, beyond 1.25 times its hold
  pollTrust: 3, // failed polls in a row after which only an answered poll proves contact
  busyLeast: 250, // least wait before a throw is repeated that found the server busy
  quick: 1000, // an empty poll that with its "retry" takes less counts as a failure
  long: 10_000, // a poll parked this long shows whether the network lets it park
  attempts: 5, // of one throw that gets no answer while there is contact, or whose place is forgotten
  throwPatience: 60_000, // time limit of a throw without an answer
  numberWindow: 60, // most numbers between a repeated throw and a new one; the server remembers 64
  strayMisses: 3, // 404 in a row not from a Sprites server, after which the place counts as forgotten
  movesMost: 6, // most answers in a row that name another server; after one more the place counts as forgotten
  leavePatience: 5000, // time limit of a leave
  leaveReserve: 1500, // part of it reserved for telling the server
  leaveRetry: 200, // least wait between two attempts to tell the server
  answerMost: 16 * 1024 * 1024, // bytes in one answer, decoded
  holdLeast: 5, // seconds: the shortest hold that the server accepts
  holdUnknown: 120, // seconds: the hold of a server that has not announced its own
  feedHold: 55, // seconds, of a poll for feeds: many proxies cut off a connection after a silent minute
  feedAnswerMost: 64 * 1024 * 1024, // bytes in an answer with feeds
  feedsAtOnce: 32 // keys: as many as one poll may ask for
};

/** @typedef {typeof LIMITS} Limits */

/** @type {Readonly<Limits>} */
export const DEFAULTS = Object.freeze(LIMITS);

/**
 * Returns a shorter hold, for a network that cuts off polls parked for `parkedTime` ms.
 *
 * @param {number} parkedTime ms
 * @param {number} hold seconds; the hold until now
 * @param {Limits} limits
 * @returns {number} seconds
 */
export function shorterHold(parkedTime, hold, { holdLeast }) {
  return Math.max(holdLeast, Math.min(hold, Math.floor((parkedTime / 1000) * 0.75)));
}

/**
 * Returns the longest wait after a number of failures.
 *
 * @param {number} failures in a row, from 1
 * @param {number|null} clients number of clients in the torus; null: unknown
 * @param {Pick<Limits, 'backoffFirst'|'backoffLeast'|'backoffMost'>} [limits]
 * @returns {number} ms
 */
export function longestWait(failures, clients, limits = DEFAULTS) {
  const { backoffFirst, backoffLeast, backoffMost } = limits;
  const longest =
    clients === null ? backoffMost : Math.min(backoffMost, Math.max(backoffLeast, clients));
  return Math.min(longest, backoffFirst * 2 ** Math.min(failures - 1, 30));
}
