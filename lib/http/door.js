import { lookup } from 'node:dns/promises';
import { closeSync } from 'node:fs';

import { loadAddon } from '../base/addon.js';
import { fileLimit, ownFiles } from '../base/file-limit.js';
import { explainPortErrors } from '../base/port-errors.js';
import { addUp } from '../base/add-up.js';
import { answerText, Exchanges } from './exchange.js';
import { problemAnswer, problems } from './problems.js';
import { joinAnswer } from './torus-routes.js';
import { NEWEST_CACHE_CONTROL, cacheHeaders, varyHeaders } from '../feeds/routes.js';
import { TRUST_SOURCES } from '../torus/address-limits.js';

/**
 * The front door. It owns the listening sockets and every connection. It answers the hot requests without entering
 * JavaScript, and passes every other request to the routes.
 */

/**
 * A port to listen on.
 *
 * @typedef {object} Port
 * @property {string} host
 * @property {number} port 0 takes a free one
 * @property {string} [option] the option that set the port
 * @property {boolean} [tls]
 * @property {boolean} [transient] whether the port serves only joins, throws and leaves
 * @property {() => number} [reserved] hands over the descriptor of a socket that has the port already
 */

/** Parts of a grant by which grants can be ended, in the order of native/feeds/grants.h. */
const GRANT_PARTS = ['jti', 'sub', 'key'];

/** Most connections that wait to be accepted; the kernel allows at most net.core.somaxconn. */
const BACKLOG = 65535;

/**
 * Returns how long a connection may be silent before TCP probes it: the longest hold, its jitter and one minute. So a
 * parked poll is never probed (native/http/listener.cc says what a probe would cost).
 *
 * @param {{hold: number}} options seconds
 * @returns {number} seconds
 */
function keepIdleSeconds({ hold }) {
  return Math.ceil((hold * 17) / 16) + 60;
}

/**
 * Returns the fixed answers, in the same words as lib/http/routes.js. The front door adds the Date and the Connection
 * field.
 *
 * @param {string[]} outcomes the native names, by number
 * @param {object} options hold, lease, maxSprite, idleTime
 * @param {Record<string, string>} common fields of every answer
 * @param {ReturnType<ReturnType<import('../base/page-files.js').openPages>['fixedFiles']>} files of the page
 */
function fixedAnswers(outcomes, options, common, files) {
  const text = (status, headers, body = '') =>
    answerText({ status, headers: { ...common, ...headers }, body });
  const json = (status, body) =>
    text(
      status,
      { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) },
      body
    );
  const problem = (name) => answerText(problemAnswer(name, { headers: common }));

  function outcome(name) {
    if (name === 'ok') return text(204);
    if (name in problems) return problem(name);
    return json(202, JSON.stringify({ state: name }));
  }

  /** Returns the head of a JSON answer, up to its Content-Length: the door appends the length. */
  const openHead = (headers) =>
    text(200, { 'Content-Type': 'application/json', ...headers }).replace(
      /\r\n$/,
      'Content-Length: '
    );

  /** Returns the head of a feed's answer that a cache may keep, up to its ETag: the door appends the tag. */
  const taggedHead = (status, headers) =>
    answerText({ status, headers: { ...cacheHeaders(common), ...headers }, body: '' }).replace(
      /\r\n$/,
      'ETag: "'
    );

  // An id has 36 characters, so that the Content-Length is known without the id.
  const idPlaceholder = '-'.repeat(36);
  const joinBody = JSON.stringify(joinAnswer(idPlaceholder, options));
  const vary = varyHeaders(common);
  const stream = { ...vary, 'Content-Type': 'text/event-stream' };
  const chunked = { ...stream, 'Transfer-Encoding': 'chunked' };
  return {
    outcomes: outcomes.map(outcome),
    joined: json(201, joinBody).split(idPlaceholder),
    json: openHead(),
    feed: openHead(vary),
    feedGzip: openHead({ ...vary, 'Content-Encoding': 'gzip' }),
    feedPublic: taggedHead(200, { 'Content-Type': 'application/json' }),
    feedUnchanged: taggedHead(304, { 'Cache-Control': NEWEST_CACHE_CONTROL }),
    feedStream: text(200, chunked),
    feedStreamGzip: text(200, { ...chunked, 'Content-Encoding': 'gzip' }),
    feedStreamPlain: text(200, stream),
    stays: `Connection: keep-alive\r\nKeep-Alive: timeout=${options.idleTime}\r\n`,
    fixed: files.map(({ path, headers, body }) => [path, text(200, headers), body])
  };
}

/** Returns what bounds connections and requests: times in milliseconds, but `keepIdle` in seconds. */
function boundsOf(options) {
  const { maxSprite, headBytes, headTime, bodyTime, idleTime, writeTime, workers } = options;
  return {
    // Every connection needs a file descriptor.
    connections: Math.min(options.connections, Math.max(1, fileLimit() - ownFiles(workers))),
    maxSprite,
    headBytes,
    headTime: headTime * 1000,
    bodyTime: bodyTime * 1000,
    idleTime: idleTime * 1000,
    writeTime: writeTime * 1000,
    keepIdle: keepIdleSeconds(options),
    privateJoin: options.privateJoin,
    trust: TRUST_SOURCES[options.trustProxy]
  };
}

