import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';

/**
 * An HTTP client over sockets. It sends any bytes, and reads answers strictly.
 */

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Record<string, string>} headers by lower-case name; a repeated name is an error
 * @property {Buffer} bytes the body
 * @property {any} body the parsed body, when it is JSON
 */

const STATUS_LINE = /^HTTP\/1\.1 ([1-5][0-9]{2}) [\x20-\x7e]*$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\t]*?)[ \t]*$/;

/** Longest wait for the server, in milliseconds; then the test fails. Far above any hold in the tests. */
const READ_TIMEOUT = 60_000;

/** One connection. */
export class Wire {
  #socket;
  #received = new Received();
  #wake = () => {};
  #ended = false;
  #closed;
  /** The error that ended the connection, mostly a reset. */
  error = null;

  /**
   * @param {import('node:net').Socket} socket a connected socket
   */
  constructor(socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      this.#received.add(chunk);
      this.#wake();
    });
    socket.on('end', () => {
      this.#ended = true;
      this.#wake();
    });
    socket.on('error', (error) => {
      this.error = error;
    });
    this.#closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#ended = true;
        this.#wake();
        resolve();
      });
    });
  }

  /**
   * @param {number} port
   * @param {string} [host]
   * @param {string} [localAddress] the client's address: any of 127.0.0.0/8
   * @returns {Promise<Wire>}
   */
  static open(port, host = '127.0.0.1', localAddress = undefined) {
    const socket = connect({ port, host, localAddress, allowHalfOpen: true });
    return Wire.#connected(socket, 'connect');
  }

  /** Opens a TLS connection. Accepts any certificate. */
  static openTls(port, host = '127.0.0.1', localAddress = undefined) {
    const how = { port, host, localAddress, allowHalfOpen: true, rejectUnauthorized: false };
    return Wire.#connected(connectTls(how), 'secureConnect');
  }

  static #connected(socket, event) {
    return new Promise((resolve, reject) => {
      socket.once('error', reject);
      socket.once(event, () => {
        socket.off('error', reject);
        resolve(new Wire(socket));
      });
    });
  }

  /** @param {string | Buffer} bytes each character of a string is one byte */
  send(bytes) {
    this.#socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    return this;
  }

  /** Sends each byte in its own segment. */
  async sendByteByByte(bytes) {
    for (const byte of Buffer.from(bytes, 'latin1')) {
      await new Promise((resolve) => {
        this.#socket.write(Uint8Array.of(byte), () => setImmediate(resolve));
      });
    }
    return this;
  }

  /** Ends the sending half of the connection. Reading goes on. */
  endSending() {
    this.#socket.end();
    return this;
  }

  /** Stops reading: the server's bytes stay in the kernel. */
  pause() {
    this.#socket.pause();
  }

  resume() {
    this.#socket.resume();
  }

  /** Closes the connection at once. */
  destroy() {
    this.#socket.destroy();
    return this.#closed;
  }

  /** Closes the connection by a reset. */
  reset() {
    resetSocket(this.#socket);
    return this.#closed;
  }

  /** Resolves when the server has ended its half, or the connection is closed. */
  async closed() {
    while (!this.#ended) await this.#nextEvent();
  }

  /** Ends the client's half, and resolves when both halves are closed. `error` is set after a reset. */
  endAndWait() {
    this.#socket.end();
    return this.#closed;
  }

  /** Received bytes that no answer has consumed yet. */
  get unreadBytes() {
    return this.#received.bytes;
  }

  #nextEvent() {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('nothing comes, and no end')), READ_TIMEOUT);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Waits for bytes until `holds` returns true. Fails when the connection ends first. */
  async #readUntil(holds) {
    while (!holds()) {
      if (this.#ended) {
        const after = this.unreadBytes.subarray(0, 1000).toString('latin1');
        const why = this.error?.code ?? 'cleanly';
        assert.fail(`the connection ended (${why}, after ${JSON.stringify(after)})`);
      }
      await this.#nextEvent();
    }
  }

  async #consumeFirst(length) {
    await this.#readUntil(() => this.#received.length >= length);
    return this.#received.consume(length);
  }

  /** Consumes the bytes up to the end of `mark`. */
  async #consumeTo(mark) {
    let at;
    await this.#readUntil(() => (at = this.unreadBytes.indexOf(mark)) >= 0);
    return this.#received.consume(at + mark.length);
  }

  /** Reads the head of an answer whose body is chunked. @returns {Promise<string>} */
  async readHead() {
    return (await this.#consumeTo('\r\n\r\n')).toString('latin1');
  }

  /** Reads one chunk of a chunked body; the last chunk is empty. @returns {Promise<Buffer>} */
  async readChunk() {
    const line = (await this.#consumeTo('\r\n')).toString('latin1');
    assert.match(line, /^[0-9a-f]+\r\n$/i, 'the length of a chunk');
    const length = parseInt(line, 16);
    const chunk = await this.#consumeFirst(length + 2);
    assert.equal(chunk.subarray(length).toString('latin1'), '\r\n', 'the end of a chunk');
    return chunk.subarray(0, length);
  }

  /**
   * Reads the next answer. Fails on a malformed one.
   *
   * @param {{head?: boolean}} [options] `head`: the answer is to a HEAD request, and has no body
   * @returns {Promise<Answer>}
   */
  async read({ head = false } = {}) {
    const [first, ...lines] = (await this.readHead()).slice(0, -4).split('\r\n');
    const [, code] = STATUS_LINE.exec(first) ?? assert.fail(`no status line: ${first}`);
    const status = Number(code);
    const headers = {};
    for (const line of lines) {
      const [, name, value] = FIELD.exec(line) ?? assert.fail(`no header field: ${line}`);
      const key = name.toLowerCase();
      assert.ok(!(key in headers), `${name} is there twice`);
      headers[key] = value;
    }
    assert.ok(!('transfer-encoding' in headers), 'an answer is never chunked');
    let length = 0;
    if (status < 200 || status === 204 || status === 304) {
      assert.ok(!('content-length' in headers), `a ${status} has no Content-Length`);
    } else if (!head || headers['content-length'] || !/Accept-Encoding/.test(headers.vary)) {
      assert.match(headers['content-length'] ?? 'none', /^(0|[1-9][0-9]*)$/, 'Content-Length');
      length = head ? 0 : Number(headers['content-length']);
    }
    const bytes = await this.#consumeFirst(length);
    const answer = { status, headers, bytes };
    const isJson = /^application\/(problem\+)?json$/.test(headers['content-type']);
    if (isJson && length > 0 && headers['content-encoding'] === undefined) {
      answer.body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    }
    return answer;
  }
}

/** @returns {Promise<Buffer>} the first bytes of a TLS client, as OpenSSL sends them */
export function clientHello() {
  return new Promise((resolve) => {
    connectTls({ socket: new Duplex({ read() {}, write: resolve }) });
  });
}

/**
 * Returns a request with the headers that most clients send.
 *
 * @param {string} method
 * @param {string} target
 * @param {{headers?: Record<string, string>, body?: string | Buffer}} [more] a body gets its
 *     Content-Length; an undefined header is left out
 * @returns {Buffer}
 */
export function request(method, target, { headers = {}, body } = {}) {
  const bytes = body === undefined ? null : Buffer.from(body);
  const fields = {
    Host: 'localhost',
    ...(bytes ? { 'Content-Type': 'application/json', 'Content-Length': bytes.length } : {}),
    ...(bytes === null && method === 'POST' ? { 'Content-Length': 0 } : {}),
    ...headers
  };
  const lines = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1');
  return bytes ? Buffer.concat([head, bytes]) : head;
}

/** A keep-alive connection that asks one thing at a time, and is opened anew whenever it has failed. */
export class ReconnectingClient {
  #open;
  #timeout;
  #wire = null;
  /** The request that is under way. */
  #currentRequest = null;

  /**
   * @param {() => Promise<Wire>} open
   * @param {number} [timeout] milliseconds that an answer may take: then the connection is taken for dead
   */
  constructor(open, timeout = READ_TIMEOUT) {
    this.#open = open;
    this.#timeout = timeout;
  }

  /**
   * @param {string} method
   * @param {string} target
   * @param {Parameters<typeof request>[2]} [more]
   * @param {() => void} [beforeSending] is called just before it is sent, which it may not be
   * @returns {Promise<Answer>}
   * @throws {Error} where there is none: it is unknown what became of the request
   */
  async ask(method, target, more, beforeSending = () => {}) {
    const thisRequest = {};
    this.#currentRequest = thisRequest;
    const answered = (async () => {
      const wire = this.#wire ?? (await this.#open());
      if (this.#currentRequest !== thisRequest) {
        wire.destroy();
        assert.fail('the connection was closed');
      }
      this.#wire = wire;
      beforeSending();
      return wire.send(request(method, target, more)).read();
    })();
    answered.catch(() => {});
    let timer;
    const timeout = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), this.#timeout);
    });
    try {
      return await Promise.race([answered, timeout]);
    } catch (error) {
      this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whatever it waits for does not come. */
  close() {
    this.#currentRequest = null;
    this.#wire?.destroy();
    this.#wire = null;
  }
}

