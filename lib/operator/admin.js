import { once } from 'node:events';
import { createServer } from 'node:http';

import { History } from './history.js';
import { isByOwnName, isLoopback } from '../base/lan-addresses.js';
import { contentSecurityPolicy, fileAt } from '../base/page-files.js';
import { explained } from '../base/port-errors.js';
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
const LIMITS = {
  maxHeaderSize: 8192,
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1000,
  insecureHTTPParser: false
};
/** Timeout for a peer that does not read its answer, in milliseconds. */
const SILENCE = 10_000;
const MAX_CONNECTIONS = 64;
/** Most connections of one source address, so that other addresses can still connect. */
const MAX_OF_ONE_ADDRESS = 32;
/** Most requests of one connection that wait for their answers; with a further one the connection is closed. */
const MAX_AT_ONCE = 16;
const METHODS = ['GET', 'HEAD'];
const BY_ANY_NAME = ['/healthz', '/readyz'];

/** Describes the routes of admin-clients.js in messages. */
const OF_CLIENTS = 'and from this host /clients/{id}, /bans and /revoked';

/** Header fields of every answer. */
export const COMMON = { 'Cache-Control': 'no-store' };

/** Answers with a text. For HEAD, Node omits it. */
function sendText(response, text, type = 'text/plain; charset=utf-8') {
  const headers = { ...COMMON, 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) };
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
  const answer = problemAnswer(name, { detail, headers: { ...COMMON, ...headers } });
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body);
}

/** Files of the page, by path: its own, and those shared with the pages of clients and arenas. */
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

/** Answers with a file of the page. Reads the file each time: such requests are rare. */
function sendPage(response, path) {
  const url = new URL(path, import.meta.url);
  const { headers, body } = fileAt(url.pathname, url);
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
  return answerText(problemAnswer(problem, { headers: { ...COMMON, Connection: 'close' } }));
}

/** Closes new connections of an address with too many. */
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
 * Answers a connection's requests in order, a bounded number at a time. The answer to an invalid request comes last.
 *
 * @param {import('node:http').Server} server
 * @param {(request: object, response: object) => void} answer
 */
function boundEachConnection(server, answer) {
  const waiting = new WeakMap();
  const last = new WeakMap();
  server.on('request', (request, response) => {
    const { socket } = request;
    // Node goes on to the end of the bytes that have arrived.
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
 * Starts the admin listener. The server emits 'listening' when it listens, and 'error' for a taken port.
 *
 * @param {object} options
 * @param {string} [options.host] loopback by default: nothing here is for strangers
 * @param {number} options.port 0 for any
 * @param {import('./metrics.js').Metrics} options.metrics
 * @param {() => object} [options.status] returns all live counts, the answer to /status
 * @param {() => string | undefined} [options.unready] returns the problem for which the server is not ready
 * @param {() => Promise<object>} [options.overview] returns the content of the page
 * @param {History} [options.history] the data of its plots
 * @param {(request: object, response: object) => boolean} [options.clients] answers requests about
 *     one client; returns false for other requests
 * @param {(error: Error) => void} [options.onError] called when an answer could not be made
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
 * Opens the admin listener, with --admin-port.
 *
 * @param {object} parts metrics, status, unready, overview and clients of createAdmin, and:
 * @param {{adminHost: string, adminPort: number | 'none'}} parts.options
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<{port: number, close: () => void}>} port 0 without --admin-port; the listener still answers while the
 *     server drains
 * @throws {Error} when the port can't be opened
 */
export async function openAdmin({ options, log, ...shown }) {
  const { adminHost: host, adminPort: port } = options;
  if (port === 'none') return { port: 0, close() {} };
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
    close() {
      history.close();
      server.close();
      server.closeAllConnections();
    }
  };
}
