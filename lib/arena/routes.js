import { describeGames } from './games.js';

/**
 * The arena's routes: joining, playing and leaving, and what there is to play. The native front
 * door answers inputs itself and alike (native/arena/arena.h).
 */

/** The largest input, in bytes: as in native/arena/input_reader.h. */
const INPUT_BYTES = 512;

/**
 * @param {object} parts
 * @param {import('./arena.js').Arena} parts.arena
 * @param {Map<string, import('./games.js').Game>} parts.games
 * @param {() => object | Promise<object>} parts.whole what the admin port's GET /status answers
 * @param {object} parts.tools of lib/http/routes.js
 * @returns {[string, object][]} as the routes there: by how many segments, who answers by the method
 */
export function arenaRoutes({ arena, games, whole, tools }) {
  const { Refusal, authorize, readBody, readNumber, json, nothing } = tools;

  function settle(outcome) {
    if (outcome !== 'ok') throw new Refusal(outcome);
    return nothing();
  }

  async function join({ path: [, name], address }) {
    const { outcome, player } = await arena.join(name, address);
    if (outcome !== 'ok') throw new Refusal(outcome);
    return json(201, player);
  }

  async function input(request) {
    const [, name, player] = request.path;
    const number = readNumber(request.query, 'n', 'bad-number') ?? -1;
    const body = await readBody(request, INPUT_BYTES, 'input-too-large');
    return settle(await arena.input(name, player, number, body));
  }

  async function leave({ path: [, name, player, what] }) {
    if (what !== 'leave') throw new Refusal('not-found');
    return settle(await arena.leave(name, player));
  }

  async function status(request) {
    const [, name, what] = request.path;
    if (what !== 'status') throw new Refusal('not-found');
    authorize(request);
    if (arena.owns(`arena/${name}`) === undefined) throw new Refusal('unknown-arena');
    return json(200, await whole());
  }

  return [
    ['games/1', { GET: () => json(200, { games: describeGames(games) }) }],
    ['arena/1', { GET: async () => json(200, { arenas: await arena.list() }) }],
    ['arena/2', { POST: join }],
    ['arena/3', { POST: input, GET: status }],
    ['arena/4', { POST: leave }]
  ];
}
