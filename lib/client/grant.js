import { ignoreFailure } from './requests.js';

/**
 * The grant of a client, sent where feeds or joining are private. The application provides it. The client asks for a
 * new one before the grant expires, and when the server refuses it.
 */

/** Time before its end at which a grant is replaced, in ms; at most a quarter of its remaining life. */
const AHEAD = 30_000;

/** Problems after which a new grant may help. */
const ENDED = ['grant-expired', 'bad-grant'];

/** Returns the end of a JWT, in ms since 1970; Infinity without a readable one. */
function endOf(token) {
  try {
    const [, claims] = token.split('.');
    const { exp } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/')));
    return typeof exp === 'number' ? exp * 1000 : Infinity;
  } catch {
    return Infinity; // The server decides on its validity.
  }
}

export class Grant {
  #give;
  #token;
  #renewAt = -Infinity;
  #held = false;

  /** @param {() => string | undefined | Promise<string | undefined>} give the application's; undefined: no grant now */
  constructor(give) {
    this.#give = give;
  }

  /**
   * @returns {Promise<Record<string, string>>} the headers to send
   * @throws an error of the application
   */
  async headers() {
    const now = Date.now();
    if (this.#token === undefined || now >= this.#renewAt) {
      const token = (await this.#give())?.trim() || undefined;
      if (/[^!-~]/.test(token ?? '')) throw new TypeError('no header can have this grant');
      this.#token = token;
      const end = this.#token === undefined ? now : endOf(this.#token);
      this.#renewAt = end - Math.min(AHEAD, (end - now) / 4);
      this.#held = false;
    }
    return this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
  }

  /** Notes that the server has accepted the grant. */
  accepted() {
    this.#held = true;
  }

  /**
   * Notes that the server has refused a request.
   *
   * @param {string} [problem]
   * @returns {boolean} whether to repeat the request at once with a new grant: this one was good before
   */
  refused(problem) {
    if (!problem || !ENDED.includes(problem)) return false;
    this.#token = undefined;
    return this.#held;
  }
}

/**
 * Sends a request, with a grant if there is one.
 *
 * @param {Grant | null} grant
 * @param {(headers: Record<string, string>) => Promise<import('./answers.js').Answer>} ask
 * @returns {Promise<import('./answers.js').Answer & {failure?: string}>} the answer; with `failure` there is none: the
 *     reason of a Failure, or `no-grant` after an error of the application
 */
export async function askBy(grant, ask) {
  let headers = {};
  try {
    if (grant) headers = await grant.headers();
  } catch {
    return { status: 0, failure: 'no-grant' };
  }
  try {
    return await ask(headers);
  } catch (error) {
    return { status: 0, failure: ignoreFailure(error).reason };
  }
}

/** @param {unknown} give */
export const grantBy = (give) =>
  typeof give === 'function' ? new Grant(/** @type {any} */ (give)) : null;
