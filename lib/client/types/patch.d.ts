/**
 * @param {unknown} value as JSON.parse gives it
 * @param {number} depth how many levels it may have
 * @throws {ValueError} when it nests deeper
 */
export function checkDepth(value: unknown, depth: number): void;
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
 * Sets an object's own member, whatever it is called: assigning to "__proto__" would set the prototype instead.
 *
 * @param {any} object
 * @param {string} name
 * @param {unknown} value
 */
export function setMember(object: any, name: string, value: unknown): void;
/**
 * @param {any} a a value as JSON.parse gives it
 * @param {any} b another one, which nests at most DEPTH deep
 * @returns {boolean} whether they are the same value
 */
export function equal(a: any, b: any): boolean;
/**
 * Applies a patch.
 *
 * @param {any} value stays as it is
 * @param {any} patch the operations
 * @param {{room?: number, known?: Iterable<string>}} [how] `room`: how many characters of JSON `copy` may copy in
 *     all, by default none; `known`: the operations there are, by default all
 * @returns {any} the value after them; its unchanged parts are those of `value`, and of the operations
 * @throws {ValueError} when the patch is none; `operation` says which of them
 * @throws {ConflictError} when it does not fit the value
 * @throws {RoomError} when it copies too much
 */
export function applyOperations(value: any, patch: any, { room, known }?: {
    room?: number;
    known?: Iterable<string>;
}): any;
/**
 * Applies a patch that a server has sent.
 *
 * @param {any} value stays as it is
 * @param {any} patch the operations: `add`, `remove` and `replace`
 * @returns {any} the value after them, frozen; its unchanged parts are those of `value`
 * @throws {ValueError} when the patch is none, or does not fit the value
 */
export function applyPatch(value: any, patch: any): any;
/**
 * JSON Patch (RFC 6902) by JSON Pointer (RFC 6901), for the client and for the server: test/vectors/feeds.json
 * holds them and the C++ client to the same. A value is never changed. The way to what is new is copied, once in a
 * patch; all else is shared between the versions.
 *
 * A pointer leads to what a value has of its own and to nothing else: no member that objects inherit, no character of
 * a string, no element but by the number that JavaScript would write. Time is bounded by the sizes of the value and the
 * patch, of what `copy` copies (`room`), and SHIFTS.
 *
 * Rejected: fast-json-patch. It reads what objects inherit, takes "/00" and "/4294967296" for the first element,
 * refuses members named "__proto__", and copies the whole value for a `move`.
 */
/** How deep a value may nest: an object or array in nothing is depth 1. */
export const DEPTH: 64;
/** A value that no feed has, or a patch that is none. */
export class ValueError extends Error {
}
/** A patch that does not fit the value. */
export class ConflictError extends ValueError {
}
/** A patch that copies more than there is room for. */
export class RoomError extends ValueError {
}
