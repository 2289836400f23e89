import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';

import { certificate } from './certificate.js';
import { checkAnswer, problemOf } from './contract.js';
import { request, Wire } from './http.js';
import { launch, ROOT } from './launch.js';
import { endProcess, temporary } from './processes.js';
import { until, untilAnswer } from './until.js';

/** Source address of the tests' own requests to the admin port. Tests that attack the port use another one. */
const OPERATOR_ADDRESS = '127.0.0.77';

/** Timeout for a server's end, in milliseconds: above any drain here plus the kernel's timeout of a stalled reader. */
const STOP_TIMEOUT = 120_000;

/**
 * Runs the server as a process, and speaks to it over sockets.
 */

export { ROOT };

/**
 * Default number of workers of the tests' servers: SPRITES_TEST_DOORS may be "worker" (1) or "workers" (2). With two,
 * each worker has its share of a limit.
 */
export const DEFAULT_WORKERS = { worker: 1, workers: 2 }[process.env.SPRITES_TEST_DOORS] ?? 0;

/**
 * Starts a server; the test's end kills it if it still runs.
 *
 * @param {import('tap').Test} t
 * @param {object} [how]
 * @param {Record<string, string | number>} [how.options] options without the dashes
 * @param {Record<string, string>} [how.env] added to the environment
 * @param {string} [how.greeting] first bytes of every connection, such as a PROXY header
 * @param {string[]} [how.command] the program; default: bin/sprites with this Node
 * @returns {Promise<Server>} once it listens
 */
export async function startServer(t, how = {}) {
  const { greeting = '', options = {}, command, env } = how;
  const all = { 'admin-port': 0, host: '127.0.0.1', workers: DEFAULT_WORKERS, ...options };
  const launched = launch(all, { command, env });
  t.teardown(() => endProcess(launched.child, 'SIGKILL'));
  const ports = await launched.listening;
  const { host, cors } = all;
  const server = new Server({ ...launched, host, ports, cors, greeting });
  await server.status();
  await server.untilDisconnected();
  server.baseline = server.descriptors();
  return server;
}

/**
 * Starts a server with all its ports: the main port, TLS, the admin port and the transient port.
 *
 * @param {import('tap').Test} t
 * @param {Record<string, string | number>} [options] startServer's options; `workers` 0: no transient port
 * @returns {Promise<{server: object, ways: Record<string, {port: number, open: () => Promise<Wire>}>}>}
 *     `ways` by name: main, tls, admin and workers
 */
export async function startWithAllPorts(t, { workers = 2, ...options } = {}) {
  const ports = { 'admin-port': 0, 'tls-port': 0, ...(workers > 0 && { 'transient-port': 0 }) };
  const server = await startServer(t, {
    options: { drain: 0, workers, ...ports, ...certificate(temporary(t)), ...options }
  });
  const listener = (port, open = () => Wire.open(port)) => ({ port, open });
  const ways = {
    main: listener(server.port),
    tls: listener(server.tlsPort, () => Wire.openTls(server.tlsPort)),
    admin: listener(server.adminPort)
  };
  if (workers > 0) ways.workers = listener(server.transientPort);
  return { server, ways };
}

/**
 * Stops a server at the test's end. A server that does not end well fails the test by `t.threw`: after a thrown error
 * tap would skip the other teardowns, and the test file would hang.
 *
 * @param {import('tap').Test} t
 * @param {Server} server
 */
export function stopAtEnd(t, server) {
  t.teardown(() => server.stop().catch((error) => t.threw(error)));
}

/** Returns whether a descriptor belongs to an event loop: its epoll, eventfd or pipe. */
function isLoopDescriptor(fd) {
  try {
    return /^(pipe|anon_inode):/.test(readlinkSync(fd));
  } catch {
    return true; // The descriptor was closed just now.
  }
}

class Server {
  #ended;
  #ids = [];
  #wires = new Set();
  #cors;
  #greeting;

  constructor({ child, ended, lines, errors, host, ports, cors, greeting }) {
    /** The child process, for signals. */
    this.child = child;
    this.#greeting = greeting;
    this.#ended = ended;
    this.#cors = cors;
    /** The lines of its stdout. */
    this.lines = lines;
    this.errors = errors;
    this.host = host;
    /** Sets port, adminPort, tlsPort and transientPort; undefined: no such port. */
    Object.assign(this, ports);
    this.pid = child.pid;
  }

