import { gunzipSync } from 'node:zlib';

import t from 'tap';

import { EventStream, put, TOKEN, tokenFile } from '../support/feeds.js';
import { request } from '../support/http.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

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

/** Enough that each worker has some. */
const WIRES = 12;

t.test(
  'what is put through any worker has one order, and all of them end with the last',
  async (t) => {
    const options = { workers: 2, drain: 0, 'publish-token-file': tokenFile(t) };
    const server = await startServer(t, { door: 'native', options });
    const wires = await Promise.all(Array.from({ length: WIRES }, () => server.wire()));
    const send = (wire, value) =>
      wire.send(
        request('PUT', '/feed/a', {
          body: JSON.stringify(value),
          headers: { Authorization: `Bearer ${TOKEN}` }
        })
      );
    const versionOf = (cursor) => Number(/-(\d+)$/.exec(cursor)[1]);
    let last = 0;
    /** Each wire has watched before: its worker has a replica. */
    async function endsWith(value, version) {
      for (const wire of wires) {
        let body;
        // A worker may be told a moment after whoever has put it.
        await until(async () => {
          wire.send(request('GET', '/feed/a'));
          ({ body } = await server.read(wire));
          return versionOf(body.cursor) === version;
        });
        t.strictSame(body.value, value);
      }
    }

    // One after the other, each through another connection.
    for (let i = 0; i < 5 * WIRES; i += 1) {
      send(wires[i % WIRES], { i });
      const { cursor } = (await server.read(wires[i % WIRES])).body;
      t.ok(versionOf(cursor) === last + 1 || last === 0, `${cursor} after ${last}`);
      last = versionOf(cursor);
    }
    await endsWith({ i: 5 * WIRES - 1 }, last);

    // All at once; who watches sees versions in order, and none that was not put.
    const watcher = await EventStream.open(server, 'a');
    const published = new Map();
    await Promise.all(
      wires.map(async (wire, by) => {
        let before = last;
        for (let n = 0; n < 20; n += 1) {
          send(wire, { by, n });
          const { cursor } = (await server.read(wire)).body;
          t.ok(versionOf(cursor) > before, 'its own are in order');
          before = versionOf(cursor);
          t.notOk(published.has(before), 'a version is one value');
          published.set(before, { by, n });
        }
      })
    );
    const newest = Math.max(...published.keys());
    t.equal(newest, last + 20 * WIRES, 'each is a version');
    await endsWith(published.get(newest), newest);
    let seen = 0;
    while (seen < newest) {
      const { id, data } = await watcher.news();
      t.ok(versionOf(id) > seen, `${id} after ${seen}`);
      seen = versionOf(id);
      if (published.has(seen)) t.strictSame(data.value, published.get(seen));
    }
    await Promise.all([...wires, watcher.wire].map((wire) => wire.destroy()));
    await server.stop();
  }
);
