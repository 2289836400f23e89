import { REQUEST_BYTES, openApplication } from './application.js';
import { openApi } from './openapi.js';
import { problemAnswer, problems } from './problems.js';
import { invitations } from '../base/lan-addresses.js';
import { Refusal } from '../base/refusal.js';
import { EDGES, Unanswerable } from '../torus/pool.js';
import { NOTHING_TOLD } from './refusals.js';
import { CONTENT_BYTES } from '../arena/content.js';
import { arenaRoutes } from '../arena/routes.js';
import { openPublisher } from '../feeds/publisher.js';
import { feedRoutes } from '../feeds/routes.js';
import { WATCH_BYTES } from '../feeds/watch-request.js';
import { Directory } from '../world/directory.js';

/**
 * The wire contract: what each request means and what it is answered. No socket is touched here.
 *
 *   request ─▶ route ─▶ pool, feeds, arena ─▶ answer, or a problem
 *
 * The native front door answers the hot requests itself and alike; everything else comes here, which therefore speaks
 * the whole contract. lib/http/exchange.js brings the requests.
 */

/**
 * @typedef {object} Request
 * @property {string} method
 * @property {string} target path and query, as they were sent
 * @property {string[]} path its segments, undecoded: ids and edges have no escapes
 * @property {URLSearchParams} query
 * @property {Record<string, string>} headers by their names in lower case
 * @property {(most: number) => Buffer | null} body its bytes; null where it has more than `most`; throws Awaited
 *     where the client waits to be asked for it
 * @property {string} address the client's
 * @property {boolean} secure it has come by TLS
 * @property {(cancel: () => void) => void} park says that the answer waits for something that may never come; `cancel`
 *     is called when the connection is gone before
 * @property {boolean} transient it has come by the port that is for joins, throws and leaves alone
 * @property {(wanted: object) => void} watch has it answered with what these feeds have, when there is news, or with the
 *     problem that there is with them: what lib/feeds/watch-request.js reads
 */

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Record<string, string | number | string[]>} headers
 * @property {string | Buffer} [body]
 */

const JSON_TYPE = 'application/json';

/** Bytes of a body that no route asks for. */
const OTHER_BYTES = 16384;

const DECIMAL = /^[0-9]{1,16}$/;

/** Which segment of a path is the id of a client, or of a player. */
const ID_AT = { poll: 1, throw: 1, leave: 1, place: 1, status: 1, arena: 2 };

/** The first segments of what the transient port serves. */
const TRANSIENT = ['join', 'throw', 'leave'];

/** How a preflight is answered, and for how long a browser may remember it (seconds). */
const PREFLIGHT = {
  'Access-Control-Allow-Methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type, Last-Event-ID',
  'Access-Control-Max-Age': '86400'
};

/** Thrown where the body has not come: nothing has happened yet, and the request is handled again when it has. */
export class Awaited extends Error {}

/** In place of an answer: the body is wanted. */
export const AWAITS = Symbol('the body is awaited');

/** Where what is no token of a publisher was taken for a grant, the answer names both. */
const AS_GRANT = ['grant-required', 'bad-grant'];
const OR_TOKEN = 'A publisher sends a token of the file in --publish-token-file.';

/**
 * Reads a query's number: absent is undefined, anything but one plain decimal is refused.
 *
 * @param {URLSearchParams} query
 * @param {string} name
 * @param {string} problem what to refuse it with
 * @returns {number | undefined}
 */
function readNumber(query, name, problem) {
  const values = query.getAll(name);
  if (values.length === 0) return undefined;
  const number = DECIMAL.test(values[0]) ? Number(values[0]) : NaN;
  if (values.length > 1 || !Number.isSafeInteger(number)) throw new Refusal(problem);
  return number;
}

/**
 * What a join answers.
 *
 * @param {string} id
 * @param {object} options see lib/operator/options.js
 * @returns {object} `transient` is the port that takes joins, throws and leaves as well
 */
export function welcomeOf(id, { hold, lease, maxSprite, transientPort }) {
  const transient = transientPort > 0 ? { transient: transientPort } : {};
  return { id, hold, lease, maxSprite, ...transient };
}

