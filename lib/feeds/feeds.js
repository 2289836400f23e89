import { randomInt } from 'node:crypto';

import { NO_EPOCHS } from './epochs.js';
import { cursorText } from './names.js';
import { FeedTable } from './table.js';
import { JobTimeError } from './threads.js';

/**
 * The feeds as the routes see them: the table is native (native/pool/feeds.h), what takes time is
 * done in worker threads (lib/feeds/change.js), and what is in between is here: one publication of
 * a feed at a time, in the order in which they came.
 *
 *   PUT, PATCH, DELETE, fetched ─▶ queue of the key ─▶ thread ─▶ table ─▶ its watchers
 */

/** Publications that may be under way or wait for the one before: their bodies are in memory. */
export const PUBLICATIONS = 256;

/** The largest epoch and 1: drawn at random, so that no two lives of a feed share one. */
const EPOCHS = 2 ** 48 - 1;

const NOTHING = new Uint8Array(0);

/** Milliseconds after the last watcher who takes patches until none are made for him. */
const PATCHES_KEPT = 5000;

/**
 * Whether patches are worth making: unless everybody who watches takes whole values, and has for a
 * while.
 *
 * @param {object} feed as the table's `find` gives it
 */
const takesPatches = ({ watching, plain, patchesIdle }) =>
  watching === 0 || plain < watching || patchesIdle < PATCHES_KEPT;

export class Feeds extends FeedTable {
  #threads;
  #most;
  #log;
  /** The last publication of each key that has one under way. @type {Map<string, Promise>} */
  #queues = new Map();
  #underWay = 0;
  /** Where feeds were whose values a crash has taken. @type {import('./epochs.js').Epochs} */
  #epochs = NO_EPOCHS;
  /** Told of keys to fetch. */
  #onFetch = () => {};

  /**
   * @param {object} options hold, feeds, feedBytes, feedMemory, feedWatchers, upstream: see
   *     lib/server/options.js
   * @param {import('./threads.js').Threads} threads
   * @param {import('pino').Logger} log
   * @param {import('../server/address-limits.js').AddressLimits} [limits] what each source address
   *     may have
   */
  constructor(options, threads, log, limits = undefined) {
    super(options, { replica: false, limits }, () => this.#seeToWants());
    this.#threads = threads;
    this.#log = log;
    this.#most = options.feedBytes;
  }

  /** @param {import('./epochs.js').Epochs} epochs told of every version from now on */
  keepEpochs(epochs) {
    this.#epochs = epochs;
  }

  /**
   * @param {(key: string, source: number) => void} fetch called when a feed is asked for that nobody
   *     publishes, with a number for the address that has asked
   */
  onFetch(fetch) {
    this.#onFetch = fetch;
  }

  #seeToWants() {
    for (const want of this.native.takeWants()) {
      if (want.fetch) this.#onFetch(want.key, want.source);
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
      // Who waits for it gets the value as it is.
      this.#log.error({ err: error, feed: want.key }, 'a feed could not be compressed');
    }
    this.native.compressed({ ...want, gzip });
  }

  // ---- Publishing

  /** Does `act` when every earlier publication of the key is through. */
  async #inTurn(key, act) {
    if (this.#underWay >= PUBLICATIONS) return { problem: 'publishing-busy' };
    this.#underWay += 1;
    const before = this.#queues.get(key);
    const turn = (async () => {
      await before;
      try {
        return await act();
      } catch (error) {
        if (error instanceof JobTimeError) {
          this.#log.warn({ err: error, feed: key }, 'a publication took too long');
          return { problem: 'publishing-slow' };
        }
        this.#log.error({ err: error, feed: key }, 'a publication failed');
        return { problem: 'internal-error' };
      }
    })();
    this.#queues.set(key, turn);
    try {
      return await turn;
    } finally {
      this.#underWay -= 1;
      if (this.#queues.get(key) === turn) this.#queues.delete(key);
    }
  }

  /** The feed's next version, and the value before it. */
  #next(key) {
    const now = this.native.find(key, false);
    if (now !== null && now.length > 0) {
      return { created: false, cursor: { epoch: now.epoch, version: now.version + 1 }, now };
    }
    const lost = this.#epochs.lost(key);
    const cursor = lost
      ? { epoch: lost.epoch, version: lost.version + 1 }
      : { epoch: randomInt(1, EPOCHS), version: 1 };
    return { created: true, cursor, lost };
  }

