import { createRequire } from 'node:module';

import { loadAddon } from './addon.js';

// pino is CommonJS, and its `require` costs less than its `import`.
const pino = createRequire(import.meta.url)('pino');

/**
 * The log: JSON lines on stderr, about what an operator may have to act on. A join, poll, throw or
 * leave logs nothing, and no id is logged in full.
 *
 * A line is written at once, because a crash would lose a buffered line. But the server never waits for the reader, and
 * does not end without one. A full disk, a closed pipe or a stopped reader costs lines; the next line that can be written
 * says how many.
 */

/** pino's number for the level warn. */
const WARN_LEVEL = 40;

/** Writes lines to a descriptor of this process, and never waits for it. */
export class LineWriter {
  #writeNow = loadAddon().writeNow;
  #fd;
  #describeLost;
  /** The rest of a partly written line. */
  #unwritten = Buffer.alloc(0);
  #lost = 0;

  /**
   * @param {number} fd
   * @param {(lost: number) => string} [describeLost] returns the line that says how many lines were
   *     lost before it
   */
  constructor(fd, describeLost = () => '') {
    this.#fd = fd;
    this.#describeLost = describeLost;
  }

  /**
   * Writes a line; drops and counts a line that can't be written now.
   *
   * @param {string} line with its line feed
   */
  write(line) {
    const lostNote = this.#lost > 0 ? this.#describeLost(this.#lost) : '';
    const bytes = Buffer.concat([this.#unwritten, Buffer.from(lostNote + line)]);
    const written = this.#writeSome(bytes);
    if (written > this.#unwritten.length || written === bytes.length) {
      this.#lost = 0;
      this.#unwritten = bytes.subarray(written);
    } else {
      this.#lost += 1;
      this.#unwritten = this.#unwritten.subarray(written);
    }
  }

  /** Writes as much as the descriptor takes. */
  #writeSome(bytes) {
    let written = 0;
    while (written < bytes.length) {
      const count = this.#writeNow(this.#fd, bytes.subarray(written));
      if (count <= 0) break;
      written += count;
    }
    return written;
  }
}

/**
 * Logs that SIGUSR1 came: its sender may wait for an inspector (no-inspector.js).
 *
 * @param {import('pino').Logger} log
 */
export function logInspectorRequests(log) {
  process.on('SIGUSR1', () => log.warn('SIGUSR1 opens no inspector here'));
}

/**
 * @param {string} level trace, debug, info, warn, error, fatal or silent
 * @param {object} [about]
 * @param {string} [about.name] the server's name in its world, for every line; none: it is in no world
 * @param {number} [about.fd] descriptor of the log
 * @returns {import('pino').Logger}
 */
export function createLog(level, { name = 'none', fd = 2 } = {}) {
  const base = { pid: process.pid, ...(name !== 'none' && { name }) };
  const lostText = 'lines of this log could not be written';
  const describeLost = (lost) =>
    `${JSON.stringify({ level: WARN_LEVEL, time: Date.now(), ...base, lost, msg: lostText })}\n`;
  // pino's own serializer adds the causes to the message, which names them already.
  const serializers = { err: pino.stdSerializers.errWithCause };
  return pino({ level, base, serializers }, new LineWriter(fd, describeLost));
}
