import { checkDepth, DEPTH } from '../client/patch.js';
import { readJson } from '../base/read-json.js';
import { checkFor } from '../base/refusal.js';

/**
 * The content of a game, such as the questions of a quiz. A game's own content is in `content.json`, which is not
 * served. The host may replace it; the state keeps the host's content for each arena and game.
 *
 *   content/hall/quiz  ─▶  [{"question":"…"}]      one note (native/store/feeds_and_notes.h)
 */

/** Largest content, in bytes: a bound of the request, and of its JSON without spaces. */
export const CONTENT_BYTES = 32768;

const check = checkFor('bad-content');

/**
 * @param {Uint8Array} body
 * @returns {string} its JSON, without spaces
 * @throws {import('../base/refusal.js').Refusal}
 */
export function readContent(body) {
  const value = readJson(body);
  check(
    value !== undefined,
    'Send one JSON value in UTF-8, no name twice, or null for the game’s own.'
  );
  try {
    checkDepth(value, DEPTH);
  } catch {
    check(false, `Send JSON nested at most ${DEPTH} deep.`);
  }
  const text = JSON.stringify(value);
  check(Buffer.byteLength(text) <= CONTENT_BYTES, `Send at most ${CONTENT_BYTES} bytes.`);
  return text;
}
