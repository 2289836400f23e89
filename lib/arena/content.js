import { checkDepth, DEPTH } from '../client/patch.js';
import { checkFor, readJson } from './body.js';

/**
 * What a game is about, where that is no number: the questions of a quiz. A game has it in `content.json`, which is
 * not served; the host may have other content, which is kept for each arena and game.
 *
 *   content/hall/quiz  ─▶  [{"question":"…"}]      a note each (native/store/shelf.h)
 */

/** The largest content, in bytes: of the request, and of its JSON without spaces. */
export const CONTENT_BYTES = 32768;

const check = checkFor('bad-content');

/**
 * @param {Uint8Array} body
 * @returns {string} its JSON, without spaces
 * @throws {import('../base/refusal.js').Refusal}
 */
export function readContent(body) {
  const value = readJson(body);
  check(value !== undefined, 'Send one JSON value in UTF-8, or null for the game’s own.');
  try {
    checkDepth(value, DEPTH);
  } catch {
    check(false, `Send JSON nested at most ${DEPTH} deep.`);
  }
  const text = JSON.stringify(value);
  check(Buffer.byteLength(text) <= CONTENT_BYTES, `Send at most ${CONTENT_BYTES} bytes.`);
  return text;
}
