import { setTimeout as pause } from 'node:timers/promises';

import { addUp } from '../base/add-up.js';

/**
 * How a server ends: in order, answering all within the drain window, or at once where a start fails.
 *
 *   draining ─▶ every parked poll answered ─▶ what is under way answered ─▶ closed, the last opened first
 *            ─▶ the state kept, and its lock given back
 */

/** How often a stopping server looks whether every client has been answered, in milliseconds. */
const LOOK = 50;

/** Milliseconds that event streams with slow readers, and requests under way, have beyond the drain window. */
const PATIENCE = 5000;

/** Waits until nothing is left, or the time is over. */
async function over(left, end) {
  while (left() > 0 && performance.now() < end) await pause(LOOK);
}

/** Does all of it in order, also where some of it fails. @returns {Promise<Error[]>} what has failed */
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
  /** Those that accept connections. @type {{stopListening: () => void, closeIdle: () => number | void}[]} */
  #doors = [];

  /** Whether new clients are to go elsewhere. */
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
   * @param {Part} part what is closed at the end, before what was given here earlier
   * @returns {Part}
   */
  closes(part) {
    this.#open.unshift(part);
    return part;
  }

  /**
   * @template {{close: () => unknown, stopListening: () => void, closeIdle: () => number | void}} Door
   * @param {Door} door what accepts connections until the server ends; `closeIdle` closes those that nothing is owed to,
   *     and gives how many are left
   * @returns {Door}
   */
  accepts(door) {
    this.#doors.push(door);
    return this.closes(door);
  }

  /**
   * Ends a start that has failed.
   *
   * @param {Error} why
   * @returns {Promise<never>} rejects with it
   */
  async fail(why) {
    await failuresOf([...this.#closings(), () => this.#state.release(), () => this.#pool.close()]);
    throw why;
  }

  /**
   * Ends a server.
   *
   * @param {object} parts what takes part in it: feeds, arena, world and the front door
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

  /** Waits until all is answered that may be. */
  async #answerAll({ feeds, arena, world, door }) {
    const window = this.#options.drain * 1000;
    this.draining = true;
    for (const door of this.#doors) door.stopListening();
    const left = world.leave(window);
    this.#pool.drain(window);
    arena.drain();
    feeds.feeds.drain(window);
    door.drain(window);
    const end = performance.now() + window + PATIENCE;
    await this.#everyoneAnswered(feeds, door, end);
    await left;
    // The rest of a body may take its time, and may never come.
    await over(() => this.#doors.reduce((sum, door) => sum + (door.closeIdle() ?? 0), 0), end);
    await arena.rest();
    feeds.feeds.rests = true;
    await over(() => feeds.status().publishing, end);
    await pause(LOOK);
  }

  /** Polls are answered by themselves. A poll that waits for the disk, and a stream for its reader, may wait for ever. */
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
