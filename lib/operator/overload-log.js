import { problems } from '../http/problems.js';

/**
 * Warns when the server refuses requests for lack of room, at most once a minute for each problem, and when the server ends.
 * The single refusals are logged at `debug` (lib/http/refusals.js): as warnings a flood of them would hide everything else.
 */

/** Interval at which the counts are read, in milliseconds. */
const INTERVAL = 10_000;

/** Least time between two warnings of a problem, in milliseconds. */
const QUIET_TIME = 60_000;

/** The problems of full bounds, and what the operator looks at. `neighbor-busy` is no fault: one mailbox is full. */
const BOUNDS = {
  'too-many-connections': 'a ban, --connections, --address-connections, or ulimit -n',
  'torus-full': '--capacity',
  'mailboxes-full': '--mailbox-memory',
  'too-many-feeds': '--feeds',
  'feed-memory-full': '--feed-memory',
  'too-many-watchers': '--feed-watchers',
  'arena-full': '--arena-players'
};

export class OverloadLog {
  #refused;
  #log;
  #timer;
  /** By problem: the count in the last warning, and its time. @type {Map<string, {count: number, at: number}>} */
  #warned = new Map();

  /**
   * @param {object} parts
   * @param {() => Record<string, number>} parts.refused returns the refused requests since the start, by problem
   * @param {import('pino').Logger} parts.log
   */
  constructor({ refused, log }) {
    this.#refused = refused;
    this.#log = log;
    this.#timer = setInterval(() => this.look(), INTERVAL).unref();
  }

  /** @param {number} [now] milliseconds */
  look(now = performance.now()) {
    const refused = this.#refused();
    for (const [problem, bound] of Object.entries(BOUNDS)) {
      const { count, at } = this.#warned.get(problem) ?? { count: 0, at: -Infinity };
      const times = (refused[problem] ?? 0) - count;
      if (times === 0 || now < at + QUIET_TIME) continue;
      this.#warned.set(problem, { count: count + times, at: now });
      const { title } = problems[problem];
      this.#log.warn({ problem, times }, `requests were refused: ${title} (${bound})`);
    }
  }

  close() {
    clearInterval(this.#timer);
    this.look(Infinity);
  }
}
