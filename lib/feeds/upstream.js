import { FetchTurns } from './fetch-turns.js';

/**
 * The upstream: decides when which feed is fetched. Worker threads fetch and compare
 * (lib/feeds/fetch-value.js).
 *
 *   asked for ─▶ turns, --upstream-at-once ─▶ fetch ─┬▶ again after --upstream-every, while watched
 *                                                    └▶ failed: later and later; the value stands
 *   no request for --feed-idle ─▶ forgotten
 */

/** The longest wait between two fetches of a feed that fail, in milliseconds. */
const LONGEST_BACKOFF = 300000;

/** Doublings after which a wait is the longest, whatever it began with. */
const MOST_DOUBLINGS = 20;

/** A random share, between half and all, of a wait: feeds that failed together are retried apart. */
const jitter = (milliseconds) => milliseconds * (0.5 + Math.random() / 2);

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
  const counts = { fetches: 0, fetchesUnchanged: 0, fetchesFailed: 0 };

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
    if (feed.idle >= idle) {
      feeds.forget(source.key);
      return forget(source);
    }
    return after(source, Math.min(every, idle - feed.idle + 1));
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
    turns.end(asker);
    source.busy = false;
    if (outcome.failed !== undefined) failed(source, outcome.failed);
    else succeeded(source, outcome);
    work();
  }

  function succeeded(source, { etag, unchanged }) {
    if (source.failures > 0) log.info({ feed: source.key }, 'the upstream answers again');
    if (unchanged) counts.fetchesUnchanged += 1;
    source.failures = 0;
    source.first = false;
    source.etag = etag;
    after(source, every);
  }

  function failed(source, reason) {
    counts.fetchesFailed += 1;
    const wait = Math.min(every * 2 ** Math.min(source.failures, MOST_DOUBLINGS), LONGEST_BACKOFF);
    const milliseconds = Math.round(jitter(wait));
    // Logged once, not at every try: the failure may last for days.
    if (source.failures === 0) log.warn({ feed: source.key, reason }, 'the upstream has failed');
    source.failures += 1;
    const feed = feeds.find(source.key);
    if (feed !== null && feed.length === 0) feeds.fail(source.key, milliseconds);
    after(source, milliseconds);
  }

  if (options.upstream !== 'none') {
    feeds.onFetch((key, asker) => {
      let source = sources.get(key);
      if (source === undefined) {
        source = { key, failures: 0, busy: false };
        sources.set(key, source);
      }
      clearTimeout(source.timer);
      turns.delete(source);
      Object.assign(source, { asker, first: true });
      // The fetch under way serves this request as well.
      if (!source.busy) turns.add(source);
      work();
    });
  }

  return {
    status: () => ({ ...counts, fetching: turns.underWay, fetchesWaiting: turns.size }),
    close() {
      for (const source of sources.values()) clearTimeout(source.timer);
      turns.clear();
    }
  };
}
