import { randomUUID } from 'node:crypto';

import { HEAD_BYTES, keyOf, readHead, SUBJECTS, tokenOf, writeHead } from './feed-message.js';
import { REQUEST_TIMEOUT, revisionOf } from './nats-link.js';
import { READ_ALL_TIMEOUT, readNewest } from './read-newest.js';

/**
 * The store of a world's feeds: a stream of JetStream with the newest message of each key (feed-message.js). It has its own
 * connection, so that no lease waits behind a large value.
 *
 * A write is a compare-and-set on the revision of the key's last message, so that concurrent publications have one order.
 * The store publishes each head again, without its body (`republish`). A server that gets a head asks for the value when it
 * has room for it, and receives the newest one. So nothing is queued for a slow server, and each server reads a value once.
 *
 * The older items of logs are in a second stream, one message for each part. A part is written once, and makes no news.
 *
 * All heads are read, without bodies, when a server connects to the store or may have missed some.
 */

/** The stream of newest versions. */
export const STREAM = 'sprites-feeds';

/** The stream of the parts of logs. In a subject the key, the epoch and the version of the part's newest item follow. */
const PARTS = 'sprites-log-parts';
const PART_SUBJECTS = 'sprites.log-parts';

/** Prefix of the subjects of news. */
const NEWS = 'sprites.feed-news';

/** Timeout of the transfer of a value, in milliseconds: the value may be large, and the line slow. */
const VALUE_TIMEOUT = 8000;

/** Longest silence of its connection, in milliseconds: an answer may wait behind a value. */
export const MAX_SILENCE = 10_000;

/** Speed of the slowest supported line, in bytes per millisecond. A write may take its time there and REQUEST_TIMEOUT. */
const SLOWEST_RATE = 32;

/** The stream's configuration, without the settings that an operator may change (storage). */
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

const partSubjectsOf = (key, epoch) => `${PART_SUBJECTS}.${tokenOf(key)}.${epoch}`;

const isOurs = ({ config, state }) =>
  config.republish?.dest === CONFIG.republish.dest &&
  config.republish.headers_only === true &&
  config.allow_direct === true &&
  config.max_msgs_per_subject === 1 &&
  // Another program may have purged the stream up to any number.
  Number.isSafeInteger(state.last_seq);

export class FeedStore {
  #link;
  #serverName;
  /** Bytes of values that are being written, and number of values that are being read. */
  #bytesBeingWritten = 0;
  #valuesBeingRead = 0;
  /** Whether several NATS servers keep the stream. */
  #isReplicated = false;
  /** In place of a run of the NATS server: see `run`. */
  #ownRun = randomUUID().replaceAll('-', '');
  #watcher = { onNews() {}, onMissed() {} };

  /**
   * @param {import('./nats-link.js').NatsLink} link a link of its own
   * @param {string} serverName this server's name
   */
  constructor(link, serverName) {
    this.#link = link;
    this.#serverName = serverName;
    const onMissed = () => this.#watcher.onMissed();
    link.subscribe(`${NEWS}.>`, (message) => this.#receiveNews(message), onMissed);
  }

  /** @param {{onNews: (key: string, revision: number) => void, onMissed: () => void}} watcher */
  watch(watcher) {
    this.#watcher = watcher;
  }

  /** @returns {boolean} whether there is a connection */
  get isConnected() {
    return this.#link.isConnected;
  }

  /** @returns {boolean} whether a lost connection is reconnecting by itself */
  get isLost() {
    return this.#link.isLost;
  }

  /** @returns {number} largest body of a message, in bytes */
  get maxBodyBytes() {
    return this.#link.maxPayload - HEAD_BYTES;
  }

  /**
   * @returns {string | undefined} the run of the NATS server: after a restart it may have lost writes. A cluster may lose
   *     writes at any change of its leader, without notice to clients: there the run is this server's own, so that no server
   *     continues an epoch of another one
   */
  get run() {
    return this.#isReplicated ? this.#ownRun : this.#link.run;
  }

  #receiveNews({ subject, headers }) {
    const key = keyOf(subject);
    const revision = revisionOf(headers);
    if (key !== undefined && revision > 0) this.#watcher.onNews(key, revision);
  }

  /**
   * Connects to the store, if needed.
   *
   * @returns {Promise<{identity: string, last: number, messages: number}>} the identity of the store, of the run of the
   *     NATS server and of the leader; the last revision; the number of messages
   * @throws {WorldError}
   */
  async open() {
    await this.#link.open();
    const openStreams = async ({ jsm }) => {
      const [{ config, state, identity }] = await Promise.all([
        this.#link.openStream(jsm, CONFIG, isOurs),
        this.#link.openStream(jsm, PARTS_CONFIG, () => true)
      ]);
      this.#isReplicated = this.#link.replicas > 1 || config.num_replicas > 1;
      return { identity, last: state.last_seq, messages: state.messages };
    };
    return this.#request(openStreams);
  }

