/**
 * @param {Uint8Array} body of a request
 * @returns {unknown} what its JSON text says
 * @throws {SyntaxError | TypeError} when it is no JSON in UTF-8
 */
export function readJson(body) {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
}
