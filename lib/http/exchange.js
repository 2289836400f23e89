import { sendProblem } from './problem-answers.js';
import { park } from './pipelines.js';
import { lingerAtClose } from './sockets.js';

/**
 * One exchange at a server of Node's: what has come becomes a request of the routes, and what they say the answer.
 */

/**
 * Splits a request target, in origin or absolute form (RFC 9112, section 3.2).
 *
 * @param {string} target
 * @returns {{path: string[], query: URLSearchParams}}
 */
function readTarget(target) {
  const origin = target.replace(/^https?:\/\/[^/?#]*/i, '');
  const mark = origin.indexOf('?');
  const path = mark < 0 ? origin : origin.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : origin.slice(mark + 1));
  // An absolute form may have no path; "*" and the like are no path of ours.
  const segments = path.startsWith('/') ? path.split('/').slice(1) : [path];
  return { path: segments, query };
}

/**
 * Whether a head is one of HTTP/1.1 or 1.0: one Host, or none in 1.0; chunked and no other coding (RFC 9112, sections 3.2
 * and 6.1). Node's parser also takes HTTP/0.9 with a head, and 2.0.
 */
function isWellFormed({ httpVersion, headers, headersDistinct }) {
  const hosts = headersDistinct.host?.length ?? 0;
  const codings = headers['transfer-encoding'] ?? 'chunked';
  return (
    ['1.0', '1.1'].includes(httpVersion) &&
    codings.toLowerCase() === 'chunked' &&
    hosts <= 1 &&
    (hosts === 1 || httpVersion === '1.0')
  );
}

/** Reads a body of at most `most` bytes; null: it has more, and the rest of it goes unread. */
function readBody(request, most) {
  if (Number(request.headers['content-length']) > most) return null;
  const chunks = [];
  let length = 0;
  return new Promise((resolve) => {
    request.on('data', (chunk) => {
      length += chunk.length;
      if (length <= most) {
        chunks.push(chunk);
      } else {
        request.removeAllListeners('data').removeAllListeners('end').resume();
        resolve(null);
      }
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
  });
}

/**
 * What a server of Node's has read, as the routes want it: see Request in routes.js. A class: with an object of closures
 * for each request, requests sent ahead by 40 connections took 114 MB instead of 55.
 */
class NodeRequest {
  #request;

  constructor(request, response, address) {
    this.#request = request;
    const { path, query } = readTarget(request.url);
    this.method = request.method;
    this.path = path;
    this.query = query;
    this.headers = request.headers;
    this.address = address;
    this.response = response;
  }

  get secure() {
    return this.#request.socket.encrypted === true;
  }

  get port() {
    return this.#request.socket.localPort;
  }

  body(most) {
    return readBody(this.#request, most);
  }

  park = (cancel) => {
    park(this.response);
    this.response.on('close', cancel);
  };
}

/**
 * Answers a request. Never rejects.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 * @param {object} parts
 * @param {ReturnType<import('./routes.js').createRoutes>} parts.routes
 * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
 * @param {import('./refusals.js').Refusals} parts.refusals
 * @param {import('pino').Logger} parts.log
 */
export async function exchange(request, response, { routes, limits, refusals, log }) {
  // What is written behind an end is a defect, too: without a listener it would end the process.
  response.on('error', (error) => log.error({ err: error }, 'an answer failed'));
  const address = limits.addressOf(request);
  if (!isWellFormed(request)) {
    refusals.refused({ from: address, request: request.method, why: 'bad-request' });
    if (!request.complete) lingerAtClose(request.socket);
    const headers = { ...routes.headers, Connection: 'close' };
    return sendProblem(response, 'bad-request', { headers });
  }
  const answer = await routes.handle(new NodeRequest(request, response, address));
  if (answer === undefined) return undefined;
  if (answer === null) return request.socket.destroy();
  // A problem before the request is whole: the client may still send.
  if (!request.complete && answer.status >= 400) lingerAtClose(request.socket);
  response.writeHead(answer.status, answer.headers);
  return response.end(answer.body);
}
