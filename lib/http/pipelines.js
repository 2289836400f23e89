import { FairQueue } from '../base/fair-queue.js';
import { refuse } from './sockets.js';

/**
 * What a peer sends ahead to Node's server is given to Node's parser one request at a time: the next
 * one is read when the one before has been answered. So the requests of a connection are served in
 * their order (RFC 9112, section 9.3.2), and a peer can take the objects of one request and one
 * answer, however many it sends and however little it reads.
 *
 *   socket ─▶ rest ──one request, in the connection's turn──▶ Node's parser ─▶ serve ─▶ answer
 *              └─ no more is read above AHEAD: it waits in the kernel      ▲            │
 *                                                                          └── next ◀───┘
 *
 * A turn of the event loop serves the connections of the process for SHARE: however many there are,
 * the front door has its turns in between. Source addresses take turns: one with thousands of
 * connections does not stand before the others.
 *
 * Rejected: a Duplex between socket and server (as much memory again as a socket, and all of a
 * socket's other calls to pass on); to count the answers owed and close above a bound (Node's parser
 * makes the objects of all the requests in 64 kB, more than 2,000, before anybody is asked).
 */

/** Bytes sent ahead above which a connection is not read from; a read or two more may come. */
const AHEAD = 16384;

/** Bytes given to the parser at once, where no head ends in them: in chunks of one byte, 700. */
const SLICE = 4096;

/** Milliseconds of a turn of the event loop for all connections, and one request in any case. */
const SHARE = 0.25;

const HEAD_END = Buffer.from('\r\n\r\n');
const NOTHING = Buffer.alloc(0);

/** Connections that may go on: those of one address in the order in which they could. */
class Queue {
  #waiting = new FairQueue();
  /** Those that could go on again in this turn. @type {Pipeline[]} */
  #again = [];
  #turning = false;

