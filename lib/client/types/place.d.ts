/**
 * @typedef {import('./answers.js').Resume} Resume
 */
/** A client's place in the torus: what the server has said of it, and what came and went. */
export class Place {
    /**
     * @param {URL} base
     * @param {(resume: Resume|null) => void} onResume
     * @param {unknown} resume
     */
    constructor(base: URL, onResume: (resume: Resume | null) => void, resume: unknown);
    /** The server that has the place, where that is another one. @type {URL|null} */
    away: URL | null;
    /** A capability. @type {string|null} */
    id: string | null;
    ack: number;
    ackTaken: number;
    n: number;
    holdMost: number;
    /** @type {number|undefined} seconds */
    lease: number | undefined;
    /** @type {number|undefined} bytes */
    maxSprite: number | undefined;
    /** @type {number|undefined} port for throws and leaves */
    transient: number | undefined;
    /** @returns {Resume|null} what a later client needs to take up this place */
    get resume(): Resume | null;
    /** Tells the program what to keep. */
    tell(): void;
    /**
     * @param {any} json the answer to a join
     * @returns {boolean} whether it is one
     */
    join(json: any): boolean;
    /** The place is gone; numbers of throws go on. */
    lose(): void;
    /** The server takes no hold of this client's any more: it chooses. */
    refuseHold(): void;
    /** @returns {number} seconds to ask for; Infinity: let the server choose */
    get hold(): number;
    /**
     * @param {string} path
     * @param {{transient?: boolean}} [options] whether the transient port is welcome
     * @returns {string}
     */
    url(path: string, { transient }?: {
        transient?: boolean;
    }): string;
    /**
     * @param {number} seconds of the hold; Infinity: none
     * @returns {string}
     */
    pollUrl(seconds: number): string;
    /** @returns {string|null} */
    get leaveUrl(): string | null;
    #private;
}
export type Resume = import("./answers.js").Resume;
