import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { buildIfStale, builtFile, ENGINE } from './build.js';

/** SPRITES_SWARM_ENGINE names another build, such as one with a sanitizer. */
const engineProgram = () => process.env.SPRITES_SWARM_ENGINE ?? builtFile(ENGINE, 'swarm');

/** The engine inside Node, for a server with TLS. */
const TLS_PROGRAM = fileURLToPath(new URL('tls-engine.js', import.meta.url));

/**
 * One engine process of native/swarm: commands go to its stdin, and frames come from its stdout.
 */
export class Engine {
  #child;
  #isEndExpected = false;
  #stderr = '';

  /**
   * @param {Record<string, string | number>} options as native/swarm/options.h names them
   * @param {object} events
   * @param {(tick: object) => void} events.tick
   * @param {(header: object, bytes: Buffer) => void} events.page
   * @param {() => void} events.account called after the last page
   * @param {(why: string) => void} events.died called when the engine ends without `quit`
   * @param {?string} [trusted] the certificates to accept, for a server with TLS: see tls-engine.js
   * @throws {UsageError} when the program can't be built
   */
  constructor(options, events, trusted = null) {
    buildIfStale(ENGINE);
    const optionArguments = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    const [program, ...programArguments] =
      trusted === null ? [engineProgram()] : [process.execPath, TLS_PROGRAM, trusted];
    this.#child = spawn(program, [...programArguments, ...optionArguments], {
      stdio: ['pipe', 'pipe', 'pipe']
    });
    const frames = new FrameReader((header, bytes) => events[header.type]?.(header, bytes));
    this.#child.stdout.on('data', (chunk) => frames.push(chunk));
    this.#child.stderr.on('data', (chunk) => {
      this.#stderr = (this.#stderr + chunk).slice(-2000);
    });
    // The exit of a dead engine is reported below: the error of the pipe adds nothing.
    this.#child.stdin.on('error', () => {});

    /** Resolves when the process has ended. */
    this.ended = new Promise((resolve) => {
      const onEnd = (why) => {
        if (!this.#isEndExpected) events.died(`engine ${options.process} ${why}`);
        // An engine that does not start has both events, `error` and `close`.
        this.#isEndExpected = true;
        resolve();
      };
      this.#child.once('error', (error) => onEnd(`does not start: ${error.message}`));
      this.#child.once('close', (code, signal) => onEnd(this.#describeEnd(code, signal)));
    });
  }

  #describeEnd(code, signal) {
    const endText = signal ? `was killed by ${signal}` : `ended with ${code}`;
    const why = this.#stderr.trim();
    const hint = signal === 'SIGKILL' ? ' (out of memory?)' : '';
    return `${endText}${hint}${why ? `: ${why}` : ''}`;
  }

  /** @returns {number | undefined} process id; undefined when the engine did not start */
  get pid() {
    return this.#child.pid;
  }

  /** @param {string} command a line of native/swarm/engine.h */
  send(command) {
    if (command === 'quit') this.#isEndExpected = true;
    this.#child.stdin.write(`${command}\n`);
  }

  /** Ends the engine at once. */
  kill() {
    this.#isEndExpected = true;
    this.#child.kill('SIGKILL');
  }
}

/**
 * The format of an engine's output: JSON lines, each followed by `bytes` raw bytes.
 */

const NEWLINE = 10;

/** Longest line, in bytes. The longest lines are ticks: counters and the intervals of three histograms. */
const LONGEST_LINE = 16 << 20;

export class FrameReader {
  #onFrame;
  #chunks = [];
  #length = 0;
  #header = null;

  /** @param {(header: object, bytes: Buffer) => void} onFrame */
  constructor(onFrame) {
    this.#onFrame = onFrame;
  }

  /**
   * @param {Buffer} chunk the next bytes
   * @throws {SyntaxError} when a line is not JSON, or too long
   */
  push(chunk) {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#header && this.#length < this.#header.bytes) return;
    let unread = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#length);
    for (;;) {
      if (!this.#header) {
        const end = unread.indexOf(NEWLINE);
        if (end < 0) break;
        this.#header = JSON.parse(unread.toString('utf8', 0, end));
        unread = unread.subarray(end + 1);
      }
      if (unread.length < this.#header.bytes) break;
      const header = this.#header;
      this.#header = null;
      this.#onFrame(header, unread.subarray(0, header.bytes));
      unread = unread.subarray(header.bytes);
    }
    if (!this.#header && unread.length > LONGEST_LINE) throw new SyntaxError('an endless line');
    this.#chunks = unread.length > 0 ? [unread] : [];
    this.#length = unread.length;
  }
}
