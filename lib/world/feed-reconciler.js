import { isNewer } from './feed-message.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * Decides which feeds to compare with the world's store, and when. A feed is compared when news of it arrive; all feeds are
 * compared after the store was away, or when news may have been missed.
 *
 *   news ───────────▶ behind ─▶ reconcile, MAX_CONCURRENCY keys at once ─▶ done
 *   check, read all ────▲  └────────────── the store is lost ─────────────┘
 *
 * The store numbers the news without gaps, so that a gap shows at once. Missed news at the end show in the store's last
 * number. A restarted NATS server may have lost accepted writes: then nothing counts as stored.
 *
 * Bounds: a key is in `behind` once, however many news there are of it, and there are at most as many keys as this server
 * may have feeds and deleted feeds. For a key too many, all heads are read again later.
 */

/**
 * Most keys that are reconciled at the same time: each has one message in memory. After a failure of the store the number
 * restarts at one and grows with each reconciled key, so that on a slow line each key gets through.
 */
const MAX_CONCURRENCY = 8;

/** Interval between two checks of the store and its last number, in milliseconds. */
const CHECK_INTERVAL = 2000;

/** Wait before a refused version is tried again, in milliseconds. */
const RETRY_REFUSED_AFTER = 30_000;

/** In place of a revision: read the key in any case. It is above all revisions, so that news do not replace it. */
const UNKNOWN_REVISION = Infinity;

export class FeedReconciler {
  /** The parts given to the constructor. */
  #parts;
  /** Keys to reconcile, and the known revision in the store, or UNKNOWN_REVISION. @type {Map<string, number>} */
  #behind = new Map();
  /** Keys that are being reconciled, and the current bound of their number. */
  #inProgress = new Set();
  #concurrency = MAX_CONCURRENCY;
  /**
   * Keys whose newest version this server has refused: that version, and the time.
   *
   * @type {Map<string, {since: number, head?: import('./feed-message.js').Head}>}
   */
  #refused = new Map();
  /** Keys still to reconcile from the last time all heads were read. */
  #pendingKeys = new Set();
  /** Callbacks for the moment without such keys. @type {(() => void)[]} */
  #waiters = [];
  #isOpen = false;
  #isEnded = false;
  /** Whether the store answered the last request. */
  #isAnswering = false;
  /** Identity of the store and of the run of its server. */
  #identity;
  /** The number of the newest news. */
  #lastNewsRevision = 0;
  /** The store's last number at the last check. */
  #lastStoreRevision = 0;
  /** Whether all heads must be read; whether they are being read; whether `behind` had no room for a key. */
  #mustRead = true;
  #isReading = false;
  #hasOverflowed = false;
  #isChecking = false;
  #cancelTimer = () => {};
  #refusalCount = 0;
  /** The problem that was logged last. */
  #loggedProblem;

  /**
   * @param {object} parts
   * @param {import('./feed-store.js').FeedStore} parts.store
   * @param {import('./feed-message.js').FeedMarks} parts.marks
   * @param {number} parts.maxBehind most keys in `behind`
   * @param {import('./clock.js').clock} parts.clock
   * @param {import('pino').Logger} parts.log
   * @param {(key: string) => boolean} parts.isShared returns whether a key is the world's
   * @param {(key: string, revision: number) => Promise<void>} parts.reconcile rejects with WorldError or Conflict
   * @param {() => void} parts.onReached called when the store was reached
   */
  constructor(parts) {
    this.#parts = parts;
    parts.store.watch({
      onNews: (key, revision) => this.#receiveNews(key, revision),
      onMissed: () => this.#readAgain()
    });
  }

