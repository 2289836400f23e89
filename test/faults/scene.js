import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

import { plainEnvironment } from '../support/cpp-build.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** Why a case can't be shown here. */
export class Skip extends Error {}

/** What was promised to crowds, and what came. */
class Ledger {
  /** Keys of sprites that a 202 was given for. */
  promised = new Set();
  /** Keys of sprites whose throw was never answered: they may come, or not. */
  open = new Set();
  /** How often each key came. */
  received = new Map();
  gone = 0;
  broken = [];
  /** How each throw fared, and when it began, in milliseconds. */
  tries = [];
  /** Told of each line, and of the name of the crowd that has said it. */
  heard = () => {};

  take(line, crowd) {
    if (line.promised) this.promised.add(line.promised);
    if (line.open) this.open.add(line.open);
    for (const key of line.got ?? []) this.received.set(key, (this.received.get(key) ?? 0) + 1);
    if (line.tried) {
      const begun = performance.now() - line.tried.seconds * 1000;
      this.tries.push({ ...line.tried, begun, crowd });
    }
    if (line.gone) this.gone++;
    if (line.broken) this.broken.push(line.broken);
    this.heard(line, crowd);
  }

  /** Promised, and never seen again. */
  get missing() {
    return [...this.promised].filter((key) => !this.received.has(key));
  }

  /** Seen more than once: by two clients, when the first was gone before it acked. */
  get repeated() {
    return [...this.received.values()].filter((times) => times > 1).length;
  }
}

/** A crowd of clients in a process of its own: crowd-process.js, or hostile-process.js. */
class Crowd {
  #isQuiet = () => {};
  #rest = [];
  #done;

  constructor(child, name, ledger) {
    this.child = child;
    this.name = name;
    this.ended = once(child, 'close');
    child.stdin.on('error', () => {}); // killed: that is what it is for
    this.ready = new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (text) => {
        // The last line of one that was killed may be half a line.
        let line;
        try {
          line = JSON.parse(text);
        } catch {
          return void this.#rest.push(text);
        }
        ledger.take(line, name);
        if (line.done) this.#done = line.done;
        if (line.ready) resolve();
        if (line.quiet) this.#isQuiet();
      });
      this.ended.then(() => reject(new Error('the crowd ended before it was ready')), reject);
    });
    this.ready.catch(() => {});
  }

  signal(name) {
    this.child.kill(name);
  }

  /** Stops the process where nothing is half done, until SIGCONT. */
  async halt() {
    this.child.stdin.write('stop\n');
    await until(() => / T /.test(readFileSync(`/proc/${this.child.pid}/stat`, 'utf8')));
  }

  /** Throws no more; resolves when no throw is under way. */
  async quiet() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const said = new Promise((then) => {
      this.#isQuiet = then;
    });
    this.child.stdin.write('quiet\n');
    await Promise.race([said, this.ended]);
  }

  /** Lets it begin, where it waits for that, or throw on after `quiet`. */
  go() {
    this.child.stdin.write('go\n');
  }

  /** Ends it, without a word to the server. @returns {Promise<object>} what it says it has done */
  async end() {
    await this.quiet();
    this.signal('SIGKILL');
    await this.ended;
    return this.#done;
  }
}

/** What a case has at hand. It ends everything it has started. */
export class Scene {
  #endings = [];

  /** @param {{short: boolean}} how */
  constructor({ short }) {
    this.short = short;
    this.ledger = new Ledger();
    this.crowds = [];
  }

  /** As tap's: what starts servers takes it for the test. */
  teardown(end) {
    this.#endings.push(end);
  }

  async end() {
    for (const end of this.#endings.reverse()) await end();
  }

  /** @returns {ReturnType<typeof startServer>} */
  server(options = {}, how = {}) {
    return startServer(this, { options: { 'log-level': 'error', ...options }, ...how });
  }

  /**
   * Starts a crowd against a server and waits until all of it has joined.
   *
   * @param {{port: number, host?: string}} server
   * @param {Record<string, string | number>} options of crowd-process.js
   * @param {string[]} [before] what to run it by
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
    const ended = once(child, 'close');
    const told = Promise.all([text(child.stdout), text(child.stderr)]);
    this.teardown(async () => {
      child.kill('SIGKILL');
      await ended;
    });
    const result = async () => {
      await ended;
      const [out, err] = await told;
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

  async #start(file, options, before = []) {
    const given = Object.entries(options).filter(([, value]) => value !== undefined);
    const [program, ...rest] = [
      ...before,
      process.execPath,
      `${ROOT}test/faults/${file}`,
      ...given.flatMap(([name, value]) =>
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

  /** @returns {Promise<string>} a folder that goes with the scene */
  async folder() {
    const path = await mkdtemp(join(tmpdir(), 'sprites-faults-'));
    this.teardown(() => rm(path, { recursive: true, force: true }));
    return path;
  }

  /**
   * Lets every throw and every sprite under way come to its end, and holds the server to what it has
   * promised: each sprite with a 202 was received, and its own counts say so too.
   *
   * @param {Awaited<ReturnType<typeof startServer>>} server
   * @returns {Promise<string>} the figures
   */
  async account(server, seconds = 40) {
    await Promise.all(this.crowds.map((crowd) => crowd.quiet()));
    const status = await server.until(({ waiting }) => waiting === 0, seconds);
    const { ledger } = this;
    assert.deepEqual(ledger.broken, [], 'the contract was kept');
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
