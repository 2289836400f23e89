/**
 * The contenders that are libraries, each as in its documentation. A published document is sent to all clients.
 *
 *     node test/bench/transports/servers.js ws|engine.io|primus|socket.io|sockjs|sse
 *     test/bench/transports/node_modules/.bin/bun test/bench/transports/servers.js bun
 *
 * The server listens on loopback, on a free port, and prints its address. Documents are published by POST /publish,
 * with the document as the body; the answer is 204.
 */
/* global Bun */
import { createServer } from 'node:http';

/**
 * Serves with node:http.
 *
 * @param {(server: import('node:http').Server) => ((document: Buffer) => void) | Promise<(document: Buffer) => void>}
 *     attach attaches a library to the server; returns the function that sends a document to all clients
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void}
 *     [serveOthers] serves all other requests
 */
async function serve(attach, serveOthers = (request, response) => response.writeHead(404).end()) {
  const server = createServer((request, response) => {
    if (request.method !== 'POST' || request.url !== '/publish') {
      serveOthers(request, response);
      return;
    }
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      broadcast(Buffer.concat(chunks));
      response.writeHead(204).end();
    });
  });
  const broadcast = await attach(server);
  server.listen({ port: 0, host: '127.0.0.1', backlog: 65535 }, () =>
    console.log(`http://127.0.0.1:${server.address().port}`)
  );
}

const SERVERS = {
  ws: () =>
    serve(async (server) => {
      const { default: WebSocket, WebSocketServer } = await import('ws');
      const sockets = new WebSocketServer({ server });
      return (document) => {
        const text = document.toString();
        for (const client of sockets.clients) {
          if (client.readyState === WebSocket.OPEN) client.send(text);
        }
      };
    }),

  /** engine.io has no broadcast. */
  'engine.io': () =>
    serve(async (server) => {
      const { attach } = await import('engine.io');
      const sockets = new Set();
      attach(server).on('connection', (socket) => {
        sockets.add(socket);
        socket.on('close', () => sockets.delete(socket));
      });
      return (document) => {
        const text = document.toString();
        for (const socket of sockets) socket.send(text);
      };
    }),

  /** Over ws. */
  primus: () =>
    serve(async (server) => {
      const { default: Primus } = await import('primus');
      const primus = new Primus(server, { transformer: 'websockets' });
      return (document) => primus.write(JSON.parse(document));
    }),

  /** With the recovery of a connection's state that its documentation has for what was missed. */
  'socket.io': () =>
    serve(async (server) => {
      const { Server } = await import('socket.io');
      const io = new Server(server, { connectionStateRecovery: {} });
      return (document) => io.emit('document', JSON.parse(document));
    }),

  /** sockjs takes only texts, and logs each connection unless it is told not to. */
  sockjs: () =>
    serve(async (server) => {
      const { createServer: createSockets } = await import('sockjs');
      const connections = new Set();
      const sockets = createSockets({ prefix: '/feed', log: () => {} });
      sockets.on('connection', (connection) => {
        connections.add(connection);
        connection.on('close', () => connections.delete(connection));
      });
      sockets.installHandlers(server);
      return (document) => {
        const text = document.toString();
        for (const connection of connections) connection.write(text);
      };
    }),

  /** Server-Sent Events over node:http, the obvious way: a Set of responses, and a write to each. */
  sse: () => {
    const streams = new Set();
    return serve(
      () => (document) => {
        const event = `data: ${document}\n\n`;
        for (const stream of streams) stream.write(event);
      },
      (request, response) => {
        response.writeHead(200, {
          'Content-Type': 'text/event-stream',
          'Cache-Control': 'no-store'
        });
        response.write(':\n\n');
        streams.add(response);
        response.on('close', () => streams.delete(response));
      }
    );
  },

  /** Bun's own server, whose engine is uWebSockets: each socket subscribes to a topic. */
  bun: () => {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      maxRequestBodySize: 8 * 2 ** 20,
      async fetch(request) {
        if (request.method === 'POST') {
          server.publish('feed', await request.text());
          return new Response(null, { status: 204 });
        }
        return server.upgrade(request) ? undefined : new Response(null, { status: 404 });
      },
      websocket: { open: (socket) => socket.subscribe('feed'), message: () => {} }
    });
    console.log(`http://127.0.0.1:${server.port}`);
  }
};

await SERVERS[process.argv[2]]();
