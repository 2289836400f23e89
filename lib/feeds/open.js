import { Feeds } from './feeds.js';
import { openFeedState } from './state.js';
import { Threads } from './threads.js';
import { openTokens } from './tokens.js';
import { openUpstream } from './upstream.js';

/**
 * Everything that belongs to the feeds of a server, in one piece.
 *
 * @param {object} options see lib/server/options.js
 * @param {import('pino').Logger} log
 * @returns {{feeds: Feeds, tokens: ReturnType<typeof openTokens>, status: () => object,
 *     taken: () => void, keep: () => void, reload: () => void, close: () => Promise<void>}}
 *     `taken`, `keep`: see lib/feeds/state.js; `reload` reads the tokens anew
 * @throws {Error} in one line: a file of tokens or a state that can't be used
 */
export function openFeeds(options, log) {
  const tokens = openTokens(options);
  const threads = new Threads(options.feedThreads);
  const feeds = new Feeds(options, threads, log);
  const state = openFeedState({ feeds, options, log });
  const upstream = openUpstream({ feeds, options, log });
  return {
    feeds,
    tokens,
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
    }
  };
}
