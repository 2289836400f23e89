import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync
} from 'node:fs';

import { UsageError } from '../base/option-help.js';

/**
 * The file of a report, opened before the run: where it can't be written, the program ends before a run whose
 * report would be lost. What is in it stays until there is something new.
 */
export class ReportFile {
  #file;
  #isNew;
  #descriptor;
  #path;

  /**
   * @param {string} file
   * @throws {UsageError} when it can't be written
   */
  constructor(file) {
    this.#file = file;
    this.#isNew = !existsSync(file);
    try {
      this.#descriptor = openSync(file, this.#isNew ? 'wx' : constants.O_WRONLY);
      // What a device or a pipe is called leads nowhere.
      if (fstatSync(this.#descriptor).isFile()) this.#path = realpathSync(file);
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
      const { mode } = fstatSync(this.#descriptor);
      // Beside it also where it was made for this run: it may have been removed meanwhile.
      if (!this.#path || !replace(this.#path, bytes, mode)) this.#fill(bytes);
    } catch (error) {
      throw new UsageError(`--report ${this.#file} can't be written: ${error.message}`);
    }
    this.#isNew = false;
  }

  #fill(bytes) {
    if (this.#path) ftruncateSync(this.#descriptor);
    for (let at = 0; at < bytes.length;) at += writeSync(this.#descriptor, bytes, at);
  }

  /** Closes it; a file that was made for nothing goes. */
  close() {
    closeSync(this.#descriptor);
    if (this.#isNew) rmSync(this.#file, { force: true });
  }
}

/** Errors by which a folder takes no second file. */
const NO_ROOM = ['EACCES', 'EPERM', 'EROFS', 'EEXIST', 'ENAMETOOLONG'];

/** @returns {boolean} whether the file is another one now; false where there can be none beside it */
function replace(file, bytes, mode) {
  const beside = `${file}.${process.pid}`;
  try {
    writeFileSync(beside, bytes, { flag: 'wx', mode });
  } catch (error) {
    if (NO_ROOM.includes(error.code)) return false;
    rmSync(beside, { force: true });
    throw error;
  }
  try {
    renameSync(beside, file);
    return true;
  } catch {
    rmSync(beside, { force: true });
    return false;
  }
}
