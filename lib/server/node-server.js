import { once } from 'node:events';
import { createServer } from 'node:http';

import { explained } from './port-errors.js';
import { parserProblem, sendProblem } from './problem-answers.js';
import { LINGER, lookAfterSockets, refuse } from './sockets.js';

/**
 * Node's own HTTP server, set up for the contract: its timeouts and bounds, and problem documents
 * where Node would answer a bare status line. It serves whatever the native front door hands over,
 * and the whole contract where there is no front door.
 */

/** How often Node looks for connections whose time is up, in milliseconds. */
const SWEEP = 1000;

/** Connections above the bound that may take it; further ones are closed at once. */
const LINGERERS = 32;

/**
 * When a silent connection is probed: after any hold and its jitter, and a minute more, so that a
 * parked poll that is well never is (native/door/listener.cc says what that would cost).
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
 * @param {import('./address-limits.js').AddressLimits} parts.limits
 * @param {object} parts.options see lib/server/options.js: headBytes, headTime, bodyTime, idleTime,
 *     writeTime
 * @param {import('./connection-budget.js').ConnectionBudget} parts.budget counts its connections with those of others
 * @param {() => boolean} [parts.fits] whether the connection counted last may stay; else it is
 *     answered 503, or closed where no answer can be written yet
 * @param {(options: object, handle: Function) => import('node:http').Server} [parts.create] what
 *     makes the server, by default node:http's createServer
 * @param {string} [parts.arrival] its event for a connection that may be written to: with TLS, not
 *     before the handshake
 * @returns {import('node:http').Server & {held: () => number, closeEveryConnection: () => void}}
 *     `held` counts its connections; `closeEveryConnection` ends also those in a TLS handshake
 */
export function createNodeServer({
  routes,
  limits,
  options,
  budget,
  fits = () => budget.fits(),
  create = createServer,
  arrival = 'connection'
}) {
  /** Sockets that may be written to. */
  const writable = new WeakSet();
  /** Sockets with an answer still owed: nothing else may be written to them. */
  const owing = new WeakMap();
  /** The newest request of each socket, and its response. */
  const newest = new WeakMap();
  let lingering = 0;

  /** Whether a refusal may be written: nothing else is owed, or the request is still arriving. */
  function mayRefuse(socket) {
    const answers = owing.get(socket) ?? 0;
    if (answers === 0) return true;
    const { request, response } = newest.get(socket);
    return answers === 1 && !request.complete && !response.headersSent;
  }

  /** Ends the connection of a peer that does not read on in its answer. */
  function hurry(socket, response) {
    if (socket.writableLength === 0) return;
    // Node's own time-out begins again whenever the kernel has taken something.
    socket.setTimeout(options.writeTime * 1000);
    response.prependListener('finish', () => socket.setTimeout(0));
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
    (request, response) => {
      const { socket } = request;
      owing.set(socket, (owing.get(socket) ?? 0) + 1);
      newest.set(socket, { request, response });
      response.on('close', () => owing.set(socket, owing.get(socket) - 1));
      response.on('prefinish', () => hurry(socket, response));
      routes.handle(request, response);
    }
  );

  const sockets = lookAfterSockets(server, [...new Set(['connection', arrival])]);
  server.held = sockets.count;
  server.closeEveryConnection = sockets.destroyAll;
  server.on(arrival, (socket) => writable.add(socket));
  server.on('connection', (socket) => {
    budget.count(socket);
    const admitted = limits.admit(socket);
    if (fits() && admitted) return;
    budget.refused += 1;
    if (!writable.has(socket)) {
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
    sendProblem(response, 'expectation-failed', { headers });
  });
  server.on('checkContinue', (request, response) => {
    // A body that is refused anyway is not asked for.
    request.once('newListener', (event) => {
      if (event === 'data') response.writeContinue();
    });
    server.emit('request', request, response);
  });
  server.on('connect', (request, socket) => {
    refuse(socket, 'method-not-allowed', { ...routes.headers, Allow: 'GET, POST, OPTIONS' });
  });
  server.on('clientError', (error, socket) => {
    const gone = !socket.writable || error.code === 'ECONNRESET';
    if (gone || !writable.has(socket) || !mayRefuse(socket)) {
      socket.destroy();
    } else {
      refuse(socket, parserProblem(error), routes.headers);
    }
  });
  return server;
}

/**
 * Lets Node's server have the listening socket itself: the way in without the native front door.
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
    stopListening: () => server.close(),
    closeIdle: () => server.closeIdleConnections(),
    close: () => server.closeEveryConnection()
  };
}
