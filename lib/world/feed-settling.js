import { isNewer } from './feed-message.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * Decides which feeds to compare with the world's store, and when. A feed is compared when news of it arrive; all feeds are
 * compared after the store was away, or when news may have been missed.
 *
 *   news ──────────▶ behind ─▶ settle, AT_ONCE keys at once ─▶ through
 *   look, read all ────▲  └─────────── the store is lost ──────┘
 *
 * The store numbers the news without gaps, so that a gap shows at once. Missed news at the end show in the store's last
 * number. A restarted NATS server may have lost accepted writes: then nothing counts as stored.
 *
 * Bounds: a key is in `behind` once, however many news there are of it, and there are at most as many keys as this server
 * may have feeds and deleted feeds. For a key too many, all heads are read again later.
 */

/**
 * Most keys that are settled at the same time: each has one message in memory. After a failure of the store the number
 * restarts at one and grows with each settled key, so that on a slow line each key gets through.
 */
const AT_ONCE = 8;

/** Interval between two looks at the store and its last number, in milliseconds. */
const LOOK = 2000;

/** Wait before a refused version is tried again, in milliseconds. */
const REFUSED = 30_000;

/** In place of a revision: read the key in any case. It is above all revisions, so that news do not replace it. */
const UNKNOWN = Infinity;

export class FeedSettling {
  /** The parts given to the constructor. */
  #parts;
  /** Keys to settle, and the known revision in the store, or UNKNOWN. @type {Map<string, number>} */
  #behind = new Map();
  /** Keys that are being settled, and the current bound of their number. */
  #busy = new Set();
  #atOnce = AT_ONCE;
  /**
   * Keys whose newest version this server has refused: that version, and the time.
   *
   * @type {Map<string, {since: number, head?: import('./feed-message.js').Head}>}
   */
  #refused = new Map();
  /** Keys still to settle from the last time all heads were read. */
  #owed = new Set();
  /** Callbacks for the moment without such keys. @type {(() => void)[]} */
  #waiters = [];
  #isOpen = false;
  #isEnded = false;
  /** Whether the store answered the last request. */
  #answers = false;
  /** Identity of the store and of the run of its server. */
  #identity;
  /** The number of the newest news. */
  #heard = 0;
  /** The store's last number at the last look. */
  #seen = 0;
  /** Whether all heads must be read; whether they are being read; whether `behind` had no room for a key. */
  #mustRead = true;
  #reading = false;
  #overflowed = false;
  #looking = false;
  #timer = () => {};
  #refusals = 0;
  /** The problem that was logged last. */
  #said;

  /**
   * @param {object} parts
   * @param {import('./feed-store.js').FeedStore} parts.store
   * @param {import('./feed-message.js').FeedMarks} parts.marks
   * @param {number} parts.most most keys in `behind`
   * @param {import('./clock.js').clock} parts.clock
   * @param {import('pino').Logger} parts.log
   * @param {(key: string) => boolean} parts.shares returns whether a key is the world's
   * @param {(key: string, revision: number) => Promise<void>} parts.settle rejects with WorldError or Conflict
   * @param {() => void} parts.reached called when the store was reached
   */
  constructor(parts) {
    this.#parts = parts;
    parts.store.watch({
      news: (key, revision) => this.#news(key, revision),
      missed: () => this.#missed()
    });
  }

  /** @returns {Promise<void>} resolves when this server has all that the store has now */
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

  /** @returns {boolean} whether publications go to the store */
  get isReachable() {
    return this.#isOpen && this.#answers && this.#parts.store.connected;
  }

  /** @returns {{behind: number, refused: number}} */
  status() {
    const behind = this.#behind.size + this.#busy.size + this.#refused.size;
    return { behind, refused: this.#refusals };
  }

  /** Notes that the store does not answer. */
  lost(error) {
    this.#answers = false;
    if (!this.#isOpen) return;
    const { code = 'unreachable', message } = error;
    if (this.#said !== code)
      this.#parts.log.warn({ problem: code }, `feeds of the world: ${message}`);
    this.#said = code;
  }

  /** Notes that this server refuses the newest version of a key. */
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

  /** @returns {import('./feed-message.js').Head | undefined} the head of the currently refused version of a key */
  refused(key) {
    return this.#refused.get(key)?.head;
  }

  /** Notes that the store has a newer version of a key. */
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
      // After the end the threads are gone.
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
      // News that were missed meanwhile need another look.
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
    // A lost connection reconnects by itself, and then calls `missed`.
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
    // The store had this number at the last look: news of it are not on their way any more.
    if (this.#seen > this.#heard || this.#overflowed) this.#mustRead = true;
    // Messages were purged. While keys are behind, the count says nothing: one may be forgotten for another.
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

  /** Logs that the store answers again, once nothing is behind: a full store answers reads, but accepts no write. */
  #tellAgain() {
    if (this.#said === undefined || this.#behind.size + this.#busy.size > 0) return;
    this.#said = undefined;
    this.#parts.log.info('feeds of the world: the store answers again');
  }

  /** Reads all heads. Keys with another version here must be settled. */
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

  /** Returns whether this server has a version of the store, and marks it as stored. */
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
