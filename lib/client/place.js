import { positive, readResume } from './answers.js';
import { callBack } from './call-back.js';

/**
 * @typedef {import('./answers.js').Resume} Resume
 */

/** A client's place in the torus: the server's data about it, and the numbers of its sprites and throws. */
export class Place {
  #base;
  #onResume;

  /** The server that has the place, if it is not the program's server. @type {URL|null} */
  otherServer = null;
  /** A capability. @type {string|null} */
  id = null;
  ack = 0; // the last sequence number handed out
  confirmedAck = 0; // the last ack that the server has, by an answered poll
  n = 0; // the last number given to a throw
  hold = Infinity; // seconds, for polls; Infinity: the server chooses
  /** @type {number|undefined} seconds */
  lease;
  /** @type {number|undefined} bytes */
  maxSprite;
  /** @type {number|undefined} port for throws and leaves */
  transient;

  /**
   * @param {URL} base
   * @param {(resume: Resume|null) => void} onResume
   * @param {unknown} resume
   */
  constructor(base, onResume, resume) {
    this.#base = base;
    this.#onResume = onResume;
    const stored = readResume(resume);
    if (stored) this.#assign(stored);
  }

  /** @returns {Resume|null} the state with which a later client can take up this place */
  get resume() {
    if (!this.id) return null;
    const { id, ack, n, lease, maxSprite, transient } = this;
    const hold = Number.isFinite(this.hold) ? this.hold : undefined;
    return { id, ack, n, hold, lease, maxSprite, transient };
  }

  /** Gives the program the state to store. */
  reportResume() {
    callBack(this.#onResume, this.resume);
  }

  /**
   * Takes the place in the answer to a join.
   *
   * @param {any} json the answer
   * @returns {boolean} whether the answer is valid
   */
  acceptJoin(json) {
    const joined = readResume({ ...json, ack: 0, n: 0 });
    if (joined) this.#assign(joined);
    return joined !== null;
  }

  #assign({ id, ack, n, hold, lease, maxSprite, transient }) {
    this.id = id;
    this.ack = ack;
    this.n = Math.max(this.n, n);
    this.hold = positive(hold) ?? Infinity;
    this.lease = positive(lease);
    this.maxSprite = positive(maxSprite);
    // The transient port speaks plain HTTP: with https only the main port is used.
    const isPort = Number.isInteger(transient) && Number(transient) < 65_536;
    this.transient = isPort && this.#base.protocol === 'http:' ? positive(transient) : undefined;
  }

  /** @returns {number} the number for the next throw */
  nextNumber() {
    this.n += 1;
    if (this.id) this.reportResume();
    return this.n;
  }

  /** Forgets the place; numbers of throws go on. */
  clear() {
    this.id = null;
    this.otherServer = null;
    this.ack = 0;
    this.confirmedAck = 0;
    this.reportResume();
  }

  /**
   * @param {string} path
   * @param {{transient?: boolean}} [options] whether the transient port may be used
   * @returns {string}
   */
  url(path, { transient = false } = {}) {
    const url = new URL(path, this.otherServer ?? this.#base);
    if (transient && this.transient && !this.otherServer) url.port = String(this.transient);
    return url.href;
  }

  /**
   * @param {number} seconds of the hold; not sent while the server chooses it
   * @returns {string}
   */
  pollUrl(seconds) {
    const hold = Number.isFinite(this.hold) ? `&hold=${seconds}` : '';
    return this.url(`poll/${this.id}?ack=${this.ack}${hold}`);
  }

  /** @returns {string|null} */
  get leaveUrl() {
    return this.id && this.url(`leave/${this.id}`, { transient: true });
  }
}
