import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { plainEnvironment } from './cpp-build.js';
import { endProcess } from './processes.js';

/**
 * Drives the C++ client under test: native/client/tests/probe.cc reads one command a line.
 */

/** A sanitizer's report ends the process with its own exit code, which `quit` asserts against. */
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
  #position = 0;
  #errors = [];

  /**
   * Starts a probe; the test's end kills it if it still runs.
   *
   * @param {import('tap').Test} t
   * @param {string} program the built sprites_probe
   * @param {string} server the server's URL
   * @param {string[]} [args] further options of the probe
   */
  constructor(t, program, server, args = []) {
    /** All events that the probe printed, in order. */
    this.events = [];
    this.#child = spawn(program, ['--server', server, ...args], {
      env: plainEnvironment(SANITIZERS)
    });
    this.#ended = once(this.#child, 'close');
    this.#child.stdin.on('error', () => {}); // the probe has ended: `quit` checks how
    this.#child.stderr.on('data', (chunk) => this.#errors.push(chunk));
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.events.push(JSON.parse(line));
      for (const look of this.#watchers) look();
    });
    this.#ended.then(() => {
      for (const look of this.#watchers) look(true);
    });
    t.teardown(() => endProcess(this.#child, 'SIGKILL'));
  }

  /** Sends one command; see probe.cc. */
  say(...words) {
    this.#child.stdin.write(`${words.join(' ')}\n`);
  }

  /** Throws a sprite. Returns the event with its result. */
  async throw(tag, edge, sprite) {
    this.say('throw', tag, edge, typeof sprite === 'string' ? sprite : JSON.stringify(sprite));
    return this.until((event) => event.event === 'result' && event.tag === tag, { all: true });
  }

  /**
   * Waits for an event that `holds` accepts. Each wait begins behind the event of the last wait.
   *
   * @param {(event: object) => boolean} holds
   * @param {object} [options]
   * @param {boolean} [options.all] search all events from the start, and don't move the position of the next wait
   * @param {number} [options.seconds]
   */
  until(holds, { all = false, seconds = 45 } = {}) {
    let at = all ? 0 : this.#position;
    return new Promise((resolve, reject) => {
      const end = (error, event) => {
        clearTimeout(timer);
        this.#watchers.delete(checkEvents);
        if (error) reject(error);
        else resolve(event);
      };
      const checkEvents = (hasEnded = false) => {
        for (; at < this.events.length; at++) {
          if (!holds(this.events[at])) continue;
          if (!all) this.#position = at + 1;
          end(null, this.events[at]);
          return;
        }
        if (hasEnded) end(new Error(`the probe ended before: ${holds}\n${this.#errors.join('')}`));
      };
      const timer = setTimeout(() => {
        const last = JSON.stringify(this.events.slice(-20), null, 1);
        end(new Error(`never came: ${holds}\n${last}\n${this.#errors.join('')}`));
      }, seconds * 1000);
      this.#watchers.add(checkEvents);
      checkEvents();
    });
  }

  /** Waits for a state. Returns its event. */
  state(name) {
    return this.until((event) => event.event === 'state' && event.state === name);
  }

  /** Waits for the next sprite. Returns its event. */
  sprite() {
    return this.until((event) => event.event === 'sprite');
  }

  async counts() {
    const before = this.events.length;
    this.say('counts');
    let at = 0;
    return this.until((event) => at++ >= before && event.event === 'counts', { all: true });
  }

  /** The sprites received so far. */
  get caught() {
    return this.events.filter(({ event }) => event === 'sprite').map(({ sprite }) => sprite);
  }

  /** The probe's TCP sockets without O_CLOEXEC: a program that the probe starts would inherit them. */
  get inherited() {
    const tcp = readFileSync('/proc/net/tcp', 'utf8');
    const procFolder = `/proc/${this.#child.pid}`;
    return readdirSync(`${procFolder}/fd`).filter((fd) => {
      const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(`${procFolder}/fd/${fd}`)) ?? [];
      const [, flags] = /^flags:\s+(\d+)$/m.exec(
        readFileSync(`${procFolder}/fdinfo/${fd}`, 'utf8')
      );
      return tcp.includes(` ${inode} `) && !(parseInt(flags, 8) & O_CLOEXEC);
    });
  }

  /** The states so far, in the notation of the test vectors. */
  get states() {
    const states = this.events.filter(({ event }) => event === 'state');
    return states.map(({ state, why }) => (why ? `${state}: ${why}` : state));
  }

  get results() {
    return this.events.filter(({ event }) => event === 'result');
  }

  /** Calls leave() and waits for it, then ends the probe as `quit` does. */
  async leave() {
    this.say('close', 20000);
    const { left } = await this.until(({ event }) => event === 'closed');
    assert.ok(left, 'it left in time');
    await this.quit();
  }

  /** Ends the probe without a leave. It must exit with 0, and stderr must be empty: no sanitizer reported anything. */
  async quit() {
    this.say('quit');
    const [code, signal] = await this.#ended;
    assert.deepEqual({ code, signal }, { code: 0, signal: null }, this.#errors.join(''));
    assert.equal(this.#errors.join(''), '');
  }
}
