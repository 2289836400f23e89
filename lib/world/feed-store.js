import { randomUUID } from 'node:crypto';

import { HEAD_BYTES, keyOf, readHead, SUBJECTS, tokenOf, writeHead } from './feed-message.js';
import { PATIENCE, revisionOf } from './nats-link.js';
import { PATIENCE_FOR_ALL, readNewest } from './read-newest.js';

/**
 * Where a world's feeds are: a stream of JetStream with the newest message of each key (feed-message.js), by a connection
 * of its own: what is large waits for what is large, and no lease waits for either.
 *
 * A write is a compare-and-set on the revision of the key's message before, so what servers publish at once has one order.
 * The store publishes each head again, without its body (`republish`): a server that hears of it asks for the value when it has
 * room for it, and gets the newest one. So nothing is queued for a slow server, and a value crosses once a server.
 *
 * The older items of logs are in a stream of their own, a message a part, which is written once and is no news.
 *
 * Heads are all read, without bodies, when a server has come to the store or may have missed some.
 */

/** The stream. */
export const STREAM = 'sprites-feeds';

/** That of the parts of logs; the key, the epoch and the version of the part's newest item follow. */
const PARTS = 'sprites-log-parts';
const PART_SUBJECTS = 'sprites.log-parts';

/** Where heads are published again. */
const NEWS = 'sprites.feed-news';

/** How long a value may take, milliseconds: it may be large, and the line slow. */
const PATIENCE_FOR_VALUE = 8000;

/** How long its connection may be silent: an answer may wait behind a value, milliseconds. */
export const SILENCE = 10_000;

/** Bytes that a line carries in a millisecond at the least: so long a write may take, and PATIENCE more. */
const SLOWEST = 32;

/** The stream's configuration; what an operator may change (storage) is not in it. */
const CONFIG = {
  name: STREAM,
  description: 'Feeds of a world of Sprites',
  subjects: [`${SUBJECTS}.>`],
  max_msgs_per_subject: 1,
  allow_direct: true,
  republish: { src: `${SUBJECTS}.>`, dest: `${NEWS}.>`, headers_only: true }
};

const PARTS_CONFIG = {
  name: PARTS,
  description: 'Older items of logs in a world of Sprites',
  subjects: [`${PART_SUBJECTS}.>`],
  max_msgs_per_subject: 1,
  allow_direct: true
};

const partsOf = (key, epoch) => `${PART_SUBJECTS}.${tokenOf(key)}.${epoch}`;

const isOurs = ({ config, state }) =>
  config.republish?.dest === CONFIG.republish.dest &&
  config.republish.headers_only === true &&
  config.allow_direct === true &&
  config.max_msgs_per_subject === 1 &&
  // Another program may have purged it up to any number.
  Number.isSafeInteger(state.last_seq);

export class FeedStore {
  #link;
  #by;
  /** Bytes of values that are being written, and values that are being read. */
  #writing = 0;
  #reading = 0;
  /** Whether several NATS servers keep the stream. */
  #isReplicated = false;
  /** A run of this server's own: see `run`. */
  #own = randomUUID().replaceAll('-', '');
  #watcher = { news() {}, missed() {} };

  /**
   * @param {import('./nats-link.js').NatsLink} link for it alone
   * @param {string} by this server's name
   */
  constructor(link, by) {
    this.#link = link;
    this.#by = by;
    const missed = () => this.#watcher.missed();
    link.hear(`${NEWS}.>`, (message) => this.#hear(message), missed);
  }

  /** @param {{news: (key: string, revision: number) => void, missed: () => void}} watcher */
  watch(watcher) {
    this.#watcher = watcher;
  }

  /** @returns {boolean} whether it is worth asking */
  get connected() {
    return this.#link.connected;
  }

  /** @returns {boolean} whether the connection is lost, and comes back by itself */
  get isLost() {
    return this.#link.isLost;
  }

  /** @returns {number} bytes that a message's body may have */
  get room() {
    return this.#link.largest - HEAD_BYTES;
  }

  /**
   * @returns {string | undefined} the run of the NATS server: in another one it may have forgotten writes. A cluster may
   *     have done so at any time, with a new leader, and clients are not told: there it is this server's own, so no server goes on
   *     with an epoch of another one
   */
  get run() {
    return this.#isReplicated ? this.#own : this.#link.run;
  }

  #hear({ subject, headers }) {
    const key = keyOf(subject);
    const revision = revisionOf(headers);
    if (key !== undefined && revision > 0) this.#watcher.news(key, revision);
  }

