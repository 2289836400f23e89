import { pour, SLICE } from './pour.js';
import { readKey, readManyWishes, readWish, WATCH_BYTES, WishError } from './wish.js';

/**
 * The feeds' routes: watching and publishing. The native front door answers GET
 * /feed/{key} and POST /feeds itself and alike (native/http/feed_handler.h).
 */

const KINDS = {
  'application/json-patch+json': 'json-patch',
  'application/merge-patch+json': 'merge-patch'
};

const EVENT_STREAM = 'text/event-stream';

/**
 * @param {object} parts
 * @param {import('./feeds.js').Feeds} parts.feeds
 * @param {import('../arena/arena.js').Arena} [parts.arena] where there is one
 * @param {object} parts.options feedBytes, hold, writeTime
 * @param {object} parts.tools of lib/http/routes.js
 * @returns {{feed: object, feeds: object}} for GET /feed/{key} and its like, and for /feeds: by method,
 *     the function that answers
 */
export function feedRoutes({ feeds, arena, options, tools }) {
  const { common, Refusal, authorize, readBody, json, nothing } = tools;

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

  function sendProblem(response, name) {
    const { status, headers, body } = tools.problem(name);
    response.writeHead(status, headers);
    response.end(body);
  }

  /** Writes a poll's answer. */
  function answerPoll(response, { outcome, pieces, length, gzip }) {
    if (outcome !== 'ok') {
      sendProblem(response, outcome);
      return true;
    }
    response.writeHead(200, {
      ...common,
      'Content-Type': 'application/json',
      'Content-Length': length,
      ...(gzip ? { 'Content-Encoding': 'gzip' } : {})
    });
    if (length <= SLICE) response.cork();
    pour(response, pieces, {
      slow: (left) => wait(response, left),
      done() {
        feeds.slowReaders.done(response);
        response.end();
      }
    });
    return true;
  }

  /**
   * Writes one event of a stream; where it can't take more at once, `ready` is called when it can.
   *
   * @returns {boolean} whether it can take more
   */
  function answerStream(response, { outcome, pieces, ends, cursor, retry }, ready) {
    if (!response.headersSent) {
      if (outcome !== 'ok') {
        sendProblem(response, outcome);
        return true;
      }
      response.writeHead(200, { ...common, 'Content-Type': EVENT_STREAM });
    }
    const before = [
      cursor === '' ? '' : `id: ${cursor}\n`,
      retry > 0 ? `retry: ${retry}\n` : '',
      pieces.length > 0 ? 'data: ' : ''
    ].join('');
    const behind = pieces.length > 0 ? '\n\n' : retry > 0 ? '\n' : ':\n\n';
    let atOnce = true;
    let whole = false;
    pour(response, [Buffer.from(before), ...pieces, Buffer.from(behind)], {
      slow: (left) => wait(response, left),
      done() {
        feeds.slowReaders.done(response);
        whole = true;
        if (ends) response.end();
        else if (response.writableNeedDrain) waitFor(response, ready);
        else if (!atOnce) ready();
      }
    });
    atOnce = false;
    return whole && !response.writableNeedDrain;
  }

  /** Calls `ready` when the reader of a stream has read on; one who does not is closed. */
  function waitFor(response, ready) {
    hurry(response);
    response.once('drain', ready);
  }

  /** Waits for a reader who has to read before more is written. */
  function wait(response, left) {
    hurry(response);
    feeds.slowReaders.slow(response, left);
  }

  /** Closes the connection of a reader who stops reading, as the end of any other answer does. */
  function hurry(response) {
    const { socket } = response;
    // Node starts this timeout anew whenever the kernel has taken some of what there is.
    socket.setTimeout(options.writeTime * 1000);
    response.once('drain', () => socket.setTimeout(0));
  }

  /** Has a wish answered, now or later. */
  function watch({ address, park, response }, wish) {
    // 2^32 and more is no hold of anybody's, and no number of the table's.
    if (wish.hold > options.hold) throw new Refusal('bad-hold');
    const { outcome, cancel, ready } = feeds.watch({ ...wish, from: address }, (answer) =>
      answer.stream ? answerStream(response, answer, () => ready()) : answerPoll(response, answer)
    );
    if (outcome !== 'ok') throw new Refusal(outcome);
    park(() => {
      cancel();
      feeds.slowReaders.done(response);
    });
  }

  const get = (request) =>
    watch(
      request,
      reading(() => readWish(keyOf(request.path), request.query, request.headers))
    );

  async function post(request) {
    const bytes = await readBody(request, WATCH_BYTES, 'watch-too-large');
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
    const body = await readBody(request, arena.commandBytes, 'feed-too-large');
    const { problem, detail, cursor, watching } = await arena.command(key, body);
    if (problem !== undefined) throw new Refusal(problem, { detail });
    return json(200, { cursor, watching });
  }

  async function publish(request, key, kind) {
    const body = await readBody(request, options.feedBytes, 'feed-too-large');
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
