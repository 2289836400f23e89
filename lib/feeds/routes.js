import { Refusal } from '../base/refusal.js';
import { COMPRESS_FROM } from './change.js';
import { isKey, isPrefix } from './names.js';
import {
  readKey,
  readFeedWatch,
  readListedWatch,
  readOnce,
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

const keyOf = ({ path }) => path.slice(1).join('/');

const readWatch = (request) => readFeedWatch(keyOf(request), request.query, request.headers);

/** Returns the functions that look for the grants of a client that reads. */
function readingRights({ grants, tools }) {
  const isPrivate = (key) => grants?.isPrivate(key) ?? false;

  /** Refuses a client that may not read a feed, before an answer says whether the feed exists. */
  async function grantFor(request, key) {
    return isPrivate(key) ? tools.requireGrant(request, (grant) => grant.reads(key)) : undefined;
  }

  /** Returns the grant that names a client of a public feed. With a token that is not a grant the client reads without a name. */
  async function namingGrantFor(request) {
    if (!grants?.hasKeys) return undefined;
    const { grant, token } = await grants.admit(request);
    return grant ?? (token && { token });
  }

  /** Returns the grant that opens the private feeds of a list, and the problem of each feed that it does not open. */
  async function accessFor(request, keys) {
    if (!keys.some(isPrivate)) return { grant: await namingGrantFor(request) };
    const { grant, problem } = await grants.admit(request);
    // The client repeats the whole request with a new grant.
    if (problem !== undefined && problem !== 'grant-required') throw new Refusal(problem);
    const problemOf = (key) =>
      isPrivate(key) && !grant?.reads(key) ? (problem ?? 'not-granted') : undefined;
    return { grant, problems: keys.map(problemOf) };
  }

  return { isPrivate, grantFor, namingGrantFor, accessFor };
}

/** Returns the answer to HEAD, with the headers that GET without a cursor would have. */
function headAnswer(common, watch, answer, isCached) {
  const { afters, last, gzip, stream, noneMatch } = watch;
  // A compressed answer, and the end of a log, have a length and a tag of their own (RFC 9110, section 9.3.2).
  const hasOwnTag = last > 0 || (gzip && answer.length >= COMPRESS_FROM);
  // For GET, an answer to a cursor has a tag of its own, and a stream none: a cache must not mistake one for the other.
  const mayCache = isCached && ['', 'none'].includes(afters[0]) && !stream;
  const isTagged = mayCache && !hasOwnTag;
  const tagged = { ETag: `"${answer.tag}"`, 'Cache-Control': NEWEST_CACHE_CONTROL };
  const fields = isTagged
    ? { ...cacheHeaders(common), ...tagged }
    : { ...common, ...varyHeaders(common) };
  const isKnown = isTagged ? answer.isKnown : mayCache && noneMatch === '*';
  if (isKnown) return { status: 304, headers: fields };
  const headers = { ...fields, 'Content-Type': 'application/json' };
  if (!hasOwnTag) headers['Content-Length'] = answer.length;
  return { status: 200, headers };
}

function watchRoutes({ feeds, grants, options, tools }) {
  const { common, requireToken, readBody, json } = tools;
  const { isPrivate, grantFor, namingGrantFor, accessFor } = readingRights({ grants, tools });

  /** Has a watch request answered, now or later. */
  function watch(request, wanted) {
    // The table counts the hold in 32 bits; a larger one is above every --hold.
    if (wanted.hold > options.hold) throw new Refusal('bad-hold');
    request.watch({ ...wanted, from: request.address });
  }

  async function get(request) {
    const wanted = readWatch(request);
    const grant = (await grantFor(request, wanted.keys[0])) ?? (await namingGrantFor(request));
    return watch(request, { ...wanted, grant });
  }

  async function watchMany(request, wanted) {
    const gzip = acceptsGzip(request.headers);
    return watch(request, { ...wanted, gzip, ...(await accessFor(request, wanted.keys)) });
  }

  function post(request) {
    const bytes = readBody(request, WATCH_BYTES, 'watch-too-large');
    return watchMany(request, readPostedWatch(bytes));
  }

  /** Answers HEAD. Does not fetch from the upstream. */
  async function head(request) {
    const wanted = readWatch(request);
    const [key] = wanted.keys;
    await grantFor(request, key);
    const answer = feeds.answerHead(key, wanted.noneMatch ?? '');
    if (answer === null) throw new Refusal('unknown-feed');
    if (wanted.last !== undefined && !feeds.find(key).log) throw new Refusal('not-a-log');
    return headAnswer(common, wanted, answer, options.feedCache > 0 && !isPrivate(key));
  }

  /** Watches several feeds, or answers with the keys there are, a page at a time. */
  function list(request) {
    const { query, headers } = request;
    if (query.has('watch')) return watchMany(request, readListedWatch(query, headers));
    requireToken(request);
    const prefix = readOnce(query, 'prefix', 'bad-key') ?? '';
    const from = readOnce(query, 'from', 'bad-key') ?? '';
    if (!isPrefix(prefix) || (from !== '' && !isKey(from))) throw new Refusal('bad-key');
    const page = feeds.list({ prefix, from, count: PAGE_KEYS + 1 });
    const next = page.length > PAGE_KEYS ? page[PAGE_KEYS - 1].feed : undefined;
    return json(200, { feeds: page.slice(0, PAGE_KEYS), next });
  }

  return { get, head, list, post };
}

function publishRoutes({ publisher, tools }) {
  const { requirePublisher, readBody, json, noContent } = tools;

  /** Returns the key, if the request may publish it. */
  async function authorizedKey(request) {
    const key = keyOf(request);
    await requirePublisher(request, key);
    return readKey(key);
  }

  /** Publishes the body of a request. */
  async function publish(request, key, kind) {
    const refusal = publisher.refusalOf(key, kind);
    if (refusal !== undefined) throw new Refusal(refusal);
    const body = readBody(request, publisher.maxBodyBytes(key), publisher.tooLargeProblem(kind));
    const published = await publisher.publish(key, kind, body);
    const { problem, detail, created, cursor, watching } = published;
    if (problem !== undefined) throw new Refusal(problem, { detail });
    return json(created ? 201 : 200, { cursor, watching });
  }

  const put = async (request) => publish(request, await authorizedKey(request), 'value');
  const append = async (request) => publish(request, await authorizedKey(request), 'item');

  async function patch(request) {
    const key = await authorizedKey(request);
    const [field] = (request.headers['content-type'] ?? '').split(';');
    const type = field.trim().toLowerCase();
    const accepted = [...PATCH_KINDS.keys()].filter(
      (one) => publisher.refusalOf(key, PATCH_KINDS.get(one)) !== 'bad-media-type'
    );
    if (!accepted.includes(type)) {
      throw new Refusal('bad-media-type', { headers: { 'Accept-Patch': accepted.join(', ') } });
    }
    return publish(request, key, PATCH_KINDS.get(type));
  }

  async function remove(request) {
    const { problem } = await publisher.remove(await authorizedKey(request));
    if (problem !== undefined) throw new Refusal(problem);
    return noContent();
  }

  return { POST: append, PUT: put, PATCH: patch, DELETE: remove };
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
export function feedRoutes(parts) {
  const { get, head, list, post } = watchRoutes(parts);
  return {
    feed: { GET: get, HEAD: head, ...publishRoutes(parts) },
    feeds: { GET: list, POST: post }
  };
}
