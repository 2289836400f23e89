import { FeedLoop } from './feed-loop.js';
import { callBack } from './call-back.js';
import { FeedTable, readKept } from './feed-table.js';
import { NO_CURSOR, isCursor, isKey } from './feed-items.js';
import { grantBy } from './grant.js';
import { DEFAULTS } from './limits.js';
import { Requests, globalTimers, serverOf } from './requests.js';
import { Waits } from './waits.js';

/**
 * Watching feeds: the documents of an application, each under its key. No DOM and no dependency.
 *
 *     import { Feeds } from 'sprites-server/client';
 *
 *     const feeds = new Feeds({ base: 'http://127.0.0.1:8080' });
 *     const scores = feeds.watch('scores', (value, { problem }) => console.log(value ?? problem));
 *     // …
 *     scores.close();
 *
 * README.md beside this file says how it behaves, and test/vectors/feeds.json holds it to that.
 *
 *     Feeds ─▶ FeedLoop   one poll for all ─▶ Requests ─▶ fetch
 *       └────▶ FeedTable  what is held of each feed, patches applied ─▶ onChange
 *
 * Rejected: an event stream. It takes a connection for each feed of the six that a browser has, and
 * what a proxy keeps back it keeps back for good.
 */

/**
 * @typedef {import('./feed-table.js').Change} Change
 * @typedef {import('./feed-table.js').OnChange} OnChange
 * @typedef {import('./feed-table.js').News} News
 * @typedef {import('./feed-table.js').OnItems} OnItems
 * @typedef {import('./feed-loop.js').FeedsState} FeedsState
 *
 * @typedef {object} Kept what a program may keep of a feed, to go on with in another run: plain JSON
 * @property {string} cursor
 * @property {any} value
 *
 * @typedef {object} Watch
 * @property {string} key
 * @property {Kept|null} held the newest value and its cursor; null as long as there is none
 * @property {() => void} close ends it: `onChange` is not called any more
 *
 * @typedef {object} Follow
 * @property {string} key
 * @property {string|null} cursor of the last item that was told, to go on behind it in another run; null: there is none
 * @property {() => void} close ends it: `onItems` is not called any more
 */

/** All feeds of one server that a program watches, by one poll at a time. */
export class Feeds {
  #limits;
  #waits;
  #table;
  #loop;
  #refused = new Set(); // watches that are still to be told so

  /**
   * @param {object} options
   * @param {string} options.base the server's URL, such as `http://127.0.0.1:8080`
   * @param {boolean} [options.cached] there is a cache before the server (its `--feed-cache`): feeds are asked
   *     for so that the cache can answer
   * @param {() => string | undefined | Promise<string | undefined>} [options.grant] gives the grant to send; called again
   *     before that ends, and when the server refuses it
   * @param {(state: FeedsState, about: {why?: string}) => void} [options.onState] called on every
   *     change; `why` is a problem's name, `network`, `garbage`, `slow`, or `no-grant` where `grant` has failed
   * @param {(url: string, init: RequestInit) => Promise<Response>} [options.fetch]
   * @param {import('./requests.js').Timers} [options.timers]
   * @param {() => number} [options.random] in [0, 1)
   * @param {Partial<import('./limits.js').Limits>} [options.limits] see limits.js
   * @throws {TypeError} when base is no http or https URL, or has a user
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
    const url = new URL('feeds', serverOf(base)).href;
    const { requestTimeout, feedAnswerMost: answerMost } = this.#limits;
    const requests = new Requests(fetch, timers, { requestTimeout, answerMost });
    const waits = new Waits(timers, random, this.#limits);
    this.#waits = waits;
    this.#table = new FeedTable(waits);
    const parts = { url, cached, table: this.#table, requests, waits, grant: grantBy(grant) };
    this.#loop = new FeedLoop(parts, this.#limits, onState);
  }

  /** @returns {FeedsState} */
  get state() {
    return this.#loop.state;
  }

  /** @returns {string|undefined} why it is in this state, where there is something to say */
  get why() {
    return this.#loop.why;
  }

  /**
   * The wait until the client tries again.
   *
   * @returns {{ms: number, asked: boolean}|null} `asked`: the server has asked for it, and `wake`
   *     does not end it. Null where the client does not wait
   */
  get nextTry() {
    return this.#waits.nextTry;
  }

