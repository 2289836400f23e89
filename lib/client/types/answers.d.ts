/**
 * A whole answer of the server.
 *
 * @typedef {object} Answer
 * @property {number} status
 * @property {any} [json] undefined where it was no JSON
 * @property {number} [retryAfter] ms
 * @property {string|null} [location] where else to ask
 */
/**
 * What is needed to come back to a place, after a reload for example. Keep it where only this
 * client reads it, since the id is a capability. Plain JSON.
 *
 * @typedef {object} Resume
 * @property {string} id the place
 * @property {number} ack the last sequence number handed out
 * @property {number} n the last number given to a throw
 * @property {number} [hold] seconds
 * @property {number} [lease] seconds
 * @property {number} [maxSprite] bytes
 * @property {number} [transient] port
 */
/**
 * @param {unknown} value
 * @returns {value is Record<string, any>}
 */
export function isObject(value: unknown): value is Record<string, any>;
/**
 * @param {unknown} value
 * @returns {number|undefined} undefined for what is no number above 0
 */
export function positive(value: unknown): number | undefined;
/**
 * @param {Answer} answer
 * @returns {string|undefined} the name in `urn:sprites:NAME`
 */
export function problemOf({ status, json }: Answer): string | undefined;
/**
 * @param {unknown} value
 * @returns {Resume|null} null when it isn't one: what comes from a store may be anything
 */
export function readResume(value: unknown): Resume | null;
/**
 * @param {any} json
 * @returns {Array<{seq: number, from: string, sprite: object}>|null} null for what is no answer
 */
export function readEntries(json: any): Array<{
    seq: number;
    from: string;
    sprite: object;
}> | null;
/**
 * @param {Answer} answer
 * @returns {{row: number, column: number, rows: number, columns: number}|null} null for what is
 *     no answer
 */
export function readPlace({ status, json }: Answer): {
    row: number;
    column: number;
    rows: number;
    columns: number;
} | null;
/** What the server's answers say. They may be anything: a proxy may have written them. */
/** The edges of a desktop. */
export const EDGES: readonly string[];
/**
 * A whole answer of the server.
 */
export type Answer = {
    status: number;
    /**
     * undefined where it was no JSON
     */
    json?: any;
    /**
     * ms
     */
    retryAfter?: number;
    /**
     * where else to ask
     */
    location?: string | null;
};
/**
 * What is needed to come back to a place, after a reload for example. Keep it where only this
 * client reads it, since the id is a capability. Plain JSON.
 */
export type Resume = {
    /**
     * the place
     */
    id: string;
    /**
     * the last sequence number handed out
     */
    ack: number;
    /**
     * the last number given to a throw
     */
    n: number;
    /**
     * seconds
     */
    hold?: number;
    /**
     * seconds
     */
    lease?: number;
    /**
     * bytes
     */
    maxSprite?: number;
    /**
     * port
     */
    transient?: number;
};
