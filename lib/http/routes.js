import { REQUEST_BYTES, openApplication } from './application.js';
import { openApi } from './openapi.js';
import { createTools } from './tools.js';
import { torusRoutes } from './torus-routes.js';
import { Refusal } from '../base/refusal.js';
import { Unanswerable } from '../torus/pool.js';
import { CONTENT_BYTES } from '../arena/content.js';
import { ARENA_PAGES } from '../arena/files.js';
import { arenaRoutes } from '../arena/routes.js';
import { openPublisher } from '../feeds/publisher.js';
import { feedRoutes } from '../feeds/routes.js';
import { WATCH_BYTES } from '../feeds/watch-request.js';
import { Directory } from '../world/directory.js';

/**
 * The wire contract: the meaning of each request, and its answer. This module uses no socket.
 *
 *   request ─▶ route ─▶ pool, feeds, arena ─▶ answer, or a problem
 *
 * The native front door answers the hot requests itself, in the same way. All other requests come here through
 * lib/http/exchange.js, so that the routes speak the whole contract.
 */

/**
 * @typedef {object} Request
 * @property {string} method
 * @property {string} target path and query, as they were sent
 * @property {string[]} path segments of the path, not decoded: ids and edges have no escapes
 * @property {URLSearchParams} query
 * @property {Record<string, string>} headers by their names in lower case
 * @property {(maxBytes: number) => Buffer | null} body returns the body; null for more than `maxBytes` bytes; throws BodyPending
 *     while the client waits for 100 Continue
 * @property {string} address the client's address
 * @property {boolean} secure whether the request came by TLS
 * @property {(cancel: () => void) => void} park marks an answer that may never come; `cancel` is called when the
 *     connection closes first
 * @property {boolean} transient whether the request came by the port for joins, throws and leaves
 * @property {(watchRequest: object) => void} watch makes the request a watcher of feeds; `watchRequest` is what
 *     lib/feeds/watch-request.js has read
 */

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Record<string, string | number | string[]>} headers
 * @property {string | Buffer} [body]
 */

/** Largest body of a request whose route reads no body, in bytes. */
const DEFAULT_BODY_BYTES = 16384;

/** Index of the segment with the id of a client or player, by the first segment. */
const ID_SEGMENT = { poll: 1, throw: 1, leave: 1, place: 1, status: 1, arena: 2 };

/** First segments of the paths that the transient port serves. */
const TRANSIENT_PATHS = ['join', 'throw', 'leave'];

/** Headers of the answer to a preflight; a browser may cache it for so many seconds. */
const PREFLIGHT_HEADERS = {
  'Access-Control-Allow-Methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type, Last-Event-ID',
  'Access-Control-Max-Age': '86400'
};

/** Thrown where a route reads a body that has not arrived. Nothing has happened yet: the request is handled again with its body. */
export class BodyPending extends Error {}

/** Returned in place of an answer: the route wants the body. */
export const NEEDS_BODY = Symbol('the body is awaited');

/** Returns the refusal of a method where others are allowed. */
const notAllowed = (...methods) =>
  new Refusal('method-not-allowed', { headers: { Allow: methods.join(', ') } });

/**
 * Returns the routes, by the first segment of a path and the number of segments, or by the first segment alone. Each has
 * the functions that answer, by method.
 */
function openRoutes(parts) {
  const { options, arena, tools } = parts;
  const torus = torusRoutes(parts);
  const { feed, feeds } = feedRoutes({ ...parts, publisher: openPublisher(parts) });
  /** Made at its first request. */
  let openApiDocument;
  const document = () => tools.json(200, (openApiDocument ??= openApi(options, routes)));
  const routes = new Map([
    ['join/1', { POST: torus.join }],
    ['poll/2', { GET: torus.poll }],
    ['throw/3', { POST: torus.throwSprite }],
    ['leave/2', { POST: torus.leave }],
    ['place/2', { GET: torus.place }],
    ['status/1', { GET: torus.counts, HEAD: torus.counts }],
    ['status/2', { GET: torus.countsOf }],
    ['addresses/1', { GET: torus.addresses }],
    ['openapi.json/1', { GET: document }],
    ['feed', feed],
    ['feeds/1', feeds],
    ...(options.arena.length > 0 && arena !== undefined ? arenaRoutes(parts) : [])
  ]);
  return routes;
}

/** Refuses a request for a client of another server of the world. The answer names that server, or says that it is restarting. */
async function refuseMisdirected({ path, query }, directory, pool) {
  const id = path[ID_SEGMENT[path[0]]];
  const url = id === undefined ? undefined : directory.urlOf(id);
  // An id that is older than the world may have the tag of any server.
  if (url === undefined || (await pool.place(id)) !== null) return;
  if (url === null) throw new Refusal('restarting');
  const target = path.map(encodeURIComponent).join('/');
  const search = query.size > 0 ? `?${query}` : '';
  throw new Refusal('misdirected', {
    detail: 'This client has its place at another server: ask there, at Location, from now on.',
    headers: { Location: `${url}/${target}${search}` }
  });
}