/**
 * Makes what answers requests.
 *
 * @param {object} parts
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {import('../feeds/feeds.js').Feeds} parts.feeds
 * @param {ReturnType<import('../feeds/tokens.js').openTokens>} [parts.tokens] that may publish
 * @param {import('../grants/open.js').Grants} [parts.grants]
 * @param {object} parts.options see lib/operator/options.js: hold, lease, maxSprite, cors
 * @param {import('pino').Logger} parts.log
 * @param {() => object | Promise<object>} parts.status what GET /status answers
 * @param {ReturnType<import('../base/page-files.js').openPages>} parts.pages
 * @param {Map<string, import('../arena/games.js').Game>} [parts.games]
 * @param {import('../arena/arena.js').Arena} [parts.arena] where there is one
 * @param {() => object | Promise<object>} [parts.whole] all live counts, for the arena's panel
 * @param {import('./refusals.js').Refusals} [parts.refusals]
 * @param {Directory} [parts.directory] where the clients of the other servers of a world belong
 * @param {Function} [parts.application] has what is not Sprites' own: see openApplication
 * @returns {{handle: (request: Request) => Promise<Answer | null | undefined>, failed: (error: Error) => Answer,
 *     routes: Map<string, Record<string, Function>>, mostBody: [string, number][], otherBody: number, headers: Record<string, string>}} `handle`
 *     never rejects; null: the request may not be answered, and its connection is to be closed; undefined: it
 *     watches; AWAITS: it is handled again with its body. `headers` are the fields that every answer carries
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
  whole,
  directory = new Directory(),
  application,
  refusals = NOTHING_TOLD
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

  // 204 has no content, and by RFC 9110 (section 8.6) no Content-Length either.
  const nothing = (headers) => ({ status: 204, headers: { ...common, ...headers } });

  /** Reads a body of at most `most` bytes; one with more is refused with `problem`. */
  function readBody(request, most, problem) {
    const bytes = request.body(most);
    if (bytes !== null) return bytes;
    throw new Refusal(problem, { detail: `Send at most ${most} bytes.` });
  }

  /** Refuses a client without a grant for this. @returns {Promise<import('../grants/open.js').Grant>} */
  async function grantOf(request, may) {
    const { grant, problem } = await grants.admit(request);
    if (problem !== undefined) throw new Refusal(problem);
    if (!may(grant)) throw new Refusal('not-granted');
    return grant;
  }

  async function mayJoin(request) {
    if (grants?.privateJoin) await grantOf(request, (grant) => grant.join);
  }

  async function join(request) {
    await mayJoin(request);
    const { address } = request;
    const { outcome, id } = await pool.join(address);
    if (outcome !== 'ok') throw new Refusal(outcome);
    refusals.joined(address);
    return json(201, welcomeOf(id, options));
  }

  function poll({ path: [, id], query, park }) {
    const ack = readNumber(query, 'ack', 'bad-ack');
    const hold = readNumber(query, 'hold', 'bad-hold');
    // To the pool 0 is "no hold given"; from a client it is a hold too short.
    if (hold === 0 || hold > options.hold) throw new Refusal('bad-hold');
    return new Promise((resolve, reject) => {
      const { outcome, body, cancel } = pool.poll(id, { ack, hold }, (later) =>
        resolve(text(200, JSON_TYPE, later))
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
    return nothing();
  }

  async function place({ path: [, id] }) {
    const found = await pool.place(id);
    if (found === null) throw new Refusal('unknown-client');
    return json(200, found);
  }

  /** Refuses a client that may not publish. */
  function authorize(request) {
    if (!tokens.open) throw new Refusal('publishing-closed');
    if (!tokens.admits(request.headers.authorization)) {
      throw new Refusal('bad-token');
    }
  }

  /** Refuses a client that may not publish this feed, by a token or a grant. */
  async function authorizeFor(request, key) {
    const isPublisher = tokens.open && tokens.admits(request.headers.authorization);
    if (isPublisher) return;
    if (!grants?.open) {
      authorize(request);
      return;
    }
    try {
      await grantOf(request, (grant) => grant.publishes(key));
    } catch (error) {
      if (tokens.open && AS_GRANT.includes(error.problem)) {
        error.detail = `${problems[error.problem].detail} ${OR_TOKEN}`;
      }
      throw error;
    }
  }

  const problem = (name, how) =>
    problemAnswer(name, { ...how, headers: { ...common, ...how?.headers } });

  const tools = {
    ...{ common, authorize, authorizeFor, grantOf, mayJoin },
    ...{ readBody, readNumber, json, nothing, problem }
  };
  const publisher = openPublisher({ feeds, arena, options });
  const { feed, feeds: manyFeeds } = feedRoutes({ publisher, feeds, grants, options, tools });

  const addresses = (request) => json(200, { addresses: invitations(request, options.host) });
  const counts = async () => json(200, await status());
  /** The same, of the server that has this client. */
  async function countsOf({ path: [, id] }) {
    if ((await pool.place(id)) === null) throw new Refusal('unknown-client');
    return counts();
  }

  /** The contract as a document, made at the first request for it. */
  let described;

  /**
   * What there is: the first segment and how many there are, or the first alone; and the functions
   * that answer, by method.
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
    ['openapi.json/1', { GET: () => json(200, (described ??= openApi(options, routes))) }],
    ['feed', feed],
    ['feeds/1', manyFeeds],
    ...(options.arena.length > 0 && arena !== undefined
      ? arenaRoutes({ arena, games, whole, tools })
      : [])
  ]);

  /** Refuses a request for a client of another server of the world, and says where that is, or that it comes back. */
  async function sendElsewhere({ path, query }) {
    const id = path[ID_AT[path[0]]];
    const url = id === undefined ? undefined : directory.urlOf(id);
    // An id that is older than the world may look like one of any server.
    if (url === undefined || (await pool.place(id)) !== null) return;
    if (url === null) throw new Refusal(pool.refuse('restarting'));
    const target = path.map(encodeURIComponent).join('/');
    const search = query.size > 0 ? `?${query}` : '';
    throw new Refusal(pool.refuse('misdirected'), {
      detail: 'This client has its place at another server: ask there, at Location, from now on.',
      headers: { Location: `${url}/${target}${search}` }
    });
  }

  const asked = application && openApplication(application);

  /** Has the application answer. */
  async function askApplication(request) {
    const answer = await asked(request);
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

  async function route(request) {
    const { method, path } = request;
    const found =
      routes.get(`${path[0]}/${path.length}`) ?? (path.length > 1 && routes.get(path[0]));
    const name = `/${path.join('/')}`;
    const isOther = asked && !found && !pages.has(name) && request.target.startsWith('/');
    if (isOther && method !== 'CONNECT') return askApplication(request);
    if (method === 'OPTIONS') return nothing(PREFLIGHT);
    // Its target is no path.
    if (method === 'CONNECT') {
      throw new Refusal('method-not-allowed', { headers: { Allow: 'GET, POST, OPTIONS' } });
    }
    if (request.transient && !TRANSIENT.includes(path[0])) throw new Refusal('misdirected');
    if (!found) {
      const file = pages.answer(request, name, options);
      if (file !== undefined) return { ...file, headers: { ...common, ...file.headers } };
      if (!pages.has(name)) throw new Refusal('not-found');
      throw new Refusal('method-not-allowed', { headers: { Allow: 'GET, HEAD, OPTIONS' } });
    }
    // A method may have the name of what every object inherits.
    const answer = Object.hasOwn(found, method) ? found[method] : undefined;
    if (answer === undefined) {
      const allow = [...Object.keys(found), 'OPTIONS'].join(', ');
      throw new Refusal('method-not-allowed', { headers: { Allow: allow } });
    }
    await sendElsewhere(request);
    return answer(request);
  }

  async function handle(request) {
    try {
      return await route(request);
    } catch (error) {
      if (error instanceof Awaited) return AWAITS;
      if (error instanceof Unanswerable) return null;
      if (error instanceof Refusal) {
        const { problem: why, detail, headers } = error;
        // Shorter than an id is.
        const what = `${request.method} ${request.path[0]}`.slice(0, 20);
        refusals.refused({ from: request.address, request: what, why });
        return problem(why, { detail, headers });
      }
      return failed(error);
    }
  }

  /** A defect in a route must not end the process, and with it a million parked polls. */
  function failed(error) {
    log.error({ err: error }, 'a request failed');
    return problem('internal-error');
  }

  /** The bytes that a body may have, by the first segment of its path. */
  const mostBody = [
    ['throw', options.maxSprite],
    ['feed', options.feedBytes],
    ['feeds', WATCH_BYTES],
    ['arena', CONTENT_BYTES]
  ];
  const otherBody = asked ? REQUEST_BYTES : OTHER_BYTES;

  return { handle, failed, routes, mostBody, otherBody, headers: common };
}
