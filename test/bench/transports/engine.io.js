/**
 * Engine.IO beside an http server: what was published is sent to each socket, in a loop, as it knows
 * no broadcast.
 *
 *     node test/bench/transports/engine.io.js
 */
import { createServer } from 'node:http';

import { attach } from 'engine.io';

import { listen, publications } from '../contenders/publications.js';

const server = createServer(
  publications((document) => {
    const text = document.toString();
    for (const socket of sockets) socket.send(text);
  })
);

const sockets = new Set();
attach(server).on('connection', (socket) => {
  sockets.add(socket);
  socket.on('close', () => sockets.delete(socket));
});

listen(server);
