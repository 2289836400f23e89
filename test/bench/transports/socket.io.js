/**
 * Socket.IO: an event to all, whose argument is the document, with the recovery of a connection's
 * state that its documentation has for what was missed.
 *
 *     node test/bench/transports/socket.io.js
 */
import { createServer } from 'node:http';

import { Server } from 'socket.io';

import { listen, publications } from '../contenders/publications.js';

const server = createServer(
  publications((document) => {
    io.emit('document', JSON.parse(document));
  })
);
const io = new Server(server, { connectionStateRecovery: {} });

listen(server);
