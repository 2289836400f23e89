/** What is wrong with the body of a request of a player's or the panel's. */

/** A body that is none: the name of the problem, and its `detail`. */
export class Unfit extends Error {
  constructor(problem, detail) {
    super(detail);
    this.problem = problem;
  }
}

/**
 * @param {string} problem
 * @returns {(holds: boolean, says: string) => void} throws Unfit where it does not hold
 */
export const checkFor = (problem) => (holds, says) => {
  if (!holds) throw new Unfit(problem, says);
};

/** @param {Uint8Array} body @returns {unknown} what its JSON text says; undefined: it is none in UTF-8 */
export function readJson(body) {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined; // That is the answer.
  }
}
