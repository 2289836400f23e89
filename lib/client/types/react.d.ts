/**
 * The newest value of a feed. The component is rendered again with each one.
 *
 * @param {string} key of the feed
 * @param {object} [options]
 * @param {string} [options.base] the server's URL; by default the origin of the page
 * @param {Feeds} [options.feeds] in place of `base`: one of the program's own
 * @returns {import('./store.js').Snapshot} on a server, and before the first value, without one
 * @throws {TypeError} when base is no URL
 */
export function useFeed(key: string, { base, feeds }?: {
    base?: string;
    feeds?: Feeds;
}): import("./store.js").Snapshot;
import { Feeds } from './feeds.js';
