/**
 * Node's own HTTP server as a judge: bytes go in, and out comes what it made of them.
 *
 * The bytes are given to a real `http.Server` by a socket of the process's own, behind the same
 * parser, settings and checks every connection of Node's has.
 */
import http from 'node:http';
import { Duplex } from 'node:stream';

/** How long one connection may take before it counts as stalled, in milliseconds. */
const PATIENCE = 5000;

/**
 * @typedef {object} NodeRequest
 * @property {string} method
 * @property {string} url
 * @property {string[]} rawHeaders
 * @property {string} body one character a byte
 * @property {boolean} complete whether the body ended
 */

/**
 * @typedef {object} Reading
 * @property {NodeRequest[]} requests in their order
 * @property {string|null} error the parser's code when it refused the bytes, `STALLED` when
 *     neither an answer nor an end came
 * @property {string} answer what the server wrote, one character a byte
 */

/** One end of a connection: what is pushed into it Node reads, what Node writes it keeps. */
class Wire extends Duplex {
  answer = '';

  _read() {}

  _write(chunk, encoding, callback) {
    this.answer += chunk.toString('latin1');
    callback();
  }

  setTimeout() {
    return this;
  }
}

export class NodeReader {
  #server = http.createServer();

  constructor() {
    this.#server.on('request', (req, res) => req.socket.reading.begin(req, res));
    this.#server.on('clientError', (error, wire) => {
      wire.reading.error = error.code;
      wire.destroy();
    });
  }

  /**
   * Reads the bytes until the connection has ended: each chunk comes when the one before has been dealt with, and the
   * client ends its half behind them.
   *
   * @param {Buffer[]} chunks as they arrive
   * @returns {Promise<Reading>}
   */
  read(chunks) {
    const wire = new Wire();
    const requests = [];
    return new Promise((resolve) => {
      const impatience = setTimeout(() => {
        wire.reading.error = 'STALLED';
        done();
      }, PATIENCE);
      const done = () => {
        clearTimeout(impatience);
        resolve({ requests, error: wire.reading.error, answer: wire.answer });
        wire.destroy();
      };
      wire.reading = {
        error: null,
        begin(req, res) {
          const request = {
            method: req.method,
            url: req.url,
            rawHeaders: req.rawHeaders,
            body: '',
            complete: false
          };
          requests.push(request);
          req.on('data', (chunk) => {
            request.body += chunk.toString('latin1');
          });
          req.on('end', () => {
            request.complete = true;
            // A length keeps a connection of 1.0 open.
            res.setHeader('Content-Length', 0).end();
          });
        }
      };
      wire.on('finish', done);
      wire.on('close', done);
      this.#server.emit('connection', wire);
      // An error, or the end, cuts off what has been read and not answered.
      const left = [...chunks, null];
      const pushNext = () => {
        wire.push(left.shift());
        if (left.length > 0 && !wire.destroyed) setImmediate(() => setImmediate(pushNext));
      };
      pushNext();
    });
  }

  close() {
    this.#server.close();
  }
}
