import { Conflict, WorldError } from './world-error.js';

/**
 * One connection to the NATS servers, by the official client, that comes back by itself. A server of a world has two: one
 * for leases and frames (broker.js), and one for feeds (feed-store.js), so that no lease ever waits behind a document.
 * The client is loaded when it is first needed, so a server without `--world` never has it.
 */

/** How long a request may take, and a try to connect, milliseconds. */
export const PATIENCE = 2000;

/**
 * How much longer the client itself waits for an answer, milliseconds: `patiently` gives up earlier, but not before it has
 * read what came while the process stood still.
 */
const LONGER = 2000;

/** The time between two tries to connect, and as much again at random, milliseconds. */
const RETRY = 250;

/** When it connects again where the NATS server has refused a subject, milliseconds. */
const REFUSED = 5000;

/** For how long the store may fail before another NATS server of the cluster is tried, milliseconds. */
const MOVE = PATIENCE;

/** How often the NATS server is asked whether it is there, milliseconds. */
const PING = 2000;

/** JetStream's code for a stream that is not there. */
export const NO_STREAM = 10059;

/** Its codes for a compare-and-set that came too late. */
const WRONG_REVISION = [10071, 10164];

/**
 * @returns {boolean} whether an error of the client says that JetStream is off. Where no receiver was there it has a name
 *     alone
 */
export const isNotEnabled = ({ name, code }) => name === 'JetStreamNotEnabled' || code === 10039;

/** Those for replicas that it can't keep: it is no cluster, or has too few servers. */
const NO_REPLICAS = [10074, 10005];

/**
 * @param {{get: (name: string) => string} | undefined} headers of a message that the store publishes again
 * @returns {number} its revision; 0: it says none, as a message of another program may
 */
export function revisionOf(headers) {
  const text = headers?.get('Nats-Sequence') ?? '';
  const revision = /^[0-9]{1,16}$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(revision) ? revision : 0;
}

export class NatsLink {
  /** As the constructor has it. */
  #how;
  #client;
  #connection;
  #connected = false;
  #closing = new AbortController();
  /** The try to connect that is under way: the connection of one more would stay, unknown. */
  #trying;
  #nextTry = -Infinity;
  #followers = [];
  /** The largest message that the NATS server takes, bytes; by default what its own default is. */
  #largest = 2 ** 20;
  /** When the store began to fail; Infinity: it answers. */
  #failing = Infinity;
  /** The run of the NATS server that was left for another one. */
  #left;
  /** Why the last try to connect has failed, or a connection was given up. */
  #lastError;

  /**
   * @param {object} how
   * @param {string[]} how.servers URLs, of any of the NATS servers of one cluster
   * @param {string} how.name what NATS's own tools list the connection by
   * @param {Buffer | (() => Buffer)} [how.credentials] user and key, as NATS's tools make the file
   * @param {Buffer} [how.ca] the certificates that NATS's must be signed by; then it must be TLS
   * @param {Buffer} [how.cert] this server's certificate, for NATS servers that ask for one
   * @param {Buffer} [how.key] its key
   * @param {boolean} [how.needsAll] whether it can do nothing where the NATS server refuses a subject that it publishes; no
   *     link can where it refuses one that it listens to
   * @param {number} [how.replicas] NATS servers that are to have a copy of each stream
   * @param {number} [how.silence] for how long no answer may come, milliseconds: then the connection is given up
   */
  constructor(how) {
    this.#how = { replicas: 1, silence: 4000, needsAll: false, ...how };
  }

  /** @returns {number} NATS servers that are to have a copy of each stream */
  get replicas() {
    return this.#how.replicas;
  }

  /**
   * @param {{opened: (connection: object) => void, again: () => void, ended?: () => void}} follower `opened` is told of each
   *     new connection, `again` when one that was lost is there again, maybe to another NATS server; `ended`: there is none
   *     any more
   */
  follow(follower) {
    this.#followers.push({ ended() {}, ...follower });
  }

  /**
   * Hears what others publish.
   *
   * @param {string} subject
   * @param {(message: object) => void} heard
   * @param {() => void} [missed] told when some may not have been heard
   */
  hear(subject, heard, missed = () => {}) {
    const callback = (error, message) => {
      if (!error) heard(message);
    };
    const opened = (connection) => {
      connection.subscribe(subject, { callback });
      missed();
    };
    this.follow({ opened, again: missed });
  }

  /** @returns {boolean} whether there is a connection, as far as is known */
  get connected() {
    return this.#connected;
  }

  /** @returns {boolean} whether there was one, which reconnects by itself: no try is needed meanwhile */
  get isLost() {
    return this.#connection !== undefined && !this.#connected;
  }

