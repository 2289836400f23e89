import { createRequire } from 'node:module';

import { loadAddon } from './addon.js';

// It is in CommonJS, whose `import` costs more.
const pino = createRequire(import.meta.url)('pino');

/**
 * The log: JSON lines on stderr, about what an operator may have to act on. A join, poll, throw or
 * leave logs nothing, and no id is logged in full.
 *
 * A line is written at once, because one that is lost in a crash is of no use. But the server never
 * waits for the reader, and does not end without one: a full disk, a closed pipe or a reader
 * that has stopped costs lines, and how many is said as soon as one can be written again.
 */

/** The number of "warn" in a line, as pino has it. */
const WARN = 40;

/** Writes lines to a descriptor of this process, and never waits for it. */
export class LineWriter {
  #writeNow = loadAddon().writeNow;
  #fd;
  #tellLost;
  /** The end of a line that has been begun. */
  #rest = Buffer.alloc(0);
  #lost = 0;

  /**
   * @param {number} fd
   * @param {(lost: number) => string} [tellLost] gives the line that says how many lines before it
   *     could not be written
   */
  constructor(fd, tellLost = () => '') {
    this.#fd = fd;
    this.#tellLost = tellLost;
  }

  /**
   * Writes a line, or drops and counts it where it can't be written now.
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

  /** Writes as much as there is room for. */
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
export function tellOfNoInspector(log) {
  process.on('SIGUSR1', () => log.warn('SIGUSR1 opens no inspector here'));
}

/**
 * @param {string} level trace, debug, info, warn, error, fatal or silent
 * @param {number} [fd] where it is written to
 * @returns {import('pino').Logger}
 */
export function createLog(level, fd = 2) {
  const { pid } = process;
  const tellLost = (lost) =>
    `${JSON.stringify({ level: WARN, time: Date.now(), pid, lost, msg: 'lines of this log could not be written' })}\n`;
  // Its own way adds the causes to the message, which says them already.
  const serializers = { err: pino.stdSerializers.errWithCause };
  return pino({ level, base: { pid }, serializers }, new LineWriter(fd, tellLost));
}
