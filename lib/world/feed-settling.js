import { isNewer } from './feed-message.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * Which feeds have to be compared with the world's store, and when: those that news have come of, and all of them when
 * the store was away or news may have been missed.
 *
 *   news ──────────▶ behind ─▶ settle, AT_ONCE keys at once ─▶ through
 *   look, read all ────▲  └─────────── the store is lost ──────┘
 *
 * News are numbered by the store without gaps, so a gap is seen at once; the last of them by looking what number the store
 * has come to. Where its server was restarted it may have lost what it had promised: then nothing is taken for granted.
 *
 * Bounds: a key is in `behind` once, however many news there are of it, and there are at most as many keys as this
 * server may have feeds, and deleted ones; one too many has all heads read once more, in its time.
 */

/**
 * Keys that are settled at once at the most: each has one message in memory. When the store has not answered it begins anew
 * with one, and one more with each that is done, so that on a slow line each comes through in its time.
 */
const AT_ONCE = 8;

/** How often it looks whether the store is there, and what it has come to, milliseconds. */
const LOOK = 2000;

/** After how long what was refused is tried again, milliseconds. */
const REFUSED = 30_000;

/** The revision where it must be looked: more than any, so that news of an older one do not take its place. */
const UNKNOWN = Infinity;

export class FeedSettling {
  /** As the constructor has them. */
  #parts;
  /** Keys to be settled, and the revision that is known to be there, or UNKNOWN. @type {Map<string, number>} */
  #behind = new Map();
  /** Keys that are being settled, and how many may be. */
  #busy = new Set();
  #atOnce = AT_ONCE;
  /**
   * Keys whose newest version this server could not take: that, and since when.
   *
   * @type {Map<string, {since: number, head?: import('./feed-message.js').Head}>}
   */
  #refused = new Map();
  /** Keys that have to be settled before all is here that there was when heads were last read. */
  #owed = new Set();
  /** Told when there are none. @type {(() => void)[]} */
  #waiters = [];
  #isOpen = false;
  #isEnded = false;
  /** Whether the store has answered, the last time it was asked. */
  #answers = false;
  /** Which store it is, in which run of its server. */
  #identity;
  /** The number of the newest news. */
  #heard = 0;
  /** What number the store had come to at the last look. */
  #seen = 0;
  /** Whether all heads must be read; whether that is under way; whether more was behind than there is room for. */
  #mustRead = true;
  #reading = false;
  #overflowed = false;
  #looking = false;
  #timer = () => {};
  #refusals = 0;
  /** The problem that the log has. */
  #said;

  /**
   * @param {object} parts
   * @param {import('./feed-store.js').FeedStore} parts.store
   * @param {import('./feed-message.js').FeedMarks} parts.marks
   * @param {number} parts.most keys that may be behind
   * @param {import('./clock.js').clock} parts.clock
   * @param {import('pino').Logger} parts.log
   * @param {(key: string) => boolean} parts.shares whether a key is the world's
   * @param {(key: string, revision: number) => Promise<void>} parts.settle rejects with WorldError or Conflict
   * @param {() => void} parts.reached told when the store was reached
   */
  constructor(parts) {
    this.#parts = parts;
    parts.store.watch({
      news: (key, revision) => this.#news(key, revision),
      missed: () => this.#missed()
    });
  }

