/**
 * @param {OnChange} onChange
 * @param {any} value
 * @param {Change} change
 */
export function call(onChange: OnChange, value: any, change: Change): void;
/**
 * What goes with a value, or stands for one.
 *
 * @typedef {object} Change
 * @property {string} key
 * @property {string} [cursor] of the value
 * @property {any[]} [patch] what led here from the value before (RFC 6902: add, remove, replace);
 *     not there when the value came whole
 * @property {string} [problem] the name of why there is no value now; the feed is asked for again
 *
 * @typedef {(value: any, change: Change) => unknown} OnChange
 *
 * @typedef {object} Entry one feed that is watched
 * @property {string} cursor NO_CURSOR without a value, or where the whole is to be asked for
 * @property {any} value
 * @property {string|undefined} problem as it was told
 * @property {number} misses problems in a row
 * @property {number} due not to be asked for before
 * @property {Set<OnChange>} watches
 */
/** The feeds that are watched, and what is held of each. */
export class FeedTable {
    /** @param {import('./waits.js').Waits} waits */
    constructor(waits: import("./waits.js").Waits);
    /** @returns {number} how many feeds are watched */
    get size(): number;
    /**
     * @param {string} key
     * @returns {Entry|undefined}
     */
    find(key: string): Entry | undefined;
    /**
     * @param {string} key isKey
     * @param {OnChange} onChange not yet one of this feed's
     * @param {unknown} kept what an earlier program held; what is none is not taken
     * @returns {Entry}
     */
    add(key: string, onChange: OnChange, kept: unknown): Entry;
    /**
     * @param {string} key
     * @param {OnChange} onChange
     */
    remove(key: string, onChange: OnChange): void;
    /** Nobody watches anything any more. */
    clear(): void;
    /** Asks for every value whole, and at once. */
    forgetCursors(): void;
    /** Feeds with a problem need not wait any longer. */
    hurry(): void;
    /**
     * @returns {{feeds: Record<string, string>, count: number, next: number}} what to ask for now, with
     *     the cursors held; and when the next of the others is due, Infinity where there is none
     */
    wish(): {
        feeds: Record<string, string>;
        count: number;
        next: number;
    };
    /**
     * Takes an answer, and tells the program what is new.
     *
     * @param {import('./feed-items.js').Item[]} items
     * @param {Record<string, string>} asked the cursors it was asked with
     * @returns {boolean} whether there was anything in it
     */
    take(items: import("./feed-items.js").Item[], asked: Record<string, string>): boolean;
    #private;
}
/**
 * What goes with a value, or stands for one.
 */
export type Change = {
    key: string;
    /**
     * of the value
     */
    cursor?: string;
    /**
     * what led here from the value before (RFC 6902: add, remove, replace);
     * not there when the value came whole
     */
    patch?: any[];
    /**
     * the name of why there is no value now; the feed is asked for again
     */
    problem?: string;
};
/**
 * What goes with a value, or stands for one.
 */
export type OnChange = (value: any, change: Change) => unknown;
/**
 * one feed that is watched
 */
export type Entry = {
    /**
     * NO_CURSOR without a value, or where the whole is to be asked for
     */
    cursor: string;
    value: any;
    /**
     * as it was told
     */
    problem: string | undefined;
    /**
     * problems in a row
     */
    misses: number;
    /**
     * not to be asked for before
     */
    due: number;
    watches: Set<OnChange>;
};
