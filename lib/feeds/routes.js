import { isCursor, isKey } from './names.js';

/**
 * The feeds over node:http: who watches, and who publishes. The native front door answers GET
 * /feed/{key} and POST /feeds itself and alike (native/door/feed_desk.h).
 */

/** What POST /feeds may have: 32 keys and cursors of full length, and room for white space. */
const WATCH_BYTES = 16384;
const FEEDS_AT_ONCE = 32;

const KINDS = {
  'application/json-patch+json': 'json-patch',
  'application/merge-patch+json': 'merge-patch'
};

const EVENT_STREAM = 'text/event-stream';

/** The weight that a list such as Accept gives to a name; undefined when it is not in it. */
function weightOf(list, name) {
  for (const member of list.split(',')) {
    // Blanks are two characters here, not all that trim() takes for one.
    const [value, ...parameters] = member
      .split(';')
      .map((part) => part.replace(/^[ \t]+|[ \t]+$/g, '').toLowerCase());
    if (value !== name) continue;
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    return weight === undefined ? 1 : Number(weight.slice(2));
  }
  return undefined;
}

const accepts = (list, name) => (weightOf(list ?? '', name) ?? 0) > 0;

/**
 * @param {object} parts
 * @param {import('./feeds.js').Feeds} parts.feeds
 * @param {ReturnType<import('./tokens.js').openTokens>} parts.tokens
 * @param {object} parts.options feedBytes, hold
 * @param {object} parts.tools of lib/server/routes.js: common, Refusal, readNumber, readBody, send,
 *     sendProblem, sendJson, sendNothing
 * @returns {{feed: object, feeds: object}} for GET /feed/{key} and its like, and for /feeds: by method,
 *     the function that answers
 */
