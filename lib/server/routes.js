import { sendProblem } from './problem-answers.js';
import { problems } from './problems.js';
import { invitations } from './lan-addresses.js';
import { park } from './pipelines.js';
import { EDGES, Unanswerable } from './pool.js';
import { NOTHING_TOLD } from './refusals.js';
import { lingerAtClose } from './sockets.js';
import { arenaRoutes } from '../arena/routes.js';
import { feedRoutes } from '../feeds/routes.js';
import { Directory } from '../world/directory.js';

/**
 * The wire contract over node:http: what each request means and what it is answered.
 *
 *   request ─▶ target ─▶ route ─▶ pool ─▶ answer, or a problem
 *
 * The native front door answers the four hot requests itself and alike; it hands everything unusual
 * over to this file, which therefore speaks the whole contract.
 */

const JSON_TYPE = 'application/json';

const DECIMAL = /^[0-9]{1,16}$/;

/** Which segment of a path is the id of a client, or of a player. */
const ID_AT = { poll: 1, throw: 1, leave: 1, place: 1, status: 1, arena: 2 };

/** How a preflight is answered, and for how long a browser may remember it (seconds). */
const PREFLIGHT = {
  'Access-Control-Allow-Methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type, Last-Event-ID',
  'Access-Control-Max-Age': '86400'
};

/** Thrown where a request is refused: the problem's name, and what else its answer says. */
class Refusal extends Error {
  constructor(problem, { detail, headers } = {}) {
    super(problem);
    this.problem = problem;
    this.detail = detail;
    this.headers = headers;
  }
}

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
 * Splits a request target, in origin or absolute form (RFC 9112, section 3.2).
 *
 * @param {string} target
 * @returns {{path: string[], query: URLSearchParams}} the path's segments, undecoded: ids and
 *     edges have no escapes
 */
function readTarget(target) {
  const origin = target.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = origin.indexOf('?');
  const path = mark < 0 ? origin : origin.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : origin.slice(mark + 1));
  // An absolute form may have no path; "*" and the like are no path of ours.
  const segments = path.startsWith('/') ? path.split('/').slice(1) : [path];
  return { path: segments, query };
}

/**
 * What a join answers.
 *
 * @param {string} id
 * @param {object} options see lib/server/options.js
 * @returns {object} `transient` is the port that takes joins, throws and leaves as well
 */
export function welcomeOf(id, { hold, lease, maxSprite, transientPort }) {
  const transient = transientPort > 0 ? { transient: transientPort } : {};
  return { id, hold, lease, maxSprite, ...transient };
}

/**
 * Makes the listener of a node:http server.
 *
 * @param {object} parts
 * @param {import('./pool.js').Pool | import('./remote-pool.js').RemotePool} parts.pool
 * @param {import('../feeds/feeds.js').Feeds} [parts.feeds] not in a worker
 * @param {ReturnType<import('../feeds/tokens.js').openTokens>} [parts.tokens] who may publish
 * @param {import('./address-limits.js').AddressLimits} parts.limits
 * @param {object} parts.options see lib/server/options.js: hold, lease, maxSprite, cors
 * @param {import('pino').Logger} parts.log
 * @param {() => object | Promise<object>} parts.status what GET /status answers
 * @param {ReturnType<import('./page-files.js').openPages>} parts.pages
 * @param {Map<string, import('../arena/games.js').Game>} [parts.games]
 * @param {import('../arena/arena.js').Arena} [parts.arena] where there is one
 * @param {() => object | Promise<object>} [parts.whole] all live counts, for the arena's panel
 * @param {import('./refusals.js').Refusals} [parts.refusals]
 * @param {Directory} [parts.directory] where the clients of the other servers of a world belong
 * @param {string[]} [parts.here] the first segments of what is served here; by default everything
 * @returns {{handle: (request: object, response: object) => Promise<void>,
 *     headers: Record<string, string>}} `handle` answers a request and never rejects; `headers` are the
 *     fields that every answer carries
 */
