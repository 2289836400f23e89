/**
 * The requests of a place, wherever that is: in a world of many servers another one than the program's may have it, and
 * says so by 421 `misdirected` with `Location`. Then this asks there, at once, and from then on.
 *
 *     own server ──421──▶ the one it names ──no answer from there──▶ own server
 *
 * Only that far: after `movesMost` such answers in a row, with no other one between, the place counts as forgotten.
 */
export class Moves {
    /**
     * @param {import('./requests.js').Requests} requests
     * @param {import('./place.js').Place} place
     * @param {{movesMost: number}} limits
     */
    constructor(requests: import("./requests.js").Requests, place: import("./place.js").Place, limits: {
        movesMost: number;
    });
    /**
     * As `Requests.ask`.
     *
     * @param {string} url
     * @param {RequestInit} init
     * @param {number} [most] ms, for each server that is asked
     * @param {AbortController} [controller]
     * @returns {Promise<import('./answers.js').Answer>}
     * @throws {Failure}
     */
    ask(url: string, init: RequestInit, most?: number, controller?: AbortController): Promise<import("./answers.js").Answer>;
    #private;
}