/** Returns the page for a browser at the address of an unknown arena: the page says so, and what to do. */
function pageOfUnknownArena(request, pages, options) {
  const { path, headers } = request;
  const [page, name] = path;
  const isPage = path.length === 2 && ARENA_PAGES.includes(page) && /^[\w.~-]*$/.test(name);
  if (!isPage || !/\btext\/html\b/i.test(headers.accept)) return undefined;
  return pages.answer(request, `/${page}/${options.arena[0]}`, options);
}

/**
 * Creates the routes.
 *
 * @param {object} parts
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {import('../feeds/feeds.js').Feeds} parts.feeds
 * @param {ReturnType<import('../feeds/tokens.js').openTokens>} [parts.tokens] tokens of publishers
 * @param {import('../grants/open.js').Grants} [parts.grants]
 * @param {object} parts.options see lib/operator/options.js: hold, lease, maxSprite, cors
 * @param {import('pino').Logger} parts.log
 * @param {() => object | Promise<object>} parts.status returns the answer to GET /status
 * @param {ReturnType<import('../base/page-files.js').openPages>} parts.pages
 * @param {Map<string, import('../arena/games.js').Game>} [parts.games] with an arena
 * @param {import('../arena/arena.js').Arena} [parts.arena] absent without --arena
 * @param {() => object | Promise<object>} [parts.fullStatus] all live counts, for the arena's panel
 * @param {import('./refusals.js').Refusals} parts.refusals
 * @param {Directory} [parts.directory] finds the clients of the other servers of a world
 * @param {Function} [parts.application] answers other paths: see openApplication
 * @returns {{handle: (request: Request) => Promise<Answer | null | undefined>, answerFailure: (error: Error) => Answer,
 *     routes: Map<string, Record<string, Function>>, bodyLimits: [string, number][], defaultBodyLimit: number, headers: Record<string, string>}} `handle`
 *     never rejects; null: the request may not be answered, and the door closes its connection; undefined: the request
 *     watches feeds; NEEDS_BODY: the door calls `handle` again with the body. `headers` are the fields of every answer
 */
export function createRoutes(parts) {
  const { pool, options, log, pages, directory = new Directory(), application, refusals } = parts;
  const tools = createTools(parts);
  const { common, noContent, problem } = tools;
  const routes = openRoutes({ ...parts, tools });
  const callApplication = application && openApplication(application);

  function answerFile(request, name) {
    const file =
      pages.answer(request, name, options) ?? pageOfUnknownArena(request, pages, options);
    if (file !== undefined) return { ...file, headers: { ...common, ...file.headers } };
    throw pages.has(name) ? notAllowed('GET', 'HEAD', 'OPTIONS') : new Refusal('not-found');
  }

  async function route(request) {
    const { method, path } = request;
    const found =
      routes.get(`${path[0]}/${path.length}`) ?? (path.length > 1 && routes.get(path[0]));
    const name = `/${path.join('/')}`;
    const isForApplication =
      callApplication && !found && !pages.has(name) && request.target.startsWith('/');
    if (isForApplication && method !== 'CONNECT') return callApplication(request);
    if (method === 'OPTIONS') return noContent(PREFLIGHT_HEADERS);
    // The target of CONNECT is not a path.
    if (method === 'CONNECT') throw notAllowed('GET', 'POST', 'OPTIONS');
    if (request.transient && !TRANSIENT_PATHS.includes(path[0])) throw new Refusal('misdirected');
    if (!found) return answerFile(request, name);
    // A method may be called like a member that every object inherits.
    if (!Object.hasOwn(found, method)) throw notAllowed(...Object.keys(found), 'OPTIONS');
    await refuseMisdirected(request, directory, pool);
    return found[method](request);
  }

  async function handle(request) {
    try {
      return await route(request);
    } catch (error) {
      if (error instanceof BodyPending) return NEEDS_BODY;
      if (error instanceof Unanswerable) return null;
      if (error instanceof Refusal) {
        const { problem: why, detail, headers } = error;
        // Too short for an id.
        const requestName = `${request.method} ${request.path[0]}`.slice(0, 20);
        refusals.noteRefusal({ from: request.address, request: requestName, why });
        return problem(why, { detail, headers });
      }
      return answerFailure(error);
    }
  }

  /** Logs a defect in a route and returns its answer. A defect must not end the process and its million parked polls. */
  function answerFailure(error) {
    log.error({ err: error }, 'a request failed');
    return problem('internal-error');
  }

  /** Largest body in bytes, by the first segment of the path. */
  const bodyLimits = [
    ['throw', options.maxSprite],
    ['feed', options.feedBytes],
    ['feeds', WATCH_BYTES],
    ['arena', CONTENT_BYTES]
  ];
  const defaultBodyLimit = callApplication ? REQUEST_BYTES : DEFAULT_BODY_BYTES;

  return { handle, answerFailure, routes, bodyLimits, defaultBodyLimit, headers: common };
}
