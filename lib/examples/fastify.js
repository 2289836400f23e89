import fastify from 'fastify';
import { createServer } from 'sprites-server';

/**
 * A server beside Fastify in the same program: each has its port.
 *
 *     npm install fastify && node lib/examples/fastify.js
 */

const sprites = await createServer({ port: 0 });
const app = fastify();
app.get('/', () => {
  const { clients, thrown } = sprites.status();
  return { sprites: sprites.addresses[0], clients, thrown };
});
app.addHook('onClose', () => sprites.close());
await app.listen({ port: Number(process.argv[2] ?? 8090) });
const [{ port }] = app.addresses();
console.log(`Open http://localhost:${port}/, and the address that it shows.`);

process.once('SIGTERM', () => app.close());
