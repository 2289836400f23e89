import { callBack } from './call-back.js';

/**
 * A feed as a store: what frameworks subscribe to, and read.
 *
 * @typedef {object} Snapshot what a watch was told last; a new object with each change
 * @property {any} value undefined before the first one, and with a problem
 * @property {string} [cursor] of the value
 * @property {string} [problem] why there is no value: see `Feeds.watch`
 *
 * @typedef {object} FeedStore
 * @property {(listener: () => void) => () => void} subscribe has `listener` called after each change; what it returns ends
 *     that. The feed is watched as long as there is a listener, or until `close` of its `Feeds`
 * @property {() => Snapshot} getSnapshot
 */

/** @type {Snapshot} */
const NOTHING = Object.freeze({ value: undefined });

/**
 * @param {import('./feeds.js').Feeds} feeds
 * @param {string} key of the feed
 * @returns {FeedStore} in the shape of React's useSyncExternalStore
 */
export function feedStore(feeds, key) {
  const listeners = new Set();
  let snapshot = NOTHING;
  let watch;
  const take = (value, { cursor, problem }) => {
    snapshot = Object.freeze({ value, cursor, problem });
    for (const tell of [...listeners]) if (listeners.has(tell)) tell();
  };
  return {
    subscribe(listener) {
      // A function of its own: the same one may subscribe twice.
      const tell = () => callBack(listener);
      listeners.add(tell);
      watch ??= feeds.watch(key, take, { kept: snapshot });
      return () => {
        listeners.delete(tell);
        // A component that leaves and comes back at once goes on with the same watch.
        queueMicrotask(() => {
          if (listeners.size > 0) return;
          watch?.close();
          watch = undefined;
        });
      };
    },
    getSnapshot: () => snapshot
  };
}
