/**
 * Ends of bans or of revocations, by name, in milliseconds since 1970; a negative one is withdrawn. The state keeps each end
 * as a note (native/store/feeds_and_notes.h), so that it survives a crash and a restart.
 *
 * What has ended is kept, since a clock that has jumped ahead may be set right: until the clock has been steady for a day,
 * or other ends need the room.
 */

/** How long the clock must have been steady before ended ones are discarded, in milliseconds. */
const STEADY_TIME = 86_400_000;

/** Least change of the clock that is a jump, in milliseconds. */
const CLOCK_JUMP = 60_000;

export class NotedEnds {
  #pool;
  #prefix;
  #most;
  #onJump;
  /** @type {Map<string, number>} */
  #ends;
  #steadySince = performance.now();
  #clockOffset = Date.now() - this.#steadySince;

  /**
   * @param {object} parts
   * @param {import('../torus/pool.js').Pool} parts.pool keeps them in its state
   * @param {string} parts.prefix of the notes' names
   * @param {number} parts.most most ends
   * @param {() => void} [parts.onJump] called when a jump of the clock is seen
   */
  constructor({ pool, prefix, most, onJump = () => {} }) {
    this.#pool = pool;
    this.#prefix = prefix;
    this.#most = most;
    this.#onJump = onJump;
    this.#ends = new Map(pool.notes(prefix).map(([name, end]) => [name, Number(end)]));
  }

  /** @returns {number} the end of this name; 0: there is none */
  get(name) {
    return this.#ends.get(name) ?? 0;
  }

  /** @returns {[string, number][]} the names that have not ended, and their ends */
  current() {
    this.look();
    const now = Date.now();
    return [...this.#ends].filter(([, end]) => Math.abs(end) > now);
  }

  /** Looks at the clock. Discards what has ended, unless the clock has jumped lately, or the server has just started. */
  look() {
    const running = performance.now();
    const offset = Date.now() - running;
    const hasJumped = Math.abs(offset - this.#clockOffset) > CLOCK_JUMP;
    this.#clockOffset = offset;
    if (hasJumped) {
      this.#steadySince = running;
      this.#onJump();
    } else if (running - this.#steadySince >= STEADY_TIME) {
      this.#discardEnded();
    }
  }

  /** @returns {boolean} whether there is room for the end of this name */
  makeRoom(name) {
    this.look();
    if (this.#ends.has(name) || this.#ends.size < this.#most) return true;
    this.#discardEnded();
    return this.#ends.size < this.#most;
  }

  /** @returns {Promise<boolean>} resolves when the journal has it; false: it may end with this run */
  async set(name, end) {
    this.#ends.set(name, end);
    return this.#write(this.#pool.note(this.#prefix + name, String(end)));
  }

  /** @returns {Promise<boolean>} as `set` */
  async discard(name) {
    return this.#write(this.#remove(name));
  }

  #remove(name) {
    this.#ends.delete(name);
    return this.#pool.removeNote(this.#prefix + name);
  }

  #discardEnded() {
    const now = Date.now();
    for (const [name, end] of this.#ends) if (Math.abs(end) <= now) this.#remove(name);
  }

  async #write(isNoted) {
    try {
      await this.#pool.endTurn();
    } catch {
      // Unanswerable: the journal may be written later.
      return false;
    }
    return isNoted;
  }
}
