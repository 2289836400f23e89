import http from 'node:http';
import https from 'node:https';
import { Readable } from 'node:stream';

import { tlsOf } from './tls.js';

/** Answers that have no body. */
const EMPTY = [204, 205, 304];

/**
 * A fetch that believes whom the command line says, and closes the connection of a request that is given up, whatever
 * that waits for: Node's own goes on connecting for ten seconds (nodejs/undici#4405), and keeps the process.
 *
 * @param {object} options of parse()
 * @returns {typeof globalThis.fetch}
 * @throws {import('./errors.js').UsageError} when the authorities can't be read
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
