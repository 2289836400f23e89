/**
 * An application of the web's own kind behind the same ports: `fetch(request)` gives a Response, as Hono has it. It is
 * asked for what is not Sprites' own.
 *
 * Bodies are whole: a request's before `fetch` is called, a response's before it goes out. So an application can have
 * neither event streams nor WebSockets of its own here; it has feeds. Rejected: streaming bodies (the door would have to
 * hold each side back for the other, for what feeds do already).
 */

/** Bytes that the body of a request may have. */
export const REQUEST_BYTES = 1024 * 1024;

/** Bytes that the body of a response may have. */
const RESPONSE_BYTES = 16 * 1024 * 1024;

/** Fields that are the connection's, and so the door's (RFC 9110, section 7.6.1). */
const OF_THE_DOOR = [
  ...['connection', 'content-length', 'date', 'expect', 'keep-alive'],
  ...['proxy-connection', 'te', 'transfer-encoding', 'upgrade']
];
const isPassed = ([name]) => !OF_THE_DOOR.includes(name);

/** Methods of which there is no Request, by the Fetch standard. */
const FORBIDDEN = ['TRACE', 'TRACK'];

/** @returns {Request | undefined} what the web calls a request; undefined where it can't be one */
function requestOf({ method, headers, target, secure }, body, signal) {
  try {
    const url = new URL(`${secure ? 'https' : 'http'}://${headers.host || 'localhost'}${target}`);
    const hasBody = body.length > 0 && method !== 'GET' && method !== 'HEAD';
    const passed = new Headers(Object.entries(headers).filter(isPassed));
    if (hasBody) passed.set('Content-Length', body.length);
    return new Request(url, { method, signal, headers: passed, body: hasBody ? body : undefined });
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/**
 * @param {AbortSignal} signal cancels the body where it is not whole yet
 * @throws {RangeError} where the body is longer than it may be
 */
async function bytesOf(response, signal) {
  const chunks = [];
  let length = 0;
  const taker = new WritableStream({
    write(chunk) {
      length += chunk.length;
      if (length > RESPONSE_BYTES) {
        throw new RangeError(`a response of the application has more than ${RESPONSE_BYTES} bytes`);
      }
      chunks.push(chunk);
    }
  });
  await response.body?.pipeTo(taker, { signal });
  return Buffer.concat(chunks);
}

/** The fields of an answer, `length` bytes long; to HEAD as long as the application says that GET's is. */
function fieldsOf(response, method, length) {
  const fields = Object.fromEntries([...response.headers].filter(isPassed));
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) fields['set-cookie'] = cookies;
  const said = method === 'HEAD' ? response.headers.get('content-length') : null;
  const isSaid = /^\d{1,15}$/.test(said ?? '');
  if (![204, 304].includes(response.status)) fields['Content-Length'] = isSaid ? said : length;
  return fields;
}

/**
 * @param {(request: Request, about: {address: string, secure: boolean}) => Response | Promise<Response>} fetch
 * @returns {(request: import('./routes.js').Request) => Promise<import('./routes.js').Answer | {problem: string} | null>}
 *     rejects as `fetch` does, and where what it gives can't be sent; null: its client has gone
 */
export function openApplication(fetch) {
  return async (request) => {
    const { method, address, secure } = request;
    if (FORBIDDEN.includes(method)) return { problem: 'method-not-allowed' };
    const body = request.body(REQUEST_BYTES);
    if (body === null) return { problem: 'content-too-large' };
    const gone = new AbortController();
    const asked = requestOf(request, body, gone.signal);
    if (asked === undefined) return { problem: 'bad-request' };
    // A client that has only ended its half counts as gone as well, as in Node's own server: a close begins alike (RFC 9112, 9.5).
    request.park(() => gone.abort());
    let response;
    let bytes;
    try {
      response = await fetch(asked, { address, secure });
      if (response.type === 'error')
        throw new TypeError('the application answered Response.error()');
      // Read again, it would be empty.
      if (response.bodyUsed) throw new TypeError('the body of the response was read before');
      bytes = await bytesOf(response, gone.signal);
    } catch (error) {
      // Its client has gone, as the application was told.
      if (gone.signal.aborted && error === gone.signal.reason) return null;
      throw error;
    }
    const headers = fieldsOf(response, method, bytes.length);
    return { status: response.status, headers, body: bytes };
  };
}
