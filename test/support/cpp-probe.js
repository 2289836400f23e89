import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { plainEnvironment } from './cpp-build.js';

/**
 * The C++ client under test: native/client/tests/probe.cc, driven line by line.
 */

/** Reports end the process with a code of their own, which `quit` then finds. */
const SANITIZERS = {
  ASAN_OPTIONS: 'detect_leaks=1:exitcode=99',
  UBSAN_OPTIONS: 'print_stacktrace=1:exitcode=99',
  TSAN_OPTIONS: 'exitcode=99:halt_on_error=1'
};

const O_CLOEXEC = 0o2000000;

export class Probe {
  #child;
  #ended;
  #watchers = new Set();
  #seen = 0;
  #errors = [];

  /**
   * Starts a probe; the test's end kills it if it still runs.
   *
   * @param {import('tap').Test} t
   * @param {string} program the built sprites_probe
   * @param {string} server its URL
   * @param {string[]} [args] more of its options
   */
  constructor(t, program, server, args = []) {
    /** Everything it said, in order. */
    this.events = [];
    this.#child = spawn(program, ['--server', server, ...args], {
      env: plainEnvironment(SANITIZERS)
    });
    this.#ended = once(this.#child, 'close');
    this.#child.stdin.on('error', () => {}); // it has ended: `quit` sees how
    this.#child.stderr.on('data', (chunk) => this.#errors.push(chunk));
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.events.push(JSON.parse(line));
      for (const look of this.#watchers) look();
    });
    this.#ended.then(() => {
      for (const look of this.#watchers) look(true);
    });
    t.teardown(async () => {
      this.#child.kill('SIGKILL');
      await this.#ended;
    });
  }

  /** Sends one command; see probe.cc. */
  say(...words) {
    this.#child.stdin.write(`${words.join(' ')}\n`);
  }

  /** Throws a sprite and answers the event of its result. */
  async throw(tag, edge, sprite) {
    this.say('throw', tag, edge, typeof sprite === 'string' ? sprite : JSON.stringify(sprite));
    return this.until((event) => event.event === 'result' && event.tag === tag, { all: true });
  }

  /**
   * Waits for an event that `holds`; each waits on from where the last wait ended.
   *
   * @param {(event: object) => boolean} holds
   * @param {object} [options]
   * @param {boolean} [options.all] look at everything from the start, and leave the place as it is
   * @param {number} [options.seconds]
   */
  until(holds, { all = false, seconds = 45 } = {}) {
    let at = all ? 0 : this.#seen;
    return new Promise((resolve, reject) => {
      const end = (error, event) => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        if (error) reject(error);
        else resolve(event);
      };
      const look = (over = false) => {
        for (; at < this.events.length; at++) {
          if (!holds(this.events[at])) continue;
          if (!all) this.#seen = at + 1;
          end(null, this.events[at]);
          return;
        }
        if (over) end(new Error(`the probe ended before: ${holds}\n${this.#errors.join('')}`));
      };
      const timer = setTimeout(() => {
        const last = JSON.stringify(this.events.slice(-20), null, 1);
        end(new Error(`never came: ${holds}\n${last}\n${this.#errors.join('')}`));
      }, seconds * 1000);
      this.#watchers.add(look);
      look();
    });
  }

  /** Waits for a state, and answers its event. */
  state(name, options) {
    return this.until((event) => event.event === 'state' && event.state === name, options);
  }

  /** Waits for the next sprite, and answers its event. */
  sprite(options) {
    return this.until((event) => event.event === 'sprite', options);
  }

  async counts() {
    const before = this.events.length;
    this.say('counts');
    let at = 0;
    return this.until((event) => at++ >= before && event.event === 'counts', { all: true });
  }

  /** The sprites that came in so far. */
  get caught() {
    return this.events.filter(({ event }) => event === 'sprite').map(({ sprite }) => sprite);
  }

  /** The TCP sockets that a program would inherit which it starts. */
  get inherited() {
    const tcp = readFileSync('/proc/net/tcp', 'utf8');
    const of = `/proc/${this.#child.pid}`;
    return readdirSync(`${of}/fd`).filter((fd) => {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`${of}/fd/${fd}`)) ?? [];
      const [, flags] = /^flags:\s+(\d+)$/m.exec(readFileSync(`${of}/fdinfo/${fd}`, 'utf8'));
      return tcp.includes(` ${inode} `) && !(parseInt(flags, 8) & O_CLOEXEC);
    });
  }

  /** The states so far, as the vectors write them. */
  get states() {
    const states = this.events.filter(({ event }) => event === 'state');
    return states.map(({ state, why }) => (why ? `${state}: ${why}` : state));
  }

  get results() {
    return this.events.filter(({ event }) => event === 'result');
  }

  /** leave() and wait for it; then ends the program, which must end well. */
  async leave() {
    this.say('close', 20000);
    const { left } = await this.until(({ event }) => event === 'closed');
    assert.ok(left, 'it left in time');
    await this.quit();
  }

  /** Ends the program as it stands; it must end well, and no sanitizer may have said a word. */
  async quit() {
    this.say('quit');
    const [code, signal] = await this.#ended;
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, this.#errors.join(''));
    assert.equal(this.#errors.join(''), '');
  }
}
