import { once } from 'node:events';
import { createServer } from 'node:http';

import { History } from './history.js';
import { isByOwnName, isLoopback } from '../base/lan-addresses.js';
import { contentSecurityPolicy, fileAt } from '../base/page-files.js';
import { explained } from '../base/port-errors.js';
import { answerText } from '../http/exchange.js';
import { problemAnswer } from '../http/problems.js';

/**
 * The admin listener: what operators and their machines ask, on a port of its own that strangers
 * don't reach (loopback unless told otherwise).
 *
 *     GET /          a page for people: how the server fares, and has for an hour
 *     GET /overview, /history    what that page shows, as JSON
 *     GET /metrics   Prometheus' text format
 *     GET /status    the live counts, all of them, as JSON
 *     GET /healthz   200 "ok" while the process lives and its event loop turns
 *     GET /readyz    200 "ready", or 503 while it starts, joins a world or drains, and while the state
 *                    can't be written: take it out of the balancer
 *
 * and what is about one client (lib/operator/admin-clients.js), from this host alone. On loopback a browser of
 * this host is the one way in for strangers: all but /healthz and /readyz, which balancers ask by any name,
 * is answered by an address, by localhost and by the name that --admin-host says.
 */

/** A scrape is one small request: more is not needed. */
const LIMITS = {
  maxHeaderSize: 8192,
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1000,
  insecureHTTPParser: false
};
/** Milliseconds in which a peer that does not read its answer must read something. */
const SILENCE = 10_000;
const MAX_CONNECTIONS = 64;
/** Those of them that one source address may have: the others' are left. */
const MAX_OF_ONE_ADDRESS = 32;
/** Requests of one connection that may wait for their answers; with one more it is closed. */
const MAX_AT_ONCE = 16;
const METHODS = ['GET', 'HEAD'];
const BY_ANY_NAME = ['/healthz', '/readyz'];

/** What admin-clients.js answers, in words. */
const OF_CLIENTS = 'and from this host /clients/{id}, /bans and /revoked';

/** The fields of every answer. */
export const COMMON = { 'Cache-Control': 'no-store' };

/** Answers with a text; Node leaves it out where the request is a HEAD. */
function sendText(response, text, type = 'text/plain; charset=utf-8') {
  const headers = { ...COMMON, 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) };
  response.writeHead(200, headers);
  response.end(text);
}

/** Answers with JSON; the line's end is for a terminal. */
export const sendJson = (response, value) =>
  sendText(response, `${JSON.stringify(value)}\n`, 'application/json');

/**
 * Answers with a problem.
 *
 * @param {import('node:http').ServerResponse} response
 * @param {string} name
 * @param {{detail?: string, headers?: object}} [how] as for problemAnswer
 */
export function sendProblem(response, name, { detail, headers } = {}) {
  const answer = problemAnswer(name, { detail, headers: { ...COMMON, ...headers } });
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body);
}

/** The files of the page, by their paths: beside its own what it shares with the pages of clients and arenas. */
const PAGE = new Map([
  ['/', 'admin-page/admin.html'],
  ...['admin.css', 'admin-view.js', 'admin-words.js', 'quantile.js'].map((name) => [
    `/${name}`,
    `admin-page/${name}`
  ]),
  ...['style.css', 'ring.js'].map((name) => [`/${name}`, `../page/${name}`]),
  ...['plots.js', 'elements.js', 'units.js'].map((name) => [
    `/arena-pages/${name}`,
    `../arena/pages/${name}`
  ]),
  ...['language.js', 'words.js'].map((name) => [`/swarm/${name}`, `../report/${name}`]),
  ['/uplot.js', import.meta.resolve('uplot').replace(/[^/]*$/, 'uPlot.esm.js')],
  ['/uplot.css', import.meta.resolve('uplot').replace(/[^/]*$/, 'uPlot.min.css')]
]);

/** Answers with a file of the page, read anew each time: people ask seldom. */
function sendPage(response, path) {
  const url = new URL(path, import.meta.url);
  const { headers, body } = fileAt(url.pathname, url);
  response.writeHead(200, { ...headers, 'Content-Security-Policy': contentSecurityPolicy() });
  response.end(body);
}

/** The problem each error of Node's parser is answered with; any other is a bad-request. */
const PARSER_PROBLEMS = {
  HPE_HEADER_OVERFLOW: 'head-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout'
};

/** The last answer of a connection whose request Node's parser has refused. */
function refusalOf(error) {
  const problem = PARSER_PROBLEMS[error.code] ?? 'bad-request';
  return answerText(problemAnswer(problem, { headers: { ...COMMON, Connection: 'close' } }));
}

/** Closes the connections of an address that has enough. */
function boundEachAddress(server) {
  const counts = new Map();
  server.on('connection', (socket) => {
    const { remoteAddress: address } = socket;
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    socket.on('close', () => {
      const left = counts.get(address) - 1;
      if (left === 0) counts.delete(address);
      else counts.set(address, left);
    });
    if (count > MAX_OF_ONE_ADDRESS) socket.destroy();
  });
}

/**
 * Answers a connection's requests in their order, so many at once; what can't be read behind them comes last.
 *
 * @param {import('node:http').Server} server
 * @param {(request: object, response: object) => void} answer
 */
