import { describeGames } from './games.js';

/**
 * The arena over node:http: who joins, plays and leaves, and what there is to play. The native front
 * door answers inputs itself and alike (native/pool/arena.h).
 */

/** The largest input, in bytes: as in native/pool/input_reader.h. */
const INPUT_BYTES = 512;

/**
 * @param {object} parts
 * @param {import('./arena.js').Arena} parts.arena
 * @param {Map<string, import('./games.js').Game>} parts.games
 * @param {() => object | Promise<object>} parts.whole what the admin port's GET /status answers
 * @param {object} parts.tools of lib/server/routes.js
 * @returns {[string, object][]} as the routes there: by how many segments, who answers by the method
 */
export function arenaRoutes({ arena, games, whole, tools }) {
  const { Refusal, authorize, readBody, readNumber, sendJson, sendNothing, addressOf } = tools;

  function settle(outcome, response) {
    if (outcome !== 'ok') throw new Refusal(outcome);
    sendNothing(response);
  }

  async function join(request, response, [, name]) {
    const { outcome, player } = await arena.join(name, addressOf(request));
    if (outcome !== 'ok') throw new Refusal(outcome);
    sendJson(response, 201, player);
  }

  async function input(request, response, [, name, player], query) {
    const number = readNumber(query, 'n', 'bad-number') ?? -1;
    const body = await readBody(request, INPUT_BYTES, 'input-too-large');
    settle(await arena.input(name, player, number, body), response);
  }

  async function leave(request, response, [, name, player, what]) {
    if (what !== 'leave') throw new Refusal('not-found');
    settle(await arena.leave(name, player), response);
  }

  async function status(request, response, [, name, what]) {
    if (what !== 'status') throw new Refusal('not-found');
    authorize(request);
    if (arena.owns(`arena/${name}`) === undefined) throw new Refusal('unknown-arena');
    sendJson(response, 200, await whole());
  }

  return [
    [
      'games/1',
      { GET: (request, response) => sendJson(response, 200, { games: describeGames(games) }) }
    ],
    [
      'arena/1',
      { GET: async (request, response) => sendJson(response, 200, { arenas: await arena.list() }) }
    ],
    ['arena/2', { POST: join }],
    ['arena/3', { POST: input, GET: status }],
    ['arena/4', { POST: leave }]
  ];
}
