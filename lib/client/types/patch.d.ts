/**
 * Freezes what isn't frozen yet, down to the last member.
 *
 * @template T
 * @param {T} value as JSON.parse gives it; what is frozen in it is frozen whole
 * @param {number} [depth] how many levels it may have
 * @returns {T}
 * @throws {ValueError} when it nests deeper
 */
export function freeze<T>(value: T, depth?: number): T;
/**
 * Applies a patch.
 *
 * @param {any} value stays as it is
 * @param {any} patch the operations
 * @returns {any} the value after them, frozen; its unchanged parts are those of `value`
 * @throws {ValueError} when the patch is none, or does not fit the value
 */
export function applyPatch(value: any, patch: any): any;
/** A value that no feed has, or a patch that doesn't fit the value. */
export class ValueError extends Error {
}
