import { isLater, PARTS } from '../grants/revocations.js';
import { isName } from '../grants/rights.js';
import { clock as systemClock } from './clock.js';
import { tokenOf } from './feed-message.js';
import { PATIENCE } from './nats-link.js';
import { PATIENCE_FOR_ALL, readNewest } from './read-newest.js';
import { WorldError } from './world-error.js';

/**
 * Grants that are revoked at one server of a world are at all: a stream of JetStream has the newest message of each name,
 * and publishes each again.
 *
 *     sprites.revoked.sub.YW5u  ─▶  1763785200000      see lib/grants/revocations.js; the name is in base64url
 *
 * What is known here and what the stream says are compared, and the later one goes to where it is not. So nothing depends
 * on an order: a server that was away, and a stream that was lost, come to the same in the end. A server takes part
 * whenever it reaches the NATS server, a member of the ring or not.
 *
 * News are taken as they come, and what they say of their numbers is not: every client of NATS can publish them. What was
 * missed is found by the number that the stream has come to, also while all messages are being read.
 */

/** The stream. */
export const STREAM = 'sprites-revoked';

const SUBJECTS = 'sprites.revoked';

/** Where messages are published again. */
const NEWS = 'sprites.revoked-news';

/** How often it looks what the stream has come to, milliseconds. */
const LOOK = 2000;

/** New messages that are asked for one by one; where there are more all are read. */
const FEW = 100;

/** How much longer the stream keeps a revocation than it can last, milliseconds: servers' clocks differ. */
const LONGER = 3600 * 1000;

const CONFIG = {
  name: STREAM,
  description: 'Grants revoked in a world of Sprites',
  subjects: [`${SUBJECTS}.>`],
  max_msgs_per_subject: 1,
  republish: { src: `${SUBJECTS}.>`, dest: `${NEWS}.>` }
};

const isOurs = ({ config }) =>
  config.republish?.dest === CONFIG.republish.dest && config.max_msgs_per_subject === 1;

/** @returns {string} the subject of `sub/ann` */
function subjectOf(what) {
  return `${SUBJECTS}.${what.slice(0, 3)}.${tokenOf(what.slice(4))}`;
}

/** @returns {{what: string, end: number} | undefined} undefined for what no server has written */
function read({ subject, data }) {
  const [part, token] = subject.split('.').slice(-2);
  const name = Buffer.from(token, 'base64url').toString();
  const text = Buffer.from(data).toString();
  const sound =
    PARTS.includes(part) &&
    // Bytes that are no UTF-8 are three times as long as text: longer than the name of a note may be.
    isName(name) &&
    tokenOf(name) === token &&
    /^-?[1-9][0-9]{12}$/.test(text);
  return sound ? { what: `${part}/${name}`, end: Number(text) } : undefined;
}

export class SharedRevocations {
  #link;
  #grants;
  #log;
  #clock;
  #config;
  /** Which stream it is, in which run of the NATS server. */
  #identity;
  /** All messages up to that number are here, or are being read. */
  #upTo = 0;
  /** Whether all messages must be read; whether that is under way. */
  #mustRead = true;
  #reading = false;
  #looking = false;
  #closed = false;
  #timer = () => {};
  /** Those that could not be written. @type {Set<string>} */
  #unshared = new Set();
  /** The problem that the log has. */
  #said;
  /** Told when all are here. @type {(() => void)[]} */
  #waiters = [];

