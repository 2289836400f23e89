import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';

/**
 * A client of sockets and bytes: it sends whatever it is told to, and reads answers by the letter.
 */

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {Record<string, string>} headers by lower-case name; a name twice is an error
 * @property {Buffer} bytes the body
 * @property {any} body the same as JSON, when it is JSON
 */

const STATUS_LINE = /^HTTP\/1\.1 ([1-5][0-9]{2}) [\x20-\x7e]*$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\t]*?)[ \t]*$/;

/** Milliseconds after which waiting for the server is called a failure: far above any hold here. */
const PATIENCE = 60_000;

/** One connection. */
export class Wire {
  #socket;
  #received = new Received();
  #wake = () => {};
  #ended = false;
  #closed;
  /** The error that ended the connection, a reset mostly. */
  error = null;

  /**
   * @param {import('node:net').Socket} socket connected
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
   * @param {string} [localAddress] where it comes from: any of 127.0.0.0/8
   * @returns {Promise<Wire>}
   */
  static open(port, host = '127.0.0.1', localAddress = undefined) {
    const socket = connect({ port, host, localAddress, allowHalfOpen: true });
    return Wire.#connected(socket, 'connect');
  }

  /** The same inside of TLS, with any certificate. */
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

  /** @param {string | Buffer} bytes text is sent as it is, a byte a character */
  send(bytes) {
    this.#socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    return this;
  }

  /** Sends byte by byte, a segment each. */
  async sendByteByByte(bytes) {
    for (const byte of Buffer.from(bytes, 'latin1')) {
      await new Promise((resolve) => {
        this.#socket.write(Uint8Array.of(byte), () => setImmediate(resolve));
      });
    }
    return this;
  }

  /** Says that no more will be sent, and goes on reading. */
  half() {
    this.#socket.end();
    return this;
  }

  /** Stops reading: what the server writes stays in the kernel. */
  pause() {
    this.#socket.pause();
  }

  resume() {
    this.#socket.resume();
  }

  /** Closes the connection without a word. */
  destroy() {
    this.#socket.destroy();
    return this.#closed;
  }

  /** Closes it by a reset. */
  reset() {
    resetSocket(this.#socket);
    return this.#closed;
  }

  /** Resolves when the connection is closed or the server has ended it. */
  async closed() {
    while (!this.#ended) await this.#more();
  }

  /** Ends its own half, and resolves when both are closed: `error` says whether by a reset. */
  closedByBoth() {
    this.#socket.end();
    return this.#closed;
  }

  /** Bytes received and not yet read as an answer. */
  get leftOver() {
    return this.#received.bytes;
  }

  #more() {
    return new Promise((resolve, reject) => {
      const patience = setTimeout(() => reject(new Error('nothing comes, and no end')), PATIENCE);
      this.#wake = () => {
        clearTimeout(patience);
        resolve();
      };
    });
  }