/** Opens a port by `open`, which gets the address of the host. An error names the options. */
async function openPort({ host, port, option }, open) {
  const opening = lookup(host).then(({ address }) => open(address));
  return explainPortErrors({ host: 'host', port: option }, { host, port }, opening);
}

/** @returns {string | undefined} the live counts as JSON; undefined: the door asks the routes, which answer with a problem */
function countsText(status, log) {
  try {
    return JSON.stringify(status());
  } catch (error) {
    log.error({ err: error }, 'the live counts can not be said');
    return undefined;
  }
}

/**
 * Opens the front door.
 *
 * @param {object} parts
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {import('../feeds/feeds.js').Feeds} parts.feeds
 * @param {import('../arena/arena.js').Arena} [parts.arena]
 * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
 * @param {object} parts.options see lib/operator/options.js
 * @param {ReturnType<import('./routes.js').createRoutes>} parts.routes
 * @param {() => object} parts.status returns the answer to GET /status
 * @param {ReturnType<ReturnType<import('../base/page-files.js').openPages>['fixedFiles']>} [parts.files] files of the page
 *     that are the same for every client
 * @param {import('pino').Logger} parts.log
 * @param {import('./refusals.js').Refusals} parts.refusals
 * @param {boolean} [parts.ownsProcess] whether no other program is in the process: Node's loop may sleep in the door
 *     (native/addon/loop_turns.h)
 * @returns {{listen: (port: Port) => Promise<number>, setTls: (identity: import('./tls.js').Identity) => void,
 *     counts: () => object, workerCounts: () => object[], stopListening: () => void, drain: (window: number) => void,
 *     closeIdle: () => number, close: () => void, endGrants: (part: string, name: string) => void,
 *     setOtherServers: (directory: object) => void}} `listen` resolves to the port;
 *     `setTls` is called before `listen` with TLS, and again when the identity changes; `counts` returns the sums over all
 *     threads, `workerCounts` the counts of each worker; `drain` answers the watchers within so many milliseconds;
 *     `setOtherServers(directory)` names the other servers, whose clients the routes answer
 */
export function createDoor({
  pool,
  feeds,
  arena,
  limits,
  options,
  routes,
  status,
  files = [],
  log,
  refusals,
  ownsProcess = false
}) {
  const addon = loadAddon();
  const exchanges = new Exchanges(routes);
  const door = new addon.Door(boundsOf(options), {
    replies: fixedAnswers(addon.outcomes, options, routes.headers, files),
    limits: limits.native,
    pool: pool.native,
    feeds: feeds.native,
    arena: arena?.native,
    workers: options.workers,
    ownsProcess,
    mostBody: routes.bodyLimits,
    otherBody: routes.defaultBodyLimit,
    onRequest: exchanges.handleRequest,
    onGone: exchanges.cancelParked,
    onCounts: () => countsText(status, log)
  });
  exchanges.door = door;
  refusals.watchDoor(door, addon.outcomes);

  return {
    listen({ host, port, option = 'port', tls = false, transient = false, reserved = () => -1 }) {
      return openPort({ host, port, option }, (address) =>
        door.listen(address, port, { backlog: BACKLOG, tls, transient, reserved: reserved() })
      );
    },
    setTls: ({ cert, key, tickets }) => door.setTls(cert, key, tickets),
    counts: () => addUp([...door.counts(), { refused: refusals.counts() }]),
    workerCounts() {
      const [, ...workers] = door.counts();
      return workers.map((one) => one.door);
    },
    setOtherServers({ own, entries }) {
      const tags = Uint32Array.from(entries, ([tag]) => tag);
      door.setOtherServers(own, tags);
    },
    endGrants: (part, name) => door.endGrants(GRANT_PARTS.indexOf(part), name),
    stopListening: () => door.stopListening(),
    drain: (window) => door.drain(window),
    closeIdle: () => door.closeIdle(),
    close() {
      door.close();
      exchanges.close();
    }
  };
}

/**
 * Reserves a port before there is a door, so that the fixed answers can name it.
 *
 * @param {{host: string}} options
 * @param {number | 'none'} port 0 takes a free one
 * @returns {Promise<{port: number, reserved: () => number, close: () => void}>} port 0 where none is wanted; `reserved` is
 *     for Port, and `close` releases an unused port
 * @throws {Error} when the port can't be opened (EADDRINUSE …)
 */
export async function reservePort({ host }, option, port) {
  let [reservedPort, descriptor] = [0, -1];
  if (port !== 'none') {
    const reserve = (address) => loadAddon().reservePort(address, port);
    [reservedPort, descriptor] = await openPort({ host, port, option }, reserve);
  }
  const reserved = () => {
    const detached = descriptor;
    descriptor = -1;
    return detached;
  };
  const close = () => {
    if (descriptor >= 0) closeSync(reserved());
  };
  return { port: reservedPort, reserved, close };
}