  #take(key, { created, cursor, now, lost }, change, upstream) {
    const { unchanged, digest, again, ...version } = change;
    if (unchanged || (!created && this.native.holds(key, change.value))) {
      this.native.unchanged();
      const { watching } = this.native.find(key);
      return { created, cursor: cursorText(now), watching, unchanged: true };
    }
    if (again) cursor = { epoch: lost.epoch, version: lost.version };
    if (lost && !this.#epochs.lost(key)) {
      // Somebody has gone on from there meanwhile: his version may not mean two values.
      cursor = { epoch: randomInt(1, EPOCHS), version: 1 };
      version.gzip = NOTHING;
    }
    if (!this.#epochs.note(key, { ...cursor, digest })) return { problem: 'state-unwritable' };
    const [outcome, watching] = this.native.publish({ key, ...cursor, ...version, upstream });
    if (outcome !== 0) return { problem: this.outcomes[outcome] };
    return { created, cursor: cursorText(cursor), watching };
  }

  /** The parts of a job that are the same for a publication and a fetch. */
  #job(key, { cursor, now, lost }, kind) {
    const patched = now !== undefined && takesPatches(now);
    return {
      key,
      cursor: cursorText(cursor),
      digested: this.#epochs.kept,
      lost,
      before: patched || kind !== 'value' ? this.native.find(key, true)?.value : undefined,
      patched,
      most: this.#most,
      gzip: now?.gzipAsked ?? false
    };
  }

  /**
   * Publishes a value, or a patch to the one there is.
   *
   * @param {string} key
   * @param {'value' | 'json-patch' | 'merge-patch'} kind
   * @param {Uint8Array} body
   * @returns {Promise<{created: boolean, cursor: string, watching: number} |
   *     {problem: string, detail?: string}>}
   */
  publish(key, kind, body) {
    return this.#inTurn(key, async () => {
      const next = this.#next(key);
      if (next.created && kind !== 'value') return { problem: 'unknown-feed' };
      const change = await this.#threads.run('change', {
        ...this.#job(key, next, kind),
        kind,
        body
      });
      return change.problem === undefined ? this.#take(key, next, change, false) : change;
    });
  }

  /**
   * Fetches a feed from its upstream and publishes what has changed. Publications do not wait for
   * it: what has been published meanwhile stands.
   *
   * @param {string} key
   * @param {{url: string, time: number, etag?: string}} how see lib/feeds/fetch-value.js
   * @returns {Promise<{etag?: string, unchanged: boolean} | {failed: string} | {published: true}>} `published`:
   *     somebody publishes it, so that it need not be fetched
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
      if (error instanceof JobTimeError) return { failed: `its value: ${error.message}` };
      this.#log.error({ err: error, feed: key }, 'a fetch failed');
      return { failed: 'the server has made a mistake' };
    }
    if (change.failed !== undefined) return change;
    const { etag, ...rest } = change;
    const taken = await this.#inTurn(key, () => {
      const now = this.native.find(key, false);
      if (now === null) return { gone: true };
      if (now.length > 0 && !now.upstream) return { published: true };
      return this.#take(key, next, rest, true);
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
    return this.#inTurn(key, () => (this.native.remove(key) ? {} : { problem: 'unknown-feed' }));
  }

  // ---- Everything else

  /**
   * @param {string} key
   * @returns {{watching: number, idle: number, upstream: boolean, length: number} | null} `idle`:
   *     milliseconds since somebody last asked for it; `length` 0 while there is no value
   */
  find(key) {
    return this.native.find(key, false);
  }

  /** Lets go of a fetched feed that nobody watches. */
  forget(key) {
    this.native.forget(key);
  }

  /** A first fetch has failed: nobody asks again for so many milliseconds. */
  fail(key, milliseconds) {
    this.native.fail(key, milliseconds);
  }

  /** @param {(feed: object) => void} each see lib/feeds/state.js */
  save(each) {
    this.native.save(each);
  }

  /**
   * @param {object} feed as `save` gives it
   * @returns {string} `ok` or the name of a problem
   */
  restore(feed) {
    return this.outcomes[this.native.restore(feed)];
  }

  /** @returns {object} the live counts: see /status in README */
  status() {
    return { ...super.status(), publishing: this.#underWay };
  }
}
