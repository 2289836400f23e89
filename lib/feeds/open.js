import { Feeds } from './feeds.js';
import { openFeedState } from './state.js';
import { Threads } from './threads.js';
import { openTokens } from './tokens.js';
import { openUpstream } from './upstream.js';

/**
 * Everything that belongs to the feeds of a server, in one piece.
 *
 * @param {object} options see lib/server/options.js
 * @param {import('../server/address-limits.js').AddressLimits} limits
 * @param {import('pino').Logger} log
 * @param {{run: number, runBefore: number, ended: boolean}} runs see lib/server/state.js
 * @returns {{feeds: Feeds, tokens: ReturnType<typeof openTokens>, ready: Promise<void>, status: () => object,
 *     taken: () => void, keep: () => void, reload: () => void, close: () => Promise<void>}}
 *     `ready`: when its threads are there; `taken`, `keep`: see lib/feeds/state.js; `reload` reads the tokens anew
 * @throws {Error} in one line: a file of tokens or a state that can't be used
 */
export function openFeeds(options, limits, log, runs) {
  const tokens = openTokens(options);
  const threads = new Threads(options.feedThreads);
  const feeds = new Feeds(options, threads, log, limits);
  const state = openFeedState({ feeds, options, runs, log });
  // Where nobody can publish, here or elsewhere, and nothing is fetched there is nothing for them to do.
  const fetched = options.upstream !== 'none';
  const needed = tokens.open || fetched || options.arena.length > 0 || options.world !== 'none';
  const ready = needed ? threads.start() : Promise.resolve();
  // It may fail before anybody waits for it.
  ready.catch(() => {});
  const upstream = openUpstream({ feeds, options, log });
  return {
    feeds,
    tokens,
    ready,
    status: () => ({ ...feeds.status(), ...upstream.status() }),
    taken: () => state.taken(),
    keep: () => state.keep(),
    reload() {
      try {
        tokens.reload();
      } catch (error) {
        log.error({ err: error }, 'the tokens stay as they were');
      }
    },
    async close() {
      upstream.close();
      feeds.close();
      await threads.close();
      state.close();
    }
  };
}
