import { loadAddon } from '../base/addon.js';
import { nativelyCanonical } from './canonical.js';
import { change } from './change.js';
import { cursorText, newEpoch, nextCursor, PRESENCE } from './names.js';
import { PART_BYTES } from './log-parts.js';
import { digestOf } from './packing.js';
import { JobTimeError } from './threads.js';
import { Unanswerable } from '../torus/pool.js';

/**
 * The feeds as the routes see them: the table is native (native/feeds/feeds.h), what takes time is
 * done in worker threads (lib/feeds/change.js), and what is in between is here: one publication of
 * a feed at a time, in the order in which they came.
 *
 *   PUT, PATCH, DELETE, fetched ─▶ queue of the key ─▶ thread ─▶ table ─▶ its watchers
 *
 * In a world of many servers what is published goes by the world's store (lib/world/shared-feeds.js), which is given
 * the parts here: `inOrder`, `workOut`, `take`, `takeAway`.
 */

/** Publications that may be under way or wait for the one before: their bodies are in memory. */
const PUBLICATIONS = 256;

/**
 * Bytes of a value that the main loop writes canonically itself: in 0.4 ms, with 20,000 names out of order in 3 ms. To
 * ask a thread takes the main loop nearly as long, and the thread's time comes on top. What the native writer leaves to
 * JavaScript would take up to 18 ms.
 */
const AT_ONCE = 192 * 1024;

const NOTHING = new Uint8Array(0);

/** What is published from then on, or was under way, would not be kept; a game that begins would not end. */
export const ENDED = { problem: 'draining', detail: 'The server has ended.' };

/** Names of the notes of deleted feeds. */
const DELETED = 'deleted/';

export class Feeds {
  /** The native table, for the native front door. */
  native;
  /** The names of its outcomes, in their order. @type {string[]} */
  outcomes;
  #threads;
  #most;
  /** Bytes that an item of a log may have. */
  #mostOfItem;
  /** What a log keeps at most. @type {{items: number, bytes: number}} */
  keeps;
  #free;
  #log;
  /** The last publication of each key that has one under way. @type {Map<string, Promise>} */
  #queues = new Map();
  #underWay = 0;
  /** What writes them. @type {import('../torus/pool.js').Pool} */
  #pool;
  /** Calls of this program that wait for a change, by key. @type {Map<string, Set<(error?: Error) => void>>} */
  #waiting = new Map();
  #closed = false;
  /** Whether this program publishes nothing more: what is under way is waited for. */
  rests = false;
  /** Keys whose epoch may have had versions that are not known here. @type {Set<string>} */
  #doubted = new Set();
  /** Told of keys to fetch. */
  #onFetch = () => {};
  /** Told of what other servers are to know of presence. */
  #onPresence = () => {};
  /** Where publications go that other servers get, too. @type {import('../world/shared-feeds.js').SharedFeeds} */
  #shared;