  /**
   * Watches a feed; one that is not yet published as well: its first value comes as any other.
   *
   * @param {string} key of the feed
   * @param {OnChange} onChange called with each new value, which is frozen, since the next patch
   *     builds on it; and with undefined and a `problem` where there is no value: the server's word
   *     (`unknown-feed`, `upstream-failed` …), or `bad-key` or `too-many-keys` (32 for one `Feeds`)
   *     of the client's own, which end the watch. What it throws is reported as an uncaught error
   * @param {object} [options]
   * @param {Kept|unknown} [options.kept] what an earlier run held, to hear only of what is newer;
   *     its value is frozen. What is none is not taken
   * @returns {Watch}
   */
  watch(key, onChange, options) {
    const { kept } = options ?? {};
    const { find, close } = this.#begin(key, onChange, { ...readKept(kept), isLog: false });
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
   * Follows a log, one that is not yet published as well.
   *
   * @param {string} key of the log
   * @param {OnItems} onItems called with the next items, each once and in order: first with all that the log keeps, or
   *     those behind `after`. `gap`: items before these are gone. With no items and a `problem` as in `watch`;
   *     `other-kind` where the feed has a value, and, which ends it, where this `Feeds` has the key already
   * @param {object} [options]
   * @param {string} [options.after] the `cursor` of an earlier run. What is none is not taken
   * @returns {Follow}
   */
  follow(key, onItems, options) {
    const { after } = options ?? {};
    const cursor = isCursor(after) ? /** @type {string} */ (after) : NO_CURSOR;
    const { find, close } = this.#begin(key, onItems, { cursor, isLog: true });
    return {
      key,
      get cursor() {
        return find()?.cursor ?? null;
      },
      close
    };
  }

  /** Watches or follows. @returns {{find: () => object | undefined, close: () => void}} `find`: what is held */
  #begin(key, onChange, start) {
    const table = this.#table;
    const refused = this.#refused;
    let isTold = false;
    // A function of its own: the same one may watch twice.
    const told = (value, change) => {
      isTold = true;
      return onChange(value, change);
    };
    const watch = {
      find() {
        const entry = table.find(key);
        return entry?.watches.has(told) && entry.cursor !== NO_CURSOR ? entry : undefined;
      },
      close: () => {
        refused.delete(told);
        table.remove(key, told);
        if (table.size === 0) this.#loop.changed();
      }
    };
    const isNew = !table.find(key);
    const problem = this.#refusal(key, start.isLog);
    if (problem) {
      refused.add(told);
      queueMicrotask(() => {
        if (refused.delete(told)) callBack(told, start.isLog ? [] : undefined, { key, problem });
      });
      return watch;
    }
    const entry = table.add(key, told, start);
    if (isNew) this.#loop.changed();
    else queueMicrotask(() => isTold || tellWhatIsHeld(entry, key, told));
    return watch;
  }

  /** @returns {string|undefined} why a key can't be watched, or followed: the items of a log are not kept */
  #refusal(key, isLog) {
    if (!isKey(key)) return 'bad-key';
    const entry = this.#table.find(key);
    if (entry && (isLog || entry.isLog)) return 'other-kind';
    const isFull = this.#table.size >= this.#limits.feedsAtOnce;
    return isFull && !entry ? 'too-many-keys' : undefined;
  }

  /**
   * Something happened that makes trying now worthwhile: the machine woke up, the network came
   * back, the page is looked at again. Ends a wait the client chose itself (not one the server
   * asked for), and asks again where a parked poll may hang on a dead connection.
   */
  wake() {
    if (this.#table.size > 0) this.#loop.wake();
  }

  /** Ends every watch. A later `watch` begins anew. */
  close() {
    this.#refused.clear();
    this.#table.clear();
    this.#loop.changed();
  }
}

/** A second watch of a feed hears what the first has heard. */
function tellWhatIsHeld(entry, key, told) {
  if (!entry.watches.has(told)) return;
  const { cursor, value, problem } = entry;
  if (problem !== undefined) callBack(told, undefined, { key, problem });
  else if (cursor !== NO_CURSOR) callBack(told, value, { key, cursor });
}
