/**
 * The number of one throw. Plain JSON: a program that keeps it can ask again after a restart.
 *
 * @typedef {object} Ticket
 * @property {string|null} id the place it was thrown from
 * @property {number} n
 * @property {boolean} tried whether a request with it may have reached the server unanswered
 */
/**
 * What became of a throw.
 *
 * @typedef {object} Outcome
 * @property {boolean|null} thrown true: the server is answerable for the sprite; false: it is still
 *     yours; null: nobody knows
 * @property {string} state thrown: `delivered` to a parked poll, `queued` in the neighbor's
 *     mailbox, `duplicate` thrown by an earlier attempt. Yours: `busy` try later, `refused` it
 *     won't be taken as it is, `offline` no contact. Not known: `unanswered` throw it again with
 *     the same ticket, `forgotten` the server has forgotten this place, so no later answer will
 *     tell
 * @property {string} [problem] the problem's name, such as `neighbor-busy`
 * @property {number} [retryAfter] ms after which another throw has a chance
 * @property {Ticket} ticket
 */
/**
 * What the throws need of their client.
 *
 * @typedef {object} Sender
 * @property {() => string|null} id
 * @property {() => string} state the client's; `left` also while it is leaving
 * @property {() => number|undefined} maxSprite
 * @property {() => number|undefined} nextTry ms until the client tries again, where it waits
 * @property {(path: string, body: string) => Promise<import('./answers.js').Answer>} post
 * @property {(id: string, why: string) => void} forget the server does not know this place
 * @property {() => void} doubt a request got no answer
 * @property {(isTrue: () => boolean, end: number) => Promise<boolean>} until waits for a change
 * @property {() => void} changed lets who waits look again
 * @property {(failures: number) => number} backoff ms
 * @property {(ms: number) => number} spread what the server asked for, with jitter
 * @property {() => number} now ms
 */
/** The throws of one client: each ends with an outcome, however the network is. */
export class Throws {
    /**
     * @param {Sender} sender
     * @param {import('./limits.js').Limits} limits
     */
    constructor(sender: Sender, limits: import("./limits.js").Limits);
    /** @returns {number} how many wait for their answer */
    get onWire(): number;
    /**
     * Throws a sprite, and throws it again until there is an outcome.
     *
     * @param {string} edge
     * @param {string} body the sprite's JSON
     * @param {number} patience ms to wait for contact, or until the server is no longer busy
     * @param {Ticket} ticket
     * @returns {Promise<Outcome>}
     * @throws {TypeError} on an edge that isn't one
     */
    throw(edge: string, body: string, patience: number, ticket: Ticket): Promise<Outcome>;
    #private;
}
/**
 * The number of one throw. Plain JSON: a program that keeps it can ask again after a restart.
 */
export type Ticket = {
    /**
     * the place it was thrown from
     */
    id: string | null;
    n: number;
    /**
     * whether a request with it may have reached the server unanswered
     */
    tried: boolean;
};
/**
 * What became of a throw.
 */
export type Outcome = {
    /**
     * true: the server is answerable for the sprite; false: it is still
     * yours; null: nobody knows
     */
    thrown: boolean | null;
    /**
     * thrown: `delivered` to a parked poll, `queued` in the neighbor's
     * mailbox, `duplicate` thrown by an earlier attempt. Yours: `busy` try later, `refused` it
     * won't be taken as it is, `offline` no contact. Not known: `unanswered` throw it again with
     * the same ticket, `forgotten` the server has forgotten this place, so no later answer will
     * tell
     */
    state: string;
    /**
     * the problem's name, such as `neighbor-busy`
     */
    problem?: string;
    /**
     * ms after which another throw has a chance
     */
    retryAfter?: number;
    ticket: Ticket;
};
/**
 * What the throws need of their client.
 */
export type Sender = {
    id: () => string | null;
    /**
     * the client's; `left` also while it is leaving
     */
    state: () => string;
    maxSprite: () => number | undefined;
    /**
     * ms until the client tries again, where it waits
     */
    nextTry: () => number | undefined;
    post: (path: string, body: string) => Promise<import("./answers.js").Answer>;
    /**
     * the server does not know this place
     */
    forget: (id: string, why: string) => void;
    /**
     * a request got no answer
     */
    doubt: () => void;
    /**
     * waits for a change
     */
    until: (isTrue: () => boolean, end: number) => Promise<boolean>;
    /**
     * lets who waits look again
     */
    changed: () => void;
    /**
     * ms
     */
    backoff: (failures: number) => number;
    /**
     * what the server asked for, with jitter
     */
    spread: (ms: number) => number;
    /**
     * ms
     */
    now: () => number;
};
