import { callBack } from './call-back.js';
import { NO_CURSOR, isCursor, isOlder } from './feed-items.js';
import { ValueError, applyPatch, freeze } from './patch.js';

/**
 * What goes with a value, or stands for one.
 *
 * @typedef {object} Change
 * @property {string} key
 * @property {string} [cursor] of the value
 * @property {any[]} [patch] what led here from the value before (RFC 6902: add, remove, replace);
 *     not there when the value came whole
 * @property {string} [problem] the name of why there is no value now; the feed is asked for again
 *
 * @typedef {(value: any, change: Change) => unknown} OnChange
 *
 * What goes with items of a log, or stands for some.
 *
 * @typedef {object} News
 * @property {string} key
 * @property {string} [cursor] of the last item
 * @property {boolean} [gap] true: items before these are gone, and some of these may have come before
 * @property {string} [problem] the name of why there are no items now; the log is asked for again
 *
 * @typedef {(items: any[], news: News) => unknown} OnItems
 *
 * @typedef {object} Entry one feed that is watched
 * @property {string} cursor NO_CURSOR without a value, or where the whole is to be asked for
 * @property {string} newest the cursor of the value told last
 * @property {string|undefined} ended the cursor held when the feed ended last
 * @property {any} value
 * @property {boolean} isLog items are told, and no value
 * @property {boolean} gap of a log: its cursor was forgotten
 * @property {string|undefined} problem as it was told
 * @property {number} misses problems in a row
 * @property {number} due not to be asked for before
 * @property {Set<Function>} watches each OnChange, or OnItems
 */

/** The feeds that are watched, and what is held of each. */
export class FeedTable {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  #waits;

  /** @param {import('./waits.js').Waits} waits */
  constructor(waits) {
    this.#waits = waits;
  }

  /** @returns {number} how many feeds are watched */
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
   * @param {OnChange|OnItems} onChange not yet one of this feed's
   * @param {{cursor: string, value?: any, isLog?: boolean}} start what is held, where the feed is a new one
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
        due: -Infinity,
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

