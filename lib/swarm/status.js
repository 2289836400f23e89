import http from 'node:http';
import https from 'node:https';
import { Readable } from 'node:stream';

import { tlsOf } from './target.js';

/** In which an answer has to be there whole: one that drips has no end. */
const TIMEOUT_MS = 10_000;
const LONGEST = 1 << 20;

/** Names of figures that may be shown on a terminal. */
const NAME = /^[A-Za-z]\w{0,63}$/;

/** The figures that a run reckons with. */
const FIGURES = new Set([
  ...['clients', 'parked', 'longestStallMs'],
  ...['thrown', 'acked', 'waiting', 'lost', 'crossedIn', 'crossedOut']
]);

/** Reads GET /status of the server under load, and /metrics where there are any, over one connection. */
export class StatusReader {
  #options;
  #protocol;
  #agent;
  #isClosed = false;

  /**
   * @param {object} target
   * @param {string} target.address numeric
   * @param {string} target.host as a URL writes it
   * @param {number} target.port
   * @param {?object} [target.tls] for an https server: options of node:tls
   */
  constructor({ address, host, port, tls = null }) {
    this.#protocol = tls ? https : http;
    this.#agent = new this.#protocol.Agent({ keepAlive: true, maxSockets: 1 });
    this.#options = {
      host: address,
      port,
      agent: this.#agent,
      headers: { Host: `${host}:${port}` },
      ...tls
    };
  }

  /**
   * @param {number} [patience] milliseconds, up to those that any answer has
   * @returns {Promise<?object>} the document, of whose figures none is anything but a number from 0 up; null when
   *     the server answers otherwise
   * @throws {Error} when nothing answers
   */
  async read(patience) {
    return parse(await this.#get('/status', patience));
  }

  #get(path, patience = TIMEOUT_MS) {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new Error('it is closed');
      const signal = AbortSignal.timeout(Math.ceil(Math.min(patience, TIMEOUT_MS)));
      const request = this.#protocol.get({ ...this.#options, path, signal }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (piece) => {
          text += piece;
          if (text.length > LONGEST) request.destroy(new Error(`an endless ${path}`));
        });
        response.on('end', () => resolve({ status: response.statusCode, text }));
        response.on('error', reject);
      });
      request.on('error', (error) => {
        // It was kept, and the server has closed it in the moment of this question.
        if (request.reusedSocket && error.code === 'ECONNRESET') resolve(this.#get(path, patience));
        else reject(error.name === 'AbortError' ? new Error('no answer in time') : error);
      });
      // A server that ends in mid-answer has Node's client say neither 'end' nor 'error' here.
      request.on('close', () => reject(new Error('the connection was closed')));
    });
  }

  /**
   * @returns {Promise<?{version: ?string, use: ?{cpu: number, memory: number}}>} of the server, by
   *     /metrics of an admin port: its version, seconds of CPU time, bytes resident; null when this is
   *     no admin port
   */
  async metrics() {
    // Without an answer the figures say that the server gave none.
    const answer = await this.#get('/metrics').catch(() => null);
    if (answer?.status !== 200) return null;
    const value = (name) =>
      Number(new RegExp(`^${name} ([0-9.e+]+)$`, 'm').exec(answer.text)?.[1] ?? NaN);
    const cpu = value('process_cpu_seconds_total');
    const memory = value('process_resident_memory_bytes');
    return {
      version: /^sprites_build_info\{version="([\w.+-]{1,40})"/m.exec(answer.text)?.[1] ?? null,
      use: Number.isNaN(cpu + memory) ? null : { cpu, memory }
    };
  }

  /** @returns {Promise<?object>} as read(), null too when nothing answers */
  tryRead() {
    return this.read().catch(() => null);
  }

  /** Whatever is asked, or was, has no answer. */
  close() {
    this.#isClosed = true;
    this.#agent.destroy();
  }
}

function parse({ status, text }) {
  if (status !== 200) return null;
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return null;
  const isTaken = ([name, value]) =>
    NAME.test(name) && (!FIGURES.has(name) || (Number.isFinite(value) && value >= 0));
  return Object.fromEntries(Object.entries(document).filter(isTaken));
}

/** Answers that have no body. */
const EMPTY = [204, 205, 304];

/**
 * A fetch that accepts the certificates that the command line says, and closes the connection of a request that is given up, whatever
 * that waits for: Node's own goes on connecting for ten seconds (nodejs/undici#4405), and keeps the process.
 *
 * @param {object} options of parse()
 * @returns {typeof globalThis.fetch}
 * @throws {import('../base/option-help.js').UsageError} when the authorities can't be read
 */
export function fetchBy(options) {
  const tls = tlsOf(options);
  const protocol = tls === null ? http : https;
  return (url, { method, headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const request = protocol.request(url, { method, headers, signal, ...tls }, (response) => {
        try {
          resolve(answerOf(response));
        } catch (error) {
          // A status or a header that no Response can have.
          reject(error);
          request.destroy();
        }
      });
      request.on('error', reject);
      // Of an answer that changes the protocol nothing else is said.
      request.on('close', () => reject(new Error('the connection was closed')));
      request.end(body);
    });
}

/** @returns {Response} */
function answerOf(response) {
  const { statusCode: status, headers } = response;
  const stream = EMPTY.includes(status) ? null : Readable.toWeb(response);
  if (stream === null) response.resume();
  return new Response(stream, { status, headers: Object.entries(headers) });
}
