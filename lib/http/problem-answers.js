import { STATUS_CODES } from 'node:http';

import { problems } from './problems.js';

/**
 * How a problem is answered, wherever that is: by a response of node:http, by a bare socket, or by
 * the native front door, which is given the text.
 */

/** The problem each error of Node's parser is answered with; any other is a bad-request. */
const PARSER_PROBLEMS = {
  HPE_HEADER_OVERFLOW: 'head-too-large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request-timeout'
};

/**
 * @param {Error & {code?: string}} error of a server's 'clientError'
 * @returns {string} the name of the problem to answer with
 */
export function parserProblem(error) {
  return PARSER_PROBLEMS[error.code] ?? 'bad-request';
}

/**
 * A problem's answer, in its parts.
 *
 * @param {string} name one of lib/http/problems.js
 * @param {{detail?: string, headers?: object}} [how] `detail`: what to do, when more can be said than
 *     the table does; `headers`: further fields of the answer
 * @returns {{status: number, headers: Record<string, string | number>, body: string}}
 */
export function problemAnswer(name, { detail, headers } = {}) {
  const { status, title, detail: usual, retryAfter } = problems[name];
  const body = JSON.stringify({
    type: `urn:sprites:${name}`,
    title,
    status,
    detail: detail ?? usual
  });
  return {
    status,
    headers: {
      ...headers,
      'Content-Type': 'application/problem+json',
      'Content-Length': Buffer.byteLength(body),
      ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter })
    },
    body
  };
}

/**
 * Answers a request with a problem.
 *
 * @param {import('node:http').ServerResponse} response
 * @param {string} name
 * @param {{detail?: string, headers?: object}} [how] as for problemAnswer
 */
export function sendProblem(response, name, how) {
  const { status, headers, body } = problemAnswer(name, how);
  response.writeHead(status, headers);
  response.end(body);
}

/**
 * A whole answer as text, without its Date.
 *
 * @param {{status: number, headers: Record<string, string | number>, body: string}} answer
 * @returns {string}
 */
export function answerText({ status, headers, body }) {
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${fields.join('')}\r\n${body}`;
}
