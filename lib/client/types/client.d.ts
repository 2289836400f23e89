/**
 * The edge by which a sprite thrown off `edge` enters.
 *
 * @param {Edge} edge
 * @returns {Edge}
 */
export function opposite(edge: Edge): Edge;
export { EDGES } from "./answers.js";
export { Feeds } from "./feeds.js";
export { feedStore } from "./store.js";
/** One desktop's place in the torus. */
export class Client {
    /**
     * @param {object} options
     * @param {string} options.base the server's URL, such as `http://127.0.0.1:8080`
     * @param {(sprite: any, entry: {from: string, seq: number}) => unknown} options.onSprite
     *     called once per sprite. `false` leaves it in the mailbox, to be called with it again after
     *     a wait, which `wake` ends. What it throws is reported as an uncaught error; the sprite
     *     counts as handed out
     * @param {(state: State, about: {why?: string}) => void} [options.onState] called on every
     *     change; `why` is a problem's name, `network`, `garbage`, `slow` or `superseded`
     * @param {(resume: Resume|null) => void} [options.onResume] called whenever what `start` would
     *     need to come back has changed; before a throw is sent and after sprites were handed out
     * @param {unknown} [options.resume] what `onResume` said last; what is none is not taken
     * @param {(url: string, init: RequestInit) => Promise<Response>} [options.fetch]
     * @param {import('./requests.js').Timers} [options.timers]
     * @param {() => number} [options.random] in [0, 1)
     * @param {Partial<import('./limits.js').Limits>} [options.limits] see limits.js
     * @throws {TypeError} when base is no URL
     */
    constructor({ base, onSprite, onState, onResume, resume, fetch, timers, random, limits }: {
        base: string;
        onSprite: (sprite: any, entry: {
            from: string;
            seq: number;
        }) => unknown;
        onState?: (state: State, about: {
            why?: string;
        }) => void;
        onResume?: (resume: Resume | null) => void;
        resume?: unknown;
        fetch?: (url: string, init: RequestInit) => Promise<Response>;
        timers?: import("./requests.js").Timers;
        random?: () => number;
        limits?: Partial<import("./limits.js").Limits>;
    });
    /** @returns {State} */
    get state(): State;
    /** @returns {string|undefined} why it is in this state, where there is something to say */
    get why(): string | undefined;
    /** @returns {string|null} this client's id: a capability, not to be shown to anyone */
    get id(): string | null;
    /** @returns {number|undefined} the largest sprite the server takes, in bytes of JSON */
    get maxSprite(): number | undefined;
    /** @returns {number|undefined} seconds without a poll after which the place is lost */
    get lease(): number | undefined;
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
    /** @returns {Resume|null} what a later client needs to take up this place */
    get resume(): Resume | null;
    /** Joins, or takes up the place of `resume`, and polls until `stop` or `leave`. */
    start(): void;
    /**
     * Stops polling, but keeps the place: the lease runs from here. Throws under way end as soon as
     * they are answered or known to be unanswered; `place` and `status` end without an answer.
     */
    stop(): void;
    /**
     * Leaves the torus: nothing more is handed out or thrown, throws on the wire get their answer,
     * what was handed out is acked, and the server is told. A join still under way is given up; what
     * it may have got ends with its lease.
     *
     * @returns {Promise<boolean>} whether the server said so, within 5 s; otherwise the place ends
     *     with its lease
     */
    leave(): Promise<boolean>;
    /**
     * Where to POST in order to leave, for `navigator.sendBeacon` in a page that goes away.
     *
     * @returns {string|null}
     */
    get leaveUrl(): string | null;
    /**
     * Something happened that makes trying now worthwhile: the machine woke up, the network came
     * back, the page is looked at again. Ends a wait the client chose itself (not one the server
     * asked for), and asks again where a parked poll may hang on a dead connection.
     */
    wake(): void;
    /**
     * Where this client is in the torus.
     *
     * @returns {Promise<{row: number, column: number, rows: number, columns: number}|null>} null when
     *     there is no answer
     */
    place(): Promise<{
        row: number;
        column: number;
        rows: number;
        columns: number;
    } | null>;
    /**
     * The live counts of this client's server: in a world the answer's `world` has what is true of all of them. Before it
     * has a place: of any server.
     *
     * @returns {Promise<Record<string, any>|null>} null when there is no answer
     */
    status(): Promise<Record<string, any> | null>;
    /**
     * A number for a throw to come. Only needed by who wants to keep it before the throw is sent.
     *
     * @returns {Ticket}
     */
    ticket(): Ticket;
    /**
     * Throws a sprite off an edge.
     *
     * @param {Edge} edge
     * @param {object|string} sprite an object, or its JSON
     * @param {object} [options]
     * @param {number} [options.patience] ms to go on trying while the server says it is busy, or
     *     while there is no contact; 0 to be told at once
     * @param {Ticket} [options.ticket] of an earlier outcome, to throw the same sprite again
     * @returns {Promise<Outcome>}
     * @throws {TypeError} on an edge that isn't one
     */
    throw(edge: Edge, sprite: object | string, { patience, ticket }?: {
        patience?: number;
        ticket?: Ticket;
    }): Promise<Outcome>;
    #private;
}
export type Resume = import("./answers.js").Resume;
export type Ticket = import("./throws.js").Ticket;
export type Outcome = import("./throws.js").Outcome;
export type State = import("./loop.js").State;
export type Edge = "left" | "right" | "up" | "down";
