import { NO_EPOCHS } from './epochs.js';
import { cursorText, newEpoch, nextCursor } from './names.js';
import { FeedTable } from './table.js';
import { JobTimeError } from './threads.js';

/**
 * The feeds as the routes see them: the table is native (native/pool/feeds.h), what takes time is
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
  /** Where publications go that other servers get, too. @type {import('../world/shared-feeds.js').SharedFeeds} */
  #shared;
  /** The versions of the last run, for a world. @type {Map<string, {epoch: number, version: number, digest?: string}>} */
  #restored = new Map();

  /**
   * @param {object} options hold, feeds, feedBytes, feedMemory, feedWatchers, upstream, world: see
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

  /** @returns {object | undefined} see Epochs#lost */
  lost(key) {
    return this.#epochs.lost(key);
  }

  /**
   * @param {import('../world/shared-feeds.js').SharedFeeds} shared takes publications from now on
   * @returns {Map<string, {epoch: number, version: number, digest?: string}>} the versions of the last run; without
   *     a digest: deleted
   */
  shareBy(shared) {
    this.#shared = shared;
    const restored = this.#restored;
    this.#restored = new Map();
    return restored;
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

  /** Does what somebody waits for, in order, and says what is wrong with it. */
  async #inTurn(key, act) {
    if (this.#underWay >= PUBLICATIONS) return { problem: 'publishing-busy' };
    this.#underWay += 1;
    try {
      return await this.inOrder(key, act);
    } catch (error) {
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
      return { created: false, cursor: nextCursor(now), now };
    }
    const lost = this.#epochs.lost(key);
    const cursor = lost ? nextCursor(lost) : { epoch: newEpoch(), version: 1 };
    return { created: true, cursor, lost };
  }

  #takeNext(key, { created, cursor, now, lost }, change, upstream) {
    const { unchanged, again, ...version } = change;
    if (unchanged || (!created && this.native.holds(key, change.value))) {
      return { created, ...this.unchanged(key, now), unchanged: true };
    }
    if (again) cursor = { epoch: lost.epoch, version: lost.version };
    if (lost && !this.#epochs.lost(key)) {
      // Somebody has gone on from there meanwhile: his version may not mean two values.
      cursor = { epoch: newEpoch(), version: 1 };
      version.gzip = NOTHING;
    }
    return { created, ...this.take(key, cursor, version, upstream) };
  }

  /** What a publication is answered that changes nothing. */
  unchanged(key, now) {
    this.native.unchanged();
    return { cursor: cursorText(now), watching: this.native.find(key).watching };
  }

  /**
   * Takes a version.
   *
   * @param {string} key
   * @param {{epoch: number, version: number}} cursor
   * @param {import('./change.js').Change} change
   * @param {boolean} [upstream] it was fetched
   * @returns {{cursor: string, watching: number} | {problem: string}}
   */
  take(key, cursor, { value, patch, gzip, digest }, upstream = false) {
    if (!this.#epochs.note(key, { ...cursor, digest })) return { problem: 'state-unwritable' };
    const version = { key, ...cursor, value, patch, gzip, upstream };
    const [outcome, watching] = this.native.publish(version);
    if (outcome !== 0) return { problem: this.outcomes[outcome] };
    return { cursor: cursorText(cursor), watching };
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

  /** @returns {boolean} whether there was a feed to end, at once */
  takeAway(key) {
    return this.native.remove(key);
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
      if (this.#shared?.shares(key)) return this.#shared.publish(key, kind, body);
      const next = this.#next(key);
      if (next.created && kind !== 'value') return { problem: 'unknown-feed' };
      const change = await this.workOut(key, next, { kind, body });
      return change.problem === undefined ? this.#takeNext(key, next, change, false) : change;
    });
  }

  /**
   * Has a thread work out what a publication makes of a feed.
   *
   * @param {string} key
   * @param {{cursor: object, now?: object, lost?: object}} next the version it will be, and what it comes from: the
   *     feed, as `find` gives it
   * @param {{kind: string, body: Uint8Array}} what and more parts of a Job
   * @returns {Promise<import('./change.js').Change>}
   */
  workOut(key, next, what) {
    return this.#threads.run('change', { ...this.#job(key, next, what.kind), ...what });
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
      return this.takeAway(key) ? {} : { problem: 'unknown-feed' };
    });
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

  /** Whether there are deleted feeds to be kept, of a world. */
  get hasDeleted() {
    return (this.#shared?.deleted().length ?? 0) > 0;
  }

  /** @param {(feed: object) => void} each see lib/feeds/state.js */
  save(each) {
    this.native.save(each);
    for (const [key, { epoch, version }] of this.#shared?.deleted() ?? []) {
      each({ key, epoch, version, deleted: true, value: NOTHING, log: NOTHING });
    }
  }

  /**
   * @param {object} feed as `save` gives it
   * @param {string} digest of its value
   * @returns {string} `ok` or the name of a problem
   */
  restore(feed, digest) {
    const { key, epoch, version, upstream, deleted } = feed;
    if (this.inWorld && !upstream) {
      this.#restored.set(key, { epoch, version, digest: deleted ? undefined : digest });
    }
    return deleted ? 'ok' : this.outcomes[this.native.restore(feed)];
  }

  /** @returns {object} the live counts: see /status in README */
  status() {
    return { ...super.status(), publishing: this.#underWay };
  }
}
