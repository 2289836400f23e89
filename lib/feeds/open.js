import { Feeds } from './feeds.js';
import { Threads } from './threads.js';
import { openTokens } from './tokens.js';
import { Upstream } from './upstream.js';

/**
 * Opens the feeds of a server: the table, its worker threads, the tokens and the upstream.
 *
 * @param {object} parts
 * @param {object} parts.options see lib/operator/options.js
 * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
 * @param {import('../torus/pool.js').Pool} parts.pool keeps the feeds in its state
 * @param {import('../server/state.js').State} parts.state
 * @param {import('pino').Logger} parts.log
 * @param {string[]} [parts.publishTokens] tokens besides those of the file
 * @returns {{feeds: Feeds, tokens: ReturnType<typeof openTokens>, ready: Promise<void>, status: () => object,
 *     reload: () => void, close: () => Promise<void>}}
 *     `ready` resolves when the feeds can be served; `reload` reads the tokens again
 * @throws {Error} with a message of one line: the token file can't be used, or there is no room for the feeds of the last run
 */
export function openFeeds({ options, limits, pool, state, log, publishTokens }) {
  const tokens = openTokens(options, publishTokens);
  const threads = new Threads(options.feedThreads);
  const feeds = new Feeds({ options, threads, log, limits, pool });
  try {
    feeds.restore(state.migration.feeds);
  } catch (error) {
    feeds.close();
    const why = `there is no room for the feeds of the last run (${error.message})`;
    throw new Error(`${why}: raise --feeds or --feed-memory`, { cause: error });
  }
  const upstream = new Upstream({ feeds, options, log });
  const ready = state.needsNewEpochs ? feeds.renew() : Promise.resolve();
  // The promise may reject before a caller waits for it.
  ready.catch(() => {});
  return {
    feeds,
    tokens,
    ready,
    status: () => ({ ...feeds.status(), ...upstream.status() }),
    reload() {
      try {
        tokens.reload();
        if (options.publishTokenFile !== 'none') log.info('the tokens are read anew');
      } catch (error) {
        log.error({ err: error }, 'the tokens stay as they were');
      }
    },
    async close() {
      upstream.close();
      feeds.close();
      await threads.close();
    }
  };
}
