import { Conflict, WorldError } from './world-error.js';

/**
 * A connection to the NATS servers, through the official client, that reconnects by itself. A server of a world has two
 * connections: one for leases and frames (broker.js), and one for feeds (feed-store.js), so that no lease waits behind a
 * document. The client is loaded at the first use: a server without `--world` never loads it.
 */

/** Timeout of a request, and of a try to connect, in milliseconds. */
export const PATIENCE = 2000;

/**
 * How much longer the client itself waits for an answer, in milliseconds. `patiently` gives up earlier, but only after it has
 * read the answers that arrived while the process stood still.
 */
const LONGER = 2000;

/** Time between two tries to connect, in milliseconds; a random time up to as much is added. */
const RETRY = 250;

/** Wait before the next try after the NATS server has refused a subject, in milliseconds. */
const REFUSED = 5000;

/** How long the store may fail before another NATS server of the cluster is tried, in milliseconds. */
const MOVE = PATIENCE;

/** Interval of pings to the NATS server, in milliseconds. */
const PING = 2000;

/** JetStream's error code for a missing stream. */
export const NO_STREAM = 10059;

/** Its error codes for a failed compare-and-set. */
const WRONG_REVISION = [10071, 10164];

/**
 * @returns {boolean} whether an error of the client means that JetStream is off; where there was no receiver, the error has
 *     only a name
 */
export const isNotEnabled = ({ name, code }) => name === 'JetStreamNotEnabled' || code === 10039;

/** Its error codes for replicas that it can't keep: it is no cluster, or has too few servers. */
const NO_REPLICAS = [10074, 10005];

/**
 * @param {{get: (name: string) => string} | undefined} headers headers of a message that the store publishes
 * @returns {number} its revision; 0: the message has none, and may be another program's
 */
export function revisionOf(headers) {
  const text = headers?.get('Nats-Sequence') ?? '';
  const revision = /^[0-9]{1,16}$/.test(text) ? Number(text) : 0;
  return Number.isSafeInteger(revision) ? revision : 0;
}

export class NatsLink {
  /** Options of the constructor. */
  #how;
  #client;
  #connection;
  #connected = false;
  #closing = new AbortController();
  /** The current try to connect. A second one at the same time would leave a connection behind. */
  #trying;
  #nextTry = -Infinity;
  #followers = [];
  /** Largest message of the NATS server, in bytes; at first its default. */
  #largest = 2 ** 20;
  /** Time since which the store fails; Infinity: the store answers. */
  #failing = Infinity;
  /** Run of the NATS server from which this link has moved away. */
  #left;
  /** Why the last try to connect failed, or why a connection was closed. */
  #lastError;

  /**
   * @param {object} how
   * @param {string[]} how.servers URLs of NATS servers of one cluster
   * @param {string} how.name name of the connection in NATS's own tools
   * @param {Buffer | (() => Buffer)} [how.credentials] user and key, from a file of NATS's tools
   * @param {Buffer} [how.ca] certificates that must have signed the NATS server's; requires TLS
   * @param {Buffer} [how.cert] this server's certificate, for NATS servers that ask for one
   * @param {Buffer} [how.key] its key
   * @param {boolean} [how.needsAll] whether the link is useless when the NATS server refuses one of its subjects to publish
   *     to; a refused subscription makes every link useless
   * @param {number} [how.replicas] copies of each stream
   * @param {number} [how.silence] silence after which the connection is closed, in milliseconds
   */
  constructor(how) {
    this.#how = { replicas: 1, silence: 4000, needsAll: false, ...how };
  }

  /** @returns {number} copies of each stream */
  get replicas() {
    return this.#how.replicas;
  }

  /**
   * @param {{opened: (connection: object) => void, again: () => void, ended?: () => void}} follower `opened` is called for
   *     each new connection, `again` after a reconnect, maybe to another NATS server, and `ended` when the connection is
   *     closed
   */
  follow(follower) {
    this.#followers.push({ ended() {}, ...follower });
  }

