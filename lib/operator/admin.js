import { once } from 'node:events';
import { createServer } from 'node:http';

import { History } from './history.js';
import { hasTrustedHost, isLoopback } from '../base/lan-addresses.js';
import { contentSecurityPolicy, readServedFile } from '../base/page-files.js';
import { explainPortErrors } from '../base/port-errors.js';
import { answerText } from '../http/exchange.js';
import { problemAnswer } from '../http/problems.js';

/**
 * The admin listener: requests of operators and their machines, on a port of its own that strangers don't reach (loopback
 * by default).
 *
 *     GET /          a status page for people, with the last hour
 *     GET /overview, /history    the content of this page, as JSON
 *     GET /metrics   Prometheus' text format
 *     GET /status    all live counts, as JSON
 *     GET /healthz   200 "ok" while the event loop turns
 *     GET /readyz    200 "ready"; 503 while the server starts, joins a world or drains, and while the state
 *                    can't be written: a load balancer then takes the server out
 *
 * and requests about one client (lib/operator/admin-clients.js), from this host only. On loopback, strangers can only get
 * in through a browser of this host. Therefore all but /healthz and /readyz, which balancers request by any name, is
 * answered only by an address, by localhost and by the name in --admin-host.
 */

/** Limits of requests: a scrape is one small request. */
const SERVER_LIMITS = {
  maxHeaderSize: 8192,
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1000,
  insecureHTTPParser: false
};
/** Timeout for a peer that does not read its answer, in milliseconds. */
const SOCKET_TIMEOUT = 10_000;
const MAX_CONNECTIONS = 64;
/** Most connections of one source address, so that other addresses can still connect. */
const MAX_CONNECTIONS_PER_ADDRESS = 32;
/** Most requests of one connection that wait for their answers; with a further one the connection is closed. */
const MAX_PENDING_REQUESTS = 16;
const METHODS = ['GET', 'HEAD'];
const ANY_HOST_PATHS = ['/healthz', '/readyz'];

/** Describes the routes of admin-clients.js in messages. */
const CLIENT_PATHS = 'and from this host /clients/{id}, /bans and /revoked';

/** Header fields of every answer. */
export const COMMON_HEADERS = { 'Cache-Control': 'no-store' };

/** Answers with a text. For HEAD, Node omits it. */
function sendText(response, text, type = 'text/plain; charset=utf-8') {
  const headers = {
    ...COMMON_HEADERS,
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(text)
  };
  response.writeHead(200, headers);
  response.end(text);
}

/** Answers with JSON. The line feed is for a terminal. */
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
  const answer = problemAnswer(name, { detail, headers: { ...COMMON_HEADERS, ...headers } });
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body);
}

/** Files of the page, by path: its own, and those shared with the pages of clients and arenas. */
const PAGE_FILES = new Map([
  ['/', 'admin-page/admin.html'],
  ...['admin.css', 'admin-view.js', 'admin-words.js', 'quantile.js'].map((name) => [
    `/${name}`,
    `admin-page/${name}`
  ]),
  ...['style.css', 'ring.js'].map((name) => [`/${name}`, `../page/${name}`]),
  ...['plots.js', 'plots.css', 'elements.js', 'units.js'].map((name) => [
    `/arena-pages/${name}`,
    `../arena/pages/${name}`
  ]),
  ...['language.js', 'words.js'].map((name) => [`/swarm/${name}`, `../report/${name}`]),
  ['/uplot.js', import.meta.resolve('uplot').replace(/[^/]*$/, 'uPlot.esm.js')],
  ['/uplot.css', import.meta.resolve('uplot').replace(/[^/]*$/, 'uPlot.min.css')]
]);

/** Answers with a file of the page. Reads the file each time: such requests are rare. */
function sendPage(response, path) {
  const url = new URL(path, import.meta.url);
  const { headers, body } = readServedFile(url.pathname, url);
  response.writeHead(200, { ...headers, 'Content-Security-Policy': contentSecurityPolicy() });
  response.end(body);
}

/** Problems for errors of Node's parser; any other error is a bad-request. */
const PARSER_PROBLEMS = {
  HPE_HEADER_OVERFLOW: 'head-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout'
};

/** Returns the last answer to a connection whose request Node's parser has refused. */
function refusalOf(error) {
  const problem = PARSER_PROBLEMS[error.code] ?? 'bad-request';
  return answerText(
    problemAnswer(problem, { headers: { ...COMMON_HEADERS, Connection: 'close' } })
  );
}

/** Closes new connections of an address with too many. */
function boundEachAddress(server) {
  const counts = new Map();
  server.on('connection', (socket) => {
    const { remoteAddress: address } = socket;
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    socket.on('close', () => {
      const remaining = counts.get(address) - 1;
      if (remaining === 0) counts.delete(address);
      else counts.set(address, remaining);
    });
    if (count > MAX_CONNECTIONS_PER_ADDRESS) socket.destroy();
  });
}

