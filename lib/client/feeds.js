import { FeedLoop } from './feed-loop.js';
import { callBack } from './call-back.js';
import { FeedTable, readStored } from './feed-table.js';
import { NO_CURSOR, isCursor, isKey } from './feed-items.js';
import { grantFrom } from './grant.js';
import { DEFAULTS } from './limits.js';
import { Requests, globalTimers, serverUrl } from './requests.js';
import { Waits } from './waits.js';

/**
 * Watches feeds: the documents of an application, each under its key. No DOM and no dependency.
 *
 *     import { Feeds } from 'sprites-server/client';
 *
 *     const feeds = new Feeds({ base: 'http://127.0.0.1:8080' });
 *     const scores = feeds.watch('scores', (value, { problem }) => console.log(value ?? problem));
 *     // …
 *     scores.close();
 *
 * README.md beside this file describes its behavior, and test/vectors/feeds.json tests it.
 *
 *     Feeds ─▶ FeedLoop   one poll for all ─▶ Requests ─▶ fetch
 *       └────▶ FeedTable  value and cursor of each feed, patches applied ─▶ onChange
 *
 * Rejected: an event stream. It takes one of a browser's six connections for each feed, and an event
 * that a proxy buffers may never arrive.
 */

/**
 * @typedef {import('./feed-table.js').Change} Change
 * @typedef {import('./feed-table.js').OnChange} OnChange
 * @typedef {import('./feed-table.js').News} News
 * @typedef {import('./feed-table.js').OnItems} OnItems
 * @typedef {import('./feed-loop.js').FeedsState} FeedsState
 *
 * @typedef {object} Kept state of a feed that a program may store for another run: plain JSON
 * @property {string} cursor
 * @property {any} value
 *
 * @typedef {object} Watch
 * @property {string} key
 * @property {Kept|null} held the newest value and its cursor; null while there is none
 * @property {() => void} close ends the watch: `onChange` is not called any more
 *
 * @typedef {object} Follow
 * @property {string} key
 * @property {string|null} cursor of the last reported item, to go on behind it in another run; null: there is none
 * @property {() => void} close ends it: `onItems` is not called any more
 */

/** All watched feeds of one server, by one poll at a time. */
export class Feeds {
  #limits;
  #waits;
  #table;
  #loop;
  #pendingRefusals = new Set(); // callbacks of refused watches that do not know it yet

