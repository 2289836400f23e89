import { callBack } from './call-back.js';
import { NO_CURSOR, isCursor, isOlder } from './feed-items.js';
import { ValueError, applyPatch, freeze } from './patch.js';

/**
 * Describes a new value, or why there is none.
 *
 * @typedef {object} Change
 * @property {string} key
 * @property {string} [cursor] of the value
 * @property {any[]} [patch] the changes since the value before (RFC 6902: add, remove, replace);
 *     missing when the value came whole
 * @property {string} [problem] its name, when there is no value now; the client keeps asking for the feed
 *
 * @typedef {(value: any, change: Change) => unknown} OnChange
 *
 * Describes new items of a log, or why there are none.
 *
 * @typedef {object} News
 * @property {string} key
 * @property {string} [cursor] of the last item
 * @property {boolean} [gap] true: items before these are gone, and some of these may have come before
 * @property {string} [problem] its name, when there are no items now; the client keeps asking for the log
 *
 * @typedef {(items: any[], news: News) => unknown} OnItems
 *
 * @typedef {object} Entry a watched feed
 * @property {string} cursor of the held value; NO_CURSOR without one, or to request the whole value
 * @property {string} newest the cursor of the value reported last
 * @property {string|undefined} ended the cursor held when the feed ended last
 * @property {any} value
 * @property {boolean} isLog its items are reported, not a value
 * @property {boolean} gap of a log: its cursor was forgotten, so the next items come with a gap
 * @property {string|undefined} problem reported last, until it ends
 * @property {number} misses problems in a row
 * @property {number} dueAt time before which the feed is left out of polls
 * @property {Set<Function>} watches each OnChange, or OnItems
 */

/** The watched feeds, with the value and cursor of each. */
export class FeedTable {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  #waits;

  /** @param {import('./waits.js').Waits} waits */
  constructor(waits) {
    this.#waits = waits;
  }

  /** @returns {number} number of watched feeds */
  get size() {
    return this.#entries.size;
  }

  /**
   * @param {string} key
   * @returns {Entry|undefined}
   */
  find(key) {
    return this.#entries.get(key);
  }

