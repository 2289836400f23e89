import { answerText, problemAnswer } from './problem-answers.js';

/**
 * What every server of Node's here does with its sockets: an error of one does not end the process,
 * a refused one is closed, and a server that closes leaves none open.
 */

/** Milliseconds a connection may take to read a last answer and close. */
export const LINGER = 1000;

/**
 * Looks after every socket of a server, from its first moment to its last.
 *
 * Node's HTTP server takes its own error listener off a socket before it emits 'connect', and 'error'
 * without a listener is an uncaught exception. So each socket gets one that stays.
 *
 * @param {import('node:net').Server} server
 * @param {string[]} events those by which it tells of a socket; the first comes for every connection
 * @returns {{count: () => number, destroyAll: () => void}} `count` says how many connections there
 *     are; `destroyAll` ends them all, those in a TLS handshake and those that Node's own
 *     closeAllConnections has lost sight of (CONNECT) among them
 */
export function lookAfterSockets(server, events) {
  const sockets = new Set();
  // The error of a socket is its end, and 'close' follows: there is nothing else to do.
  const ended = () => {};
  for (const event of events) server.on(event, (socket) => socket.on('error', ended));
  server.on(events[0], (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  return {
    count: () => sockets.size,
    destroyAll() {
      for (const socket of sockets) socket.destroy();
    }
  };
}

/**
 * Writes a problem to a socket that no response object belongs to, and closes it once the peer has,
 * or a second later: a close with bytes still unread would be a reset, and might overtake the answer.
 *
 * @param {import('node:net').Socket} socket
 * @param {string} name the problem
 * @param {Record<string, string | number>} headers
 * @param {number} [linger] milliseconds
 */
export function refuse(socket, name, headers, linger = LINGER) {
  const answer = problemAnswer(name, { headers: { ...headers, Connection: 'close' } });
  closeAfterPeer(socket, linger || LINGER);
  socket.end(answerText(answer), () => {
    if (linger === 0 || socket.readableEnded) socket.destroy();
  });
}

/**
 * Has a socket of Node's HTTP server close as `refuse` does, once its last answer is written: for an
 * answer to a request whose body is not read. Node by itself closes at once, and a client that still
 * sends finds a reset instead of the answer (RFC 9112, section 9.6).
 *
 * @param {import('node:net').Socket} socket
 */
export function lingerAtClose(socket) {
  // The method by which Node closes a connection after its last answer.
  socket.destroySoon = () => {
    closeAfterPeer(socket, LINGER);
    socket.end();
  };
}

/** Reads and throws away what a peer still sends; closes once it has ended, or after `linger` ms. */
function closeAfterPeer(socket, linger) {
  socket
    .removeAllListeners('data')
    .on('data', () => {})
    .resume();
  const close = () => socket.destroy();
  socket.on('end', close);
  const patience = setTimeout(close, linger);
  socket.on('close', () => clearTimeout(patience));
}
