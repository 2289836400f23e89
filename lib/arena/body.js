import { Refusal } from '../base/refusal.js';

/** How the body of a request of a player's or the panel's is read. */

/**
 * @param {string} problem
 * @returns {(holds: boolean, detail: string) => void} throws a Refusal where it does not hold
 */
export const checkFor = (problem) => (holds, detail) => {
  if (!holds) throw new Refusal(problem, { detail });
};

/** @param {Uint8Array} body @returns {unknown} what its JSON text says; undefined: it is none in UTF-8 */
export function readJson(body) {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined; // That is the answer.
  }
}