  /** @returns {Promise<void>} resolves when this server has all that the store has now */
  open() {
    this.#isOpen = true;
    const complete = new Promise((resolve) => this.#waiters.push(resolve));
    this.#readAgain();
    return complete;
  }

  close() {
    this.#isOpen = false;
    this.#isAnswering = false;
    this.#cancelTimer();
    this.#behind.clear();
    this.#pendingKeys.clear();
    this.#waiters = [];
  }

  end() {
    this.#isEnded = true;
    this.close();
  }

  /** @returns {boolean} whether publications go to the store */
  get isReachable() {
    return this.#isOpen && this.#isAnswering && this.#parts.store.isConnected;
  }

  /** @returns {{behind: number, refused: number}} */
  status() {
    const behind = this.#behind.size + this.#inProgress.size + this.#refused.size;
    return { behind, refused: this.#refusalCount };
  }

  /** Notes that the store does not answer. */
  noteFailure(error) {
    this.#isAnswering = false;
    if (!this.#isOpen) return;
    const { code = 'unreachable', message } = error;
    if (this.#loggedProblem !== code)
      this.#parts.log.warn({ problem: code }, `feeds of the world: ${message}`);
    this.#loggedProblem = code;
  }

  /** Notes that this server refuses the newest version of a key. */
  refuse(key, problem, head) {
    this.#refusalCount += 1;
    if (!this.#refused.has(key)) {
      this.#parts.log.error({ feed: key, problem }, 'a feed of another server is not taken');
    }
    this.#refused.set(key, { since: this.#parts.clock.now(), head });
  }

  accept(key) {
    this.#refused.delete(key);
  }

  /** @returns {import('./feed-message.js').Head | undefined} the head of the currently refused version of a key */
  refusedHead(key) {
    return this.#refused.get(key)?.head;
  }

  /** Notes that the store has a newer version of a key. */
  noteNewer(key, revision) {
    if (!this.#isOpen) return;
    const known = this.#behind.get(key);
    if (
      known === undefined &&
      revision !== UNKNOWN_REVISION &&
      this.#behind.size >= this.#parts.maxBehind
    ) {
      this.#hasOverflowed = true;
      return;
    }
    this.#behind.set(key, Math.max(known ?? 0, revision));
    this.#startWaiting();
  }

  #receiveNews(key, revision) {
    if (!this.#isOpen) return;
    const isGap = revision > this.#lastNewsRevision + 1;
    this.#lastNewsRevision = Math.max(this.#lastNewsRevision, revision);
    if (isGap && !this.#mustRead) this.#readAgain();
    if (this.#parts.isShared(key)) this.noteNewer(key, revision);
  }

  #readAgain() {
    this.#mustRead = true;
    if (this.#isOpen) this.#check();
  }

  // ---- Reconciling

  #startWaiting() {
    if (!this.isReachable) return;
    for (const [key, revision] of this.#behind) {
      if (this.#inProgress.size >= this.#concurrency) return;
      if (this.#inProgress.has(key)) continue;
      this.#behind.delete(key);
      this.#reconcile(key, revision);
    }
  }

  async #reconcile(key, revision) {
    this.#inProgress.add(key);
    try {
      await this.#parts.reconcile(key, revision);
      this.#pendingKeys.delete(key);
      this.#concurrency = Math.min(this.#concurrency + 1, MAX_CONCURRENCY);
    } catch (error) {
      if (error instanceof WorldError) {
        this.#concurrency = 1;
        this.noteFailure(error);
      }
      if (error instanceof WorldError || error instanceof Conflict)
        this.noteNewer(key, UNKNOWN_REVISION);
      // After the end the threads are gone.
      else if (!this.#isEnded) this.#handleFailure(key, error);
    }
    this.#inProgress.delete(key);
    this.#resolveWaiters();
    this.#startWaiting();
    if (this.#isAnswering) this.#logRecovery();
  }

  #handleFailure(key, error) {
    this.#parts.log.error({ err: error, feed: key }, 'a feed of the world could not be settled');
    this.#pendingKeys.delete(key);
    this.refuse(key, 'internal-error');
  }

  #resolveWaiters() {
    if (this.#pendingKeys.size > 0 || this.#mustRead || this.#isReading) return;
    for (const resolve of this.#waiters.splice(0)) resolve();
  }

  // ---- Checking the store

  async #check() {
    if (this.#isChecking || this.#isEnded) return;
    this.#isChecking = true;
    this.#cancelTimer();
    try {
      // News that were missed meanwhile need another check.
      do await this.#checkOnce();
      while (this.#mustRead && this.isReachable);
    } catch (error) {
      if (error instanceof WorldError) this.noteFailure(error);
      else this.#parts.log.error({ err: error }, 'feeds of the world');
    }
    this.#isChecking = false;
    if (this.#isOpen)
      this.#cancelTimer = this.#parts.clock.after(CHECK_INTERVAL, () => this.#check());
  }

  async #checkOnce() {
    // A lost connection reconnects by itself, and then calls `onMissed`.
    if (!this.#isOpen || this.#parts.store.isLost) return;
    const newsRevision = this.#lastNewsRevision;
    const { storedCount } = this.#parts.marks;
    const { identity, last, messages } = await this.#parts.store.open();
    if (!this.#isOpen) return;
    if (identity !== this.#identity || last < newsRevision) {
      this.#parts.marks.markAllUnstored();
      this.#identity = identity;
      this.#lastNewsRevision = 0;
      this.#mustRead = true;
    }
    // The store had this number at the last check: news of it are not on their way any more.
    if (this.#lastStoreRevision > this.#lastNewsRevision || this.#hasOverflowed)
      this.#mustRead = true;
    // Messages were purged. While keys are behind, the count says nothing: one may be forgotten for another.
    if (messages < storedCount && this.#behind.size + this.#inProgress.size === 0)
      this.#mustRead = true;
    this.#lastStoreRevision = last;
    if (!this.#isAnswering)
      for (const key of this.#parts.marks.unstoredKeys()) this.#addPending(key);
    this.#isAnswering = true;
    this.#parts.onReached();
    if (this.#mustRead) await this.#readHeads(last);
    this.#retryRefused();
    this.#startWaiting();
    this.#logRecovery();
  }

  /** Logs that the store answers again, once nothing is behind: a full store answers reads, but accepts no write. */
  #logRecovery() {
    if (this.#loggedProblem === undefined || this.#behind.size + this.#inProgress.size > 0) return;
    this.#loggedProblem = undefined;
    this.#parts.log.info('feeds of the world: the store answers again');
  }

  /** Reads all heads. Keys with another version here must be reconciled. */
  async #readHeads(last) {
    this.#mustRead = false;
    this.#hasOverflowed = false;
    this.#isReading = true;
    let heads;
    try {
      heads = await this.#parts.store.readHeads();
    } catch (error) {
      this.#mustRead = true;
      throw error;
    } finally {
      this.#isReading = false;
    }
    if (!this.#isOpen) return;
    this.#lastNewsRevision = Math.max(this.#lastNewsRevision, last);
    for (const [key, head] of heads) {
      if (this.#parts.isShared(key) && !this.#confirmVersion(key, head)) this.#addPending(key);
    }
    for (const key of this.#parts.marks.keys()) if (!heads.has(key)) this.#addPending(key);
    this.#resolveWaiters();
  }

  /** Returns whether this server has a version of the store, and marks it as stored. */
  #confirmVersion(key, head) {
    const mark = this.#parts.marks.get(key);
    if (!mark || isNewer(head, mark) || isNewer(mark, head) || head.digest !== mark.digest) {
      return false;
    }
    const { revision, run } = head;
    this.#parts.marks.set(key, { ...mark, revision, run, stored: true, exposed: true });
    return true;
  }

  #addPending(key) {
    this.#pendingKeys.add(key);
    this.noteNewer(key, UNKNOWN_REVISION);
  }

  #retryRefused() {
    const now = this.#parts.clock.now();
    for (const [key, refused] of this.#refused) {
      if (now - refused.since < RETRY_REFUSED_AFTER) continue;
      refused.since = now;
      this.noteNewer(key, UNKNOWN_REVISION);
    }
  }
}
