/**
 * Watching feeds: the documents of an application, each under its key. No DOM and no dependency.
 *
 *     import { Feeds } from 'sprites-server/client';
 *
 *     const feeds = new Feeds({ base: 'http://127.0.0.1:8080' });
 *     const scores = feeds.watch('scores', (value, { problem }) => console.log(value ?? problem));
 *     // …
 *     scores.close();
 *
 * README.md beside this file says how it behaves, and test/vectors/feeds.json holds it to that.
 *
 *     Feeds ─▶ FeedLoop   one poll for all ─▶ Requests ─▶ fetch
 *       └────▶ FeedTable  what is held of each feed, patches applied ─▶ onChange
 *
 * Rejected: an event stream. It takes a connection for each feed of the six that a browser has, and
 * what a proxy keeps back it keeps back for good.
 */
/**
 * @typedef {import('./feed-table.js').Change} Change
 * @typedef {import('./feed-table.js').OnChange} OnChange
 * @typedef {import('./feed-loop.js').FeedsState} FeedsState
 *
 * @typedef {object} Kept what a program may keep of a feed, to go on with in another run: plain JSON
 * @property {string} cursor
 * @property {any} value
 *
 * @typedef {object} Watch
 * @property {string} key
 * @property {Kept|null} held the newest value and its cursor; null as long as there is none
 * @property {() => void} close ends it: `onChange` is not called any more
 */
/** All feeds of one server that a program watches, by one poll at a time. */
export class Feeds {
    /**
     * @param {object} options
     * @param {string} options.base the server's URL, such as `http://127.0.0.1:8080`
     * @param {(state: FeedsState, about: {why?: string}) => void} [options.onState] called on every
     *     change; `why` is a problem's name, `network`, `garbage` or `slow`
     * @param {(url: string, init: RequestInit) => Promise<Response>} [options.fetch]
     * @param {import('./requests.js').Timers} [options.timers]
     * @param {() => number} [options.random] in [0, 1)
     * @param {Partial<import('./limits.js').Limits>} [options.limits] see limits.js
     * @throws {TypeError} when base is no URL
     */
    constructor({ base, onState, fetch, timers, random, limits }: {
        base: string;
        onState?: (state: FeedsState, about: {
            why?: string;
        }) => void;
        fetch?: (url: string, init: RequestInit) => Promise<Response>;
        timers?: import("./requests.js").Timers;
        random?: () => number;
        limits?: Partial<import("./limits.js").Limits>;
    });
    /** @returns {FeedsState} */
    get state(): FeedsState;
    /** @returns {string|undefined} why it is in this state, where there is something to say */
    get why(): string | undefined;
    /**
     * The wait until the client tries again.
     *
     * @returns {{ms: number, asked: boolean}|null} `asked`: the server has asked for it, and `wake`
     *     does not end it. Null where the client does not wait
     */
    get nextTry(): {
        ms: number;
        asked: boolean;
    } | null;
    /**
     * Watches a feed; one that is not yet published as well: its first value comes as any other.
     *
     * @param {string} key of the feed
     * @param {OnChange} onChange called with each new value, which is frozen, since the next patch
     *     builds on it; and with undefined and a `problem` where there is no value: the server's word
     *     (`unknown-feed`, `upstream-failed` …), or `bad-key` or `too-many-keys` (32 for one `Feeds`)
     *     of the client's own, which end the watch. What it throws is reported as an uncaught error
     * @param {object} [options]
     * @param {Kept|unknown} [options.kept] what an earlier run held, to hear only of what is newer;
     *     its value is frozen. What is none is not taken
     * @returns {Watch}
     */
    watch(key: string, onChange: OnChange, { kept }?: {
        kept?: Kept | unknown;
    }): Watch;
    /**
     * Something happened that makes trying now worthwhile: the machine woke up, the network came
     * back, the page is looked at again. Ends a wait the client chose itself (not one the server
     * asked for), and asks again where a parked poll may hang on a dead connection.
     */
    wake(): void;
    /** Ends every watch. A later `watch` begins anew. */
    close(): void;
    #private;
}
export type Change = import("./feed-table.js").Change;
export type OnChange = import("./feed-table.js").OnChange;
export type FeedsState = import("./feed-loop.js").FeedsState;
/**
 * what a program may keep of a feed, to go on with in another run: plain JSON
 */
export type Kept = {
    cursor: string;
    value: any;
};
export type Watch = {
    key: string;
    /**
     * the newest value and its cursor; null as long as there is none
     */
    held: Kept | null;
    /**
     * ends it: `onChange` is not called any more
     */
    close: () => void;
};
