import { FeedTable } from './table.js';

/**
 * The feeds for the routes of a worker: those that are watched there are replicas of the main
 * process's (native/relay/feed_replica.h), and whoever publishes is answered by the main process.
 */
export class RemoteFeeds extends FeedTable {
  #ask;
  #flush = () => {};

  /**
   * @param {object} options see lib/operator/options.js
   * @param {(what: string, ...rest: unknown[]) => Promise<object>} ask calls a function of the main
   *     process's feeds
   */
  constructor(options, ask) {
    super(options, { replica: true }, () => this.#flush());
    this.#ask = ask;
  }

  /** @param {() => void} flush sends what is in the relay: the front door's */
  flushBy(flush) {
    this.#flush = flush;
  }

  /** As Feeds#publish. */
  publish(key, kind, body) {
    return this.#ask('publish', key, kind, body);
  }

  /** As Feeds#remove. */
  remove(key) {
    return this.#ask('remove', key);
  }
}
