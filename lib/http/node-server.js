import { once } from 'node:events';
import { createServer } from 'node:http';

import { exchange } from './exchange.js';
import { Pipeline } from './pipelines.js';
import { explained } from '../base/port-errors.js';
import { parserProblem, sendProblem } from './problem-answers.js';
import { LINGER, lookAfterSockets, refuse } from './sockets.js';
import { NOTHING_TOLD } from './refusals.js';

/**
 * Node's own HTTP server, set up for the contract: its timeouts and bounds, and problem documents
 * where Node would answer a bare status line. It serves whatever the native front door hands over,
 * and the whole contract where there is no front door.
 */

/** How often Node looks for connections whose time is up, in milliseconds. */
const SWEEP = 1000;

/**
 * A header by which a browser shows: it would use a connection for its poll that it has asked for a
 * file by a moment ago.
 */
const BROWSER = 'sec-fetch-mode';

/** How long a connection may be idle that is the front door's to serve, in milliseconds. */
const IDLE_HANDED_OVER = 1000;

/** Refused connections that may linger at the same time; further ones are closed at once. */
const LINGERERS = 32;

/**
 * How long a connection is silent before it is probed: the longest hold, its jitter and a minute
 * more. So a parked poll is never probed (native/http/listener.cc says what that would cost).
 *
 * @param {{hold: number}} options seconds
 * @returns {number} seconds
 */
export function keepIdle({ hold }) {
  return Math.ceil((hold * 17) / 16) + 60;
}

/**
 * Makes the server. It does not listen: connections are given to it, or its caller makes it listen.
 *
 * @param {object} parts
 * @param {ReturnType<import('./routes.js').createRoutes>} parts.routes
 * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
 * @param {object} parts.options see lib/operator/options.js: headBytes, headTime, bodyTime, idleTime,
 *     writeTime
 * @param {import('./connection-budget.js').ConnectionBudget} parts.budget counts its connections with those of others
 * @param {import('./refusals.js').Refusals} [parts.refusals]
 * @param {import('pino').Logger} parts.log
 * @param {() => boolean} [parts.fits] whether the connection counted last may stay; else it is
 *     answered 503, or closed where no answer can be written yet
 * @param {(options: object, handle: Function) => import('node:http').Server} [parts.create] what
 *     makes the server, by default node:http's createServer
 * @param {string} [parts.arrival] its event for a connection that may be written to: with TLS, not
 *     before the handshake
 * @returns {import('node:http').Server & {held: () => number, closeEveryConnection: () => void,
 *     closeSoon: (socket: import('node:net').Socket) => void}}
 *     `held` counts its connections; `closeEveryConnection` ends also those in a TLS handshake;
 *     `closeSoon` has a connection closed soon after its answer: a browser's with it, any other
 *     when it is idle for a second
 */
export function createNodeServer({
  routes,
  limits,
  options,
  budget,
  refusals = NOTHING_TOLD,
  log,
  fits = () => budget.fits(),
  create = createServer,
  arrival = 'connection'
}) {
  /** Of the sockets that may be written to, and were not refused. */
  const pipelines = new WeakMap();
  /** Sockets that the front door has handed over: their next request is to come to it again. */
  const handedOver = new WeakSet();
  let lingering = 0;

  /** Closes the connection of a peer that stops reading its answer. */
  function hurry(socket, response) {
    if (socket.writableLength === 0) return;
    // Node starts this timeout anew whenever the kernel has taken some of the answer.
    socket.setTimeout(options.writeTime * 1000);
    response.prependListener('finish', () => socket.setTimeout(0));
  }

  function inTurn(request, response, serve) {
    const { socket } = request;
    if (handedOver.has(socket) && BROWSER in request.headers) response.shouldKeepAlive = false;
    response.on('prefinish', () => hurry(socket, response));
    pipelines.get(socket).add(request, response, serve);
  }

  const server = create(
    {
      maxHeaderSize: options.headBytes,
      headersTimeout: options.headTime * 1000,
      requestTimeout: options.bodyTime * 1000,
      keepAliveTimeout: options.idleTime * 1000,
      connectionsCheckingInterval: SWEEP,
      // The routes answer a missing Host with a problem document.
      requireHostHeader: false,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepIdle(options) * 1000
    },
    (request, response) =>
      inTurn(request, response, () =>
        exchange(request, response, { routes, limits, refusals, log })
      )
  );
  // The size of a head bounds them; Node would drop those behind the two thousandth, and what a
  // proxy has added last among them.
  server.maxHeadersCount = 0;

  const sockets = lookAfterSockets(server, [...new Set(['connection', arrival])]);
  server.held = sockets.count;
  server.closeEveryConnection = () => {
    server.close();
    sockets.destroyAll();
  };
  server.closeSoon = (socket) => {
    server.keepAliveTimeout = Math.min(server.keepAliveTimeout, IDLE_HANDED_OVER);
    handedOver.add(socket);
  };
  server.on(arrival, (socket) =>
    pipelines.set(socket, new Pipeline(socket, limits.peerOf(socket)))
  );
  server.on('connection', (socket) => {
    budget.count(socket);
    const admitted = limits.admit(socket);
    if (fits() && admitted) return;
    budget.refused += 1;
    refusals.refused({ from: limits.peerOf(socket), why: 'too-many-connections' });
    if (!pipelines.has(socket)) {
      socket.destroy();
      return;
    }
    lingering += 1;
    socket.on('close', () => {
      lingering -= 1;
    });
    refuse(socket, 'too-many-connections', routes.headers, lingering > LINGERERS ? 0 : LINGER);
  });
  server.on('checkExpectation', (request, response) => {
    const headers = { ...routes.headers, Connection: 'close' };
    inTurn(request, response, () => sendProblem(response, 'expectation-failed', { headers }));
  });
  server.on('checkContinue', (request, response) => {
    // 100 Continue is sent when the body is first read: not at all, where the head is refused.
    request.once('newListener', (event) => {
      if (event === 'data') response.writeContinue();
    });
    server.emit('request', request, response);
  });
  server.on('connect', (request, socket) => {
    const headers = { ...routes.headers, Allow: 'GET, POST, OPTIONS' };
    pipelines.get(socket).refuse('method-not-allowed', headers);
  });
  server.on('clientError', (error, socket) => {
    const gone = !socket.writable || error.code === 'ECONNRESET';
    const pipeline = pipelines.get(socket);
    if (gone || pipeline === undefined) socket.destroy();
    else {
      refusals.refused({ from: limits.peerOf(socket), why: parserProblem(error) });
      pipeline.refuse(parserProblem(error), routes.headers);
    }
  });
  return server;
}

/**
 * Lets Node's server listen itself: --door node, without the native front door.
 *
 * @param {import('node:http').Server} server
 * @returns {ReturnType<import('./door.js').createDoor>} the same calls as a front door
 */
export function openDoor(server) {
  return {
    async listen(host, port) {
      server.listen({ host, port, backlog: 65535 });
      await explained({ host: 'host', port: 'port' }, { host, port }, once(server, 'listening'));
      return server.address().port;
    },
    status: () => ({}),
    locate() {},
    stopListening: () => server.close(),
    closeIdle: () => server.closeIdleConnections(),
    close: () => server.closeEveryConnection()
  };
}
