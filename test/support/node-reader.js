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
 * @property {http.IncomingHttpHeaders} headers
 * @property {string[]} rawHeaders
 * @property {string} body one character a byte
 * @property {number} bodyLength bytes of body that came
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
   * Reads the bytes until the request for `lastUrl` is answered, the connection ended, or
   * `bodyBytes` of body came; by `ends` each chunk comes when the one before has been dealt with, and the client
   * ends its half behind them.
   *
   * @param {Buffer[]} chunks as they arrive
   * @param {{lastUrl?: string, bodyBytes?: number, ends?: boolean}} until
   * @returns {Promise<Reading>}
   */
  read(chunks, { lastUrl, bodyBytes = Infinity, ends = false }) {
    const wire = new Wire();
    const requests = [];
    let bodySeen = 0;
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
            headers: req.headers,
            rawHeaders: req.rawHeaders,
            body: '',
            bodyLength: 0,
            complete: false
          };
          requests.push(request);
          req.on('data', (chunk) => {
            request.bodyLength += chunk.length;
            request.body += chunk.toString('latin1');
            bodySeen += chunk.length;
            if (bodySeen >= bodyBytes) done();
          });
          req.on('end', () => {
            request.complete = true;
            // A length keeps a connection of 1.0 open.
            res.setHeader('Content-Length', 0).end();
          });
          res.on('finish', () => {
            if (req.url === lastUrl) done();
          });
        }
      };
      wire.on('finish', done);
      wire.on('close', done);
      this.#server.emit('connection', wire);
      if (!ends) {
        for (const chunk of chunks) wire.push(chunk);
        return;
      }
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