export function feedRoutes({ feeds, tokens, options, tools }) {
  const { common, Refusal, readNumber, readBody, sendJson, sendNothing } = tools;

  function keyOf(path) {
    const key = path.slice(1).join('/');
    if (!isKey(key)) throw new Refusal('bad-key');
    return key;
  }

  /** A member of the query that may be there once. */
  function readOnce(query, name, problem) {
    const values = query.getAll(name);
    if (values.length > 1) throw new Refusal(problem);
    return values[0];
  }

  function readAfter(text) {
    if (text !== '' && !isCursor(text)) throw new Refusal('bad-cursor');
    return text;
  }

  function readHold(hold) {
    if (hold === undefined) return undefined;
    if (!Number.isSafeInteger(hold) || hold < 0 || hold > options.hold) {
      throw new Refusal('bad-hold');
    }
    return hold;
  }

  // ---- Watching

  /** Writes a poll's answer. */
  function answerPoll(response, { outcome, pieces, length, gzip }) {
    if (outcome !== 'ok') {
      tools.sendProblem(response, outcome);
      return true;
    }
    response.writeHead(200, {
      ...common,
      'Content-Type': 'application/json',
      'Content-Length': length,
      ...(gzip ? { 'Content-Encoding': 'gzip' } : {})
    });
    response.cork();
    for (const piece of pieces) response.write(piece);
    response.end();
    return true;
  }

  /** Writes one event of a stream. @returns {boolean} whether it can take more */
  function answerStream(response, { outcome, pieces, ends, cursor, retry }) {
    if (!response.headersSent) {
      if (outcome !== 'ok') {
        tools.sendProblem(response, outcome);
        return true;
      }
      response.writeHead(200, { ...common, 'Content-Type': EVENT_STREAM });
    }
    response.cork();
    if (cursor !== '') response.write(`id: ${cursor}\n`);
    if (retry > 0) response.write(`retry: ${retry}\n`);
    if (pieces.length > 0) response.write('data: ');
    for (const piece of pieces) response.write(piece);
    const text = pieces.length > 0 ? '\n\n' : retry > 0 ? '\n' : ':\n\n';
    if (ends) response.end(text);
    else response.write(text);
    response.uncork();
    return !response.writableNeedDrain;
  }

  /** Has a wish answered, now or later. */
  function watch(response, wish) {
    const { outcome, cancel, ready } = feeds.watch(wish, (answer) =>
      answer.stream ? answerStream(response, answer) : answerPoll(response, answer)
    );
    if (outcome !== 'ok') throw new Refusal(outcome);
    if (wish.stream) response.on('drain', ready);
    response.on('close', cancel);
  }

  function get(request, response, path, query) {
    const key = keyOf(path);
    const { accept, 'accept-encoding': encoding, 'last-event-id': lastEvent } = request.headers;
    const stream = accepts(accept, EVENT_STREAM);
    let after = readAfter(readOnce(query, 'after', 'bad-cursor') ?? '');
    // What an event source says when it comes back is newer than what its address says.
    if (stream && lastEvent !== undefined) after = readAfter(lastEvent);
    const hold = readHold(readNumber(query, 'hold', 'bad-hold'));
    const delta = readOnce(query, 'delta', 'bad-delta') ?? '0';
    if (!['0', '1'].includes(delta)) throw new Refusal('bad-delta');
    watch(response, {
      keys: [key],
      afters: [after],
      hold,
      delta: delta === '1',
      gzip: accepts(encoding, 'gzip'),
      stream
    });
  }

  /** Reads the body of POST /feeds. */
  function readWish(bytes) {
    let wish;
    try {
      wish = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    } catch (error) {
      throw new Refusal('bad-watch', { cause: error });
    }
    const isObject = (value) =>
      typeof value === 'object' && value !== null && !Array.isArray(value);
    if (!isObject(wish) || !isObject(wish.feeds)) throw new Refusal('bad-watch');
    const { hold, delta = false, feeds: wanted } = wish;
    const entries = Object.entries(wanted);
    if (entries.length === 0 || entries.length > FEEDS_AT_ONCE) throw new Refusal('bad-watch');
    if (typeof delta !== 'boolean') throw new Refusal('bad-delta');
    for (const [key, after] of entries) {
      if (!isKey(key)) throw new Refusal('bad-key');
      if (typeof after !== 'string') throw new Refusal('bad-cursor');
      readAfter(after);
    }
    return {
      keys: entries.map(([key]) => key),
      afters: entries.map(([, after]) => after),
      hold: readHold(hold),
      delta,
      many: true
    };
  }

  async function post(request, response) {
    const bytes = await readBody(request, WATCH_BYTES, 'watch-too-large');
    watch(response, readWish(bytes));
  }

  // ---- Publishing

  function authorize(request) {
    if (!tokens.open) throw new Refusal('publishing-closed');
    if (!tokens.admits(request.headers.authorization)) {
      throw new Refusal('bad-token', { headers: { 'WWW-Authenticate': 'Bearer' } });
    }
  }

  async function publish(request, response, key, kind) {
    const body = await readBody(request, options.feedBytes, 'feed-too-large');
    const { problem, detail, created, cursor, watching } = await feeds.publish(key, kind, body);
    if (problem !== undefined) throw new Refusal(problem, { detail });
    sendJson(response, created ? 201 : 200, { cursor, watching });
  }

  function put(request, response, path) {
    authorize(request);
    return publish(request, response, keyOf(path), 'value');
  }

  function patch(request, response, path) {
    authorize(request);
    const key = keyOf(path);
    const [type] = (request.headers['content-type'] ?? '').split(';');
    const kind = KINDS[type.trim().toLowerCase()];
    if (kind === undefined) {
      const types = Object.keys(KINDS).join(', ');
      throw new Refusal('bad-media-type', { headers: { 'Accept-Patch': types } });
    }
    return publish(request, response, key, kind);
  }

  async function remove(request, response, path) {
    authorize(request);
    const { problem } = await feeds.remove(keyOf(path));
    if (problem !== undefined) throw new Refusal(problem);
    sendNothing(response);
  }

  return { feed: { GET: get, PUT: put, PATCH: patch, DELETE: remove }, feeds: { POST: post } };
}
