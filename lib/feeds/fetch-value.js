import { change } from './change.js';

/**
 * Fetches a value from the upstream, in a worker thread: bounded in time and in size, and not at all
 * when it has not changed since. A redirect is not followed: it could lead to any address that this
 * host reaches, and what is there would be handed to every client that asks for the feed.
 */

/** Why a fetch failed, in words for a log and for a problem's detail. */
class FetchError extends Error {}

/** Reads a body, as many bytes as a value may have, whatever its Content-Length says. */
async function readBody(response, most) {
  const chunks = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > most) throw new FetchError(`it answered more than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Codes of a connection that the source has closed, as it may a kept one at any time. */
const CLOSED = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'];

/** As much of a Location as a log may show. */
const LONGEST_LOCATION = 200;

/** An answer that is no value, in words. */
function wordsForStatus({ status, headers }) {
  const location = headers.get('location');
  if (status < 300 || status > 399 || location === null) return `it answered ${status}`;
  const shown = location.slice(0, LONGEST_LOCATION);
  return (
    `it answered ${status}, a redirect to ${shown}, and redirects are not followed:` +
    ' give --upstream the address that the source itself has'
  );
}

function wordsFor(error, time) {
  if (error instanceof FetchError) return error.message;
  if (error.name === 'TimeoutError') return `it took longer than ${time} s`;
  const code = error.cause?.code ?? error.code;
  return `it could not be read${code === undefined ? '' : ` (${code})`}`;
}

/**
 * @param {object} job a Job of lib/feeds/change.js without `body` and `kind`, and:
 * @param {string} job.url
 * @param {number} job.time seconds the whole fetch may take
 * @param {string} [job.etag] of the value there is
 * @param {(job: object) => object} [work] what compares it: change of lib/feeds/change.js
 * @returns {Promise<object>} a Change, with the `etag` there is now; or `{failed}` with the reason
 */
export async function fetchValue({ url, time, etag, ...job }, work = change) {
  // One limit for all of it: a source that drips must not hold its place for ever.
  const signal = AbortSignal.timeout(time * 1000);
  try {
    const headers = { Accept: 'application/json', 'User-Agent': 'sprites' };
    if (etag !== undefined) headers['If-None-Match'] = etag;
    // Not 'error': that does not tell a redirect from any other failure of the network.
    const ask = () => fetch(url, { headers, signal, redirect: 'manual' });
    const response = await ask().catch((error) => {
      if (!CLOSED.includes(error.cause?.code)) throw error;
      return ask();
    });
    if (response.status === 304 && headers['If-None-Match'] !== undefined) {
      return { unchanged: true, etag };
    }
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new FetchError(wordsForStatus(response));
    }
    const body = await readBody(response, job.most);
    const outcome = work({ ...job, kind: 'value', body });
    if (outcome.problem !== undefined) throw new FetchError(`no value: ${outcome.detail}`);
    return { ...outcome, etag: response.headers.get('etag') ?? undefined };
  } catch (error) {
    return { failed: wordsFor(error, time) };
  }
}
