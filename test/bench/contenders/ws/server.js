/**
 * `ws` as its documentation has it: a WebSocket server beside an http one, and a broadcast that
 * sends what was published to every client that is open. Publishing is a POST.
 *
 *     node test/bench/contenders/ws/server.js
 */
import { createServer } from 'node:http';

import WebSocket, { WebSocketServer } from 'ws';

import { publications } from '../publications.js';

const server = createServer(
  publications((document) => {
    const text = document.toString();
    for (const client of sockets.clients) {
      if (client.readyState === WebSocket.OPEN) client.send(text);
    }
  })
);
const sockets = new WebSocketServer({ server });

server.listen({ port: 0, host: '127.0.0.1', backlog: 65535 }, () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
