import { hasTrustedHost, isLoopback } from '../base/lan-addresses.js';
import { isName } from '../grants/rights.js';
import { COMMON_HEADERS, sendJson, sendProblem } from './admin.js';

/**
 * Requests about one client or one grant, at the admin port:
 *
 *     GET    /clients/{id}                its place, its waiting sprites, its address
 *     POST   /clients/{id}/leave          removes the client: its sprites fly on
 *     POST   /clients/{id}/ban?seconds=   removes the client, and bans the address from which it joined
 *     GET    /bans                        all bans
 *     PUT    /bans/{address}?seconds=     refuses connections and joins from an address for a while
 *     DELETE /bans/{address}
 *     GET    /revoked                     all revocations
 *     PUT    /revoked/jti/{jti}           revokes the grant with this id; its polls end at once
 *     PUT    /revoked/sub/{sub}           revokes all grants of a subject
 *     DELETE /revoked/jti/{jti}, /revoked/sub/{sub}; also with ?name=, since the path of a URL can't have `.` or `..`
 *
 * The port may be open to other hosts on purpose, for metrics (--admin-host). These requests are accepted from this host
 * only, and not from a page of another site in a browser here.
 */

const METHODS = ['GET', 'POST', 'PUT', 'DELETE'];

/** Longest ban, in seconds: a year. Default: an hour. */
const MAX_BAN_SECONDS = 31_536_000;
const DEFAULT_BAN_SECONDS = 3600;

/** Returns whether a request comes from this host, and not from a page of another site. */
function isFromThisHost(request) {
  const { host, origin, 'sec-fetch-site': site = 'none' } = request.headers;
  return (
    isLoopback(request.socket.remoteAddress) &&
    hasTrustedHost(request) &&
    (origin === undefined || origin === `http://${host}`) &&
    ['none', 'same-origin'].includes(site)
  );
}

/** Returns whether a path and its query are percent-encoded UTF-8: `%ff` must not be read as another name. */
function isDecodable(url) {
  try {
    decodeURIComponent(url);
    return true;
  } catch {
    return false;
  }
}

function sendEmpty(response, status = 204) {
  response.writeHead(status, COMMON_HEADERS);
  response.end();
}

const sendFailure = (response, name, detail) => sendProblem(response, name, { detail });

/** Returns the length of the ban in a query; undefined for an invalid one. A misspelled `?second=60` is not an hour. */
function secondsOf(query) {
  if (!['', 'seconds'].includes([...query.keys()].join())) return undefined;
  const secondsText = query.get('seconds') ?? String(DEFAULT_BAN_SECONDS);
  const seconds = /^[0-9]{1,8}$/.test(secondsText) ? Number(secondsText) : 0;
  return seconds >= 1 && seconds <= MAX_BAN_SECONDS ? seconds : undefined;
}

/** Bans an address. Returns whether it was banned. */
async function ban({ bans, log }, response, address, query) {
  const seconds = secondsOf(query);
  if (seconds === undefined || (await bans.ban(address, seconds)) !== true) {
    sendFailure(response, 'bad-ban');
    return false;
  }
  log.warn({ address, seconds }, 'an address is banned');
  return true;
}

function clientRoutes({ pool, bans, log }) {
  /** Finds a client, or answers with a problem. */
  function findClient(response, id) {
    const client = pool.inspect(id);
    if (client === null)
      sendFailure(response, 'unknown-client', 'There is no client with this id.');
    return client;
  }

  /** Removes a client at once. With --state the answer waits for the journal. */
  async function removeClient(response, id) {
    try {
      const outcome = await pool.leave(id);
      if (outcome !== 'ok') return sendFailure(response, outcome);
    } catch (error) {
      return response.destroy(error);
    }
    // A whole id is a capability.
    log.warn({ client: `${id.slice(0, 8)}…` }, 'a client is sent away');
    return sendEmpty(response);
  }

  return {
    'GET clients/{}': (response, id) => {
      const client = findClient(response, id);
      if (client !== null) sendJson(response, client);
    },
    'POST clients/{}/leave': (response, id) =>
      pool.inspect(id) === null ? sendEmpty(response) : removeClient(response, id),
    'POST clients/{}/ban': async (response, id, query) => {
      const client = findClient(response, id);
      if (client === null) return;
      const { address } = client;
      if (address === null) {
        const detail = 'Where it has joined from is not known since the restart.';
        sendFailure(response, 'bad-ban', detail);
      } else if (await ban({ bans, log }, response, address, query)) {
        await removeClient(response, id);
      }
    }
  };
}

