import { problemAnswer, problems } from './problems.js';
import { Refusal } from '../base/refusal.js';

/** The tools of the routes: they read a request, ask what its client may do, and make the answer. */

const DECIMAL = /^[0-9]{1,16}$/;

/** A Content-Encoding of a body that is not compressed (RFC 9110, section 8.4.1). */
const IDENTITY = /^(identity|[ \t,])*$/i;

/** Problems to which the answer adds TOKEN_ADVICE: the token was read as a grant, but may be meant as a publisher's. */
const GRANT_PROBLEMS = ['grant-required', 'bad-grant'];
const TOKEN_ADVICE = 'A publisher sends a token of the file in --publish-token-file.';

/**
 * Reads a number of the query. Refuses anything but one plain decimal.
 *
 * @param {URLSearchParams} query
 * @param {string} name
 * @param {string} problem the problem of a refusal
 * @returns {number | undefined} undefined: the query has no such number
 */
function readNumber(query, name, problem) {
  const values = query.getAll(name);
  if (values.length === 0) return undefined;
  const number = DECIMAL.test(values[0]) ? Number(values[0]) : NaN;
  if (values.length > 1 || !Number.isSafeInteger(number)) throw new Refusal(problem);
  return number;
}

/** Reads a body of at most `maxBytes` bytes. Refuses a longer one with `problem`, and a compressed one. */
function readBody(request, maxBytes, problem) {
  if (!IDENTITY.test(request.headers['content-encoding'] ?? '')) {
    throw new Refusal('bad-media-type', {
      detail: 'Send the body uncompressed, without Content-Encoding.',
      headers: { 'Accept-Encoding': 'identity' }
    });
  }
  const bytes = request.body(maxBytes);
  if (bytes !== null) return bytes;
  throw new Refusal(problem, { detail: `Send at most ${maxBytes} bytes.` });
}

/** Returns the functions that make an answer; `common` are the fields of every answer. */
function answerTools({ cors }) {
  const common = { 'Cache-Control': 'no-store' };
  if (cors !== 'none') {
    common['Access-Control-Allow-Origin'] = cors;
    common['Access-Control-Expose-Headers'] = 'Location, Retry-After';
    if (cors !== '*') common.Vary = 'Origin';
  }
  function jsonText(status, body) {
    const length = Buffer.byteLength(body);
    const headers = { ...common, 'Content-Type': 'application/json', 'Content-Length': length };
    return { status, headers, body };
  }
  return {
    common,
    jsonText,
    json: (status, value) => jsonText(status, JSON.stringify(value)),
    // An answer with 204 has no content, and no Content-Length (RFC 9110, section 8.6).
    noContent: (headers) => ({ status: 204, headers: { ...common, ...headers } }),
    problem: (name, { detail, headers } = {}) =>
      problemAnswer(name, { detail, headers: { ...common, ...headers } })
  };
}

/** Returns the functions that refuse a client without the right to something. */
function accessTools({ tokens, grants }) {
  /** Refuses a client without a grant that `isAllowed` accepts. @returns {Promise<import('../grants/open.js').Grant>} */
  async function requireGrant(request, isAllowed) {
    const { grant, problem } = await grants.admit(request);
    if (problem !== undefined) throw new Refusal(problem);
    if (!isAllowed(grant)) throw new Refusal('not-granted');
    return grant;
  }

  async function requireJoinGrant(request) {
    if (grants?.privateJoin) await requireGrant(request, (grant) => grant.join);
  }

  const hasToken = ({ headers }) => tokens.open && tokens.admits(headers.authorization);

  /** Refuses a client that may not publish. */
  function requireToken(request) {
    if (!hasToken(request)) throw new Refusal(tokens.open ? 'bad-token' : 'publishing-closed');
  }

  /** Refuses a client that may not publish this feed, by a token or a grant. */
  async function requirePublisher(request, key) {
    if (!grants?.hasKeys) return requireToken(request);
    if (hasToken(request)) return undefined;
    try {
      return await requireGrant(request, (grant) => grant.publishes(key));
    } catch (error) {
      if (tokens.open && GRANT_PROBLEMS.includes(error.problem)) {
        error.detail = `${problems[error.problem].detail} ${TOKEN_ADVICE}`;
      }
      throw error;
    }
  }

  return { requireGrant, requireJoinGrant, requireToken, requirePublisher };
}

/** @param {object} parts options, tokens and grants of createRoutes */
export function createTools(parts) {
  return { readNumber, readBody, ...answerTools(parts.options), ...accessTools(parts) };
}
