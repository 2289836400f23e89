/**
 * Whether the workers answer. Each says something every second; one that has been silent for too
 * long hangs, though the kernel still gives it connections.
 *
 * Silence is counted in looks of the main process's own, and not in seconds: what this one has slept
 * through is nobody else's silence.
 */

/** How often the main process looks, in milliseconds. */
const LOOK = 1000;

/** Looks without a word, after which /readyz says so. */
const MISSED = 3;

/** Looks without a word, after which a worker is given up. */
const LOST = 10;

/** The same for one that has not listened yet: to start takes time. */
const LOST_AT_START = 60;

export class Heartbeats {
  /** @type {Map<object, {silent: number, begun: boolean}>} */
  #workers = new Map();
  #timer;

  /**
   * @param {object} how
   * @param {(worker: object) => void} how.missed told of a worker that begins to miss
   * @param {(worker: object) => void} how.lost told of one to be given up, at every look until
   *     `forget`
   */
  constructor({ missed, lost }) {
    this.#timer = setInterval(() => {
      for (const [worker, state] of this.#workers) {
        state.silent += 1;
        if (state.begun && state.silent === MISSED) missed(worker);
        if (state.silent >= (state.begun ? LOST : LOST_AT_START)) lost(worker);
      }
    }, LOOK);
    this.#timer.unref();
  }

  /** A worker has been started. */
  expect(worker) {
    this.#workers.set(worker, { silent: 0, begun: false });
  }

  /** A worker has said something. */
  heard(worker) {
    this.#workers.set(worker, { silent: 0, begun: true });
  }

  /** A worker is gone. */
  forget(worker) {
    this.#workers.delete(worker);
  }

  /** @returns {number} workers that listen and do not answer */
  get silent() {
    return [...this.#workers.values()].filter(({ silent, begun }) => begun && silent >= MISSED)
      .length;
  }

  close() {
    clearInterval(this.#timer);
  }
}
