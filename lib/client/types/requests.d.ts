/** @returns {Timers} the program's own */
export function globalTimers(): Timers;
/**
 * For a caller to whom no answer is an answer.
 *
 * @param {unknown} error
 * @returns {Failure}
 * @throws what is no failure of the network, but a mistake of this program
 */
export function ignoreFailure(error: unknown): Failure;
/** Requests that end: each with a whole answer in time, or with a Failure. */
/** No whole answer: `reason` is `network`, `slow` or `garbage`. */
export class Failure extends Error {
    /**
     * @param {string} reason
     * @param {ErrorOptions} [options]
     */
    constructor(reason: string, options?: ErrorOptions);
    reason: string;
}
export class Requests {
    /**
     * @param {typeof globalThis.fetch} fetch
     * @param {Timers} timers
     * @param {{requestTimeout: number, answerMost: number}} limits
     */
    constructor(fetch: typeof globalThis.fetch, timers: Timers, limits: {
        requestTimeout: number;
        answerMost: number;
    });
    /**
     * @param {string} url
     * @param {RequestInit} init
     * @param {number} [most] ms until it has failed
     * @param {AbortController} [controller] whose abort ends it as a failure
     * @returns {Promise<import('./answers.js').Answer>}
     * @throws {Failure} when there is no whole answer in time
     */
    ask(url: string, init: RequestInit, most?: number, controller?: AbortController): Promise<import("./answers.js").Answer>;
    #private;
}
/**
 * What a client needs of the timers, so that a test can give it a clock of its own.
 */
export type Timers = {
    setTimeout: (callback: () => void, ms: number) => any;
    clearTimeout: (timer: any) => void;
    /**
     * ms
     */
    now: () => number;
};
