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
const WARN = 40;

/** Writes lines to a descriptor of this process, and never waits for it. */
export class LineWriter {
  #writeNow = loadAddon().writeNow;
  #fd;
  #tellLost;
  /** The rest of a partly written line. */
  #rest = Buffer.alloc(0);
  #lost = 0;

  /**
   * @param {number} fd
   * @param {(lost: number) => string} [tellLost] returns the line that says how many lines were
   *     lost before it
   */
  constructor(fd, tellLost = () => '') {
    this.#fd = fd;
    this.#tellLost = tellLost;
  }

  /**
   * Writes a line; drops and counts a line that can't be written now.
   *
   * @param {string} line with its line feed
   */
  write(line) {
    const note = this.#lost > 0 ? this.#tellLost(this.#lost) : '';
    const bytes = Buffer.concat([this.#rest, Buffer.from(note + line)]);
    const taken = this.#push(bytes);
    if (taken > this.#rest.length || taken === bytes.length) {
      this.#lost = 0;
      this.#rest = bytes.subarray(taken);
    } else {
      this.#lost += 1;
      this.#rest = this.#rest.subarray(taken);
    }
  }

  /** Writes as much as the descriptor takes. */
  #push(bytes) {
    let taken = 0;
    while (taken < bytes.length) {
      const wrote = this.#writeNow(this.#fd, bytes.subarray(taken));
      if (wrote <= 0) break;
      taken += wrote;
    }
    return taken;
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
 * @param {number} [fd] descriptor of the log
 * @returns {import('pino').Logger}
 */
export function createLog(level, fd = 2) {
  const { pid } = process;
  const tellLost = (lost) =>
    `${JSON.stringify({ level: WARN, time: Date.now(), pid, lost, msg: 'lines of this log could not be written' })}\n`;
  // pino's own serializer adds the causes to the message, which names them already.
  const serializers = { err: pino.stdSerializers.errWithCause };
  return pino({ level, base: { pid }, serializers }, new LineWriter(fd, tellLost));
}
