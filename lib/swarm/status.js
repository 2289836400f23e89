import http from 'node:http';
import https from 'node:https';
import { Readable } from 'node:stream';

import { tlsOf } from './target.js';

/** Timeout of a whole answer, in milliseconds: a slow stream of bytes does not extend it. */
const TIMEOUT_MS = 10_000;
const MAX_CHARACTERS = 1 << 20;

/** Names of figures that may be shown on a terminal. */
const FIGURE_NAME = /^[A-Za-z]\w{0,63}$/;

/** The figures that a run calculates with. */
const NUMERIC_FIGURES = new Set([
  ...['clients', 'parked', 'longestStallMs'],
  ...['thrown', 'acked', 'waiting', 'lost', 'crossedIn', 'crossedOut']
]);

/** Reads /status of the server under load, and /metrics of its admin port, over one connection. */
export class StatusReader {
  #options;
  #protocol;
  #agent;
  #isClosed = false;

  /**
   * @param {object} target
   * @param {string} target.address numeric address
   * @param {string} target.host host as in a URL
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
   * @param {number} [timeout] timeout in milliseconds, at most TIMEOUT_MS
   * @returns {Promise<?object>} the document: its NUMERIC_FIGURES are numbers from 0 up; null for any other answer
   * @throws {Error} when there is no answer
   */
  async read(timeout) {
    return parseStatus(await this.#get('/status', timeout));
  }

  #get(path, timeout = TIMEOUT_MS) {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new Error('it is closed');
      const signal = AbortSignal.timeout(Math.ceil(Math.min(timeout, TIMEOUT_MS)));
      const request = this.#protocol.get({ ...this.#options, path, signal }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (piece) => {
          text += piece;
          if (text.length > MAX_CHARACTERS) request.destroy(new Error(`an endless ${path}`));
        });
        response.on('end', () => resolve({ status: response.statusCode, text }));
        response.on('error', reject);
      });
      request.on('error', (error) => {
        // The server closed the kept-alive connection just as the request was sent: retry.
        if (request.reusedSocket && error.code === 'ECONNRESET') resolve(this.#get(path, timeout));
        else reject(error.name === 'AbortError' ? new Error('no answer in time') : error);
      });
      // When the server ends in mid-answer, Node's client emits neither 'end' nor 'error' here.
      request.on('close', () => reject(new Error('the connection was closed')));
    });
  }

  /**
   * @returns {Promise<?{version: ?string, use: ?{cpu: number, memory: number}}>} from /metrics of an admin port:
   *     the server's version, seconds of CPU time, resident bytes; null when this is no admin port
   */
  async metrics() {
    // No answer: the figures are unknown.
    const answer = await this.#get('/metrics').catch(() => null);
    if (answer?.status !== 200) return null;
    const readMetric = (name) =>
      Number(new RegExp(`^${name} ([0-9.e+]+)$`, 'm').exec(answer.text)?.[1] ?? NaN);
    const cpu = readMetric('process_cpu_seconds_total');
    const memory = readMetric('process_resident_memory_bytes');
    return {
      version: /^sprites_build_info\{version="([\w.+-]{1,40})"/m.exec(answer.text)?.[1] ?? null,
      use: Number.isNaN(cpu + memory) ? null : { cpu, memory }
    };
  }

  /** @returns {Promise<?object>} as read(), but null when there is no answer */
  tryRead() {
    return this.read().catch(() => null);
  }

  /** Closes the connection. Requests under way and later ones fail. */
  close() {
    this.#isClosed = true;
    this.#agent.destroy();
  }
}

function parseStatus({ status, text }) {
  if (status !== 200) return null;
  let document;
  try {
    document = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return null;
  const isAccepted = ([name, value]) =>
    FIGURE_NAME.test(name) &&
    (!NUMERIC_FIGURES.has(name) || (Number.isFinite(value) && value >= 0));
  return Object.fromEntries(Object.entries(document).filter(isAccepted));
}

/** Statuses of answers without a body. */
const BODILESS_STATUSES = [204, 205, 304];

/**
 * Returns a fetch that accepts the certificates of the command line. It closes the connection of an aborted request
 * at once: Node's own fetch goes on connecting for ten seconds (nodejs/undici#4405), and keeps the process alive.
 *
 * @param {object} options of parse()
 * @returns {typeof globalThis.fetch}
 * @throws {import('../base/option-help.js').UsageError} when the authorities can't be read
 */
export function createFetch(options) {
  const tls = tlsOf(options);
  const protocol = tls === null ? http : https;
  return (url, { method, headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const request = protocol.request(url, { method, headers, signal, ...tls }, (response) => {
        try {
          resolve(toFetchResponse(response));
        } catch (error) {
          // The constructor of Response refuses the status or a header.
          reject(error);
          request.destroy();
        }
      });
      request.on('error', reject);
      // After an answer that upgrades the protocol this is the only event.
      request.on('close', () => reject(new Error('the connection was closed')));
      request.end(body);
    });
}

/** @returns {Response} */
function toFetchResponse(response) {
  const { statusCode: status, headers } = response;
  const stream = BODILESS_STATUSES.includes(status) ? null : Readable.toWeb(response);
  if (stream === null) response.resume();
  return new Response(stream, { status, headers: Object.entries(headers) });
}