function banRoutes({ bans, log }) {
  return {
    'GET bans': (response) => sendJson(response, bans.list()),
    'PUT bans/{}': async (response, address, query) => {
      if (await ban({ bans, log }, response, address, query)) sendEmpty(response);
    },
    'DELETE bans/{}': async (response, address) => {
      const countBefore = bans.list().length;
      const written = bans.ban(address, 0);
      // The ban has ended, and the journal gets that later.
      const wasBanned = bans.list().length < countBefore;
      if ((await written) === null) return sendFailure(response, 'bad-ban');
      if (wasBanned) log.warn({ address }, 'an address is banned no more');
      return sendEmpty(response);
    }
  };
}

function revocationRoutes({ grants, log }) {
  /** Answers 202 where the other servers of the world get the revocation later, when the NATS server is back. */
  const sendRevoked = (response, outcome) =>
    sendEmpty(response, outcome === 'here-only' ? 202 : 204);

  /** Returns the routes that revoke by `jti`, or by `sub`. */
  const routesOf = (part) => ({
    [`PUT revoked/${part}/{}`]: async (response, name) => {
      const outcome = isName(name) ? await grants.revoke(part, name) : 'too-many';
      if (outcome === 'too-many') return sendFailure(response, 'bad-revocation');
      log.warn({ [part]: name }, 'grants are revoked');
      return sendRevoked(response, outcome);
    },
    [`DELETE revoked/${part}/{}`]: async (response, name) => {
      const wasRevoked = grants.revocations.has(part, name);
      const outcome = await grants.revocations.remove(part, name);
      if (wasRevoked) log.warn({ [part]: name }, 'grants are revoked no more');
      return sendRevoked(response, outcome);
    }
  });
  const list = (response) => sendJson(response, grants.revocations.list());
  return { 'GET revoked': list, ...routesOf('jti'), ...routesOf('sub') };
}

/** Reads a URL. `name` is that of the route behind the method; `subject` is encoded, and stands for `{}` in it. */
function readTarget(url) {
  const [path] = url.split('?', 1);
  const query = new URLSearchParams(url.slice(path.length));
  const [, collection, ...segments] = path.split('/');
  let prefix = collection;
  // `jti` or `sub` is a part of the route.
  if (collection === 'revoked' && segments[0]) {
    prefix += `/${segments.shift()}`;
    if (!segments[0] && query.has('name')) {
      segments[0] = encodeURIComponent(query.get('name'));
      if (query.getAll('name').length === 1) query.delete('name');
    }
  }
  const [subject = '', ...furtherSegments] = segments;
  const name = [prefix, ...(subject === '' ? [] : ['{}']), ...furtherSegments].join('/');
  return { collection, name, subject, query };
}

/**
 * @param {object} parts
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {ReturnType<import('./bans.js').openBans>} parts.bans
 * @param {import('../grants/open.js').Grants} parts.grants
 * @param {import('pino').Logger} parts.log
 * @returns {(request: import('node:http').IncomingMessage,
 *     response: import('node:http').ServerResponse) => boolean} answers such a request; returns false
 *     for any other
 */
export function createClientRoutes(parts) {
  /** The routes, by method and first segments; `{}` stands for any segment. */
  const routes = { ...clientRoutes(parts), ...banRoutes(parts), ...revocationRoutes(parts) };

  return (request, response) => {
    const { collection, name, subject, query } = readTarget(request.url);
    if (!['clients', 'bans', 'revoked'].includes(collection)) return false;
    const route = routes[`${request.method} ${name}`];
    if (!isFromThisHost(request)) {
      sendFailure(response, 'not-from-here');
    } else if (!isDecodable(request.url)) {
      sendFailure(response, 'bad-request', 'Send the path and the query in percent-encoded UTF-8.');
    } else if (collection === 'revoked' && query.size > 0) {
      sendFailure(response, 'bad-revocation', 'Give one name: in the path, or else as ?name=.');
    } else if (route !== undefined) {
      route(response, decodeURIComponent(subject), query);
    } else {
      const methods = METHODS.filter((method) => `${method} ${name}` in routes);
      if (methods.length === 0) return false;
      sendProblem(response, 'method-not-allowed', { headers: { Allow: methods.join(', ') } });
    }
    return true;
  };
}
