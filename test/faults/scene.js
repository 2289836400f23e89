import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

import { plainEnvironment } from '../support/cpp-build.js';
import { endProcess, Teardowns, untilStopped } from '../support/processes.js';
import { ROOT, startServer } from '../support/server.js';

/** Thrown when this host can't run a case; the message is the reason. */
export class Skip extends Error {}

/** The promises to the crowds, and the received sprites. */
class Ledger {
  /** Keys of sprites whose throw got a 202. */
  promised = new Set();
  /** Keys of sprites whose throw was never answered: they may come or not. */
  unanswered = new Set();
  /** Number of arrivals by key. */
  received = new Map();
  lostPlaces = 0;
  violations = [];
  /** The outcome of each throw, with its start in milliseconds. */
  tries = [];
  /** Called with each line and its crowd's name. */
  onLine = () => {};

  record(line, crowd) {
    if (line.promised) this.promised.add(line.promised);
    if (line.open) this.unanswered.add(line.open);
    for (const key of line.got ?? []) this.received.set(key, (this.received.get(key) ?? 0) + 1);
    if (line.tried) {
      const begun = performance.now() - line.tried.seconds * 1000;
      this.tries.push({ ...line.tried, begun, crowd });
    }
    if (line.gone) this.lostPlaces++;
    if (line.broken) this.violations.push(line.broken);
    this.onLine(line, crowd);
  }

  /** Promised sprites that never arrived. */
  get missing() {
    return [...this.promised].filter((key) => !this.received.has(key));
  }

  /** Number of sprites that arrived more than once: at a second client when the first was gone before its ack. */
  get repeated() {
    return [...this.received.values()].filter((times) => times > 1).length;
  }
}

/** A crowd of clients in a separate process: crowd-process.js or hostile-process.js. */
class Crowd {
  #onQuiet = () => {};
  #unparsed = [];
  #counts;

  constructor(child, name, ledger) {
    this.child = child;
    this.name = name;
    this.ended = once(child, 'close');
    child.stdin.on('error', () => {}); // the process was killed, as tests do
    this.ready = new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (text) => {
        // The last line of a killed process may be incomplete.
        let line;
        try {
          line = JSON.parse(text);
        } catch {
          return void this.#unparsed.push(text);
        }
        ledger.record(line, name);
        if (line.done) this.#counts = line.done;
        if (line.ready) resolve();
        if (line.quiet) this.#onQuiet();
      });
      this.ended.then(() => reject(new Error('the crowd ended before it was ready')), reject);
    });
    this.ready.catch(() => {});
  }

  signal(name) {
    this.child.kill(name);
  }

  /** Stops the process between two actions, until SIGCONT. */
  async halt() {
    this.child.stdin.write('stop\n');
    await untilStopped(this.child.pid);
  }

  /** Stops the throws. Resolves when no throw is under way. */
  async stopThrows() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const quiet = new Promise((then) => {
      this.#onQuiet = then;
    });
    this.child.stdin.write('quiet\n');
    await Promise.race([quiet, this.ended]);
  }

  /** Starts a waiting attack, or lets a crowd throw again after `quiet`. */
  resume() {
    this.child.stdin.write('go\n');
  }

  /** Kills the process; its clients do not leave. @returns {Promise<object>} the counts that it has reported */
  async end() {
    await this.stopThrows();
    this.signal('SIGKILL');
    await this.ended;
    return this.#counts;
  }
}

/** The helpers of a case. A scene ends everything that it has started. */
export class Scene extends Teardowns {
  /** @param {{short: boolean}} how */
  constructor({ short }) {
    super();
    this.short = short;
    this.ledger = new Ledger();
    this.crowds = [];
  }

  /** @returns {ReturnType<typeof startServer>} */
  server(options = {}, how = {}) {
    return startServer(this, { options: { 'log-level': 'error', ...options }, ...how });
  }

