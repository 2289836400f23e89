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
