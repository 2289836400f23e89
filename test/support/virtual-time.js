/** Time that passes only as a test lets it: a clock that jumps from event to event, and no test waits. */
export class VirtualTime {
  #now = 0;
  #turns;

  /** Events by time, in whole milliseconds. */
  #events = new Map();

  /** The times with events, the next one last. */
  #times = [];

  /** How many events are to come. */
  pending = 0;

  /** @param {number} [turns] of Node's loop, after which all code waits for time again: a fetch's answer takes some */
  constructor(turns = 10) {
    this.#turns = turns;
  }

  now = () => this.#now;

  /** @returns {() => void} cancels the event */
  after = (ms, callback) => {
    const time = Math.max(Math.ceil(this.#now + ms), Math.ceil(this.#now));
    let list = this.#events.get(time);
    if (!list) {
      list = [];
      this.#events.set(time, list);
      const later = this.#times.findLastIndex((other) => other > time);
      this.#times.splice(later + 1, 0, time);
    }
    const event = { callback };
    list.push(event);
    this.pending += 1;
    return () => this.#take(event);
  };

  /** @returns {Promise<void>} */
  pause = (ms) => new Promise((resolve) => this.after(ms, resolve));

  /** With these and `now` it is the `timers` of a client. */
  setTimeout = (callback, ms = 0) => this.after(ms, callback);
  clearTimeout = (cancel) => {
    if (cancel) cancel();
  };

  /** Runs everything that needs no time. */
  async settle() {
    for (let turn = 0; turn < this.#turns; turn += 1) await new Promise(setImmediate);
  }

  /**
   * Lets time pass.
   *
   * @param {number} ms
   * @param {() => boolean} [holds] ends the run early when it returns true
   */
  async run(ms, holds = () => false) {
    const end = this.#now + ms;
    await this.settle();
    while (!holds() && this.#times.at(-1) <= end) await this.#step();
    if (!holds()) this.#now = end;
  }

  /**
   * Lets time pass until something is so.
   *
   * @param {() => boolean} isSo
   * @throws {Error} when no event is left, or after a thousand
   */
  async until(isSo) {
    await this.settle();
    for (let steps = 0; !isSo(); steps += 1) {
      if (this.#times.length === 0 || steps > 1000) throw new Error(`it never came true: ${isSo}`);
      await this.#step();
    }
  }

  /** Goes on to the next event. */
  async #step() {
    const time = this.#times.at(-1);
    this.#now = Math.max(this.#now, time);
    const list = this.#events.get(time);
    const event = list.shift();
    if (list.length === 0) {
      this.#times.pop();
      this.#events.delete(time);
    }
    this.#take(event)?.();
    await this.settle();
  }

  /** Returns the callback of an event that is still to come, and forgets it. */
  #take(event) {
    const { callback } = event;
    if (callback) this.pending -= 1;
    event.callback = undefined;
    return callback;
  }
}
