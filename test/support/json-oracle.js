/**
 * What V8 itself says of a sprite's bytes: the judge the native check is held to.
 */

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * How deep the brackets of a JSON text nest. Read from the text, not from what was parsed: a
 * parser forgets the first of two members of one name, and how deep it went.
 *
 * @param {string} text a text JSON.parse took
 * @returns {number} 0 without brackets, 1 for `{}`
 */
function depthOf(text) {
  let depth = 0;
  let deepest = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (token === '{' || token === '[') deepest = Math.max(deepest, ++depth);
    else if (token === '}' || token === ']') depth -= 1;
  }
  return deepest;
}

/**
 * Whether the bytes are a sprite: one JSON object, in UTF-8, within the bound.
 *
 * @param {Uint8Array} bytes
 * @param {number} [depth] the deepest nesting allowed; the object itself is 1
 * @returns {boolean}
 */
export function isSprite(bytes, depth = 32) {
  let text;
  let value;
  try {
    text = decoder.decode(bytes);
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return false;
    throw error;
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && depthOf(text) <= depth;
}
