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
export class Moves {
  #requests;
  #place;
  #limits;
  #count = 0;

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
   * Sends a request, as `Requests.ask`.
   *
   * @param {string} url
   * @param {RequestInit} init
   * @param {number} [most] timeout in ms, for each server
   * @param {AbortController} [controller]
   * @returns {Promise<import('./answers.js').Answer>}
   * @throws {Failure}
   */
  async ask(url, init, most, controller) {
    const { id } = this.#place;
    let moves = 0;
    for (let at = url; ;) {
      const { away } = this.#place;
      const answer = await this.#askOnce(at, init, most, controller);
      const there = elsewhere(at, answer);
      if (answer.status < 400) this.#count = 0;
      // The client may have left or forgotten the place meanwhile.
      if (!there || id !== this.#place.id) return answer;
      moves += 1;
      // Of requests that are redirected at the same time only one counts.
      if (away === this.#place.away) {
        this.#count += 1;
        this.#place.away = new URL('/', there);
      }
      if (Math.max(this.#count, moves) > this.#limits.movesMost) {
        this.#count = 0;
        return { status: 404, json: { type: 'urn:sprites:unknown-client' } };
      }
      at = there;
    }
  }

  async #askOnce(url, init, most, controller) {
    try {
      const answer = await this.#requests.ask(url, init, most, controller);
      const isGood = answer.status >= 200 && answer.status < 300;
      if (!isGood && !problemOf(answer)) this.#place.away = null; // no Sprites server
      return answer;
    } catch (error) {
      if (error instanceof Failure && error.reason !== 'aborted') this.#place.away = null;
      throw error;
    }
  }
}

/**
 * @param {string} asked
 * @param {import('./answers.js').Answer} answer
 * @returns {string|undefined} URL at which to repeat the request
 */
function elsewhere(asked, answer) {
  if (answer.status !== 421 || problemOf(answer) !== 'misdirected') return undefined;
  if (!answer.location || !URL.canParse(answer.location)) return undefined;
  const [from, to] = [new URL(asked), new URL(answer.location)];
  // A proxy may have removed a prefix of the path.
  const isSame = from.pathname.endsWith(to.pathname) && from.search === to.search;
  const isSafe = to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:');
  return isSame && isSafe && !to.username && !to.password ? to.href : undefined;
}
