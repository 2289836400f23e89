/**
 * Records the bytes that the contenders send to one client, for the tests of the load generator's readers:
 *
 *     node test/bench/transports/record.js [NAME…]
 *
 * It takes 45 seconds, so that the recordings have pings and heartbeats.
 */
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { gunzipSync, gzipSync } from 'node:zlib';

import { buildWatchers, startLoad, TOKEN } from '../contenders.js';
import { CHANGING, contenders } from './contenders.js';

/** All recordings, as JSON: the bytes by the contender's name, a character for each byte. */
const FILE = new URL('recordings.json.gz', import.meta.url);

const recordings = existsSync(FILE) ? JSON.parse(gunzipSync(readFileSync(FILE))) : {};

/** A load with all kinds of frame and chunk lengths, and pings in between. */
const WORK = { connections: 1, bytes: 70000, every: 5, seconds: 35, warmup: 1, changing: CHANGING };

/** Starts a proxy between the load and a server, which records. @returns {Promise<{port: number, bytes: Buffer[]}>} */
async function startTap(port) {
  const bytes = [];
  const tap = net.createServer((client) => {
    const server = net.connect(port, '127.0.0.1');
    client.once('data', (first) => {
      server.write(first);
      client.pipe(server);
      // The other connections publish.
      if (first.toString('latin1').startsWith('GET '))
        server.on('data', (data) => bytes.push(data));
      server.pipe(client);
    });
    for (const socket of [client, server]) {
      socket.on('error', () => {
        client.destroy();
        server.destroy();
      });
    }
  });
  tap.listen(0, '127.0.0.1');
  await once(tap, 'listening');
  tap.unref();
  return { port: tap.address().port, bytes };
}

async function record(name) {
  const { protocol, start } = contenders[name];
  const server = await start(false);
  const tap = await startTap(server.port);
  const spoken = { protocol, token: TOKEN };
  const load = startLoad({ ...server, port: tap.port }, false, { ...WORK, ...spoken });
  try {
    const { documents } = await load.measure();
    recordings[name] = Buffer.concat(tap.bytes).toString('latin1');
    console.log(`${name}: ${documents} documents`);
  } finally {
    await load.stop();
    await server.stop();
  }
}

// Built once, before all recordings start.
buildWatchers();
const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(contenders);
await Promise.all(names.map((name) => record(name)));
writeFileSync(FILE, gzipSync(JSON.stringify(recordings), { level: 9 }));
process.exit();