/** What a connection has brought and was not taken yet: its pieces are put together when they are looked at. */
class Received {
  #pieces = [];
  length = 0;

  get bytes() {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0];
  }

  add(piece) {
    this.#pieces.push(piece);
    this.length += piece.length;
  }

  /** @returns {Buffer} the first `length` bytes, which must have come */
  consume(length) {
    const all = this.bytes;
    this.#pieces = [all.subarray(length)];
    this.length -= length;
    return all.subarray(0, length);
  }
}

/**
 * Ends a TCP connection by a reset, at any moment.
 *
 * Tests never call Node's `resetAndDestroy` (eslint.config.js forbids it). While an `end` of the same socket is
 * pending, it closes nothing: libuv does not reset a handle whose shutdown is pending (`uv_tcp_close_reset` returns
 * UV_EINVAL), but Node counts the handle as closed (`TCPWrap::Reset`). The process then never exits: it waits for that
 * handle (`Environment::CleanupHandles`) at 100% CPU. Node 20.20, 22.23, 24.21 and 26.10 have this bug:
 *
 *     socket.end();
 *     socket.resetAndDestroy(); // 'error' EINVAL, never 'close', and the process does not end
 *
 * A shutdown is pending from the end of the last write until the loop's next turn. The peer then sees no difference
 * between a reset and a close: it gets the FIN first.
 *
 * @param {import('node:net').Socket} socket no other stream, such as TLS, may end it
 */
export function resetSocket(socket) {
  const { connecting, writableEnded, writableFinished, writableLength } = socket;
  const isShuttingDown = writableEnded && !writableFinished && writableLength === 0;
  if (connecting) socket.once('connect', () => resetSocket(socket));
  else if (isShuttingDown) socket.destroy();
  // eslint-disable-next-line no-restricted-properties
  else socket.resetAndDestroy();
}
