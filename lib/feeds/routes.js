import { Refusal } from '../base/refusal.js';
import { COMPRESS_FROM } from './change.js';
import { isKey, isPrefix } from './names.js';
import {
  readKey,
  readFeedWatch,
  readListedWatch,
  readPostedWatch,
  acceptsGzip,
  WATCH_BYTES
} from './watch-request.js';

/**
 * The feeds' routes: watching and publishing. The native front door answers GET
 * /feed/{key}, GET /feeds?watch and POST /feeds itself and alike (native/http/feed_handler.h).
 */

const PATCH_KINDS = new Map([
  ['application/json-patch+json', 'json-patch'],
  ['application/merge-patch+json', 'merge-patch']
]);

/** Cache-Control of the newest value: a cache may serve it for a second. */
export const NEWEST_CACHE_CONTROL = 'public, s-maxage=1, max-age=0';

/** Most feeds in a page of keys. */
const PAGE_KEYS = 1000;

/** Headers of every answer that may be compressed. */
export const varyHeaders = ({ Vary }) => ({
  Vary: Vary ? `${Vary}, Accept-Encoding` : 'Accept-Encoding'
});

/** Headers of every answer that a cache may keep, without its time. An event stream is another form of the same resource. */
export function cacheHeaders(common) {
  const { Vary } = varyHeaders(common);
  const fields = { ...common, Vary: `${Vary}, Accept` };
  delete fields['Cache-Control'];
  return fields;
}

/**
 * @param {object} parts
 * @param {ReturnType<import('./publisher.js').openPublisher>} parts.publisher
 * @param {import('./feeds.js').Feeds} parts.feeds
 * @param {import('../grants/open.js').Grants} [parts.grants]
 * @param {{hold: number, feedCache: number}} parts.options
 * @param {object} parts.tools of lib/http/tools.js
 * @returns {{feed: object, feeds: object}} for GET /feed/{key} and its like, and for /feeds: by method,
 *     the function that answers
 */
