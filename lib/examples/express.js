import { once } from 'node:events';

import express from 'express';
import { createServer } from 'sprites-server';

/**
 * A server beside Express in the same program: each has its port.
 *
 *     npm install express && node lib/examples/express.js
 */

const sprites = await createServer({ port: 0 });
const app = express();
app.get('/', (request, response) => {
  const { clients, thrown } = sprites.status();
  response.json({ sprites: sprites.addresses[0], clients, thrown });
});
const site = app.listen(Number(process.argv[2] ?? 8090));
await once(site, 'listening');
console.log(`Open http://localhost:${site.address().port}/, and the address that it shows.`);

process.once('SIGTERM', async () => {
  site.close();
  await sprites.close();
});
