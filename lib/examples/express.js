import { once } from 'node:events';

import express from 'express';
import { createServer } from 'sprites-server';

import { behind } from './behind.js';

/**
 * Express and Sprites on one port: Sprites is in front.
 *
 *     npm install express && node lib/examples/express.js
 */

const app = express();
app.get('/', (request, response) => {
  const { clients, thrown } = sprites.status();
  response.json({ clients, thrown });
});
const site = app.listen(0, '127.0.0.1');
await once(site, 'listening');
const sprites = await createServer({
  port: Number(process.argv[2] ?? 8090),
  fetch: behind(`http://127.0.0.1:${site.address().port}`)
});
console.log(`Open ${sprites.addresses[0]}, and ${sprites.addresses[0]}status of Sprites.`);

process.once('SIGTERM', async () => {
  await sprites.close();
  site.close();
});
