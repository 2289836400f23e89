import { randomUUID } from 'node:crypto';

import { HEAD_BYTES, keyOf, readHead, SUBJECTS, tokenOf, writeHead } from './feed-message.js';
import { NO_STREAM, PATIENCE, revisionOf } from './nats-link.js';
import { WorldError } from './world-error.js';

/**
 * Where a world's feeds are: a stream of JetStream with the newest message of each key (feed-message.js), by a connection
 * of its own: what is large waits for what is large, and no lease waits for either.
 *
 * A write is a compare-and-set on the revision of the key's message before, so what servers publish at once has one order.
 * The store publishes each head again, without its body (`republish`): who hears of it asks for the value when he has
 * room for it, and gets the newest one. So nothing is queued for a slow server, and a value crosses once a server.
 *
 * Heads are all read, without bodies, when a server has come to the store or may have missed some.
 */

/** The stream. */
export const STREAM = 'sprites-feeds';

/** Where heads are published again. */
const NEWS = 'sprites.feed-news';

/** Heads that are asked for at once. */
const BATCH = 500;

/** How long a value may take, milliseconds: it may be large, and the line slow. */
const PATIENCE_FOR_VALUE = 8000;

/** How long its connection may be silent: an answer may wait behind a value, milliseconds. */
export const SILENCE = 10_000;

/** Bytes that a line carries in a millisecond at the least: so long a write may take, and PATIENCE more. */
const SLOWEST = 32;

/** How long reading all heads may take, milliseconds: some 20,000 are read in a second. */
const PATIENCE_FOR_ALL = 60_000;

/** The stream's configuration; what an operator may change (storage) is not in it. */
const CONFIG = {
  name: STREAM,
  subjects: [`${SUBJECTS}.>`],
  max_msgs_per_subject: 1,
  allow_direct: true,
  republish: { src: `${SUBJECTS}.>`, dest: `${NEWS}.>`, headers_only: true }
};

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
   * @param {import('./nats-link.js').NatsLink} link nobody else's
   * @param {string} by this server's name
   */
  constructor(link, by) {
    this.#link = link;
    this.#by = by;
    const callback = (error, message) => {
      if (!error) this.#hear(message);
    };
    link.follow({
      opened: (connection) => {
        connection.subscribe(`${NEWS}.>`, { callback });
        this.#watcher.missed();
      },
      again: () => this.#watcher.missed()
    });
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
   *     have done so at any time, with a new leader, and nobody is told: there it is this server's own, so no server goes on
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
   * @returns {Promise<{identity: string, last: number}>} which store it is, in which run of the NATS server, by which
   *     leader, and the revision it has come to
   * @throws {WorldError}
   */
  async open() {
    await this.#link.open();
    return this.#ask(async ({ jsm }) => {
      let info;
      try {
        info = await jsm.streams.info(STREAM);
      } catch (error) {
        if (error.code !== NO_STREAM) throw error;
        info = await jsm.streams.add({
          ...CONFIG,
          num_replicas: this.#link.replicas,
          description: 'Feeds of a world of Sprites'
        });
      }
      const { config, created, state, cluster } = info;
      const isOurs =
        config.republish?.dest === CONFIG.republish.dest &&
        config.republish.headers_only === true &&
        config.allow_direct === true &&
        config.max_msgs_per_subject === 1 &&
        // Somebody may have purged it up to any number.
        Number.isSafeInteger(state.last_seq);
      if (!isOurs) {
        throw new WorldError(
          'bad-bucket',
          `the stream ${STREAM} was not made by Sprites: delete it`
        );
      }
      // A NATS server that is cut off from the others of its cluster tells what it knows, but takes nothing.
      if (cluster && !cluster.leader) throw this.#link.unreachable('the stream has no leader');
      await this.#link.replicate(jsm, info);
      this.#isReplicated = this.#link.replicas > 1 || config.num_replicas > 1;
      // A new leader may have forgotten what the one before has acknowledged.
      const identity = [created, this.#link.run, cluster?.leader].join(' ');
      return { identity, last: state.last_seq };
    });
  }

  /** @returns {Promise<Map<string, import('./feed-message.js').Head>>} all there are */
  heads() {
    const ask = async ({ js, jsm }) => {
      const heads = new Map();
      const subjects = new Set();
      // What a consumer says of how many are left counts deleted ones as well (nats-server 2.9).
      const countAll = async () => (await jsm.streams.info(STREAM)).state.messages;
      const { name } = await jsm.consumers.add(STREAM, {
        ...{ ack_policy: 'none', deliver_policy: 'all', headers_only: true, mem_storage: true },
        inactive_threshold: 10e9
      });
      const consumer = await js.consumers.get(STREAM, name);
      for (let count = await countAll(); subjects.size < count;) {
        let came = 0;
        const most = Math.min(BATCH, count - subjects.size);
        const some = await consumer.fetch({ max_messages: most, expires: PATIENCE });
        for await (const { subject, headers, seq } of some) {
          came += 1;
          subjects.add(subject);
          const key = keyOf(subject);
          if (key !== undefined) heads.set(key, headOf(headers, seq));
        }
        // Some may have gone meanwhile: the store forgets deleted feeds.
        if (came === 0) count = Math.min(count, await countAll());
        if (came === 0 && subjects.size < count) {
          throw new WorldError('unreachable', 'the store tells no heads');
        }
      }
      jsm.consumers.delete(STREAM, name).catch(() => {}); // It goes by itself, too.
      return heads;
    };
    return this.#ask(ask, PATIENCE_FOR_ALL);
  }

  /**
   * @param {string} key
   * @returns {Promise<(import('./feed-message.js').Head & {body: Uint8Array}) | undefined>} the newest version
   */
  async get(key) {
    const ask = async ({ jsm }) => {
      const last = { last_by_subj: `${SUBJECTS}.${tokenOf(key)}` };
      // Directly any replica answers, one that is behind as well; else the leader.
      const from = this.#isReplicated ? jsm.streams : jsm.direct;
      const message = await from.getMessage(STREAM, last);
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
  async put(key, head, body, revision) {
    const ask = async ({ js, headersOf }) => {
      const { seq } = await js.publish(`${SUBJECTS}.${tokenOf(key)}`, body, {
        headers: headersOf(writeHead(head, this.#by)),
        expect: { lastSubjectSequence: revision },
        timeout: this.#patience()
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

  /** Forgets a deleted feed, if nothing has been written since. */
  forget(key, revision) {
    const filter = `${SUBJECTS}.${tokenOf(key)}`;
    return this.#ask(({ jsm }) => jsm.streams.purge(STREAM, { filter, seq: revision + 1 }));
  }

  #ask(ask, all) {
    const each = this.#patience();
    return this.#link.ask(ask, { each, all: all ?? each + PATIENCE });
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
