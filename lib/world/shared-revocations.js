import { isLater, REVOCABLE_PARTS } from '../grants/revocations.js';
import { isName } from '../grants/rights.js';
import { clock as systemClock } from './clock.js';
import { tokenOf } from './feed-message.js';
import { REQUEST_TIMEOUT } from './nats-link.js';
import { READ_ALL_TIMEOUT, readNewest } from './read-newest.js';
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
const NEWS_SUBJECTS = 'sprites.revoked-news';

/** Interval between two checks of the stream's last number, in milliseconds. */
const CHECK_INTERVAL = 2000;

/** Most new messages that are read one by one; with more, all messages are read. */
const MAX_READ_SINGLY = 100;

/** How much longer than its longest life the stream keeps a revocation, in milliseconds: servers' clocks differ. */
const CLOCK_MARGIN = 3600 * 1000;

const CONFIG = {
  name: STREAM,
  description: 'Grants revoked in a world of Sprites',
  subjects: [`${SUBJECTS}.>`],
  max_msgs_per_subject: 1,
  republish: { src: `${SUBJECTS}.>`, dest: `${NEWS_SUBJECTS}.>` }
};

const isOurs = ({ config }) =>
  config.republish?.dest === CONFIG.republish.dest && config.max_msgs_per_subject === 1;

/** @returns {string} the subject of `sub/ann` */
function subjectOf(revokedName) {
  return `${SUBJECTS}.${revokedName.slice(0, 3)}.${tokenOf(revokedName.slice(4))}`;
}

