import { REQUEST_BYTES, openApplication } from './application.js';
import { openApi } from './openapi.js';
import { problemAnswer, problems } from './problems.js';
import { shareableUrls } from '../base/lan-addresses.js';
import { Refusal } from '../base/refusal.js';
import { EDGES, Unanswerable } from '../torus/pool.js';
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

const JSON_TYPE = 'application/json';

/** Largest body of a request whose route reads no body, in bytes. */
const DEFAULT_BODY_BYTES = 16384;

const DECIMAL = /^[0-9]{1,16}$/;

/** A Content-Encoding of a body that is not compressed (RFC 9110, section 8.4.1). */
const IDENTITY = /^(identity|[ \t,])*$/i;

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

/** Problems to which the answer adds TOKEN_ADVICE: the token was read as a grant, but may be meant as a publisher's. */
const GRANT_PROBLEMS = ['grant-required', 'bad-grant'];
const TOKEN_ADVICE = 'A publisher sends a token of the file in --publish-token-file.';

/**
 * Reads a number of the query. Refuses anything but one plain decimal.
 *
 * @param {URLSearchParams} query
 * @param {string} name
 * @param {string} problem the problem of a refusal
 * @returns {number | undefined} undefined: the query has no such number
 */
function readNumber(query, name, problem) {
  const values = query.getAll(name);
  if (values.length === 0) return undefined;
  const number = DECIMAL.test(values[0]) ? Number(values[0]) : NaN;
  if (values.length > 1 || !Number.isSafeInteger(number)) throw new Refusal(problem);
  return number;
}

/**
 * Returns the answer to a join.
 *
 * @param {string} id
 * @param {object} options see lib/operator/options.js
 * @returns {object} `transient` is the additional port for joins, throws and leaves
 */
