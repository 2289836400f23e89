import http from 'node:http';
import net from 'node:net';

import { listening } from './addresses.js';
import { resetSocket } from './http.js';

/**
 * A proxy in front of a server, for planting the faults that a client must notice.
 *
 * @param {import('tap').Test} t
 * @param {number} port of the server behind
 * @param {(answer: object, path: string) => void} [tamper] may change a poll's answer on its way
 * @returns {Promise<{port: number, cut: () => void}>} `cut` breaks every connection through it
 */
export async function startProxy(t, port, tamper = () => {}) {
  const agent = new http.Agent({ keepAlive: true });
  const proxy = http.createServer((request, response) => {
    const { method, url, headers } = request;
    const onward = http.request({ host: '127.0.0.1', port, method, path: url, headers, agent });
    onward.on('response', async (answer) => {
      const body = change(url, Buffer.concat(await answer.toArray()).toString(), tamper);
      const length = answer.statusCode === 204 ? {} : { 'content-length': Buffer.byteLength(body) };
      response.writeHead(answer.statusCode, { ...answer.headers, ...length });
      response.end(body);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  });
  t.teardown(() => agent.destroy());
  return { port: await listening(t, proxy), cut: () => proxy.closeAllConnections() };
}

function change(path, body, tamper) {
  if (!path.startsWith('/poll/')) return body;
  const answer = JSON.parse(body);
  if (!answer.sprites) return body;
  tamper(answer, path);
  return JSON.stringify(answer);
}

/** Connects a client on to a server. The end of one is the other's; both are in `sockets` until then. */
function onward(client, port, sockets) {
  const server = net.connect(port, '127.0.0.1');
  for (const [one, other] of [
    [client, server],
    [server, client]
  ]) {
    sockets.add(one);
    one.on('error', () => {}); // `close` follows
    one.on('close', () => {
      sockets.delete(one);
      other.destroy();
    });
  }
  return server;
}

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
    const behind = onward(client, port(), sockets);
    client.on('data', (bytes) => behind.write(bytes));
    behind.on('data', (bytes) => {
      const what = fate();
      counts[what] += 1;
      pass[what](client, bytes, behind);
    });
  });
  t.teardown(cut);
  proxy.port = await listening(t, server);
  return proxy;
}

/**
 * A proxy for bytes that does to connections what networks do: cuts, delays, swallows, refuses.
 *
 *   client ──▶ FaultProxy ──▶ server      `target` may change: the server was started anew
 */
export class FaultProxy {
  #sockets = new Set();
  #swallow = [];

  /** Milliseconds that answers are held back, and whether connections are closed at once. */
  delay = 0;
  refusing = false;
  /** Requests seen, as their first lines. */
  requests = [];

  static async start(t, target) {
    const proxy = new FaultProxy();
    proxy.target = target;
    t.teardown(() => proxy.cut());
    const server = net.createServer((socket) => proxy.#accept(socket));
    proxy.port = await listening(t, server);
    proxy.url = `http://127.0.0.1:${proxy.port}`;
    return proxy;
  }

  /** Resets every connection there is. */
  cut() {
    for (const socket of this.#sockets) resetSocket(socket);
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
    if (this.refusing) {
      resetSocket(client.on('error', () => {}));
      return;
    }
    const server = onward(client, this.target, this.#sockets);
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
        for (const socket of [client, server]) resetSocket(socket);
        resolve(line);
      } else if (this.delay > 0) {
        setTimeout(() => client.write(chunk), this.delay);
      } else {
        client.write(chunk);
      }
    });
  }
}