  get url() {
    return `http://${this.host}:${this.port}`;
  }

  /** The parsed lines of its log. */
  get logLines() {
    const lines = Buffer.concat(this.errors).toString().split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  /** @returns {Promise<{code: number | null, signal: string | null}>} resolves when the server has ended */
  async ended() {
    const [code, signal] = await this.#ended;
    return { code, signal };
  }

  /** Kills the server by SIGKILL. */
  kill() {
    this.child.kill('SIGKILL');
    return this.ended();
  }

  /** @returns {Promise<Wire>} a connection; `assertNothingLeft` closes it */
  async wire() {
    const wire = await Wire.open(this.port, this.host);
    if (this.#greeting !== '') wire.send(this.#greeting);
    this.#wires.add(wire);
    return wire;
  }

  /**
   * Sends a request over a new connection, and checks the answer by `checkAnswer`.
   *
   * @returns {Promise<import('./http.js').Answer>}
   */
  async ask(method, target, more) {
    const wire = await this.wire();
    try {
      wire.send(request(method, target, more));
      return await this.read(wire, { head: method === 'HEAD' });
    } finally {
      await wire.destroy();
      this.#wires.delete(wire);
    }
  }

  /** Reads an answer from a connection, and checks it by `checkAnswer`. */
  async read(wire, options = {}) {
    return checkAnswer(await wire.read(options), { cors: this.#cors, ...options });
  }

  /** @returns {Promise<string>} the id of a new client; `assertNothingLeft` makes it leave */
  async join() {
    const { status, body } = await this.ask('POST', '/join');
    assert.equal(status, 201);
    this.#ids.push(body.id);
    return body.id;
  }

  poll(id, query = '') {
    return this.ask('GET', `/poll/${id}${query && `?${query}`}`);
  }

  /** Sends a poll, and waits until it is parked; `answer` is a promise. */
  async park(id, query = '', wire = undefined) {
    const pollWire = wire ?? (await this.wire());
    const { polls } = await this.status();
    pollWire.send(request('GET', `/poll/${id}${query && `?${query}`}`));
    const answer = this.read(pollWire);
    answer.catch(() => {});
    await this.until((status) => status.polls > polls);
    return { wire: pollWire, answer };
  }

  throw(id, edge, body = '{}', query = '') {
    return this.ask('POST', `/throw/${id}/${edge}${query && `?${query}`}`, { body });
  }

  leave(id) {
    return this.ask('POST', `/leave/${id}`);
  }

  /**
   * Asserts that sprites are conserved.
   *
   * @returns {Promise<object>} the public counts, with the operator's counts of the admin port
   */
  async status() {
    const { body } = await this.ask('GET', '/status');
    const { thrown, acked, waiting, lost, crossedIn, crossedOut } = body;
    const accounted = acked + waiting + lost + crossedOut;
    assert.equal(thrown + crossedIn, accounted, 'sprites are conserved');
    const { inputs, inputsReduced, inputsSuperseded, inputsWaiting } = body;
    assert.equal(inputs, inputsReduced + inputsSuperseded + inputsWaiting, 'and so are inputs');
    const counts = await this.adminStatus();
    // The public status has less on the world.
    return { ...counts, ...body, world: counts.world ?? body.world };
  }

  /**
   * @param {Wire} [openWire] an open connection to the admin port; default: a new one
   * @returns {Promise<object>} /status of the admin port
   */
  async adminStatus(openWire) {
    if (this.adminPort === undefined) return {};
    const wire = openWire ?? (await Wire.open(this.adminPort, '127.0.0.1', OPERATOR_ADDRESS));
    try {
      return (await wire.send(request('GET', '/status')).read()).body;
    } finally {
      if (openWire === undefined) await wire.destroy();
    }
  }

  /** Polls /status until `holds(status)`. */
  until(holds, seconds) {
    return untilAnswer(() => this.status(), holds, seconds);
  }

  /** Number of the process's open descriptors, without event loops': a thread that starts later has its own loop. */
  descriptors() {
    const folder = `/proc/${this.pid}/fd`;
    return readdirSync(folder).filter((fd) => !isLoopDescriptor(`${folder}/${fd}`)).length;
  }

  /** Waits until the process has no more descriptors than the baseline. */
  async untilDisconnected() {
    let lastCount;
    let stableTimes = 0;
    await until(
      () => {
        const now = this.descriptors();
        stableTimes = now === lastCount ? stableTimes + 1 : 0;
        lastCount = now;
        // Without a baseline yet: waits until the number is stable.
        return this.baseline === undefined ? stableTimes >= 5 : now <= this.baseline;
      },
      () => `${lastCount} descriptors are open, and there were ${this.baseline}`
    );
  }

  /**
   * Closes every connection and makes every client leave. Then asserts that the server keeps nothing of them: no
   * descriptors, clients, parked polls or mailbox bytes.
   */
  async assertNothingLeft() {
    if (this.child.exitCode !== null) return;
    await Promise.all([...this.#wires].map((wire) => wire.destroy()));
    this.#wires.clear();
    await this.untilDisconnected();
    for (const id of this.#ids.splice(0)) assert.equal((await this.leave(id)).status, 204);
    const { clients, parked, waiting, mailboxBytes, watching } = await this.until(
      (status) => status.watching === 0
    );
    assert.deepEqual(
      { clients, parked, waiting, mailboxBytes, watching },
      { clients: 0, parked: 0, waiting: 0, mailboxBytes: 0, watching: 0 },
      'nothing is left'
    );
    await this.untilDisconnected();
  }

  /** Stops the server by a signal. It must exit well and in time. */
  async stop(signal = 'SIGTERM') {
    this.child.kill(signal);
    const killTimer = setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT);
    const ended = await this.ended();
    clearTimeout(killTimer);
    assert.deepEqual(
      ended,
      { code: 0, signal: null },
      `an end with exit code 0 (${Buffer.concat(this.errors)})`
    );
  }
}

/**
 * Runs tests of the wire contract against one server. After each test the server must keep nothing of it, and at the
 * end it must stop well.
 *
 * @param {import('tap').Test} t
 * @param {{options?: object, env?: object}} how see startServer
 * @param {(t: import('tap').Test, server: Server) => void} tests adds the tests to `t`
 */
export function contract(t, how, tests) {
  t.test(`with ${JSON.stringify(how.options ?? {})}`, async (t) => {
    const server = await startServer(t, how);
    t.afterEach(() => server.assertNothingLeft());
    await tests(t, server);
    t.test('the server stops well', () => server.stop());
  });
}

/**
 * Asserts that requests are refused with a problem and change nothing.
 *
 * @param {import('tap').Test} t
 * @param {Server} server
 * @param {string} problem the problem's name
 * @param {() => Promise<import('./http.js').Answer>} ask
 * @param {string} [why] the fault of the request, for messages
 */
export async function refused(t, server, problem, ask, why = problem) {
  const before = unchangedCounts(await server.status());
  const answer = await ask();
  t.equal(problemOf(answer), problem, why);
  t.strictSame(unchangedCounts(await server.status()), before, `${why} changes nothing`);
  return answer;
}

/** The counts that a refused request must not change. */
const UNCHANGED_COUNTS = [
  ...['clients', 'parked', 'thrown', 'acked', 'waiting', 'lost', 'mailboxBytes'],
  ...['joined', 'left', 'expired', 'flown', 'rows', 'columns'],
  ...['feeds', 'watching', 'published', 'deleted', 'feedMemory'],
  ...['players', 'playersJoined', 'playersLeft', 'inputs', 'inputsWaiting', 'inputsRepeated']
];

/** Returns the UNCHANGED_COUNTS of a server. With workers without `watching`, which a worker reports with a delay. */
const unchangedCounts = (status) =>
  pick(
    status,
    UNCHANGED_COUNTS.filter((name) => name !== 'watching' || !(status.workers > 0))
  );

/**
 * @param {object} object
 * @param {string[]} names
 * @returns {object} an object with only these properties
 */
export function pick(object, names) {
  return Object.fromEntries(names.map((name) => [name, object[name]]));
}

/** The counts that survive a restart with a state. */
const DURABLE_COUNTS = [
  ...['clients', 'rows', 'columns', 'thrown', 'acked', 'waiting', 'lost', 'mailboxBytes'],
  ...['joined', 'left', 'expired', 'flown']
];

export const durableCounts = (status) => pick(status, DURABLE_COUNTS);
