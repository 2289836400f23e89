import { readFileSync } from 'node:fs';

import { ENTRY_BYTES, NAME, readEntry } from './entry.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * The NATS server, by the official client: the key-value store that entries are in, and the frames that go from
 * one server to another. The client is loaded when it is first needed, so a server without `--world` never has it.
 *
 * Every write that the store has taken is published by it again, in its order and with its revision (`republish` of
 * JetStream), so that watching costs a plain subscription. What is missed while the connection is away, or lost on the
 * way, does no harm: entries are renewed all the time, and every write is a compare-and-set.
 */

/** The bucket of the key-value store. */
export const BUCKET = 'sprites-world';

/** Where the store publishes what it has taken. */
const ENTRIES = 'sprites.entries';

/** Frames: then follows to whom, and from whom. */
const FRAMES = 'sprites.frames';

/** How long a request to the broker may take, milliseconds. */
const PATIENCE = 2000;

/** The time between two tries to connect, and as much again at random, milliseconds. */
const RETRY = 250;

/** A connection on which nothing came back for two of these is given up, milliseconds. */
const PING = 2000;

/** Bytes of frames that may be on the way to the broker. What is more is dropped: it is sent again in its time. */
const UNDER_WAY = 16 * 2 ** 20;

/** From so many on the broker is asked how far it has read: a question a frame would cost as much as the frame. */
const ASK_FROM = 2 ** 20;

/** The error codes of JetStream that have a meaning here. Where it is off, the client's error has a name alone. */
const CODE = { wrongRevision: 10071, wrongRevisionToo: 10164, notEnabled: 10039, noStream: 10059 };

export class Broker {
  #options;
  #name;
  #files;
  #client;
  #connection;
  #kv;
  #connected = false;
  #closed = false;
  #nextTry = -Infinity;
  #watcher = { seen() {}, missed() {} };
  #receive = () => {};
  #follower = { opened() {}, missed() {} };
  /** The largest message that the NATS server takes, bytes; by default what its own default is. */
  #largest = 2 ** 20;
  #underWay = 0;
  #flushing = false;
  /** Why the last try to connect has failed. */
  #lastError;

