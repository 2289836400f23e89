import { loadAddon } from '../base/addon.js';

/**
 * The table of feeds as JavaScript sees it: the table itself is native (native/feeds/feeds.h).
 */
export class FeedTable {
  /** The native table, for the native front door. */
  native;
  /** The names of its outcomes, in their order. @type {string[]} */
  outcomes;
  /** Whether other servers publish the same feeds. */
  inWorld;
  #lastToken = 0;
  #tokens;
  /** Watchers in JavaScript, which need no connection: token → the function that takes the answer. */
  #watchers = new Map();

  /**
   * @param {object} options hold, feeds, feedMemory, feedWatchers, upstream, world: see
   *     lib/operator/options.js
   * @param {object} how
   * @param {import('../torus/address-limits.js').AddressLimits} [how.limits] what each source address
   *     may have
   * @param {number} [how.tokens] of watchers, which begin again behind so many
   * @param {() => void} onWants called when the table wants something
   */
  constructor(options, { limits, tokens = 2 ** 32 }, onWants) {
    const addon = loadAddon();
    this.#tokens = tokens;
    this.outcomes = addon.outcomes;
    this.inWorld = (options.world ?? 'none') !== 'none';
    this.native = new addon.Feeds(
      {
        hold: options.hold,
        feeds: options.feeds,
        memory: options.feedMemory,
        watchers: options.feedWatchers,
        upstream: options.upstream !== 'none',
        shared: this.inWorld
      },
      (token, answer) => this.#answer(token, answer),
      onWants,
      limits?.native
    );
  }

  #answer(token, { outcome, ...answer }) {
    const watcher = this.#watchers.get(token);
    if (!answer.stream || answer.ends) this.#watchers.delete(token);
    return watcher({ ...answer, outcome: this.outcomes[outcome] });
  }

  /**
   * Answers at once, or parks.
   *
   * @param {object} wish
   * @param {string[]} wish.keys each isKey
   * @param {string[]} wish.afters for each an isCursor, or ''
   * @param {number} [wish.hold] seconds; by default the server's
   * @param {boolean} [wish.delta]
   * @param {boolean} [wish.gzip]
   * @param {boolean} [wish.stream] events without an end, of one key
   * @param {boolean} [wish.many] the answer is {"items":[…]}
   * @param {string} [wish.from] the client's address
   * @param {(answer: {outcome: string, pieces: Buffer[], length: number, gzip: boolean,
   *     stream: boolean, ends: boolean, cursor: string, retry: number}) => boolean} answer called
   *     once, or for every event, perhaps before this returns; never when the outcome is not `ok`.
   *     For a stream it returns whether it can take more: if not, `ready` is to be called
   * @returns {{outcome: string, cancel: () => void, ready: () => void}} `ok` or the name of a
   *     problem; `cancel` takes it back when its connection is gone
   */
  watch(
    {
      keys,
      afters,
      hold = -1,
      delta = false,
      gzip = false,
      stream = false,
      many = false,
      from = ''
    },
    answer
  ) {
    // An event stream may keep its token for longer than all others last.
    do this.#lastToken = (this.#lastToken + 1) % this.#tokens;
    while (this.#watchers.has(this.#lastToken));
    const token = this.#lastToken;
    this.#watchers.set(token, answer);
    const [outcome, watcher] = this.native.watch(
      { keys, afters, hold, delta, gzip, stream, many, from },
      token
    );
    if (outcome !== 0) this.#watchers.delete(token);
    return {
      outcome: this.outcomes[outcome],
      cancel: () => {
        if (this.#watchers.delete(token)) this.native.drop(watcher);
      },
      ready: () => {
        if (this.#watchers.has(token)) this.native.ready(watcher);
      }
    };
  }

  /** @returns {object} the live counts: see /status in README */
  status() {
    return this.native.status();
  }

  /** Begins the end: see Feeds::drain. */
  drain(window) {
    this.native.drain(window);
  }

  /** Stops the table's clock, so that the process can end. */
  close() {
    this.native.close();
  }
}