  /**
   * @param {object} parts
   * @param {object} parts.options hold, feeds, feedBytes, feedMemory, feedWatchers, feedCache, logItems, logBytes,
   *     answerBytes, upstream, world, grants, private, lease: see lib/operator/options.js
   * @param {import('./threads.js').Threads} parts.threads
   * @param {import('../torus/pool.js').Pool} parts.pool whose turn writes them, where a state is kept
   * @param {import('pino').Logger} parts.log
   * @param {import('../torus/address-limits.js').AddressLimits} [parts.limits] what each source address
   *     may have
   */
  constructor({ options, threads, pool, log, limits }) {
    const addon = loadAddon();
    this.outcomes = addon.outcomes;
    this.#free = addon.release;
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
      () => this.#seeToWants(),
      limits?.native
    );
    this.#threads = threads;
    this.#pool = pool;
    this.#log = log;
    this.#most = options.feedBytes;
    this.#mostOfItem = Math.min(options.feedBytes, options.logBytes);
    this.keeps = { items: options.logItems, bytes: options.logBytes };
  }

  /** Begins the end: see Feeds::drain. */
  drain(window) {
    this.native.drain(window);
  }

  /**
   * Takes over what the last run has left.
   *
   * @param {object[]} before feeds of the version before, from a file of their own: see lib/server/old-state.js
   * @throws {Error} naming a feed that there is no room for
   */
  restore(before = []) {
    for (const feed of before) {
      const outcome = this.outcomes[this.native.restore(feed)];
      if (outcome !== 'ok') throw new Error(`${outcome} at ${feed.key}`);
    }
    this.#pool.attachFeeds(this.native);
  }

  /**
   * Gives every feed a new epoch: versions may have been told that are not known here. Where that can't be written, or
   * there is no memory for it, the next version has it.
   */
  async renew() {
    for (const key of this.native.keys()) this.#doubted.add(key);
    for (const key of this.#doubted) {
      // A fetched one may be forgotten meanwhile.
      const { version, value, upstream, log } = this.native.find(key, true) ?? {};
      if (version === undefined) continue;
      const cursor = { epoch: newEpoch(), version };
      const whole = { value, patch: NOTHING, gzip: NOTHING };
      if (log) await this.takeItem(key, cursor, NOTHING);
      else await this.take(key, cursor, whole, upstream);
    }
  }

  /**
   * @param {import('../world/shared-feeds.js').SharedFeeds} shared takes publications from now on
   * @returns {Map<string, {epoch: number, version: number, digest?: string}>} the versions of the last run, with the digest
   *     of a log's newest item; without one: deleted
   */
  shareBy(shared) {
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
   * Notes of a feed of a world that it was deleted, so that it stays so.
   *
   * @param {string} key
   * @param {{epoch: number, version: number}} [head] the version of its end; undefined: it need not be known any more
   */
  noteDeleted(key, head) {
    if (head === undefined) this.#pool.unnote(DELETED + key);
    else
      this.#pool.note(DELETED + key, JSON.stringify({ epoch: head.epoch, version: head.version }));
  }

  /**
   * @param {(key: string, source: number) => void} fetch called when a feed is asked for that no client
   *     publishes, with a number for the address that has asked
   */
  onFetch(fetch) {
    this.#onFetch = fetch;
  }

  /**
   * @param {(want: {key: string, asks: boolean, share?: {watching: number, who: string[]}}) => void} tell called with what
   *     the other servers of a world are to be asked, and told, of a presence feed
   */
  onPresence(tell) {
    this.#onPresence = tell;
  }

  #seeToWants() {
    for (const want of this.native.takeWants()) {
      if (want.heard) this.#tell(want.key);
      else if (want.asks || want.share) this.#onPresence(want);
      else if (want.fetch) this.#onFetch(want.key, want.source);
      else this.#compress(want);
    }
  }

  async #compress(want) {
    const found = this.native.find(want.key, true);
    if (found === null || found.epoch !== want.epoch || found.version !== want.version) return;
    let gzip;
    try {
      const job = { key: want.key, cursor: cursorText(want), value: found.value };
      ({ gzip } = await this.#threads.run('compress', job));
    } catch (error) {
      if (this.#closed) return;
      // Watchers that wait for it get the value as it is.
      this.#log.error({ err: error, feed: want.key }, 'a feed could not be compressed');
    }
    this.native.compressed({ ...want, gzip });
  }

  // ---- Publishing

  /**
   * Does `act` when everything earlier of the key is through.
   *
   * @template Result
   * @param {string} key
   * @param {() => Promise<Result> | Result} act
   * @returns {Promise<Result>}
   */
  async inOrder(key, act) {
    const before = this.#queues.get(key);
    const turn = (async () => {
      await before;
      return act();
    })();
    const through = turn.then(
      () => {},
      () => {}
    );
    this.#queues.set(key, through);
    try {
      return await turn;
    } finally {
      if (this.#queues.get(key) === through) this.#queues.delete(key);
    }
  }

  /** Does what a caller waits for, in order, and says what is wrong with it. */
  async #inTurn(key, act) {
    if (this.#closed) return ENDED;
    if (this.#underWay >= PUBLICATIONS) return { problem: 'publishing-busy' };
    this.#underWay += 1;
    try {
      return await this.inOrder(key, act);
    } catch (error) {
      if (this.#closed) return ENDED;
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

  /** The feed's next version, and the value before it. */
  #next(key) {
    const now = this.native.find(key, false);
    if (now !== null && now.length > 0) {
      const epoch = this.#doubted.has(key) && { epoch: newEpoch() };
      return { created: false, cursor: { ...nextCursor(now), ...epoch }, now };
    }
    return { created: true, cursor: { epoch: newEpoch(), version: 1 } };
  }

  async #takeNext(key, { created, cursor, now }, change, upstream) {
    const { unchanged, ...version } = change;
    // What was fetched and is published as it is changes hands, and is a version as well.
    const stays = now?.upstream === upstream;
    if (unchanged || (stays && this.native.holds(key, change.value))) {
      return { created, ...this.unchanged(key, now), unchanged: true };
    }
    return { created, ...(await this.take(key, cursor, version, upstream)) };
  }

  /** What a publication is answered that changes nothing; one before it may still wait for the journal. */
  unchanged(key, now) {
    const problem = this.outcomes[this.native.unchanged(key)];
    if (problem !== 'ok') return { problem };
    return { cursor: cursorText(now), watching: this.native.find(key).watching };
  }

  /**
   * Takes a version. It is the newest, and its watchers hear of it, when it is in the journal.
   *
   * @param {string} key
   * @param {{epoch: number, version: number}} cursor
   * @param {import('./change.js').Change} change its value is released
   * @param {boolean} [upstream] it was fetched
   * @returns {Promise<{cursor: string, watching: number} | {problem: string, late?: true}>} `late`: see #written
   */
  async take(key, cursor, { value, patch, gzip }, upstream = false) {
    const version = { key, ...cursor, value, patch, gzip, upstream };
    const published = this.native.publish(version);
    this.#release(value);
    return this.#taken(key, cursor, published);
  }

  async #taken(key, cursor, [outcome, watching]) {
    if (outcome !== 0) return { problem: this.outcomes[outcome] };
    this.#doubted.delete(key);
    const problem = await this.#written(key);
    this.#tell(key);
    return problem ?? { cursor: cursorText(cursor), watching };
  }

  /**
   * Takes an item, as `take` takes a version; without bytes it is none, and the log has another epoch.
   *
   * @param {string} key
   * @param {{epoch: number, version: number}} cursor
   * @param {Uint8Array} item
   * @param {boolean} [fresh] what there is is forgotten for it
   */
  async takeItem(key, cursor, item, fresh = false) {
    return this.#taken(key, cursor, this.native.append({ key, ...cursor, item, fresh }));
  }

  /**
   * Ends the turn; resolves with a problem where it can't be written. It holds all the same in this run, `late`: as soon as
   * it is written; a start after a crash may not know of it.
   */
  async #written(key) {
    try {
      await this.#pool.endTurn();
      return undefined;
    } catch (error) {
      if (!(error instanceof Unanswerable)) throw error;
      this.native.hear(key);
      return { problem: 'state-unwritable', late: true };
    }
  }

  /** @returns {string} `ok`, or the problem for which a version would not be taken now */
  roomFor(key, { value, gzip }) {
    return this.outcomes[this.native.roomFor(key, value.length, gzip.length)];
  }

  /** @returns {boolean} whether a feed has this value */
  holds(key, value) {
    return this.native.holds(key, value);
  }

  /** @returns {Uint8Array} a copy of a feed's value */
  valueOf(key) {
    return this.native.find(key, true).value;
  }

  /** @returns {Promise<{problem?: string, late?: true}>} when a feed is ended, or why it can't be; `late`: see #written */
  async takeAway(key) {
    const outcome = this.outcomes[this.native.remove(key)];
    if (outcome !== 'ok') return { problem: outcome };
    const problem = await this.#written(key);
    this.#tell(key);
    return problem ?? {};
  }

  // ---- Watching in this program

  /**
   * @param {string} key
   * @param {string} [seen] a cursor
   * @returns {{cursor: string, value: string} | {cursor: string, items: string, gap: boolean} | null} what there is
   *     of a feed; of a log what is behind `seen`, an array as JSON
   */
  newest(key, seen = '') {
    if (key.startsWith(PRESENCE)) this.native.hear(key);
    const found = this.native.find(key, true);
    if (found === null || found.length === 0) return null;
    if (!found.log) return { cursor: cursorText(found), value: found.value.toString() };
    const part = this.native.part(key, seen);
    if (part === null) return { cursor: seen, items: '[]', gap: false };
    return { cursor: cursorText(part), items: part.items.toString(), gap: part.gap };
  }

  /**
   * Waits until the feed has another version, or none any more, or the table is closed.
   *
   * @param {string} key
   * @param {AbortSignal} [signal] gives it up
   * @returns {Promise<void>}
   * @throws the signal's reason
   */
  async change(key, signal) {
    if (!this.#waiting.has(key)) this.#waiting.set(key, new Set());
    const those = this.#waiting.get(key);
    let tell;
    let give;
    try {
      await new Promise((resolve, reject) => {
        tell = resolve;
        give = () => reject(signal.reason);
        signal?.addEventListener('abort', give);
        those.add(tell);
      });
    } finally {
      signal?.removeEventListener('abort', give);
      those.delete(tell);
      if (those.size === 0 && this.#waiting.get(key) === those) this.#waiting.delete(key);
    }
  }

  #tell(key) {
    // What tells of it may begin or end with it.
    for (const one of [key, PRESENCE + key]) {
      for (const tell of this.#waiting.get(one) ?? []) tell();
    }
  }

  /** Whether it has ended. */
  get closed() {
    return this.#closed;
  }

  /** Ends the table, and every wait. */
  close() {
    this.#closed = true;
    for (const key of this.#waiting.keys()) this.#tell(key);
    this.native.close();
  }

  /** The parts of a job that are the same for a publication and a fetch. */
  #job(key, { cursor, now }, kind) {
    const patched = now !== undefined && !now.log && now.patched;
    return {
      key,
      cursor: cursorText(cursor),
      before: patched || kind !== 'value' ? this.native.find(key, true)?.value : undefined,
      patched,
      most: this.#most,
      gzip: this.find(key)?.gzipAsked ?? false
    };
  }

  /**
   * Publishes a value, or a patch to the one there is.
   *
   * @param {string} key
   * @param {'value' | 'json-patch' | 'merge-patch'} kind
   * @param {Uint8Array} body which is released
   * @returns {Promise<{created: boolean, cursor: string, watching: number} |
   *     {problem: string, detail?: string}>}
   */
  async publish(key, kind, body) {
    const answer = await this.#inTurn(key, async () => {
      if (this.#shared?.shares(key)) return this.#shared.publish(key, kind, body);
      const next = this.#next(key);
      if (next.now?.log) return { problem: 'other-kind' };
      if (next.created && kind !== 'value') return { problem: 'unknown-feed' };
      const always = next.now?.upstream;
      const change = await this.workOut(key, next, { kind, body, always });
      return change.problem === undefined ? this.#takeNext(key, next, change, false) : change;
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
    return this.#inTurn(key, async () => {
      const { created, cursor, now } = this.#next(key);
      const isShared = this.#shared?.shares(key);
      if (!isShared && now && !now.log) return { problem: 'other-kind' };
      const job = { kind: 'value', body, most: this.#mostOfItem, patched: false, gzip: false };
      const { problem, detail, value } = await this.#changeBy(job);
      if (problem === 'feed-too-large') return { problem: 'item-too-large' };
      if (problem !== undefined) return { problem, detail };
      if (isShared) return this.#shared.append(key, value);
      return { created, ...(await this.takeItem(key, cursor, value)) };
    });
  }

  // ---- Logs for other servers: see log-parts.js

  /** @returns {Buffer} the newest item of a log */
  newestItem(key) {
    const { epoch, version } = this.find(key);
    const { items } = this.native.part(key, cursorText({ epoch, version: version - 1 }));
    return items.subarray(1, -1);
  }

  growPart(part, item) {
    return this.#threads.run('growPart', { ...this.#packed(part), item });
  }

  readPart(part) {
    return this.#threads.run('readPart', this.#packed(part));
  }

  /** @returns {ReturnType<import('./log-parts.js').splitLog>} of all items of a log, or of those given */
  splitLog(key, items = this.native.part(key, '').items) {
    return this.#threads.run('splitLog', { items });
  }

  #packed({ body, form, digest }) {
    return { body, form, digest, most: PART_BYTES + this.#mostOfItem };
  }

  #changeBy(job) {
    const { kind, body, before, gzip, packed, form } = job;
    const isAlone = kind === 'value' && !before && !gzip && !packed && form === undefined;
    const written = isAlone && body.length <= AT_ONCE ? nativelyCanonical(body) : undefined;
    return written ? change({ ...job, written }) : this.#threads.run('change', job);
  }

  /**
   * Works out what a publication makes of a feed: in a thread, unless it is a value that is taken as it is (AT_ONCE).
   *
   * @param {string} key
   * @param {{cursor: object, now?: object}} next the version it will be, and what it comes from: the
   *     feed, as `find` gives it
   * @param {{kind: string, body: Uint8Array}} what and more parts of a Job
   * @returns {Promise<import('./change.js').Change>}
   */
  async workOut(key, next, what) {
    const job = this.#job(key, next, what.kind);
    const change = await this.#changeBy({ ...job, ...what });
    if (job.before !== undefined) this.#release(job.before);
    return change;
  }

  /**
   * Frees bytes that are read no more: V8's collector would let those of some fifty publications come together. A small
   * Buffer shares its memory with others, and is left to it.
   */
  #release(bytes) {
    if (2 * bytes.byteLength > bytes.buffer.byteLength) this.#free(bytes);
  }

  /** @returns {Promise<{body: Uint8Array, form: string, digest: string}>} a feed's value for other servers */
  pack(key) {
    return this.#threads.run('pack', { value: this.valueOf(key) });
  }

  /**
   * Fetches a feed from its upstream and publishes what has changed. Publications do not wait for
   * it: what has been published meanwhile stands.
   *
   * @param {string} key
   * @param {{url: string, time: number, etag?: string}} how see lib/feeds/fetch-value.js
   * @returns {Promise<{etag?: string, unchanged: boolean} | {failed: string} | {published: true}>} `published`:
   *     it was published, so that it need not be fetched
   */
  async fetch(key, how) {
    const next = this.#next(key);
    let change;
    try {
      change = await this.#threads.run('fetch', {
        ...this.#job(key, next, 'value'),
        ...how,
        // Of the value there is.
        etag: next.created ? undefined : how.etag
      });
    } catch (error) {
      if (this.#closed) return { failed: ENDED.detail };
      if (error instanceof JobTimeError) return { failed: `its value: ${error.message}` };
      this.#log.error({ err: error, feed: key }, 'a fetch failed');
      return { failed: 'the server has made a mistake' };
    }
    if (change.failed !== undefined) return change;
    const { etag, ...rest } = change;
    const taken = await this.#inTurn(key, () => {
      const now = this.native.find(key, false);
      // Deleted meanwhile: the cursor of this version may have been another's since.
      if (now === null || (now.length === 0 && !next.created)) return { gone: true };
      if (now.length > 0 && !now.upstream) return { published: true };
      return this.#takeNext(key, next, rest, true);
    });
    if (taken.problem !== undefined) return { failed: taken.problem };
    return taken.published ? taken : { etag, unchanged: taken.unchanged === true };
  }

  /**
   * Ends a feed.
   *
   * @param {string} key
   * @returns {Promise<{problem?: string}>}
   */
  remove(key) {
    return this.#inTurn(key, () => {
      if (this.#shared?.shares(key)) return this.#shared.remove(key);
      return this.takeAway(key);
    });
  }

  // ---- Everything else

  /**
   * @param {string} key
   * @returns {object | null} as `find` of native/addon/feeds_wrap.cc has it, without the value; `idle`: milliseconds
   *     since the last request for it
   */
  find(key) {
    return this.native.find(key, false);
  }

  /** @returns {string[]} the keys of the feeds that were fetched */
  fetched() {
    return this.native.keys().filter((key) => this.find(key).upstream);
  }

  /**
   * Forgets a fetched feed without watchers.
   *
   * @returns {boolean} false: not now, as it is watched, or the state can't be written
   */
  forget(key) {
    const isGone = this.native.forget(key);
    if (isGone) this.#tell(key);
    return isGone;
  }

  /** A first fetch has failed: it is not repeated for so many milliseconds. */
  fail(key, milliseconds) {
    this.native.fail(key, milliseconds);
  }

  /**
   * @param {number} count how many at most
   * @returns {{key: string, watching: number, bytes: number, version: number, upstream: boolean}[]} the feeds that the
   *     most watch, the largest first of as many
   */
  most(count) {
    return this.native.most(count);
  }

  /**
   * @param {object} page
   * @param {string} page.prefix what its keys begin with
   * @param {string} page.from they come behind this one
   * @param {number} page.count how many at most
   * @returns {{feed: string, kind: 'value' | 'log', cursor: string, bytes: number, watching: number}[]} the feeds that
   *     have a value, or items, in the order of their keys
   */
  list({ prefix, from, count }) {
    return this.native.list(prefix, from, count).map(({ key, log, bytes, watching, ...cursor }) => {
      const kind = log ? 'log' : 'value';
      return { feed: key, kind, cursor: cursorText(cursor), bytes, watching };
    });
  }

  /** @returns {{length: number, tag: string} | null} bytes of the answer to a client without a cursor, and what names them */
  answerHead(key) {
    return this.native.answerHead(key);
  }

  /** @returns {object} the live counts: see /status in README */
  status() {
    return { ...this.native.status(), publishing: this.#underWay };
  }
}