export function createRoutes({
  pool,
  feeds,
  tokens,
  limits,
  options,
  log,
  status,
  pages,
  games = new Map(),
  arena,
  whole,
  directory = new Directory(),
  here,
  refusals = NOTHING_TOLD
}) {
  const common = { 'Cache-Control': 'no-store' };
  if (options.cors !== 'none') {
    common['Access-Control-Allow-Origin'] = options.cors;
    common['Access-Control-Expose-Headers'] = 'Location, Retry-After';
    if (options.cors !== '*') common.Vary = 'Origin';
  }

  function send(response, code, type, body, headers) {
    response.writeHead(code, {
      ...common,
      'Content-Type': type,
      'Content-Length': Buffer.byteLength(body),
      ...headers
    });
    response.end(body);
  }

  const sendJson = (response, code, value) =>
    send(response, code, JSON_TYPE, JSON.stringify(value));

  // 204 has no content, and by RFC 9110 (section 8.6) no Content-Length either.
  function sendNothing(response, headers) {
    response.writeHead(204, { ...common, ...headers });
    response.end();
  }

  /** Reads a body of at most `most` bytes; one with more is refused with `problem`. */
  async function readBody(request, most, problem) {
    const tooLarge = () =>
      new Refusal(problem, {
        detail: `Send at most ${most} bytes.`,
        // The rest of the body is not read.
        headers: { Connection: 'close' }
      });
    if (Number(request.headers['content-length']) > most) throw tooLarge();
    const chunks = [];
    let length = 0;
    return new Promise((resolve, reject) => {
      request.on('data', (chunk) => {
        length += chunk.length;
        if (length <= most) {
          chunks.push(chunk);
        } else {
          request.removeAllListeners('data').removeAllListeners('end').resume();
          reject(tooLarge());
        }
      });
      request.on('end', () => resolve(Buffer.concat(chunks)));
    });
  }

  async function join(request, response) {
    const { outcome, id } = await pool.join(limits.addressOf(request));
    if (outcome !== 'ok') throw new Refusal(outcome);
    refusals.joined(limits.addressOf(request));
    sendJson(response, 201, welcomeOf(id, options));
  }

  function poll(request, response, [, id], query) {
    const ack = readNumber(query, 'ack', 'bad-ack');
    const hold = readNumber(query, 'hold', 'bad-hold');
    // To the pool 0 is "no hold given"; from a client it is a hold too short.
    if (hold === 0 || hold > options.hold) throw new Refusal('bad-hold');
    const answer = (body) => send(response, 200, JSON_TYPE, body);
    const { outcome, body, cancel } = pool.poll(id, { ack, hold }, answer, (why) => {
      if (why instanceof Unanswerable) request.socket.destroy();
      else refuse(request, response, new Refusal(why));
    });
    if (outcome !== 'ok') throw new Refusal(outcome);
    if (body !== undefined) return answer(body);
    park(response);
    response.on('close', cancel);
    return undefined;
  }

  async function throwSprite(request, response, [, id, edge], query) {
    if (!EDGES.includes(edge)) throw new Refusal('bad-edge');
    const number = readNumber(query, 'n', 'bad-number') ?? -1;
    const outcome = await pool.throw(
      id,
      edge,
      number,
      await readBody(request, options.maxSprite, 'sprite-too-large')
    );
    if (outcome in problems) throw new Refusal(outcome);
    sendJson(response, 202, { state: outcome });
  }

  async function leave(request, response, [, id]) {
    const outcome = await pool.leave(id);
    if (outcome !== 'ok') throw new Refusal(outcome);
    sendNothing(response);
  }

  async function place(request, response, [, id]) {
    const found = await pool.place(id);
    if (found === null) throw new Refusal('unknown-client');
    sendJson(response, 200, found);
  }

  /** Refuses who may not publish. */
  function authorize(request) {
    if (!tokens.open) throw new Refusal('publishing-closed');
    if (!tokens.admits(request.headers.authorization)) {
      throw new Refusal('bad-token', { headers: { 'WWW-Authenticate': 'Bearer' } });
    }
  }

  const tools = {
    common,
    Refusal,
    authorize,
    readBody,
    readNumber,
    sendProblem: (response, name) => sendProblem(response, name, { headers: common }),
    sendJson,
    sendNothing,
    addressOf: (request) => limits.addressOf(request),
    park
  };
  const { feed, feeds: manyFeeds } = feedRoutes({ feeds, arena, options, tools });

  const sendAddresses = (request, response) =>
    sendJson(response, 200, { addresses: invitations(request, options.host) });
  const sendStatus = async (request, response) => sendJson(response, 200, await status());
  /** The same, of the server that has this client. */
  async function sendStatusOf(request, response, [, id]) {
    if ((await pool.place(id)) === null) throw new Refusal('unknown-client');
    return sendStatus(request, response);
  }

  /**
   * What there is: the first segment and how many there are, or the first alone; and who answers,
   * by the method.
   */
  const routes = new Map([
    ['join/1', { POST: join }],
    ['poll/2', { GET: poll }],
    ['throw/3', { POST: throwSprite }],
    ['leave/2', { POST: leave }],
    ['place/2', { GET: place }],
    ['status/1', { GET: sendStatus, HEAD: sendStatus }],
    ['status/2', { GET: sendStatusOf }],
    ['addresses/1', { GET: sendAddresses }],
    ['feed', feed],
    ['feeds/1', manyFeeds],
    ...(options.arena.length > 0 && arena !== undefined
      ? arenaRoutes({ arena, games, whole, tools })
      : [])
  ]);

  /** Refuses a request for a client of another server of the world, and says where that is, or that it comes back. */
  async function sendElsewhere(path, query) {
    const id = path[ID_AT[path[0]]];
    const url = id === undefined ? undefined : directory.urlOf(id);
    // An id that is older than the world may look like anybody's.
    if (url === undefined || (await pool.place(id)) !== null) return;
    if (url === null) throw new Refusal(pool.refuse('restarting'));
    const target = path.map(encodeURIComponent).join('/');
    const search = query.size > 0 ? `?${query}` : '';
    throw new Refusal(pool.refuse('misdirected'), {
      detail: 'This client has its place at another server: ask there, at Location, from now on.',
      headers: { Location: `${url}/${target}${search}` }
    });
  }

  async function route(request, response) {
    const { method } = request;
    // RFC 9112, sections 3.2 and 6.1: one Host, or none in HTTP/1.0; chunked and no other coding.
    // Node's parser also takes HTTP/0.9 with a head, and 2.0.
    const hosts = request.headersDistinct.host?.length ?? 0;
    const codings = request.headers['transfer-encoding'] ?? 'chunked';
    if (
      !['1.0', '1.1'].includes(request.httpVersion) ||
      codings.toLowerCase() !== 'chunked' ||
      hosts > 1 ||
      (hosts === 0 && request.httpVersion !== '1.0')
    ) {
      throw new Refusal('bad-request', { headers: { Connection: 'close' } });
    }
    if (method === 'OPTIONS') return sendNothing(response, PREFLIGHT);
    const { path, query } = readTarget(request.url);
    if (here !== undefined && !here.includes(path[0])) throw new Refusal('misdirected');
    const found =
      routes.get(`${path[0]}/${path.length}`) ?? (path.length > 1 && routes.get(path[0]));
    if (!found) {
      for (const [name, value] of Object.entries(common)) response.setHeader(name, value);
      const file = `/${path.join('/')}`;
      if (pages.serve(request, response, file, options)) return undefined;
      if (pages.has(file)) {
        throw new Refusal('method-not-allowed', { headers: { Allow: 'GET, HEAD, OPTIONS' } });
      }
      throw new Refusal('not-found');
    }
    const answer = found[method];
    if (answer === undefined) {
      const allow = [...Object.keys(found), 'OPTIONS'].join(', ');
      throw new Refusal('method-not-allowed', { headers: { Allow: allow } });
    }
    await sendElsewhere(path, query);
    return answer(request, response, path, query);
  }

  function refuse(request, response, { problem, detail, headers }) {
    refusals.refused({
      from: limits.addressOf(request),
      request: `${request.method} ${readTarget(request.url).path[0]}`.slice(0, 40),
      why: problem
    });
    if (!request.complete) lingerAtClose(request.socket);
    sendProblem(response, problem, { detail, headers: { ...common, ...headers } });
  }

  async function handle(request, response) {
    // What is written behind an end is a defect, too: without a listener it would end the process.
    response.on('error', (error) => log.error({ err: error }, 'an answer failed'));
    try {
      await route(request, response);
    } catch (error) {
      if (error instanceof Refusal) {
        refuse(request, response, error);
      } else if (error instanceof Unanswerable) {
        request.socket.destroy();
      } else {
        // A defect in a route must not end the process, and with it a million parked polls.
        log.error({ err: error }, 'a request failed');
        if (response.headersSent) response.destroy();
        else sendProblem(response, 'internal-error', { headers: common });
      }
    }
  }

  return { handle, headers: common };
}