  /**
   * @param {string} key isKey
   * @param {OnChange|OnItems} onChange not yet a callback of this feed
   * @param {{cursor: string, value?: any, isLog?: boolean}} start initial state, if the feed is a new one
   * @returns {Entry}
   */
  add(key, onChange, { cursor, value, isLog = false }) {
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = {
        ...{ cursor, newest: cursor, ended: undefined, value, isLog },
        gap: false,
        problem: undefined,
        misses: 0,
        dueAt: -Infinity,
        watches: new Set()
      };
      this.#entries.set(key, entry);
    }
    entry.watches.add(onChange);
    return entry;
  }

  /**
   * @param {string} key
   * @param {OnChange|OnItems} onChange
   */
  remove(key, onChange) {
    const entry = this.#entries.get(key);
    entry?.watches.delete(onChange);
    if (entry?.watches.size === 0) this.#entries.delete(key);
  }

  /** Removes all feeds. */
  clear() {
    for (const { watches } of this.#entries.values()) watches.clear();
    this.#entries.clear();
  }

  /**
   * @param {import('./feed-items.js').Item} item
   * @returns {boolean} whether it is older than the value reported last
   */
  isOlder({ feed, cursor }) {
    const entry = this.#entries.get(feed);
    return entry !== undefined && cursor !== undefined && isOlder(cursor, entry.newest);
  }

  /** Forgets all cursors: every value is requested whole. */
  forgetCursors() {
    for (const entry of this.#entries.values()) {
      if (entry.cursor !== NO_CURSOR) entry.gap = entry.isLog;
      entry.cursor = NO_CURSOR;
    }
  }

  /** Ends the waits of feeds with a problem. */
  endWaits() {
    for (const entry of this.#entries.values()) entry.dueAt = -Infinity;
  }

  /**
   * @returns {{feeds: Record<string, string>, count: number, next: number}} the feeds to request now, with
   *     their cursors; `next`: when the next of the other feeds is due, Infinity where there is none
   */
  nextPoll() {
    const now = this.#waits.now();
    const all = [...this.#entries];
    const dueNow = all.filter(([, { dueAt }]) => dueAt <= now);
    const later = all.filter(([, { dueAt }]) => dueAt > now);
    return {
      feeds: Object.fromEntries(dueNow.map(([key, entry]) => [key, requestCursor(entry)])),
      count: dueNow.length,
      next: Math.min(...later.map(([, { dueAt }]) => dueAt))
    };
  }

  /**
   * Reads an answer, and reports news to the program.
   *
   * @param {import('./feed-items.js').Item[]} items
   * @param {Record<string, string>} requested the cursors of the request
   * @returns {boolean} whether there was any news
   */
  applyItems(items, requested) {
    let hasNews = false;
    for (const item of items) {
      const entry = this.#entries.get(item.feed);
      // An item builds on the requested cursor. It is ignored if the entry has another one by now.
      if (
        !entry ||
        !Object.hasOwn(requested, item.feed) ||
        requestCursor(entry) !== requested[item.feed]
      )
        continue;
      const problem = item.problem ?? otherKindProblem(entry, item);
      const isNews = problem === undefined ? this.#applyNews(entry, item) : true;
      if (problem !== undefined) this.#applyProblem(entry, item.feed, problem);
      hasNews ||= isNews;
    }
    return hasNews;
  }

  #applyProblem(entry, key, problem) {
    entry.misses += 1;
    const { cursor, ended } = entry;
    const endsValue = problem === 'unknown-feed' && cursor !== NO_CURSOR;
    // At the server a poll without a cursor waits for the next publication, so no wait is needed before it. But a cache
    // may still have the deleted value: when that ends again, the poll waits.
    const isFirst = endsValue && cursor !== ended;
    entry.dueAt = isFirst ? -Infinity : this.#waits.now() + this.#waits.backoff(entry.misses);
    if (endsValue) Object.assign(entry, { ended: cursor, cursor: NO_CURSOR, value: undefined });
    if (entry.problem === problem) return;
    entry.problem = problem;
    reportTo(entry, emptyFor(entry), { key, problem });
  }

  /** @returns {boolean} whether a value, or the end of a problem, was reported */
  #applyNews(entry, item) {
    entry.misses = 0;
    const { feed: key, cursor, patch } = item;
    if (item.items !== undefined) return this.#applyLogItems(entry, item);
    const isWhole = Object.hasOwn(item, 'value');
    if (!isWhole && patch === undefined) return this.#applyNoNews(entry, key, cursor);
    let value;
    try {
      value = isWhole ? freeze(item.value) : applyItemPatch(entry, item);
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      entry.cursor = NO_CURSOR; // The whole value is requested.
      return false;
    }
    const isNews = entry.cursor !== cursor || entry.problem !== undefined;
    Object.assign(entry, { cursor, newest: cursor, value, problem: undefined });
    if (isNews) reportTo(entry, value, isWhole ? { key, cursor } : { key, cursor, patch });
    return isNews;
  }

  /** @returns {boolean} whether items were reported */
  #applyLogItems(entry, { feed: key, cursor, items, gap }) {
    // A cache may repeat an answer.
    if (items.length === 0 || cursor === entry.cursor) return false;
    const hasGap = gap === true || entry.gap;
    Object.assign(entry, { cursor, newest: cursor, problem: undefined, gap: false });
    reportTo(entry, items, hasGap ? { key, cursor, gap: true } : { key, cursor });
    return true;
  }

  /** Handles an item without news. @returns {boolean} whether it ends a problem */
  #applyNoNews(entry, key, cursor) {
    const isHeld = cursor !== NO_CURSOR && cursor === entry.cursor;
    if (entry.problem === undefined || !isHeld) return false;
    entry.problem = undefined;
    reportTo(entry, entry.isLog ? [] : entry.value, { key, cursor });
    return true;
  }
}

/** Returns the cursor for a request. With a problem the whole value is requested, for a report at the problem's end. */
const requestCursor = ({ cursor, problem, isLog }) =>
  problem === undefined || isLog || cursor === NO_CURSOR ? cursor : '';

/** Returns the argument of a callback without a value, or without items. */
const emptyFor = ({ isLog }) => (isLog ? [] : undefined);

/** Returns the problem of a log that is watched, and of a value that is followed. */
function otherKindProblem({ isLog }, item) {
  const isOther = isLog ? Object.hasOwn(item, 'value') || item.patch : item.items;
  return isOther ? 'other-kind' : undefined;
}

/**
 * @param {unknown} stored as an earlier run stored it; an invalid one is ignored
 * @returns {{cursor: string, value?: any}}
 */
export function readStored(stored) {
  const { cursor, value } = /** @type {any} */ (stored ?? {});
  const nothing = { cursor: NO_CURSOR, value: undefined };
  if (!isCursor(cursor) || cursor === NO_CURSOR || value === undefined) return nothing;
  try {
    return { cursor, value: freeze(value) };
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    return nothing;
  }
}

function applyItemPatch(entry, { from, patch }) {
  if (entry.cursor === NO_CURSOR || from !== entry.cursor) {
    throw new ValueError('a patch to another value');
  }
  return applyPatch(entry.value, patch);
}

/** Reports to all watchers of a feed. */
function reportTo(entry, value, change) {
  for (const watch of [...entry.watches])
    if (entry.watches.has(watch)) callBack(watch, value, change);
}
