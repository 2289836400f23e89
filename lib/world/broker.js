import { ENTRY_BYTES, isName, MAX_NAMES, readEntry } from './entry.js';
import { isNotEnabled, NatsLink, NO_STREAM, REQUEST_TIMEOUT, revisionOf } from './nats-link.js';
import { WorldError } from './world-error.js';

/**
 * The connection to the NATS server for leases and sprites: the key-value store of the entries, and the frames between
 * servers. Feeds have their own connection (feed-store.js).
 *
 * The store publishes every accepted write, in its order and with its revision (`republish` of JetStream), so that
 * watching costs a plain subscription. Lost messages do no harm: entries are renewed all the time, and every write is a
 * compare-and-set.
 */

/** The bucket of the key-value store, and the stream that keeps it. */
export const BUCKET = 'sprites-world';
const STREAM = `KV_${BUCKET}`;
const KEYS = `$KV.${BUCKET}.`;

/** Subjects under which the store publishes accepted writes. */
const ENTRIES = 'sprites.entries';

/** Prefix of the subjects of frames; the names of receiver and sender follow. */
const FRAMES = 'sprites.frames';

/** Prefix of the subjects of presence; the name of the sender follows. */
const PRESENCE = 'sprites.presence';

/** Most bytes of frames on their way to the broker. Further frames are dropped: their senders send them again. */
const MAX_BYTES_IN_FLIGHT = 16 * 2 ** 20;

/** Bytes on their way from which the broker is asked for a flush: one flush for each frame would cost as much as the frame. */
const FLUSH_THRESHOLD = 2 ** 20;

export class Broker {
  #link;
  #name;
  /** The bucket, and the manager of its stream. @type {{kv: object, jsm: object} | undefined} */
  #bucket;
  #watcher = { onEntry() {}, onMissed() {} };
  /** Bytes of frames that may still be on their way to the broker. */
  bytesInFlight = 0;
  #isFlushing = false;

