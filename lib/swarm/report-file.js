import {
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  openSync,
  unlinkSync,
  writeSync
} from 'node:fs';

import { UsageError } from './errors.js';

/**
 * The file of a report, opened before the run: where it can't be written, the program ends before a run whose
 * report would be lost. What is in it stays until there is something new.
 */
export class ReportFile {
  #file;
  #isNew;
  #descriptor;

  /**
   * @param {string} file
   * @throws {UsageError} when it can't be written
   */
  constructor(file) {
    this.#file = file;
    this.#isNew = !existsSync(file);
    try {
      this.#descriptor = openSync(file, this.#isNew ? 'wx' : constants.O_WRONLY);
    } catch (error) {
      throw new UsageError(`--report ${file} can't be written: ${error.message}`);
    }
  }

  /**
   * @param {string} text all of it
   * @throws {UsageError} when it can't be written after all
   */
  write(text) {
    const bytes = Buffer.from(text);
    try {
      // A device or a pipe has no length to cut.
      if (!this.#isNew) truncate(this.#descriptor);
      for (let at = 0; at < bytes.length;) at += writeSync(this.#descriptor, bytes, at);
    } catch (error) {
      throw new UsageError(`--report ${this.#file} can't be written: ${error.message}`);
    }
    this.#isNew = false;
  }

  /** Closes it; a file that was made for nothing goes. */
  close() {
    closeSync(this.#descriptor);
    if (this.#isNew) unlinkSync(this.#file);
  }
}

function truncate(descriptor) {
  try {
    ftruncateSync(descriptor);
  } catch (error) {
    if (error.code !== 'EINVAL') throw error;
  }
}
