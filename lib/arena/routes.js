import { CONTENT_BYTES } from './content.js';
import { describeGames } from './games.js';
import { NAME_BYTES } from './names.js';

/**
 * The arena over node:http: who joins, plays and leaves, what they are called, and what there is to play. The native front
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

  /** Answers what a change has become. */
  function conclude({ problem, detail }, response) {
    if (problem !== undefined) throw new Refusal(problem, { detail });
    sendNothing(response);
  }

  async function leaveOrName(request, response, [, name, player, what]) {
    if (what === 'leave') return settle(await arena.leave(name, player), response);
    if (what !== 'name') throw new Refusal('not-found');
    const body = await readBody(request, NAME_BYTES, 'input-too-large');
    return conclude(await arena.name(name, player, body), response);
  }

  /** `names/7`, whether a name is put away, and `content/quiz`, what a game is about. */
  async function put(request, response, [, name, what, which]) {
    if (what !== 'names' && what !== 'content') throw new Refusal('not-found');
    authorize(request);
    if (what === 'content') {
      const content = await readBody(request, CONTENT_BYTES, 'content-too-large');
      return conclude(await arena.putContent(name, which, content), response);
    }
    if (!/^[1-9][0-9]{0,9}$/.test(which)) throw new Refusal('unknown-player');
    const body = await readBody(request, NAME_BYTES, 'input-too-large');
    return conclude(await arena.putName(name, Number(which), body), response);
  }

  async function content(request, response, [, name, what, game]) {
    if (what !== 'content') throw new Refusal('not-found');
    authorize(request);
    show(await arena.content(name, game), response);
  }

  function show({ problem, ...found }, response) {
    if (problem !== undefined) throw new Refusal(problem);
    sendJson(response, 200, found);
  }

  async function statusOrNames(request, response, [, name, what], query) {
    if (what !== 'status' && what !== 'names') throw new Refusal('not-found');
    authorize(request);
    if (what === 'names') {
      return show(await arena.names(name, readNumber(query, 'after', 'bad-number')), response);
    }
    if (arena.owns(`arena/${name}`) === undefined) throw new Refusal('unknown-arena');
    return sendJson(response, 200, await whole());
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
    ['arena/3', { POST: input, GET: statusOrNames }],
    ['arena/4', { POST: leaveOrName, GET: content, PUT: put }]
  ];
}
