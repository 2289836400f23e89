import { problemOf } from './answers.js';
import { Failure } from './requests.js';

/**
 * Requests of a place at any server of a world. If another server has the place, the asked one answers 421
 * `misdirected` with `Location`. Then this request is repeated there at once, and later requests go there.
 *
 *     own server ──421──▶ the named server ──no answer, or garbage──▶ own server
 *
 * After more than `movesMost` such answers in a row the place counts as forgotten.
 */
export class WorldRequests {
  #requests;
  #place;
  #limits;
  #redirectsInRow = 0;

  /**
   * @param {import('./requests.js').Requests} requests
   * @param {import('./place.js').Place} place
   * @param {{movesMost: number}} limits
   */
  constructor(requests, place, limits) {
    this.#requests = requests;
    this.#place = place;
    this.#limits = limits;
  }

  /**
   * Sends a request, as `Requests.send`.
   *
   * @param {string} url
   * @param {RequestInit} init
   * @param {number} [timeout] timeout in ms, for each server
   * @param {AbortController} [controller]
   * @returns {Promise<import('./answers.js').Answer>}
   * @throws {Failure}
   */
  async send(url, init, timeout, controller) {
    const { id } = this.#place;
    let redirects = 0;
    for (let target = url; ;) {
      const { otherServer: serverBefore } = this.#place;
      const answer = await this.#sendOnce(target, init, timeout, controller);
      const redirect = redirectOf(target, answer);
      if (answer.status < 400) this.#redirectsInRow = 0;
      // The client may have left or forgotten the place meanwhile.
      if (!redirect || id !== this.#place.id) return answer;
      redirects += 1;
      // Of requests that are redirected at the same time only one counts.
      if (serverBefore === this.#place.otherServer) {
        this.#redirectsInRow += 1;
        this.#place.otherServer = new URL('/', redirect);
      }
      if (Math.max(this.#redirectsInRow, redirects) > this.#limits.movesMost) {
        this.#redirectsInRow = 0;
        return { status: 404, json: { type: 'urn:sprites:unknown-client' } };
      }
      target = redirect;
    }
  }

  async #sendOnce(url, init, timeout, controller) {
    try {
      const answer = await this.#requests.send(url, init, timeout, controller);
      const isGood = answer.status >= 200 && answer.status < 300;
      if (!isGood && !problemOf(answer)) this.#place.otherServer = null; // no Sprites server
      return answer;
    } catch (error) {
      if (error instanceof Failure && error.reason !== 'aborted') this.#place.otherServer = null;
      throw error;
    }
  }
}

/**
 * @param {string} requested
 * @param {import('./answers.js').Answer} answer
 * @returns {string|undefined} URL at which to repeat the request
 */
function redirectOf(requested, answer) {
  if (answer.status !== 421 || problemOf(answer) !== 'misdirected') return undefined;
  if (!answer.location || !URL.canParse(answer.location)) return undefined;
  const [from, to] = [new URL(requested), new URL(answer.location)];
  // A proxy may have removed a prefix of the path.
  const isSame = from.pathname.endsWith(to.pathname) && from.search === to.search;
  const isSafe = to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:');
  return isSame && isSafe && !to.username && !to.password ? to.href : undefined;
}
