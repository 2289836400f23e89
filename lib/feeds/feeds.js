import { loadAddon } from '../base/addon.js';
import { nativelyCanonical } from './canonical.js';
import { change } from './change.js';
import { cursorText, newEpoch, nextCursor, PRESENCE } from './names.js';
import { digestOf, PART_BYTES } from './packing.js';
import { JobTimeError } from './threads.js';
import { Unanswerable } from '../torus/pool.js';

/**
 * The feeds as the routes see them. The table is native (native/feeds/feeds.h), and worker threads do the slow work
 * (lib/feeds/change.js). This class orders the publications: each key has one at a time, in the order of arrival.
 *
 *   PUT, PATCH, DELETE, fetched ─▶ queue of the key ─▶ thread ─▶ table ─▶ its watchers
 *
 * In a world of many servers a publication goes through the world's store (lib/world/shared-feeds.js), which uses
 * `inOrder`, `computeChange`, `storeVersion` and `deleteFeed` of this class.
 */

/** Most publications under way or queued: the server holds their bodies in memory. */
const PUBLICATIONS = 256;

/**
 * Largest value, in bytes, that the main thread writes canonically itself. This takes 0.4 ms, or 3 ms for 20,000 names
 * out of order. A message to a worker thread takes the main thread nearly as long. A value that the native writer leaves
 * to JavaScript always goes to a worker thread: it would take up to 18 ms.
 */
const MAIN_THREAD_BYTES = 192 * 1024;

const NO_BYTES = new Uint8Array(0);

/** Answer to a publication after the end of the server: it would not be kept. The same for a game that begins. */
export const ENDED = { problem: 'draining', detail: 'The server has ended.' };

/** Prefix of the notes that remember deleted feeds. */
const DELETED = 'deleted/';

export class Feeds {
  /** The native table. The front door serves watchers from it. */
  native;
  /** Names of the native outcomes, by number. @type {string[]} */
  outcomes;
  #threads;
  #maxValueBytes;
  /** Largest item of a log, in bytes. */
  #maxItemBytes;
  /** Bounds of a log. @type {{items: number, bytes: number}} */
  logBounds;
  #freeMemory;
  #log;
  /** The last queued publication of each key. @type {Map<string, Promise>} */
  #lastPublications = new Map();
  #underWay = 0;
  /** The pool, whose turn writes publications to the journal. @type {import('../torus/pool.js').Pool} */
  #pool;
  /** Waiting calls of `waitForChange`, by key. @type {Map<string, Set<(error?: Error) => void>>} */
  #changeWaiters = new Map();
  /** Whether `close` was called. */
  closed = false;
  /** True once the program must not publish any more. Publications under way are still completed. */
  isClosedToProgram = false;
  /** Keys whose epoch may have had versions that this server does not know. @type {Set<string>} */
  #uncertainKeys = new Set();
  /** Called with each key to fetch. */
  #onFetch = () => {};
  /** Called with changes of presence that other servers need. */
  #onPresence = () => {};
  /** The world's store, for feeds that all servers share. @type {import('../world/shared-feeds.js').SharedFeeds} */
  #shared;

  /**
   * @param {object} parts
   * @param {object} parts.options hold, feeds, feedBytes, feedMemory, feedWatchers, feedCache, logItems, logBytes,
   *     answerBytes, upstream, world, grants, private, lease: see lib/operator/options.js
   * @param {import('./threads.js').Threads} parts.threads
   * @param {import('../torus/pool.js').Pool} parts.pool its turn writes publications to the journal, with --state
   * @param {import('pino').Logger} parts.log
   * @param {import('../torus/address-limits.js').AddressLimits} [parts.limits] limits of
   *     each source address
   */
  constructor({ options, threads, pool, log, limits }) {
    const addon = loadAddon();
    this.outcomes = addon.outcomes;
    this.#freeMemory = addon.release;
    this.native = new addon.Feeds(
      {
        hold: options.hold,
        feeds: options.feeds,
        memory: options.feedMemory,
        watchers: options.feedWatchers,
        upstream: options.upstream !== 'none',
        cache: options.feedCache,
        shared: (options.world ?? 'none') !== 'none',
        private: options.private ?? [],
        named: (options.grants ?? 'none') !== 'none',
        lease: options.lease,
        logItems: options.logItems,
        logBytes: options.logBytes,
        answerBytes: options.answerBytes
      },
      () => this.#handleTasks(),
      limits?.native
    );
    this.#threads = threads;
    this.#pool = pool;
    this.#log = log;
    this.#maxValueBytes = options.feedBytes;
    this.#maxItemBytes = Math.min(options.feedBytes, options.logBytes);
    this.logBounds = { items: options.logItems, bytes: options.logBytes };
  }

