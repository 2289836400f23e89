import { gunzipSync } from 'node:zlib';

import t from 'tap';

import { put, tokenFile } from '../support/feeds.js';
import { request } from '../support/http.js';
import { startServer } from '../support/server.js';

/** Feeds that are watched in workers, which have replicas of those of the main process. */

t.test('who is the first to ask a worker for a feed compressed gets it so', async (t) => {
  const options = { workers: 2, drain: 0, 'publish-token-file': tokenFile(t) };
  const server = await startServer(t, { door: 'native', options });
  const value = Array.from({ length: 200 }, (_, i) => `line ${i}`);
  await put(server, 'a', value);
  // Enough that each worker has a first one.
  for (let i = 0; i < 12; i += 1) {
    const wire = await server.wire();
    wire.send(request('GET', '/feed/a', { headers: { 'Accept-Encoding': 'gzip' } }));
    const { headers, bytes } = await server.read(wire, { gzip: true });
    await wire.destroy();
    t.equal(headers['content-encoding'], 'gzip');
    t.strictSame(JSON.parse(gunzipSync(bytes)).value, value);
  }
  await server.stop();
});
