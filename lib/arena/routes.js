import { randomUUID } from 'node:crypto';

import { CONTENT_BYTES } from './content.js';
import { describeGames } from './games.js';
import { NAME_BYTES } from './names.js';
import { Refusal } from '../base/refusal.js';

/**
 * The arena's routes: join, input, leave, names, content, status, games and arenas. The native front door answers
 * inputs itself, with the same answers (native/arena/arena.h).
 */

/** Largest input, in bytes, as in native/arena/input_reader.h. */
const INPUT_BYTES = 512;

/**
 * @param {object} parts
 * @param {import('./arena.js').Arena} parts.arena
 * @param {Map<string, import('./games.js').Game>} parts.games
 * @param {() => object | Promise<object>} parts.fullStatus returns the answer to GET /status of the admin port
 * @param {object} parts.tools of lib/http/tools.js
 * @returns {[string, object][]} like the routes there: first segment and number of segments; the handlers by method
 */
export function arenaRoutes({ arena, games, fullStatus, tools }) {
  const { requireToken, requireJoinGrant, readBody, readNumber, json, noContent } = tools;
  /** Id of this run, by which a panel notices a restart of the server. */
  const runId = randomUUID();

  async function join(request) {
    await requireJoinGrant(request);
    const {
      path: [, name],
      address
    } = request;
    return json(201, await arena.join(name, address));
  }

  async function input(request) {
    const [, name, player] = request.path;
    const number = readNumber(request.query, 'n', 'bad-number') ?? -1;
    const body = await readBody(request, INPUT_BYTES, 'input-too-large');
    await arena.input(name, player, number, body);
    return noContent();
  }

  async function leaveOrName(request) {
    const [, name, player, action] = request.path;
    if (action !== 'leave' && action !== 'name') throw new Refusal('not-found');
    if (action === 'leave') await arena.leave(name, player);
    else await arena.setName(name, player, await readBody(request, NAME_BYTES, 'input-too-large'));
    return noContent();
  }

  /** Answers PUT `names/7`, which hides or shows a name, and PUT `content/quiz`, which sets a game's content. */
  async function put(request) {
    const [, name, resource, item] = request.path;
    if (resource !== 'names' && resource !== 'content') throw new Refusal('not-found');
    requireToken(request);
    if (resource === 'content') {
      const content = await readBody(request, CONTENT_BYTES, 'content-too-large');
      await arena.setContent(name, item, content);
    } else {
      const number = /^[1-9][0-9]{0,9}$/.test(item) ? Number(item) : NaN;
      const body = await readBody(request, NAME_BYTES, 'input-too-large');
      await arena.setNameAway(name, number, body);
    }
    return noContent();
  }

  async function content(request) {
    const [, name, resource, game] = request.path;
    if (resource !== 'content') throw new Refusal('not-found');
    requireToken(request);
    return json(200, { content: arena.content(name, game) });
  }

  async function statusOrNames(request) {
    const [, name, resource] = request.path;
    if (resource !== 'status' && resource !== 'names') throw new Refusal('not-found');
    requireToken(request);
    if (resource === 'names') {
      return json(200, arena.listNames(name, readNumber(request.query, 'after', 'bad-number')));
    }
    if (arena.feedRole(`arena/${name}`) === undefined) throw new Refusal('unknown-arena');
    return json(200, { ...(await fullStatus()), run: runId, arenaRate: arena.mostRate });
  }

  return [
    ['games/1', { GET: () => json(200, { games: describeGames(games) }) }],
    ['arena/1', { GET: async () => json(200, { arenas: await arena.list() }) }],
    ['arena/2', { POST: join }],
    ['arena/3', { POST: input, GET: statusOrNames }],
    ['arena/4', { POST: leaveOrName, GET: content, PUT: put }]
  ];
}
