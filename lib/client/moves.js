import { problemOf } from './answers.js';
import { Failure } from './requests.js';

/**
 * The requests of a place, wherever that is: in a world of many servers another one than the program's may have it, and
 * says so by 421 `misdirected` with `Location`. Then this asks there, at once, and from then on.
 *
 *     own server ──421──▶ the one it names ──no answer, or garbage──▶ own server
 *
 * Only that far: after `movesMost` such answers in a row, with no other one between, the place counts as forgotten.
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
   * As `Requests.ask`.
   *
   * @param {string} url
   * @param {RequestInit} init
   * @param {number} [most] ms, for each server that is asked
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
      // The place may have been left or forgotten meanwhile.
      if (!there || id !== this.#place.id) return answer;
      moves += 1;
      // Of requests that are sent on together one counts: the others say no more.
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
 * @returns {string|undefined} where the same is to be asked
 */
function elsewhere(asked, answer) {
  if (answer.status !== 421 || problemOf(answer) !== 'misdirected') return undefined;
  if (!answer.location || !URL.canParse(answer.location)) return undefined;
  const [from, to] = [new URL(asked), new URL(answer.location)];
  // A proxy may have taken something off the beginning of the path.
  const isSame = from.pathname.endsWith(to.pathname) && from.search === to.search;
  const isSafe = to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:');
  return isSame && isSafe && !to.username && !to.password ? to.href : undefined;
}
