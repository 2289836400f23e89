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

  /**
   * @param {object} options hold, feeds, feedMemory, feedWatchers, upstream, world: see
   *     lib/operator/options.js
   * @param {object} how
   * @param {import('../torus/address-limits.js').AddressLimits} [how.limits] what each source address
   *     may have
   * @param {() => void} onWants called when the table wants something
   */
  constructor(options, { limits }, onWants) {
    const addon = loadAddon();
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
      onWants,
      limits?.native
    );
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
