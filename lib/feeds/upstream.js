import { FetchTurns } from './fetch-turns.js';

/**
 * The upstream: decides when which feed is fetched. Worker threads fetch and compare
 * (lib/feeds/fetch-value.js).
 *
 *   asked for ─▶ turns, --upstream-at-once ─▶ fetch ─┬▶ again after --upstream-every, while watched
 *                                                    └▶ failed: later and later; the value stands
 *   no request for --feed-idle ─▶ forgotten
 *
 * What an earlier run has fetched goes on as if this one had, and is forgotten where there is no upstream any more.
 */

/** The longest wait between two fetches of a feed that fail, in milliseconds. */
const LONGEST_BACKOFF = 300000;

/** Doublings after which a wait is the longest, whatever it began with. */
const MOST_DOUBLINGS = 20;

/** Lines of the log of one level in so many milliseconds: an upstream may fail for all feeds, and clients may ask for any key. */
const MOST_LINES = 10;
const LINES_TIME = 60_000;

/** In place of the number of an address. */
const NOBODY = 0;

/** A random share, between half and all, of a wait: feeds that failed together are retried apart. */
const jitter = (milliseconds) => milliseconds * (0.5 + Math.random() / 2);

/** @returns {(level: string, fields: object, message: string) => void} logs at most so many, and how many were left out */
function fewLines(log) {
  let began = -Infinity;
  let lines = { warn: 0, info: 0 };
  let omitted = 0;
  return (level, fields, message) => {
    if (performance.now() - began >= LINES_TIME) {
      if (omitted > 0) log.warn({ omitted }, 'the upstream has failed, or answers again, for more');
      began = performance.now();
      lines = { warn: 0, info: 0 };
      omitted = 0;
    }
    lines[level] += 1;
    if (lines[level] <= MOST_LINES) log[level](fields, message);
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
  const every = options.upstreamEvery * 1000;
  const idle = options.feedIdle * 1000;
  /** What is known of a key that is fetched. @type {Map<string, object>} */
  const sources = new Map();
  /** Those that are to be fetched, and are not being fetched. */
  const turns = new FetchTurns(options.upstreamAtOnce);
  // Feeds that were never fetched leave the others their lines.
  const [ofFirst, ofOthers] = [fewLines(log), fewLines(log)];
  const tell = ({ key, first }, level, message, more) =>
    (first ? ofFirst : ofOthers)(level, { feed: key, ...more }, message);
  const counts = { fetches: 0, fetchesUnchanged: 0, fetchesFailed: 0 };
  let closed = false;

  function after(source, milliseconds) {
    clearTimeout(source.timer);
    source.timer = setTimeout(look, milliseconds, source);
    source.timer.unref();
  }

  /** The time to fetch a feed again has come: it is fetched if it is watched. */
  function look(source) {
    const feed = feeds.find(source.key);
    if (feed === null || (feed.length > 0 && !feed.upstream)) return forget(source);
    // A client that is about to poll again is not parked for a moment.
    if (feed.watching > 0 || feed.idle < every) {
      turns.add(source);
      return work();
    }
    const left = idle - feed.idle;
    if (left > 0) return after(source, Math.min(every, left + 1));
    // Where it can't be written that the feed is forgotten, it is tried again.
    return feeds.forget(source.key) ? forget(source) : after(source, every);
  }

  function forget(source) {
    clearTimeout(source.timer);
    turns.delete(source);
    sources.delete(source.key);
  }

  function work() {
    for (let source = turns.take(); source !== undefined; source = turns.take()) run(source);
  }

  async function run(source) {
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
    work();
  }

  function succeeded(source, { etag, unchanged }) {
    if (source.failures > 0) tell(source, 'info', 'the upstream answers again');
    if (unchanged) counts.fetchesUnchanged += 1;
    source.failures = 0;
    source.first = false;
    source.etag = etag;
    // Deleted during the fetch, and asked for anew: what came was compared with what is gone.
    after(source, feeds.find(source.key)?.length === 0 ? 0 : every);
  }

  function failed(source, reason) {
    counts.fetchesFailed += 1;
    const wait = Math.min(every * 2 ** Math.min(source.failures, MOST_DOUBLINGS), LONGEST_BACKOFF);
    const milliseconds = Math.round(jitter(wait));
    // Logged once, not at every try: the failure may last for days.
    if (source.failures === 0) tell(source, 'warn', 'the upstream has failed', { reason });
    source.failures += 1;
    const feed = feeds.find(source.key);
    if (feed !== null && feed.length === 0) feeds.fail(source.key, milliseconds);
    after(source, milliseconds);
  }

  function begin(key) {
    const source = { key, asker: NOBODY, first: false, failures: 0, busy: false };
    sources.set(key, source);
    return source;
  }

  for (const key of feeds.fetched()) {
    if (options.upstream === 'none') feeds.forget(key);
    else after(begin(key), jitter(every));
  }
  feeds.onFetch((key, asker) => {
    const source = sources.get(key) ?? begin(key);
    clearTimeout(source.timer);
    turns.delete(source);
    Object.assign(source, { asker, first: true });
    // The fetch under way serves this request as well.
    if (!source.busy) turns.add(source);
    work();
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