  /**
   * @param {object} how
   * @param {string[]} how.servers URLs, of any of the NATS servers of one cluster
   * @param {string} how.name this server's
   * @param {string} [how.credentials] a file with user and key, as NATS's tools make it
   * @param {string} [how.ca] a file with the certificates that NATS's must be signed by; then it must be TLS
   * @param {string} [how.cert] a file with this server's certificate, for NATS servers that ask for one
   * @param {string} [how.key] a file with its key
   * @throws {Error} when a file can't be read
   */
  constructor({ servers, name, credentials, ca, cert, key }) {
    this.#options = { servers };
    this.#name = name;
    const read = (file) => file && readFileSync(file);
    this.#files = {
      credentials: read(credentials),
      ca: read(ca),
      cert: read(cert),
      key: read(key)
    };
  }

  /** @param {Parameters<import('./membership.js').Store['watch']>[0]} watcher */
  watch(watcher) {
    this.#watcher = watcher;
  }

  /** @param {(from: string, frame: Uint8Array) => void} receive is given the frames that come for this server */
  onFrame(receive) {
    this.#receive = receive;
  }

  /**
   * @param {{opened: (connection: object) => void, missed: () => void}} follower `opened` is told of each new connection,
   *     `missed` when one is there again
   */
  onConnection(follower) {
    this.#follower = follower;
  }

  /** @returns {boolean} whether there is a connection, as far as is known */
  get connected() {
    return this.#connected;
  }

  /**
   * Sends a frame; it may get lost.
   *
   * @param {string} to a server's name
   * @param {Uint8Array} frame
   * @throws {Error} when it is larger than the NATS server takes messages (1 MiB by default)
   */
  send(to, frame) {
    const isOpen = this.#connected && !this.#connection.isClosed();
    if (!isOpen || this.#underWay + frame.length > UNDER_WAY) return;
    this.#connection.publish(`${FRAMES}.${to}.${this.#name}`, frame);
    this.#underWay += frame.length;
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
      await this.#connection.flush();
    } catch {
      // The connection is gone, and with it what was under way: whoever sent it sends it again.
    }
    this.#flushing = false;
    this.#underWay = Math.max(0, this.#underWay - sent);
    if (this.#underWay >= ASK_FROM && this.#connected) this.#flush();
  }

  /** @returns {Promise<void>} when the store can be used */
  async open() {
    if (this.#connection && !this.#connected) throw this.#unreachable('the connection is lost');
    if (!this.#connection) await this.#connect();
    if (!this.#kv) await this.#openBucket();
  }

  async #connect() {
    const now = performance.now();
    if (now < this.#nextTry) throw this.#lastError ?? this.#unreachable('not yet');
    this.#nextTry = now + RETRY + Math.random() * RETRY;
    this.#client ??= await loadClient();
    const { connect, credsAuthenticator } = this.#client;
    const { credentials, ca, cert, key } = this.#files;
    let connection;
    try {
      connection = await connect({
        ...this.#options,
        name: `sprites ${this.#name}`,
        maxReconnectAttempts: -1,
        reconnectTimeWait: RETRY,
        reconnectJitter: RETRY,
        reconnectJitterTLS: RETRY,
        timeout: PATIENCE,
        pingInterval: PING,
        maxPingOut: 2,
        ...(credentials && { authenticator: credsAuthenticator(credentials) }),
        ...((ca || cert) && { tls: { ca: text(ca), cert: text(cert), key: text(key) } })
      });
    } catch (error) {
      this.#lastError = this.#failure(error);
      throw this.#lastError;
    }
    if (this.#closed) return connection.close();
    this.#lastError = undefined;
    this.#connection = connection;
    this.#connected = true;
    this.#underWay = 0;
    this.#largest = connection.info.max_payload;
    this.#subscribe(connection);
    this.#follower.opened(connection);
    this.#follow(connection);
    this.#watcher.missed();
  }

  #subscribe(connection) {
    const told = (what) => (error, message) => {
      if (!error) what(message);
    };
    connection.subscribe(`${ENTRIES}.>`, { callback: told((message) => this.#hear(message)) });
    connection.subscribe(`${FRAMES}.${this.#name}.*`, {
      callback: told(({ subject, data }) => {
        const from = subject.slice(subject.lastIndexOf('.') + 1);
        if (NAME.test(from)) this.#receive(from, data);
      })
    });
  }

  #hear({ subject, data, headers }) {
    const revision = Number(headers?.get('Nats-Sequence'));
    const name = subject.slice(subject.lastIndexOf('.') + 1);
    if (!NAME.test(name) || !(revision > 0)) return;
    const isDeleted = Boolean(headers.get('KV-Operation'));
    const entry = isDeleted ? undefined : readEntry(decode(data));
    this.#watcher.seen(name, { entry, revision });
  }

  /** Follows what becomes of a connection, until it is closed. */
  async #follow(connection) {
    for await (const { type } of connection.status()) {
      if (type === 'disconnect') this.#connected = false;
      if (type === 'reconnect') {
        this.#connected = true;
        // The store may be another one now.
        this.#kv = undefined;
        this.#largest = connection.info.max_payload;
        this.#watcher.missed();
        this.#follower.missed();
      }
    }
    if (this.#connection !== connection) return;
    this.#connected = false;
    this.#connection = undefined;
    this.#kv = undefined;
  }

  async #openBucket() {
    const { Kvm, jetstream } = this.#client;
    try {
      const js = jetstream(this.#connection, { timeout: PATIENCE });
      const kv = await new Kvm(js).create(BUCKET, {
        history: 1,
        maxValueSize: ENTRY_BYTES,
        allow_direct: false,
        republish: { src: '>', dest: `${ENTRIES}.>` },
        description: 'Who is in the ring of Sprites servers'
      });
      const { streamInfo } = await kv.status();
      if (streamInfo.config.republish?.dest !== `${ENTRIES}.>`) throw this.#badBucket();
      this.#kv = kv;
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #badBucket() {
    return new WorldError(
      'bad-bucket',
      `the bucket ${BUCKET} was not made by Sprites: delete it, or make it with --republish-source '>' --republish-destination '${ENTRIES}.>'`
    );
  }

  /** @returns {Promise<Map<string, {entry: import('./entry.js').Entry | undefined, revision: number}>>} */
  all() {
    return this.#do(async (kv) => {
      const names = [];
      for await (const name of await kv.keys()) if (NAME.test(name)) names.push(name);
      const found = await Promise.all(names.map((name) => kv.get(name)));
      return new Map(names.map((name, at) => [name, whatIs(found[at])]));
    });
  }

  /** @returns {Promise<{entry: import('./entry.js').Entry | undefined, revision: number}>} */
  get(name) {
    return this.#do(async (kv) => whatIs(await kv.get(name)));
  }

  /** @returns {Promise<number>} the new revision */
  put(name, entry, revision) {
    const data = JSON.stringify(entry);
    return this.#do((kv) => kv.put(name, data, { previousSeq: revision, timeout: PATIENCE }));
  }

  /** @returns {number} bytes of the largest message that the NATS server takes, as far as is known */
  get largest() {
    return this.#largest;
  }

  /** @returns {string | undefined} the run of the NATS server at the other end */
  get run() {
    return this.#connection?.info?.server_id;
  }

  /**
   * Asks JetStream, and does not wait for ever.
   *
   * @template Result
   * @param {(streams: {js: object, jsm: object, headersOf: (all: Record<string, string>) => object}) =>
   *     Promise<Result>} ask
   * @param {number} [patience] milliseconds
   * @returns {Promise<Result>}
   * @throws {WorldError | Conflict}
   */
  ask(ask, patience = 2 * PATIENCE) {
    return this.#patiently(patience, async () => {
      if (!this.#connected) throw this.#unreachable('the connection is lost');
      const { jetstream, headersOf } = this.#client;
      const js = jetstream(this.#connection, { timeout: PATIENCE });
      return ask({ js, jsm: await js.jetstreamManager(false), headersOf });
    });
  }

  /** Asks the bucket, and does not wait for ever. */
  #do(ask) {
    return this.#patiently(2 * PATIENCE, async () => {
      if (!this.#kv) throw this.#unreachable('the connection is lost');
      return ask(this.#kv);
    });
  }

  async #patiently(patience, ask) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(this.#unreachable('no answer')), patience);
    });
    try {
      return await Promise.race([ask(), late]);
    } catch (error) {
      throw this.#failure(error);
    } finally {
      clearTimeout(timer);
    }
  }

  async close() {
    this.#closed = true;
    const connection = this.#connection;
    this.#connection = undefined;
    this.#connected = false;
    await connection?.close();
  }

  #unreachable(why) {
    const { servers } = this.#options;
    return new WorldError('unreachable', `${servers.join(', ')}: ${why}`);
  }

  /** What an error of the client's means. */
  #failure(error) {
    if (error instanceof WorldError) return error;
    if (!this.#client) return this.#unreachable(error.message);
    const { errors } = this.#client;
    const { servers } = this.#options;
    const where = servers.join(', ');
    const about = [error, error.cause].filter(Boolean);
    const isOne = (...kinds) => about.some((one) => kinds.some((kind) => one instanceof kind));
    if (isOne(errors.AuthorizationError, errors.UserAuthenticationExpiredError)) {
      return new WorldError(
        'credentials',
        `${where} does not let this server in: ${error.message}; see --world-credentials`
      );
    }
    if (isOne(errors.PermissionViolationError)) {
      return new WorldError('permissions', `${where} forbids what a world needs: ${error.message}`);
    }
    if (error.name === 'JetStreamNotEnabled' || error.code === CODE.notEnabled) {
      return new WorldError(
        'no-jetstream',
        `${where} has no JetStream: start nats-server with -js`
      );
    }
    if (error.code === CODE.wrongRevision || error.code === CODE.wrongRevisionToo) {
      return new Conflict(error.message);
    }
    if (error.code === CODE.noStream) this.#kv = undefined;
    return this.#unreachable(error.message || error.code || error.name);
  }
}

/** @returns {Promise<object>} the client's parts */
async function loadClient() {
  const [transport, jetstream, kv] = await Promise.all([
    import('@nats-io/transport-node'),
    import('@nats-io/jetstream'),
    import('@nats-io/kv')
  ]);
  const { connect, credsAuthenticator, errors, headers } = transport;
  function headersOf(all) {
    const made = headers();
    for (const [name, value] of Object.entries(all)) made.set(name, value);
    return made;
  }
  return {
    ...{ connect, credsAuthenticator, errors, headersOf },
    ...{ jetstream: jetstream.jetstream, Kvm: kv.Kvm }
  };
}

const text = (buffer) => buffer?.toString();

const decode = (bytes) => Buffer.from(bytes).toString();

/** What a key's newest value says; one that was deleted still has a revision. */
function whatIs(found) {
  if (!found) return { entry: undefined, revision: 0 };
  const entry = found.operation === 'PUT' ? readEntry(found.string()) : undefined;
  return { entry, revision: found.revision };
}
