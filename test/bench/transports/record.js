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
import { CHANGING_SHARE, contenders } from './contenders.js';

/** All recordings, as JSON: the bytes by the contender's name, a character for each byte. */
const RECORDINGS_FILE = new URL('recordings.json.gz', import.meta.url);

const recordings = existsSync(RECORDINGS_FILE)
  ? JSON.parse(gunzipSync(readFileSync(RECORDINGS_FILE)))
  : {};

/** A load with all kinds of frame and chunk lengths, and pings in between. */
const RECORDED_LOAD = {
  connections: 1,
  bytes: 70000,
  every: 5,
  seconds: 35,
  warmup: 1,
  changing: CHANGING_SHARE
};

/** Starts a proxy between the load and a server, which records. @returns {Promise<{port: number, bytes: Buffer[]}>} */
async function startRecordingProxy(port) {
  const bytes = [];
  const proxy = net.createServer((client) => {
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
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  proxy.unref();
  return { port: proxy.address().port, bytes };
}

async function record(name) {
  const { protocol, start } = contenders[name];
  const server = await start(false);
  const proxy = await startRecordingProxy(server.port);
  const protocolOptions = { protocol, token: TOKEN };
  const load = startLoad({ ...server, port: proxy.port }, false, {
    ...RECORDED_LOAD,
    ...protocolOptions
  });
  try {
    const { documents } = await load.measure();
    recordings[name] = Buffer.concat(proxy.bytes).toString('latin1');
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
writeFileSync(RECORDINGS_FILE, gzipSync(JSON.stringify(recordings), { level: 9 }));
process.exit();
