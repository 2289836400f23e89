import { ENTRY_BYTES, isName, MOST_NAMES, readEntry } from './entry.js';
import { isNotEnabled, NatsLink, NO_STREAM, PATIENCE, revisionOf } from './nats-link.js';
import { WorldError } from './world-error.js';

/**
 * The NATS server, for leases and sprites: the key-value store that entries are in, and the frames that go from one
 * server to another. Feeds have a connection of their own (feed-store.js).
 *
 * Every write that the store has taken is published by it again, in its order and with its revision (`republish` of
 * JetStream), so that watching costs a plain subscription. What is missed while the connection is away, or lost on the
 * way, does no harm: entries are renewed all the time, and every write is a compare-and-set.
 */

/** The bucket of the key-value store. */
export const BUCKET = 'sprites-world';

/** Where the store publishes what it has taken. */
const ENTRIES = 'sprites.entries';

/** Frames: the names of receiver and sender follow. */
const FRAMES = 'sprites.frames';

/** The watchers of a server: its name follows. */
const PRESENCE = 'sprites.presence';

/** Bytes of frames that may be on the way to the broker. What is more is dropped: it is sent again in its time. */
const UNDER_WAY = 16 * 2 ** 20;

/** From so many on the broker is asked how far it has read: a question a frame would cost as much as the frame. */
const ASK_FROM = 2 ** 20;

export class Broker {
  #link;
  #name;
  #kv;
  #watcher = { seen() {}, missed() {} };
  #underWay = 0;
  #flushing = false;

  /**
   * @param {object} how as NatsLink takes it, but for
   * @param {string} how.name this server's
   * @param {{frame: Receive, presence: Receive}} [how.receive] are given the frames that come for this server, and what the
   *     other servers say of presence: `Receive` is (from: string, message: Uint8Array) => void
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
        // The store may be another one now.
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
   * Sends a frame; it may get lost.
   *
   * @param {string} to a server's name
   * @param {Uint8Array} frame
   * @throws {Error} when it is larger than the NATS server takes messages (1 MiB by default)
   */
  send(to, frame) {
    this.#publish(`${FRAMES}.${to}.${this.#name}`, frame);
  }

  /** Says something of presence to all servers; it may get lost, and does where the NATS server takes none as large. */
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

  /** @returns {number} bytes of frames that may be on the way to the broker */
  get underWay() {
    return this.#underWay;
  }

  /** Has the broker say how far it has read. */
  async #flush() {
    if (this.#flushing) return;
    this.#flushing = true;
    const sent = this.#underWay;
    try {
      await this.#link.writable?.flush();
    } catch {
      // The connection is gone, and with it what was under way: its sender sends it again.
    }
    this.#flushing = false;
    this.#underWay = Math.max(0, this.#underWay - sent);
    if (this.#underWay >= ASK_FROM && this.#link.connected) this.#flush();
  }

  /** @returns {Promise<void>} when the store can be used */
  async open() {
    const { Kvm } = await this.#link.open();
    if (!this.#kv) await this.#openBucket(Kvm);
  }

  /** Has the NATS server say now what it refuses, and not when a sprite waits: no server takes what is empty. */
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
      // Those written last come last.
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

  /** Asks the bucket, and does not wait for ever. */
  #do(ask, patience = PATIENCE) {
    return this.#link.patiently(patience, async () => {
      if (!this.#kv) throw this.#link.unreachable('the connection is lost');
      try {
        return await ask(this.#kv);
      } catch (error) {
        // What is written to a stream that is no more finds no receiver, as where JetStream is off.
        if (error.code === NO_STREAM || isNotEnabled(error)) this.#kv = undefined;
        throw error;
      }
    });
  }

  close() {
    return this.#link.close();
  }
}

/** What a key's newest value says; one that was deleted still has a revision. */
function whatIs(found) {
  if (!found) return { entry: undefined, revision: 0 };
  const entry = found.operation === 'PUT' ? readEntry(found.string()) : undefined;
  return { entry, revision: found.revision };
}