  /** Begins the end: see Feeds::drain. */
  drain(window) {
    this.native.drain(window);
  }

  /**
   * Restores the feeds of the last run.
   *
   * @param {object[]} oldFeeds feeds of version 0.1, which kept them in a file of their own: see lib/server/old-state.js
   * @throws {Error} when there is no room for a feed; the message names the feed
   */
  restore(oldFeeds = []) {
    for (const feed of oldFeeds) {
      const outcome = this.outcomes[this.native.restore(feed)];
      if (outcome !== 'ok') throw new Error(`${outcome} at ${feed.key}`);
    }
    this.#pool.attachFeeds(this.native);
  }

  /**
   * Gives every feed a new epoch: clients may have seen versions that this server does not know. If the new epoch can't be
   * written, or there is no memory for it, the feed's next version has the new epoch.
   */
  async renew() {
    for (const key of this.native.keys()) this.#uncertainKeys.add(key);
    for (const key of this.#uncertainKeys) {
      // The server may have forgotten a fetched feed meanwhile.
      const { version, value, upstream, log } = this.native.find(key, true) ?? {};
      if (version === undefined) continue;
      const cursor = { epoch: newEpoch(), version };
      const change = { value, patch: NO_BYTES, gzip: NO_BYTES };
      if (log) await this.storeItem(key, cursor, NO_BYTES);
      else await this.storeVersion(key, cursor, change, upstream);
    }
  }

  /**
   * Sends publications through the world's store from now on.
   *
   * @param {import('../world/shared-feeds.js').SharedFeeds} shared
   * @returns {Map<string, {epoch: number, version: number, digest?: string}>} the versions of the last run; `digest` is
   *     that of the value or of a log's newest item, and a deleted feed has none
   */
  attachShared(shared) {
    this.#shared = shared;
    const heads = new Map(
      this.#pool.notes(DELETED).map(([key, head]) => [key, JSON.parse(head.toString())])
    );
    for (const key of this.native.keys()) {
      const { epoch, version, value, upstream, log } = this.native.find(key, true);
      if (upstream) continue;
      heads.set(key, { epoch, version, digest: digestOf(log ? this.newestItem(key) : value) });
    }
    return heads;
  }

  /**
   * Remembers over a restart that a feed of a world was deleted.
   *
   * @param {string} key
   * @param {{epoch: number, version: number}} [head] the version of the deletion; undefined: forgets the note
   */
  noteDeleted(key, head) {
    if (head === undefined) this.#pool.removeNote(DELETED + key);
    else
      this.#pool.note(DELETED + key, JSON.stringify({ epoch: head.epoch, version: head.version }));
  }

  /**
   * @param {(key: string, source: number) => void} fetch called when a client requests a feed that no client
   *     publishes; `source` is a number for the client's address
   */
  onFetch(fetch) {
    this.#onFetch = fetch;
  }

  /**
   * @param {(task: {key: string, asks: boolean, share?: {watching: number, who: string[]}}) => void} notify called with what
   *     to ask, or to tell, the other servers of a world about a presence feed
   */
  onPresence(notify) {
    this.#onPresence = notify;
  }

