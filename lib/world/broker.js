import { ENTRY_BYTES, isName, MOST_NAMES, readEntry } from './entry.js';
import { isNotEnabled, NatsLink, NO_STREAM, PATIENCE, revisionOf } from './nats-link.js';
import { WorldError } from './world-error.js';

/**
 * The connection to the NATS server for leases and sprites: the key-value store of the entries, and the frames between
 * servers. Feeds have their own connection (feed-store.js).
 *
 * The store publishes every accepted write, in its order and with its revision (`republish` of JetStream), so that
 * watching costs a plain subscription. Lost messages do no harm: entries are renewed all the time, and every write is a
 * compare-and-set.
 */

/** The bucket of the key-value store. */
export const BUCKET = 'sprites-world';

/** Subjects under which the store publishes accepted writes. */
const ENTRIES = 'sprites.entries';

/** Prefix of the subjects of frames; the names of receiver and sender follow. */
const FRAMES = 'sprites.frames';

/** Prefix of the subjects of presence; the name of the sender follows. */
const PRESENCE = 'sprites.presence';

/** Most bytes of frames on their way to the broker. Further frames are dropped: their senders send them again. */
const UNDER_WAY = 16 * 2 ** 20;

/** Bytes on their way from which the broker is asked for a flush: one flush for each frame would cost as much as the frame. */
const ASK_FROM = 2 ** 20;

export class Broker {
  #link;
  #name;
  #kv;
  #watcher = { seen() {}, missed() {} };
  #underWay = 0;
  #flushing = false;

  /**
   * @param {object} how options of NatsLink, and
   * @param {string} how.name this server's name
   * @param {{frame: Receive, presence: Receive}} [how.receive] callbacks for the frames for this server and for
   *     the presence messages of the other servers: `Receive` is (from: string, message: Uint8Array) => void
   */
  constructor({ name, receive = { frame() {}, presence() {} }, ...how }) {
    this.#name = name;
    this.#link = new NatsLink({ ...how, name: `sprites ${name}`, needsAll: true });
    this.#link.follow({
      opened: () => {
        this.#underWay = 0;
        this.#tryToPublish();
      },
      again: () => {
        // The store may be a new one.
        this.#kv = undefined;
        this.#tryToPublish();
      },
      ended: () => (this.#kv = undefined)
    });
    const given = (take) => (message) => {
      const from = message.subject.slice(message.subject.lastIndexOf('.') + 1);
      if (isName(from) && message.data.length > 0) take(from, message.data);
    };
    this.#link.hear(`${FRAMES}.${name}.*`, given(receive.frame));
    this.#link.hear(`${PRESENCE}.*`, given(receive.presence));
    const missed = () => this.#watcher.missed();
    this.#link.hear(`${ENTRIES}.>`, (message) => this.#hear(message), missed);
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
    if (message.length <= this.#link.largest) this.#publish(`${PRESENCE}.${this.#name}`, message);
  }

  #publish(subject, bytes) {
    const connection = this.#link.writable;
    if (!connection || this.#underWay + bytes.length > UNDER_WAY) return;
    connection.publish(subject, bytes);
    this.#underWay += bytes.length;
    if (this.#underWay >= ASK_FROM) this.#flush();
  }

  /** @returns {number} bytes of frames that may still be on their way to the broker */
  get underWay() {
    return this.#underWay;
  }

  /** Asks the broker for a flush, and subtracts the bytes that it has read. */
  async #flush() {
    if (this.#flushing) return;
    this.#flushing = true;
    const sent = this.#underWay;
    try {
      await this.#link.writable?.flush();
    } catch {
      // The connection is lost, and with it the frames on their way: their senders send them again.
    }
    this.#flushing = false;
    this.#underWay = Math.max(0, this.#underWay - sent);
    if (this.#underWay >= ASK_FROM && this.#link.connected) this.#flush();
  }

  /** @returns {Promise<void>} resolves when the store can be used */
  async open() {
    const { Kvm } = await this.#link.open();
    if (!this.#kv) await this.#openBucket(Kvm);
  }

  /** Publishes empty messages, which every receiver ignores, so that a missing permission shows now and not when a sprite waits. */
  #tryToPublish() {
    for (const subject of [`${FRAMES}.${this.#name}`, PRESENCE]) {
      this.#link.writable?.publish(`${subject}.${this.#name}`);
    }
  }

  #hear({ subject, data, headers }) {
    const revision = revisionOf(headers);
    const name = subject.slice(subject.lastIndexOf('.') + 1);
    if (!isName(name) || revision === 0) return;
    const isDeleted = Boolean(headers.get('KV-Operation'));
    const entry = isDeleted ? undefined : readEntry(Buffer.from(data).toString());
    this.#watcher.seen(name, { entry, revision });
  }

  #openBucket(Kvm) {
    return this.#link.ask(async ({ js, jsm }) => {
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
      await this.#link.keep(jsm, streamInfo);
      this.#kv = kv;
    });
  }

  /** @returns {Promise<Map<string, {entry: import('./entry.js').Entry | undefined, revision: number}>>} */
  all() {
    return this.#do(async (kv) => {
      let names = [];
      for await (const name of await kv.keys()) if (isName(name)) names.push(name);
      // The keys are in the order of their last writes.
      names = names.slice(-MOST_NAMES);
      const found = await Promise.all(names.map((name) => kv.get(name)));
      return new Map(names.map((name, at) => [name, whatIs(found[at])]));
    }, 2 * PATIENCE);
  }

  /** @returns {Promise<{entry: import('./entry.js').Entry | undefined, revision: number}>} */
  get(name) {
    return this.#do(async (kv) => whatIs(await kv.get(name)));
  }

  /** @returns {Promise<number>} the new revision */
  put(name, entry, revision) {
    const data = JSON.stringify(entry);
    return this.#do((kv) => kv.put(name, data, { previousSeq: revision }));
  }

  /** Sends a request to the bucket, with a timeout. */
  #do(ask, patience = PATIENCE) {
    return this.#link.patiently(patience, async () => {
      if (!this.#kv) throw this.#link.unreachable('the connection is lost');
      try {
        return await ask(this.#kv);
      } catch (error) {
        // A write to a deleted stream fails like one without JetStream: no receiver.
        if (error.code === NO_STREAM || isNotEnabled(error)) this.#kv = undefined;
        throw error;
      }
    });
  }

  close() {
    return this.#link.close();
  }
}

/** Returns the entry of a key. A deleted key still has a revision. */
function whatIs(found) {
  if (!found) return { entry: undefined, revision: 0 };
  const entry = found.operation === 'PUT' ? readEntry(found.string()) : undefined;
  return { entry, revision: found.revision };
}
