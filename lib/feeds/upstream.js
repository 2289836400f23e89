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

/** Most doublings of a wait: with these even the shortest wait has become the longest. */
const MAX_DOUBLINGS = 20;

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

/**
 * @param {object} parts
 * @param {import('./feeds.js').Feeds} parts.feeds
 * @param {object} parts.options upstream, upstreamEvery, upstreamAtOnce, upstreamTime, feedIdle
 * @param {import('pino').Logger} parts.log
 * @returns {{status: () => object, close: () => void}}
 */
export function openUpstream({ feeds, options, log }) {
  const refetchEvery = options.upstreamEvery * 1000;
  const forgetAfter = options.feedIdle * 1000;
  /** The fetched keys and their state. @type {Map<string, object>} */
  const sources = new Map();
  /** Sources that wait for their fetch. */
  const turns = new FetchTurns(options.upstreamAtOnce);
  // Failing first fetches must not use up the lines of feeds that worked before.
  const [logFirst, logOthers] = [limitedLog(log), limitedLog(log)];
  const report = ({ key, first }, level, message, details) =>
    (first ? logFirst : logOthers)(level, { feed: key, ...details }, message);
  const counts = { fetches: 0, fetchesUnchanged: 0, fetchesFailed: 0 };
  let closed = false;

  function scheduleRefetch(source, milliseconds) {
    clearTimeout(source.timer);
    source.timer = setTimeout(refetchOrForget, milliseconds, source);
    source.timer.unref();
  }

  /** Fetches a feed again if it is watched; forgets it if it is idle. */
  function refetchOrForget(source) {
    const feed = feeds.find(source.key);
    if (feed === null || (feed.length > 0 && !feed.upstream)) return removeSource(source);
    // Between two polls a client is not parked for a moment.
    if (feed.watching > 0 || feed.idle < refetchEvery) {
      turns.add(source);
      return beginFetches();
    }
    const remaining = forgetAfter - feed.idle;
    if (remaining > 0) return scheduleRefetch(source, Math.min(refetchEvery, remaining + 1));
    // If the journal can't be written, the feed is forgotten later.
    return feeds.removeFetched(source.key)
      ? removeSource(source)
      : scheduleRefetch(source, refetchEvery);
  }

  function removeSource(source) {
    clearTimeout(source.timer);
    turns.delete(source);
    sources.delete(source.key);
  }

  function beginFetches() {
    for (let source = turns.beginNext(); source !== undefined; source = turns.beginNext())
      fetchSource(source);
  }

  async function fetchSource(source) {
    const { key, asker } = source;
    source.busy = true;
    counts.fetches += 1;
    const url = options.upstream.replaceAll('{key}', key);
    const outcome = await feeds.fetch(key, { url, time: options.upstreamTime, etag: source.etag });
    if (closed) return;
    turns.end(asker);
    source.busy = false;
    if (outcome.failed !== undefined) failed(source, outcome.failed);
    else succeeded(source, outcome);
    beginFetches();
  }

  function succeeded(source, { etag, unchanged }) {
    if (source.failures > 0) report(source, 'info', 'the upstream answers again');
    if (unchanged) counts.fetchesUnchanged += 1;
    source.failures = 0;
    source.first = false;
    source.etag = etag;
    // The feed was deleted during the fetch and requested again: the fetched value was compared with the deleted one.
    scheduleRefetch(source, feeds.find(source.key)?.length === 0 ? 0 : refetchEvery);
  }

  function failed(source, reason) {
    counts.fetchesFailed += 1;
    const wait = Math.min(
      refetchEvery * 2 ** Math.min(source.failures, MAX_DOUBLINGS),
      LONGEST_BACKOFF
    );
    const milliseconds = Math.round(jitter(wait));
    // Logged once, not at every retry: the failure may last for days.
    if (source.failures === 0) report(source, 'warn', 'the upstream has failed', { reason });
    source.failures += 1;
    const feed = feeds.find(source.key);
    if (feed !== null && feed.length === 0) feeds.fail(source.key, milliseconds);
    scheduleRefetch(source, milliseconds);
  }

  function addSource(key) {
    const source = { key, asker: NO_ASKER, first: false, failures: 0, busy: false };
    sources.set(key, source);
    return source;
  }

  for (const key of feeds.fetchedKeys()) {
    if (options.upstream === 'none') feeds.removeFetched(key);
    else scheduleRefetch(addSource(key), jitter(refetchEvery));
  }
  feeds.onFetch((key, asker) => {
    const source = sources.get(key) ?? addSource(key);
    clearTimeout(source.timer);
    turns.delete(source);
    Object.assign(source, { asker, first: true });
    // The fetch under way serves this request as well.
    if (!source.busy) turns.add(source);
    beginFetches();
  });

  return {
    status: () => ({ ...counts, fetching: turns.underWay, fetchesWaiting: turns.size }),
    close() {
      closed = true;
      for (const source of sources.values()) clearTimeout(source.timer);
      turns.clear();
    }
  };
}
