import { ignoreFailure } from './requests.js';

/**
 * The grant of a client, sent where feeds or joining are private. The application provides it. The client asks for a
 * new one before the grant expires, and when the server refuses it.
 */

/** Time before its end at which a grant is replaced, in ms; at most a quarter of its remaining life. */
const RENEW_AHEAD = 30_000;

/** Problems after which a new grant may help. */
const RENEWABLE_PROBLEMS = ['grant-expired', 'bad-grant'];

/** Returns the end of a JWT, in ms since 1970; Infinity without a readable one. */
function expiryOf(token) {
  try {
    const [, claims] = token.split('.');
    const { exp } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/')));
    return typeof exp === 'number' ? exp * 1000 : Infinity;
  } catch {
    return Infinity; // The server decides on its validity.
  }
}

export class Grant {
  #provide;
  #token;
  #renewAt = -Infinity;
  #wasAccepted = false;

  /** @param {() => string | undefined | Promise<string | undefined>} provide undefined: no grant now */
  constructor(provide) {
    this.#provide = provide;
  }

  /**
   * @returns {Promise<Record<string, string>>} the headers to send
   * @throws an error of the application
   */
  async headers() {
    const now = Date.now();
    if (this.#token === undefined || now >= this.#renewAt) {
      const token = (await this.#provide())?.trim() || undefined;
      if (/[^!-~]/.test(token ?? '')) throw new TypeError('no header can have this grant');
      this.#token = token;
      const expiresAt = this.#token === undefined ? now : expiryOf(this.#token);
      this.#renewAt = expiresAt - Math.min(RENEW_AHEAD, (expiresAt - now) / 4);
      this.#wasAccepted = false;
    }
    return this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
  }

  /** Notes that the server has accepted the grant. */
  noteAccepted() {
    this.#wasAccepted = true;
  }

  /**
   * Notes that the server has refused a request.
   *
   * @param {string} [problem]
   * @returns {boolean} whether to repeat the request at once with a new grant: this one was good before
   */
  noteRefused(problem) {
    if (!problem || !RENEWABLE_PROBLEMS.includes(problem)) return false;
    this.#token = undefined;
    return this.#wasAccepted;
  }
}

/**
 * Sends a request, with a grant if there is one.
 *
 * @param {Grant | null} grant
 * @param {(headers: Record<string, string>) => Promise<import('./answers.js').Answer>} send
 * @returns {Promise<import('./answers.js').Answer & {failure?: string}>} the answer; with `failure` there is none: the
 *     reason of a Failure, or `no-grant` after an error of the application
 */
export async function sendWithGrant(grant, send) {
  let headers = {};
  try {
    if (grant) headers = await grant.headers();
  } catch {
    return { status: 0, failure: 'no-grant' };
  }
  try {
    return await send(headers);
  } catch (error) {
    return { status: 0, failure: ignoreFailure(error).reason };
  }
}

/** @param {unknown} provide */
export const grantFrom = (provide) =>
  typeof provide === 'function' ? new Grant(/** @type {any} */ (provide)) : null;
