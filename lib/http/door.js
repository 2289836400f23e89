import { lookup } from 'node:dns/promises';
import { Socket } from 'node:net';

import { loadAddon } from '../base/addon.js';
import { explained } from '../base/port-errors.js';
import { answerText, problemAnswer } from './problem-answers.js';
import { problems } from './problems.js';
import { NOTHING_TOLD } from './refusals.js';
import { keepIdle } from './node-server.js';
import { welcomeOf } from './routes.js';
import { TRUST } from '../torus/address-limits.js';

/**
 * The native front door: it owns the listening socket and every connection, answers the hot
 * requests without entering JavaScript, and hands every other connection over to Node's server.
 */

/** Connections that may wait to be accepted; the kernel allows at most net.core.somaxconn. */
export const BACKLOG = 65535;

/**
 * The ready-made answers, in the same words as lib/http/routes.js. The front door fills in the Date.
 *
 * @param {string[]} outcomes the native names, in their order
 * @param {object} options hold, lease, maxSprite, idleTime
 * @param {Record<string, string>} common the fields every answer carries
 * @param {ReturnType<ReturnType<import('../base/page-files.js').openPages>['ready']>} files of the page
 */
function replies(outcomes, options, common, files) {
  const { idleTime } = options;
  const staying = { Connection: 'keep-alive', 'Keep-Alive': `timeout=${idleTime}` };
  const closing = { Connection: 'close' };
  const text = (status, headers, body = '') =>
    answerText({ status, headers: { ...common, ...headers, ...staying }, body });
  const json = (status, body) =>
    text(
      status,
      { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
      body
    );
  const problem = (name, connection) =>
    answerText(problemAnswer(name, { headers: { ...common, ...connection } }));

  function outcome(name) {
    if (name === 'ok') return text(204);
    if (name in problems) return problem(name, staying);
    return json(202, JSON.stringify({ state: name }));
  }

  /** An answer with JSON of a length that is not known yet: it ends where that goes. */
  const open = (headers) =>
    text(200, { 'Content-Type': 'application/json', ...headers }).replace(
      /\r\n$/,
      'Content-Length: '
    );

  // An id has 36 characters: the length is known before the id is.
  const nobody = '-'.repeat(36);
  const welcome = JSON.stringify(welcomeOf(nobody, options));
  return {
    outcomes: outcomes.map(outcome),
    joined: json(201, welcome).split(nobody),
    json: open(),
    feed: open(),
    feedGzip: open({ 'Content-Encoding': 'gzip' }),
    feedStream: text(200, { 'Content-Type': 'text/event-stream', 'Transfer-Encoding': 'chunked' }),
    timedOut: problem('request-timeout', closing),
    refused: problem('too-many-connections', closing),
    tooMuchHeld: problem('too-much-held', closing),
    ready: files.map(({ path, headers, body }) => [path, text(200, headers, body)])
  };
}

/**
 * Opens the front door.
 *
 * @param {object} parts
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {import('../feeds/feeds.js').Feeds} [parts.feeds] not in a worker
 * @param {import('../arena/arena.js').Arena} [parts.arena] not in a worker
 * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
 * @param {object} parts.options see lib/operator/options.js
 * @param {ReturnType<import('./routes.js').createRoutes>} parts.routes
 * @param {import('node:http').Server} parts.server Node's server, which need not listen
 * @param {import('./connection-budget.js').ConnectionBudget} parts.budget counts its connections with those of others
 * @param {() => object} [parts.status] what GET /status answers; not in a worker
 * @param {ReturnType<ReturnType<import('../base/page-files.js').openPages>['ready']>} [parts.files] the page's files that are
 *     the same for everybody; not in a worker
 * @param {import('pino').Logger} [parts.log]
 * @param {number} [parts.relayFd] in a worker, whose pool is a RemotePool: the relay's descriptor
 * @param {boolean} [parts.transient] in a worker: it is for the transient port, and has no polls
 * @param {import('./refusals.js').Refusals} [parts.refusals]
 * @returns {{listen: Function, adopt: Function, status: Function, stopListening: Function, closeIdle: Function,
 *     close: Function, addWorker: Function, flush: Function, locate: Function}} `listen(host, port, {shared, option})`
 *     resolves to the port: one that processes may share if `shared`, one that the option of that name
 *     has set; `adopt(fd)` accepts from a socket that listens already; `addWorker(connections)` gives the descriptor of a new relay for a worker, `flush` sends what
 *     JavaScript has put into the relay; `locate(directory)` hands what the clients of other servers ask over to Node's
 */
export function createDoor({
  pool,
  feeds,
  arena,
  limits,
  options,
  routes,
  server,
  budget,
  status,
  files = [],
  log,
  relayFd,
  transient = false,
  refusals = NOTHING_TOLD
}) {
  const addon = loadAddon();
  const { maxSprite, headTime, bodyTime, idleTime, writeTime } = options;
  const door = new addon.Door(
    {
      connections: budget.most,
      maxSprite,
      headTime: headTime * 1000,
      bodyTime: bodyTime * 1000,
      idleTime: idleTime * 1000,
      writeTime: writeTime * 1000,
      keepIdle: keepIdle(options),
      trust: TRUST[options.trustProxy]
    },
    {
      replies: replies(addon.outcomes, options, routes.headers, files),
      limits: limits.native,
      [relayFd === undefined ? 'pool' : 'relay']: pool.native,
      feeds: feeds?.native,
      arena: arena?.native,
      relayFd,
      inputs: !transient && options.arena.length > 0,
      transient,
      onHandOver: (fd, bytes, client) => {
        const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
        limits.introduce(socket, client);
        socket.unshift(bytes);
        server.closeSoon(socket);
        server.emit('connection', socket);
      },
      onCounts: () => {
        try {
          return status && JSON.stringify(status());
        } catch (error) {
          // The front door hands the request over, and Node's server answers it with a problem.
          log.error({ err: error }, 'the live counts can not be said');
          return undefined;
        }
      }
    }
  );
  refusals.listenTo(door, addon.outcomes);
  budget.countWith({
    connections: () => door.status().connections,
    elsewhere: (held) => door.elsewhere(held)
  });
  // Node ends slow requests only while its server listens. This one never does: it is told that it does.
  server.emit('listening');

  return {
    listen(host, port, { shared = false, option = 'port' } = {}) {
      const open = async () => {
        const { address } = await lookup(host);
        return door.listen(address, port, BACKLOG, shared);
      };
      return explained({ host: 'host', port: option }, { host, port }, open());
    },
    status: () => door.status(),
    adopt: (fd) => door.adopt(fd),
    addWorker: (connections) => door.addWorker(connections),
    feedStatus: () => door.feedStatus(),
    flush: () => door.flush(),
    locate: ({ own, entries }) =>
      door.setOtherServers(
        own,
        Uint32Array.from(entries, ([tag]) => tag)
      ),
    stopListening: () => door.stopListening(),
    closeIdle: () => door.closeIdle(),
    close: () => door.close()
  };
}
