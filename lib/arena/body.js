import { Refusal } from '../base/refusal.js';

/** Readers for the bodies of requests from players and panels. */

/**
 * @param {string} problem
 * @returns {(holds: boolean, detail: string) => void} throws a Refusal unless `holds`
 */
export const checkFor = (problem) => (holds, detail) => {
  if (!holds) throw new Refusal(problem, { detail });
};

/** @param {Uint8Array} body @returns {unknown} the value of its JSON text; undefined if it is not JSON in UTF-8 */
export function readJson(body) {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined; // No JSON in UTF-8.
  }
}
