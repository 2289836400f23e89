import { checkDepth, DEPTH } from '../client/patch.js';

/**
 * What a game is about, where that is no number: the questions of a quiz. A game has it in `content.json`, which is
 * not served; the host may have other content, which is kept for each arena and game.
 *
 *   content/hall/quiz  ─▶  [{"question":"…"}]      a note each (native/store/shelf.h)
 */

/** The largest content, in bytes: of the request, and of its JSON without spaces. */
export const CONTENT_BYTES = 32768;

/** Content that is none; its message is the `detail` of the problem. */
export class ContentError extends Error {}

/**
 * @param {Uint8Array} body
 * @returns {string} its JSON, without spaces
 * @throws {ContentError}
 */
export function readContent(body) {
  let value;
  try {
    value = readJson(body);
  } catch {
    throw new ContentError('Send one JSON value in UTF-8, or null for the game’s own.');
  }
  try {
    checkDepth(value, DEPTH);
  } catch {
    throw new ContentError(`Send JSON nested at most ${DEPTH} deep.`);
  }
  const text = JSON.stringify(value);
  if (Buffer.byteLength(text) > CONTENT_BYTES) {
    throw new ContentError(`Send at most ${CONTENT_BYTES} bytes.`);
  }
  return text;
}

/**
 * @param {Uint8Array} body of a request
 * @returns {unknown} what its JSON text says
 * @throws {SyntaxError | TypeError} when it is no JSON in UTF-8
 */
export function readJson(body) {
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
}
