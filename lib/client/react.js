import { useMemo, useSyncExternalStore } from 'react';

import { Feeds } from './feeds.js';
import { feedStore } from './store.js';

/**
 * A feed in a React component (18 or later).
 *
 *     import { useFeed } from 'sprites-server/react';
 *
 *     function Score() {
 *       const { value, problem } = useFeed('scores', { base: 'http://127.0.0.1:8080' });
 *       return <p>{value ? value.home : problem}</p>;
 *     }
 */

/** Feeds by server: all components share one poll. @type {Map<string, Feeds>} */
const servers = new Map();

function feedsOf(base) {
  if (!servers.has(base)) servers.set(base, new Feeds({ base }));
  return /** @type {Feeds} */ (servers.get(base));
}

/**
 * Returns the newest value of a feed. Each new value renders the component again.
 *
 * @param {string} key of the feed
 * @param {{base?: string, feeds?: Feeds} | null} [options] the server's URL, by default the origin of the page; or the
 *     program's own `Feeds`
 * @returns {import('./store.js').Snapshot} without a value before the first one, and in rendering on a server
 * @throws {TypeError} when base is no URL
 */
export function useFeed(key, options) {
  const { base = globalThis.location?.origin, feeds = feedsOf(base) } = options ?? {};
  const store = useMemo(() => feedStore(feeds, key), [feeds, key]);
  return useSyncExternalStore(store.subscribe, store.getSnapshot, store.getSnapshot);
}