  #handleTasks() {
    for (const task of this.native.takeTasks()) {
      if (task.reportsChange) this.#wakeWaiters(task.key);
      else if (task.asks || task.share) this.#onPresence(task);
      else if (task.fetch) this.#onFetch(task.key, task.source);
      else this.#compress(task);
    }
  }

  async #compress(task) {
    const found = this.native.find(task.key, true);
    if (found === null || found.epoch !== task.epoch || found.version !== task.version) return;
    let gzip;
    try {
      const job = { key: task.key, cursor: cursorText(task), value: found.value };
      ({ gzip } = await this.#threads.run('compress', job));
    } catch (error) {
      if (this.closed) return;
      // Watchers that wait for the compressed value get the plain one.
      this.#log.error({ err: error, feed: task.key }, 'a feed could not be compressed');
    }
    this.native.setCompressed({ ...task, gzip });
  }

  // ---- Publishing

  /**
   * Runs `act` after all earlier publications of the key.
   *
   * @template Result
   * @param {string} key
   * @param {() => Promise<Result> | Result} act
   * @returns {Promise<Result>}
   */
  async inOrder(key, act) {
    const previous = this.#lastPublications.get(key);
    const run = (async () => {
      await previous;
      return act();
    })();
    const settled = run.then(
      () => {},
      () => {}
    );
    this.#lastPublications.set(key, settled);
    try {
      return await run;
    } finally {
      if (this.#lastPublications.get(key) === settled) this.#lastPublications.delete(key);
    }
  }

  /** Runs a caller's publication in the order of its key. Returns a problem where it failed. */
  async #runPublication(key, act) {
    if (this.closed) return ENDED;
    if (this.#underWay >= PUBLICATIONS) return { problem: 'publishing-busy' };
    this.#underWay += 1;
    try {
      return await this.inOrder(key, act);
    } catch (error) {
      if (this.closed) return ENDED;
      if (error instanceof JobTimeError) {
        this.#log.warn({ err: error, feed: key }, 'a publication took too long');
        return { problem: 'publishing-slow' };
      }
      this.#log.error({ err: error, feed: key }, 'a publication failed');
      return { problem: 'internal-error' };
    } finally {
      this.#underWay -= 1;
    }
  }

  /** Returns the cursor of the feed's next version, and the feed as it is now. */
  #nextVersion(key) {
    const now = this.native.find(key, false);
    if (now !== null && now.length > 0) {
      const epoch = this.#uncertainKeys.has(key) && { epoch: newEpoch() };
      return { created: false, cursor: { ...nextCursor(now), ...epoch }, now };
    }
    return { created: true, cursor: { epoch: newEpoch(), version: 1 } };
  }

  async #storeNext(key, { created, cursor, now }, change, upstream) {
    const { unchanged, ...version } = change;
    // A fetched value that a client publishes unchanged is a new version: the feed is now a published one.
    const keepsOrigin = now?.upstream === upstream;
    if (unchanged || (keepsOrigin && this.native.valueEquals(key, change.value))) {
      return { created, ...this.countUnchanged(key, now), unchanged: true };
    }
    return { created, ...(await this.storeVersion(key, cursor, version, upstream)) };
  }

  /** Returns the answer to a publication that changes nothing. An earlier publication may still wait for the journal. */
  countUnchanged(key, now) {
    const problem = this.outcomes[this.native.countUnchanged(key)];
    if (problem !== 'ok') return { problem };
    return { cursor: cursorText(now), watching: this.native.find(key).watching };
  }

  /**
   * Stores a version. The table shows it, and answers its watchers, once the version is in the journal.
   *
   * @param {string} key
   * @param {{epoch: number, version: number}} cursor
   * @param {import('./change.js').Change} change the memory of its value is freed
   * @param {boolean} [upstream] whether the version was fetched
   * @returns {Promise<{cursor: string, watching: number} | {problem: string, late?: true}>} `late`: see #endTurn
   */
  async storeVersion(key, cursor, { value, patch, gzip }, upstream = false) {
    const version = { key, ...cursor, value, patch, gzip, upstream };
    const published = this.native.publish(version);
    this.#release(value);
    return this.#finishStoring(key, cursor, published);
  }

  async #finishStoring(key, cursor, [outcome, watching]) {
    if (outcome !== 0) return { problem: this.outcomes[outcome] };
    this.#uncertainKeys.delete(key);
    const problem = await this.#endTurn(key);
    this.#wakeWaiters(key);
    return problem ?? { cursor: cursorText(cursor), watching };
  }

  /**
   * Stores an item, as `storeVersion` does a version. Without bytes it stores no item and gives the log a new epoch.
   *
   * @param {string} key
   * @param {{epoch: number, version: number}} cursor
   * @param {Uint8Array} item
   * @param {boolean} [fresh] whether the item replaces the whole log
   */
  async storeItem(key, cursor, item, fresh = false) {
    return this.#finishStoring(key, cursor, this.native.append({ key, ...cursor, item, fresh }));
  }

  /**
   * Ends the turn. Resolves with a problem where the journal can't be written. The change then still holds in this run:
   * `late` says that the table shows it once it is written. A start after a crash may not know it.
   */
  async #endTurn(key) {
    try {
      await this.#pool.endTurn();
      return undefined;
    } catch (error) {
      if (!(error instanceof Unanswerable)) throw error;
      this.native.reportNextChange(key);
      return { problem: 'state-unwritable', late: true };
    }
  }

  /** @returns {string} `ok`, or the problem with which the table would refuse this version now */
  roomFor(key, { value, gzip }) {
    return this.outcomes[this.native.roomFor(key, value.length, gzip.length)];
  }

  /** @returns {boolean} whether a feed has this value */
  valueEquals(key, value) {
    return this.native.valueEquals(key, value);
  }

  /** @returns {Uint8Array} a copy of a feed's value */
  copyValue(key) {
    return this.native.find(key, true).value;
  }

  /** Deletes a feed. @returns {Promise<{problem?: string, late?: true}>} `late`: see #endTurn */
  async deleteFeed(key) {
    const outcome = this.outcomes[this.native.remove(key)];
    if (outcome !== 'ok') return { problem: outcome };
    const problem = await this.#endTurn(key);
    this.#wakeWaiters(key);
    return problem ?? {};
  }

  // ---- Watching in this program

  /**
   * Returns the newest value of a feed, or the items of a log after a cursor.
   *
   * @param {string} key
   * @param {string} [seen] a cursor
   * @returns {{cursor: string, value: string} | {cursor: string, items: string, gap: boolean} | null} `items` is a JSON
   *     array; null: there is no such feed
   */
  newest(key, seen = '') {
    if (key.startsWith(PRESENCE)) this.native.reportNextChange(key);
    const found = this.native.find(key, true);
    if (found === null || found.length === 0) return null;
    if (!found.log) return { cursor: cursorText(found), value: found.value.toString() };
    const part = this.native.itemsAfter(key, seen);
    if (part === null) return { cursor: seen, items: '[]', gap: false };
    return { cursor: cursorText(part), items: part.items.toString(), gap: part.gap };
  }

  /**
   * Waits until the feed has another version or is deleted, or the table is closed.
   *
   * @param {string} key
   * @param {AbortSignal} [signal] ends the wait
   * @returns {Promise<void>}
   * @throws the signal's reason
   */
  async waitForChange(key, signal) {
    if (!this.#changeWaiters.has(key)) this.#changeWaiters.set(key, new Set());
    const waiters = this.#changeWaiters.get(key);
    let wake;
    let abort;
    try {
      await new Promise((resolve, reject) => {
        wake = resolve;
        abort = () => reject(signal.reason);
        signal?.addEventListener('abort', abort);
        waiters.add(wake);
      });
    } finally {
      signal?.removeEventListener('abort', abort);
      waiters.delete(wake);
      if (waiters.size === 0 && this.#changeWaiters.get(key) === waiters)
        this.#changeWaiters.delete(key);
    }
  }

  #wakeWaiters(key) {
    // A feed's presence feed may begin or end with it.
    for (const one of [key, PRESENCE + key]) {
      for (const wake of this.#changeWaiters.get(one) ?? []) wake();
    }
  }

  /** Closes the table and ends every wait. */
  close() {
    this.closed = true;
    for (const key of this.#changeWaiters.keys()) this.#wakeWaiters(key);
    this.native.close();
  }

  /** Returns the parts of a job that a publication and a fetch share. */
  #job(key, { cursor, now }, kind) {
    const patched = now !== undefined && !now.log && now.patched;
    return {
      key,
      cursor: cursorText(cursor),
      before: patched || kind !== 'value' ? this.native.find(key, true)?.value : undefined,
      patched,
      most: this.#maxValueBytes,
      gzip: this.find(key)?.gzipAsked ?? false
    };
  }

  /**
   * Publishes a value, or a patch to the one there is.
   *
   * @param {string} key
   * @param {'value' | 'json-patch' | 'merge-patch'} kind
   * @param {Uint8Array} body its memory is freed
   * @returns {Promise<{created: boolean, cursor: string, watching: number} |
   *     {problem: string, detail?: string}>}
   */
  async publish(key, kind, body) {
    const answer = await this.#runPublication(key, async () => {
      if (this.#shared?.isShared(key)) return this.#shared.publish(key, kind, body);
      const next = this.#nextVersion(key);
      if (next.now?.log) return { problem: 'other-kind' };
      if (next.created && kind !== 'value') return { problem: 'unknown-feed' };
      const always = next.now?.upstream;
      const change = await this.computeChange(key, next, { kind, body, always });
      return change.problem === undefined ? this.#storeNext(key, next, change, false) : change;
    });
    this.#release(body);
    return answer;
  }

  /**
   * Appends an item to a log.
   *
   * @param {string} key
   * @param {Uint8Array} body
   * @returns {Promise<{created: boolean, cursor: string, watching: number} | {problem: string, detail?: string}>}
   */
  append(key, body) {
    return this.#runPublication(key, async () => {
      const { created, cursor, now } = this.#nextVersion(key);
      const isShared = this.#shared?.isShared(key);
      if (!isShared && now && !now.log) return { problem: 'other-kind' };
      const job = { kind: 'value', body, most: this.#maxItemBytes, patched: false, gzip: false };
      const { problem, detail, value } = await this.#runChange(job);
      if (problem === 'feed-too-large') return { problem: 'item-too-large' };
      if (problem !== undefined) return { problem, detail };
      if (isShared) return this.#shared.append(key, value);
      return { created, ...(await this.storeItem(key, cursor, value)) };
    });
  }

  // ---- Logs for other servers: see packing.js

  /** @returns {Buffer} the newest item of a log */
  newestItem(key) {
    const { epoch, version } = this.find(key);
    const { items } = this.native.itemsAfter(key, cursorText({ epoch, version: version - 1 }));
    return items.subarray(1, -1);
  }

  growPart(part, item) {
    return this.#threads.run('growPart', { ...this.#partJob(part), item });
  }

  readPart(part) {
    return this.#threads.run('readPart', this.#partJob(part));
  }

  /** @returns {ReturnType<import('./packing.js').splitLog>} the parts of a log, or of the items given */
  splitLog(key, items = this.native.itemsAfter(key, '').items) {
    return this.#threads.run('splitLog', { items });
  }

  #partJob({ body, form, digest }) {
    return { body, form, digest, most: PART_BYTES + this.#maxItemBytes };
  }

  #runChange(job) {
    const { kind, body, before, gzip, packed, form } = job;
    const isAlone = kind === 'value' && !before && !gzip && !packed && form === undefined;
    const written =
      isAlone && body.length <= MAIN_THREAD_BYTES ? nativelyCanonical(body) : undefined;
    return written ? change({ ...job, written }) : this.#threads.run('change', job);
  }

  /**
   * Works out the new value of a feed, in a worker thread unless MAIN_THREAD_BYTES says otherwise.
   *
   * @param {string} key
   * @param {{cursor: object, now?: object}} next the cursor of the new version, and the feed now, as
   *     `find` returns it
   * @param {{kind: string, body: Uint8Array}} publication these and more parts of a Job
   * @returns {Promise<import('./change.js').Change>}
   */
  async computeChange(key, next, publication) {
    const job = this.#job(key, next, publication.kind);
    const change = await this.#runChange({ ...job, ...publication });
    if (job.before !== undefined) this.#release(job.before);
    return change;
  }

  /**
   * Frees bytes that nothing reads any more. Without this, V8's collector would keep the bytes of some fifty publications.
   * A small Buffer shares its memory with others, and is left to the collector.
   */
  #release(bytes) {
    if (2 * bytes.byteLength > bytes.buffer.byteLength) this.#freeMemory(bytes);
  }

  /** @returns {Promise<{body: Uint8Array, form: string, digest: string}>} a feed's value for other servers */
  pack(key) {
    return this.#threads.run('pack', { value: this.copyValue(key) });
  }

  /**
   * Fetches a feed from its upstream, and publishes the value if it has changed. Publications do not wait for
   * a fetch: a value that a client has published meanwhile stays.
   *
   * @param {string} key
   * @param {{url: string, time: number, etag?: string}} request see lib/feeds/fetch-value.js
   * @returns {Promise<{etag?: string, unchanged: boolean} | {failed: string} | {published: true}>} `published`:
   *     a client has published the feed, so that it is not fetched any more
   */
  async fetch(key, request) {
    const next = this.#nextVersion(key);
    let change;
    try {
      change = await this.#threads.run('fetch', {
        ...this.#job(key, next, 'value'),
        ...request,
        // The ETag is that of the current value.
        etag: next.created ? undefined : request.etag
      });
    } catch (error) {
      if (this.closed) return { failed: ENDED.detail };
      if (error instanceof JobTimeError) return { failed: `its value: ${error.message}` };
      this.#log.error({ err: error, feed: key }, 'a fetch failed');
      return { failed: 'the server has made a mistake' };
    }
    if (change.failed !== undefined) return change;
    const { etag, ...version } = change;
    const stored = await this.#runPublication(key, () => {
      const now = this.native.find(key, false);
      // The feed was deleted meanwhile: another version may have had this cursor since.
      if (now === null || (now.length === 0 && !next.created)) return { gone: true };
      if (now.length > 0 && !now.upstream) return { published: true };
      return this.#storeNext(key, next, version, true);
    });
    if (stored.problem !== undefined) return { failed: stored.problem };
    return stored.published ? stored : { etag, unchanged: stored.unchanged === true };
  }

  /**
   * Deletes a feed.
   *
   * @param {string} key
   * @returns {Promise<{problem?: string}>}
   */
  remove(key) {
    return this.#runPublication(key, () => {
      if (this.#shared?.isShared(key)) return this.#shared.remove(key);
      return this.deleteFeed(key);
    });
  }

  // ---- Everything else

  /**
   * @param {string} key
   * @returns {object | null} the feed without its value, as `find` of native/addon/feeds_wrap.cc has it; `idle` is the
   *     time since the last request for the feed, in milliseconds
   */
  find(key) {
    return this.native.find(key, false);
  }

  /** @returns {string[]} the keys of all fetched feeds */
  fetchedKeys() {
    return this.native.keys().filter((key) => this.find(key).upstream);
  }

  /**
   * Forgets a fetched feed without watchers.
   *
   * @returns {boolean} false: the feed has watchers, or the state can't be written
   */
  removeFetched(key) {
    const isRemoved = this.native.removeFetched(key);
    if (isRemoved) this.#wakeWaiters(key);
    return isRemoved;
  }

  /** Notes that the first fetch of a feed failed: requests for it do not repeat the fetch for so many milliseconds. */
  fail(key, milliseconds) {
    this.native.fail(key, milliseconds);
  }

  /**
   * @param {number} count how many at most
   * @returns {{key: string, watching: number, bytes: number, version: number, upstream: boolean}[]} the feeds with the
   *     most watchers first; of equal ones the largest
   */
  mostWatched(count) {
    return this.native.mostWatched(count);
  }

  /**
   * @param {object} page
   * @param {string} page.prefix prefix of the keys
   * @param {string} page.from the keys after this one
   * @param {number} page.count how many at most
   * @returns {{feed: string, kind: 'value' | 'log', cursor: string, bytes: number, watching: number}[]} feeds with a
   *     value or items, in the order of their keys
   */
  list({ prefix, from, count }) {
    return this.native.list(prefix, from, count).map(({ key, log, bytes, watching, ...cursor }) => {
      const kind = log ? 'log' : 'value';
      return { feed: key, kind, cursor: cursorText(cursor), bytes, watching };
    });
  }

  /**
   * @param {string} key
   * @param {string} noneMatch the client's If-None-Match
   * @returns {{length: number, tag: string, isKnown: boolean} | null} length in bytes and ETag of the answer to a client
   *     without a cursor; whether the client has it
   */
  answerHead(key, noneMatch) {
    return this.native.answerHead(key, noneMatch);
  }

  /** @returns {object} the live counts: see /status in README */
  status() {
    return { ...this.native.status(), publishing: this.#underWay };
  }
}
