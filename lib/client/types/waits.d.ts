/**
 * @typedef {object} Wait
 * @property {number} ms
 * @property {boolean} [asked] the server has asked for it
 * @property {boolean} [full] the program has no room: there is no doubt about contact
 * @property {boolean} [idle] there is nothing to send yet
 */
/** How long a client waits, and what ends a wait. */
export class Waits {
    /**
     * @param {import('./requests.js').Timers} timers
     * @param {() => number} random in [0, 1)
     * @param {import('./limits.js').Limits} limits
     */
    constructor(timers: import("./requests.js").Timers, random: () => number, limits: import("./limits.js").Limits);
    /** The wait under way. @type {(Wait & {until: number, end: () => void})|null} */
    nap: (Wait & {
        until: number;
        end: () => void;
    }) | null;
    /** How many clients the server has, where that is known. @type {number|null} */
    clients: number | null;
    /** @returns {number} ms */
    now(): number;
    /**
     * Full jitter: a wait anywhere between zero and an upper end that doubles with every failure.
     *
     * @param {number} failures in a row, from 1
     * @returns {number} ms
     */
    backoff(failures: number): number;
    /**
     * Retry-After is the same whole second for everybody: adds up to half of it.
     *
     * @param {number} ms
     * @returns {number} ms
     */
    spread(ms: number): number;
    /**
     * @param {number} failures in a row, from 1
     * @param {number} [retryAfter] ms, where the server says so
     * @returns {Wait} after a failure
     */
    after(failures: number, retryAfter?: number): Wait;
    /** Waits, until it is over or ended. @param {Wait} wait */
    doze(wait: Wait): Promise<void>;
    /** Ends the wait under way, but none that the server has asked for. */
    endNap(): void;
    /** @returns {{ms: number, asked: boolean}|null} the wait under way */
    get nextTry(): {
        ms: number;
        asked: boolean;
    } | null;
    /** Something has changed: whoever waits for it looks again. */
    changed(): void;
    /**
     * Waits for a change.
     *
     * @param {() => boolean} isTrue
     * @param {number} end by the clock of `now`
     * @param {() => boolean} isOver whether to give up before
     * @returns {Promise<boolean>} whether it came true
     */
    until(isTrue: () => boolean, end: number, isOver: () => boolean): Promise<boolean>;
    #private;
}
export type Wait = {
    ms: number;
    /**
     * the server has asked for it
     */
    asked?: boolean;
    /**
     * the program has no room: there is no doubt about contact
     */
    full?: boolean;
    /**
     * there is nothing to send yet
     */
    idle?: boolean;
};
