import { positive, readResume } from './answers.js';
import { callBack } from './call-back.js';

/**
 * @typedef {import('./answers.js').Resume} Resume
 */

/** A client's place in the torus: what the server has said of it, and what came and went. */
export class Place {
  #base;
  #onResume;

  /** The server that has the place, where that is another one. @type {URL|null} */
  away = null;
  /** A capability. @type {string|null} */
  id = null;
  ack = 0; // the last sequence number handed out
  ackTaken = 0; // the one of the last poll that was answered
  n = 0; // the last number given to a throw
  hold = Infinity; // seconds to ask for; Infinity: the server chooses
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
    const kept = readResume(resume);
    if (kept) this.#take(kept);
  }

  /** @returns {Resume|null} what a later client needs to take up this place */
  get resume() {
    if (!this.id) return null;
    const { id, ack, n, lease, maxSprite, transient } = this;
    const hold = Number.isFinite(this.hold) ? this.hold : undefined;
    return { id, ack, n, hold, lease, maxSprite, transient };
  }

  /** Tells the program what to keep. */
  tell() {
    callBack(this.#onResume, this.resume);
  }

  /**
   * @param {any} json the answer to a join
   * @returns {boolean} whether it is one
   */
  join(json) {
    const joined = readResume({ ...json, ack: 0, n: 0 });
    if (joined) this.#take(joined);
    return joined !== null;
  }

  #take({ id, ack, n, hold, lease, maxSprite, transient }) {
    this.id = id;
    this.ack = ack;
    this.ackTaken = ack;
    this.n = Math.max(this.n, n);
    this.hold = positive(hold) ?? Infinity;
    this.lease = positive(lease);
    this.maxSprite = positive(maxSprite);
    // The transient port speaks plain HTTP: behind TLS there is only the main one.
    const port = Number.isInteger(transient) && Number(transient) < 65_536;
    this.transient = port && this.#base.protocol === 'http:' ? positive(transient) : undefined;
  }

  /** @returns {number} for the next throw */
  number() {
    this.n += 1;
    if (this.id) this.tell();
    return this.n;
  }

  /** The place is gone; numbers of throws go on. */
  lose() {
    this.id = null;
    this.away = null;
    this.ack = 0;
    this.ackTaken = 0;
    this.tell();
  }

  /**
   * @param {string} path
   * @param {{transient?: boolean}} [options] whether the transient port is welcome
   * @returns {string}
   */
  url(path, { transient = false } = {}) {
    const url = new URL(path, this.away ?? this.#base);
    if (transient && this.transient && !this.away) url.port = String(this.transient);
    return url.href;
  }

  /**
   * @param {number} seconds of the hold, where the server lets this client choose
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