/** @returns {{revokedName: string, end: number} | undefined} undefined for an invalid message */
function parse({ subject, data }) {
  const [part, token] = subject.split('.').slice(-2);
  const name = Buffer.from(token, 'base64url').toString();
  const text = Buffer.from(data).toString();
  const isValid =
    REVOCABLE_PARTS.includes(part) &&
    // Bytes that are not UTF-8 become three times as long as text: too long for the name of a note.
    isName(name) &&
    tokenOf(name) === token &&
    /^-?[1-9][0-9]{12}$/.test(text);
  return isValid ? { revokedName: `${part}/${name}`, end: Number(text) } : undefined;
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
  #readUpTo = 0;
  /** Whether all messages must be read; whether they are being read. */
  #mustRead = true;
  #isReading = false;
  #isChecking = false;
  #isClosed = false;
  #cancelTimer = () => {};
  /** Revocations that could not be written. @type {Set<string>} */
  #unshared = new Set();
  /** The problem that was logged last. */
  #loggedProblem;
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
    this.#config = { ...CONFIG, max_age: (grants.revocations.longest + CLOCK_MARGIN) * 1e6 };
    grants.revocations.setSharing((revokedName, end) => this.#share(revokedName, end));
    const onMissed = () => this.#readAgain();
    link.subscribe(`${NEWS_SUBJECTS}.>`, (message) => this.#receive(message), onMissed);
  }

  start() {
    this.#check();
  }

  /** @returns {Promise<void>} resolves when this server has all that the stream has now */
  join() {
    const complete = new Promise((resolve) => this.#waiters.push(resolve));
    this.#readAgain();
    return complete;
  }

  close() {
    this.#isClosed = true;
    this.#cancelTimer();
  }

  #readAgain() {
    this.#mustRead = true;
    this.#check();
  }

  /** Takes a message, or writes a later end of this server. @returns {string | undefined} the name in the message */
  #receive(message) {
    const { revokedName, end } = parse(message) ?? {};
    if (revokedName === undefined) return undefined;
    const known = this.#grants.revocations.endOf(revokedName);
    if (isLater(known, end)) this.#share(revokedName, known);
    else this.#grants.mergeRevocation(revokedName, end);
    return revokedName;
  }

  /** Writes a revocation to the stream. @returns {Promise<boolean>} whether it was written; otherwise it is written later */
  async #share(revokedName, end) {
    const subject = subjectOf(revokedName);
    const data = String(end);
    try {
      if (!parse({ subject, data })) {
        throw new WorldError('clock', `the clock here says ${new Date().toISOString()}`);
      }
      const publish = ({ js }) => js.publish(subject, data);
      await this.#link.request(publish, { kind: 'write', timeout: REQUEST_TIMEOUT });
      if (this.#grants.revocations.endOf(revokedName) === end) this.#unshared.delete(revokedName);
      return true;
    } catch (error) {
      this.#unshared.add(revokedName);
      // A missing stream gives this error, too: the next check finds the reason.
      if (error.code !== 'no-jetstream') this.#logProblem(error);
      return false;
    }
  }

  async #check() {
    if (this.#isChecking || this.#isClosed) return;
    this.#isChecking = true;
    this.#cancelTimer();
    try {
      // News that were missed meanwhile need another check.
      do await this.#checkOnce();
      while (this.#mustRead && !this.#isReading && this.#link.isConnected);
    } catch (error) {
      this.#logProblem(error);
    }
    this.#isChecking = false;
    if (this.#isClosed) return;
    this.#cancelTimer = this.#clock.after(CHECK_INTERVAL, () => this.#check());
  }

  #logProblem({ code = 'unreachable', message }) {
    if (this.#loggedProblem === code) return;
    this.#loggedProblem = code;
    this.#log.warn({ problem: code }, `revocations stay at this server: ${message}`);
  }

  async #checkOnce() {
    // A lost connection reconnects by itself, and then calls `onMissed`.
    if (this.#link.isLost) return;
    await this.#link.open();
    const { identity, state } = await this.#link.request(({ jsm }) =>
      this.#link.openStream(jsm, this.#config, isOurs)
    );
    const last = state.last_seq;
    const sharedCount = this.#grants.revocations.all().size - this.#unshared.size;
    const isPurged = state.messages < sharedCount;
    const isReplacedOrPurged = identity !== this.#identity || last < this.#readUpTo || isPurged;
    this.#identity = identity;
    if (isReplacedOrPurged || last > this.#readUpTo + MAX_READ_SINGLY) this.#mustRead = true;
    // Reading all may take long: the checks go on meanwhile.
    if (this.#mustRead && !this.#isReading) this.#readAll(last);
    else if (last > this.#readUpTo)
      await this.#catchUp(Math.min(last, this.#readUpTo + MAX_READ_SINGLY));
    this.#retryUnshared();
    this.#resolveWaiters();
  }

  /** Writes the revocations that could not be written before. */
  #retryUnshared() {
    for (const revokedName of this.#unshared) {
      const end = this.#grants.revocations.endOf(revokedName);
      if (end === 0) this.#unshared.delete(revokedName);
      else this.#share(revokedName, end);
    }
    if (
      this.#loggedProblem === undefined ||
      this.#mustRead ||
      this.#isReading ||
      this.#unshared.size > 0
    )
      return;
    this.#loggedProblem = undefined;
    this.#log.info('revocations are shared again');
  }

  /** Reads the new messages. */
  async #catchUp(last) {
    const numbers = Array.from(
      { length: last - this.#readUpTo },
      (_, at) => this.#readUpTo + 1 + at
    );
    const messages = await this.#link.request(({ jsm }) =>
      Promise.all(numbers.map((seq) => jsm.streams.getMessage(STREAM, { seq })))
    );
    for (const message of messages) if (message) this.#receive(message);
    this.#readUpTo = last;
  }

  /** Reads all messages. Writes the revocations that only this server has. */
  async #readAll(last) {
    this.#mustRead = false;
    this.#isReading = true;
    this.#readUpTo = last;
    const receivedNames = new Set();
    const onMessage = (message) => receivedNames.add(this.#receive(message));
    try {
      const readStream = (jetstream) => readNewest(jetstream, STREAM, {}, onMessage);
      await this.#link.request(readStream, {
        timeout: READ_ALL_TIMEOUT,
        eachTimeout: REQUEST_TIMEOUT
      });
      for (const [revokedName, end] of this.#grants.revocations.all()) {
        if (!receivedNames.has(revokedName)) this.#share(revokedName, end);
      }
    } catch (error) {
      this.#mustRead = true;
      this.#logProblem(error);
    }
    this.#isReading = false;
    this.#resolveWaiters();
  }

  #resolveWaiters() {
    if (this.#mustRead || this.#isReading) return;
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}
