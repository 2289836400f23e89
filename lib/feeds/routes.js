import { readKey, readManyWishes, readWish, WATCH_BYTES, WishError } from './wish.js';

/**
 * The feeds' routes: watching and publishing. The native front door answers GET
 * /feed/{key} and POST /feeds itself and alike (native/http/feed_handler.h).
 */

const KINDS = {
  'application/json-patch+json': 'json-patch',
  'application/merge-patch+json': 'merge-patch'
};

/**
 * @param {object} parts
 * @param {import('./feeds.js').Feeds} parts.feeds
 * @param {import('../arena/arena.js').Arena} [parts.arena] where there is one
 * @param {object} parts.options feedBytes, hold
 * @param {object} parts.tools of lib/http/routes.js
 * @returns {{feed: object, feeds: object}} for GET /feed/{key} and its like, and for /feeds: by method,
 *     the function that answers
 */
export function feedRoutes({ feeds, arena, options, tools }) {
  const { Refusal, authorize, readBody, json, nothing } = tools;

  /** Does what reads a wish; what is wrong with it is refused. */
  function reading(read) {
    try {
      return read();
    } catch (error) {
      if (error instanceof WishError) throw new Refusal(error.problem);
      throw error;
    }
  }

  const keyOf = (path) => path.slice(1).join('/');
  const publishedKey = (path) => reading(() => readKey(keyOf(path)));

  // ---- Watching

  /** Has a wish answered, now or later. */
  function watch(request, wish) {
    // 2^32 and more is no hold of anybody's, and no number of the table's.
    if (wish.hold > options.hold) throw new Refusal('bad-hold');
    request.watch({ ...wish, from: request.address });
  }

  const get = (request) =>
    watch(
      request,
      reading(() => readWish(keyOf(request.path), request.query, request.headers))
    );

  function post(request) {
    const bytes = readBody(request, WATCH_BYTES, 'watch-too-large');
    return watch(
      request,
      reading(() => readManyWishes(bytes))
    );
  }

  // ---- Publishing

  /** What the arena publishes nobody else may; its control takes commands. */
  function roleOf(key) {
    const role = arena?.owns(key);
    if (role === 'reduced') throw new Refusal('reserved-feed');
    return role;
  }

  async function command(request, key) {
    const body = readBody(request, arena.commandBytes, 'feed-too-large');
    const { problem, detail, cursor, watching } = await arena.command(key, body);
    if (problem !== undefined) throw new Refusal(problem, { detail });
    return json(200, { cursor, watching });
  }

  async function publish(request, key, kind) {
    const body = readBody(request, options.feedBytes, 'feed-too-large');
    const { problem, detail, created, cursor, watching } = await feeds.publish(key, kind, body);
    if (problem !== undefined) throw new Refusal(problem, { detail });
    return json(created ? 201 : 200, { cursor, watching });
  }

  function put(request) {
    authorize(request);
    const key = publishedKey(request.path);
    if (roleOf(key) === 'control') return command(request, key);
    return publish(request, key, 'value');
  }

  function patch(request) {
    authorize(request);
    const key = publishedKey(request.path);
    const [type] = (request.headers['content-type'] ?? '').split(';');
    const kind = KINDS[type.trim().toLowerCase()];
    const controls = roleOf(key) === 'control';
    if (kind === undefined || (controls && kind !== 'merge-patch')) {
      const types = Object.keys(KINDS).join(', ');
      throw new Refusal('bad-media-type', { headers: { 'Accept-Patch': types } });
    }
    if (controls) return command(request, key);
    return publish(request, key, kind);
  }

  async function remove(request) {
    authorize(request);
    const key = publishedKey(request.path);
    if (roleOf(key) !== undefined) throw new Refusal('reserved-feed');
    const { problem } = await feeds.remove(key);
    if (problem !== undefined) throw new Refusal(problem);
    return nothing();
  }

  return { feed: { GET: get, PUT: put, PATCH: patch, DELETE: remove }, feeds: { POST: post } };
}
