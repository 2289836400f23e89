import { once } from 'node:events';
import http from 'node:http';

/**
 * A server that says what a test tells it to: for answers that the real one gives only in rare
 * moments, or never.
 */
export class Stub {
  #server;
  #waiting = [];

  /** Requests so far: {method, path, query, headers, at}, `at` in milliseconds. */
  requests = [];

  static async start(t) {
    const stub = new Stub();
    stub.#server = http.createServer((request, response) => stub.#onRequest(request, response));
    stub.#server.listen(0, '127.0.0.1');
    await once(stub.#server, 'listening');
    stub.url = `http://127.0.0.1:${stub.#server.address().port}`;
    t.teardown(() => {
      stub.#server.close();
      stub.#server.closeAllConnections();
    });
    return stub;
  }

  /**
   * The next request to a path that matches, with a way to answer it.
   *
   * @returns {Promise<{path: string, query: URLSearchParams, body: string, at: number,
   *     answer: (status: number, body?: object | string, headers?: object) => void}>}
   */
  next(path) {
    return new Promise((resolve) => {
      const early = this.requests.find((request) => !request.taken && path.test(request.path));
      if (early) {
        early.taken = true;
        resolve(early);
      } else {
        this.#waiting.push({ path, resolve });
      }
    });
  }

  /** Answers the next join. */
  async join(id, more = {}) {
    const request = await this.next(/^\/join$/);
    request.answer(201, { id, hold: 120, lease: 30, maxSprite: 16384, ...more });
    return request;
  }

  async #onRequest(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { pathname, searchParams } = new URL(request.url, 'http://stub');
    const seen = {
      method: request.method,
      path: pathname,
      query: searchParams,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
      at: performance.now(),
      taken: false,
      answer(status, body = '', headers = {}) {
        const text = typeof body === 'string' ? body : JSON.stringify(body);
        response.writeHead(status, { 'content-length': Buffer.byteLength(text), ...headers });
        response.end(text);
      }
    };
    this.requests.push(seen);
    const at = this.#waiting.findIndex(({ path }) => path.test(pathname));
    if (at < 0) return;
    seen.taken = true;
    this.#waiting.splice(at, 1)[0].resolve(seen);
  }
}

/** A problem of the wire contract, as Stub.answer takes it. */
export const problem = (name, detail = name) => ({
  type: `urn:sprites:${name}`,
  title: name,
  detail
});
