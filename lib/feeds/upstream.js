import { FetchTurns } from './fetch-turns.js';

/**
 * The upstream: decides when which feed is fetched. Worker threads fetch and compare
 * (lib/feeds/fetch-value.js).
 *
 *   asked for ─▶ turns, --upstream-at-once ─▶ fetch ─┬▶ again after --upstream-every, while watched
 *                                                    └▶ failed: later and later; the value stands
 *   no request for --feed-idle ─▶ forgotten
 *
 * Feeds that an earlier run fetched are fetched on by this run. Without --upstream they are forgotten.
 */

/** Longest wait between two failing fetches of a feed, in milliseconds. */
const LONGEST_BACKOFF = 300000;

/** Most log lines of one level in LINES_TIME milliseconds: an upstream may fail for all feeds, and clients may request any key. */
const MAX_LINES = 10;
const LINES_TIME = 60_000;

/** Asker of a feed that no client of this run has requested. */
const NO_ASKER = 0;

/** Returns a random part of a wait, between half and all of it, so that feeds that failed together are not retried together. */
const jitter = (milliseconds) => milliseconds * (0.5 + Math.random() / 2);

/**
 * @returns {(level: string, fields: object, message: string) => void} a logger with a rate limit; it logs how many lines it
 *     omitted
 */
function limitedLog(log) {
  let windowStart = -Infinity;
  let lines = { warn: 0, info: 0 };
  let omitted = 0;
  return (level, fields, message) => {
    if (performance.now() - windowStart >= LINES_TIME) {
      if (omitted > 0) log.warn({ omitted }, 'the upstream has failed, or answers again, for more');
      windowStart = performance.now();
      lines = { warn: 0, info: 0 };
      omitted = 0;
    }
    lines[level] += 1;
    if (lines[level] <= MAX_LINES) log[level](fields, message);
    else omitted += 1;
  };
}

export class Upstream {
  #feeds;
  #options;
  #refetchEvery;
  /** The fetched keys and their state. @type {Map<string, object>} */
  #sources = new Map();
  /** Sources that wait for their fetch. */
  #turns;
  #logs;
  #counts = { fetches: 0, fetchesUnchanged: 0, fetchesFailed: 0 };
  #closed = false;

  /**
   * @param {object} parts
   * @param {import('./feeds.js').Feeds} parts.feeds
   * @param {object} parts.options upstream, upstreamEvery, upstreamAtOnce, upstreamTime, feedIdle
   * @param {import('pino').Logger} parts.log
   */
  constructor({ feeds, options, log }) {
    this.#feeds = feeds;
    this.#options = options;
    this.#refetchEvery = options.upstreamEvery * 1000;
    this.#turns = new FetchTurns(options.upstreamAtOnce);
    // Failing first fetches must not use up the lines of feeds that worked before.
    this.#logs = { first: limitedLog(log), others: limitedLog(log) };
    for (const key of feeds.fetchedKeys()) {
      if (options.upstream === 'none') feeds.removeFetched(key);
      else this.#scheduleRefetch(this.#addSource(key), jitter(this.#refetchEvery));
    }
    feeds.onFetch((key, asker) => this.#fetchFirst(key, asker));
  }

  /** @returns {object} the counts for /status */
  status() {
    return { ...this.#counts, fetching: this.#turns.underWay, fetchesWaiting: this.#turns.size };
  }

  close() {
    this.#closed = true;
    for (const source of this.#sources.values()) clearTimeout(source.timer);
    this.#turns.clear();
  }

  #addSource(key) {
    const source = { key, asker: NO_ASKER, first: false, failures: 0, busy: false };
    this.#sources.set(key, source);
    return source;
  }

  /** Ends the wait of a source for its time, or for its turn. */
  #endWait(source) {
    clearTimeout(source.timer);
    this.#turns.delete(source);
  }

  #removeSource(source) {
    this.#endWait(source);
    this.#sources.delete(source.key);
  }

  /** Fetches a feed that has no value, and is asked for. */
  #fetchFirst(key, asker) {
    const source = this.#sources.get(key) ?? this.#addSource(key);
    this.#endWait(source);
    Object.assign(source, { asker, first: true });
    // The fetch under way serves this request as well.
    if (!source.busy) this.#turns.add(source);
    this.#beginFetches();
  }

  #scheduleRefetch(source, milliseconds) {
    clearTimeout(source.timer);
    source.timer = setTimeout(() => this.#refetchOrForget(source), milliseconds).unref();
  }

  /** Fetches a feed again if it is watched; forgets it if it is idle. */
  #refetchOrForget(source) {
    const feed = this.#feeds.find(source.key);
    if (feed === null || (feed.length > 0 && !feed.upstream)) return this.#removeSource(source);
    // Between two polls a client is not parked for a moment.
    if (feed.watching > 0 || feed.idle < this.#refetchEvery) {
      this.#turns.add(source);
      return this.#beginFetches();
    }
    const remaining = this.#options.feedIdle * 1000 - feed.idle;
    if (remaining > 0)
      return this.#scheduleRefetch(source, Math.min(this.#refetchEvery, remaining + 1));
    // If the journal can't be written, the feed is forgotten later.
    return this.#feeds.removeFetched(source.key)
      ? this.#removeSource(source)
      : this.#scheduleRefetch(source, this.#refetchEvery);
  }

  #beginFetches() {
    let source;
    while ((source = this.#turns.beginNext()) !== undefined) this.#fetch(source);
  }

  async #fetch(source) {
    const { key, asker, etag } = source;
    const { upstream, upstreamTime: time } = this.#options;
    source.busy = true;
    this.#counts.fetches += 1;
    const url = upstream.replaceAll('{key}', key);
    const outcome = await this.#feeds.fetch(key, { url, time, etag });
    if (this.#closed) return;
    this.#turns.end(asker);
    source.busy = false;
    if (outcome.failed !== undefined) this.#noteFailure(source, outcome.failed);
    else this.#noteSuccess(source, outcome);
    this.#beginFetches();
  }

  #noteSuccess(source, { etag, unchanged }) {
    if (source.failures > 0) this.#report(source, 'info', 'the upstream answers again');
    if (unchanged) this.#counts.fetchesUnchanged += 1;
    Object.assign(source, { failures: 0, first: false, etag });
    // The feed was deleted during the fetch and requested again: the fetched value was compared with the deleted one.
    const isStale = this.#feeds.find(source.key)?.length === 0;
    this.#scheduleRefetch(source, isStale ? 0 : this.#refetchEvery);
  }

  #noteFailure(source, reason) {
    this.#counts.fetchesFailed += 1;
    const wait = Math.min(this.#refetchEvery * 2 ** source.failures, LONGEST_BACKOFF);
    const milliseconds = Math.round(jitter(wait));
    // Logged once, not at every retry: the failure may last for days.
    if (source.failures === 0) this.#report(source, 'warn', 'the upstream has failed', { reason });
    source.failures += 1;
    if (this.#feeds.find(source.key)?.length === 0) this.#feeds.fail(source.key, milliseconds);
    this.#scheduleRefetch(source, milliseconds);
  }

  #report({ key, first }, level, message, details) {
    this.#logs[first ? 'first' : 'others'](level, { feed: key, ...details }, message);
  }
}
