import http from 'node:http';
import net from 'node:net';

import { listening } from './addresses.js';
import { resetSocket } from './http.js';

/**
 * Starts a proxy in front of a server, which plants faults that a client must notice.
 *
 * @param {import('tap').Test} t
 * @param {number} port the server's port
 * @param {(answer: object, path: string) => void} [tamper] may change a poll's answer
 * @returns {Promise<{port: number, cut: () => void}>} `cut` breaks every connection through it
 */
export async function startProxy(t, port, tamper = () => {}) {
  const agent = new http.Agent({ keepAlive: true });
  const proxy = http.createServer((request, response) => {
    const { method, url, headers } = request;
    const forwarded = http.request({ host: '127.0.0.1', port, method, path: url, headers, agent });
    forwarded.on('response', async (answer) => {
      const body = change(url, Buffer.concat(await answer.toArray()).toString(), tamper);
      const length = answer.statusCode === 204 ? {} : { 'content-length': Buffer.byteLength(body) };
      response.writeHead(answer.statusCode, { ...answer.headers, ...length });
      response.end(body);
    });
    forwarded.on('error', () => response.destroy());
    response.on('close', () => forwarded.destroy());
    request.pipe(forwarded);
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

/** The random faults of a piece of an answer. */
const FAULTS = {
  lost: ({ client }) => client.destroy(),
  cut: ({ client, bytes, random }) => client.end(bytes.subarray(0, random.below(bytes.length))),
  reset: ({ client }) => resetSocket(client),
  stalled: ({ client, server, bytes, random }) => {
    server.pause();
    setTimeout(() => {
      if (!client.destroyed) client.write(bytes);
      server.resume();
    }, random.below(300));
  }
};

/**
 * A TCP proxy with network faults: it cuts, delays, loses, resets, and stalls connections.
 *
 *   client ──▶ FaultProxy ──▶ server      `target` may change when the server restarts
 */
export class FaultProxy {
  #sockets = new Set();
  #swallowed = [];
  #random;

  /** Delay of answers, in milliseconds. */
  delay = 0;
  /** Whether pieces of answers meet random faults. */
  faults;
  /** Number of pieces by fate. */
  counts = { passed: 0, lost: 0, cut: 0, reset: 0, stalled: 0 };

  /**
   * @param {{teardown: (end: () => unknown) => void}} t
   * @param {number} target the server's port at first
   * @param {import('../fuzz/random.js').Random} [random] source of random faults; none without it
   * @returns {Promise<FaultProxy>} with its `port` and `url`
   */
  static async start(t, target, random) {
    const proxy = Object.assign(new FaultProxy(), { target, faults: random !== undefined });
    proxy.#random = random;
    t.teardown(() => proxy.cut());
    const server = net.createServer((client) => proxy.#accept(client));
    proxy.port = await listening(t, server);
    proxy.url = `http://127.0.0.1:${proxy.port}`;
    return proxy;
  }

  /** Resets all connections. */
  cut() {
    for (const socket of this.#sockets) resetSocket(socket);
  }

  /** Drops the next answer to a request whose first line matches, and resets its connection. */
  swallow(request) {
    this.#swallowed.push(request);
  }

  #accept(client) {
    const server = net.connect(this.target, '127.0.0.1');
    for (const [one, other] of [
      [client, server],
      [server, client]
    ]) {
      this.#sockets.add(one);
      one.on('error', () => {}); // `close` follows
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    let line = '';
    client.on('data', (bytes) => {
      line = /^(GET|POST) \S+/.exec(bytes.toString('latin1'))?.[0] ?? line;
      server.write(bytes);
    });
    server.on('data', (bytes) => {
      const at = this.#swallowed.findIndex((request) => request.test(line));
      if (at >= 0) {
        this.#swallowed.splice(at, 1);
        for (const socket of [client, server]) resetSocket(socket);
        return;
      }
      const fault = this.#pickFault();
      this.counts[fault] += 1;
      if (fault !== 'passed') FAULTS[fault]({ client, server, bytes, random: this.#random });
      else if (this.delay > 0) setTimeout(() => client.write(bytes), this.delay);
      else client.write(bytes);
    });
  }

  #pickFault() {
    if (!this.faults || !this.#random.oneIn(4)) return 'passed';
    return this.#random.pick(Object.keys(FAULTS));
  }
}