  add(pipeline) {
    if (this.#turning) {
      this.#again.push(pipeline);
      return;
    }
    this.#waiting.add(pipeline.address, pipeline);
    if (this.#waiting.size === 1) setImmediate(() => this.#turn());
  }

  #turn() {
    const end = performance.now() + SHARE;
    this.#turning = true;
    // Each has one step, and its answer is on its way before it has another.
    do {
      this.#waiting.take().step();
    } while (this.#waiting.size > 0 && performance.now() < end);
    this.#turning = false;
    for (const pipeline of this.#again.splice(0)) this.#waiting.add(pipeline.address, pipeline);
    if (this.#waiting.size > 0) setImmediate(() => this.#turn());
  }
}

const queue = new Queue();

/** Takes over from the listener that was added last, and gives it back as a function. */
function takeOver(socket, event) {
  const listener = socket.listeners(event).at(-1);
  socket.off(event, listener);
  return (...args) => listener.apply(socket, args);
}

/** Answers that wait for something that may never come. @type {WeakSet<object>} */
const parked = new WeakSet();

/** Whose answer it is. @type {WeakMap<object, Pipeline>} */
const pipelines = new WeakMap();

/**
 * Says that an answer waits: for a sprite, or for news of a feed. A peer that has ended its half of
 * the connection is then taken for gone, as at the front door; every other answer it may still read.
 *
 * @param {import('node:http').ServerResponse} response
 */
export function park(response) {
  parked.add(response);
  // The peer may have ended its half while the request was still read.
  pipelines.get(response)?.look();
}

/** One connection: what its peer has sent ahead, and the request that is served. */
export class Pipeline {
  #socket;
  #parse;
  #finish;
  #rest = NOTHING;
  #queued = false;
  /** The peer has said that it sends no more. */
  #ended = false;
  /** What follows is no request: the connection ends when all before it has been answered. */
  #refusal;
  #refused = false;
  /**
   * Requests that were parsed and not answered; the first is served, a second may have come in one
   * slice with the body of the first: {request, response, serve}.
   */
  #open = [];

  /**
   * @param {import('node:net').Socket} socket that Node's HTTP server has just been given: this takes
   *     over from its listeners to 'data' and 'end'
   * @param {string} address its client's, as far as it is known
   */
  constructor(socket, address) {
    this.#socket = socket;
    this.address = address;
    this.#parse = takeOver(socket, 'data');
    this.#finish = takeOver(socket, 'end');
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('end', () => {
      this.#ended = true;
      this.#goOn();
    });
    // Node's server lets a socket flow again whenever it is done with a request.
    socket.on('resume', () => this.#brake());
    socket.on('drain', () => this.#goOn());
  }

  /**
   * Serves a request when those before it have been answered.
   *
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   * @param {() => void} serve
   */
  add(request, response, serve) {
    this.#open.push({ request, response, serve });
    pipelines.set(response, this);
    response.on('close', () => this.#answered(response));
    if (this.#open.length === 1) serve();
  }

  /**
   * Ends the connection with a problem, when all that was asked before is answered. A request that
   * is broken off gets the problem for its answer; where that one has begun, the connection is lost.
   *
   * @param {string} name the problem
   * @param {Record<string, string | number>} headers
   */
  refuse(name, headers) {
    if (this.#refusal !== undefined) return;
    this.#refusal = () => refuse(this.#socket, name, headers);
    this.#rest = NOTHING;
    this.#brake();
    const broken = this.#open.findIndex(({ request }) => !request.complete);
    const begun = broken >= 0 && this.#open.splice(broken)[0].response.headersSent;
    if (begun) this.#socket.destroy();
    else this.#refuseInTurn();
  }

  #refuseInTurn() {
    if (this.#open.length > 0) return;
    this.#refused = true;
    this.#refusal();
  }

  #take(chunk) {
    if (this.#refusal !== undefined) return;
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#brake();
    this.#goOn();
  }

  #brake() {
    const waits = this.#refusal !== undefined && !this.#refused;
    if (waits || this.#rest.length >= AHEAD) this.#socket.pause();
  }

  #answered(response) {
    const at = this.#open.findIndex((one) => one.response === response);
    // One that was broken off is not there any more.
    if (at < 0) return;
    this.#open.splice(at, 1);
    if (this.#socket.destroyed) return;
    if (this.#open.length > 0) this.#open[0].serve();
    else if (this.#refusal !== undefined) this.#refuseInTurn();
    this.#goOn();
  }

  /** Whether the parser may have more: of the request that is arriving, or the next one. */
  #mayParse() {
    if (this.#socket.writableNeedDrain) return false;
    return this.#open.length === 0 || !this.#open.at(-1).request.complete;
  }

  #waits({ request, response }) {
    return parked.has(response) && request.complete && !response.writableEnded;
  }

  /** Whether a peer that sends no more has had all its answers, or is taken for gone. */
  #mayFinish() {
    if (!this.#ended) return false;
    if (this.#open.length > 0 && this.#waits(this.#open[0])) return true;
    // Of a request that is broken off Node's parser makes an error.
    const whole = this.#open.length > 0 && this.#open.at(-1).request.complete;
    return this.#rest.length === 0 && !whole;
  }

  #goOn() {
    if (this.#queued || this.#refusal !== undefined || this.#socket.destroyed) return;
    if (!this.#mayFinish() && (this.#rest.length === 0 || !this.#mayParse())) return;
    this.#queued = true;
    queue.add(this);
  }

  /** Something has changed that decides how to go on. */
  look() {
    this.#goOn();
  }

  /** Gives the parser a slice of what has come: up to the end of a head, if there is one. */
  step() {
    this.#queued = false;
    if (this.#refusal !== undefined || this.#socket.destroyed) return;
    if (this.#rest.length > 0 && this.#mayParse()) {
      const end = this.#rest.subarray(0, SLICE).indexOf(HEAD_END);
      const length = end < 0 ? SLICE : end + HEAD_END.length;
      const slice = this.#rest.subarray(0, length);
      this.#rest = this.#rest.subarray(length);
      this.#parse(slice);
    } else if (this.#mayFinish()) {
      this.#ended = false;
      this.#finish();
    }
    if (this.#rest.length < AHEAD && this.#socket.isPaused()) this.#socket.resume();
    this.#goOn();
  }
}
