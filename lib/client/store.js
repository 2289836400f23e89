import { callBack } from './call-back.js';

/**
 * A feed as a store, which frameworks subscribe to and read.
 *
 * @typedef {object} Snapshot the last state of a watch; a new object with each change
 * @property {any} value undefined before the first value, and with a problem
 * @property {string} [cursor] of the value
 * @property {string} [problem] why there is no value: see `Feeds.watch`
 *
 * @typedef {object} FeedStore
 * @property {(listener: () => void) => () => void} subscribe calls `listener` after each change, until the returned
 *     function is called. The feed is watched while there is a listener, at most until `close` of its `Feeds`
 * @property {() => Snapshot} getSnapshot
 */

/** @type {Snapshot} */
const NO_VALUE = Object.freeze({ value: undefined });

/**
 * @param {import('./feeds.js').Feeds} feeds
 * @param {string} key of the feed
 * @returns {FeedStore} in the shape of React's useSyncExternalStore
 */
export function feedStore(feeds, key) {
  const listeners = new Set();
  let snapshot = NO_VALUE;
  let watch;
  const update = (value, { cursor, problem }) => {
    snapshot = Object.freeze({ value, cursor, problem });
    for (const notify of [...listeners]) if (listeners.has(notify)) notify();
  };
  return {
    subscribe(listener) {
      // A new function, since the program may subscribe the same listener twice.
      const notify = () => callBack(listener);
      listeners.add(notify);
      watch ??= feeds.watch(key, update, { kept: snapshot });
      return () => {
        listeners.delete(notify);
        // A component that unsubscribes and subscribes again at once keeps the same watch.
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