  /**
   * Connects, where that has not been done.
   *
   * @returns {Promise<{identity: string, last: number, messages: number}>} which store it is, in which run of the NATS
   *     server, by which leader; the revision it has come to, and how many messages it has
   * @throws {WorldError}
   */
  async open() {
    await this.#link.open();
    const ask = async ({ jsm }) => {
      await this.#link.stream(jsm, PARTS_CONFIG, () => true);
      const { config, state, identity } = await this.#link.stream(jsm, CONFIG, isOurs);
      this.#isReplicated = this.#link.replicas > 1 || config.num_replicas > 1;
      return { identity, last: state.last_seq, messages: state.messages };
    };
    return this.#ask(ask, this.#patience() + PATIENCE);
  }

  /** @returns {Promise<Map<string, import('./feed-message.js').Head>>} all there are */
  heads() {
    const ask = async (jetstream) => {
      const heads = new Map();
      await readNewest(jetstream, STREAM, { headers_only: true }, ({ subject, headers, seq }) => {
        const key = keyOf(subject);
        if (key !== undefined) heads.set(key, headOf(headers, seq));
      });
      return heads;
    };
    return this.#link.ask(ask, PATIENCE_FOR_ALL, this.#patience());
  }

  /**
   * @param {string} key
   * @returns {Promise<(import('./feed-message.js').Head & {body: Uint8Array}) | undefined>} the newest version
   */
  get(key) {
    return this.#get(STREAM, `${SUBJECTS}.${tokenOf(key)}`);
  }

  async #get(stream, subject) {
    const ask = async ({ jsm }) => {
      // Directly any replica answers, one that is behind as well; else the leader.
      const from = this.#isReplicated ? jsm.streams : jsm.direct;
      const message = await from.getMessage(stream, { last_by_subj: subject });
      if (!message) return undefined;
      // A part of a larger buffer, which would go to a thread as a whole.
      return { ...headOf(message.header, message.seq), body: Uint8Array.from(message.data) };
    };
    this.#reading += 1;
    try {
      return await this.#ask(ask);
    } finally {
      this.#reading -= 1;
    }
  }

  /**
   * Writes a version.
   *
   * @param {string} key
   * @param {import('./feed-message.js').Head} head
   * @param {Uint8Array} body at most `room` bytes
   * @param {number} revision of the message that it follows; 0: there is none
   * @returns {Promise<number>} its own
   * @throws {Conflict} when another one has come before
   * @throws {WorldError} when it may have been written or not
   */
  put(key, head, body, revision) {
    const expect = { lastSubjectSequence: revision };
    return this.#put(`${SUBJECTS}.${tokenOf(key)}`, head, body, expect);
  }

  async #put(subject, head, body, expect) {
    const ask = async ({ js, headersOf }) => {
      const { seq } = await js.publish(subject, body, {
        headers: headersOf(writeHead(head, this.#by)),
        ...(expect && { expect })
      });
      return seq;
    };
    this.#writing += body.length;
    try {
      return await this.#ask(ask);
    } finally {
      this.#writing -= body.length;
    }
  }

  /** Writes a part of a log, whose head it was; once more does no harm. */
  putPart(key, head, body) {
    return this.#put(`${partsOf(key, head.epoch)}.${head.version}`, head, body);
  }

  /** @returns {ReturnType<FeedStore['get']>} the part of a log that ends with a version; undefined: it is forgotten */
  getPart(key, epoch, version) {
    return this.#get(PARTS, `${partsOf(key, epoch)}.${version}`);
  }

  /** Forgets the parts of a log, but for the newest `keep`. */
  forgetParts(key, epoch, keep) {
    const filter = `${partsOf(key, epoch)}.>`;
    return this.#ask(({ jsm }) => jsm.streams.purge(PARTS, { filter, ...(keep > 0 && { keep }) }));
  }

  /** Forgets a deleted feed, if nothing has been written since. */
  forget(key, revision) {
    const filter = `${SUBJECTS}.${tokenOf(key)}`;
    return this.#ask(({ jsm }) => jsm.streams.purge(STREAM, { filter, seq: revision + 1 }));
  }

  #ask(ask, patience = this.#patience()) {
    return this.#link.ask(ask, patience);
  }

  /** How long a request may take now, milliseconds: on a slow line it waits behind the values that are on their way. */
  #patience() {
    if (this.#reading > 0) return PATIENCE_FOR_VALUE;
    return Math.min(PATIENCE + this.#writing / SLOWEST, PATIENCE_FOR_VALUE);
  }

  /** Ends the connection. */
  close() {
    return this.#link.close();
  }
}

/** The head in a message; what no server of this version has written counts as deleted, and is older than all else. */
const headOf = (headers, revision) =>
  readHead((name) => headers?.get(name), revision) ?? { epoch: 0, version: 0, revision };
