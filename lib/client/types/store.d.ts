/**
 * @param {import('./feeds.js').Feeds} feeds
 * @param {string} key of the feed
 * @returns {FeedStore} in the shape of React's useSyncExternalStore
 */
export function feedStore(feeds: import("./feeds.js").Feeds, key: string): FeedStore;
/**
 * what a watch was told last; a new object with each change
 */
export type Snapshot = {
    /**
     * undefined before the first one, and with a problem
     */
    value: any;
    /**
     * of the value
     */
    cursor?: string;
    /**
     * why there is no value: see `Feeds.watch`
     */
    problem?: string;
};
/**
 * A feed as a store: what frameworks subscribe to, and read.
 */
export type FeedStore = {
    /**
     * has `listener` called after each change; what it returns ends
     * that. The feed is watched as long as there is a listener
     */
    subscribe: (listener: () => void) => () => void;
    getSnapshot: () => Snapshot;
};
