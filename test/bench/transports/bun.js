/**
 * Bun's own server, whose engine is uWebSockets: each socket subscribes to a topic, and what was
 * published goes to the topic.
 *
 *     test/bench/transports/node_modules/.bin/bun test/bench/transports/bun.js
 */
/* global Bun */

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
