import { once } from 'node:events';
import net from 'node:net';

import { resetSocket } from './reset-socket.js';

/**
 * A proxy of bytes in front of a server, which breaks what a network breaks: it loses answers, cuts
 * them in their middle, resets, and lets a reader stall. The server behind may change.
 *
 * @param {{teardown: (end: () => unknown) => void}} t
 * @param {object} how
 * @param {import('../fuzz/random.js').Random} how.random
 * @param {() => number} how.port of the server behind, now
 * @returns {Promise<{port: number, faults: boolean, counts: object, cut: () => void}>} `faults` may be
 *     set to false; `counts` by the name of what was done; `cut` ends every connection
 */
export async function startFaultyProxy(t, { random, port }) {
  const sockets = new Set();
  const counts = { passed: 0, lost: 0, cut: 0, stalled: 0, reset: 0 };
  const proxy = { port: 0, faults: true, counts, cut };

  function cut() {
    for (const socket of sockets) socket.destroy();
  }

  /** What is to happen to this piece of an answer. */
  const fate = () => {
    if (!proxy.faults || !random.oneIn(4)) return 'passed';
    return random.pick(['lost', 'cut', 'stalled', 'reset']);
  };

  const pass = {
    passed: (client, bytes) => client.write(bytes),
    lost: (client) => client.destroy(),
    cut: (client, bytes) => client.end(bytes.subarray(0, random.below(bytes.length))),
    reset: resetSocket,
    stalled: (client, bytes, behind) => {
      behind.pause();
      setTimeout(() => {
        if (!client.destroyed) client.write(bytes);
        behind.resume();
      }, random.below(300));
    }
  };

  const server = net.createServer((client) => {
    const behind = net.connect(port(), '127.0.0.1');
    for (const [one, other] of [
      [client, behind],
      [behind, client]
    ]) {
      sockets.add(one);
      one.on('error', () => {}); // `close` follows
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    client.on('data', (bytes) => behind.write(bytes));
    behind.on('data', (bytes) => {
      const what = fate();
      counts[what] += 1;
      pass[what](client, bytes, behind);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    cut();
  });
  proxy.port = server.address().port;
  return proxy;
}
