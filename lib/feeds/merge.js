const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Applies a merge patch (RFC 7396).
 *
 * @param {unknown} target a value as JSON.parse gives it, which may be changed
 * @param {unknown} patch another one
 * @returns {unknown} the value with the patch in it
 */
export function merge(target, patch) {
  if (!isObject(patch)) return patch;
  const result = isObject(target) ? target : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) {
      delete result[name];
      continue;
    }
    const before = Object.hasOwn(result, name) ? result[name] : undefined;
    // Assigning to a member named "__proto__" would set the object's prototype instead.
    Object.defineProperty(result, name, {
      value: merge(before, value),
      enumerable: true,
      writable: true,
      configurable: true
    });
  }
  return result;
}