export function feedRoutes({ publisher, feeds, grants, options, tools }) {
  const { common, requireToken, requirePublisher, requireGrant, readBody, json, noContent } = tools;

  const keyOf = (path) => path.slice(1).join('/');

  // ---- Watching

  /** Has a watch request answered, now or later. */
  function watch(request, wanted) {
    // The table counts the hold in 32 bits; a larger one is above every --hold.
    if (wanted.hold > options.hold) throw new Refusal('bad-hold');
    request.watch({ ...wanted, from: request.address });
  }

  const isPrivate = (key) => grants?.isPrivate(key) ?? false;

  const readWatch = (request) => readFeedWatch(keyOf(request.path), request.query, request.headers);

  /** Refuses a client that may not read a feed, before an answer says whether the feed exists. */
  async function grantFor(request, key) {
    return isPrivate(key) ? requireGrant(request, (grant) => grant.reads(key)) : undefined;
  }

  /** Returns the grant that names a client of a public feed. With a token that is not a grant the client reads without a name. */
  async function namingGrantFor(request) {
    if (!grants?.hasKeys) return undefined;
    const { grant, token } = await grants.admit(request);
    return grant ?? (token && { token });
  }

  async function get(request) {
    const wanted = readWatch(request);
    const grant = (await grantFor(request, wanted.keys[0])) ?? (await namingGrantFor(request));
    return watch(request, { ...wanted, grant });
  }

  /** Returns the grant that opens the private feeds of a list, and the problem of each feed that it does not open. */
  async function accessFor(request, keys) {
    if (!keys.some(isPrivate)) return { grant: await namingGrantFor(request) };
    const { grant, problem } = await grants.admit(request);
    // The client repeats the whole request with a new grant.
    if (problem !== undefined && problem !== 'grant-required') throw new Refusal(problem);
    const problemOf = (key) => {
      if (!isPrivate(key) || grant?.reads(key)) return undefined;
      return problem ?? 'not-granted';
    };
    return { grant, problems: keys.map(problemOf) };
  }

  async function watchMany(request, wanted) {
    const gzip = acceptsGzip(request.headers);
    return watch(request, { ...wanted, gzip, ...(await accessFor(request, wanted.keys)) });
  }

  function post(request) {
    const bytes = readBody(request, WATCH_BYTES, 'watch-too-large');
    return watchMany(request, readPostedWatch(bytes));
  }

  /** Answers with the headers that GET without a cursor would have. Does not fetch from the upstream. */
  async function head(request) {
    const { keys, afters, last, noneMatch = '', gzip, stream } = readWatch(request);
    await grantFor(request, keys[0]);
    const answer = feeds.answerHead(keys[0], noneMatch);
    if (answer === null) throw new Refusal('unknown-feed');
    if (last !== undefined && !feeds.find(keys[0]).log) throw new Refusal('not-a-log');
    const headers = { 'Content-Type': 'application/json' };
    // A compressed answer, and the end of a log, have a length and a tag of their own (RFC 9110, section 9.3.2).
    const hasOwnTag = last > 0 || (gzip && answer.length >= COMPRESS_FROM);
    if (!hasOwnTag) headers['Content-Length'] = answer.length;
    // For GET, an answer to a cursor has a tag of its own, and a stream none: a cache must not mistake one for the other.
    const isFirst = ['', 'none'].includes(afters[0]) && !stream;
    const mayCache = options.feedCache > 0 && isFirst && !isPrivate(keys[0]);
    if (hasOwnTag || !mayCache) {
      const uncached = { ...common, ...varyHeaders(common) };
      if (mayCache && noneMatch === '*') return { status: 304, headers: uncached };
      return { status: 200, headers: { ...uncached, ...headers } };
    }
    const ETag = `"${answer.tag}"`;
    const cacheable = { ...cacheHeaders(common), ETag, 'Cache-Control': NEWEST_CACHE_CONTROL };
    return answer.isKnown
      ? { status: 304, headers: cacheable }
      : { status: 200, headers: { ...cacheable, ...headers } };
  }

  // ---- Publishing

  /** Watches several feeds, or answers with the keys there are, a page at a time. */
  function list(request) {
    const { query, headers } = request;
    if (query.has('watch')) {
      return watchMany(request, readListedWatch(query, headers));
    }
    requireToken(request);
    const [prefix = '', ...furtherPrefixes] = query.getAll('prefix');
    const [from = '', ...furtherFroms] = query.getAll('from');
    const isValid =
      furtherPrefixes.length + furtherFroms.length === 0 && (from === '' || isKey(from));
    if (!isValid || !isPrefix(prefix)) throw new Refusal('bad-key');
    const page = feeds.list({ prefix, from, count: PAGE_KEYS + 1 });
    const next = page.length > PAGE_KEYS ? page[PAGE_KEYS - 1].feed : undefined;
    return json(200, { feeds: page.slice(0, PAGE_KEYS), next });
  }

  /** Returns the answer to a publication. */
  function publicationAnswer({ problem, detail, created, cursor, watching }) {
    if (problem !== undefined) throw new Refusal(problem, { detail });
    return json(created ? 201 : 200, { cursor, watching });
  }

  /** Returns the key, if the request may publish it. */
  async function authorizedKey(request) {
    const key = keyOf(request.path);
    await requirePublisher(request, key);
    return readKey(key);
  }

  /** Publishes the body of a request. */
  async function publish(request, key, kind) {
    const refusal = publisher.refusalOf(key, kind);
    if (refusal !== undefined) throw new Refusal(refusal);
    const body = readBody(request, publisher.maxBodyBytes(key), publisher.tooLargeProblem(kind));
    return publicationAnswer(await publisher.publish(key, kind, body));
  }

  const put = async (request) => publish(request, await authorizedKey(request), 'value');
  const append = async (request) => publish(request, await authorizedKey(request), 'item');

  async function patch(request) {
    const key = await authorizedKey(request);
    const [type] = (request.headers['content-type'] ?? '').split(';');
    const kind = PATCH_KINDS.get(type.trim().toLowerCase());
    const acceptedKinds = [...PATCH_KINDS].filter(
      ([, one]) => publisher.refusalOf(key, one) !== 'bad-media-type'
    );
    if (!acceptedKinds.some(([, one]) => one === kind)) {
      const headers = { 'Accept-Patch': acceptedKinds.map(([name]) => name).join(', ') };
      throw new Refusal('bad-media-type', { headers });
    }
    return publish(request, key, kind);
  }

  async function remove(request) {
    const { problem } = await publisher.remove(await authorizedKey(request));
    if (problem !== undefined) throw new Refusal(problem);
    return noContent();
  }

  return {
    feed: { GET: get, HEAD: head, POST: append, PUT: put, PATCH: patch, DELETE: remove },
    feeds: { GET: list, POST: post }
  };
}
