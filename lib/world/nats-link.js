import { clock as systemClock } from './clock.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * A connection to the NATS servers, through the official client, that reconnects by itself. A server of a world has two
 * connections: one for leases and frames (broker.js), and one for feeds (feed-store.js), so that no lease waits behind a
 * document. The client is loaded at the first use: a server without `--world` never loads it.
 */

/** Timeout of a request, and of a try to connect, in milliseconds. */
export const REQUEST_TIMEOUT = 2000;

/**
 * How much longer the client itself waits for an answer, in milliseconds. `withTimeout` gives up earlier, but only after it
 * has read the answers that arrived while the process stood still.
 */
const CLIENT_EXTRA_TIMEOUT = 2000;

/** Returns the time between two tries to connect, in milliseconds. */
const retryDelay = () => 250 + Math.random() * 250;

/** Wait before the next try after the NATS server has refused a subject, in milliseconds. */
const RETRY_REFUSED_AFTER = 5000;

/**
 * How long requests of one kind may fail before another NATS server of the cluster is tried, in milliseconds. NATS elects a
 * leader in 4 to 9 s, and a reconnect costs less than a second: with 6 s a ring was whole again 4 s later on average.
 */
const FAIL_OVER_AFTER = 3000;

/** Interval of pings to the NATS server, in milliseconds. */
const PING_INTERVAL = 2000;

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
  #options;
  #client;
  #connection;
  /** Whether there seems to be a connection. */
  isConnected = false;
  /** Largest message of the NATS server, in bytes; at first its default. */
  maxPayload = 2 ** 20;
  #closing = new AbortController();
  /** The current try to connect. A second one at the same time would leave a connection behind. */
  #connecting;
  #nextConnectAt = -Infinity;
  #listeners = [];
  /** Time since which requests of a kind fail. @type {Map<'read' | 'write', number>} */
  #failingSince = new Map();
  /** Time of the last success of a kind, or of the connection. @type {Record<'read' | 'write', number>} */
  #succeededAt = { read: 0, write: 0 };
  #connectedAt = 0;
  /** Run of the NATS server from which this link has moved away. */
  #abandonedRun;
  /** Why the last try to connect failed, or why a connection was closed. */
  #lastError;

  /**
   * @param {object} options
   * @param {string[]} options.servers URLs of NATS servers of one cluster
   * @param {string} options.name name of the connection in NATS's own tools
   * @param {Buffer | (() => Buffer)} [options.credentials] user and key, from a file of NATS's tools
   * @param {Buffer} [options.ca] certificates that must have signed the NATS server's; requires TLS
   * @param {Buffer} [options.cert] this server's certificate, for NATS servers that ask for one
   * @param {Buffer} [options.key] its key
   * @param {boolean} [options.needsAll] whether the link is useless when the NATS server refuses one of its subjects to
   *     publish to; a refused subscription makes every link useless
   * @param {number} [options.replicas] copies of each stream
   * @param {number} [options.silence] silence after which the connection is closed, in milliseconds
   * @param {typeof systemClock} [options.clock] of requests
   */
  constructor(options) {
    this.#options = {
      ...{ replicas: 1, silence: 4000, needsAll: false, clock: systemClock },
      ...options
    };
  }

  /** @returns {number} copies of each stream */
  get replicas() {
    return this.#options.replicas;
  }

  /**
   * @param {(connection: object, isNew: boolean) => void} listener called for each new connection, and after a reconnect,
   *     maybe to another NATS server
   */
  addListener(listener) {
    this.#listeners.push(listener);
  }

  /**
   * Subscribes to a subject.
   *
   * @param {string} subject
   * @param {(message: object) => void} onMessage
   * @param {() => void} [onMissed] called when messages may have been missed
   */
  subscribe(subject, onMessage, onMissed = () => {}) {
    const callback = (error, message) => {
      if (!error) onMessage(message);
    };
    this.addListener((connection, isNew) => {
      if (isNew) connection.subscribe(subject, { callback });
      onMissed();
    });
  }

  /** @returns {boolean} whether a lost connection is reconnecting by itself */
  get isLost() {
    return this.#connection !== undefined && !this.isConnected;
  }

  /** @returns {object | undefined} the client's connection, if it can be written to */
  get writableConnection() {
    return this.isConnected && !this.#connection.isClosed() ? this.#connection : undefined;
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
    if (this.isLost) throw this.#lastError ?? this.unreachableError('the connection is lost');
    if (!this.#connection) {
      this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
      await this.#connecting;
    }
    return this.#client;
  }

  async #connect() {
    const now = performance.now();
    if (now < this.#nextConnectAt) throw this.#lastError ?? this.unreachableError('not yet');
    this.#nextConnectAt = now + retryDelay();
    this.#client ??= await loadClient();
    const { connect, credsAuthenticator } = this.#client;
    const { servers, name, silence, credentials, ca, cert, key } = this.#options;
    const connectOptions = {
      ...{ servers, name },
      onFailure: (error) => {
        if (this.isLost) this.#lastError = this.translateError(error);
      },
      maxReconnectAttempts: -1,
      reconnectDelayHandler: retryDelay,
      timeout: REQUEST_TIMEOUT,
      pingInterval: PING_INTERVAL,
      maxPingOut: silence / PING_INTERVAL,
      ...(credentials && { authenticator: credsAuthenticator(credentials) }),
      ...((ca || cert) && { tls: { ca, cert, key } })
    };
    const connection = await connect(connectOptions, this.#closing.signal).catch((error) => {
      this.#lastError = this.translateError(error);
      throw this.#lastError;
    });
    if (this.#closing.signal.aborted) {
      await connection.close();
      throw this.unreachableError('the connection is closed');
    }
    this.#connection = connection;
    this.#followStatus(connection);
    this.#noteConnection(connection, true);
  }

  #noteConnection(connection, isNew) {
    this.#lastError = undefined;
    this.isConnected = true;
    this.maxPayload = connection.info.max_payload;
    this.#connectedAt = this.#options.clock.now();
    this.#succeededAt = { read: this.#connectedAt, write: this.#connectedAt };
    for (const listener of this.#listeners) listener(connection, isNew);
  }

  /** Follows the events of a connection until it is closed. */
  async #followStatus(connection) {
    for await (const { type, error } of connection.status()) {
      const isRefused = error?.name === 'PermissionViolationError';
      // The client does not report a refused subscription again.
      if (isRefused && (this.#options.needsAll || error.operation === 'subscription')) {
        this.#lastError = this.translateError(error);
        this.#nextConnectAt = performance.now() + RETRY_REFUSED_AFTER;
        // Requests from now on would wait for their timeouts.
        this.isConnected = false;
        connection.close();
      }
      if (type === 'disconnect') this.isConnected = false;
      if (type === 'reconnect') {
        const isAbandoned = this.run === this.#abandonedRun;
        this.#abandonedRun = undefined;
        // The client tries the first server twice.
        if (isAbandoned) this.#reconnectElsewhere();
        else this.#noteConnection(connection, false);
      }
    }
    if (this.#connection !== connection) return;
    this.isConnected = false;
    this.#connection = undefined;
  }

  /**
   * Sends requests to JetStream, with a timeout.
   *
   * @template Result
   * @param {(streams: {js: object, jsm: object, headersOf: (fields: Record<string, string>) => object}) =>
   *     Promise<Result>} send
   * @param {object} [how]
   * @param {'read' | 'write'} [how.kind] as for `withTimeout`
   * @param {number} [how.timeout] of all requests, in milliseconds
   * @param {number} [how.eachTimeout] of each request, in milliseconds
   * @returns {Promise<Result>}
   * @throws {WorldError | Conflict}
   */
  request(send, { kind, timeout = 2 * REQUEST_TIMEOUT, eachTimeout } = {}) {
    const act = async () => {
      if (!this.isConnected) throw this.unreachableError('the connection is lost');
      const { headersOf, jetstream } = this.#client;
      // A check of the API would ask the leader of the whole cluster, which NATS elects last.
      const options = { timeout: eachTimeout ?? timeout + CLIENT_EXTRA_TIMEOUT, checkAPI: false };
      const js = jetstream(this.#connection, options);
      return send({ js, jsm: await js.jetstreamManager(), headersOf });
    };
    return this.withTimeout(timeout, act, kind);
  }

  /**
   * Runs an action with a timeout.
   *
   * @template Result
   * @param {number} timeout milliseconds
   * @param {() => Promise<Result>} act
   * @param {'read' | 'write'} [kind] failures of the two kinds are counted apart: a NATS server that is cut off from its
   *     cluster answers reads
   * @returns {Promise<Result>}
   * @throws {WorldError | Conflict}
   */
  async withTimeout(timeout, act, kind = 'read') {
    const { clock } = this.#options;
    const begin = clock.now();
    let cancelTimer;
    const late = new Promise((_, reject) => {
      const giveUp = () => reject(this.unreachableError('no answer'));
      cancelTimer = clock.after(timeout, () => setImmediate(giveUp));
    });
    try {
      const result = await Promise.race([act(), late]);
      this.#succeededAt[kind] = clock.now();
      if (kind === 'write') this.#failingSince.clear();
      else this.#failingSince.delete(kind);
      return result;
    } catch (error) {
      const failure = this.#lastError ?? this.translateError(error);
      // A conflict is no success: a leader that is cut off answers repeated writes with conflicts.
      if (failure.code === 'unreachable') this.#noteFailure(kind, begin);
      throw failure;
    } finally {
      cancelTimer();
    }
  }

  /**
   * Opens a stream. Creates a missing one, and updates it as `updateStream` does.
   *
   * @param {object} jsm
   * @param {object} config
   * @param {(info: {config: object, state: object}) => boolean} isOurs
   * @returns {Promise<{config: object, state: object, identity: string}>} the stream's info; `identity` names the stream,
   *     the run of the NATS server and the leader: after a change, acknowledged messages may be lost
   * @throws {WorldError} bad-bucket for another program's stream
   */
  async openStream(jsm, config, isOurs) {
    const { name } = config;
    let info;
    try {
      info = await jsm.streams.info(name);
    } catch (error) {
      if (error.code !== NO_STREAM) throw error;
      info = await jsm.streams.add({ ...config, num_replicas: this.#options.replicas });
    }
    if (!isOurs(info)) {
      throw new WorldError('bad-bucket', `the stream ${name} was not made by Sprites: delete it`);
    }
    await this.updateStream(jsm, info, config.max_age);
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
  async updateStream(jsm, info, age) {
    const { name, num_replicas: copies, max_age: maxAge } = info.config;
    // Some NATS servers that are no cluster take the number, and keep one copy.
    if (this.#options.replicas > 1 && !info.cluster?.name)
      throw this.translateError({ code: NO_REPLICAS[0], message: 'it is no cluster' });
    this.requireLeader(info);
    const keepsLongEnough = age === undefined || maxAge >= age;
    if (copies >= this.#options.replicas && keepsLongEnough) return;
    const num_replicas = Math.max(copies, this.#options.replicas);
    await jsm.streams.update(name, { num_replicas, ...(!keepsLongEnough && { max_age: age }) });
  }

  /**
   * A NATS server that is cut off from its cluster answers reads, but accepts no write.
   *
   * @param {object} info a stream's info
   * @throws {WorldError} when the stream has no leader
   */
  requireLeader({ config, cluster }) {
    if (cluster && !cluster.leader) throw this.unreachableError(`${config.name} has no leader`);
  }

  /**
   * Moves to another NATS server after a long failure: this one may be cut off from its cluster. If the next one fails, too,
   * that is the same failure: the link moves on after one timeout, since it may have come from a good server to a bad one.
   *
   * @param {'read' | 'write'} kind of the failed request
   * @param {number} begin time at which it was sent
   */
  #noteFailure(kind, begin) {
    // The failure of an earlier connection is not this one's.
    if (begin < this.#connectedAt) return;
    const since = this.#failingSince.get(kind) ?? Math.max(begin, this.#succeededAt[kind]);
    this.#failingSince.set(kind, since);
    const end = Math.max(since + FAIL_OVER_AFTER, this.#connectedAt + REQUEST_TIMEOUT);
    const isLong = this.#options.clock.now() >= end;
    if (this.#options.servers.length === 1 || !isLong) return;
    this.#abandonedRun = this.run;
    if (this.writableConnection) this.#reconnectElsewhere();
  }

  #reconnectElsewhere() {
    this.#connection.reconnect().catch(() => {}); // A closed connection need not be replaced.
  }

  async close() {
    this.#closing.abort();
    const connection = this.#connection;
    this.#connection = undefined;
    this.isConnected = false;
    await connection?.close();
  }

  /** @returns {WorldError} */
  unreachableError(why) {
    return new WorldError('unreachable', `${this.#options.servers.join(', ')}: ${why}`);
  }

  /**
   * Translates an error of the client.
   *
   * @param {Error & {code?: number | string}} error
   * @returns {WorldError | Conflict}
   */
  translateError(error) {
    if (error instanceof WorldError || error instanceof Conflict) return error;
    const { message, code, name, cause } = error;
    if (WRONG_REVISION.includes(code)) return new Conflict(message);
    const hasName = (...names) => names.includes(name) || names.includes(cause?.name);
    const problems = [
      [
        hasName('AuthorizationError', 'UserAuthenticationExpiredError'),
        'credentials',
        `does not let this server in: ${message}; see --world-credentials`
      ],
      [
        hasName('PermissionViolationError'),
        'permissions',
        `forbids what a world needs: ${message}`
      ],
      // The client does not tell these apart.
      [
        isNotEnabled(error),
        'no-jetstream',
        'has no JetStream (start nats-server with -js), or the stream has no leader yet'
      ],
      [
        NO_REPLICAS.includes(code),
        'no-replicas',
        `can't keep --world-replicas ${this.#options.replicas}: ${message}`
      ]
    ];
    const [, problem, text] = problems.find(([applies]) => applies) ?? [];
    if (problem === undefined) return this.unreachableError(message || code || name);
    return new WorldError(problem, `${this.#options.servers.join(', ')} ${text}`);
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
  function headersOf(fields) {
    const natsHeaders = headers();
    for (const [name, value] of Object.entries(fields)) natsHeaders.set(name, value);
    return natsHeaders;
  }
  return { connect, credsAuthenticator, headersOf, jetstream, Kvm };
}
