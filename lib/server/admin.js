import { once } from 'node:events';
import { createServer } from 'node:http';

import { problemDocument, problems } from './problems.js';
import { lookAfterSockets, refuse } from './sockets.js';

/**
 * The admin listener: what operators and their machines ask, on a port of its own that strangers
 * don't reach (loopback unless told otherwise).
 *
 *     GET /metrics   Prometheus' text format
 *     GET /healthz   200 "ok" while the process lives and its event loop turns
 *     GET /readyz    200 "ready", or 503 while draining: take it out of the balancer
 */

/** A scrape is one small request; nobody needs more of anything. */
const LIMITS = {
  maxHeaderSize: 8192,
  headersTimeout: 5000,
  requestTimeout: 5000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1000,
  insecureHTTPParser: false
};
const MAX_CONNECTIONS = 64;
const MAX_REQUESTS_PER_CONNECTION = 1000;
const METHODS = ['GET', 'HEAD'];

/** Statuses for what Node's parser refuses before there is a request. */
const REFUSED = {
  HPE_HEADER_OVERFLOW: 'head-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout'
};

function send(request, response, { status, type, text, headers = {} }) {
  const body = Buffer.from(text);
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Length': body.length,
    'Cache-Control': 'no-store',
    ...headers
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

function sendProblem(request, response, name, { detail, headers } = {}) {
  const { status, retryAfter } = problems[name];
  send(request, response, {
    status,
    type: 'application/problem+json',
    text: problemDocument(name, detail),
    headers: { ...(retryAfter && { 'Retry-After': retryAfter }), ...headers }
  });
}

const sendText = (request, response, text) =>
  send(request, response, { status: 200, type: 'text/plain; charset=utf-8', text });

/**
 * Starts the admin listener. The server listens when its 'listening' event comes; a taken port is
 * its 'error' event.
 *
 * @param {object} options
 * @param {string} [options.host] loopback by default: nothing here is for strangers
 * @param {number} options.port 0 for any
 * @param {import('./metrics.js').Metrics} options.metrics
 * @param {() => boolean} [options.ready] false while draining
 * @param {(error: Error) => void} [options.onError] told when metrics could not be made
 * @returns {import('node:http').Server & {closeEveryConnection: () => void}}
 */
export function createAdmin({
  host = '127.0.0.1',
  port,
  metrics,
  ready = () => true,
  onError = () => {}
}) {
  const routes = new Map([
    ['/healthz', (request, response) => sendText(request, response, 'ok\n')],
    [
      '/readyz',
      (request, response) => {
        if (ready()) sendText(request, response, 'ready\n');
        else sendProblem(request, response, 'draining');
      }
    ],
    [
      '/metrics',
      async (request, response) => {
        send(request, response, {
          status: 200,
          type: metrics.contentType,
          text: await metrics.text()
        });
      }
    ]
  ]);

  const server = createServer(LIMITS, async (request, response) => {
    const [path] = request.url.split('?');
    const route = routes.get(path);
    if (!route) {
      sendProblem(request, response, 'not-found', {
        detail: `There are ${[...routes.keys()].join(', ')}.`
      });
    } else if (!METHODS.includes(request.method)) {
      sendProblem(request, response, 'method-not-allowed', {
        headers: { Allow: METHODS.join(', ') }
      });
    } else {
      try {
        await route(request, response);
      } catch (error) {
        onError(error);
        if (response.headersSent) response.destroy();
        else send(request, response, { status: 500, type: 'text/plain', text: 'no metrics\n' });
      }
    }
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
  server.closeEveryConnection = lookAfterSockets(server, ['connection']).destroyAll;
  server.on('clientError', (error, socket) => {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    refuse(socket, REFUSED[error.code] ?? 'bad-request', { 'Cache-Control': 'no-store' });
  });
  server.listen({ host, port });
  return server;
}

/**
 * Opens the admin listener, if there is to be one.
 *
 * @param {object} parts
 * @param {{adminHost: string, adminPort: number | 'none'}} parts.options
 * @param {ReturnType<import('./metrics.js').createMetrics>} parts.metrics
 * @param {() => boolean} parts.ready false while draining
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<{port: number, stopListening: () => void, closeIdle: () => void,
 *     close: () => void}>} port 0 without one; it listens on while the server drains
 * @throws {Error} when the port can't be had
 */
export async function openAdmin({ options, metrics, ready, log }) {
  const nothing = () => {};
  if (options.adminPort === 'none') {
    return { port: 0, stopListening: nothing, closeIdle: nothing, close: nothing };
  }
  const server = createAdmin({
    host: options.adminHost,
    port: options.adminPort,
    metrics,
    ready,
    onError: (error) => log.error({ err: error }, 'admin listener')
  });
  await once(server, 'listening');
  return {
    port: server.address().port,
    stopListening: nothing,
    closeIdle: nothing,
    close() {
      server.close();
      server.closeEveryConnection();
    }
  };
}