  /** @returns {Promise<void>} when what the store has now is here */
  open() {
    this.#isOpen = true;
    const complete = new Promise((then) => this.#waiters.push(then));
    this.#missed();
    return complete;
  }

  close() {
    this.#isOpen = false;
    this.#answers = false;
    this.#timer();
    this.#behind.clear();
    this.#owed.clear();
    this.#waiters = [];
  }

  end() {
    this.#isEnded = true;
    this.close();
  }

  /** @returns {boolean} whether what is published goes to the store */
  get isReachable() {
    return this.#isOpen && this.#answers && this.#parts.store.connected;
  }

  /** @returns {{behind: number, refused: number}} */
  status() {
    const behind = this.#behind.size + this.#busy.size + this.#refused.size;
    return { behind, refused: this.#refusals };
  }

  /** The store does not answer. */
  lost(error) {
    this.#answers = false;
    if (!this.#isOpen) return;
    const { code = 'unreachable', message } = error;
    if (this.#said !== code)
      this.#parts.log.warn({ problem: code }, `feeds of the world: ${message}`);
    this.#said = code;
  }

  /** The newest version of a key, of that head, can't be taken here. */
  refuse(key, problem, head) {
    this.#refusals += 1;
    if (!this.#refused.has(key)) {
      this.#parts.log.error({ feed: key, problem }, 'a feed of another server is not taken');
    }
    this.#refused.set(key, { since: this.#parts.clock.now(), head });
  }

  accept(key) {
    this.#refused.delete(key);
  }

  /** @returns {import('./feed-message.js').Head | undefined} of the version of a key that was refused, as long as it is */
  refused(key) {
    return this.#refused.get(key)?.head;
  }

  /** There is a newer version of a key. */
  see(key, revision) {
    if (!this.#isOpen) return;
    const known = this.#behind.get(key);
    if (known === undefined && revision !== UNKNOWN && this.#behind.size >= this.#parts.most) {
      this.#overflowed = true;
      return;
    }
    this.#behind.set(key, Math.max(known ?? 0, revision));
    this.#work();
  }

  #news(key, revision) {
    if (!this.#isOpen) return;
    const isGap = revision > this.#heard + 1;
    this.#heard = Math.max(this.#heard, revision);
    if (isGap && !this.#mustRead) this.#missed();
    if (this.#parts.shares(key)) this.see(key, revision);
  }

  #missed() {
    this.#mustRead = true;
    if (this.#isOpen) this.#look();
  }

  // ---- Settling

  #work() {
    if (!this.isReachable) return;
    for (const [key, revision] of this.#behind) {
      if (this.#busy.size >= this.#atOnce) return;
      if (this.#busy.has(key)) continue;
      this.#behind.delete(key);
      this.#run(key, revision);
    }
  }

  async #run(key, revision) {
    this.#busy.add(key);
    try {
      await this.#parts.settle(key, revision);
      this.#owed.delete(key);
      this.#atOnce = Math.min(this.#atOnce + 1, AT_ONCE);
    } catch (error) {
      if (error instanceof WorldError) {
        this.#atOnce = 1;
        this.lost(error);
      }
      if (error instanceof WorldError || error instanceof Conflict) this.see(key, UNKNOWN);
      // At its end the threads are gone.
      else if (!this.#isEnded) this.#failed(key, error);
    }
    this.#busy.delete(key);
    this.#tell();
    this.#work();
    if (this.#answers) this.#tellAgain();
  }

  #failed(key, error) {
    this.#parts.log.error({ err: error, feed: key }, 'a feed of the world could not be settled');
    this.#owed.delete(key);
    this.refuse(key, 'internal-error');
  }

  #tell() {
    if (this.#owed.size > 0 || this.#mustRead || this.#reading) return;
    for (const told of this.#waiters.splice(0)) told();
  }

  // ---- Looking

  async #look() {
    if (this.#looking || this.#isEnded) return;
    this.#looking = true;
    this.#timer();
    try {
      // What has been missed meanwhile has it look once more.
      do await this.#lookOnce();
      while (this.#mustRead && this.isReachable);
    } catch (error) {
      if (error instanceof WorldError) this.lost(error);
      else this.#parts.log.error({ err: error }, 'feeds of the world');
    }
    this.#looking = false;
    if (this.#isOpen) this.#timer = this.#parts.clock.after(LOOK, () => this.#look());
  }

  async #lookOnce() {
    // Where the connection is lost it comes back by itself, and says so.
    if (!this.#isOpen || this.#parts.store.isLost) return;
    const heard = this.#heard;
    const { stored } = this.#parts.marks;
    const { identity, last, messages } = await this.#parts.store.open();
    if (!this.#isOpen) return;
    if (identity !== this.#identity || last < heard) {
      this.#parts.marks.unstoreAll();
      this.#identity = identity;
      this.#heard = 0;
      this.#mustRead = true;
    }
    // It had come that far a look ago: the news are not on their way any more.
    if (this.#seen > this.#heard || this.#overflowed) this.#mustRead = true;
    // Some were purged; of what is behind one may be forgotten for another.
    if (messages < stored && this.#behind.size + this.#busy.size === 0) this.#mustRead = true;
    this.#seen = last;
    if (!this.#answers) for (const key of this.#parts.marks.unstoredKeys()) this.#owe(key);
    this.#answers = true;
    this.#parts.reached();
    if (this.#mustRead) await this.#read(last);
    this.#tryRefused();
    this.#work();
    this.#tellAgain();
  }

  /** A store that is full can be asked, and takes nothing: it answers when nothing is behind. */
  #tellAgain() {
    if (this.#said === undefined || this.#behind.size + this.#busy.size > 0) return;
    this.#said = undefined;
    this.#parts.log.info('feeds of the world: the store answers again');
  }

  /** Reads all heads; keys of which something else is here have to be settled. */
  async #read(last) {
    this.#mustRead = false;
    this.#overflowed = false;
    this.#reading = true;
    let heads;
    try {
      heads = await this.#parts.store.heads();
    } catch (error) {
      this.#mustRead = true;
      throw error;
    } finally {
      this.#reading = false;
    }
    if (!this.#isOpen) return;
    this.#heard = Math.max(this.#heard, last);
    for (const [key, head] of heads) {
      if (this.#parts.shares(key) && !this.#has(key, head)) this.#owe(key);
    }
    for (const key of this.#parts.marks.keys()) if (!heads.has(key)) this.#owe(key);
    this.#tell();
  }

  /** Whether a version is here; then the store has it. */
  #has(key, head) {
    const mark = this.#parts.marks.get(key);
    if (!mark || isNewer(head, mark) || isNewer(mark, head) || head.digest !== mark.digest) {
      return false;
    }
    const { revision, run } = head;
    this.#parts.marks.set(key, { ...mark, revision, run, stored: true, exposed: true });
    return true;
  }

  #owe(key) {
    this.#owed.add(key);
    this.see(key, UNKNOWN);
  }

  #tryRefused() {
    const now = this.#parts.clock.now();
    for (const [key, refused] of this.#refused) {
      if (now - refused.since < REFUSED) continue;
      refused.since = now;
      this.see(key, UNKNOWN);
    }
  }
}
