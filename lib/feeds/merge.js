import { DEPTH, setMember, ValueError } from '../client/patch.js';

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Applies a merge patch (RFC 7396).
 *
 * @param {unknown} target a value as JSON.parse gives it, which stays as it is
 * @param {unknown} patch another one
 * @param {number} [depth] how many levels it may have
 * @returns {unknown} the value with the patch in it; what the patch leaves as it was is shared
 * @throws {ValueError} when the objects of the patch nest deeper than a value may
 */
export function merge(target, patch, depth = DEPTH) {
  if (!isObject(patch)) return patch;
  if (depth === 0) throw new ValueError(`Nest objects and arrays at most ${DEPTH} deep.`);
  const result = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) {
      delete result[name];
      continue;
    }
    const before = Object.hasOwn(result, name) ? result[name] : undefined;
    setMember(result, name, merge(before, value, depth - 1));
  }
  return result;
}
