import t from 'tap';

import { useOf } from '../../lib/swarm/server-watch.js';
import { EventStream, get, durableFeedOptions, put, tokenFile } from '../support/feeds.js';
import { request } from '../support/http.js';
import { startServer, startWithAllPorts, DEFAULT_WORKERS } from '../support/server.js';

/**
 * Readers that stop reading: the server copies nothing for them, and the memory that they hold is bounded.
 */

const MEGABYTE = 2 ** 20;

/** Bytes of a value: more than the kernel buffers for a reader that has stopped. */
const SIZE = 8 * MEGABYTE;

const options = {
  'publish-token-file': tokenFile(t),
  'feed-threads': 1,
  'feed-bytes': '10M',
  'feed-memory': '40M',
  'write-time': 60
};

/** Number of slow readers. */
const READERS = 16;

const value = (version) => JSON.stringify(`${version} ${'x'.repeat(SIZE)}`);

/** Asks for the feed, and does not read the answer. */
function requestUnread(wire, headers = {}) {
  wire.pause();
  wire.send(request('GET', '/feed/a', { headers }));
  return wire;
}

for (const way of ['main', 'tls']) {
  t.test(
    `a thousand bytes for each slow reader, one value for all of them: by ${way}`,
    async (t) => {
      const { server, ways } = await startWithAllPorts(t, { ...options, workers: DEFAULT_WORKERS });
      await put(server, 'a', value(1));
      const before = await server.status();
      const memory = useOf(server.pid).memory;
      const wires = [];
      for (let i = 0; i < READERS; i += 1) wires.push(requestUnread(await ways[way].open()));
      await server.until(({ documents }) => documents === before.documents + READERS);
      // Some readers may get their whole answer: the kernel's buffers grow.
      const slow = await server.until(({ heldBytes }) => heldBytes > before.heldBytes);
      t.ok(slow.heldBytes - before.heldBytes < READERS * 1000, `${slow.heldBytes} bytes held`);
      t.ok(slow.feedHeld < MEGABYTE, 'none of them but the value itself, which stands');
      const grown = useOf(server.pid).memory - memory;
      t.ok(grown < (READERS / 2) * SIZE, `no copy for each: ${grown} bytes more`);
      await put(server, 'a', value(2));
      const { feedHeld } = await server.status();
      t.ok(feedHeld < SIZE + MEGABYTE, `one old version, once: ${feedHeld}`);
      for (const wire of wires) wire.resume();
      for (const wire of wires) {
        const { body } = await wire.read();
        t.ok(
          body.value.startsWith('1 ') && body.value.length === SIZE + 2,
          'and each gets all of it'
        );
      }
      await server.until((status) => status.feedHeld < MEGABYTE);
      await Promise.all(wires.map((wire) => wire.destroy()));
      await server.stop();
    }
  );
}

t.test('an event stream that is not read is ended, by TLS too', async (t) => {
  const { server, ways } = await startWithAllPorts(t, {
    ...options,
    'write-time': 4,
    workers: DEFAULT_WORKERS
  });
  await put(server, 'a', value(1));
  const stalled = requestUnread(await ways.tls.open(), { Accept: 'text/event-stream' });
  const reader = await EventStream.open(server, 'a');
  t.equal((await reader.news()).data.value[0], '1');
  await server.until(({ documents }) => documents === 2);
  await server.until(({ watching }) => watching === 1);
  stalled.resume();
  await t.rejects(stalled.read(), 'in the middle of an event');
  await put(server, 'a', '"2"');
  t.equal((await reader.news()).data.value, '2', 'and a reader goes on');
  await reader.wire.destroy();
  await server.stop();
});

t.test(
  'a client that never reads on, or never sends the rest, keeps no server from its end',
  async (t) => {
    const durableOptions = { ...options, ...durableFeedOptions(t), drain: 0 };
    const server = await startServer(t, { options: durableOptions });
    await put(server, 'a', value(1));
    requestUnread(await server.wire(), { Accept: 'text/event-stream' });
    await server.until(({ documents }) => documents === 1);
    const endless = await server.wire();
    endless.send('POST /join HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{');
    const begin = performance.now();
    await server.stop();
    const seconds = (performance.now() - begin) / 1000;
    // The kernel ends a connection after 30 s without reading.
    t.ok(seconds < 20, `${seconds} s`);
    const next = await startServer(t, { options: durableOptions });
    t.ok((await get(next, 'a')).body.value.startsWith('1 '), 'what was published is there');
    await next.stop();
  }
);