  /** No feed is watched any more. */
  clear() {
    for (const { watches } of this.#entries.values()) watches.clear();
    this.#entries.clear();
  }

  /**
   * @param {import('./feed-items.js').Item} item
   * @returns {boolean} whether it is older than what is held
   */
  isOlder({ feed, cursor }) {
    const entry = this.#entries.get(feed);
    return entry !== undefined && cursor !== undefined && isOlder(cursor, entry.newest);
  }

  /** Asks for every value whole, and at once. */
  forgetCursors() {
    for (const entry of this.#entries.values()) {
      if (entry.cursor !== NO_CURSOR) entry.gap = entry.isLog;
      entry.cursor = NO_CURSOR;
    }
  }

  /** Feeds with a problem need not wait any longer. */
  hurry() {
    for (const entry of this.#entries.values()) entry.due = -Infinity;
  }

  /**
   * @returns {{feeds: Record<string, string>, count: number, next: number}} what to ask for now, with
   *     the cursors held; and when the next of the others is due, Infinity where there is none
   */
  nextPoll() {
    const now = this.#waits.now();
    const all = [...this.#entries];
    const asked = all.filter(([, { due }]) => due <= now);
    const later = all.filter(([, { due }]) => due > now);
    return {
      feeds: Object.fromEntries(asked.map(([key, entry]) => [key, askedOf(entry)])),
      count: asked.length,
      next: Math.min(...later.map(([, { due }]) => due))
    };
  }

  /**
   * Takes an answer, and tells the program what is new.
   *
   * @param {import('./feed-items.js').Item[]} items
   * @param {Record<string, string>} asked the cursors it was asked with
   * @returns {boolean} whether there was anything in it
   */
  take(items, asked) {
    let taught = false;
    for (const item of items) {
      const entry = this.#entries.get(item.feed);
      // An answer is to what was asked: another cursor's leads elsewhere.
      if (!entry || !Object.hasOwn(asked, item.feed) || askedOf(entry) !== asked[item.feed])
        continue;
      const problem = item.problem ?? otherKind(entry, item);
      const isNews = problem === undefined ? this.#takeNews(entry, item) : true;
      if (problem !== undefined) this.#takeProblem(entry, item.feed, problem);
      taught ||= isNews;
    }
    return taught;
  }

  #takeProblem(entry, key, problem) {
    entry.misses += 1;
    const { cursor, ended } = entry;
    const ends = problem === 'unknown-feed' && cursor !== NO_CURSOR;
    // At the server a poll without a cursor waits for the next life; a cache may have the last one.
    const isFirst = ends && cursor !== ended;
    entry.due = isFirst ? -Infinity : this.#waits.now() + this.#waits.backoff(entry.misses);
    if (ends) Object.assign(entry, { ended: cursor, cursor: NO_CURSOR, value: undefined });
    if (entry.problem === problem) return;
    entry.problem = problem;
    tell(entry, nothingOf(entry), { key, problem });
  }

  /** @returns {boolean} whether it has a value now that it had not before */
  #takeNews(entry, item) {
    entry.misses = 0;
    const { feed: key, cursor, patch } = item;
    if (item.items !== undefined) return this.#takeItems(entry, item);
    const isWhole = Object.hasOwn(item, 'value');
    if (!isWhole && patch === undefined) return this.#takeNothing(entry, key, cursor);
    let value;
    try {
      value = isWhole ? freeze(item.value) : patched(entry, item);
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      entry.cursor = NO_CURSOR; // The whole value is asked for.
      return false;
    }
    const isNews = entry.cursor !== cursor || entry.problem !== undefined;
    Object.assign(entry, { cursor, newest: cursor, value, problem: undefined });
    if (isNews) tell(entry, value, isWhole ? { key, cursor } : { key, cursor, patch });
    return isNews;
  }

  /** @returns {boolean} whether there are any */
  #takeItems(entry, { feed: key, cursor, items, gap }) {
    // A cache may say the same again.
    if (items.length === 0 || cursor === entry.cursor) return false;
    const hasGap = gap === true || entry.gap;
    Object.assign(entry, { cursor, newest: cursor, problem: undefined, gap: false });
    tell(entry, items, hasGap ? { key, cursor, gap: true } : { key, cursor });
    return true;
  }

  /** Nothing new. @returns {boolean} whether that ends a problem */
  #takeNothing(entry, key, cursor) {
    const isHeld = cursor !== NO_CURSOR && cursor === entry.cursor;
    if (entry.problem === undefined || !isHeld) return false;
    entry.problem = undefined;
    tell(entry, entry.isLog ? [] : entry.value, { key, cursor });
    return true;
  }
}

/** The cursor to ask with; a value under a problem is asked for whole, to be told when that ends. */
const askedOf = ({ cursor, problem, isLog }) =>
  problem === undefined || isLog || cursor === NO_CURSOR ? cursor : '';

/** What stands for a value, or for items, where there is none. */
const nothingOf = ({ isLog }) => (isLog ? [] : undefined);

/** A log is followed, and a value watched. */
function otherKind({ isLog }, item) {
  const isOther = isLog ? Object.hasOwn(item, 'value') || item.patch : item.items;
  return isOther ? 'other-kind' : undefined;
}

/**
 * @param {unknown} kept what an earlier program held; what is none is not taken
 * @returns {{cursor: string, value?: any}}
 */
export function readKept(kept) {
  const { cursor, value } = /** @type {any} */ (kept ?? {});
  const nothing = { cursor: NO_CURSOR, value: undefined };
  if (!isCursor(cursor) || cursor === NO_CURSOR || value === undefined) return nothing;
  try {
    return { cursor, value: freeze(value) };
  } catch (error) {
    if (!(error instanceof ValueError)) throw error;
    return nothing;
  }
}

function patched(entry, { from, patch }) {
  if (entry.cursor === NO_CURSOR || from !== entry.cursor) {
    throw new ValueError('a patch to another value');
  }
  return applyPatch(entry.value, patch);
}

/** Tells all watchers of a feed. */
function tell(entry, value, change) {
  for (const watch of [...entry.watches])
    if (entry.watches.has(watch)) callBack(watch, value, change);
}
