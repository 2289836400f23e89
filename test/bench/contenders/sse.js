/**
 * Server-Sent Events over node:http, the obvious way: a Set of responses, and a write to each.
 *
 *     node test/bench/contenders/sse.js
 */
import { createServer } from 'node:http';

import { listen, publications } from './publications.js';

const streams = new Set();

const server = createServer(
  publications(
    (document) => {
      const event = `data: ${document}\n\n`;
      for (const stream of streams) stream.write(event);
    },
    (request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
      response.write(':\n\n');
      streams.add(response);
      response.on('close', () => streams.delete(response));
    }
  )
);

listen(server);
