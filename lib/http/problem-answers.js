import { problems } from './problems.js';

/**
 * How a problem is answered: by the front door, which is given the text, or by a response of the admin port.
 */

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
      ...(status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
      ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter })
    },
    body
  };
}