export function joinAnswer(id, { hold, lease, maxSprite, transientPort }) {
  const transient = transientPort > 0 ? { transient: transientPort } : {};
  return { id, hold, lease, maxSprite, ...transient };
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
 * @param {Map<string, import('../arena/games.js').Game>} [parts.games]
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
export function createRoutes({
  pool,
  feeds,
  tokens,
  grants,
  options,
  log,
  status,
  pages,
  games = new Map(),
  arena,
  fullStatus,
  directory = new Directory(),
  application,
  refusals
}) {
  const common = { 'Cache-Control': 'no-store' };
  if (options.cors !== 'none') {
    common['Access-Control-Allow-Origin'] = options.cors;
    common['Access-Control-Expose-Headers'] = 'Location, Retry-After';
    if (options.cors !== '*') common.Vary = 'Origin';
  }

  const text = (status, type, body) => ({
    status,
    headers: { ...common, 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) },
    body
  });

  const json = (status, value) => text(status, JSON_TYPE, JSON.stringify(value));

  // An answer with 204 has no content, and no Content-Length (RFC 9110, section 8.6).
  const noContent = (headers) => ({ status: 204, headers: { ...common, ...headers } });

  /** Reads a body of at most `maxBytes` bytes. Refuses a longer one with `problem`, and a compressed one. */
  function readBody(request, maxBytes, problem) {
    if (!IDENTITY.test(request.headers['content-encoding'] ?? '')) {
      throw new Refusal('bad-media-type', {
        detail: 'Send the body uncompressed, without Content-Encoding.',
        headers: { 'Accept-Encoding': 'identity' }
      });
    }
    const bytes = request.body(maxBytes);
    if (bytes !== null) return bytes;
    throw new Refusal(problem, { detail: `Send at most ${maxBytes} bytes.` });
  }

  /** Refuses a client without a grant that `isAllowed` accepts. @returns {Promise<import('../grants/open.js').Grant>} */
  async function requireGrant(request, isAllowed) {
    const { grant, problem } = await grants.admit(request);
    if (problem !== undefined) throw new Refusal(problem);
    if (!isAllowed(grant)) throw new Refusal('not-granted');
    return grant;
  }

  async function requireJoinGrant(request) {
    if (grants?.privateJoin) await requireGrant(request, (grant) => grant.join);
  }

  async function join(request) {
    await requireJoinGrant(request);
    const { address } = request;
    const { outcome, id } = await pool.join(address);
    if (outcome !== 'ok') throw new Refusal(outcome);
    refusals.noteJoin(address);
    return json(201, joinAnswer(id, options));
  }

  function poll({ path: [, id], query, park }) {
    const ack = readNumber(query, 'ack', 'bad-ack');
    const hold = readNumber(query, 'hold', 'bad-hold');
    // To the pool 0 means "no hold given"; from a client it is too short.
    if (hold === 0 || hold > options.hold) throw new Refusal('bad-hold');
    return new Promise((resolve, reject) => {
      const { outcome, body, cancel } = pool.poll(id, { ack, hold }, (answerBody) =>
        resolve(text(200, JSON_TYPE, answerBody))
      );
      if (outcome !== 'ok') reject(new Refusal(outcome));
      else if (body !== undefined) resolve(text(200, JSON_TYPE, body));
      else park(cancel);
    });
  }

  async function throwSprite(request) {
    const [, id, edge] = request.path;
    if (!EDGES.includes(edge)) throw new Refusal('bad-edge');
    const number = readNumber(request.query, 'n', 'bad-number') ?? -1;
    const body = readBody(request, options.maxSprite, 'sprite-too-large');
    const outcome = await pool.throw(id, edge, number, body);
    if (outcome in problems) throw new Refusal(outcome);
    return json(202, { state: outcome });
  }

  async function leave({ path: [, id] }) {
    const outcome = await pool.leave(id);
    if (outcome !== 'ok') throw new Refusal(outcome);
    return noContent();
  }

  async function place({ path: [, id] }) {
    const methods = await pool.place(id);
    if (methods === null) throw new Refusal('unknown-client');
    return json(200, methods);
  }

  /** Refuses a client that may not publish. */
  function requireToken(request) {
    if (!tokens.open) throw new Refusal('publishing-closed');
    if (!tokens.admits(request.headers.authorization)) {
      throw new Refusal('bad-token');
    }
  }

  /** Refuses a client that may not publish this feed, by a token or a grant. */
  async function requirePublisher(request, key) {
    const isPublisher = tokens.open && tokens.admits(request.headers.authorization);
    if (isPublisher) return;
    if (!grants?.hasKeys) {
      requireToken(request);
      return;
    }
    try {
      await requireGrant(request, (grant) => grant.publishes(key));
    } catch (error) {
      if (tokens.open && GRANT_PROBLEMS.includes(error.problem)) {
        error.detail = `${problems[error.problem].detail} ${TOKEN_ADVICE}`;
      }
      throw error;
    }
  }

  const problem = (name, additions) =>
    problemAnswer(name, { ...additions, headers: { ...common, ...additions?.headers } });

  const tools = {
    ...{ common, requireToken, requirePublisher, requireGrant, requireJoinGrant },
    ...{ readBody, readNumber, json, noContent, problem }
  };
  const publisher = openPublisher({ feeds, arena, options });
  const { feed, feeds: manyFeeds } = feedRoutes({ publisher, feeds, grants, options, tools });

  const addresses = (request) => json(200, { addresses: shareableUrls(request, options.host) });
  const counts = async () => json(200, await status());
  /** Answers with the live counts of the server that has this client. */
  async function countsOf({ path: [, id] }) {
    if ((await pool.place(id)) === null) throw new Refusal('unknown-client');
    return counts();
  }

  /** The OpenAPI document, made at its first request. */
  let openApiDocument;

  /**
   * The routes, by the first segment of a path and the number of segments, or by the first segment alone. Each has the
   * functions that answer, by method.
   */
  const routes = new Map([
    ['join/1', { POST: join }],
    ['poll/2', { GET: poll }],
    ['throw/3', { POST: throwSprite }],
    ['leave/2', { POST: leave }],
    ['place/2', { GET: place }],
    ['status/1', { GET: counts, HEAD: counts }],
    ['status/2', { GET: countsOf }],
    ['addresses/1', { GET: addresses }],
    ['openapi.json/1', { GET: () => json(200, (openApiDocument ??= openApi(options, routes))) }],
    ['feed', feed],
    ['feeds/1', manyFeeds],
    ...(options.arena.length > 0 && arena !== undefined
      ? arenaRoutes({ arena, games, fullStatus, tools })
      : [])
  ]);

  /** Refuses a request for a client of another server of the world. The answer names that server, or says that it is restarting. */
  async function refuseMisdirected({ path, query }) {
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

  const callApplication = application && openApplication(application);

  /** Returns the application's answer. */
  async function askApplication(request) {
    const answer = await callApplication(request);
    if (answer?.problem === undefined) return answer;
    const { problem: why } = answer;
    throw new Refusal(
      why,
      {
        'content-too-large': { detail: `Send at most ${REQUEST_BYTES} bytes.` },
        'method-not-allowed': { headers: { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS' } }
      }[why]
    );
  }

  /** Returns the page for a browser at the address of an unknown arena: the page says so, and what to do. */
  function pageOfUnknownArena(request) {
    const { path, headers } = request;
    const [page, name] = path;
    const isPage = path.length === 2 && ARENA_PAGES.includes(page) && /^[\w.~-]*$/.test(name);
    if (!isPage || !/\btext\/html\b/i.test(headers.accept)) return undefined;
    return pages.answer(request, `/${page}/${options.arena[0]}`, options);
  }

  async function route(request) {
    const { method, path } = request;
    const found =
      routes.get(`${path[0]}/${path.length}`) ?? (path.length > 1 && routes.get(path[0]));
    const name = `/${path.join('/')}`;
    const isForApplication =
      callApplication && !found && !pages.has(name) && request.target.startsWith('/');
    if (isForApplication && method !== 'CONNECT') return askApplication(request);
    if (method === 'OPTIONS') return noContent(PREFLIGHT_HEADERS);
    // The target of CONNECT is not a path.
    if (method === 'CONNECT') {
      throw new Refusal('method-not-allowed', { headers: { Allow: 'GET, POST, OPTIONS' } });
    }
    if (request.transient && !TRANSIENT_PATHS.includes(path[0])) throw new Refusal('misdirected');
    if (!found) {
      const file = pages.answer(request, name, options) ?? pageOfUnknownArena(request);
      if (file !== undefined) return { ...file, headers: { ...common, ...file.headers } };
      if (!pages.has(name)) throw new Refusal('not-found');
      throw new Refusal('method-not-allowed', { headers: { Allow: 'GET, HEAD, OPTIONS' } });
    }
    // A method may be called like a member that every object inherits.
    const answer = Object.hasOwn(found, method) ? found[method] : undefined;
    if (answer === undefined) {
      const allow = [...Object.keys(found), 'OPTIONS'].join(', ');
      throw new Refusal('method-not-allowed', { headers: { Allow: allow } });
    }
    await refuseMisdirected(request);
    return answer(request);
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
