import https from 'node:https';
import { Readable } from 'node:stream';

import { tlsOf } from './tls.js';

/** Answers that have no body. */
const EMPTY = [204, 304];

/**
 * A fetch that believes whom the command line says; Node's own where it says nothing.
 *
 * @param {object} options of parse()
 * @returns {typeof globalThis.fetch}
 * @throws {import('./errors.js').UsageError} when the authorities can't be read
 */
export function fetchBy(options) {
  if (!options.ca && !options.insecure) return globalThis.fetch;
  const tls = tlsOf(options);
  return (url, { method, headers, body, signal } = {}) =>
    new Promise((resolve, reject) => {
      const asked = { method, headers, signal, ...tls };
      const request = https.request(url, asked, (response) => {
        const { statusCode: status, headers: given } = response;
        const stream = EMPTY.includes(status) ? null : Readable.toWeb(response);
        if (stream === null) response.resume();
        resolve(new Response(stream, { status, headers: Object.entries(given) }));
      });
      request.on('error', reject);
      request.end(body);
    });
}
