/** Requests that always end: with a whole answer in time, or with a Failure. */

/** No whole answer: `reason` is `network`, `slow`, `garbage`, or `aborted` by the caller. */
export class Failure extends Error {
  /**
   * @param {string} reason
   * @param {ErrorOptions} [options]
   */
  constructor(reason, options) {
    super(reason, options);
    this.reason = reason;
  }
}

/**
 * The timers of a client. A test can provide its own clock.
 *
 * @typedef {object} Timers
 * @property {(callback: () => void, ms: number) => any} setTimeout
 * @property {(timer: any) => void} clearTimeout
 * @property {() => number} now ms
 */

/** Longest time of a timer, in ms: a timer with a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** @returns {Timers} the timers of the platform */
export function globalTimers() {
  return {
    setTimeout: (callback, ms) => globalThis.setTimeout(callback, Math.min(ms, MAX_TIMER_MS)),
    clearTimeout: (timer) => globalThis.clearTimeout(timer),
    now: () => performance.now()
  };
}

/**
 * @param {string} base the URL of a server
 * @returns {URL} with a slash at its end, as the base of all requests
 * @throws {TypeError} for a URL that is not http or https, such as `localhost:8080`, or that has a user, ? or #
 */
export function serverUrl(base) {
  const url = new URL(base);
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  if (/^https?:[^?#]+$/.test(url.href) && !url.username && !url.password) return url;
  throw new TypeError('base must be an http or https URL, without a user, ? or #');
}

export class Requests {
  #fetch;
  #timers;
  #limits;

  /**
   * @param {typeof globalThis.fetch} fetch
   * @param {Timers} timers
   * @param {{requestTimeout: number, answerMost: number}} limits
   */
  constructor(fetch, timers, limits) {
    // A browser's fetch insists on its own `this`.
    this.#fetch = (url, init) => fetch.call(globalThis, url, init);
    this.#timers = timers;
    this.#limits = limits;
  }

  /**
   * @param {string} url
   * @param {RequestInit} init
   * @param {number} [timeout] timeout in ms
   * @param {AbortController} [controller] its abort ends the request with a Failure
   * @returns {Promise<import('./answers.js').Answer>}
   * @throws {Failure} when there is no whole answer in time
   */
  async send(url, init, timeout = this.#limits.requestTimeout, controller = new AbortController()) {
    let reason = 'network';
    const timer = this.#timers.setTimeout(() => {
      reason = 'slow';
      controller.abort();
    }, timeout);
    try {
      const response = await this.#fetch(url, {
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'manual', // a redirect is no answer of a Sprites server
        ...init,
        signal: controller.signal
      });
      const text = await readText(response, this.#limits.answerMost);
      if (text === undefined) {
        reason = 'garbage';
        throw new RangeError('the answer is too long');
      }
      const { status } = response;
      const json = parse(text);
      if (status >= 200 && status < 300 && status !== 204 && json === undefined) {
        reason = 'garbage';
        throw new SyntaxError('the answer is no JSON');
      }
      const { headers } = response;
      const hasRetryAfter = status === 429 || status === 503;
      const retryAfter = hasRetryAfter ? milliseconds(headers.get('retry-after')) : undefined;
      return { status, json, retryAfter, location: headers.get('location') };
    } catch (cause) {
      if (reason === 'network' && controller.signal.aborted) reason = 'aborted';
      controller.abort(); // The rest of an answer that is too long is not received.
      throw new Failure(reason, { cause });
    } finally {
      this.#timers.clearTimeout(timer);
    }
  }
}

/**
 * Reads the text of an answer, and counts its decoded bytes: Content-Length counts the encoded ones,
 * and 389 kB of gzip may be 1.6 GB.
 *
 * @param {Response} response
 * @param {number} maxBytes bytes
 * @returns {Promise<string|undefined>} undefined when there are more bytes; the caller then aborts
 *     the rest
 */
async function readText(response, maxBytes) {
  if (response.body === null) return '';
  const reader = response.body.getReader();
  if (Number(response.headers.get('content-length')) > maxBytes) return undefined;
  const decoder = new TextDecoder();
  let length = 0;
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    length += value.length;
    if (length > maxBytes) return undefined;
    text += decoder.decode(value, { stream: true });
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // No JSON value is undefined: so the caller recognizes an error.
  }
}

/** @returns {number|undefined} undefined for a date, which this server does not send */
const milliseconds = (retryAfter) =>
  /^\d{1,15}$/.test(retryAfter) ? Number(retryAfter) * 1000 : undefined;

/**
 * Ignores a Failure, for a caller that can go on without an answer.
 *
 * @param {unknown} error
 * @returns {Failure}
 * @throws any other error: it is a mistake in this program
 */
export function ignoreFailure(error) {
  if (!(error instanceof Failure)) throw error;
  return error;
}