  /** @returns {object | undefined} the client's connection, where it can be written to */
  get writable() {
    return this.#connected && !this.#connection.isClosed() ? this.#connection : undefined;
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
   * @returns {Promise<object>} the client, when there is a connection
   * @throws {WorldError}
   */
  async open() {
    if (this.isLost) throw this.#lastError ?? this.unreachable('the connection is lost');
    if (!this.#connection) {
      this.#trying ??= this.#connect().finally(() => (this.#trying = undefined));
      await this.#trying;
    }
    return this.#client;
  }

  async #connect() {
    const now = performance.now();
    if (now < this.#nextTry) throw this.#lastError ?? this.unreachable('not yet');
    this.#nextTry = now + RETRY + Math.random() * RETRY;
    this.#client ??= await loadClient();
    const { connect, credsAuthenticator } = this.#client;
    const { servers, name, silence, credentials, ca, cert, key } = this.#how;
    let connection;
    try {
      const how = {
        ...{ servers, name },
        failed: (error) => {
          if (this.isLost) this.#lastError = this.failure(error);
        },
        maxReconnectAttempts: -1,
        reconnectTimeWait: RETRY,
        reconnectJitter: RETRY,
        reconnectJitterTLS: RETRY,
        timeout: PATIENCE,
        pingInterval: PING,
        maxPingOut: silence / PING,
        ...(credentials && { authenticator: credsAuthenticator(credentials) }),
        ...((ca || cert) && { tls: { ca, cert, key } })
      };
      connection = await connect(how, this.#closing.signal);
    } catch (error) {
      this.#lastError = this.failure(error);
      throw this.#lastError;
    }
    if (this.#closing.signal.aborted) {
      await connection.close();
      throw this.unreachable('the connection is closed');
    }
    this.#lastError = undefined;
    this.#connection = connection;
    this.#connected = true;
    this.#largest = connection.info.max_payload;
    this.#watch(connection);
    for (const follower of this.#followers) follower.opened(connection);
  }

  /** Follows what becomes of a connection, until it is closed. */
  async #watch(connection) {
    for await (const { type, error } of connection.status()) {
      const isRefused = error?.name === 'PermissionViolationError';
      // A refused subscription stays without a word.
      if (isRefused && (this.#how.needsAll || error.operation === 'subscription')) {
        this.#lastError = this.failure(error);
        this.#nextTry = performance.now() + REFUSED;
        // What it is asked from now on would wait for its time.
        this.#connected = false;
        connection.close();
      }
      if (type === 'disconnect') this.#connected = false;
      if (type === 'reconnect') {
        const isSame = this.run === this.#left;
        this.#left = undefined;
        // The client tries the first one twice.
        if (isSame) {
          this.#leave();
          continue;
        }
        this.#connected = true;
        this.#lastError = undefined;
        this.#largest = connection.info.max_payload;
        for (const follower of this.#followers) follower.again();
      }
    }
    if (this.#connection !== connection) return;
    this.#connected = false;
    this.#connection = undefined;
    for (const follower of this.#followers) follower.ended();
  }

  /**
   * Asks JetStream, and does not wait for ever.
   *
   * @template Result
   * @param {(streams: {js: object, jsm: object, headersOf: (all: Record<string, string>) => object}) =>
   *     Promise<Result>} ask
   * @param {number} [patience] milliseconds, for all of it
   * @param {number} [each] for each of many requests
   * @returns {Promise<Result>}
   * @throws {WorldError | Conflict}
   */
  ask(ask, patience = 2 * PATIENCE, each = patience + LONGER) {
    return this.patiently(patience, async () => {
      if (!this.#connected) throw this.unreachable('the connection is lost');
      const { headersOf, jetstream } = this.#client;
      const js = jetstream(this.#connection, { timeout: each });
      return ask({ js, jsm: await js.jetstreamManager(false), headersOf });
    });
  }

  /**
   * Does something, and does not wait for ever.
   *
   * @template Result
   * @param {number} patience milliseconds
   * @param {() => Promise<Result>} act
   * @returns {Promise<Result>}
   * @throws {WorldError | Conflict}
   */
  async patiently(patience, act) {
    let timer;
    const late = new Promise((_, reject) => {
      const giveUp = () => reject(this.unreachable('no answer'));
      timer = setTimeout(() => setImmediate(giveUp), patience);
    });
    try {
      const result = await Promise.race([act(), late]);
      this.#failing = Infinity;
      return result;
    } catch (error) {
      const failure = this.#lastError ?? this.failure(error);
      if (failure.code === 'unreachable') this.#move();
      throw failure;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * A stream, which is made where there is none, and kept as `keep` does.
   *
   * @param {object} jsm
   * @param {object} config
   * @param {(info: {config: object, state: object}) => boolean} isOurs
   * @returns {Promise<{config: object, state: object, identity: string}>} what JetStream says of it; `identity`: which stream,
   *     in which run of the NATS server, by which leader: another one may have forgotten what was acknowledged
   * @throws {WorldError} bad-bucket where it is another program's
   */
  async stream(jsm, config, isOurs) {
    const { name } = config;
    let info;
    try {
      info = await jsm.streams.info(name);
    } catch (error) {
      if (error.code !== NO_STREAM) throw error;
      info = await jsm.streams.add({ ...config, num_replicas: this.#how.replicas });
    }
    if (!isOurs(info)) {
      throw new WorldError('bad-bucket', `the stream ${name} was not made by Sprites: delete it`);
    }
    await this.keep(jsm, info, config.max_age);
    // Of a stream without copies newer NATS servers say so at one time, and at another not.
    const leader = info.config.num_replicas > 1 && info.cluster?.leader;
    return { ...info, identity: [info.created, this.run, leader].join(' ') };
  }

  /**
   * Has a stream of ours kept by as many NATS servers as it is to be; by more where an operator has set more. The same for how
   * long it keeps messages, where there is an end to that.
   *
   * @param {object} jsm
   * @param {object} info what JetStream says of the stream
   * @param {number} [age] nanoseconds
   */
  async keep(jsm, info, age) {
    const { name, num_replicas: has, max_age: hasAge } = info.config;
    // A NATS server that is cut off from the others of its cluster tells what it knows, but takes nothing.
    if (info.cluster && !info.cluster.leader) throw this.unreachable(`${name} has no leader`);
    const isLong = age === undefined || hasAge >= age;
    if (has >= this.#how.replicas && isLong) return;
    const num_replicas = Math.max(has, this.#how.replicas);
    await jsm.streams.update(name, { num_replicas, ...(!isLong && { max_age: age }) });
  }

  /** The NATS server may be cut off from the others of its cluster, to which there is a way from here. */
  #move() {
    const now = performance.now();
    this.#failing = Math.min(this.#failing, now);
    if (this.#how.servers.length === 1 || now < this.#failing + MOVE) return;
    this.#failing = Infinity;
    this.#left = this.run;
    if (this.writable) this.#leave();
  }

  #leave() {
    this.#connection.reconnect().catch(() => {}); // It is closed: another one is not needed.
  }

  async close() {
    this.#closing.abort();
    const connection = this.#connection;
    this.#connection = undefined;
    this.#connected = false;
    await connection?.close();
  }

  /** @returns {WorldError} */
  unreachable(why) {
    return new WorldError('unreachable', `${this.#how.servers.join(', ')}: ${why}`);
  }

  /**
   * What an error of the client's means.
   *
   * @param {Error & {code?: number | string}} error
   * @returns {WorldError | Conflict} whose cause it is
   */
  failure(error) {
    if (error instanceof WorldError || error instanceof Conflict) return error;
    const { message, code, name, cause } = error;
    if (WRONG_REVISION.includes(code)) return new Conflict(message);
    const isOne = (...kinds) => kinds.includes(name) || kinds.includes(cause?.name);
    const known = [
      [
        isOne('AuthorizationError', 'UserAuthenticationExpiredError'),
        'credentials',
        `does not let this server in: ${message}; see --world-credentials`
      ],
      [isOne('PermissionViolationError'), 'permissions', `forbids what a world needs: ${message}`],
      [isNotEnabled(error), 'no-jetstream', 'has no JetStream: start nats-server with -js'],
      [
        NO_REPLICAS.includes(code),
        'no-replicas',
        `can't keep --world-replicas ${this.#how.replicas}: ${message}`
      ]
    ];
    const [, problem, says] = known.find(([holds]) => holds) ?? [];
    if (problem === undefined) return this.unreachable(message || code || name);
    return new WorldError(problem, `${this.#how.servers.join(', ')} ${says}`);
  }
}

/** @returns {Promise<object>} the client's parts */
async function loadClient() {
  const [{ connect }, { credsAuthenticator, headers }, { jetstream }, { Kvm }] = await Promise.all([
    import('./nats-transport.js'),
    import('@nats-io/transport-node'),
    import('@nats-io/jetstream'),
    import('@nats-io/kv')
  ]);
  function headersOf(all) {
    const made = headers();
    for (const [name, value] of Object.entries(all)) made.set(name, value);
    return made;
  }
  return { connect, credsAuthenticator, headersOf, jetstream, Kvm };
}
