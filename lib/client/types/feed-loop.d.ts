/**
 * @typedef {'idle'|'asking'|'online'|'offline'} FeedsState
 */
/** One poll after the other for all feeds that are watched, as long as there are any. */
export class FeedLoop {
    /**
     * @param {string} url of POST /feeds
     * @param {import('./feed-table.js').FeedTable} table
     * @param {import('./requests.js').Requests} requests
     * @param {import('./waits.js').Waits} waits
     * @param {import('./limits.js').Limits} limits
     * @param {(state: FeedsState, about: {why?: string}) => void} onState
     */
    constructor(url: string, table: import("./feed-table.js").FeedTable, requests: import("./requests.js").Requests, waits: import("./waits.js").Waits, limits: import("./limits.js").Limits, onState: (state: FeedsState, about: {
        why?: string;
    }) => void);
    /** @type {FeedsState} */
    state: FeedsState;
    /** @type {string|undefined} why it is in this state, where there is something to say */
    why: string | undefined;
    /** More is watched than before, or less. */
    changed(): void | Promise<void>;
    /** Tries now, and doubts what it can't be sure of. See `Feeds.wake`. */
    wake(): void;
    #private;
}
export type FeedsState = "idle" | "asking" | "online" | "offline";
