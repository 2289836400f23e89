import { once } from 'node:events';
import net from 'node:net';

import { resetSocket } from './reset-socket.js';

/**
 * A proxy for bytes that does to connections what networks do: cuts, delays, swallows, refuses.
 *
 *   client ──▶ FaultProxy ──▶ server      `target` may change: the server was started anew
 */
export class FaultProxy {
  #server;
  #pairs = new Set();
  #swallow = [];

  /** Milliseconds that answers are held back, and whether connections are closed at once. */
  delay = 0;
  refusing = false;
  /** Requests seen, as their first lines. */
  requests = [];

  static async start(t, target) {
    const proxy = new FaultProxy();
    proxy.target = target;
    proxy.#server = net.createServer((socket) => proxy.#accept(socket));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    proxy.port = proxy.#server.address().port;
    proxy.url = `http://127.0.0.1:${proxy.port}`;
    t.teardown(() => {
      proxy.#server.close();
      proxy.cut();
    });
    return proxy;
  }

  /** Resets every connection there is. */
  cut() {
    for (const pair of this.#pairs) {
      for (const socket of pair) resetSocket(socket);
    }
  }

  /**
   * The next answer to a request whose first line matches is lost: the server's bytes arrive here,
   * and then the connection is reset.
   *
   * @returns {Promise<string>} the request's first line, once that has happened
   */
  swallow(request) {
    return new Promise((resolve) => {
      this.#swallow.push({ request, resolve });
    });
  }

  #accept(client) {
    client.on('error', () => {}); // cut by either side: the close below follows
    if (this.refusing) {
      resetSocket(client);
      return;
    }
    const server = net.connect(this.target, '127.0.0.1');
    server.on('error', () => {});
    const pair = [client, server];
    this.#pairs.add(pair);
    let line = '';
    client.on('data', (chunk) => {
      const first = /^(GET|POST) \S+/.exec(chunk.toString('latin1'));
      if (first) {
        line = first[0];
        this.requests.push(line);
      }
      server.write(chunk);
    });
    server.on('data', (chunk) => {
      const at = this.#swallow.findIndex(({ request }) => request.test(line));
      if (at >= 0) {
        const [{ resolve }] = this.#swallow.splice(at, 1);
        for (const socket of pair) resetSocket(socket);
        resolve(line);
      } else if (this.delay > 0) {
        setTimeout(() => client.write(chunk), this.delay);
      } else {
        client.write(chunk);
      }
    });
    for (const socket of pair) {
      socket.on('close', () => {
        this.#pairs.delete(pair);
        client.destroy();
        server.destroy();
      });
    }
  }
}
