import { ignoreFailure } from './requests.js';

/**
 * The grant of a client: what it sends where feeds are private, or joining is. The application gives it; this asks for a new
 * one in time, and when the server refuses the one there is.
 */

/** Ms before its end from which on a grant is replaced; of one that lasts shorter, a quarter of its life. */
const AHEAD = 30_000;

/** The problems after which a new one may help. */
const ENDED = ['grant-expired', 'bad-grant'];

/** The end of a JWT, ms since 1970; Infinity where it does not say. */
function endOf(token) {
  try {
    const [, claims] = token.split('.');
    const { exp } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/')));
    return typeof exp === 'number' ? exp * 1000 : Infinity;
  } catch {
    return Infinity; // The server says what it thinks of it.
  }
}

export class Grant {
  #give;
  #token;
  #renewAt = -Infinity;
  #held = false;

  /** @param {() => string | undefined | Promise<string | undefined>} give the application's; undefined: it has none now */
  constructor(give) {
    this.#give = give;
  }

  /**
   * @returns {Promise<Record<string, string>>} the headers to send
   * @throws whatever the application does
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

  /** The server has taken it. */
  accepted() {
    this.#held = true;
  }

  /**
   * The server has refused a request.
   *
   * @param {string} [problem]
   * @returns {boolean} whether to ask again at once, with a new one: this one has been good before
   */
  refused(problem) {
    if (!problem || !ENDED.includes(problem)) return false;
    this.#token = undefined;
    return this.#held;
  }
}

/**
 * Asks with a grant, where there is one.
 *
 * @param {Grant | null} grant
 * @param {(headers: Record<string, string>) => Promise<import('./answers.js').Answer>} ask
 * @returns {Promise<import('./answers.js').Answer & {failure?: string}>} its answer; with `failure` there is none: the reason
 *     of a Failure, or `no-grant` where the application fails
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
