import { setTimeout as pause } from 'node:timers/promises';

import { addUp } from '../base/add-up.js';

/**
 * The end of a server: in order, with all polls answered within the drain window, or at once after a failed start.
 *
 *   draining ─▶ every parked poll answered ─▶ what is under way answered ─▶ closed, the last opened first
 *            ─▶ the state written, and its lock released
 */

/** Interval at which a stopping server checks whether every client has been answered, in milliseconds. */
const LOOK = 50;

/** Extra time after the drain window for slow readers of event streams and for requests under way, in milliseconds. */
const PATIENCE = 5000;

/** Waits until nothing is left, or until the timeout. */
async function over(left, end) {
  while (left() > 0 && performance.now() < end) await pause(LOOK);
}

/** Runs all steps in order, even if some fail. @returns {Promise<Error[]>} the failures */
async function failuresOf(acts) {
  const errors = [];
  for (const act of acts) {
    try {
      await act();
    } catch (error) {
      errors.push(error);
    }
  }
  return errors;
}

export class Life {
  #options;
  #pool;
  #state;
  /** @type {{close: () => unknown}[]} */
  #open = [];

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
  closes(part) {
    this.#open.unshift(part);
    return part;
  }

  /**
   * Cleans up after a failed start.
   *
   * @param {Error} why
   * @returns {Promise<never>} rejects with `why`
   */
  async fail(why) {
    await failuresOf([...this.#closings(), () => this.#state.release(), () => this.#pool.close()]);
    throw why;
  }

  /**
   * Ends a server.
   *
   * @param {object} parts feeds, arena, world and the front door
   */
  async stop(parts) {
    const [first] = await failuresOf([
      () => this.#answerAll(parts),
      ...this.#closings(),
      () => this.#state.keep(),
      () => this.#state.release()
    ]);
    if (first) throw first;
  }

  /** Waits until every request that may be answered is answered. */
  async #answerAll({ feeds, arena, world, door }) {
    const window = this.#options.drain * 1000;
    this.draining = true;
    door.stopListening();
    const left = world.leave(window);
    this.#pool.drain(window);
    arena.drain();
    feeds.feeds.drain(window);
    door.drain(window);
    const end = performance.now() + window + PATIENCE;
    await this.#everyoneAnswered(feeds, door, end);
    await left;
    // The rest of a request body may come late, or never.
    await over(() => door.closeIdle(), end);
    await arena.endRounds();
    feeds.feeds.isClosedToProgram = true;
    await over(() => feeds.status().publishing, end);
    await pause(LOOK);
  }

  /** Drained polls are answered without help. A poll that waits for the disk, and a stream that waits for its reader, may never end. */
  async #everyoneAnswered(feeds, door, end) {
    const left = () => {
      const { watching, streams } = addUp([feeds.status(), door.counts().feeds]);
      const { parked } = this.#pool.status();
      if (performance.now() < end) return parked + watching;
      return (this.#state.status()?.blocked > 0 ? 0 : parked) + watching - streams;
    };
    while (left() > 0) await pause(LOOK);
  }

  #closings() {
    return this.#open.splice(0).map((part) => () => part.close());
  }
}
