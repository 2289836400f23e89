/**
 * `ws` as its documentation has it: a WebSocket server beside an http one, and a broadcast that
 * sends what was published to every client that is open. Publishing is a POST.
 *
 *     node test/bench/transports/ws.js
 */
import { createServer } from 'node:http';

import WebSocket, { WebSocketServer } from 'ws';

import { listen, publications } from '../contenders/publications.js';

const server = createServer(
  publications((document) => {
    const text = document.toString();
    for (const client of sockets.clients) {
      if (client.readyState === WebSocket.OPEN) client.send(text);
    }
  })
);
const sockets = new WebSocketServer({ server });

listen(server);
