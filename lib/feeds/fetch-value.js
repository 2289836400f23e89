/**
 * Fetches a value from the upstream, in a worker thread. Time and size are bounded, and an unchanged value is not sent
 * again (ETag). Redirects are not followed: a redirect could lead to any address that this host reaches, and every client
 * of the feed would get the content of that address.
 */

/** A failed fetch. Its message is for the log and for the detail of a problem. */
class FetchError extends Error {}

/** Reads a body. Stops at `maxBytes` bytes, whatever its Content-Length says. */
async function readBody(response, maxBytes) {
  const chunks = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > maxBytes) throw new FetchError(`it answered more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Error codes of a kept connection that the source has closed: it may do so at any time. */
const CLOSED_CODES = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'];

/** Longest part of a Location in the log, in characters. */
const LONGEST_LOCATION = 200;

/** Describes an answer that has no value. */
function describeStatus({ status, headers }) {
  const location = headers.get('location');
  if (status < 300 || status > 399 || location === null) return `it answered ${status}`;
  const shown = location.slice(0, LONGEST_LOCATION);
  return (
    `it answered ${status}, a redirect to ${shown}, and redirects are not followed:` +
    ' give --upstream the address that the source itself has'
  );
}

function describeError(error, time) {
  if (error instanceof FetchError) return error.message;
  if (error.name === 'TimeoutError') return `it took longer than ${time} s`;
  const code = error.cause?.code ?? error.code;
  return `it could not be read${code === undefined ? '' : ` (${code})`}`;
}

/**
 * @param {object} job a Job of lib/feeds/change.js without `body` and `kind`, and:
 * @param {string} job.url
 * @param {number} job.time timeout of the whole fetch, in seconds
 * @param {string} [job.etag] of the current value
 * @param {(job: object) => object} computeChange computes the Change: `change` of lib/feeds/change.js
 * @returns {Promise<object>} a Change with the new `etag`, or `{failed}` with the reason
 */
export async function fetchValue({ url, time, etag, ...job }, computeChange) {
  // One timeout for the whole fetch: a source that sends byte by byte must not occupy a fetch for good.
  const signal = AbortSignal.timeout(time * 1000);
  try {
    const headers = { Accept: 'application/json', 'User-Agent': 'sprites' };
    if (etag !== undefined) headers['If-None-Match'] = etag;
    // Not 'error': that reports a redirect like any other failure of the network.
    const request = () => fetch(url, { headers, signal, redirect: 'manual' });
    const response = await request().catch((error) => {
      if (!CLOSED_CODES.includes(error.cause?.code)) throw error;
      return request();
    });
    if (response.status === 304 && headers['If-None-Match'] !== undefined) {
      return { unchanged: true, etag };
    }
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new FetchError(describeStatus(response));
    }
    const body = await readBody(response, job.most);
    const outcome = computeChange({ ...job, kind: 'value', body });
    if (outcome.problem !== undefined) throw new FetchError(`no value: ${outcome.detail}`);
    return { ...outcome, etag: response.headers.get('etag') ?? undefined };
  } catch (error) {
    return { failed: describeError(error, time) };
  }
}