  /** @returns {Promise<Map<string, import('./feed-message.js').Head>>} all heads, by key */
  readHeads() {
    const readAll = async (jetstream) => {
      const heads = new Map();
      await readNewest(jetstream, STREAM, { headers_only: true }, ({ subject, headers, seq }) => {
        const key = keyOf(subject);
        if (key !== undefined) heads.set(key, headOf(headers, seq));
      });
      return heads;
    };
    return this.#link.request(readAll, { timeout: READ_ALL_TIMEOUT, eachTimeout: this.#timeout() });
  }

  /**
   * @param {string} key
   * @returns {Promise<(import('./feed-message.js').Head & {body: Uint8Array}) | undefined>} the newest version
   */
  get(key) {
    return this.#get(STREAM, `${SUBJECTS}.${tokenOf(key)}`);
  }

  async #get(stream, subject) {
    const read = async ({ jsm }) => {
      // A direct read is answered by any replica, also by one that lags; other reads by the leader.
      const reader = this.#isReplicated ? jsm.streams : jsm.direct;
      const message = await reader.getMessage(stream, { last_by_subj: subject });
      if (!message) return undefined;
      // A view of a larger buffer, which would be copied to a thread as a whole.
      return { ...headOf(message.header, message.seq), body: Uint8Array.from(message.data) };
    };
    this.#valuesBeingRead += 1;
    try {
      return await this.#request(read);
    } finally {
      this.#valuesBeingRead -= 1;
    }
  }

  /**
   * Writes a version.
   *
   * @param {string} key
   * @param {import('./feed-message.js').Head} head
   * @param {Uint8Array} body at most `maxBodyBytes`
   * @param {number} revision revision of the message before; 0: there is none
   * @returns {Promise<number>} the new revision
   * @throws {Conflict} when another version was written first
   * @throws {WorldError} when the version may have been written or not
   */
  put(key, head, body, revision) {
    const expect = { lastSubjectSequence: revision };
    return this.#put(`${SUBJECTS}.${tokenOf(key)}`, head, body, expect);
  }

  async #put(subject, head, body, expect) {
    const write = async ({ js, headersOf }) => {
      const { seq } = await js.publish(subject, body, {
        headers: headersOf(writeHead(head, this.#serverName)),
        ...(expect && { expect })
      });
      return seq;
    };
    this.#bytesBeingWritten += body.length;
    try {
      return await this.#request(write, 'write');
    } finally {
      this.#bytesBeingWritten -= body.length;
    }
  }

  /** Writes a part of a log; `head` is that of the message that the part was. Idempotent. */
  putPart(key, head, body) {
    return this.#put(`${partSubjectsOf(key, head.epoch)}.${head.version}`, head, body);
  }

  /** @returns {ReturnType<FeedStore['get']>} the part of a log that ends with a version; undefined: there is none any more */
  getPart(key, epoch, version) {
    return this.#get(PARTS, `${partSubjectsOf(key, epoch)}.${version}`);
  }

  /** Deletes the parts of a log, except for the newest `keep`. */
  removeParts(key, epoch, keep) {
    const filter = `${partSubjectsOf(key, epoch)}.>`;
    const purge = ({ jsm }) => jsm.streams.purge(PARTS, { filter, ...(keep > 0 && { keep }) });
    return this.#request(purge, 'write');
  }

  /** Removes the message of a deleted feed, if nothing has been written since. */
  removeDeleted(key, revision) {
    const filter = `${SUBJECTS}.${tokenOf(key)}`;
    const purge = ({ jsm }) => jsm.streams.purge(STREAM, { filter, seq: revision + 1 });
    return this.#request(purge, 'write');
  }

  #request(send, kind) {
    return this.#link.request(send, { kind, timeout: this.#timeout() });
  }

  /** Returns the timeout of a request, in milliseconds: on a slow line it waits behind values on their way. */
  #timeout() {
    if (this.#valuesBeingRead > 0) return VALUE_TIMEOUT;
    return Math.min(REQUEST_TIMEOUT + this.#bytesBeingWritten / SLOWEST_RATE, VALUE_TIMEOUT);
  }

  /** Closes the connection. */
  close() {
    return this.#link.close();
  }
}

/** Returns the head of a message. An invalid message counts as a deleted feed, and is older than every version. */
const headOf = (headers, revision) =>
  readHead((name) => headers?.get(name), revision) ?? { epoch: 0, version: 0, revision };