  /**
   * @param {object} options those of NatsLink, and
   * @param {string} options.name this server's name
   * @param {{frame: Receive, presence: Receive}} [options.receive] callbacks for the frames for this server and for
   *     the presence messages of the other servers: `Receive` is (from: string, message: Uint8Array) => void
   */
  constructor({ name, receive = { frame() {}, presence() {} }, ...linkOptions }) {
    this.#name = name;
    this.#link = new NatsLink({ ...linkOptions, name: `sprites ${name}`, needsAll: true });
    this.#link.addListener(() => {
      this.bytesInFlight = 0;
      // The store may be a new one.
      this.#bucket = undefined;
      // Every receiver ignores empty messages: a missing permission shows now, and not when a sprite waits.
      for (const subject of [`${FRAMES}.${name}`, PRESENCE])
        this.#link.writableConnection?.publish(`${subject}.${name}`);
    });
    const withSender = (onMessage) => (message) => {
      const from = message.subject.slice(message.subject.lastIndexOf('.') + 1);
      if (isName(from) && message.data.length > 0) onMessage(from, message.data);
    };
    this.#link.subscribe(`${FRAMES}.${name}.*`, withSender(receive.frame));
    this.#link.subscribe(`${PRESENCE}.*`, withSender(receive.presence));
    const onMissed = () => this.#watcher.onMissed();
    this.#link.subscribe(`${ENTRIES}.>`, (message) => this.#receiveEntry(message), onMissed);
  }

  /** @param {Parameters<import('./membership.js').Store['watch']>[0]} watcher */
  watch(watcher) {
    this.#watcher = watcher;
  }

  /**
   * Sends a frame. The frame may get lost.
   *
   * @param {string} to a server's name
   * @param {Uint8Array} frame
   * @throws {Error} when the frame is larger than the NATS server's longest message (1 MiB by default)
   */
  send(to, frame) {
    this.#publish(`${FRAMES}.${to}.${this.#name}`, frame);
  }

  /** Sends a presence message to all servers. The message may get lost, and does if it is too large for the NATS server. */
  sendPresence(message) {
    if (message.length <= this.#link.maxPayload)
      this.#publish(`${PRESENCE}.${this.#name}`, message);
  }

  #publish(subject, bytes) {
    const connection = this.#link.writableConnection;
    if (!connection || this.bytesInFlight + bytes.length > MAX_BYTES_IN_FLIGHT) return;
    connection.publish(subject, bytes);
    this.bytesInFlight += bytes.length;
    if (this.bytesInFlight >= FLUSH_THRESHOLD) this.#flush();
  }

  /** Asks the broker for a flush, and subtracts the bytes that it has read. */
  async #flush() {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    const sent = this.bytesInFlight;
    try {
      await this.#link.writableConnection?.flush();
    } catch {
      // The connection is lost, and with it the frames on their way: their senders send them again.
    }
    this.#isFlushing = false;
    this.bytesInFlight = Math.max(0, this.bytesInFlight - sent);
    if (this.bytesInFlight >= FLUSH_THRESHOLD && this.#link.isConnected) this.#flush();
  }

  /** @returns {Promise<void>} resolves when the store can be used */
  async open() {
    const { Kvm } = await this.#link.open();
    if (!this.#bucket) await this.#openBucket(Kvm);
  }

  #receiveEntry({ subject, data, headers }) {
    const revision = revisionOf(headers);
    const name = subject.slice(subject.lastIndexOf('.') + 1);
    if (!isName(name) || revision === 0) return;
    const isDeleted = Boolean(headers.get('KV-Operation'));
    const entry = isDeleted ? undefined : readEntry(Buffer.from(data).toString());
    this.#watcher.onEntry(name, { entry, revision });
  }

  #openBucket(Kvm) {
    const open = async ({ js, jsm }) => {
      const kv = await new Kvm(js).create(BUCKET, {
        history: 1,
        replicas: this.#link.replicas,
        maxValueSize: ENTRY_BYTES,
        allow_direct: false,
        republish: { src: '>', dest: `${ENTRIES}.>` },
        description: 'The ring of Sprites servers'
      });
      const { streamInfo } = await kv.status();
      if (streamInfo.config.republish?.dest !== `${ENTRIES}.>`) {
        throw new WorldError(
          'bad-bucket',
          `the bucket ${BUCKET} was not made by Sprites: delete it, or make it with --republish-source '>' --republish-destination '${ENTRIES}.>'`
        );
      }
      await this.#link.updateStream(jsm, streamInfo);
      this.#bucket = { kv, jsm };
    };
    return this.#link.request(open, { timeout: REQUEST_TIMEOUT });
  }

  /** @returns {Promise<Map<string, {entry: import('./entry.js').Entry | undefined, revision: number}>>} */
  readAll() {
    return this.#request(
      async (kv, jsm) => {
        const names = await this.#readNames(kv, jsm);
        const kvEntries = await Promise.all(names.map((name) => kv.get(name)));
        return new Map(names.map((name, at) => [name, storedEntryOf(kvEntries[at])]));
      },
      { timeout: 2 * REQUEST_TIMEOUT }
    );
  }

  /** Returns the names in the bucket; with too many, those written last. */
  async #readNames(kv, jsm) {
    // The stream's leader answers this. `keys` makes a consumer: that asks the leader of the cluster, which NATS elects later.
    const info = await jsm.streams.info(STREAM, { subjects_filter: `${KEYS}>` });
    this.#link.requireLeader(info);
    const keys = Object.keys(info.state.subjects ?? {});
    const names = keys.map((key) => key.slice(KEYS.length)).filter(isName);
    if (names.length <= MAX_NAMES) return names;
    const namesByLastWrite = [];
    for await (const name of await kv.keys()) if (isName(name)) namesByLastWrite.push(name);
    return namesByLastWrite.slice(-MAX_NAMES);
  }

  /** @returns {Promise<{entry: import('./entry.js').Entry | undefined, revision: number}>} */
  get(name) {
    return this.#request(async (kv) => storedEntryOf(await kv.get(name)));
  }

  /** @returns {Promise<number>} the new revision */
  put(name, entry, revision) {
    const data = JSON.stringify(entry);
    const write = (kv) => kv.put(name, data, { previousSeq: revision });
    return this.#request(write, { kind: 'write' });
  }

  /** Sends a request to the bucket, with a timeout. */
  #request(send, { kind, timeout = REQUEST_TIMEOUT } = {}) {
    const act = async () => {
      if (!this.#bucket) throw this.#link.unreachableError('the connection is lost');
      try {
        return await send(this.#bucket.kv, this.#bucket.jsm);
      } catch (error) {
        // A write to a deleted stream fails like one without JetStream: no receiver.
        if (error.code === NO_STREAM || isNotEnabled(error)) this.#bucket = undefined;
        throw error;
      }
    };
    return this.#link.withTimeout(timeout, act, kind);
  }

  close() {
    return this.#link.close();
  }
}

/** Returns the entry of a key. A deleted key still has a revision. */
function storedEntryOf(kvEntry) {
  if (!kvEntry) return { entry: undefined, revision: 0 };
  const entry = kvEntry.operation === 'PUT' ? readEntry(kvEntry.string()) : undefined;
  return { entry, revision: kvEntry.revision };
}