/**
 * Answers a connection's requests in order, a bounded number at a time. The answer to an invalid request comes last.
 *
 * @param {import('node:http').Server} server
 * @param {(request: object, response: object) => void} answer
 */
function boundEachConnection(server, answer) {
  const pendingRequests = new WeakMap();
  const lastResponses = new WeakMap();
  server.on('request', (request, response) => {
    const { socket } = request;
    // Node goes on to the end of the bytes that have arrived.
    if (socket.destroyed) return;
    const count = (pendingRequests.get(socket) ?? 0) + 1;
    if (count > MAX_PENDING_REQUESTS) {
      socket.destroy();
      return;
    }
    pendingRequests.set(socket, count);
    lastResponses.set(socket, response);
    response.on('close', () => pendingRequests.set(socket, pendingRequests.get(socket) - 1));
    answer(request, response);
  });
  const refusedSockets = new WeakSet();
  server.on('clientError', (error, socket) => {
    if (!socket.writable) {
      socket.destroy();
    } else if (!refusedSockets.has(socket)) {
      refusedSockets.add(socket);
      const sendRefusal = () => socket.end(refusalOf(error));
      if (pendingRequests.get(socket) > 0) lastResponses.get(socket).on('close', sendRefusal);
      else sendRefusal();
    }
  });
}

/**
 * Starts the admin listener. The server emits 'listening' when it listens, and 'error' for a taken port.
 *
 * @param {object} options
 * @param {string} [options.host] loopback by default: nothing here is for strangers
 * @param {number} options.port 0 for any
 * @param {import('./metrics.js').Metrics} options.metrics
 * @param {() => object} [options.status] returns all live counts, the answer to /status
 * @param {() => string | undefined} [options.readinessProblem] returns the problem for which the server is not ready
 * @param {() => Promise<object>} [options.overview] returns the content of the page
 * @param {History} [options.history] the data of its plots
 * @param {(request: object, response: object) => boolean} [options.answerClientRequest] answers requests about
 *     one client; returns false for other requests
 * @param {(error: Error) => void} [options.onError] called when an answer could not be made
 * @returns {import('node:http').Server}
 */
export function createAdmin({
  host = '127.0.0.1',
  port,
  metrics,
  status = () => ({}),
  readinessProblem = () => undefined,
  overview = async () => ({}),
  history = { samples: [] },
  answerClientRequest = () => false,
  onError = () => {}
}) {
  const routes = new Map([
    ...[...PAGE_FILES].map(([path, file]) => [path, (response) => sendPage(response, file)]),
    ['/healthz', (response) => sendText(response, 'ok\n')],
    [
      '/readyz',
      (response) => {
        const problem = readinessProblem();
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
  let isLoopbackOnly = false;

  async function answer(request, response) {
    const [path] = request.url.split('?');
    if (isLoopbackOnly && !ANY_HOST_PATHS.includes(path) && !hasTrustedHost(request, host)) {
      sendProblem(response, 'bad-host');
      return;
    }
    const route = routes.get(path);
    if (!route && answerClientRequest(request, response)) return;
    if (!route) {
      sendProblem(response, 'not-found', {
        detail: `There are ${paths.join(', ')}, ${CLIENT_PATHS}.`
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

  const server = createServer(SERVER_LIMITS);
  server.timeout = SOCKET_TIMEOUT;
  server.maxConnections = MAX_CONNECTIONS;
  boundEachAddress(server);
  boundEachConnection(server, answer);
  server.on('listening', () => {
    isLoopbackOnly = isLoopback(server.address().address);
  });
  server.listen({ host, port });
  return server;
}

/**
 * Opens the admin listener, with --admin-port.
 *
 * @param {object} parts metrics, status, readinessProblem, overview and answerClientRequest of createAdmin, and:
 * @param {{adminHost: string, adminPort: number | 'none'}} parts.options
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<{port: number, close: () => void}>} port 0 without --admin-port; the listener still answers while the
 *     server drains
 * @throws {Error} when the port can't be opened
 */
export async function openAdmin({ options, log, ...adminParts }) {
  const { adminHost: host, adminPort: port } = options;
  if (port === 'none') return { port: 0, close() {} };
  const history = new History(adminParts.status);
  const onError = (error) => log.error({ err: error }, 'admin listener');
  const server = createAdmin({ ...adminParts, host, port, history, onError });
  const names = { host: 'admin-host', port: 'admin-port' };
  try {
    await explainPortErrors(names, { host, port }, once(server, 'listening'));
  } catch (error) {
    history.close();
    throw error;
  }
  return {
    port: server.address().port,
    close() {
      history.close();
      server.close();
      server.closeAllConnections();
    }
  };
}
