import { isLater, PARTS } from '../grants/revocations.js';
import { isName } from '../grants/rights.js';
import { clock as systemClock } from './clock.js';
import { tokenOf } from './feed-message.js';
import { PATIENCE } from './nats-link.js';
import { PATIENCE_FOR_ALL, readNewest } from './read-newest.js';
import { WorldError } from './world-error.js';

/**
 * Revocations that hold at all servers of a world. A stream of JetStream has the newest message of each name, and publishes
 * each message again.
 *
 *     sprites.revoked.sub.YW5u  ─▶  1763785200000      see lib/grants/revocations.js; the name is in base64url
 *
 * Each server compares its own revocations with the stream's, and copies the later ones to the other side. So the order
 * does not matter: a server that was away, and a stream that was lost, reach the same content. A server takes part whenever
 * it reaches the NATS server, as a member of the ring or not.
 *
 * News are taken as they come, but their sequence numbers are not trusted: every client of NATS can publish news. Missed
 * messages show in the stream's last number, also while all messages are being read.
 */

/** The stream. */
export const STREAM = 'sprites-revoked';

const SUBJECTS = 'sprites.revoked';

/** Prefix of the subjects of news. */
const NEWS = 'sprites.revoked-news';

/** Interval between two looks at the stream's last number, in milliseconds. */
const LOOK = 2000;

/** Most new messages that are read one by one; with more, all messages are read. */
const FEW = 100;

/** How much longer than its longest life the stream keeps a revocation, in milliseconds: servers' clocks differ. */
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

/** @returns {{what: string, end: number} | undefined} undefined for an invalid message */
function read({ subject, data }) {
  const [part, token] = subject.split('.').slice(-2);
  const name = Buffer.from(token, 'base64url').toString();
  const text = Buffer.from(data).toString();
  const sound =
    PARTS.includes(part) &&
    // Bytes that are not UTF-8 become three times as long as text: too long for the name of a note.
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
  /** Identity of the stream and of the run of the NATS server. */
  #identity;
  /** All messages up to this number were read, or are being read. */
  #upTo = 0;
  /** Whether all messages must be read; whether they are being read. */
  #mustRead = true;
  #reading = false;
  #looking = false;
  #closed = false;
  #timer = () => {};
  /** Revocations that could not be written. @type {Set<string>} */
  #unshared = new Set();
  /** The problem that was logged last. */
  #said;
  /** Callbacks for the moment when all messages are read. @type {(() => void)[]} */
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

  /** @returns {Promise<void>} resolves when this server has all that the stream has now */
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

  /** Takes a message, or writes a later end of this server. @returns {string | undefined} the name in the message */
  #take(message) {
    const { what, end } = read(message) ?? {};
    if (what === undefined) return undefined;
    const known = this.#grants.revocations.endOf(what);
    if (isLater(known, end)) this.#share(what, known);
    else this.#grants.takeRevoked(what, end);
    return what;
  }

  /** Writes a revocation to the stream. @returns {Promise<boolean>} whether it was written; otherwise it is written later */
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
      // A missing stream gives this error, too: the next look finds the reason.
      if (error.code !== 'no-jetstream') this.#fail(error);
      return false;
    }
  }

  async #look() {
    if (this.#looking || this.#closed) return;
    this.#looking = true;
    this.#timer();
    try {
      // News that were missed meanwhile need another look.
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
    // A lost connection reconnects by itself, and then calls `missed`.
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
    // Reading all may take long: the looks go on meanwhile.
    if (this.#mustRead && !this.#reading) this.#readAll(last);
    else if (last > this.#upTo) await this.#catchUp(Math.min(last, this.#upTo + FEW));
    this.#shareAgain();
    this.#tell();
  }

  /** Writes the revocations that could not be written before. */
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

  /** Reads the new messages. */
  async #catchUp(last) {
    const numbers = Array.from({ length: last - this.#upTo }, (_, at) => this.#upTo + 1 + at);
    const messages = await this.#link.ask(({ jsm }) =>
      Promise.all(numbers.map((seq) => jsm.streams.getMessage(STREAM, { seq })))
    );
    for (const message of messages) if (message) this.#take(message);
    this.#upTo = last;
  }

  /** Reads all messages. Writes the revocations that only this server has. */
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