  /**
   * @param {object} options
   * @param {string} options.base the server's URL, such as `http://127.0.0.1:8080`
   * @param {boolean} [options.cached] there is a cache before the server (its `--feed-cache`): requests are
   *     such that the cache can answer
   * @param {() => string | undefined | Promise<string | undefined>} [options.grant] returns the grant to send; called
   *     again before the grant expires, and when the server refuses it
   * @param {(state: FeedsState, about: {why?: string}) => void} [options.onState] called on every
   *     change; `why` is a problem's name, `network`, `garbage`, `slow`, or `no-grant` where `grant` has failed
   * @param {(url: string, init: RequestInit) => Promise<Response>} [options.fetch]
   * @param {import('./requests.js').Timers} [options.timers]
   * @param {() => number} [options.random] in [0, 1)
   * @param {Partial<import('./limits.js').Limits>} [options.limits] see limits.js
   * @throws {TypeError} when base is no http or https URL, or has a user, ? or #
   */
  constructor({
    base,
    cached = false,
    grant,
    onState = () => {},
    fetch = globalThis.fetch,
    timers = globalTimers(),
    random = Math.random,
    limits = {}
  }) {
    this.#limits = { ...DEFAULTS, ...limits };
    const url = new URL('feeds', serverUrl(base)).href;
    const { requestTimeout, feedAnswerMost: answerMost } = this.#limits;
    const requests = new Requests(fetch, timers, { requestTimeout, answerMost });
    const waits = new Waits(timers, random, this.#limits);
    this.#waits = waits;
    this.#table = new FeedTable(waits);
    const parts = { url, cached, table: this.#table, requests, waits, grant: grantFrom(grant) };
    this.#loop = new FeedLoop(parts, this.#limits, onState);
  }

  /** @returns {FeedsState} */
  get state() {
    return this.#loop.state;
  }

  /** @returns {string|undefined} the reason for this state, if it has one */
  get why() {
    return this.#loop.why;
  }

  /**
   * The wait until the client's next try.
   *
   * @returns {{ms: number, asked: boolean}|null} `asked`: the server has asked for the wait, and
   *     `wake` does not end it. Null while the client does not wait
   */
  get nextTry() {
    return this.#waits.nextTry;
  }

  /**
   * Watches a feed. The feed need not be published yet: its first value comes as any other.
   *
   * @param {string} key of the feed
   * @param {OnChange} onChange called with each new value, which is frozen, since the next patch
   *     builds on it; called with undefined and a `problem` where there is no value. The server's
   *     problems are `unknown-feed`, `upstream-failed` and others. The client's own, `bad-key`,
   *     `other-kind` (a log that this `Feeds` follows) and `too-many-keys` (32 for one `Feeds`), end
   *     the watch. An error in the callback is reported as an uncaught error
   * @param {object} [options]
   * @param {Kept|unknown} [options.kept] state from an earlier run, so that only newer values are
   *     reported; its value gets frozen. An invalid one is ignored
   * @returns {Watch}
   */
  watch(key, onChange, options) {
    const { kept } = options ?? {};
    const { find, close } = this.#watch(key, onChange, { ...readStored(kept), isLog: false });
    return {
      key,
      get held() {
        const entry = find();
        return entry ? { cursor: entry.cursor, value: entry.value } : null;
      },
      close
    };
  }

  /**
   * Follows a log. The log need not be published yet.
   *
   * @param {string} key of the log
   * @param {OnItems} onItems called with the next items, each once and in order: first with all items of the log, or
   *     those behind `after`. `gap`: items before these are gone. Called with no items and a `problem` as in `watch`;
   *     with `other-kind` where the feed has a value, and where this `Feeds` has the key already, which ends it
   * @param {object} [options]
   * @param {string} [options.after] the `cursor` of an earlier run. An invalid one is ignored
   * @returns {Follow}
   */
  follow(key, onItems, options) {
    const { after } = options ?? {};
    const cursor = isCursor(after) ? /** @type {string} */ (after) : NO_CURSOR;
    const { find, close } = this.#watch(key, onItems, { cursor, isLog: true });
    return {
      key,
      get cursor() {
        return find()?.cursor ?? null;
      },
      close
    };
  }

  /** Watches or follows. @returns {{find: () => object | undefined, close: () => void}} `find` returns the entry */
  #watch(key, onChange, initial) {
    const table = this.#table;
    const pendingRefusals = this.#pendingRefusals;
    let wasCalled = false;
    // A new function, since the program may use the same callback twice.
    const callback = (value, change) => {
      wasCalled = true;
      return onChange(value, change);
    };
    const watch = {
      find() {
        const entry = table.find(key);
        return entry?.watches.has(callback) && entry.cursor !== NO_CURSOR ? entry : undefined;
      },
      close: () => {
        pendingRefusals.delete(callback);
        table.remove(key, callback);
        if (table.size === 0) this.#loop.updatePoll();
      }
    };
    const isNew = !table.find(key);
    const problem = this.#refusalProblem(key, initial.isLog);
    if (problem) {
      pendingRefusals.add(callback);
      queueMicrotask(() => {
        if (pendingRefusals.delete(callback))
          callBack(callback, initial.isLog ? [] : undefined, { key, problem });
      });
      return watch;
    }
    const entry = table.add(key, callback, initial);
    if (isNew) this.#loop.updatePoll();
    else queueMicrotask(() => wasCalled || reportHeldValue(entry, key, callback));
    return watch;
  }

  /** @returns {string|undefined} why a key is refused. A log has one follower: its items are not kept */
  #refusalProblem(key, isLog) {
    if (!isKey(key)) return 'bad-key';
    const entry = this.#table.find(key);
    if (entry && (isLog || entry.isLog)) return 'other-kind';
    const isFull = this.#table.size >= this.#limits.feedsAtOnce;
    return isFull && !entry ? 'too-many-keys' : undefined;
  }

  /**
   * Tries now, because the machine woke up, the network came back, or the page is visible again. Ends
   * a wait that the client chose itself (not one that the server asked for), and polls again where a
   * parked poll may hang on a dead connection.
   */
  wake() {
    if (this.#table.size > 0) this.#loop.wake();
  }

  /** Ends every watch. A later `watch` starts again. */
  close() {
    this.#pendingRefusals.clear();
    this.#table.clear();
    this.#loop.updatePoll();
  }
}

/** Reports the held value, or the problem, to a second watch of a feed. */
function reportHeldValue(entry, key, callback) {
  if (!entry.watches.has(callback)) return;
  const { cursor, value, problem } = entry;
  if (problem !== undefined) callBack(callback, undefined, { key, problem });
  else if (cursor !== NO_CURSOR) callBack(callback, value, { key, cursor });
}
