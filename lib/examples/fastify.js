import fastify from 'fastify';
import { createServer } from 'sprites-server';

import { behind } from './behind.js';

/**
 * Fastify and Sprites on one port: Sprites is in front.
 *
 *     npm install fastify && node lib/examples/fastify.js
 */

const app = fastify();
app.get('/', () => {
  const { clients, thrown } = sprites.status();
  return { clients, thrown };
});
const site = await app.listen({ port: 0, host: '127.0.0.1' });
const sprites = await createServer({ port: Number(process.argv[2] ?? 8090), fetch: behind(site) });
console.log(`Open ${sprites.addresses[0]}, and ${sprites.addresses[0]}status of Sprites.`);

process.once('SIGTERM', async () => {
  await sprites.close();
  await app.close();
});
