/** How long a client waits, and what ends a wait. */
export class Waits {
    /**
     * @param {import('./requests.js').Timers} timers
     * @param {() => number} random in [0, 1)
     * @param {import('./limits.js').Limits} limits
     */
    constructor(timers: import("./requests.js").Timers, random: () => number, limits: import("./limits.js").Limits);
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
     * A wait that can be ended early.
     *
     * @param {number} ms
     * @returns {{until: number, over: Promise<void>, end: () => void}}
     */
    nap(ms: number): {
        until: number;
        over: Promise<void>;
        end: () => void;
    };
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
