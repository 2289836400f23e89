import { once } from 'node:events';
import http from 'node:http';

import { createServer } from 'sprites-server';

/**
 * A server beside one of node:http in the same program: each has its port.
 *
 *     node lib/examples/http.js
 */

const sprites = await createServer({ port: 0 });
const site = http.createServer((request, response) => {
  const { clients, thrown } = sprites.status();
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({ sprites: sprites.addresses[0], clients, thrown }));
});
site.listen(Number(process.argv[2] ?? 8090));
await once(site, 'listening');
console.log(`Open http://localhost:${site.address().port}/, and the address that it shows.`);

process.once('SIGTERM', async () => {
  site.close();
  await sprites.close();
});
