import { Refusal } from '../base/refusal.js';

/**
 * An application behind the same ports. Its `fetch(request)` returns a Response, as in Hono. It gets the requests for paths
 * that are not Sprites' own.
 *
 * Bodies are whole: a request's body before `fetch` is called, a response's body before it is sent. So an application
 * has no event streams or WebSockets of its own here; it can use feeds. Rejected: streaming bodies (the door would need
 * backpressure between both sides, for what feeds do already).
 */

/** Largest body of a request, in bytes. */
export const REQUEST_BYTES = 1024 * 1024;

/** Largest body of a response, in bytes. */
const RESPONSE_BYTES = 16 * 1024 * 1024;

/** Fields of the connection: the door writes them (RFC 9110, section 7.6.1). */
const DOOR_FIELDS = [
  ...['connection', 'content-length', 'date', 'expect', 'keep-alive'],
  ...['proxy-connection', 'te', 'transfer-encoding', 'upgrade']
];
const isForwarded = ([name]) => !DOOR_FIELDS.includes(name);

/** Methods that a Request of the Fetch standard cannot have. */
const FORBIDDEN_METHODS = ['TRACE', 'TRACK'];
const ALLOWED_METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';

/** @returns {Request | undefined} a Request of the Fetch standard; undefined where the standard does not allow it */
function fetchRequestOf({ method, headers, target, secure }, body, signal) {
  try {
    const url = new URL(`${secure ? 'https' : 'http'}://${headers.host || 'localhost'}${target}`);
    const hasBody = body.length > 0 && method !== 'GET' && method !== 'HEAD';
    const forwarded = new Headers(Object.entries(headers).filter(isForwarded));
    if (hasBody) forwarded.set('Content-Length', body.length);
    return new Request(url, {
      method,
      signal,
      headers: forwarded,
      body: hasBody ? body : undefined
    });
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/**
 * @param {AbortSignal} signal cancels the rest of the body
 * @throws {RangeError} when the body is too long
 */
async function bytesOf(response, signal) {
  const chunks = [];
  let length = 0;
  const collector = new WritableStream({
    write(chunk) {
      length += chunk.length;
      if (length > RESPONSE_BYTES) {
        throw new RangeError(`a response of the application has more than ${RESPONSE_BYTES} bytes`);
      }
      chunks.push(chunk);
    }
  });
  await response.body?.pipeTo(collector, { signal });
  return Buffer.concat(chunks);
}

/** Returns the fields of an answer of `length` bytes; for HEAD with the Content-Length that the application sets for GET. */
function fieldsOf(response, method, length) {
  const fields = Object.fromEntries([...response.headers].filter(isForwarded));
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) fields['set-cookie'] = cookies;
  const statedLength = method === 'HEAD' ? response.headers.get('content-length') : null;
  const isLengthStated = /^\d{1,15}$/.test(statedLength ?? '');
  if (![204, 304].includes(response.status))
    fields['Content-Length'] = isLengthStated ? statedLength : length;
  return fields;
}

/**
 * @param {(request: Request, about: {address: string, secure: boolean}) => Response | Promise<Response>} fetch
 * @returns {(request: import('./routes.js').Request) => Promise<import('./routes.js').Answer | null>} rejects as
 *     `fetch` does, with a Refusal, and for a Response that can't be sent; null: the client has gone
 */
export function openApplication(fetch) {
  return async (request) => {
    const { method, address, secure } = request;
    if (FORBIDDEN_METHODS.includes(method)) {
      throw new Refusal('method-not-allowed', { headers: { Allow: ALLOWED_METHODS } });
    }
    const body = request.body(REQUEST_BYTES);
    if (body === null) {
      throw new Refusal('content-too-large', { detail: `Send at most ${REQUEST_BYTES} bytes.` });
    }
    const clientAbort = new AbortController();
    const fetchRequest = fetchRequestOf(request, body, clientAbort.signal);
    if (fetchRequest === undefined) throw new Refusal('bad-request');
    // A client that ended its half of the connection counts as gone, as in Node's own server: a close looks the same
    // (RFC 9112, section 9.5).
    request.park(() => clientAbort.abort());
    let response;
    let bytes;
    try {
      response = await fetch(fetchRequest, { address, secure });
      if (typeof response?.headers?.getSetCookie !== 'function')
        throw new TypeError('fetch of the application returned no Response');
      if (response.type === 'error')
        throw new TypeError('the application answered Response.error()');
      // A second read would get an empty body.
      if (response.bodyUsed) throw new TypeError('the body of the response was read before');
      bytes = await bytesOf(response, clientAbort.signal);
    } catch (error) {
      // The client has gone, and the signal told the application so.
      if (clientAbort.signal.aborted && error === clientAbort.signal.reason) return null;
      throw error;
    }
    const headers = fieldsOf(response, method, bytes.length);
    return { status: response.status, headers, body: bytes };
  };
}
