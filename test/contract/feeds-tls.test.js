import { gunzipSync } from 'node:zlib';

import t from 'tap';

import {
  EventStream,
  get,
  parkGet,
  parkMany,
  patch,
  put,
  remove,
  TOKEN,
  tokenFile
} from '../support/feeds.js';
import { request } from '../support/http.js';
import { resident } from '../support/processes.js';

import { startWithEveryWay } from '../support/server.js';

/**
 * Feeds by TLS: watching and publishing are the same there.
 */

const MEGABYTE = 2 ** 20;

const options = {
  'publish-token-file': tokenFile(t),
  'feed-threads': 1,
  'feed-bytes': '10M',
  'write-time': 4,
  hold: 20
};

for (const workers of [0, 2]) {
  t.test(`feeds by TLS, with ${workers} workers`, async (t) => {
    const { server, ways } = await startWithEveryWay(t, { ...options, workers });
    server.wire = ways.tls.open;

    const padding = 'x'.repeat(2000);
    const { cursor } = (await put(server, 'a/b', { score: 1, padding })).body;
    t.strictSame((await get(server, 'a/b')).body.value.score, 1);
    const headers = { 'Accept-Encoding': 'gzip' };
    const wire = await server.wire();
    wire.send(request('GET', '/feed/a/b', { headers }));
    const compressed = await server.read(wire, { gzip: true });
    await wire.destroy();
    t.equal(compressed.headers['content-encoding'], 'gzip');
    t.equal(JSON.parse(gunzipSync(compressed.bytes)).cursor, cursor);

    const uploading = await server.wire();
    const text = JSON.stringify('y'.repeat(MEGABYTE));
    const bearer = `Authorization: Bearer ${TOKEN}\r\n`;
    uploading.send(
      `PUT /feed/upload HTTP/1.1\r\nHost: x\r\n${bearer}Transfer-Encoding: chunked\r\n\r\n`
    );
    for (let at = 0; at < text.length; at += 10_000) {
      const piece = text.slice(at, at + 10_000);
      uploading.send(`${piece.length.toString(16)}\r\n${piece}\r\n`);
    }
    t.equal((await server.read(uploading.send('0\r\n\r\n'))).status, 201, 'a megabyte in chunks');
    t.equal((await get(server, 'upload')).body.value.length, MEGABYTE);
    await uploading.destroy();

    const whole = await parkGet(server, 'a/b', `after=${cursor}`);
    const delta = await parkGet(server, 'a/b', `after=${cursor}&delta=1`);
    const many = await parkMany(server, { feeds: { 'a/b': cursor } });
    const stream = await EventStream.open(server, 'a/b', { query: `after=${cursor}` });
    await server.until(({ watching, streams }) => watching === 4 && streams === 1);
    const second = (await patch(server, 'a/b', 'merge-patch', { score: 2 })).body;
    t.equal(second.watching, 4);
    t.equal((await whole.answer).body.value.score, 2);
    t.strictSame((await delta.answer).body.patch, [{ op: 'replace', path: '/score', value: 2 }]);
    t.equal((await many.answer).body.items[0].cursor, second.cursor);
    t.equal((await stream.news()).id, second.cursor);
    await remove(server, 'a/b');
    t.equal((await stream.news()).data.problem, 'unknown-feed');
    t.equal(await stream.next(), null, 'and the stream ends');

    await put(server, 'large', JSON.stringify('x'.repeat(9 * MEGABYTE)));
    const stalled = await server.wire();
    stalled.pause();
    const accept = { Accept: 'text/event-stream' };
    stalled.send(request('GET', '/feed/large', { headers: accept }));
    await server.until(({ documents, watching }) => documents > 4 && watching === 0);
    t.pass('a client that does not read is not kept');

    // A copy for each would be 180 MB.
    const before = resident(server.pid);
    const { documents } = await server.status();
    const readers = [];
    for (let n = 0; n < 20; n += 1) {
      const reader = await server.wire();
      reader.pause();
      const how = n % 2 === 0 ? { headers: accept } : {};
      reader.send(request('GET', '/feed/large', how));
      readers.push(reader);
    }
    await server.until((now) => now.documents >= documents + 20);
    const grown = resident(server.pid) - before;
    t.ok(grown < 60e6, `what is not read is held once: ${grown} bytes more`);
    await Promise.all(readers.map((reader) => reader.destroy()));
    await Promise.all([whole, delta, many, stream].map(({ wire }) => wire.destroy()));
    await stalled.destroy();
    await server.stop();
  });
}
