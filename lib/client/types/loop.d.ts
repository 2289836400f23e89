/**
 * @typedef {'left'|'joining'|'online'|'offline'|'superseded'} State
 *
 * @typedef {import('./waits.js').Wait} Wait
 *
 * @typedef {(sprite: any, entry: {from: string, seq: number}) => unknown} OnSprite
 */
/**
 * What a client does all the time: one request after the other, a join, a poll or, in doubt
 * whether there is contact, a look at its place.
 */
export class Loop {
    /**
     * @param {import('./place.js').Place} place
     * @param {import('./moves.js').Moves} requests
     * @param {import('./waits.js').Waits} waits
     * @param {import('./limits.js').Limits} limits
     * @param {OnSprite} onSprite
     * @param {(state: State, about: {why?: string}) => void} onState
     */
    constructor(place: import("./place.js").Place, requests: import("./moves.js").Moves, waits: import("./waits.js").Waits, limits: import("./limits.js").Limits, onSprite: OnSprite, onState: (state: State, about: {
        why?: string;
    }) => void);
    /** Counts starts and stops: what an older run still hears is not for it. */
    run: number;
    /** @type {State} */
    state: State;
    /** @type {string|undefined} why it is in this state, where there is something to say */
    why: string | undefined;
    /** @returns {boolean} whether a poll is parked */
    get polls(): boolean;
    /** Goes on until `halt`. */
    start(): Promise<void>;
    /** Ends it, and what it waits for. @param {{keepPoll?: boolean}} [options] a poll may go on */
    halt({ keepPoll }?: {
        keepPoll?: boolean;
    }): void;
    /** Tries now, and doubts what it can't be sure of. See `Client.wake`. */
    wake(): void;
    /**
     * The server no longer knows this place: join anew. What was thrown from it is its business.
     *
     * @param {string|null} id the place it is said of
     * @param {string} why
     */
    forget(id: string | null, why: string): void;
    /** Forgets the place. */
    lose(): void;
    /**
     * @param {State} state
     * @param {string} [why]
     */
    become(state: State, why?: string): void;
    #private;
}
export type State = "left" | "joining" | "online" | "offline" | "superseded";
export type Wait = import("./waits.js").Wait;
export type OnSprite = (sprite: any, entry: {
    from: string;
    seq: number;
}) => unknown;
