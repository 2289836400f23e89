import http from 'node:http';
import https from 'node:https';

import { listening } from './addresses.js';
import { Held } from './client-vectors.js';
import { resetSocket } from './http.js';

/**
 * A server whose answers the test writes: for answers that the real server sends rarely or never.
 */
export class Stub {
  #waiting = [];

  /** Requests so far: {method, path, query, headers, at}, `at` in milliseconds. */
  requests = [];

  /**
   * @param {import('tap').Test} t
   * @param {object} [tls] TLS options; without them the server speaks plain HTTP
   */
  static async start(t, tls) {
    const stub = new Stub();
    const onRequest = (request, response) => stub.#onRequest(request, response);
    const server = tls ? https.createServer(tls, onRequest) : http.createServer(onRequest);
    stub.url = `http${tls ? 's' : ''}://127.0.0.1:${await listening(t, server)}`;
    return stub;
  }

  /**
   * Waits for the next request whose path matches. The result has the functions that answer it.
   *
   * @returns {Promise<{path: string, query: URLSearchParams, body: string, at: number,
   *     cut: () => void, answer: (status: number, body?: object | string, headers?: object) => void}>}
   */
  next(path) {
    return new Promise((resolve) => {
      const early = this.requests.find((request) => !request.isClaimed && path.test(request.path));
      if (early) {
        early.isClaimed = true;
        resolve(early);
      } else {
        this.#waiting.push({ path, resolve });
      }
    });
  }

  /** Answers every request to a path with the same answer. */
  async always(path, ...answer) {
    for (;;) (await this.next(path)).answer(...answer);
  }

  /** Answers the next join. */
  async join(id) {
    const request = await this.next(/^\/join$/);
    request.answer(201, { id, hold: 120, lease: 30, maxSprite: 16384 });
    return request;
  }

  async #onRequest(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { pathname, searchParams } = new URL(request.url, 'http://stub');
    const exchange = {
      method: request.method,
      path: pathname,
      query: searchParams,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
      at: performance.now(),
      isClaimed: false,
      cut: () => resetSocket(request.socket),
      answer(status, body = '', headers = {}) {
        const text = typeof body === 'string' ? body : JSON.stringify(body);
        response.writeHead(status, { 'content-length': Buffer.byteLength(text), ...headers });
        response.end(text);
      }
    };
    this.requests.push(exchange);
    const at = this.#waiting.findIndex(({ path }) => path.test(pathname));
    if (at < 0) return;
    exchange.isClaimed = true;
    this.#waiting.splice(at, 1)[0].resolve(exchange);
  }
}

/** Returns a problem of the wire contract, a body for Stub's `answer`. */
export const problem = (name) => ({ type: `urn:sprites:${name}`, title: name, detail: name });

/** A second host name of the same server, which stands for another server of the world. */
const OTHER_HOST = 'localhost';

/**
 * A server that answers each route from its list, in order; the last answer repeats. Each answer closes its connection:
 * curl resends a request by itself when a kept connection turns out dead.
 */
export class Script {
  #answers;
  #requests = [];
  #held = new Held((route) => this.requests.filter((one) => one.route === route).length);

  static async start(t, answers) {
    const script = new Script();
    script.#answers = new Map(Object.entries(answers).map(([route, list]) => [route, [...list]]));
    const server = http.createServer((request, response) => script.#onRequest(request, response));
    script.url = `http://127.0.0.1:${await listening(t, server)}`;
    return script;
  }

  /** Those that have come whole so far, as a stage of the vectors has them. */
  get requests() {
    return this.#requests.filter(({ isWhole }) => isWhole);
  }

  /** Returns a Location header: this URL at the server `home` or `elsewhere`, or any other text as it is. */
  #location(location, { url }) {
    if (location === undefined) return {};
    const there = { home: this.url, elsewhere: this.url.replace('127.0.0.1', OTHER_HOST) }[
      location
    ];
    return { location: there ? there + url : location };
  }

  #onRequest(request, response) {
    const { pathname, search } = new URL(request.url, 'http://script');
    const [, route, ...rest] = pathname.split('/');
    const at = request.headers.host.startsWith(OTHER_HOST) ? '@' : '';
    const one = {
      ...{ method: request.method, route, target: at + rest.join('/') + search },
      grant: request.headers.authorization?.replace('Bearer ', '') ?? null,
      ...{ body: '', at: performance.now(), isWhole: false }
    };
    this.#requests.push(one);
    const list = this.#answers.get(route);
    const answer = list.length > 1 ? list.shift() : list[0];
    request.on('data', (chunk) => (one.body += chunk));
    request.on('error', () => {}); // it was given up, or reset
    // Only once it was read whole: of a throw whose body was not sent, a client knows that the
    // server has not taken it.
    request.on('end', async () => {
      one.isWhole = true;
      this.#held.look();
      await this.#held.until(answer.after);
      if (answer === 'reset' || answer.reset) resetSocket(request.socket);
      else if (answer !== 'hang') this.#answer(answer, request, response);
    });
  }

  #answer({ status, headers, body, location, half }, request, response) {
    for (const entry of body?.sprites ?? []) entry.sprite.id ??= `s${entry.seq}`;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const more = half && { 'content-length': Buffer.byteLength(text) + 999 };
    const all = { ...headers, ...this.#location(location, request), ...more };
    response.writeHead(status, { ...all, connection: 'close' });
    response.end(status === 204 ? undefined : text);
  }
}
