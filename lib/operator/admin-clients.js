import { isByOwnName, isLoopback } from '../base/lan-addresses.js';
import { isName } from '../grants/rights.js';
import { COMMON, sendJson, sendProblem } from './admin.js';

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

/** Longest ban, in seconds: a year. Default: an hour. */
const LONGEST_BAN = 31_536_000;
const USUAL_BAN = 3600;

/** Returns whether a request comes from this host, and not from a page of another site. */
function isFromHere(request) {
  const { host, origin, 'sec-fetch-site': site = 'none' } = request.headers;
  return (
    isLoopback(request.socket.remoteAddress) &&
    isByOwnName(request) &&
    (origin === undefined || origin === `http://${host}`) &&
    ['none', 'same-origin'].includes(site)
  );
}

/** Returns the part of an id that may be logged. */
const short = (id) => `${id.slice(0, 8)}…`;

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
export function createClientRoutes({ pool, bans, grants, log }) {
  function done(response, status = 204) {
    response.writeHead(status, COMMON);
    response.end();
  }

  const fail = (response, name, detail) => sendProblem(response, name, { detail });

  /** Returns the length of the ban in a query; undefined for an invalid one. */
  function secondsOf(query) {
    const given = query.get('seconds') ?? String(USUAL_BAN);
    const seconds = /^[0-9]{1,8}$/.test(given) ? Number(given) : 0;
    return seconds >= 1 && seconds <= LONGEST_BAN ? seconds : undefined;
  }

  /** Finds a client, or answers with a problem. */
  function find(response, id) {
    const client = pool.look(id);
    if (client === null) fail(response, 'unknown-client', 'There is no client with this id.');
    return client;
  }

  /** Bans an address. Returns whether it was banned. */
  async function ban(response, address, query) {
    const seconds = secondsOf(query);
    if (seconds === undefined || (await bans.ban(address, seconds)) !== true) {
      fail(response, 'bad-ban');
      return false;
    }
    log.warn({ address, seconds }, 'an address is banned');
    return true;
  }

  /** Removes a client at once. With --state the answer waits for the journal. */
  async function sendAway(response, id) {
    try {
      const outcome = await pool.leave(id);
      if (outcome !== 'ok') return fail(response, outcome);
    } catch (error) {
      return response.destroy(error);
    }
    log.warn({ client: short(id) }, 'a client is sent away');
    return done(response);
  }

  /** Answers 202 where the other servers of the world get the revocation later, when the NATS server is back. */
  const doneWhere = (response, outcome) => done(response, outcome === 'here-only' ? 202 : 204);

  /** Returns the routes that revoke by `jti`, or by `sub`. */
  function revocationsOf(part) {
    return {
      [`PUT revoked/${part}/{}`]: async (response, name) => {
        const outcome = isName(name) ? await grants.revoke(part, name) : 'too-many';
        if (outcome === 'too-many') return fail(response, 'bad-revocation');
        log.warn({ [part]: name }, 'grants are revoked');
        return doneWhere(response, outcome);
      },
      [`DELETE revoked/${part}/{}`]: async (response, name) => {
        const wasRevoked = grants.revocations.has(part, name);
        const outcome = await grants.revocations.remove(part, name);
        if (wasRevoked) log.warn({ [part]: name }, 'grants are revoked no more');
        return doneWhere(response, outcome);
      }
    };
  }

  /** The routes, by method and first segments; `{}` stands for any segment. */
  const routes = {
    'GET clients/{}': (response, id) => {
      const client = find(response, id);
      if (client !== null) sendJson(response, client);
    },
    'POST clients/{}/leave': (response, id) => {
      if (pool.look(id) === null) return done(response);
      return sendAway(response, id);
    },
    'POST clients/{}/ban': async (response, id, query) => {
      const client = find(response, id);
      if (client?.address === null) {
        fail(response, 'bad-ban', 'Where it has joined from is not known since the restart.');
      } else if (client !== null && (await ban(response, client.address, query))) {
        await sendAway(response, id);
      }
    },
    'GET bans': (response) => sendJson(response, bans.list()),
    'PUT bans/{}': async (response, address, query) => {
      if (await ban(response, address, query)) done(response);
    },
    'DELETE bans/{}': async (response, address) => {
      const before = bans.list().length;
      const written = bans.ban(address, 0);
      // The ban has ended, and the journal gets that later.
      const wasBanned = bans.list().length < before;
      if ((await written) === null) return fail(response, 'bad-ban');
      if (wasBanned) log.warn({ address }, 'an address is banned no more');
      return done(response);
    },
    'GET revoked': (response) => sendJson(response, grants.revocations.list()),
    ...revocationsOf('jti'),
    ...revocationsOf('sub')
  };

  return (request, response) => {
    const [path] = request.url.split('?', 1);
    const query = new URLSearchParams(request.url.slice(path.length));
    const [, first, ...others] = path.split('/');
    if (!['clients', 'bans', 'revoked'].includes(first)) return false;
    // `jti` or `sub` is a part of the route.
    const what = first === 'revoked' && others[0] ? `${first}/${others.shift()}` : first;
    if (what !== first && query.has('name')) others[0] ||= encodeURIComponent(query.get('name'));
    const [which = '', ...more] = others;
    const name = [what, ...(which === '' ? [] : ['{}']), ...more].join('/');
    const route = routes[`${request.method} ${name}`];
    if (!isFromHere(request)) {
      fail(response, 'not-from-here');
    } else if (route !== undefined) {
      let value = which;
      try {
        value = decodeURIComponent(which);
      } catch {
        // An invalid escape: the segment is no id and no address either.
      }
      route(response, value, query);
    } else {
      const methods = Object.keys(routes)
        .map((key) => key.split(' '))
        .filter(([, known]) => known === name)
        .map(([method]) => method);
      if (methods.length === 0) return false;
      sendProblem(response, 'method-not-allowed', { headers: { Allow: methods.join(', ') } });
    }
    return true;
  };
}
