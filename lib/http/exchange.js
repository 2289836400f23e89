import { STATUS_CODES } from 'node:http';

import { outcomes } from './outcomes.js';
import { Awaited, AWAITS } from './routes.js';

/**
 * One exchange at the front door that is not hot: what the door has read becomes a request of the routes, and what they
 * say its answer.
 */

/** A request target in origin form, of an absolute one too, which may have no path (RFC 9112, section 3.2). */
const originOf = (target) => target.replace(/^https?:\/\/[^/?#]*\/?/i, '/');

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
  // "*" and the like are no path of ours, and "join" is not "/join": no segment has a slash.
  const segments = path.startsWith('/') ? path.split('/').slice(1) : [`/${path}`];
  return { path: segments, query };
}

/** Fields by their names in lower case; those of one name as one list (RFC 9110, section 5.3; RFC 6265, section 5.4). */
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

/** What no field may have: it could end there, and another begin. Above ASCII a character is a byte, as `Headers` has it. */
const UNFIT = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * The fields of an answer, and the empty line behind them.
 *
 * @param {Record<string, string | number | string[]>} headers a list is a field each
 * @returns {string}
 * @throws {TypeError} when a value is none
 */
function fieldsText(headers) {
  let text = '';
  for (const [name, values] of Object.entries(headers)) {
    for (const value of [values].flat()) {
      if (UNFIT.test(value)) throw new TypeError(`no value of a field ${name}`);
      text += `${name}: ${value}\r\n`;
    }
  }
  return `${text}\r\n`;
}

/**
 * A whole answer as text, without its Date and what becomes of its connection: these the door knows.
 *
 * @param {{status: number, headers: Record<string, string | number>, body?: string}} answer
 * @returns {string}
 */
export function answerText({ status, headers, body = '' }) {
  return statusLine(status) + fieldsText(headers) + body;
}

/** A problem as the native door has it. */
const outcomeOf = (problem = 'ok') => outcomes.indexOf(problem);

/** A grant as the native table of grants has it, or a token that is none; `left`: how long it lives, in milliseconds. */
const nativeOf = ({ token, exp = 0, read = [], jti = '', sub = '', key = '', present }) => ({
  ...{ token, read, jti, sub, key, present },
  left: Math.max(0, exp * 1000 - Date.now())
});

/** A request as the routes want it: see Request in routes.js. */
class Exchange {
  #exchanges;
  #connection;
  #generation;
  #body;

  constructor(exchanges, connection, generation, given) {
    const [method, target, fields, body, address, secure, transient] = given;
    this.#exchanges = exchanges;
    this.#connection = connection;
    this.#generation = generation;
    this.#body = body;
    this.target = originOf(target);
    const { path, query } = readTarget(this.target);
    this.method = method;
    this.path = path;
    this.query = query;
    this.headers = readFields(fields);
    this.address = address;
    this.secure = secure;
    this.transient = transient;
  }

  body(most) {
    if (this.#body === undefined) throw new Awaited();
    return this.#body === null || this.#body.length > most ? null : this.#body;
  }

  watch(wanted) {
    this.#exchanges.watch(this.#connection, this.#generation, wanted);
  }

  park = (cancel) => {
    this.cancel = cancel;
    this.#exchanges.park(this.#connection, this.#generation, this);
  };

  answer(answer) {
    const { door } = this.#exchanges;
    if (answer === AWAITS) {
      door.proceed(this.#connection, this.#generation);
      return;
    }
    if (answer === null) {
      door.abandon(this.#connection, this.#generation);
      return;
    }
    const { status, headers, body } = answer;
    const sent = this.method === 'HEAD' ? undefined : body;
    const fields = Buffer.from(fieldsText(headers), 'latin1');
    door.respond(this.#connection, this.#generation, statusLine(status), fields, sent);
  }
}

/** In place of a native door that is closed: a program's answer may come later still. */
const CLOSED = { respond() {}, watch() {}, proceed() {}, abandon() {}, park: () => false };

/** Another connection may have the number before it is told that the one before is gone. */
const keyOf = (connection, generation) => `${connection}/${generation}`;

/** The exchanges of one door. */
export class Exchanges {
  #handle;
  #failed;
  /** Parked requests, by their connections. @type {Map<string, Exchange>} */
  #parked = new Map();

  /** The native door. */
  door;

  /**
   * @param {object} parts
   * @param {(request: import('./routes.js').Request) => Promise<import('./routes.js').Answer | null | undefined>}
   *     parts.handle as that of the routes
   * @param {(error: Error) => import('./routes.js').Answer} parts.failed says what to answer when an answer can't be sent
   */
  constructor({ handle, failed }) {
    this.#handle = handle;
    this.#failed = failed;
  }

  /** Handles a request: called by the native door. */
  begin = async (connection, generation, ...rest) => {
    const exchange = new Exchange(this, connection, generation, rest);
    const answer = await this.#handle(exchange);
    this.#parked.delete(keyOf(connection, generation));
    if (answer === undefined) return;
    try {
      exchange.answer(answer);
    } catch (error) {
      exchange.answer(this.#failed(error));
    }
  };

  /** The connection of a parked request is gone: called by the native door. */
  gone = (connection, generation) => {
    const key = keyOf(connection, generation);
    const exchange = this.#parked.get(key);
    this.#parked.delete(key);
    exchange?.cancel();
  };

  /** The native door is closed, and its workers tell of no connection any more. */
  close() {
    this.door = CLOSED;
    for (const exchange of this.#parked.values()) exchange.cancel();
    this.#parked.clear();
  }

  park(connection, generation, exchange) {
    const isThere = this.door.park(connection, generation);
    if (isThere) this.#parked.set(keyOf(connection, generation), exchange);
    else exchange.cancel();
  }

  watch(connection, generation, wanted) {
    const { hold = -1, last = -1, noneMatch = '', problems, grant, ...rest } = wanted;
    this.door.watch(connection, generation, {
      ...{ ...rest, hold, last, noneMatch },
      problems: problems?.map(outcomeOf),
      grant: grant && nativeOf(grant)
    });
  }
}
