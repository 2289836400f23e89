import { setTimeout as pause } from 'node:timers/promises';

import { addUp } from '../base/add-up.js';

/**
 * The end of a server: in order, with all polls answered within the drain window, or at once after a failed start.
 *
 *   draining ─▶ every parked poll answered ─▶ what is under way answered ─▶ closed, the last opened first
 *            ─▶ the state written, and its lock released
 */

/** Interval at which a stopping server checks whether every client has been answered, in milliseconds. */
const CHECK_INTERVAL = 50;

/** Extra time after the drain window for slow readers of event streams and for requests under way, in milliseconds. */
const GRACE_PERIOD = 5000;

/** Waits until nothing is left, or until the timeout. */
async function waitUntilNone(countRemaining, deadline) {
  while (countRemaining() > 0 && performance.now() < deadline) await pause(CHECK_INTERVAL);
}

/** Runs all steps in order, even if some fail. @returns {Promise<Error[]>} the failures */
async function failuresOf(steps) {
  const errors = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      errors.push(error);
    }
  }
  return errors;
}

export class Lifecycle {
  #options;
  #pool;
  #state;
  /** @type {{close: () => unknown}[]} */
  #parts = [];

  /** Whether the server refuses new clients. */
  draining = false;

  /**
   * @param {object} parts
   * @param {{drain: number}} parts.options seconds
   * @param {import('../torus/pool.js').Pool} parts.pool
   * @param {import('./state.js').State} parts.state
   */
  constructor({ options, pool, state }) {
    this.#options = options;
    this.#pool = pool;
    this.#state = state;
  }

  /**
   * @template {{close: () => unknown}} Part
   * @param {Part} part is closed at the end, before the parts that were added earlier
   * @returns {Part}
   */
  closeAtEnd(part) {
    this.#parts.unshift(part);
    return part;
  }

  /**
   * Cleans up after a failed start.
   *
   * @param {Error} error
   * @returns {Promise<never>} rejects with `error`
   */
  async fail(error) {
    await failuresOf([
      ...this.#closeSteps(),
      () => this.#state.release(),
      () => this.#pool.close()
    ]);
    throw error;
  }

  /**
   * Ends a server.
   *
   * @param {object} parts feeds, arena, world and the front door
   */
  async stop(parts) {
    const [first] = await failuresOf([
      () => this.#answerAll(parts),
      ...this.#closeSteps(),
      () => this.#state.save(),
      () => this.#state.release()
    ]);
    if (first) throw first;
  }

  /** Waits until every request that may be answered is answered. */
  async #answerAll({ feeds, arena, world, door }) {
    const window = this.#options.drain * 1000;
    this.draining = true;
    door.stopListening();
    const worldLeft = world.leave(window);
    this.#pool.drain(window);
    arena.drain();
    feeds.feeds.drain(window);
    door.drain(window);
    const deadline = performance.now() + window + GRACE_PERIOD;
    await this.#waitUntilAnswered(feeds, door, deadline);
    await worldLeft;
    // The rest of a request body may come late, or never.
    await waitUntilNone(() => door.closeIdle(), deadline);
    await arena.endRounds();
    feeds.feeds.isClosedToProgram = true;
    await waitUntilNone(() => feeds.status().publishing, deadline);
    await pause(CHECK_INTERVAL);
  }

  /** Drained polls are answered without help. A poll that waits for the disk, and a stream that waits for its reader, may never end. */
  async #waitUntilAnswered(feeds, door, deadline) {
    const countRemaining = () => {
      const { watching, streams } = addUp([feeds.status(), door.counts().feeds]);
      const { parked } = this.#pool.status();
      if (performance.now() < deadline) return parked + watching;
      return (this.#state.status()?.blocked > 0 ? 0 : parked) + watching - streams;
    };
    while (countRemaining() > 0) await pause(CHECK_INTERVAL);
  }

  #closeSteps() {
    return this.#parts.splice(0).map((part) => () => part.close());
  }
}