  /** Waits until something holds of what has come. */
  async #until(holds) {
    while (!holds()) {
      if (this.#ended) {
        const after = this.leftOver.subarray(0, 1000).toString('latin1');
        const why = this.error?.code ?? 'cleanly';
        assert.fail(`the connection ended (${why}, after ${JSON.stringify(after)})`);
      }
      await this.#more();
    }
  }

  async #takeFirst(length) {
    await this.#until(() => this.#received.length >= length);
    return this.#received.take(length);
  }

  /** Takes the bytes up to and with `mark`. */
  async #takeTo(mark) {
    let at;
    await this.#until(() => (at = this.leftOver.indexOf(mark)) >= 0);
    return this.#received.take(at + mark.length);
  }

  /** Reads the head of an answer whose body is chunked. @returns {Promise<string>} */
  async readHead() {
    return (await this.#takeTo('\r\n\r\n')).toString('latin1');
  }

  /** Reads one chunk; the last one is empty. @returns {Promise<Buffer>} */
  async readChunk() {
    const line = (await this.#takeTo('\r\n')).toString('latin1');
    assert.match(line, /^[0-9a-f]+\r\n$/i, 'the length of a chunk');
    const length = parseInt(line, 16);
    const chunk = await this.#takeFirst(length + 2);
    assert.equal(chunk.subarray(length).toString('latin1'), '\r\n', 'the end of a chunk');
    return chunk.subarray(0, length);
  }

  /**
   * Reads the next answer; fails on anything that is not one.
   *
   * @param {{head?: boolean}} [options] `head`: it answers a HEAD request and so has no body
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
    const bytes = await this.#takeFirst(length);
    const answer = { status, headers, bytes };
    const isJson = /^application\/(problem\+)?json$/.test(headers['content-type']);
    if (isJson && length > 0 && headers['content-encoding'] === undefined) {
      answer.body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    }
    return answer;
  }
}

/** @returns {Promise<Buffer>} what a client of TLS begins with, as OpenSSL sends it */
export function clientHello() {
  return new Promise((resolve) => {
    connectTls({ socket: new Duplex({ read() {}, write: resolve }) });
  });
}

/**
 * Writes a request, as most clients would.
 *
 * @param {string} method
 * @param {string} target
 * @param {{headers?: Record<string, string>, body?: string | Buffer}} [more] a body gets its
 *     Content-Length; a header given as undefined is left out
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
export class Line {
  #open;
  #patience;
  #wire = null;
  /** The request that is under way. */
  #asked = null;

  /**
   * @param {() => Promise<Wire>} open
   * @param {number} [patience] milliseconds that an answer may take: then the connection is taken for dead
   */
  constructor(open, patience = PATIENCE) {
    this.#open = open;
    this.#patience = patience;
  }

  /**
   * @param {string} method
   * @param {string} target
   * @param {string} [body]
   * @param {() => void} [sending] is called just before it is sent, which it may not be
   * @returns {Promise<Answer>}
   * @throws {Error} where there is none: it is unknown what became of the request
   */
  async ask(method, target, body, sending = () => {}) {
    const one = {};
    this.#asked = one;
    const answered = (async () => {
      const wire = this.#wire ?? (await this.#open());
      if (this.#asked !== one) {
        wire.destroy();
        assert.fail('the connection was closed');
      }
      this.#wire = wire;
      sending();
      return wire.send(request(method, target, { body })).read();
    })();
    answered.catch(() => {});
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), this.#patience);
    });
    try {
      return await Promise.race([answered, late]);
    } catch (error) {
      this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Whatever it waits for does not come. */
  close() {
    this.#asked = null;
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

  /** @returns {Buffer} the first bytes, which must be there */
  take(length) {
    const all = this.bytes;
    this.#pieces = [all.subarray(length)];
    this.length -= length;
    return all.subarray(0, length);
  }
}

/**
 * Ends a TCP connection by a reset, at any moment.
 *
 * Tests never call Node's `resetAndDestroy` (eslint.config.js forbids it). While an `end` of the same socket is under way
 * it closes nothing: libuv does not reset a handle whose shutdown is pending (`uv_tcp_close_reset` returns UV_EINVAL), and
 * Node counts the handle as closed all the same (`TCPWrap::Reset`). A process that then comes to its end waits for that
 * handle for ever (`Environment::CleanupHandles`), at 100% CPU. So it is in Node 20.20, 22.23, 24.21 and 26.10:
 *
 *     socket.end();
 *     socket.resetAndDestroy(); // 'error' EINVAL, never 'close', and the process does not end
 *
 * A shutdown is pending from when all is written until the loop's next turn. To the peer it makes no difference then
 * whether the socket is reset or closed: its end has been said first.
 *
 * @param {import('node:net').Socket} socket whose end no other stream begins, as TLS over it does
 */
export function resetSocket(socket) {
  const { connecting, writableEnded, writableFinished, writableLength } = socket;
  const isShuttingDown = writableEnded && !writableFinished && writableLength === 0;
  if (connecting) socket.once('connect', () => resetSocket(socket));
  else if (isShuttingDown) socket.destroy();
  // eslint-disable-next-line no-restricted-properties
  else socket.resetAndDestroy();
}
