/** Refusals of requests. */

/** Thrown to refuse a request with a problem. */
export class Refusal extends Error {
  /**
   * @param {string} problem
   * @param {{detail?: string, headers?: object}} [more] `detail` replaces the problem's own; `headers` are added
   */
  constructor(problem, { detail, headers } = {}) {
    super(detail ?? problem);
    this.problem = problem;
    this.detail = detail;
    this.headers = headers;
  }
}

/**
 * @param {string} problem
 * @returns {(holds: boolean, detail: string) => void} throws a Refusal unless `holds`
 */
export const checkFor = (problem) => (holds, detail) => {
  if (!holds) throw new Refusal(problem, { detail });
};