  /**
   * Subscribes to a subject.
   *
   * @param {string} subject
   * @param {(message: object) => void} heard
   * @param {() => void} [missed] called when messages may have been missed
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

  /** @returns {boolean} whether there seems to be a connection */
  get connected() {
    return this.#connected;
  }

  /** @returns {boolean} whether a lost connection is reconnecting by itself */
  get isLost() {
    return this.#connection !== undefined && !this.#connected;
  }

  /** @returns {object | undefined} the client's connection, if it can be written to */
  get writable() {
    return this.#connected && !this.#connection.isClosed() ? this.#connection : undefined;
  }

  /** @returns {number} largest message of the NATS server, in bytes */
  get largest() {
    return this.#largest;
  }

  /** @returns {string | undefined} the run of the NATS server at the other end */
  get run() {
    return this.#connection?.info?.server_id;
  }

  /**
   * @returns {Promise<object>} the client; resolves when there is a connection
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

  /** Follows the events of a connection until it is closed. */
  async #watch(connection) {
    for await (const { type, error } of connection.status()) {
      const isRefused = error?.name === 'PermissionViolationError';
      // The client does not report a refused subscription again.
      if (isRefused && (this.#how.needsAll || error.operation === 'subscription')) {
        this.#lastError = this.failure(error);
        this.#nextTry = performance.now() + REFUSED;
        // Requests from now on would wait for their timeouts.
        this.#connected = false;
        connection.close();
      }
      if (type === 'disconnect') this.#connected = false;
      if (type === 'reconnect') {
        const isSame = this.run === this.#left;
        this.#left = undefined;
        // The client tries the first server twice.
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
   * Sends requests to JetStream, with a timeout.
   *
   * @template Result
   * @param {(streams: {js: object, jsm: object, headersOf: (all: Record<string, string>) => object}) =>
   *     Promise<Result>} ask
   * @param {number} [patience] timeout of all requests, in milliseconds
   * @param {number} [each] timeout of each request, in milliseconds
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
   * Runs an action with a timeout.
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
   * Opens a stream. Creates a missing one, and updates it as `keep` does.
   *
   * @param {object} jsm
   * @param {object} config
   * @param {(info: {config: object, state: object}) => boolean} isOurs
   * @returns {Promise<{config: object, state: object, identity: string}>} the stream's info; `identity` names the stream,
   *     the run of the NATS server and the leader: after a change, acknowledged messages may be lost
   * @throws {WorldError} bad-bucket for another program's stream
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
    // For a stream without copies newer NATS servers name a leader only sometimes.
    const leader = info.config.num_replicas > 1 && info.cluster?.leader;
    return { ...info, identity: [info.created, this.run, leader].join(' ') };
  }

  /**
   * Raises the number of copies of a stream to `replicas`. A higher number that an operator has set stays. Does the same for
   * the age to which the stream keeps messages.
   *
   * @param {object} jsm
   * @param {object} info the stream's info
   * @param {number} [age] nanoseconds
   */
  async keep(jsm, info, age) {
    const { name, num_replicas: has, max_age: hasAge } = info.config;
    // A NATS server that is cut off from its cluster answers reads, but accepts no write.
    if (info.cluster && !info.cluster.leader) throw this.unreachable(`${name} has no leader`);
    const isLong = age === undefined || hasAge >= age;
    if (has >= this.#how.replicas && isLong) return;
    const num_replicas = Math.max(has, this.#how.replicas);
    await jsm.streams.update(name, { num_replicas, ...(!isLong && { max_age: age }) });
  }

  /** Moves to another NATS server after a long failure: this one may be cut off from its cluster. */
  #move() {
    const now = performance.now();
    this.#failing = Math.min(this.#failing, now);
    if (this.#how.servers.length === 1 || now < this.#failing + MOVE) return;
    this.#failing = Infinity;
    this.#left = this.run;
    if (this.writable) this.#leave();
  }

  #leave() {
    this.#connection.reconnect().catch(() => {}); // A closed connection need not be replaced.
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
   * Translates an error of the client.
   *
   * @param {Error & {code?: number | string}} error
   * @returns {WorldError | Conflict}
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

/** Loads the client. @returns {Promise<object>} its parts */
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
