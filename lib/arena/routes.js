import { describeGames } from './games.js';

/**
 * The arena over node:http: who joins, plays and leaves, and what there is to play. The native front
 * door answers inputs itself and alike.
 */

/**
 * @param {object} parts
 * @param {Map<string, import('./games.js').Game>} parts.games
 * @param {object} parts.tools of lib/server/routes.js
 * @returns {[string, object][]} as the routes there: by how many segments, who answers by the method
 */
export function arenaRoutes({ games, tools }) {
  const { sendJson } = tools;
  const description = { games: describeGames(games) };

  return [['games/1', { GET: (request, response) => sendJson(response, 200, description) }]];
}
