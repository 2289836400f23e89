import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';

import { jetstreamManager } from '@nats-io/jetstream';
import { createAccount, createOperator, createUser } from '@nats-io/nkeys';
import { connect } from '@nats-io/transport-node';

import { endProcess, temporary } from './processes.js';
import { resetSocket } from './http.js';
import { until } from './until.js';

/** Starts a nats-server for a test, with its store in a new folder. */

const PROGRAMS = ['/usr/sbin/nats-server', '/usr/bin/nats-server', '/usr/local/bin/nats-server'];

/** The installed nats-server, if any. */
const PROGRAM = PROGRAMS.find((file) => existsSync(file));

/** For `t.test`'s `skip`: the reason when no nats-server is installed. */
export const skip = PROGRAM ? false : 'no nats-server here';

/**
 * @param {import('tap').Test} t its end kills the nats-server
 * @param {string} [more] further text of its configuration
 * @returns {Promise<NatsServer>}
 */
export async function startNats(t, more = '') {
  const folder = temporary(t);
  const server = new NatsServer(folder, more);
  await server.start();
  t.teardown(() => server.kill());
  return server;
}

/** @returns {Promise<import('@nats-io/transport-node').NatsConnection>} a new client; the test's end closes it */
export async function enterNats(t, { url }) {
  const connection = await connect({ servers: url });
  t.teardown(() => connection.close());
  return connection;
}

class NatsServer {
  #folder;
  #more;
  #process;
  /** The client port; a restart keeps it. -1: any free port. */
  #port = -1;

  constructor(folder, more) {
    this.#folder = folder;
    this.#more = more;
  }

  get url() {
    return `nats://127.0.0.1:${this.#port}`;
  }

  /** The port for the other servers of the cluster; before the first start a port without a listener. */
  clusterPort = 1;

  /** Its process id. */
  get pid() {
    return this.#process.pid;
  }

