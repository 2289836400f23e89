/** The reader of JSON whose members the server itself reads. A text that could be read in two ways is refused. */

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns how many members all objects of a value have. */
function countMembers(value) {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.values(value);
  const own = Array.isArray(value) ? 0 : inner.length;
  return inner.reduce((sum, one) => sum + countMembers(one), own);
}

/** Returns how many members a JSON text names. */
function countNames(text) {
  let names = 0;
  for (const [, colon] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)) names += colon ? 1 : 0;
  return names;
}

/**
 * @param {Uint8Array} bytes
 * @returns {unknown} the value of the JSON text; undefined if it is not JSON in UTF-8, nests too deep for the stack, or
 *     has an object with the same name twice
 */
export function readJson(bytes) {
  try {
    const text = utf8.decode(bytes);
    const value = JSON.parse(text);
    return countMembers(value) === countNames(text) ? value : undefined;
  } catch {
    return undefined;
  }
}
