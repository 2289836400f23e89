/**
 * What there is of one feed: a value, a patch to the one of `from`, a problem's name, or nothing new.
 *
 * @typedef {object} Item
 * @property {string} feed the key
 * @property {string} [cursor]
 * @property {any} [value]
 * @property {string} [from] cursor
 * @property {any[]} [patch]
 * @property {string} [problem]
 */
/**
 * @param {unknown} key
 * @returns {boolean} whether a feed may have it: no segment empty, none that is "." or ".."
 */
export function isKey(key: unknown): boolean;
/**
 * @param {any} json
 * @returns {Item[]|null} null for what is no answer
 */
export function readItems(json: any): Item[] | null;
/** The cursor of who has no value: the server answers when there is one. */
export const NO_CURSOR: "none";
export function isCursor(cursor: unknown): boolean;
/**
 * What there is of one feed: a value, a patch to the one of `from`, a problem's name, or nothing new.
 */
export type Item = {
    /**
     * the key
     */
    feed: string;
    cursor?: string;
    value?: any;
    /**
     * cursor
     */
    from?: string;
    patch?: any[];
    problem?: string;
};
