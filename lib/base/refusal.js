/** Thrown where a request is refused: the problem's name, and what else its answer says. */
export class Refusal extends Error {
  /**
   * @param {string} problem
   * @param {{detail?: string, headers?: object}} [more] in place of the problem's own `detail`, and beside its headers
   */
  constructor(problem, { detail, headers } = {}) {
    super(detail ?? problem);
    this.problem = problem;
    this.detail = detail;
    this.headers = headers;
  }
}
