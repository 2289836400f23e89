import { STATUS_CODES } from 'node:http';

import { outcomes } from './outcomes.js';
import { BodyPending, NEEDS_BODY } from './routes.js';

/**
 * Exchanges of the front door that are not hot. An exchange gives the routes the request that the door has read, and gives
 * the door the answer of the routes.
 */

/** Returns a request target in origin form. An absolute target may have no path (RFC 9112, section 3.2). */
const toOriginForm = (target) => target.replace(/^https?:\/\/[^/?#]*\/?/i, '/');

/**
 * Splits a request target.
 *
 * @param {string} origin in origin form
 * @returns {{path: string[], query: URLSearchParams}}
 */
function readTarget(origin) {
  const mark = origin.indexOf('?');
  const path = mark < 0 ? origin : origin.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : origin.slice(mark + 1));
  // A target such as "*" or "join" is not a path: it becomes a segment with a slash, which no route has.
  const segments = path.startsWith('/') ? path.split('/').slice(1) : [`/${path}`];
  return { path: segments, query };
}

/** Returns fields by their names in lower case; fields of one name as one list (RFC 9110, section 5.3; RFC 6265, section 5.4). */
function readFields(fields) {
  const headers = Object.create(null);
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i].toLowerCase();
    const comma = name === 'cookie' ? '; ' : ', ';
    headers[name] = name in headers ? headers[name] + comma + fields[i + 1] : fields[i + 1];
  }
  return headers;
}

const statusLine = (status) => `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;

/** Characters that no field may have: a line break would start another field. Above ASCII a character is a byte. */
const FORBIDDEN_CHARACTER = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * Writes the fields of an answer, and the empty line behind them.
 *
 * @param {Record<string, string | number | string[]>} headers a list is one field for each member
 * @returns {string}
 * @throws {TypeError} for a value that a field must not have
 */
function fieldsText(headers) {
  let text = '';
  for (const [name, values] of Object.entries(headers)) {
    for (const value of [values].flat()) {
      if (FORBIDDEN_CHARACTER.test(value)) throw new TypeError(`no value of a field ${name}`);
      text += `${name}: ${value}\r\n`;
    }
  }
  return `${text}\r\n`;
}

/**
 * Writes a whole answer, without its Date and Connection fields: the door adds these.
 *
 * @param {{status: number, headers: Record<string, string | number>, body?: string}} answer
 * @returns {string}
 */
export function answerText({ status, headers, body = '' }) {
  return statusLine(status) + fieldsText(headers) + body;
}

/** Returns the number of an outcome. */
const outcomeNumber = (problem = 'ok') => outcomes.indexOf(problem);

/** Returns a grant for the native table, or a token that is not a grant; `left` is the time to its end, in milliseconds. */
const nativeGrantOf = ({ token, exp = 0, read = [], jti = '', sub = '', key = '', present }) => ({
  ...{ token, read, jti, sub, key, present },
  left: Math.max(0, exp * 1000 - Date.now())
});

/** A request for the routes: see Request in routes.js. */
class Exchange {
  #exchanges;
  #connection;
  #generation;
  #body;

  constructor(exchanges, connection, generation, requestParts) {
    const [method, target, fields, body, address, secure, transient] = requestParts;
    this.#exchanges = exchanges;
    this.#connection = connection;
    this.#generation = generation;
    this.#body = body;
    this.target = toOriginForm(target);
    const { path, query } = readTarget(this.target);
    this.method = method;
    this.path = path;
    this.query = query;
    this.headers = readFields(fields);
    this.address = address;
    this.secure = secure;
    this.transient = transient;
  }

  body(maxBytes) {
    if (this.#body === undefined) throw new BodyPending();
    return this.#body === null || this.#body.length > maxBytes ? null : this.#body;
  }

  watch(watchRequest) {
    this.#exchanges.watch(this.#connection, this.#generation, watchRequest);
  }

  park = (cancel) => {
    this.cancel = cancel;
    this.#exchanges.park(this.#connection, this.#generation, this);
  };

  answer(answer) {
    const { door } = this.#exchanges;
    if (answer === NEEDS_BODY) {
      door.proceed(this.#connection, this.#generation);
      return;
    }
    if (answer === null) {
      door.abandon(this.#connection, this.#generation);
      return;
    }
    const { status, headers, body } = answer;
    const sentBody = this.method === 'HEAD' ? undefined : body;
    const fields = Buffer.from(fieldsText(headers), 'latin1');
    door.respond(this.#connection, this.#generation, statusLine(status), fields, sentBody);
  }
}

/** Replaces a closed native door: a program's answer may come after the close. */
const CLOSED_DOOR = { respond() {}, watch() {}, proceed() {}, abandon() {}, park: () => false };

/** A new connection may reuse the number before `cancelParked` is called for the old one. */
const keyOf = (connection, generation) => `${connection}/${generation}`;

/** The exchanges of one door. */
export class Exchanges {
  #handle;
  #answerFailure;
  /** Parked requests, by connection. @type {Map<string, Exchange>} */
  #parked = new Map();

  /** The native door. */
  door;

  /**
   * @param {object} parts
   * @param {(request: import('./routes.js').Request) => Promise<import('./routes.js').Answer | null | undefined>}
   *     parts.handle that of the routes
   * @param {(error: Error) => import('./routes.js').Answer} parts.answerFailure returns the answer for an answer that can't be sent
   */
  constructor({ handle, answerFailure }) {
    this.#handle = handle;
    this.#answerFailure = answerFailure;
  }

  /** Handles a request. The native door calls this. */
  handleRequest = async (connection, generation, ...requestParts) => {
    const exchange = new Exchange(this, connection, generation, requestParts);
    const answer = await this.#handle(exchange);
    this.#parked.delete(keyOf(connection, generation));
    if (answer === undefined) return;
    try {
      exchange.answer(answer);
    } catch (error) {
      exchange.answer(this.#answerFailure(error));
    }
  };

  /** Cancels the parked request of a closed connection. The native door calls this. */
  cancelParked = (connection, generation) => {
    const key = keyOf(connection, generation);
    const exchange = this.#parked.get(key);
    this.#parked.delete(key);
    exchange?.cancel();
  };

  /** Cancels all parked requests: a closed native door does not call `cancelParked` any more. */
  close() {
    this.door = CLOSED_DOOR;
    for (const exchange of this.#parked.values()) exchange.cancel();
    this.#parked.clear();
  }

  park(connection, generation, exchange) {
    const isConnected = this.door.park(connection, generation);
    if (isConnected) this.#parked.set(keyOf(connection, generation), exchange);
    else exchange.cancel();
  }

  watch(connection, generation, watchRequest) {
    const { hold = -1, last = -1, noneMatch = '', problems, grant, ...rest } = watchRequest;
    this.door.watch(connection, generation, {
      ...{ ...rest, hold, last, noneMatch },
      problems: problems?.map(outcomeNumber),
      grant: grant && nativeGrantOf(grant)
    });
  }
}
