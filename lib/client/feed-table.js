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
 * @typedef {object} Entry one feed that is watched
 * @property {string} cursor NO_CURSOR without a value, or where the whole is to be asked for
 * @property {string} newest the cursor of the value told last
 * @property {any} value
 * @property {string|undefined} problem as it was told
 * @property {number} misses problems in a row
 * @property {number} due not to be asked for before
 * @property {Set<OnChange>} watches
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
   * @param {OnChange} onChange not yet one of this feed's
   * @param {unknown} kept what an earlier program held; what is none is not taken
   * @returns {Entry}
   */
  add(key, onChange, kept) {
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = {
        ...readKept(kept),
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
   * @param {OnChange} onChange
   */
  remove(key, onChange) {
    const entry = this.#entries.get(key);
    entry?.watches.delete(onChange);
    if (entry?.watches.size === 0) this.#entries.delete(key);
  }

  /** Nobody watches anything any more. */
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
    for (const entry of this.#entries.values()) entry.cursor = NO_CURSOR;
  }

  /** Feeds with a problem need not wait any longer. */
  hurry() {
    for (const entry of this.#entries.values()) entry.due = -Infinity;
  }

  /**
   * @returns {{feeds: Record<string, string>, count: number, next: number}} what to ask for now, with
   *     the cursors held; and when the next of the others is due, Infinity where there is none
   */
  wish() {
    const now = this.#waits.now();
    const all = [...this.#entries];
    const asked = all.filter(([, { due }]) => due <= now);
    const later = all.filter(([, { due }]) => due > now);
    return {
      feeds: Object.fromEntries(asked.map(([key, { cursor }]) => [key, cursor])),
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
      if (!entry || !Object.hasOwn(asked, item.feed) || entry.cursor !== asked[item.feed]) continue;
      const isNews = item.problem === undefined ? this.#takeNews(entry, item) : true;
      if (item.problem !== undefined) this.#takeProblem(entry, item.feed, item.problem);
      taught ||= isNews;
    }
    return taught;
  }

  #takeProblem(entry, key, problem) {
    entry.misses += 1;
    entry.due = this.#waits.now() + this.#waits.backoff(entry.misses);
    if (problem === 'unknown-feed') Object.assign(entry, { cursor: NO_CURSOR, value: undefined });
    if (entry.problem === problem) return;
    entry.problem = problem;
    tell(entry, undefined, { key, problem });
  }

  /** @returns {boolean} whether it has a value now that it had not before */
  #takeNews(entry, item) {
    entry.misses = 0;
    const { feed: key, cursor, patch } = item;
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
    const isNews = entry.cursor !== cursor;
    Object.assign(entry, { cursor, newest: cursor, value, problem: undefined });
    if (isNews) tell(entry, value, isWhole ? { key, cursor } : { key, cursor, patch });
    return isNews;
  }

  /** Nothing new. @returns {boolean} whether that ends a problem */
  #takeNothing(entry, key, cursor) {
    if (entry.problem === undefined || entry.cursor !== cursor) return false;
    entry.problem = undefined;
    tell(entry, entry.value, { key, cursor });
    return true;
  }
}

function readKept(kept) {
  const { cursor, value } = /** @type {any} */ (kept ?? {});
  const nothing = { cursor: NO_CURSOR, newest: NO_CURSOR, value: undefined };
  if (!isCursor(cursor) || cursor === NO_CURSOR || value === undefined) return nothing;
  try {
    return { cursor, newest: cursor, value: freeze(value) };
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

/** Tells all who watch a feed. */
function tell(entry, value, change) {
  for (const watch of [...entry.watches]) if (entry.watches.has(watch)) call(watch, value, change);
}

/**
 * @param {OnChange} onChange
 * @param {any} value
 * @param {Change} change
 */
export function call(onChange, value, change) {
  try {
    onChange(value, change);
  } catch (error) {
    // The program's own fault, for its own handler of uncaught errors; the feeds go on.
    queueMicrotask(() => {
      throw error;
    });
  }
}