  /**
   * Starts a crowd against a server, and waits until all its clients have joined.
   *
   * @param {{port: number, host?: string}} server
   * @param {Record<string, string | number>} options of crowd-process.js
   * @param {string[]} [before] a command that runs the process
   */
  async crowd({ port }, options = {}, before = []) {
    const args = { port, name: `c${this.crowds.length}`, ...options };
    const crowd = await this.#start('crowd-process.js', args, before);
    this.crowds.push(crowd);
    return crowd;
  }

  /**
   * Starts an attack, and waits until its clients have joined.
   *
   * @param {Record<string, string | number | boolean>} options of hostile-process.js
   */
  attack(options) {
    return this.#start('hostile-process.js', options);
  }

  /**
   * Starts bin/sprites-swarm against a server.
   *
   * @param {{port: number}} server
   * @param {(string | number)[]} args its command and options
   * @returns {{result: () => Promise<object>, end: () => Promise<object>}} `result` waits for a run that ends by itself;
   *     `end` interrupts the run, and returns its result once everything under way has arrived
   */
  swarm({ port }, args) {
    const child = spawn(
      process.execPath,
      [`${ROOT}bin/sprites-swarm`, ...args, '--port', port, '--json', '--quiet'].map(String),
      { env: plainEnvironment(), stdio: ['ignore', 'pipe', 'pipe'] }
    );
    const output = Promise.all([text(child.stdout), text(child.stderr)]);
    this.teardown(() => endProcess(child, 'SIGKILL'));
    const result = async () => {
      const [out, err] = await output;
      assert.notEqual(out, '', `the swarm says: ${err}`);
      return JSON.parse(out);
    };
    return {
      result,
      end() {
        child.kill('SIGINT');
        return result();
      }
    };
  }

  async #start(file, options, commandPrefix = []) {
    const setOptions = Object.entries(options).filter(([, value]) => value !== undefined);
    const [program, ...rest] = [
      ...commandPrefix,
      process.execPath,
      `${ROOT}test/faults/${file}`,
      ...setOptions.flatMap(([name, value]) =>
        value === true ? `--${name}` : [`--${name}`, String(value)]
      )
    ];
    const child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
    const crowd = new Crowd(child, options.name, this.ledger);
    this.teardown(async () => {
      child.kill('SIGKILL');
      await crowd.ended;
    });
    crowd.clients = Number(options.clients ?? 1);
    await crowd.ready;
    return crowd;
  }

  /** @returns {Promise<string>} a folder that the scene's end removes */
  async folder() {
    const path = await mkdtemp(join(tmpdir(), 'sprites-faults-'));
    this.teardown(() => rm(path, { recursive: true, force: true }));
    return path;
  }

  /**
   * Waits until no throw and no sprite is under way. Then asserts that each sprite with a 202 was received, and that
   * the server's counts agree.
   *
   * @param {Awaited<ReturnType<typeof startServer>>} server
   * @returns {Promise<string>} the figures
   */
  async account(server, seconds = 40) {
    await Promise.all(this.crowds.map((crowd) => crowd.stopThrows()));
    const status = await server.until(({ waiting }) => waiting === 0, seconds);
    const { ledger } = this;
    assert.deepEqual(ledger.violations, [], 'the contract was kept');
    assert.deepEqual(
      ledger.missing.slice(0, 5),
      [],
      `${ledger.missing.length} of ${ledger.promised.size} promised sprites never came`
    );
    assert.ok(ledger.promised.size > 0, 'something was promised');
    assert.equal(status.lost, 0, 'the server has lost none');
    assert.equal(status.acked, status.thrown, 'every sprite was acked');
    assert.ok(status.thrown >= ledger.promised.size, 'it counts what it has promised');
    return (
      `${ledger.promised.size} promised, ${ledger.promised.size} received` +
      (ledger.repeated ? ` (${ledger.repeated} twice: the first had not acked)` : '') +
      `, lost ${status.lost}`
    );
  }
}

/** @returns {() => number} seconds since now, to a tenth */
export function stopwatch() {
  const start = performance.now();
  return () => Math.round((performance.now() - start) / 100) / 10;
}