  /**
   * @param {object} parts
   * @param {import('./nats-link.js').NatsLink} parts.link
   * @param {import('../grants/open.js').Grants} parts.grants
   * @param {import('pino').Logger} parts.log
   * @param {typeof systemClock} [parts.clock]
   */
  constructor({ link, grants, log, clock = systemClock }) {
    this.#link = link;
    this.#grants = grants;
    this.#log = log;
    this.#clock = clock;
    this.#config = { ...CONFIG, max_age: (grants.revocations.longest + LONGER) * 1e6 };
    grants.revocations.shareBy((what, end) => this.#share(what, end));
    const missed = () => this.#missed();
    link.hear(`${NEWS}.>`, (message) => this.#take(message), missed);
  }

  start() {
    this.#look();
  }

  /** @returns {Promise<void>} when what the stream has now is here */
  join() {
    const complete = new Promise((then) => this.#waiters.push(then));
    this.#missed();
    return complete;
  }

  close() {
    this.#closed = true;
    this.#timer();
  }

  #missed() {
    this.#mustRead = true;
    this.#look();
  }

  /** Takes what the stream says, or says what is later here. @returns {string | undefined} what a message is about */
  #take(message) {
    const { what, end } = read(message) ?? {};
    if (what === undefined) return undefined;
    const known = this.#grants.revocations.endOf(what);
    if (isLater(known, end)) this.#share(what, known);
    else this.#grants.takeRevoked(what, end);
    return what;
  }

  /** Writes one to the stream. @returns {Promise<boolean>} whether it is there; else it is written later */
  async #share(what, end) {
    const subject = subjectOf(what);
    const data = String(end);
    try {
      if (!read({ subject, data })) {
        throw new WorldError('clock', `the clock here says ${new Date().toISOString()}`);
      }
      await this.#link.ask(({ js }) => js.publish(subject, data), PATIENCE);
      if (this.#grants.revocations.endOf(what) === end) this.#unshared.delete(what);
      return true;
    } catch (error) {
      this.#unshared.add(what);
      // So it is where there is no stream, too: looking finds out why.
      if (error.code !== 'no-jetstream') this.#fail(error);
      return false;
    }
  }

  async #look() {
    if (this.#looking || this.#closed) return;
    this.#looking = true;
    this.#timer();
    try {
      // What has been missed meanwhile has it look once more.
      do await this.#lookOnce();
      while (this.#mustRead && !this.#reading && this.#link.connected);
    } catch (error) {
      this.#fail(error);
    }
    this.#looking = false;
    if (this.#closed) return;
    this.#timer = this.#clock.after(LOOK, () => this.#look());
  }

  #fail({ code = 'unreachable', message }) {
    if (this.#said === code) return;
    this.#said = code;
    this.#log.warn({ problem: code }, `revocations stay at this server: ${message}`);
  }

  async #lookOnce() {
    // Where the connection is lost it comes back by itself, and says so.
    if (this.#link.isLost) return;
    await this.#link.open();
    const { identity, state } = await this.#link.ask(({ jsm }) =>
      this.#link.stream(jsm, this.#config, isOurs)
    );
    const last = state.last_seq;
    const written = this.#grants.revocations.all().size - this.#unshared.size;
    const isPurged = state.messages < written;
    const isOther = identity !== this.#identity || last < this.#upTo || isPurged;
    this.#identity = identity;
    if (isOther || last > this.#upTo + FEW) this.#mustRead = true;
    // It may take long: looking goes on meanwhile.
    if (this.#mustRead && !this.#reading) this.#readAll(last);
    else if (last > this.#upTo) await this.#catchUp(Math.min(last, this.#upTo + FEW));
    this.#shareAgain();
    this.#tell();
  }

  /** Writes what could not be. */
  #shareAgain() {
    for (const what of this.#unshared) {
      const end = this.#grants.revocations.endOf(what);
      if (end === 0) this.#unshared.delete(what);
      else this.#share(what, end);
    }
    if (this.#said === undefined || this.#mustRead || this.#reading || this.#unshared.size > 0)
      return;
    this.#said = undefined;
    this.#log.info('revocations are shared again');
  }

  /** Asks for what is new. */
  async #catchUp(last) {
    const numbers = Array.from({ length: last - this.#upTo }, (_, at) => this.#upTo + 1 + at);
    const messages = await this.#link.ask(({ jsm }) =>
      Promise.all(numbers.map((seq) => jsm.streams.getMessage(STREAM, { seq })))
    );
    for (const message of messages) if (message) this.#take(message);
    this.#upTo = last;
  }

  /** Reads all there are; what is here alone is written. */
  async #readAll(last) {
    this.#mustRead = false;
    this.#reading = true;
    this.#upTo = last;
    const found = new Set();
    const take = (message) => found.add(this.#take(message));
    try {
      const ask = (jetstream) => readNewest(jetstream, STREAM, {}, take);
      await this.#link.ask(ask, PATIENCE_FOR_ALL, PATIENCE);
      for (const [what, end] of this.#grants.revocations.all()) {
        if (!found.has(what)) this.#share(what, end);
      }
    } catch (error) {
      this.#mustRead = true;
      this.#fail(error);
    }
    this.#reading = false;
    this.#tell();
  }

  #tell() {
    if (this.#mustRead || this.#reading) return;
    for (const told of this.#waiters.splice(0)) told();
  }
}
