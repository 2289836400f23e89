import { randomBytes } from 'node:crypto';

import { startBots } from '../arena/bots.js';
import { findGame } from '../arena/games.js';
import { UsageError } from '../base/option-help.js';
import { readOptions, whole } from '../operator/options.js';
import { urlsOf } from '../base/port-errors.js';

/**
 * `sprites play FOLDER`: an author tries a game alone. The command starts a server with one arena and that one game, a
 * page with field, phone and panel (pages/try.html), and bots that play.
 */

const ARENA = 'try';

/** @type {import('../operator/options.js').Command} */
export const TRIAL_COMMAND = {
  options: [{ name: 'bots', default: '5', type: whole(0, 100), help: 'bots that play' }],
  rules: [
    {
      holds: ({ arena, games, publishTokenFile }) =>
        arena.length === 0 && games === 'none' && publishTokenFile === 'none',
      message:
        'play has an arena and a token of its own: leave out --arena, --games and --publish-token-file'
    }
  ]
};

/**
 * @param {string[]} args the folder, and options
 * @param {Record<string, string | undefined>} environment
 * @returns {object} the server's options, with `play`: the folder and the token of this run
 * @throws {Error} with a message of one line: an option is wrong (UsageError), or the folder has no game
 */
export function readTrial(args, environment) {
  const hasFolder = args.length > 0 && args[0] !== '' && !args[0].startsWith('-');
  const [folder] = args;
  const options = readOptions(
    args.slice(hasFolder || args[0] === '' ? 1 : 0),
    environment,
    TRIAL_COMMAND
  );
  if (options.help || options.version) return options;
  if (!hasFolder) throw new UsageError('play takes the folder of a game: sprites play games/clap');
  try {
    findGame(folder);
  } catch (error) {
    throw new Error(`play ${folder}: this is no game: ${error.message}`, { cause: error });
  }
  const token = randomBytes(16).toString('hex');
  return { ...options, arena: [ARENA], play: { folder, token } };
}

/**
 * Starts the game, and bots that play it.
 *
 * @param {{port: number}} server
 * @param {object} options as readTrial returns them
 * @param {import('pino').Logger} log
 * @returns {Promise<{name: string, url: string, stop: () => void}>} `url` of its page
 */
export async function tryGame({ port }, { host, bots, play: { folder, token } }, log) {
  const { name, format } = findGame(folder);
  const [base] = urlsOf('http', host, port);
  const answer = await fetch(new URL(`feed/arena/${ARENA}/control`, base), {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/merge-patch+json' },
    body: JSON.stringify({ running: true })
  });
  if (!answer.ok) throw new Error(`${folder}: ${(await answer.json()).detail}`);
  const playing = startBots({ base, arena: ARENA, count: bots, folder, format, log });
  // The token is behind the #, so that no request and no log has it.
  return { name, url: new URL(`try/${ARENA}#${token}`, base).href, stop: playing.stop };
}
