/**
 * Reads bytes with Node's own HTTP server, to compare with.
 *
 * A fake socket passes the bytes to a real `http.Server`, with the parser, settings and checks of every connection of
 * Node's.
 */
import http from 'node:http';
import { Duplex } from 'node:stream';

/** Timeout of a connection, in milliseconds; then it counts as stalled. */
const READ_TIMEOUT = 5000;

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
 * @property {string} answer the server's output, one character a byte
 */

/** One end of a connection: Node reads the bytes pushed into it; it keeps Node's output. */
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
   * Reads the bytes until the connection has ended. Each chunk comes after Node has processed the one before; then the
   * client ends its half.
   *
   * @param {Buffer[]} chunks as they arrive
   * @returns {Promise<Reading>}
   */
  read(chunks) {
    const wire = new Wire();
    const requests = [];
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        wire.reading.error = 'STALLED';
        finish();
      }, READ_TIMEOUT);
      const finish = () => {
        clearTimeout(timer);
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
            // With a Content-Length a connection of HTTP/1.0 stays open.
            res.setHeader('Content-Length', 0).end();
          });
        }
      };
      wire.on('finish', finish);
      wire.on('close', finish);
      this.#server.emit('connection', wire);
      // An error, or the end, drops requests that were read but not answered.
      const remaining = [...chunks, null];
      const pushNext = () => {
        wire.push(remaining.shift());
        if (remaining.length > 0 && !wire.destroyed) setImmediate(() => setImmediate(pushNext));
      };
      pushNext();
    });
  }

  close() {
    this.#server.close();
  }
}
