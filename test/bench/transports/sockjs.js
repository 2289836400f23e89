/**
 * SockJS: a write to each connection, of a text, as it knows nothing else.
 *
 *     node test/bench/transports/sockjs.js
 */
import { createServer as createHttpServer } from 'node:http';

import { createServer } from 'sockjs';

import { listen, publications } from '../contenders/publications.js';

const connections = new Set();
const server = createHttpServer(
  publications((document) => {
    const text = document.toString();
    for (const connection of connections) connection.write(text);
  })
);

// It logs each connection, unless it is told not to.
const sockets = createServer({ prefix: '/feed', log: () => {} });
sockets.on('connection', (connection) => {
  connections.add(connection);
  connection.on('close', () => connections.delete(connection));
});
sockets.installHandlers(server);

listen(server);