function boundEachConnection(server, answer) {
  const waiting = new WeakMap();
  const last = new WeakMap();
  server.on('request', (request, response) => {
    const { socket } = request;
    // Node reads on to the end of what has come at once.
    if (socket.destroyed) return;
    const count = (waiting.get(socket) ?? 0) + 1;
    if (count > MAX_AT_ONCE) {
      socket.destroy();
      return;
    }
    waiting.set(socket, count);
    last.set(socket, response);
    response.on('close', () => waiting.set(socket, waiting.get(socket) - 1));
    answer(request, response);
  });
  const refused = new WeakSet();
  server.on('clientError', (error, socket) => {
    if (!socket.writable) {
      socket.destroy();
    } else if (!refused.has(socket)) {
      refused.add(socket);
      const refuse = () => socket.end(refusalOf(error));
      if (waiting.get(socket) > 0) last.get(socket).on('close', refuse);
      else refuse();
    }
  });
}

/**
 * Starts the admin listener. The server listens when its 'listening' event comes; a taken port is
 * its 'error' event.
 *
 * @param {object} options
 * @param {string} [options.host] loopback by default: nothing here is for strangers
 * @param {number} options.port 0 for any
 * @param {import('./metrics.js').Metrics} options.metrics
 * @param {() => object} [options.status] what /status answers: all of the live counts
 * @param {() => string | undefined} [options.unready] the problem that keeps it from being ready
 * @param {() => Promise<object>} [options.overview] what the page shows
 * @param {History} [options.history] what it plots
 * @param {(request: object, response: object) => boolean} [options.clients] answers what is about one
 *     client, and says whether it did
 * @param {(error: Error) => void} [options.onError] told when an answer could not be made
 * @returns {import('node:http').Server}
 */
export function createAdmin({
  host = '127.0.0.1',
  port,
  metrics,
  status = () => ({}),
  unready = () => undefined,
  overview = async () => ({}),
  history = { samples: [] },
  clients = () => false,
  onError = () => {}
}) {
  const routes = new Map([
    ...[...PAGE].map(([path, file]) => [path, (response) => sendPage(response, file)]),
    ['/healthz', (response) => sendText(response, 'ok\n')],
    [
      '/readyz',
      (response) => {
        const problem = unready();
        if (problem === undefined) sendText(response, 'ready\n');
        else sendProblem(response, problem);
      }
    ],
    ['/metrics', async (response) => sendText(response, await metrics.text(), metrics.contentType)],
    ['/status', (response) => sendJson(response, status())],
    ['/overview', async (response) => sendJson(response, await overview())],
    ['/history', (response) => sendJson(response, history.samples)]
  ]);

  const paths = [...routes.keys()].filter((one) => !one.includes('.'));
  let isLocal = false;

  async function answer(request, response) {
    const [path] = request.url.split('?');
    if (isLocal && !BY_ANY_NAME.includes(path) && !isByOwnName(request, host)) {
      sendProblem(response, 'bad-host');
      return;
    }
    const route = routes.get(path);
    if (!route && clients(request, response)) return;
    if (!route) {
      sendProblem(response, 'not-found', {
        detail: `There are ${paths.join(', ')}, ${OF_CLIENTS}.`
      });
    } else if (!METHODS.includes(request.method)) {
      sendProblem(response, 'method-not-allowed', { headers: { Allow: METHODS.join(', ') } });
    } else {
      try {
        await route(response);
      } catch (error) {
        onError(error);
        if (response.headersSent) response.destroy();
        else sendProblem(response, 'internal-error');
      }
    }
  }

  const server = createServer(LIMITS);
  server.timeout = SILENCE;
  server.maxConnections = MAX_CONNECTIONS;
  boundEachAddress(server);
  boundEachConnection(server, answer);
  server.on('listening', () => {
    isLocal = isLoopback(server.address().address);
  });
  server.listen({ host, port });
  return server;
}

/**
 * Opens the admin listener, if there is to be one.
 *
 * @param {object} parts metrics, status, unready, overview and clients of createAdmin, and:
 * @param {{adminHost: string, adminPort: number | 'none'}} parts.options
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<{port: number, stopListening: () => void, closeIdle: () => void,
 *     close: () => void}>} port 0 without one; it listens on while the server drains
 * @throws {Error} when the port can't be had
 */
export async function openAdmin({ options, log, ...shown }) {
  const { adminHost: host, adminPort: port } = options;
  const nothing = () => {};
  if (port === 'none') {
    return { port: 0, stopListening: nothing, closeIdle: nothing, close: nothing };
  }
  const history = new History(shown.status);
  const onError = (error) => log.error({ err: error }, 'admin listener');
  const server = createAdmin({ ...shown, host, port, history, onError });
  const names = { host: 'admin-host', port: 'admin-port' };
  try {
    await explained(names, { host, port }, once(server, 'listening'));
  } catch (error) {
    history.close();
    throw error;
  }
  return {
    port: server.address().port,
    stopListening: nothing,
    closeIdle: nothing,
    close() {
      history.close();
      server.close();
      server.closeAllConnections();
    }
  };
}