  async start() {
    const file = join(this.#folder, 'nats.conf');
    const store = join(this.#folder, 'store');
    const more = typeof this.#more === 'function' ? this.#more() : this.#more;
    const jetstream = /^(# no )?jetstream/m.test(more) ? '' : `jetstream { store_dir: "${store}" }`;
    writeFileSync(
      file,
      `host: 127.0.0.1\nport: ${this.#port}\nports_file_dir: "${this.#folder}"\n${jetstream}\n${more}\n`
    );
    for (const oldFile of this.#portFiles()) rmSync(oldFile);
    this.#process = spawn(PROGRAM, ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] });
    let output = '';
    this.#process.stderr.on('data', (text) => (output += text));
    const ports = await until(
      () => {
        if (this.#process.exitCode !== null) throw new Error(`nats-server has ended: ${output}`);
        return this.#readPorts();
      },
      () => `nats-server listens: ${output}`
    );
    this.#port = Number(new URL(ports.nats[0]).port);
    if (ports.cluster) this.clusterPort = Number(new URL(ports.cluster[0]).port);
    await until(
      () => output.includes('Server is ready'),
      () => `ready: ${output}`
    );
  }

  #portFiles() {
    return readdirSync(this.#folder)
      .filter((name) => name.endsWith('.ports'))
      .map((name) => join(this.#folder, name));
  }

  /** Returns the content of the ports file; undefined: there is none yet, or nats-server is still writing it. */
  #readPorts() {
    const [file] = this.#portFiles();
    if (!file) return undefined;
    const text = readFileSync(file, 'utf8');
    return text.trimEnd().endsWith('}') ? JSON.parse(text) : undefined;
  }

  /** Deletes its store. */
  forget() {
    rmSync(join(this.#folder, 'store'), { recursive: true });
  }

  signal(name) {
    this.#process.kill(name);
  }

  kill() {
    return endProcess(this.#process, 'SIGKILL');
  }
}

/**
 * A cluster of three nats-servers. Each has its own proxy to each other one:
 *
 *     n1 ◀ proxies ▶ n2
 *       ▲           ▲
 *       └── n3 ─────┘
 */

/** The account of the user that may remove a cluster's member. Other clients need no name. */
const ACCOUNTS =
  'accounts { SYS { users: [{ user: system, password: system }] }, W { jetstream: enabled, users: [{ user: w, password: w }] } }\n' +
  'system_account: SYS\nno_auth_user: w';

/**
 * @param {import('tap').Test} t its end kills the cluster
 * @returns {Promise<NatsCluster>}
 */
export async function startCluster(t) {
  const cluster = new NatsCluster();
  for (const at of [0, 1, 2]) {
    const otherServers = [0, 1, 2].filter((to) => to !== at);
    const proxiesByServer = new Map();
    for (const to of otherServers) {
      proxiesByServer.set(
        to,
        await startBrokerProxy(t, () => cluster.servers[to]?.clusterPort ?? 1)
      );
    }
    cluster.proxies.push(proxiesByServer);
    cluster.names.push(`n${at + 1}`);
    cluster.servers.push(new NatsServer(temporary(t), () => cluster.configOf(at)));
  }
  await Promise.all(cluster.servers.map((server) => server.start()));
  t.teardown(() => Promise.all(cluster.servers.map((server) => server.kill())));
  return cluster;
}

/** Seconds within which a stream must have its leader and its copies. On an idle machine NATS elects within seconds. */
const LEADER_TIMEOUT = 90;

class NatsCluster {
  /** @type {NatsServer[]} */
  servers = [];
  names = [];
  /** By server: its proxies to the others, by their numbers. @type {Map<number, BrokerProxy>[]} */
  proxies = [];

  /** What `--world` takes. */
  get url() {
    return this.servers.map(({ url }) => url).join();
  }

  /** Returns a server's configuration. It advertises only the addresses of the proxies: by others it could not be cut off. */
  configOf(at) {
    const routes = [...this.proxies[at].values()].map(({ url }) => url).join();
    const { clusterPort } = this.servers[at];
    return (
      `server_name: ${this.names[at]}\n${ACCOUNTS}\ncluster { name: test, listen: "127.0.0.1:${clusterPort === 1 ? -1 : clusterPort}", ` +
      `advertise: "127.0.0.1:1", no_advertise: true, routes: [${routes}] }`
    );
  }

  /** Calls `ask` with a new connection to a live server, as a user of an account. */
  async #ask(how, ask) {
    const connection = await connect({ servers: this.url.split(','), timeout: 1000, ...how });
    try {
      return await ask(connection);
    } finally {
      await connection.close();
    }
  }

  /**
   * Waits until a stream has a leader.
   *
   * @param {string} stream
   * @param {object} [how]
   * @param {number} [how.not] a server that must not be the leader, and is not asked
   * @param {number} [how.copies] least number of copies, with the leader's
   * @returns {Promise<number>} the number of the leading server
   */
  async leads(stream, { not, copies = 1 } = {}) {
    const servers = this.servers.filter((_, at) => at !== not).map(({ url }) => url);
    let lastError;
    const findLeader = async (connection) => {
      const manager = await jetstreamManager(connection, { timeout: 1000, checkAPI: false });
      const { cluster } = await manager.streams.info(stream);
      lastError = JSON.stringify(cluster);
      const { leader, replicas = [] } = cluster;
      const currentReplicas = replicas.filter(({ current, offline }) => current && !offline);
      const isIt = leader && leader !== this.names[not] && currentReplicas.length + 1 >= copies;
      return isIt && [this.names.indexOf(leader)];
    };
    // Each attempt asks another server: a restarted server may know nothing for a while.
    const [at] = await until(
      () => this.#ask({ servers }, findLeader).catch((error) => void (lastError = String(error))),
      () =>
        `${stream} has a leader that is not ${this.names[not]}, and ${copies} copies: ${lastError}`,
      LEADER_TIMEOUT
    );
    return at;
  }

  /** Hangs all traffic between a server and the others. */
  cutOff(at) {
    for (const proxy of this.#proxiesOf(at)) proxy.hang();
  }

  mend(at) {
    for (const proxy of this.#proxiesOf(at)) proxy.mend();
  }

  #proxiesOf(at) {
    return [
      ...this.proxies[at].values(),
      ...this.proxies.flatMap((proxies) => proxies.get(at) ?? [])
    ];
  }

  /** Replaces a server by a new one with another name and an empty store. */
  async exchange(at) {
    const oldName = this.names[at];
    await this.servers[at].kill();
    this.servers[at].forget();
    this.names[at] = `${oldName}x`;
    await this.servers[at].start();
    const peer = JSON.stringify({ peer: oldName });
    await this.#ask({ user: 'system', pass: 'system' }, (connection) =>
      until(async () => {
        const answer = await connection.request('$JS.API.SERVER.REMOVE', peer).catch(String);
        return answer.json?.().success;
      }, `${oldName} is removed`)
    );
  }
}

/**
 * Makes the credentials that NATS's tools make: an operator, an account with JetStream, and a user's file. The keys
 * sign the JWTs (alg ed25519-nkey).
 */

const encode = (value) => Buffer.from(value).toString('base64url');

/** Returns a JWT: `issuer` signs claims about `subject`. */
function sign({ issuer, subject, name, nats }) {
  const header = { typ: 'JWT', alg: 'ed25519-nkey' };
  const claims = {
    jti: name,
    iat: 1,
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name,
    nats: { version: 2, ...nats }
  };
  const text = `${encode(JSON.stringify(header))}.${encode(JSON.stringify(claims))}`;
  return `${text}.${encode(issuer.sign(Buffer.from(text)))}`;
}

/**
 * @param {object} [most] limits of the account
 * @returns {{config: string, credentials: string}} a NATS server's configuration, and the text of a user's file
 */
export function createCredentials(most) {
  const [operator, system, account, user] = [
    ...[createOperator(), createAccount()],
    ...[createAccount(), createUser()]
  ];
  const free = { subs: -1, data: -1, payload: -1 };
  const limits = {
    ...{ ...free, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
    ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1, ...most }
  };
  const operatorJwt = sign({
    ...{ issuer: operator, subject: operator, name: 'operator' },
    nats: { type: 'operator' }
  });
  const accountJwt = sign({
    ...{ issuer: operator, subject: account, name: 'sprites' },
    nats: { type: 'account', limits }
  });
  const systemJwt = sign({
    ...{ issuer: operator, subject: system, name: 'system' },
    nats: { type: 'account', limits: { ...limits, mem_storage: 0, disk_storage: 0 } }
  });
  const userJwt = sign({
    ...{ issuer: account, subject: user, name: 'server' },
    nats: { type: 'user', pub: {}, sub: {}, ...free }
  });
  return {
    config: `operator: ${operatorJwt}\nresolver: MEMORY\nsystem_account: ${system.getPublicKey()}\nresolver_preload: { ${account.getPublicKey()}: ${accountJwt}, ${system.getPublicKey()}: ${systemJwt} }`,
    credentials: credentialsOf(userJwt, user)
  };
}

/** @returns {string} a user's credentials file. A NATS server without an operator knows a user by the key alone */
export function credentialsOf(jwt, user) {
  const seed = Buffer.from(user.getSeed()).toString();
  return `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
}

/**
 * A proxy between a server and its broker. It can cut connections, hang, delay, and limit the bandwidth.
 */

/** Most bytes under way in one direction. Beyond it the sender has to wait, as on a real line. */
const MAX_UNSENT_BYTES = 256 * 1024;

/**
 * @param {{teardown: (end: () => void) => void}} t its end closes the proxy
 * @param {() => number} port returns the broker's port; called for every connection
 * @returns {Promise<BrokerProxy>}
 */
export async function startBrokerProxy(t, port) {
  const proxy = new BrokerProxy(port);
  await proxy.listen();
  t.teardown(() => proxy.close());
  return proxy;
}

class BrokerProxy {
  #port;
  #server;
  /** @type {Set<Direction>} */
  #directions = new Set();
  #isCut = false;
  /** The name of the one client whose connection is cut. */
  #cutName;
  /** Delay of each direction, in milliseconds. */
  delay = 0;
  /** Bandwidth of each direction of a connection, in bytes a second. */
  width = Infinity;
  /** Bytes received so far, in each direction. */
  counts = { out: 0, in: 0 };
  /** The directions that hang: `out` to the broker, `in` from it. */
  hangs = { out: false, in: false };

  constructor(port) {
    this.#port = port;
    this.#server = net.createServer({ noDelay: true }, (client) => this.#connect(client));
  }

  async listen() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** What `--world` takes. */
  get url() {
    return `nats://127.0.0.1:${this.#server.address().port}`;
  }

  /** Resets every connection, and every new one until `mend`. */
  cut() {
    this.#isCut = true;
    for (const direction of this.#directions) direction.reset();
  }

  /**
   * Resets the connection of one client, and its new ones until `mend`.
   *
   * @param {string} name the client's name, as it sends it to the broker
   */
  cutOne(name) {
    this.#cutName = name;
    for (const direction of this.#directions) if (direction.name === name) direction.reset();
  }

  /** @returns {boolean} whether the client's connection is cut */
  isCutClient(name) {
    return name !== undefined && name === this.#cutName;
  }

  /**
   * Stops all traffic without closing connections, like a pulled cable.
   *
   * @param {'out' | 'in'} [side] only the traffic to (`out`) or from (`in`) the broker
   */
  hang(side) {
    this.hangs = side ? { ...this.hangs, [side]: true } : { out: true, in: true };
  }

  /**
   * Slows the traffic down from now on.
   *
   * @param {{delay?: number, width?: number}} how `delay` in milliseconds, `width` in bytes a second
   */
  slow({ delay = 0, width = Infinity }) {
    Object.assign(this, { delay, width });
  }

  /** Ends all faults. Waiting traffic goes on. */
  mend() {
    this.#isCut = false;
    this.#cutName = undefined;
    this.hangs = { out: false, in: false };
    this.slow({});
    for (const direction of this.#directions) direction.deliverDue();
  }

  close() {
    this.#server.close();
    this.cut();
  }

  #connect(client) {
    if (this.#isCut) return resetSocket(client);
    const broker = net.connect({ port: this.#port(), host: '127.0.0.1', noDelay: true });
    for (const [side, from, to] of [
      ['out', client, broker],
      ['in', broker, client]
    ]) {
      const direction = new Direction(this, side, from, to);
      this.#directions.add(direction);
      from.on('error', () => {}); // `close` follows
      from.on('close', () => {
        this.#directions.delete(direction);
        to.destroy();
      });
    }
    return undefined;
  }
}

/** One direction of a connection: a queue of pieces, each with its arrival time. */
class Direction {
  /** The name that the client has sent to the broker. Only the direction `out` knows it. */
  name;
  #proxy;
  #side;
  #from;
  #to;
  #pieces = [];
  #bytes = 0;
  /** Time at which the line has sent the last piece. */
  #sentAt = 0;
  #timer;

  constructor(proxy, side, from, to) {
    this.#proxy = proxy;
    this.#side = side;
    this.#from = from;
    this.#to = to;
    from.on('data', (piece) => this.#enqueue(piece));
  }

  reset() {
    clearTimeout(this.#timer);
    resetSocket(this.#from);
  }

  #enqueue(piece) {
    const { width, delay, counts } = this.#proxy;
    if (this.#side === 'out') {
      this.name ??= /"name":"([^"]*)"/.exec(piece.toString('latin1', 0, 4096))?.[1];
      if (this.#proxy.isCutClient(this.name)) {
        this.reset();
        return;
      }
    }
    counts[this.#side] += piece.length;
    const now = performance.now();
    this.#sentAt = Math.max(now, this.#sentAt) + (piece.length / width) * 1000;
    this.#pieces.push({ piece, due: this.#sentAt + delay });
    this.#bytes += piece.length;
    if (this.#bytes > MAX_UNSENT_BYTES) this.#from.pause();
    this.deliverDue();
  }

  /** Delivers the pieces whose arrival time has come. */
  deliverDue() {
    clearTimeout(this.#timer);
    if (this.#proxy.hangs[this.#side] || this.#to.destroyed) return;
    const now = performance.now();
    // A mended line delivers at once also the pieces that have a later time.
    const isDue = ({ due }) =>
      due <= now || (this.#proxy.delay === 0 && this.#proxy.width === Infinity);
    while (this.#pieces.length > 0 && isDue(this.#pieces[0])) {
      const { piece } = this.#pieces.shift();
      this.#bytes -= piece.length;
      this.#to.write(piece);
    }
    if (this.#bytes <= MAX_UNSENT_BYTES) this.#from.resume();
    if (this.#pieces.length > 0) {
      this.#timer = setTimeout(() => this.deliverDue(), this.#pieces[0].due - now);
    }
  }
}
